# Generated from spec/pgoutput.yaml by: python -m tools.generate. Do not edit.

"""Logical replication messages: the fast engine, the same layouts as straight-line Python.

It raises one of fast.REJECTIONS for whatever it does not accept; the definitions then say what is wrong.
"""

from collections.abc import Callable, Mapping
from struct import Struct, unpack_from
from typing import Any, Final

from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.fast import PAD, Reject, new, number, setters, string_bytes
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["BUILDERS", "PARSERS"]

_ahead_BI = [Struct(f">{length}sBI").unpack_from for length in range(256)]
_pack_B = Struct(">B").pack
_pack_BBQ = Struct(">BBQ").pack
_pack_BBQQq = Struct(">BBQQq").pack
_pack_BBQQqI = Struct(">BBQQqI").pack
_pack_BBQQqqI = Struct(">BBQQqqI").pack
_pack_BH = Struct(">BH").pack
_pack_BI = Struct(">BI").pack
_pack_BIB = Struct(">BIB").pack
_pack_BIBQ = Struct(">BIBQ").pack
_pack_BIBQQq = Struct(">BIBQQq").pack
_pack_BII = Struct(">BII").pack
_pack_BIIB = Struct(">BIIB").pack
_pack_BIIQq = Struct(">BIIQq").pack
_pack_BQ = Struct(">BQ").pack
_pack_BQQqI = Struct(">BQQqI").pack
_pack_BQqI = Struct(">BQqI").pack
_pack_H = Struct(">H").pack
_pack_I = Struct(">I").pack
_pack_Ii = Struct(">Ii").pack
_unpack_B = Struct(">B").unpack_from
_unpack_BH = Struct(">BH").unpack_from
_unpack_BI = Struct(">BI").unpack_from
_unpack_H = Struct(">H").unpack_from
_unpack_I = Struct(">I").unpack_from
_unpack_Ii = Struct(">Ii").unpack_from
_unpack_xBQ = Struct(">xBQ").unpack_from
_unpack_xBQQq = Struct(">xBQQq").unpack_from
_unpack_xBQQqI = Struct(">xBQQqI").unpack_from
_unpack_xBQQqqI = Struct(">xBQQqqI").unpack_from
_unpack_xI = Struct(">xI").unpack_from
_unpack_xIB = Struct(">xIB").unpack_from
_unpack_xIBQ = Struct(">xIBQ").unpack_from
_unpack_xIBQQq = Struct(">xIBQQq").unpack_from
_unpack_xII = Struct(">xII").unpack_from
_unpack_xIIB = Struct(">xIIB").unpack_from
_unpack_xIIQq = Struct(">xIIQq").unpack_from
_unpack_xQ = Struct(">xQ").unpack_from
_unpack_xQQqI = Struct(">xQQqI").unpack_from
_unpack_xQqI = Struct(">xQqI").unpack_from

(
    _begin_final_lsn,
    _begin_commit_time,
    _begin_xid,
) = setters(m.Begin)
(
    _message_xid,
    _message_flags,
    _message_lsn,
    _message_prefix,
    _message_content,
) = setters(m.Message)
(
    _commit_commit_lsn,
    _commit_end_lsn,
    _commit_commit_time,
) = setters(m.Commit)
(
    _origin_origin_lsn,
    _origin_name,
) = setters(m.Origin)
(
    _relation_xid,
    _relation_relation_oid,
    _relation_namespace,
    _relation_name,
    _relation_replica_identity,
    _relation_columns,
) = setters(m.Relation)
(
    _relation_column_flags,
    _relation_column_name,
    _relation_column_type_oid,
    _relation_column_type_modifier,
) = setters(m.RelationColumn)
(
    _type_xid,
    _type_type_oid,
    _type_namespace,
    _type_name,
) = setters(m.Type)
(
    _insert_xid,
    _insert_relation_oid,
    _insert_new,
) = setters(m.Insert)
(
    _update_xid,
    _update_relation_oid,
    _update_old_kind,
    _update_old,
    _update_new,
) = setters(m.Update)
(
    _delete_xid,
    _delete_relation_oid,
    _delete_old_kind,
    _delete_old,
) = setters(m.Delete)
(
    _truncate_xid,
    _truncate_options,
    _truncate_relation_oids,
) = setters(m.Truncate)
(
    _stream_start_xid,
    _stream_start_first_segment,
) = setters(m.StreamStart)
(
    _stream_commit_xid,
    _stream_commit_commit_lsn,
    _stream_commit_end_lsn,
    _stream_commit_commit_time,
) = setters(m.StreamCommit)
(
    _stream_abort_xid,
    _stream_abort_subxid,
    _stream_abort_abort_lsn,
    _stream_abort_abort_time,
) = setters(m.StreamAbort)
(
    _begin_prepare_prepare_lsn,
    _begin_prepare_end_lsn,
    _begin_prepare_prepare_time,
    _begin_prepare_xid,
    _begin_prepare_gid,
) = setters(m.BeginPrepare)
(
    _prepare_prepare_lsn,
    _prepare_end_lsn,
    _prepare_prepare_time,
    _prepare_xid,
    _prepare_gid,
) = setters(m.Prepare)
(
    _commit_prepared_commit_lsn,
    _commit_prepared_end_lsn,
    _commit_prepared_commit_time,
    _commit_prepared_xid,
    _commit_prepared_gid,
) = setters(m.CommitPrepared)
(
    _rollback_prepared_prepare_end_lsn,
    _rollback_prepared_rollback_end_lsn,
    _rollback_prepared_prepare_time,
    _rollback_prepared_rollback_time,
    _rollback_prepared_xid,
    _rollback_prepared_gid,
) = setters(m.RollbackPrepared)
(
    _stream_prepare_prepare_lsn,
    _stream_prepare_end_lsn,
    _stream_prepare_prepare_time,
    _stream_prepare_xid,
    _stream_prepare_gid,
) = setters(m.StreamPrepare)


