# Generated from spec/pgoutput.yaml by: python -m tools.generate. Do not edit.

"""Logical replication messages: the fast engine, the same layouts as straight-line Python.

It raises one of fast.REJECTIONS for whatever it does not accept; the definitions then say what is wrong.
"""

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, Final

from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.codec_runtime import NOTHING, Reject, draft, number, string_bytes
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["BUILDERS", "READERS"]

_Begin = draft(m.Begin)
_BeginPrepare = draft(m.BeginPrepare)
_Commit = draft(m.Commit)
_CommitPrepared = draft(m.CommitPrepared)
_Delete = draft(m.Delete)
_Insert = draft(m.Insert)
_Message = draft(m.Message)
_Origin = draft(m.Origin)
_Prepare = draft(m.Prepare)
_Relation = draft(m.Relation)
_RelationColumn = draft(m.RelationColumn)
_RollbackPrepared = draft(m.RollbackPrepared)
_StreamAbort = draft(m.StreamAbort)
_StreamCommit = draft(m.StreamCommit)
_StreamPrepare = draft(m.StreamPrepare)
_StreamStart = draft(m.StreamStart)
_StreamStop = draft(m.StreamStop)
_Truncate = draft(m.Truncate)
_Type = draft(m.Type)
_Update = draft(m.Update)
_ahead_BI = [Struct(f">{length}sBI").unpack_from for length in range(256)]
_class_RelationColumn: Any = m.RelationColumn
_pack_B = Struct(">B").pack
_pack_BBQQq = Struct(">BBQQq").pack
_pack_BBQQqI = Struct(">BBQQqI").pack
_pack_BBQQqqI = Struct(">BBQQqqI").pack
_pack_BH = Struct(">BH").pack
_pack_BI = Struct(">BI").pack
_pack_BIB = Struct(">BIB").pack
_pack_BIBQQq = Struct(">BIBQQq").pack
_pack_BII = Struct(">BII").pack
_pack_BQ = Struct(">BQ").pack
_pack_BQQqI = Struct(">BQQqI").pack
_pack_BQqI = Struct(">BQqI").pack
_pack_H = Struct(">H").pack
_pack_I = Struct(">I").pack
_pack_IB = Struct(">IB").pack
_pack_Ii = Struct(">Ii").pack
_pack_Qq = Struct(">Qq").pack
_unpack_B = Struct(">B").unpack_from
_unpack_BH = Struct(">BH").unpack_from
_unpack_BHBI = Struct(">BHBI").unpack_from
_unpack_BI = Struct(">BI").unpack_from
_unpack_HBI = Struct(">HBI").unpack_from
_unpack_I = Struct(">I").unpack_from
_unpack_Ii = Struct(">Ii").unpack_from
_unpack_xBQ = Struct(">xBQ").unpack_from
_unpack_xBQQq = Struct(">xBQQq").unpack_from
_unpack_xBQQqI = Struct(">xBQQqI").unpack_from
_unpack_xBQQqqI = Struct(">xBQQqqI").unpack_from
_unpack_xI = Struct(">xI").unpack_from
_unpack_xIB = Struct(">xIB").unpack_from
_unpack_xIBHBI = Struct(">xIBHBI").unpack_from
_unpack_xIBQ = Struct(">xIBQ").unpack_from
_unpack_xIBQQq = Struct(">xIBQQq").unpack_from
_unpack_xII = Struct(">xII").unpack_from
_unpack_xIIB = Struct(">xIIB").unpack_from
_unpack_xIIBHBI = Struct(">xIIBHBI").unpack_from
_unpack_xIIQq = Struct(">xIIQq").unpack_from
_unpack_xQ = Struct(">xQ").unpack_from
_unpack_xQQqI = Struct(">xQQqI").unpack_from
_unpack_xQqI = Struct(">xQqI").unpack_from


