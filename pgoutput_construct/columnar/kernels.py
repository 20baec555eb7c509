# Generated from spec/pgoutput.yaml by: python -m tools.generate. Do not edit.

"""Logical replication messages: kernels that walk a batch of payloads once.

Offsets are bytes from the start of data; a walk returns the offset after what it walks, -1 if that is
malformed. No length or count is used before it was compared with what is left. Names that begin with an
underscore are fields; a parameter that a state sets has a value for each row (``_by_row``).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pgoutput_construct.compiled.jit import find_nul, kernel, prefetch, u8, u16, u32, u64
from pgoutput_construct.pgtypes.kernels.row_plan import put_nothing, read_value

__all__ = ["MESSAGE_SCHEMA", "READERS", "ROW_FIELDS", "ROW_PARAMETERS", "ROW_TAGS", "TUPLES", "index"]

TAG_Begin = 0x42  # B
TAG_Message = 0x4D  # M
TAG_Commit = 0x43  # C
TAG_Origin = 0x4F  # O
TAG_Relation = 0x52  # R
TAG_Type = 0x59  # Y
TAG_Insert = 0x49  # I
TAG_Update = 0x55  # U
TAG_Delete = 0x44  # D
TAG_Truncate = 0x54  # T
TAG_StreamStart = 0x53  # S
TAG_StreamStop = 0x45  # E
TAG_StreamCommit = 0x63  # c
TAG_StreamAbort = 0x41  # A
TAG_BeginPrepare = 0x62  # b
TAG_Prepare = 0x50  # P
TAG_CommitPrepared = 0x4B  # K
TAG_RollbackPrepared = 0x72  # r
TAG_StreamPrepare = 0x70  # p
LETTER_K = 0x4B
LETTER_O = 0x4F
LETTER_b = 0x62
LETTER_n = 0x6E
LETTER_t = 0x74
LETTER_u = 0x75

ROW_FIELDS: Final[Mapping[str, type]] = {
    "xid": np.uint32,
    "relation_oid": np.uint32,
    "old_kind": np.uint8,
    "new": np.int64,
    "old": np.int64,
}
"""The fields that the index stores of messages with tuples: numbers, and the offsets of the tuples (-1 for none)."""

ROW_PARAMETERS: Final[tuple[str, ...]] = ("in_stream",)
"""The parameters that states set: they have a value for each row."""

ROW_TAGS: Final[tuple[int, ...]] = (
    TAG_Insert,
    TAG_Update,
    TAG_Delete,
)
"""The tags of changes with tuples."""

MESSAGE_SCHEMA: Final = pa.schema(
    [
        ("kind", pa.string()),
        ("final_lsn", pa.uint64()),
        ("commit_time", pa.int64()),
        ("xid", pa.uint32()),
        ("flags", pa.uint8()),
        ("lsn", pa.uint64()),
        ("prefix", pa.string()),
        ("content", pa.binary()),
        ("commit_lsn", pa.uint64()),
        ("end_lsn", pa.uint64()),
        ("origin_lsn", pa.uint64()),
        ("name", pa.string()),
        ("relation_oid", pa.uint32()),
        ("namespace", pa.string()),
        ("replica_identity", pa.string()),
        ("type_oid", pa.uint32()),
        ("options", pa.uint8()),
        ("first_segment", pa.uint8()),
        ("subxid", pa.uint32()),
        ("abort_lsn", pa.uint64()),
        ("abort_time", pa.int64()),
        ("prepare_lsn", pa.uint64()),
        ("prepare_time", pa.int64()),
        ("gid", pa.string()),
        ("prepare_end_lsn", pa.uint64()),
        ("rollback_end_lsn", pa.uint64()),
        ("rollback_time", pa.int64()),
    ]
)
"""The columns of a messages batch: the kind, and the header fields of all messages, null if a message has none."""


@kernel
def walk_tuple_data(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if end - at < 2:
        return -1
    _column_count = u16(data, at)
    at += 2
    for _ in range(_column_count):
        if at >= end:
            return -1
        kind = u8(data, at)
        if kind == LETTER_n:
            at += 1
        elif kind == LETTER_u:
            at += 1
        elif kind == LETTER_t:
            at += 1
            if end - at < 4:
                return -1
            ___length = u32(data, at)
            at += 4
            if ___length > end - at:
                return -1
            at += ___length
        elif kind == LETTER_b:
            at += 1
            if end - at < 4:
                return -1
            ___length = u32(data, at)
            at += 4
            if ___length > end - at:
                return -1
            at += ___length
        else:
            return -1
    return at


@kernel
def walk_begin(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if end - at < 21:
        return -1
    at += 21
    return at


@kernel
def walk_message(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if proto_version >= 2 and in_stream:
        if end - at < 14:
            return -1
        if u8(data, at + 5) & 254:  # flags
            return -1
        at += 14
    else:
        if end - at < 10:
            return -1
        if u8(data, at + 1) & 254:  # flags
            return -1
        at += 10
    at = find_nul(data, at, end)
    if at < 0:
        return -1
    at += 1
    if end - at < 4:
        return -1
    _content_length = u32(data, at)
    at += 4
    if _content_length > end - at:
        return -1
    at += _content_length
    return at


@kernel
def walk_commit(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if end - at < 26:
        return -1
    if u8(data, at + 1) != 0:  # flags
        return -1
    at += 26
    return at


@kernel
def walk_origin(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if end - at < 9:
        return -1
    at += 9
    at = find_nul(data, at, end)
    if at < 0:
        return -1
    at += 1
    return at


@kernel
def walk_relation_column(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if end - at < 1:
        return -1
    if u8(data, at) & 254:  # flags
        return -1
    at += 1
    at = find_nul(data, at, end)
    if at < 0:
        return -1
    at += 1
    if end - at < 8:
        return -1
    at += 8
    return at


@kernel
def walk_relation(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if proto_version >= 2 and in_stream:
        if end - at < 9:
            return -1
        at += 9
    else:
        if end - at < 5:
            return -1
        at += 5
    at = find_nul(data, at, end)
    if at < 0:
        return -1
    at += 1
    at = find_nul(data, at, end)
    if at < 0:
        return -1
    at += 1
    if end - at < 3:
        return -1
    if u8(data, at) not in (100, 110, 102, 105):  # replica_identity
        return -1
    _column_count = u16(data, at + 1)
    at += 3
    for _ in range(_column_count):
        at = walk_relation_column(data, at, end, proto_version, in_stream, parallel)
        if at < 0:
            return -1
    return at


@kernel
def walk_type(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if proto_version >= 2 and in_stream:
        if end - at < 9:
            return -1
        at += 9
    else:
        if end - at < 5:
            return -1
        at += 5
    at = find_nul(data, at, end)
    if at < 0:
        return -1
    at += 1
    at = find_nul(data, at, end)
    if at < 0:
        return -1
    at += 1
    return at


@kernel
def walk_insert(
    data: Any,
    at: int,
    end: int,
    row: int,
    proto_version: int,
    in_stream: bool,
    parallel: bool,
    _xid: Any,
    _relation_oid: Any,
    _old_kind: Any,
    _new: Any,
    _old: Any,
) -> int:
    if proto_version >= 2 and in_stream:
        if end - at < 10:
            return -1
        _xid[row] = u32(data, at + 1)
        _relation_oid[row] = u32(data, at + 5)
        if u8(data, at + 9) != 78:  # new_tag
            return -1
        at += 10
    else:
        if end - at < 6:
            return -1
        _relation_oid[row] = u32(data, at + 1)
        if u8(data, at + 5) != 78:  # new_tag
            return -1
        at += 6
    _new[row] = at
    at = walk_tuple_data(data, at, end, proto_version, in_stream, parallel)
    if at < 0:
        return -1
    return at


@kernel
def walk_update(
    data: Any,
    at: int,
    end: int,
    row: int,
    proto_version: int,
    in_stream: bool,
    parallel: bool,
    _xid: Any,
    _relation_oid: Any,
    _old_kind: Any,
    _new: Any,
    _old: Any,
) -> int:
    if proto_version >= 2 and in_stream:
        if end - at < 9:
            return -1
        _xid[row] = u32(data, at + 1)
        _relation_oid[row] = u32(data, at + 5)
        at += 9
    else:
        if end - at < 5:
            return -1
        _relation_oid[row] = u32(data, at + 1)
        at += 5
    kind = u8(data, at) if at < end else 0
    if kind == LETTER_K:
        at += 1
        _old_kind[row] = kind
        _old[row] = at
        at = walk_tuple_data(data, at, end, proto_version, in_stream, parallel)
        if at < 0:
            return -1
    elif kind == LETTER_O:
        at += 1
        _old_kind[row] = kind
        _old[row] = at
        at = walk_tuple_data(data, at, end, proto_version, in_stream, parallel)
        if at < 0:
            return -1
    if end - at < 1:
        return -1
    if u8(data, at) != 78:  # new_tag
        return -1
    at += 1
    _new[row] = at
    at = walk_tuple_data(data, at, end, proto_version, in_stream, parallel)
    if at < 0:
        return -1
    return at


@kernel
def walk_delete(
    data: Any,
    at: int,
    end: int,
    row: int,
    proto_version: int,
    in_stream: bool,
    parallel: bool,
    _xid: Any,
    _relation_oid: Any,
    _old_kind: Any,
    _new: Any,
    _old: Any,
) -> int:
    if proto_version >= 2 and in_stream:
        if end - at < 9:
            return -1
        _xid[row] = u32(data, at + 1)
        _relation_oid[row] = u32(data, at + 5)
        at += 9
    else:
        if end - at < 5:
            return -1
        _relation_oid[row] = u32(data, at + 1)
        at += 5
    if at >= end:
        return -1
    kind = u8(data, at)
    if kind == LETTER_K:
        at += 1
        _old_kind[row] = kind
        _old[row] = at
        at = walk_tuple_data(data, at, end, proto_version, in_stream, parallel)
        if at < 0:
            return -1
    elif kind == LETTER_O:
        at += 1
        _old_kind[row] = kind
        _old[row] = at
        at = walk_tuple_data(data, at, end, proto_version, in_stream, parallel)
        if at < 0:
            return -1
    else:
        return -1
    return at


@kernel
def walk_truncate(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if proto_version >= 2 and in_stream:
        if end - at < 10:
            return -1
        _relation_count = u32(data, at + 5)
        if u8(data, at + 9) & 252:  # options
            return -1
        at += 10
    else:
        if end - at < 6:
            return -1
        _relation_count = u32(data, at + 1)
        if u8(data, at + 5) & 252:  # options
            return -1
        at += 6
    for _ in range(_relation_count):
        if end - at < 4:
            return -1
        at += 4
    return at


@kernel
def walk_stream_start(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if proto_version < 2:
        return -1
    if end - at < 6:
        return -1
    if u8(data, at + 5) not in (0, 1):  # first_segment
        return -1
    at += 6
    return at


@kernel
def walk_stream_stop(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if proto_version < 2:
        return -1
    if end - at < 1:
        return -1
    at += 1
    return at


@kernel
def walk_stream_commit(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if proto_version < 2:
        return -1
    if end - at < 30:
        return -1
    if u8(data, at + 5) != 0:  # flags
        return -1
    at += 30
    return at


@kernel
def walk_stream_abort(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if proto_version >= 4 and parallel:
        if end - at < 25:
            return -1
        at += 25
    else:
        if end - at < 9:
            return -1
        at += 9
    return at


@kernel
def walk_begin_prepare(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if end - at < 29:
        return -1
    at += 29
    at = find_nul(data, at, end)
    if at < 0:
        return -1
    at += 1
    return at


@kernel
def walk_prepare(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if end - at < 30:
        return -1
    if u8(data, at + 1) != 0:  # flags
        return -1
    at += 30
    at = find_nul(data, at, end)
    if at < 0:
        return -1
    at += 1
    return at


@kernel
def walk_commit_prepared(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if end - at < 30:
        return -1
    if u8(data, at + 1) != 0:  # flags
        return -1
    at += 30
    at = find_nul(data, at, end)
    if at < 0:
        return -1
    at += 1
    return at


@kernel
def walk_rollback_prepared(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if end - at < 38:
        return -1
    if u8(data, at + 1) != 0:  # flags
        return -1
    at += 38
    at = find_nul(data, at, end)
    if at < 0:
        return -1
    at += 1
    return at


@kernel
def walk_stream_prepare(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if end - at < 30:
        return -1
    if u8(data, at + 1) != 0:  # flags
        return -1
    at += 30
    at = find_nul(data, at, end)
    if at < 0:
        return -1
    at += 1
    return at


@kernel
def index(
    data: Any,
    starts: Any,
    ends: Any,
    in_stream_by_row: Any,
    proto_version: int,
    parallel: bool,
    tags: Any,
    valid: Any,
    _xid: Any,
    _relation_oid: Any,
    _old_kind: Any,
    _new: Any,
    _old: Any,
) -> None:
    """Index a batch: the tag of each payload, whether it is a message, and what is kept of rows."""
    for row in range(len(starts)):
        at, end = starts[row], ends[row]
        prefetch(data, at)
        in_stream = in_stream_by_row[row]
        _xid[row] = 0
        _relation_oid[row] = 0
        _old_kind[row] = 0
        _new[row] = -1
        _old[row] = -1
        if at >= end:
            tags[row] = valid[row] = 0
            continue
        tag = u8(data, at)
        tags[row] = tag
        if tag == TAG_Begin:
            at = walk_begin(data, at, end, proto_version, in_stream, parallel)
        elif tag == TAG_Message:
            at = walk_message(data, at, end, proto_version, in_stream, parallel)
        elif tag == TAG_Commit:
            at = walk_commit(data, at, end, proto_version, in_stream, parallel)
        elif tag == TAG_Origin:
            at = walk_origin(data, at, end, proto_version, in_stream, parallel)
        elif tag == TAG_Relation:
            at = walk_relation(data, at, end, proto_version, in_stream, parallel)
        elif tag == TAG_Type:
            at = walk_type(data, at, end, proto_version, in_stream, parallel)
        elif tag == TAG_Insert:
            at = walk_insert(
                data, at, end, row, proto_version, in_stream, parallel, _xid, _relation_oid, _old_kind, _new, _old
            )
        elif tag == TAG_Update:
            at = walk_update(
                data, at, end, row, proto_version, in_stream, parallel, _xid, _relation_oid, _old_kind, _new, _old
            )
        elif tag == TAG_Delete:
            at = walk_delete(
                data, at, end, row, proto_version, in_stream, parallel, _xid, _relation_oid, _old_kind, _new, _old
            )
        elif tag == TAG_Truncate:
            at = walk_truncate(data, at, end, proto_version, in_stream, parallel)
        elif tag == TAG_StreamStart:
            at = walk_stream_start(data, at, end, proto_version, in_stream, parallel)
        elif tag == TAG_StreamStop:
            at = walk_stream_stop(data, at, end, proto_version, in_stream, parallel)
        elif tag == TAG_StreamCommit:
            at = walk_stream_commit(data, at, end, proto_version, in_stream, parallel)
        elif tag == TAG_StreamAbort:
            at = walk_stream_abort(data, at, end, proto_version, in_stream, parallel)
        elif tag == TAG_BeginPrepare:
            at = walk_begin_prepare(data, at, end, proto_version, in_stream, parallel)
        elif tag == TAG_Prepare:
            at = walk_prepare(data, at, end, proto_version, in_stream, parallel)
        elif tag == TAG_CommitPrepared:
            at = walk_commit_prepared(data, at, end, proto_version, in_stream, parallel)
        elif tag == TAG_RollbackPrepared:
            at = walk_rollback_prepared(data, at, end, proto_version, in_stream, parallel)
        elif tag == TAG_StreamPrepare:
            at = walk_stream_prepare(data, at, end, proto_version, in_stream, parallel)
        else:
            at = -1
        valid[row] = at == end


@kernel
def find_tuple_data(
    data: Any,
    rows: Any,
    places: Any,
    in_stream_by_row: Any,
    proto_version: int,
    parallel: bool,
    columns: int,
    plan: Any,
    out: Any,
    counts: Any,
    tags: Any,
    starts: Any,
    lengths: Any,
    seen: Any,
    sizes: Any,
) -> bool:
    """Find the values of rows (not those at -1), and count them.

    ``rows`` are the indexes of the payloads: the parameters by row are those of all payloads of the batch.
    Rows with another number of values than there are columns are counted only, and make the answer False.
    The values that ``plan`` knows are written to ``out``. Of the others it is noted where they are, and ``seen``
    counts each column's tags, ``sizes`` their bytes.
    """
    fits = True
    for row in range(len(places)):
        at = places[row]
        if at < 0:
            for column in range(columns):
                put_nothing(plan, column, row, out)
            continue
        prefetch(data, at)
        _column_count = u16(data, at)
        at += 2
        counts[row] = _column_count
        if _column_count != columns:
            fits = False
            for column in range(columns):
                put_nothing(plan, column, row, out)
            continue
        for column in range(columns):
            kind = u8(data, at)
            at += 1
            start, length = at, 0
            if kind == LETTER_t or kind == LETTER_b:
                length = u32(data, at)
                start = at + 4
                at = start + length
            if not read_value(kind, data, start, length, plan, column, row, out):
                tags[column, row], starts[column, row], lengths[column, row] = kind, start, length
                seen[column, kind] += 1
                sizes[column] += length
                put_nothing(plan, column, row, out)
    return fits


@kernel
def read_begin(
    data: Any,
    starts: Any,
    ends: Any,
    in_stream_by_row: Any,
    proto_version: int,
    parallel: bool,
    _final_lsn: Any,
    _commit_time: Any,
    _xid: Any,
) -> None:
    for row in range(len(starts)):
        at = starts[row]
        _final_lsn[row] = u64(data, at + 1)
        _commit_time[row] = u64(data, at + 9)
        _xid[row] = u32(data, at + 17)
        at += 21


@kernel
def read_message(
    data: Any,
    starts: Any,
    ends: Any,
    in_stream_by_row: Any,
    proto_version: int,
    parallel: bool,
    _xid: Any,
    _xid_SENT: Any,
    _flags: Any,
    _lsn: Any,
    _prefix_START: Any,
    _prefix_SIZE: Any,
    _content_START: Any,
    _content_SIZE: Any,
) -> None:
    for row in range(len(starts)):
        at, end = starts[row], ends[row]
        in_stream = in_stream_by_row[row]
        if proto_version >= 2 and in_stream:
            _xid[row] = u32(data, at + 1)
            _xid_SENT[row] = True
            _flags[row] = u8(data, at + 5)
            _lsn[row] = u64(data, at + 6)
            at += 14
        else:
            _flags[row] = u8(data, at + 1)
            _lsn[row] = u64(data, at + 2)
            at += 10
        _prefix_START[row] = at
        at = find_nul(data, at, end) + 1
        _prefix_SIZE[row] = at - _prefix_START[row] - 1
        _content_length = u32(data, at)
        at += 4
        _content_START[row] = at
        at += _content_length
        _content_SIZE[row] = at - _content_START[row]


@kernel
def read_commit(
    data: Any,
    starts: Any,
    ends: Any,
    in_stream_by_row: Any,
    proto_version: int,
    parallel: bool,
    _commit_lsn: Any,
    _end_lsn: Any,
    _commit_time: Any,
) -> None:
    for row in range(len(starts)):
        at = starts[row]
        _commit_lsn[row] = u64(data, at + 2)
        _end_lsn[row] = u64(data, at + 10)
        _commit_time[row] = u64(data, at + 18)
        at += 26


@kernel
def read_origin(
    data: Any,
    starts: Any,
    ends: Any,
    in_stream_by_row: Any,
    proto_version: int,
    parallel: bool,
    _origin_lsn: Any,
    _name_START: Any,
    _name_SIZE: Any,
) -> None:
    for row in range(len(starts)):
        at, end = starts[row], ends[row]
        _origin_lsn[row] = u64(data, at + 1)
        at += 9
        _name_START[row] = at
        at = find_nul(data, at, end) + 1
        _name_SIZE[row] = at - _name_START[row] - 1


@kernel
def read_relation(
    data: Any,
    starts: Any,
    ends: Any,
    in_stream_by_row: Any,
    proto_version: int,
    parallel: bool,
    _xid: Any,
    _xid_SENT: Any,
    _relation_oid: Any,
    _namespace_START: Any,
    _namespace_SIZE: Any,
    _name_START: Any,
    _name_SIZE: Any,
    _replica_identity: Any,
) -> None:
    for row in range(len(starts)):
        at, end = starts[row], ends[row]
        in_stream = in_stream_by_row[row]
        if proto_version >= 2 and in_stream:
            _xid[row] = u32(data, at + 1)
            _xid_SENT[row] = True
            _relation_oid[row] = u32(data, at + 5)
            at += 9
        else:
            _relation_oid[row] = u32(data, at + 1)
            at += 5
        _namespace_START[row] = at
        at = find_nul(data, at, end) + 1
        _namespace_SIZE[row] = at - _namespace_START[row] - 1
        _name_START[row] = at
        at = find_nul(data, at, end) + 1
        _name_SIZE[row] = at - _name_START[row] - 1
        _replica_identity[row] = u8(data, at)
        at += 1


@kernel
def read_type(
    data: Any,
    starts: Any,
    ends: Any,
    in_stream_by_row: Any,
    proto_version: int,
    parallel: bool,
    _xid: Any,
    _xid_SENT: Any,
    _type_oid: Any,
    _namespace_START: Any,
    _namespace_SIZE: Any,
    _name_START: Any,
    _name_SIZE: Any,
) -> None:
    for row in range(len(starts)):
        at, end = starts[row], ends[row]
        in_stream = in_stream_by_row[row]
        if proto_version >= 2 and in_stream:
            _xid[row] = u32(data, at + 1)
            _xid_SENT[row] = True
            _type_oid[row] = u32(data, at + 5)
            at += 9
        else:
            _type_oid[row] = u32(data, at + 1)
            at += 5
        _namespace_START[row] = at
        at = find_nul(data, at, end) + 1
        _namespace_SIZE[row] = at - _namespace_START[row] - 1
        _name_START[row] = at
        at = find_nul(data, at, end) + 1
        _name_SIZE[row] = at - _name_START[row] - 1


@kernel
def read_insert(
    data: Any,
    starts: Any,
    ends: Any,
    in_stream_by_row: Any,
    proto_version: int,
    parallel: bool,
    _xid: Any,
    _xid_SENT: Any,
    _relation_oid: Any,
) -> None:
    for row in range(len(starts)):
        at = starts[row]
        in_stream = in_stream_by_row[row]
        if proto_version >= 2 and in_stream:
            _xid[row] = u32(data, at + 1)
            _xid_SENT[row] = True
            _relation_oid[row] = u32(data, at + 5)
            at += 9
        else:
            _relation_oid[row] = u32(data, at + 1)
            at += 5


@kernel
def read_update(
    data: Any,
    starts: Any,
    ends: Any,
    in_stream_by_row: Any,
    proto_version: int,
    parallel: bool,
    _xid: Any,
    _xid_SENT: Any,
    _relation_oid: Any,
) -> None:
    for row in range(len(starts)):
        at = starts[row]
        in_stream = in_stream_by_row[row]
        if proto_version >= 2 and in_stream:
            _xid[row] = u32(data, at + 1)
            _xid_SENT[row] = True
            _relation_oid[row] = u32(data, at + 5)
            at += 9
        else:
            _relation_oid[row] = u32(data, at + 1)
            at += 5


@kernel
def read_delete(
    data: Any,
    starts: Any,
    ends: Any,
    in_stream_by_row: Any,
    proto_version: int,
    parallel: bool,
    _xid: Any,
    _xid_SENT: Any,
    _relation_oid: Any,
) -> None:
    for row in range(len(starts)):
        at = starts[row]
        in_stream = in_stream_by_row[row]
        if proto_version >= 2 and in_stream:
            _xid[row] = u32(data, at + 1)
            _xid_SENT[row] = True
            _relation_oid[row] = u32(data, at + 5)
            at += 9
        else:
            _relation_oid[row] = u32(data, at + 1)
            at += 5


@kernel
def read_truncate(
    data: Any,
    starts: Any,
    ends: Any,
    in_stream_by_row: Any,
    proto_version: int,
    parallel: bool,
    _xid: Any,
    _xid_SENT: Any,
    _options: Any,
) -> None:
    for row in range(len(starts)):
        at = starts[row]
        in_stream = in_stream_by_row[row]
        if proto_version >= 2 and in_stream:
            _xid[row] = u32(data, at + 1)
            _xid_SENT[row] = True
            _relation_count = u32(data, at + 5)
            _options[row] = u8(data, at + 9)
            at += 10
        else:
            _relation_count = u32(data, at + 1)
            _options[row] = u8(data, at + 5)
            at += 6


@kernel
def read_stream_start(
    data: Any,
    starts: Any,
    ends: Any,
    in_stream_by_row: Any,
    proto_version: int,
    parallel: bool,
    _xid: Any,
    _first_segment: Any,
) -> None:
    for row in range(len(starts)):
        at = starts[row]
        _xid[row] = u32(data, at + 1)
        _first_segment[row] = u8(data, at + 5)
        at += 6


@kernel
def read_stream_commit(
    data: Any,
    starts: Any,
    ends: Any,
    in_stream_by_row: Any,
    proto_version: int,
    parallel: bool,
    _xid: Any,
    _commit_lsn: Any,
    _end_lsn: Any,
    _commit_time: Any,
) -> None:
    for row in range(len(starts)):
        at = starts[row]
        _xid[row] = u32(data, at + 1)
        _commit_lsn[row] = u64(data, at + 6)
        _end_lsn[row] = u64(data, at + 14)
        _commit_time[row] = u64(data, at + 22)
        at += 30


@kernel
def read_stream_abort(
    data: Any,
    starts: Any,
    ends: Any,
    in_stream_by_row: Any,
    proto_version: int,
    parallel: bool,
    _xid: Any,
    _subxid: Any,
    _abort_lsn: Any,
    _abort_lsn_SENT: Any,
    _abort_time: Any,
    _abort_time_SENT: Any,
) -> None:
    for row in range(len(starts)):
        at = starts[row]
        if proto_version >= 4 and parallel:
            _xid[row] = u32(data, at + 1)
            _subxid[row] = u32(data, at + 5)
            _abort_lsn[row] = u64(data, at + 9)
            _abort_lsn_SENT[row] = True
            _abort_time[row] = u64(data, at + 17)
            _abort_time_SENT[row] = True
            at += 25
        else:
            _xid[row] = u32(data, at + 1)
            _subxid[row] = u32(data, at + 5)
            at += 9


@kernel
def read_begin_prepare(
    data: Any,
    starts: Any,
    ends: Any,
    in_stream_by_row: Any,
    proto_version: int,
    parallel: bool,
    _prepare_lsn: Any,
    _end_lsn: Any,
    _prepare_time: Any,
    _xid: Any,
    _gid_START: Any,
    _gid_SIZE: Any,
) -> None:
    for row in range(len(starts)):
        at, end = starts[row], ends[row]
        _prepare_lsn[row] = u64(data, at + 1)
        _end_lsn[row] = u64(data, at + 9)
        _prepare_time[row] = u64(data, at + 17)
        _xid[row] = u32(data, at + 25)
        at += 29
        _gid_START[row] = at
        at = find_nul(data, at, end) + 1
        _gid_SIZE[row] = at - _gid_START[row] - 1


@kernel
def read_prepare(
    data: Any,
    starts: Any,
    ends: Any,
    in_stream_by_row: Any,
    proto_version: int,
    parallel: bool,
    _prepare_lsn: Any,
    _end_lsn: Any,
    _prepare_time: Any,
    _xid: Any,
    _gid_START: Any,
    _gid_SIZE: Any,
) -> None:
    for row in range(len(starts)):
        at, end = starts[row], ends[row]
        _prepare_lsn[row] = u64(data, at + 2)
        _end_lsn[row] = u64(data, at + 10)
        _prepare_time[row] = u64(data, at + 18)
        _xid[row] = u32(data, at + 26)
        at += 30
        _gid_START[row] = at
        at = find_nul(data, at, end) + 1
        _gid_SIZE[row] = at - _gid_START[row] - 1


@kernel
def read_commit_prepared(
    data: Any,
    starts: Any,
    ends: Any,
    in_stream_by_row: Any,
    proto_version: int,
    parallel: bool,
    _commit_lsn: Any,
    _end_lsn: Any,
    _commit_time: Any,
    _xid: Any,
    _gid_START: Any,
    _gid_SIZE: Any,
) -> None:
    for row in range(len(starts)):
        at, end = starts[row], ends[row]
        _commit_lsn[row] = u64(data, at + 2)
        _end_lsn[row] = u64(data, at + 10)
        _commit_time[row] = u64(data, at + 18)
        _xid[row] = u32(data, at + 26)
        at += 30
        _gid_START[row] = at
        at = find_nul(data, at, end) + 1
        _gid_SIZE[row] = at - _gid_START[row] - 1


@kernel
def read_rollback_prepared(
    data: Any,
    starts: Any,
    ends: Any,
    in_stream_by_row: Any,
    proto_version: int,
    parallel: bool,
    _prepare_end_lsn: Any,
    _rollback_end_lsn: Any,
    _prepare_time: Any,
    _rollback_time: Any,
    _xid: Any,
    _gid_START: Any,
    _gid_SIZE: Any,
) -> None:
    for row in range(len(starts)):
        at, end = starts[row], ends[row]
        _prepare_end_lsn[row] = u64(data, at + 2)
        _rollback_end_lsn[row] = u64(data, at + 10)
        _prepare_time[row] = u64(data, at + 18)
        _rollback_time[row] = u64(data, at + 26)
        _xid[row] = u32(data, at + 34)
        at += 38
        _gid_START[row] = at
        at = find_nul(data, at, end) + 1
        _gid_SIZE[row] = at - _gid_START[row] - 1


@kernel
def read_stream_prepare(
    data: Any,
    starts: Any,
    ends: Any,
    in_stream_by_row: Any,
    proto_version: int,
    parallel: bool,
    _prepare_lsn: Any,
    _end_lsn: Any,
    _prepare_time: Any,
    _xid: Any,
    _gid_START: Any,
    _gid_SIZE: Any,
) -> None:
    for row in range(len(starts)):
        at, end = starts[row], ends[row]
        _prepare_lsn[row] = u64(data, at + 2)
        _end_lsn[row] = u64(data, at + 10)
        _prepare_time[row] = u64(data, at + 18)
        _xid[row] = u32(data, at + 26)
        at += 30
        _gid_START[row] = at
        at = find_nul(data, at, end) + 1
        _gid_SIZE[row] = at - _gid_START[row] - 1


READERS: Final[Mapping[int, tuple[str, Callable[..., None] | None, tuple[tuple[str, str], ...]]]] = {
    TAG_Begin: (
        "Begin",
        read_begin,
        (
            ("final_lsn", "number"),
            ("commit_time", "number"),
            ("xid", "number"),
        ),
    ),
    TAG_Message: (
        "Message",
        read_message,
        (
            ("xid", "number?"),
            ("flags", "number"),
            ("lsn", "number"),
            ("prefix", "bytes"),
            ("content", "bytes"),
        ),
    ),
    TAG_Commit: (
        "Commit",
        read_commit,
        (
            ("commit_lsn", "number"),
            ("end_lsn", "number"),
            ("commit_time", "number"),
        ),
    ),
    TAG_Origin: (
        "Origin",
        read_origin,
        (
            ("origin_lsn", "number"),
            ("name", "bytes"),
        ),
    ),
    TAG_Relation: (
        "Relation",
        read_relation,
        (
            ("xid", "number?"),
            ("relation_oid", "number"),
            ("namespace", "bytes"),
            ("name", "bytes"),
            ("replica_identity", "letter"),
        ),
    ),
    TAG_Type: (
        "Type",
        read_type,
        (
            ("xid", "number?"),
            ("type_oid", "number"),
            ("namespace", "bytes"),
            ("name", "bytes"),
        ),
    ),
    TAG_Insert: (
        "Insert",
        read_insert,
        (
            ("xid", "number?"),
            ("relation_oid", "number"),
        ),
    ),
    TAG_Update: (
        "Update",
        read_update,
        (
            ("xid", "number?"),
            ("relation_oid", "number"),
        ),
    ),
    TAG_Delete: (
        "Delete",
        read_delete,
        (
            ("xid", "number?"),
            ("relation_oid", "number"),
        ),
    ),
    TAG_Truncate: (
        "Truncate",
        read_truncate,
        (
            ("xid", "number?"),
            ("options", "number"),
        ),
    ),
    TAG_StreamStart: (
        "StreamStart",
        read_stream_start,
        (
            ("xid", "number"),
            ("first_segment", "number"),
        ),
    ),
    TAG_StreamStop: ("StreamStop", None, ()),
    TAG_StreamCommit: (
        "StreamCommit",
        read_stream_commit,
        (
            ("xid", "number"),
            ("commit_lsn", "number"),
            ("end_lsn", "number"),
            ("commit_time", "number"),
        ),
    ),
    TAG_StreamAbort: (
        "StreamAbort",
        read_stream_abort,
        (
            ("xid", "number"),
            ("subxid", "number"),
            ("abort_lsn", "number?"),
            ("abort_time", "number?"),
        ),
    ),
    TAG_BeginPrepare: (
        "BeginPrepare",
        read_begin_prepare,
        (
            ("prepare_lsn", "number"),
            ("end_lsn", "number"),
            ("prepare_time", "number"),
            ("xid", "number"),
            ("gid", "bytes"),
        ),
    ),
    TAG_Prepare: (
        "Prepare",
        read_prepare,
        (
            ("prepare_lsn", "number"),
            ("end_lsn", "number"),
            ("prepare_time", "number"),
            ("xid", "number"),
            ("gid", "bytes"),
        ),
    ),
    TAG_CommitPrepared: (
        "CommitPrepared",
        read_commit_prepared,
        (
            ("commit_lsn", "number"),
            ("end_lsn", "number"),
            ("commit_time", "number"),
            ("xid", "number"),
            ("gid", "bytes"),
        ),
    ),
    TAG_RollbackPrepared: (
        "RollbackPrepared",
        read_rollback_prepared,
        (
            ("prepare_end_lsn", "number"),
            ("rollback_end_lsn", "number"),
            ("prepare_time", "number"),
            ("rollback_time", "number"),
            ("xid", "number"),
            ("gid", "bytes"),
        ),
    ),
    TAG_StreamPrepare: (
        "StreamPrepare",
        read_stream_prepare,
        (
            ("prepare_lsn", "number"),
            ("end_lsn", "number"),
            ("prepare_time", "number"),
            ("xid", "number"),
            ("gid", "bytes"),
        ),
    ),
}
"""By tag: the message's name, the kernel that reads its header, and the column and kind of each of its fields."""

TUPLES: Final[Mapping[str, Callable[..., bool]]] = {
    "TupleData": find_tuple_data,
}
"""The kernels that locate the values of tuples, by part; they return whether all have ``columns`` values."""