def _parse_tuple_data(data: bytes, at: int, proto_version: int, in_stream: bool, parallel: bool) -> tuple[Any, int]:
    (column_count,) = _unpack_H(data, at)
    at += 2
    columns: Any = []
    kind, length = _unpack_BI(data, at)
    at += 5
    for _ in range(column_count):
        if kind == 116:  # text
            end = at + length
            if length < 256:
                value, kind, length = _ahead_BI[length](data, at)
            else:
                value = data[at:end]
                kind, length = _unpack_BI(data, end)
            columns.append(value)
            at = end + 5
        elif kind == 110:  # null
            columns.append(None)
            kind, length = _unpack_BI(data, at - 4)
            at += 1
        elif kind == 117:  # unchanged
            columns.append(m.UNCHANGED)
            kind, length = _unpack_BI(data, at - 4)
            at += 1
        elif kind == 98:  # binary
            end = at + length
            if length < 256:
                value, kind, length = _ahead_BI[length](data, at)
            else:
                value = data[at:end]
                kind, length = _unpack_BI(data, end)
            columns.append(m.Binary(value))
            at = end + 5
        else:
            raise Reject
    at -= 5
    columns = tuple(columns)
    return columns, at


def parse_begin(data: bytes, proto_version: int, in_stream: bool, parallel: bool) -> m.Begin:
    """Parse Begin."""
    if len(data) != 21:
        raise Reject
    final_lsn, commit_time, xid = _unpack_xQqI(data, 0)
    final_lsn = number(Lsn, final_lsn)
    commit_time = number(Timestamp, commit_time)
    message = new(m.Begin)
    _begin_final_lsn(message, final_lsn)
    _begin_commit_time(message, commit_time)
    _begin_xid(message, xid)
    return message


def parse_message(data: bytes, proto_version: int, in_stream: bool, parallel: bool) -> m.Message:
    """Parse Message."""
    size = len(data)
    data += PAD
    if proto_version >= 2 and in_stream:
        xid, flags, lsn = _unpack_xIBQ(data, 0)
        at = 14
    else:
        xid = None
        flags, lsn = _unpack_xBQ(data, 0)
        at = 10
    if flags & ~0x1:
        raise Reject
    lsn = number(Lsn, lsn)
    end = data.index(b"\0", at)
    prefix = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    (content_length,) = _unpack_I(data, at)
    at += 4
    end = at + content_length
    content = data[at:end]
    at = end
    if at != size:
        raise Reject
    message = new(m.Message)
    _message_xid(message, xid)
    _message_flags(message, flags)
    _message_lsn(message, lsn)
    _message_prefix(message, prefix)
    _message_content(message, content)
    return message


def parse_commit(data: bytes, proto_version: int, in_stream: bool, parallel: bool) -> m.Commit:
    """Parse Commit."""
    if len(data) != 26:
        raise Reject
    flags, commit_lsn, end_lsn, commit_time = _unpack_xBQQq(data, 0)
    if flags != 0:
        raise Reject
    commit_lsn = number(Lsn, commit_lsn)
    end_lsn = number(Lsn, end_lsn)
    commit_time = number(Timestamp, commit_time)
    message = new(m.Commit)
    _commit_commit_lsn(message, commit_lsn)
    _commit_end_lsn(message, end_lsn)
    _commit_commit_time(message, commit_time)
    return message