def _read_tuple_data(
    data: bytes, at: int, size: int, proto_version: int, in_stream: bool, parallel: bool
) -> tuple[Any, int]:
    column_count, tag, length = _unpack_HBI(data, at)
    at += 7
    if column_count > size:  # each takes a byte at least
        raise Reject
    columns = NOTHING * column_count  # reading ahead: see PAD
    for index in range(column_count):
        if tag == 116:  # text
            end = at + length
            if length < 256:
                columns[index], tag, length = _ahead_BI[length](data, at)
            else:
                columns[index] = data[at:end]
                tag, length = _unpack_BI(data, end)
            at = end + 5
        elif tag == 98:  # binary
            end = at + length
            if length < 256:
                value, tag, length = _ahead_BI[length](data, at)
            else:
                value = data[at:end]
                tag, length = _unpack_BI(data, end)
            columns[index] = m.Binary(value)
            at = end + 5
        elif tag == 110:  # null
            tag, length = _unpack_BI(data, at - 4)
            at += 1
        elif tag == 117:  # unchanged
            columns[index] = m.UNCHANGED
            tag, length = _unpack_BI(data, at - 4)
            at += 1
        else:
            raise Reject
    at -= 5
    return tuple(columns), at


def _read_begin(
    data: bytes, at: int, size: int, proto_version: int, in_stream: bool, parallel: bool
) -> tuple[m.Begin, int]:
    final_lsn, commit_time, xid = _unpack_xQqI(data, at)
    at += 21
    final_lsn = number(Lsn, final_lsn)
    commit_time = number(Timestamp, commit_time)
    message = _Begin()
    message.final_lsn = final_lsn
    message.commit_time = commit_time
    message.xid = xid
    message.__class__ = m.Begin
    return message, at


def _read_message(
    data: bytes, at: int, size: int, proto_version: int, in_stream: bool, parallel: bool
) -> tuple[m.Message, int]:
    if proto_version >= 2 and in_stream:
        xid, flags, lsn = _unpack_xIBQ(data, at)
        at += 14
    else:
        xid = None
        flags, lsn = _unpack_xBQ(data, at)
        at += 10
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
    message = _Message()
    message.xid = xid
    message.flags = flags
    message.lsn = lsn
    message.prefix = prefix
    message.content = content
    message.__class__ = m.Message
    return message, at


def _read_commit(
    data: bytes, at: int, size: int, proto_version: int, in_stream: bool, parallel: bool
) -> tuple[m.Commit, int]:
    flags, commit_lsn, end_lsn, commit_time = _unpack_xBQQq(data, at)
    at += 26
    if flags != 0:
        raise Reject
    commit_lsn = number(Lsn, commit_lsn)
    end_lsn = number(Lsn, end_lsn)
    commit_time = number(Timestamp, commit_time)
    message = _Commit()
    message.commit_lsn = commit_lsn
    message.end_lsn = end_lsn
    message.commit_time = commit_time
    message.__class__ = m.Commit
    return message, at


def _read_origin(
    data: bytes, at: int, size: int, proto_version: int, in_stream: bool, parallel: bool
) -> tuple[m.Origin, int]:
    (origin_lsn,) = _unpack_xQ(data, at)
    at += 9
    origin_lsn = number(Lsn, origin_lsn)
    end = data.index(b"\0", at)
    name = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    message = _Origin()
    message.origin_lsn = origin_lsn
    message.name = name
    message.__class__ = m.Origin
    return message, at


def _read_relation(
    data: bytes, at: int, size: int, proto_version: int, in_stream: bool, parallel: bool
) -> tuple[m.Relation, int]:
    if proto_version >= 2 and in_stream:
        xid, relation_oid = _unpack_xII(data, at)
        at += 9
    else:
        xid = None
        (relation_oid,) = _unpack_xI(data, at)
        at += 5
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
        (flags,) = _unpack_B(data, at)
        at += 1
        if flags & ~0x1:
            raise Reject
        end = data.index(b"\0", at)
        name_ = data[at:end].decode("utf-8", "surrogateescape")
        at = end + 1
        type_oid, type_modifier = _unpack_Ii(data, at)
        at += 8
        item = _RelationColumn()
        item.flags = flags
        item.name = name_
        item.type_oid = type_oid
        item.type_modifier = type_modifier
        item.__class__ = m.RelationColumn
        columns.append(item)
    message = _Relation()
    message.xid = xid
    message.relation_oid = relation_oid
    message.namespace = namespace
    message.name = name
    message.replica_identity = replica_identity
    message.columns = tuple(columns)
    message.__class__ = m.Relation
    return message, at


def _read_type(
    data: bytes, at: int, size: int, proto_version: int, in_stream: bool, parallel: bool
) -> tuple[m.Type, int]:
    if proto_version >= 2 and in_stream:
        xid, type_oid = _unpack_xII(data, at)
        at += 9
    else:
        xid = None
        (type_oid,) = _unpack_xI(data, at)
        at += 5
    end = data.index(b"\0", at)
    namespace = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    end = data.index(b"\0", at)
    name = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    message = _Type()
    message.xid = xid
    message.type_oid = type_oid
    message.namespace = namespace
    message.name = name
    message.__class__ = m.Type
    return message, at


def _read_insert(
    data: bytes, at: int, size: int, proto_version: int, in_stream: bool, parallel: bool
) -> tuple[m.Insert, int]:
    if proto_version >= 2 and in_stream:
        xid, relation_oid, new_tag, column_count, tag, length = _unpack_xIIBHBI(data, at)
        at += 17
    else:
        xid = None
        relation_oid, new_tag, column_count, tag, length = _unpack_xIBHBI(data, at)
        at += 13
    if new_tag != 78:
        raise Reject
    if column_count > size:  # each takes a byte at least
        raise Reject
    columns = NOTHING * column_count  # reading ahead: see PAD
    for index in range(column_count):
        if tag == 116:  # text
            end = at + length
            if length < 256:
                columns[index], tag, length = _ahead_BI[length](data, at)
            else:
                columns[index] = data[at:end]
                tag, length = _unpack_BI(data, end)
            at = end + 5
        elif tag == 98:  # binary
            end = at + length
            if length < 256:
                value, tag, length = _ahead_BI[length](data, at)
            else:
                value = data[at:end]
                tag, length = _unpack_BI(data, end)
            columns[index] = m.Binary(value)
            at = end + 5
        elif tag == 110:  # null
            tag, length = _unpack_BI(data, at - 4)
            at += 1
        elif tag == 117:  # unchanged
            columns[index] = m.UNCHANGED
            tag, length = _unpack_BI(data, at - 4)
            at += 1
        else:
            raise Reject
    at -= 5
    message = _Insert()
    message.xid = xid
    message.relation_oid = relation_oid
    message.new = tuple(columns)
    message.__class__ = m.Insert
    return message, at