def parse_origin(data: bytes, proto_version: int, in_stream: bool, parallel: bool) -> m.Origin:
    """Parse Origin."""
    size = len(data)
    data += PAD
    (origin_lsn,) = _unpack_xQ(data, 0)
    at = 9
    origin_lsn = number(Lsn, origin_lsn)
    end = data.index(b"\0", at)
    name = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    if at != size:
        raise Reject
    message = new(m.Origin)
    _origin_origin_lsn(message, origin_lsn)
    _origin_name(message, name)
    return message


def _parse_relation_column(
    data: bytes, at: int, proto_version: int, in_stream: bool, parallel: bool
) -> tuple[Any, int]:
    (flags,) = _unpack_B(data, at)
    at += 1
    if flags & ~0x1:
        raise Reject
    end = data.index(b"\0", at)
    name = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    type_oid, type_modifier = _unpack_Ii(data, at)
    at += 8
    item = new(m.RelationColumn)
    _relation_column_flags(item, flags)
    _relation_column_name(item, name)
    _relation_column_type_oid(item, type_oid)
    _relation_column_type_modifier(item, type_modifier)
    return item, at


def parse_relation(data: bytes, proto_version: int, in_stream: bool, parallel: bool) -> m.Relation:
    """Parse Relation."""
    size = len(data)
    data += PAD
    if proto_version >= 2 and in_stream:
        xid, relation_oid = _unpack_xII(data, 0)
        at = 9
    else:
        xid = None
        (relation_oid,) = _unpack_xI(data, 0)
        at = 5
    end = data.index(b"\0", at)
    namespace = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    end = data.index(b"\0", at)
    name = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    replica_identity, column_count = _unpack_BH(data, at)
    at += 3
    if replica_identity not in b"dnfi":
        raise Reject
    replica_identity = chr(replica_identity)
    columns: Any = []
    for _ in range(column_count):
        item, at = _parse_relation_column(data, at, proto_version, in_stream, parallel)
        columns.append(item)
    columns = tuple(columns)
    if at != size:
        raise Reject
    message = new(m.Relation)
    _relation_xid(message, xid)
    _relation_relation_oid(message, relation_oid)
    _relation_namespace(message, namespace)
    _relation_name(message, name)
    _relation_replica_identity(message, replica_identity)
    _relation_columns(message, columns)
    return message


def parse_type(data: bytes, proto_version: int, in_stream: bool, parallel: bool) -> m.Type:
    """Parse Type."""
    size = len(data)
    data += PAD
    if proto_version >= 2 and in_stream:
        xid, type_oid = _unpack_xII(data, 0)
        at = 9
    else:
        xid = None
        (type_oid,) = _unpack_xI(data, 0)
        at = 5
    end = data.index(b"\0", at)
    namespace = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    end = data.index(b"\0", at)
    name = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    if at != size:
        raise Reject
    message = new(m.Type)
    _type_xid(message, xid)
    _type_type_oid(message, type_oid)
    _type_namespace(message, namespace)
    _type_name(message, name)
    return message


def parse_insert(data: bytes, proto_version: int, in_stream: bool, parallel: bool) -> m.Insert:
    """Parse Insert."""
    size = len(data)
    data += PAD
    if proto_version >= 2 and in_stream:
        xid, relation_oid, new_tag = _unpack_xIIB(data, 0)
        at = 10
    else:
        xid = None
        relation_oid, new_tag = _unpack_xIB(data, 0)
        at = 6
    if new_tag != 78:
        raise Reject
    (column_count,) = _unpack_H(data, at)
    at += 2
    columns: Any = []
    kind, length = _unpack_BI(data, at)
    at += 5
    for _ in range(column_count):
        if kind == 116:  # text
            end = at + length
            if length < 256:
                value, kind, length = _ahead_BI[length](data, at)
            else:
                value = data[at:end]
                kind, length = _unpack_BI(data, end)
            columns.append(value)
            at = end + 5
        elif kind == 110:  # null
            columns.append(None)
            kind, length = _unpack_BI(data, at - 4)
            at += 1
        elif kind == 117:  # unchanged
            columns.append(m.UNCHANGED)
            kind, length = _unpack_BI(data, at - 4)
            at += 1
        elif kind == 98:  # binary
            end = at + length
            if length < 256:
                value, kind, length = _ahead_BI[length](data, at)
            else:
                value = data[at:end]
                kind, length = _unpack_BI(data, end)
            columns.append(m.Binary(value))
            at = end + 5
        else:
            raise Reject
    at -= 5
    columns = tuple(columns)
    new_ = columns
    if at != size:
        raise Reject
    message = new(m.Insert)
    _insert_xid(message, xid)
    _insert_relation_oid(message, relation_oid)
    _insert_new(message, new_)
    return message