def _read_update(
    data: bytes, at: int, size: int, proto_version: int, in_stream: bool, parallel: bool
) -> tuple[m.Update, int]:
    if proto_version >= 2 and in_stream:
        xid, relation_oid = _unpack_xII(data, at)
        at += 9
    else:
        xid = None
        (relation_oid,) = _unpack_xI(data, at)
        at += 5
    old_kind: Any = None
    old: Any = None
    tag = data[at]
    if tag == 75:  # key
        at += 1
        old_kind = "K"
        old, at = _read_tuple_data(data, at, size, proto_version, in_stream, parallel)
    elif tag == 79:  # row
        at += 1
        old_kind = "O"
        old, at = _read_tuple_data(data, at, size, proto_version, in_stream, parallel)
    new_tag, column_count, tag, length = _unpack_BHBI(data, at)
    at += 8
    if new_tag != 78:
        raise Reject
    if column_count > size:  # each takes a byte at least
        raise Reject
    columns = NOTHING * column_count  # reading ahead: see PAD
    for index in range(column_count):
        if tag == 116:  # text
            end = at + length
            if length < 256:
                columns[index], tag, length = _ahead_BI[length](data, at)
            else:
                columns[index] = data[at:end]
                tag, length = _unpack_BI(data, end)
            at = end + 5
        elif tag == 98:  # binary
            end = at + length
            if length < 256:
                value, tag, length = _ahead_BI[length](data, at)
            else:
                value = data[at:end]
                tag, length = _unpack_BI(data, end)
            columns[index] = m.Binary(value)
            at = end + 5
        elif tag == 110:  # null
            tag, length = _unpack_BI(data, at - 4)
            at += 1
        elif tag == 117:  # unchanged
            columns[index] = m.UNCHANGED
            tag, length = _unpack_BI(data, at - 4)
            at += 1
        else:
            raise Reject
    at -= 5
    message = _Update()
    message.xid = xid
    message.relation_oid = relation_oid
    message.old_kind = old_kind
    message.old = old
    message.new = tuple(columns)
    message.__class__ = m.Update
    return message, at


def _read_delete(
    data: bytes, at: int, size: int, proto_version: int, in_stream: bool, parallel: bool
) -> tuple[m.Delete, int]:
    if proto_version >= 2 and in_stream:
        xid, relation_oid = _unpack_xII(data, at)
        at += 9
    else:
        xid = None
        (relation_oid,) = _unpack_xI(data, at)
        at += 5
    old_kind: Any = None
    old: Any = None
    tag = data[at]
    if tag == 75:  # key
        at += 1
        old_kind = "K"
        old, at = _read_tuple_data(data, at, size, proto_version, in_stream, parallel)
    elif tag == 79:  # row
        at += 1
        old_kind = "O"
        old, at = _read_tuple_data(data, at, size, proto_version, in_stream, parallel)
    else:
        raise Reject
    message = _Delete()
    message.xid = xid
    message.relation_oid = relation_oid
    message.old_kind = old_kind
    message.old = old
    message.__class__ = m.Delete
    return message, at


def _read_truncate(
    data: bytes, at: int, size: int, proto_version: int, in_stream: bool, parallel: bool
) -> tuple[m.Truncate, int]:
    if proto_version >= 2 and in_stream:
        xid, relation_count, options = _unpack_xIIB(data, at)
        at += 10
    else:
        xid = None
        relation_count, options = _unpack_xIB(data, at)
        at += 6
    if options & ~0x3:
        raise Reject
    relation_oids: Any = []
    for _ in range(relation_count):
        (relation_oid,) = _unpack_I(data, at)
        at += 4
        relation_oids.append(relation_oid)
    message = _Truncate()
    message.xid = xid
    message.options = options
    message.relation_oids = tuple(relation_oids)
    message.__class__ = m.Truncate
    return message, at


def _read_stream_start(
    data: bytes, at: int, size: int, proto_version: int, in_stream: bool, parallel: bool
) -> tuple[m.StreamStart, int]:
    if proto_version < 2:
        raise Reject
    xid, first_segment = _unpack_xIB(data, at)
    at += 6
    if first_segment not in (0, 1):
        raise Reject
    message = _StreamStart()
    message.xid = xid
    message.first_segment = first_segment
    message.__class__ = m.StreamStart
    return message, at


def _read_stream_stop(
    data: bytes, at: int, size: int, proto_version: int, in_stream: bool, parallel: bool
) -> tuple[m.StreamStop, int]:
    if proto_version < 2:
        raise Reject
    at += 1
    message = _StreamStop()
    message.__class__ = m.StreamStop
    return message, at


def _read_stream_commit(
    data: bytes, at: int, size: int, proto_version: int, in_stream: bool, parallel: bool
) -> tuple[m.StreamCommit, int]:
    if proto_version < 2:
        raise Reject
    xid, flags, commit_lsn, end_lsn, commit_time = _unpack_xIBQQq(data, at)
    at += 30
    if flags != 0:
        raise Reject
    commit_lsn = number(Lsn, commit_lsn)
    end_lsn = number(Lsn, end_lsn)
    commit_time = number(Timestamp, commit_time)
    message = _StreamCommit()
    message.xid = xid
    message.commit_lsn = commit_lsn
    message.end_lsn = end_lsn
    message.commit_time = commit_time
    message.__class__ = m.StreamCommit
    return message, at


def _read_stream_abort(
    data: bytes, at: int, size: int, proto_version: int, in_stream: bool, parallel: bool
) -> tuple[m.StreamAbort, int]:
    if proto_version >= 4 and parallel:
        xid, subxid, abort_lsn, abort_time = _unpack_xIIQq(data, at)
        at += 25
        abort_lsn = number(Lsn, abort_lsn)
        abort_time = number(Timestamp, abort_time)
    else:
        abort_lsn = abort_time = None
        xid, subxid = _unpack_xII(data, at)
        at += 9
    message = _StreamAbort()
    message.xid = xid
    message.subxid = subxid
    message.abort_lsn = abort_lsn
    message.abort_time = abort_time
    message.__class__ = m.StreamAbort
    return message, at


def _read_begin_prepare(
    data: bytes, at: int, size: int, proto_version: int, in_stream: bool, parallel: bool
) -> tuple[m.BeginPrepare, int]:
    prepare_lsn, end_lsn, prepare_time, xid = _unpack_xQQqI(data, at)
    at += 29
    prepare_lsn = number(Lsn, prepare_lsn)
    end_lsn = number(Lsn, end_lsn)
    prepare_time = number(Timestamp, prepare_time)
    end = data.index(b"\0", at)
    gid = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    message = _BeginPrepare()
    message.prepare_lsn = prepare_lsn
    message.end_lsn = end_lsn
    message.prepare_time = prepare_time
    message.xid = xid
    message.gid = gid
    message.__class__ = m.BeginPrepare
    return message, at


def _read_prepare(
    data: bytes, at: int, size: int, proto_version: int, in_stream: bool, parallel: bool
) -> tuple[m.Prepare, int]:
    flags, prepare_lsn, end_lsn, prepare_time, xid = _unpack_xBQQqI(data, at)
    at += 30
    if flags != 0:
        raise Reject
    prepare_lsn = number(Lsn, prepare_lsn)
    end_lsn = number(Lsn, end_lsn)
    prepare_time = number(Timestamp, prepare_time)
    end = data.index(b"\0", at)
    gid = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    message = _Prepare()
    message.prepare_lsn = prepare_lsn
    message.end_lsn = end_lsn
    message.prepare_time = prepare_time
    message.xid = xid
    message.gid = gid
    message.__class__ = m.Prepare
    return message, at


def _read_commit_prepared(
    data: bytes, at: int, size: int, proto_version: int, in_stream: bool, parallel: bool
) -> tuple[m.CommitPrepared, int]:
    flags, commit_lsn, end_lsn, commit_time, xid = _unpack_xBQQqI(data, at)
    at += 30
    if flags != 0:
        raise Reject
    commit_lsn = number(Lsn, commit_lsn)
    end_lsn = number(Lsn, end_lsn)
    commit_time = number(Timestamp, commit_time)
    end = data.index(b"\0", at)
    gid = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    message = _CommitPrepared()
    message.commit_lsn = commit_lsn
    message.end_lsn = end_lsn
    message.commit_time = commit_time
    message.xid = xid
    message.gid = gid
    message.__class__ = m.CommitPrepared
    return message, at