def parse_update(data: bytes, proto_version: int, in_stream: bool, parallel: bool) -> m.Update:
    """Parse Update."""
    size = len(data)
    data += PAD
    if proto_version >= 2 and in_stream:
        xid, relation_oid = _unpack_xII(data, 0)
        at = 9
    else:
        xid = None
        (relation_oid,) = _unpack_xI(data, 0)
        at = 5
    old_kind: Any = None
    old: Any = None
    kind = data[at]
    if kind == 75:  # key
        old_kind = "K"
        at += 1
        old, at = _parse_tuple_data(data, at, proto_version, in_stream, parallel)
    elif kind == 79:  # row
        old_kind = "O"
        at += 1
        old, at = _parse_tuple_data(data, at, proto_version, in_stream, parallel)
    (new_tag,) = _unpack_B(data, at)
    at += 1
    if new_tag != 78:
        raise Reject
    (column_count,) = _unpack_H(data, at)
    at += 2
    columns: Any = []
    kind, length = _unpack_BI(data, at)
    at += 5
    for _ in range(column_count):
        if kind == 116:  # text
            end = at + length
            if length < 256:
                value, kind, length = _ahead_BI[length](data, at)
            else:
                value = data[at:end]
                kind, length = _unpack_BI(data, end)
            columns.append(value)
            at = end + 5
        elif kind == 110:  # null
            columns.append(None)
            kind, length = _unpack_BI(data, at - 4)
            at += 1
        elif kind == 117:  # unchanged
            columns.append(m.UNCHANGED)
            kind, length = _unpack_BI(data, at - 4)
            at += 1
        elif kind == 98:  # binary
            end = at + length
            if length < 256:
                value, kind, length = _ahead_BI[length](data, at)
            else:
                value = data[at:end]
                kind, length = _unpack_BI(data, end)
            columns.append(m.Binary(value))
            at = end + 5
        else:
            raise Reject
    at -= 5
    columns = tuple(columns)
    new_ = columns
    if at != size:
        raise Reject
    message = new(m.Update)
    _update_xid(message, xid)
    _update_relation_oid(message, relation_oid)
    _update_old_kind(message, old_kind)
    _update_old(message, old)
    _update_new(message, new_)
    return message


def parse_delete(data: bytes, proto_version: int, in_stream: bool, parallel: bool) -> m.Delete:
    """Parse Delete."""
    size = len(data)
    data += PAD
    if proto_version >= 2 and in_stream:
        xid, relation_oid = _unpack_xII(data, 0)
        at = 9
    else:
        xid = None
        (relation_oid,) = _unpack_xI(data, 0)
        at = 5
    kind = data[at]
    if kind == 75:  # key
        old_kind = "K"
        at += 1
        old, at = _parse_tuple_data(data, at, proto_version, in_stream, parallel)
    elif kind == 79:  # row
        old_kind = "O"
        at += 1
        old, at = _parse_tuple_data(data, at, proto_version, in_stream, parallel)
    else:
        raise Reject
    if at != size:
        raise Reject
    message = new(m.Delete)
    _delete_xid(message, xid)
    _delete_relation_oid(message, relation_oid)
    _delete_old_kind(message, old_kind)
    _delete_old(message, old)
    return message


def parse_truncate(data: bytes, proto_version: int, in_stream: bool, parallel: bool) -> m.Truncate:
    """Parse Truncate."""
    size = len(data)
    data += PAD
    if proto_version >= 2 and in_stream:
        xid, relation_count, options = _unpack_xIIB(data, 0)
        at = 10
    else:
        xid = None
        relation_count, options = _unpack_xIB(data, 0)
        at = 6
    if options & ~0x3:
        raise Reject
    end = at + 4 * relation_count
    if end > len(data):
        raise Reject
    relation_oids = unpack_from(f">{relation_count}I", data, at)
    at = end
    if at != size:
        raise Reject
    message = new(m.Truncate)
    _truncate_xid(message, xid)
    _truncate_options(message, options)
    _truncate_relation_oids(message, relation_oids)
    return message


def parse_stream_start(data: bytes, proto_version: int, in_stream: bool, parallel: bool) -> m.StreamStart:
    """Parse StreamStart."""
    if proto_version < 2:
        raise Reject
    if len(data) != 6:
        raise Reject
    xid, first_segment = _unpack_xIB(data, 0)
    if first_segment not in (0, 1):
        raise Reject
    message = new(m.StreamStart)
    _stream_start_xid(message, xid)
    _stream_start_first_segment(message, first_segment)
    return message


def parse_stream_stop(data: bytes, proto_version: int, in_stream: bool, parallel: bool) -> m.StreamStop:
    """Parse StreamStop."""
    if proto_version < 2:
        raise Reject
    if len(data) != 1:
        raise Reject
    message = new(m.StreamStop)
    return message


def parse_stream_commit(data: bytes, proto_version: int, in_stream: bool, parallel: bool) -> m.StreamCommit:
    """Parse StreamCommit."""
    if proto_version < 2:
        raise Reject
    if len(data) != 30:
        raise Reject
    xid, flags, commit_lsn, end_lsn, commit_time = _unpack_xIBQQq(data, 0)
    if flags != 0:
        raise Reject
    commit_lsn = number(Lsn, commit_lsn)
    end_lsn = number(Lsn, end_lsn)
    commit_time = number(Timestamp, commit_time)
    message = new(m.StreamCommit)
    _stream_commit_xid(message, xid)
    _stream_commit_commit_lsn(message, commit_lsn)
    _stream_commit_end_lsn(message, end_lsn)
    _stream_commit_commit_time(message, commit_time)
    return message


def parse_stream_abort(data: bytes, proto_version: int, in_stream: bool, parallel: bool) -> m.StreamAbort:
    """Parse StreamAbort."""
    if proto_version >= 4 and parallel:
        if len(data) != 25:
            raise Reject
        xid, subxid, abort_lsn, abort_time = _unpack_xIIQq(data, 0)
    else:
        abort_lsn = abort_time = None
        if len(data) != 9:
            raise Reject
        xid, subxid = _unpack_xII(data, 0)
    if abort_lsn is not None:
        abort_lsn = number(Lsn, abort_lsn)
    if abort_time is not None:
        abort_time = number(Timestamp, abort_time)
    message = new(m.StreamAbort)
    _stream_abort_xid(message, xid)
    _stream_abort_subxid(message, subxid)
    _stream_abort_abort_lsn(message, abort_lsn)
    _stream_abort_abort_time(message, abort_time)
    return message


def parse_begin_prepare(data: bytes, proto_version: int, in_stream: bool, parallel: bool) -> m.BeginPrepare:
    """Parse BeginPrepare."""
    size = len(data)
    data += PAD
    prepare_lsn, end_lsn, prepare_time, xid = _unpack_xQQqI(data, 0)
    at = 29
    prepare_lsn = number(Lsn, prepare_lsn)
    end_lsn = number(Lsn, end_lsn)
    prepare_time = number(Timestamp, prepare_time)
    end = data.index(b"\0", at)
    gid = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    if at != size:
        raise Reject
    message = new(m.BeginPrepare)
    _begin_prepare_prepare_lsn(message, prepare_lsn)
    _begin_prepare_end_lsn(message, end_lsn)
    _begin_prepare_prepare_time(message, prepare_time)
    _begin_prepare_xid(message, xid)
    _begin_prepare_gid(message, gid)
    return message


def parse_prepare(data: bytes, proto_version: int, in_stream: bool, parallel: bool) -> m.Prepare:
    """Parse Prepare."""
    size = len(data)
    data += PAD
    flags, prepare_lsn, end_lsn, prepare_time, xid = _unpack_xBQQqI(data, 0)
    at = 30
    if flags != 0:
        raise Reject
    prepare_lsn = number(Lsn, prepare_lsn)
    end_lsn = number(Lsn, end_lsn)
    prepare_time = number(Timestamp, prepare_time)
    end = data.index(b"\0", at)
    gid = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    if at != size:
        raise Reject
    message = new(m.Prepare)
    _prepare_prepare_lsn(message, prepare_lsn)
    _prepare_end_lsn(message, end_lsn)
    _prepare_prepare_time(message, prepare_time)
    _prepare_xid(message, xid)
    _prepare_gid(message, gid)
    return message