def _read_rollback_prepared(
    data: bytes, at: int, size: int, proto_version: int, in_stream: bool, parallel: bool
) -> tuple[m.RollbackPrepared, int]:
    flags, prepare_end_lsn, rollback_end_lsn, prepare_time, rollback_time, xid = _unpack_xBQQqqI(data, at)
    at += 38
    if flags != 0:
        raise Reject
    prepare_end_lsn = number(Lsn, prepare_end_lsn)
    rollback_end_lsn = number(Lsn, rollback_end_lsn)
    prepare_time = number(Timestamp, prepare_time)
    rollback_time = number(Timestamp, rollback_time)
    end = data.index(b"\0", at)
    gid = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    message = _RollbackPrepared()
    message.prepare_end_lsn = prepare_end_lsn
    message.rollback_end_lsn = rollback_end_lsn
    message.prepare_time = prepare_time
    message.rollback_time = rollback_time
    message.xid = xid
    message.gid = gid
    message.__class__ = m.RollbackPrepared
    return message, at


def _read_stream_prepare(
    data: bytes, at: int, size: int, proto_version: int, in_stream: bool, parallel: bool
) -> tuple[m.StreamPrepare, int]:
    flags, prepare_lsn, end_lsn, prepare_time, xid = _unpack_xBQQqI(data, at)
    at += 30
    if flags != 0:
        raise Reject
    prepare_lsn = number(Lsn, prepare_lsn)
    end_lsn = number(Lsn, end_lsn)
    prepare_time = number(Timestamp, prepare_time)
    end = data.index(b"\0", at)
    gid = data[at:end].decode("utf-8", "surrogateescape")
    at = end + 1
    message = _StreamPrepare()
    message.prepare_lsn = prepare_lsn
    message.end_lsn = end_lsn
    message.prepare_time = prepare_time
    message.xid = xid
    message.gid = gid
    message.__class__ = m.StreamPrepare
    return message, at


def _build_tuple_data(value: Any, pieces: list[bytes], proto_version: int, in_stream: bool, parallel: bool) -> None:
    if not isinstance(value, (tuple, list)):
        raise Reject
    pieces.append(_pack_H(len(value)))
    for columns_item in value:
        if type(columns_item) is bytes:
            if not isinstance(columns_item, bytes):
                raise Reject
            pieces.append(_pack_BI(116, len(columns_item)))
            pieces.append(columns_item)
        elif columns_item is None:
            pieces.append(_pack_B(110))
        elif columns_item is m.UNCHANGED:
            pieces.append(_pack_B(117))
        elif type(columns_item) is m.Binary:
            if not isinstance(columns_item, bytes):
                raise Reject
            pieces.append(_pack_BI(98, len(columns_item)))
            pieces.append(columns_item)
        else:
            raise Reject