def parse_commit_prepared(data: bytes, proto_version: int, in_stream: bool, parallel: bool) -> m.CommitPrepared:
    """Parse CommitPrepared."""
    size = len(data)
    data += PAD
    flags, commit_lsn, end_lsn, commit_time, xid = _unpack_xBQQqI(data, 0)
    at = 30
    if flags != 0:
        raise Reject
    commit_lsn = number(Lsn, commit_lsn)
    end_lsn = number(Lsn, end_lsn)
    commit_time = number(Timestamp, commit_time)
    end = data.index(b"\0", at)
    gid = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    if at != size:
        raise Reject
    message = new(m.CommitPrepared)
    _commit_prepared_commit_lsn(message, commit_lsn)
    _commit_prepared_end_lsn(message, end_lsn)
    _commit_prepared_commit_time(message, commit_time)
    _commit_prepared_xid(message, xid)
    _commit_prepared_gid(message, gid)
    return message


def parse_rollback_prepared(data: bytes, proto_version: int, in_stream: bool, parallel: bool) -> m.RollbackPrepared:
    """Parse RollbackPrepared."""
    size = len(data)
    data += PAD
    flags, prepare_end_lsn, rollback_end_lsn, prepare_time, rollback_time, xid = _unpack_xBQQqqI(data, 0)
    at = 38
    if flags != 0:
        raise Reject
    prepare_end_lsn = number(Lsn, prepare_end_lsn)
    rollback_end_lsn = number(Lsn, rollback_end_lsn)
    prepare_time = number(Timestamp, prepare_time)
    rollback_time = number(Timestamp, rollback_time)
    end = data.index(b"\0", at)
    gid = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    if at != size:
        raise Reject
    message = new(m.RollbackPrepared)
    _rollback_prepared_prepare_end_lsn(message, prepare_end_lsn)
    _rollback_prepared_rollback_end_lsn(message, rollback_end_lsn)
    _rollback_prepared_prepare_time(message, prepare_time)
    _rollback_prepared_rollback_time(message, rollback_time)
    _rollback_prepared_xid(message, xid)
    _rollback_prepared_gid(message, gid)
    return message


def parse_stream_prepare(data: bytes, proto_version: int, in_stream: bool, parallel: bool) -> m.StreamPrepare:
    """Parse StreamPrepare."""
    size = len(data)
    data += PAD
    flags, prepare_lsn, end_lsn, prepare_time, xid = _unpack_xBQQqI(data, 0)
    at = 30
    if flags != 0:
        raise Reject
    prepare_lsn = number(Lsn, prepare_lsn)
    end_lsn = number(Lsn, end_lsn)
    prepare_time = number(Timestamp, prepare_time)
    end = data.index(b"\0", at)
    gid = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    if at != size:
        raise Reject
    message = new(m.StreamPrepare)
    _stream_prepare_prepare_lsn(message, prepare_lsn)
    _stream_prepare_end_lsn(message, end_lsn)
    _stream_prepare_prepare_time(message, prepare_time)
    _stream_prepare_xid(message, xid)
    _stream_prepare_gid(message, gid)
    return message


def _build_tuple_data(value: Any, pieces: list[bytes], proto_version: int, in_stream: bool, parallel: bool) -> None:
    column_count = len(value)
    pieces.append(_pack_H(column_count))
    if not isinstance(value, (tuple, list)):
        raise Reject
    for columns_item in value:
        if type(columns_item) is bytes:
            pieces.append(_pack_BI(116, len(columns_item)))
            pieces.append(columns_item)
        elif columns_item is None:
            pieces.append(b"n")
        elif columns_item is m.UNCHANGED:
            pieces.append(b"u")
        elif type(columns_item) is m.Binary:
            pieces.append(_pack_BI(98, len(columns_item)))
            pieces.append(columns_item)
        else:
            raise Reject