def build_begin(message: Any, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Begin."""
    pieces: list[bytes] = []
    pieces.append(_pack_BQqI(66, message.final_lsn, message.commit_time, message.xid))
    return b"".join(pieces)


def build_message(message: Any, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Message."""
    pieces: list[bytes] = []
    pieces.append(_pack_B(77))
    if proto_version >= 2 and in_stream:
        pieces.append(_pack_I(message.xid))
    elif message.xid is not None:
        raise Reject
    if message.flags & ~0x1:
        raise Reject
    pieces.append(_pack_BQ(message.flags, message.lsn))
    pieces.append(string_bytes(message.prefix))
    if not isinstance(message.content, bytes):
        raise Reject
    pieces.append(_pack_I(len(message.content)))
    pieces.append(message.content)
    return b"".join(pieces)


def build_commit(message: Any, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Commit."""
    pieces: list[bytes] = []
    pieces.append(_pack_BBQQq(67, 0, message.commit_lsn, message.end_lsn, message.commit_time))
    return b"".join(pieces)


def build_origin(message: Any, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Origin."""
    pieces: list[bytes] = []
    pieces.append(_pack_BQ(79, message.origin_lsn))
    pieces.append(string_bytes(message.name))
    return b"".join(pieces)


def build_relation(message: Any, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Relation."""
    pieces: list[bytes] = []
    pieces.append(_pack_B(82))
    if proto_version >= 2 and in_stream:
        pieces.append(_pack_I(message.xid))
    elif message.xid is not None:
        raise Reject
    pieces.append(_pack_I(message.relation_oid))
    pieces.append(string_bytes(message.namespace))
    pieces.append(string_bytes(message.name))
    if message.replica_identity not in ("d", "n", "f", "i"):
        raise Reject
    if not isinstance(message.columns, (tuple, list)):
        raise Reject
    pieces.append(_pack_BH(ord(message.replica_identity), len(message.columns)))
    for columns_item in message.columns:
        if not isinstance(columns_item, _class_RelationColumn):
            raise Reject
        if columns_item.flags & ~0x1:
            raise Reject
        pieces.append(_pack_B(columns_item.flags))
        pieces.append(string_bytes(columns_item.name))
        pieces.append(_pack_Ii(columns_item.type_oid, columns_item.type_modifier))
    return b"".join(pieces)


def build_type(message: Any, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Type."""
    pieces: list[bytes] = []
    pieces.append(_pack_B(89))
    if proto_version >= 2 and in_stream:
        pieces.append(_pack_I(message.xid))
    elif message.xid is not None:
        raise Reject
    pieces.append(_pack_I(message.type_oid))
    pieces.append(string_bytes(message.namespace))
    pieces.append(string_bytes(message.name))
    return b"".join(pieces)


def build_insert(message: Any, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Insert."""
    pieces: list[bytes] = []
    pieces.append(_pack_B(73))
    if proto_version >= 2 and in_stream:
        pieces.append(_pack_I(message.xid))
    elif message.xid is not None:
        raise Reject
    pieces.append(_pack_IB(message.relation_oid, 78))
    _build_tuple_data(message.new, pieces, proto_version, in_stream, parallel)
    return b"".join(pieces)


def build_update(message: Any, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Update."""
    pieces: list[bytes] = []
    pieces.append(_pack_B(85))
    if proto_version >= 2 and in_stream:
        pieces.append(_pack_I(message.xid))
    elif message.xid is not None:
        raise Reject
    pieces.append(_pack_I(message.relation_oid))
    if message.old_kind == "K":
        pieces.append(_pack_B(75))
        _build_tuple_data(message.old, pieces, proto_version, in_stream, parallel)
    elif message.old_kind == "O":
        pieces.append(_pack_B(79))
        _build_tuple_data(message.old, pieces, proto_version, in_stream, parallel)
    elif message.old_kind is not None or message.old is not None:
        raise Reject
    pieces.append(_pack_B(78))
    _build_tuple_data(message.new, pieces, proto_version, in_stream, parallel)
    return b"".join(pieces)


def build_delete(message: Any, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Delete."""
    pieces: list[bytes] = []
    pieces.append(_pack_B(68))
    if proto_version >= 2 and in_stream:
        pieces.append(_pack_I(message.xid))
    elif message.xid is not None:
        raise Reject
    pieces.append(_pack_I(message.relation_oid))
    if message.old_kind == "K":
        pieces.append(_pack_B(75))
        _build_tuple_data(message.old, pieces, proto_version, in_stream, parallel)
    elif message.old_kind == "O":
        pieces.append(_pack_B(79))
        _build_tuple_data(message.old, pieces, proto_version, in_stream, parallel)
    else:
        raise Reject
    return b"".join(pieces)


def build_truncate(message: Any, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Truncate."""
    pieces: list[bytes] = []
    pieces.append(_pack_B(84))
    if proto_version >= 2 and in_stream:
        pieces.append(_pack_I(message.xid))
    elif message.xid is not None:
        raise Reject
    if message.options & ~0x3:
        raise Reject
    if not isinstance(message.relation_oids, (tuple, list)):
        raise Reject
    pieces.append(_pack_IB(len(message.relation_oids), message.options))
    for relation_oids_item in message.relation_oids:
        pieces.append(_pack_I(relation_oids_item))
    return b"".join(pieces)


def build_stream_start(message: Any, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build StreamStart."""
    if proto_version < 2:
        raise Reject
    pieces: list[bytes] = []
    if message.first_segment not in (0, 1):
        raise Reject
    pieces.append(_pack_BIB(83, message.xid, message.first_segment))
    return b"".join(pieces)


def build_stream_stop(message: Any, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build StreamStop."""
    if proto_version < 2:
        raise Reject
    pieces: list[bytes] = []
    pieces.append(_pack_B(69))
    return b"".join(pieces)


def build_stream_commit(message: Any, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build StreamCommit."""
    if proto_version < 2:
        raise Reject
    pieces: list[bytes] = []
    pieces.append(_pack_BIBQQq(99, message.xid, 0, message.commit_lsn, message.end_lsn, message.commit_time))
    return b"".join(pieces)


def build_stream_abort(message: Any, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build StreamAbort."""
    pieces: list[bytes] = []
    pieces.append(_pack_BII(65, message.xid, message.subxid))
    if proto_version >= 4 and parallel:
        pieces.append(_pack_Qq(message.abort_lsn, message.abort_time))
    elif message.abort_lsn is not None or message.abort_time is not None:
        raise Reject
    return b"".join(pieces)


def build_begin_prepare(message: Any, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build BeginPrepare."""
    pieces: list[bytes] = []
    pieces.append(_pack_BQQqI(98, message.prepare_lsn, message.end_lsn, message.prepare_time, message.xid))
    pieces.append(string_bytes(message.gid))
    return b"".join(pieces)


def build_prepare(message: Any, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build Prepare."""
    pieces: list[bytes] = []
    pieces.append(_pack_BBQQqI(80, 0, message.prepare_lsn, message.end_lsn, message.prepare_time, message.xid))
    pieces.append(string_bytes(message.gid))
    return b"".join(pieces)


def build_commit_prepared(message: Any, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build CommitPrepared."""
    pieces: list[bytes] = []
    pieces.append(_pack_BBQQqI(75, 0, message.commit_lsn, message.end_lsn, message.commit_time, message.xid))
    pieces.append(string_bytes(message.gid))
    return b"".join(pieces)


def build_rollback_prepared(message: Any, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
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


def build_stream_prepare(message: Any, proto_version: int, in_stream: bool, parallel: bool) -> bytes:
    """Build StreamPrepare."""
    pieces: list[bytes] = []
    pieces.append(_pack_BBQQqI(112, 0, message.prepare_lsn, message.end_lsn, message.prepare_time, message.xid))
    pieces.append(string_bytes(message.gid))
    return b"".join(pieces)


READERS: Final[Mapping[int, Callable[..., tuple[Any, int]]]] = {
    66: _read_begin,
    77: _read_message,
    67: _read_commit,
    79: _read_origin,
    82: _read_relation,
    89: _read_type,
    73: _read_insert,
    85: _read_update,
    68: _read_delete,
    84: _read_truncate,
    83: _read_stream_start,
    69: _read_stream_stop,
    99: _read_stream_commit,
    65: _read_stream_abort,
    98: _read_begin_prepare,
    80: _read_prepare,
    75: _read_commit_prepared,
    114: _read_rollback_prepared,
    112: _read_stream_prepare,
}
"""What reads a message by its tag: ``(data, at, size, *parameters) -> message, end``.

It may read as far behind ``size`` as PAD is long; an ``end`` beyond ``size`` means that not all of it is there.
"""

BUILDERS: Final[Mapping[type, Callable[..., bytes]]] = {
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
"""What builds an object of each class: ``(message, *parameters) -> bytes``."""