def build_begin(message: m.Begin, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Begin."""
    pieces: list[bytes] = []
    pieces.append(_pack_BQqI(66, message.final_lsn, message.commit_time, message.xid))
    return b"".join(pieces)


def build_message(message: m.Message, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Message."""
    pieces: list[bytes] = []
    content_length = len(message.content)
    if message.flags & ~0x1:
        raise Reject
    if proto_version >= 2 and in_stream:
        pieces.append(_pack_BIBQ(77, message.xid, message.flags, message.lsn))
    else:
        if message.xid is not None:
            raise Reject
        pieces.append(_pack_BBQ(77, message.flags, message.lsn))
    pieces.append(string_bytes(message.prefix))
    pieces.append(_pack_I(content_length))
    if not isinstance(message.content, bytes):
        raise Reject
    pieces.append(message.content)
    return b"".join(pieces)


def build_commit(message: m.Commit, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Commit."""
    pieces: list[bytes] = []
    pieces.append(_pack_BBQQq(67, 0, message.commit_lsn, message.end_lsn, message.commit_time))
    return b"".join(pieces)


def build_origin(message: m.Origin, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Origin."""
    pieces: list[bytes] = []
    pieces.append(_pack_BQ(79, message.origin_lsn))
    pieces.append(string_bytes(message.name))
    return b"".join(pieces)


def build_relation(message: m.Relation, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Relation."""
    pieces: list[bytes] = []
    column_count = len(message.columns)
    if proto_version >= 2 and in_stream:
        pieces.append(_pack_BII(82, message.xid, message.relation_oid))
    else:
        if message.xid is not None:
            raise Reject
        pieces.append(_pack_BI(82, message.relation_oid))
    pieces.append(string_bytes(message.namespace))
    pieces.append(string_bytes(message.name))
    if message.replica_identity not in ("d", "n", "f", "i"):
        raise Reject
    pieces.append(_pack_BH(ord(message.replica_identity), column_count))
    if not isinstance(message.columns, (tuple, list)):
        raise Reject
    for columns_item in message.columns:
        if not isinstance(columns_item, m.RelationColumn):
            raise Reject
        if columns_item.flags & ~0x1:
            raise Reject
        pieces.append(_pack_B(columns_item.flags))
        pieces.append(string_bytes(columns_item.name))
        pieces.append(_pack_Ii(columns_item.type_oid, columns_item.type_modifier))
    return b"".join(pieces)


def build_type(message: m.Type, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Type."""
    pieces: list[bytes] = []
    if proto_version >= 2 and in_stream:
        pieces.append(_pack_BII(89, message.xid, message.type_oid))
    else:
        if message.xid is not None:
            raise Reject
        pieces.append(_pack_BI(89, message.type_oid))
    pieces.append(string_bytes(message.namespace))
    pieces.append(string_bytes(message.name))
    return b"".join(pieces)


def build_insert(message: m.Insert, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Insert."""
    pieces: list[bytes] = []
    if proto_version >= 2 and in_stream:
        pieces.append(_pack_BIIB(73, message.xid, message.relation_oid, 78))
    else:
        if message.xid is not None:
            raise Reject
        pieces.append(_pack_BIB(73, message.relation_oid, 78))
    _build_tuple_data(message.new, pieces, proto_version, in_stream, parallel)
    return b"".join(pieces)


def build_update(message: m.Update, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Update."""
    pieces: list[bytes] = []
    if proto_version >= 2 and in_stream:
        pieces.append(_pack_BII(85, message.xid, message.relation_oid))
    else:
        if message.xid is not None:
            raise Reject
        pieces.append(_pack_BI(85, message.relation_oid))
    if message.old_kind == "K":
        pieces.append(b"K")
        _build_tuple_data(message.old, pieces, proto_version, in_stream, parallel)
    elif message.old_kind == "O":
        pieces.append(b"O")
        _build_tuple_data(message.old, pieces, proto_version, in_stream, parallel)
    elif message.old_kind is not None or message.old is not None:
        raise Reject
    pieces.append(_pack_B(78))
    _build_tuple_data(message.new, pieces, proto_version, in_stream, parallel)
    return b"".join(pieces)


def build_delete(message: m.Delete, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Delete."""
    pieces: list[bytes] = []
    if proto_version >= 2 and in_stream:
        pieces.append(_pack_BII(68, message.xid, message.relation_oid))
    else:
        if message.xid is not None:
            raise Reject
        pieces.append(_pack_BI(68, message.relation_oid))
    if message.old_kind == "K":
        pieces.append(b"K")
        _build_tuple_data(message.old, pieces, proto_version, in_stream, parallel)
    elif message.old_kind == "O":
        pieces.append(b"O")
        _build_tuple_data(message.old, pieces, proto_version, in_stream, parallel)
    else:
        raise Reject
    return b"".join(pieces)


def build_truncate(message: m.Truncate, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Truncate."""
    pieces: list[bytes] = []
    relation_count = len(message.relation_oids)
    if message.options & ~0x3:
        raise Reject
    if proto_version >= 2 and in_stream:
        pieces.append(_pack_BIIB(84, message.xid, relation_count, message.options))
    else:
        if message.xid is not None:
            raise Reject
        pieces.append(_pack_BIB(84, relation_count, message.options))
    if not isinstance(message.relation_oids, (tuple, list)):
        raise Reject
    for relation_oids_item in message.relation_oids:
        pieces.append(_pack_I(relation_oids_item))
    return b"".join(pieces)


def build_stream_start(message: m.StreamStart, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build StreamStart."""
    if proto_version < 2:
        raise Reject
    pieces: list[bytes] = []
    if message.first_segment not in (0, 1):
        raise Reject
    pieces.append(_pack_BIB(83, message.xid, message.first_segment))
    return b"".join(pieces)


def build_stream_stop(message: m.StreamStop, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build StreamStop."""
    if proto_version < 2:
        raise Reject
    pieces: list[bytes] = []
    pieces.append(_pack_B(69))
    return b"".join(pieces)


def build_stream_commit(message: m.StreamCommit, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build StreamCommit."""
    if proto_version < 2:
        raise Reject
    pieces: list[bytes] = []
    pieces.append(_pack_BIBQQq(99, message.xid, 0, message.commit_lsn, message.end_lsn, message.commit_time))
    return b"".join(pieces)


def build_stream_abort(message: m.StreamAbort, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build StreamAbort."""
    pieces: list[bytes] = []
    if proto_version >= 4 and parallel:
        pieces.append(_pack_BIIQq(65, message.xid, message.subxid, message.abort_lsn, message.abort_time))
    else:
        if message.abort_lsn is not None:
            raise Reject
        if message.abort_time is not None:
            raise Reject
        pieces.append(_pack_BII(65, message.xid, message.subxid))
    return b"".join(pieces)


def build_begin_prepare(message: m.BeginPrepare, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build BeginPrepare."""
    pieces: list[bytes] = []
    pieces.append(_pack_BQQqI(98, message.prepare_lsn, message.end_lsn, message.prepare_time, message.xid))
    pieces.append(string_bytes(message.gid))
    return b"".join(pieces)


def build_prepare(message: m.Prepare, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Prepare."""
    pieces: list[bytes] = []
    pieces.append(_pack_BBQQqI(80, 0, message.prepare_lsn, message.end_lsn, message.prepare_time, message.xid))
    pieces.append(string_bytes(message.gid))
    return b"".join(pieces)


def build_commit_prepared(message: m.CommitPrepared, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build CommitPrepared."""
    pieces: list[bytes] = []
    pieces.append(_pack_BBQQqI(75, 0, message.commit_lsn, message.end_lsn, message.commit_time, message.xid))
    pieces.append(string_bytes(message.gid))
    return b"".join(pieces)


def build_rollback_prepared(message: m.RollbackPrepared, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build RollbackPrepared."""
    pieces: list[bytes] = []
    pieces.append(
        _pack_BBQQqqI(
            114,
            0,
            message.prepare_end_lsn,
            message.rollback_end_lsn,
            message.prepare_time,
            message.rollback_time,
            message.xid,
        )
    )
    pieces.append(string_bytes(message.gid))
    return b"".join(pieces)


def build_stream_prepare(message: m.StreamPrepare, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build StreamPrepare."""
    pieces: list[bytes] = []
    pieces.append(_pack_BBQQqI(112, 0, message.prepare_lsn, message.end_lsn, message.prepare_time, message.xid))
    pieces.append(string_bytes(message.gid))
    return b"".join(pieces)


PARSERS: Final[Mapping[int, Callable[..., Any]]] = {
    66: parse_begin,
    77: parse_message,
    67: parse_commit,
    79: parse_origin,
    82: parse_relation,
    89: parse_type,
    73: parse_insert,
    85: parse_update,
    68: parse_delete,
    84: parse_truncate,
    83: parse_stream_start,
    69: parse_stream_stop,
    99: parse_stream_commit,
    65: parse_stream_abort,
    98: parse_begin_prepare,
    80: parse_prepare,
    75: parse_commit_prepared,
    114: parse_rollback_prepared,
    112: parse_stream_prepare,
}
"""What parses each first byte."""

BUILDERS: Final[Mapping[type, Callable[..., Any]]] = {
    m.Begin: build_begin,
    m.Message: build_message,
    m.Commit: build_commit,
    m.Origin: build_origin,
    m.Relation: build_relation,
    m.Type: build_type,
    m.Insert: build_insert,
    m.Update: build_update,
    m.Delete: build_delete,
    m.Truncate: build_truncate,
    m.StreamStart: build_stream_start,
    m.StreamStop: build_stream_stop,
    m.StreamCommit: build_stream_commit,
    m.StreamAbort: build_stream_abort,
    m.BeginPrepare: build_begin_prepare,
    m.Prepare: build_prepare,
    m.CommitPrepared: build_commit_prepared,
    m.RollbackPrepared: build_rollback_prepared,
    m.StreamPrepare: build_stream_prepare,
}
"""What builds each class."""
