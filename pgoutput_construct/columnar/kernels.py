# Generated from spec/pgoutput.yaml by: python -m tools.generate. Do not edit.

"""Logical replication messages: kernels that walk a batch of payloads once.

Positions are bytes from the start of data; a walk returns the position after what it walks, -1 for what is
malformed. No length or count is used before it was compared with what is left.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pgoutput_construct.columnar.jit import find_nul, kernel, u8, u16, u32, u64

__all__ = ["MESSAGE_SCHEMA", "READERS", "ROW_FIELDS", "TUPLES", "VALUE_TAGS", "index"]

ROW_FIELDS: Final[Mapping[str, type]] = {
    "xid": np.uint32,
    "relation_oid": np.uint32,
    "new": np.int64,
    "old_kind": np.uint8,
    "old": np.int64,
}
"""What the index keeps of messages that hold rows: numbers, and the positions of the rows (-1 for none)."""

VALUE_TAGS: Final[Mapping[str, int]] = {
    "null": 110,
    "unchanged": 117,
    "text": 116,
    "binary": 98,
}
"""The tags of values in a row."""

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
"""The columns of a messages batch: the kind, and every header field of every message, null where it has none."""


@kernel
def _walk_tuple_data(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if end - at < 2:
        return -1
    column_count = u16(data, at)
    at += 2
    for _ in range(column_count):
        if at >= end:
            return -1
        kind = u8(data, at)
        if kind == 110:  # null
            at += 1
        elif kind == 117:  # unchanged
            at += 1
        elif kind == 116:  # text
            at += 1
            if end - at < 4:
                return -1
            length = u32(data, at)
            at += 4
            if length > end - at:
                return -1
            at += length
        elif kind == 98:  # binary
            at += 1
            if end - at < 4:
                return -1
            length = u32(data, at)
            at += 4
            if length > end - at:
                return -1
            at += length
        else:
            return -1
    return at


@kernel
def _walk_begin(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if end - at < 21:
        return -1
    if u8(data, at) != 66:
        return -1
    at += 21
    return at


@kernel
def _walk_message(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if proto_version >= 2 and in_stream:
        if end - at < 14:
            return -1
        if u8(data, at) != 77:
            return -1
        if u8(data, at + 5) & ~0x1:
            return -1
        at += 14
    else:
        if end - at < 10:
            return -1
        if u8(data, at) != 77:
            return -1
        if u8(data, at + 1) & ~0x1:
            return -1
        at += 10
    at = find_nul(data, at, end) + 1
    if at == 0:
        return -1
    if end - at < 4:
        return -1
    content_length = u32(data, at)
    at += 4
    if content_length > end - at:
        return -1
    at += content_length
    return at


@kernel
def _walk_commit(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if end - at < 26:
        return -1
    if u8(data, at) != 67:
        return -1
    if u8(data, at + 1) != 0:
        return -1
    at += 26
    return at


@kernel
def _walk_origin(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if end - at < 9:
        return -1
    if u8(data, at) != 79:
        return -1
    at += 9
    at = find_nul(data, at, end) + 1
    if at == 0:
        return -1
    return at


@kernel
def _walk_relation_column(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if end - at < 1:
        return -1
    if u8(data, at) & ~0x1:
        return -1
    at += 1
    at = find_nul(data, at, end) + 1
    if at == 0:
        return -1
    if end - at < 8:
        return -1
    at += 8
    return at


@kernel
def _walk_relation(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if proto_version >= 2 and in_stream:
        if end - at < 9:
            return -1
        if u8(data, at) != 82:
            return -1
        at += 9
    else:
        if end - at < 5:
            return -1
        if u8(data, at) != 82:
            return -1
        at += 5
    at = find_nul(data, at, end) + 1
    if at == 0:
        return -1
    at = find_nul(data, at, end) + 1
    if at == 0:
        return -1
    if end - at < 3:
        return -1
    if u8(data, at) not in (
        100,
        110,
        102,
        105,
    ):
        return -1
    column_count = u16(data, at + 1)
    at += 3
    for _ in range(column_count):
        at = _walk_relation_column(data, at, end, proto_version, in_stream, parallel)
        if at < 0:
            return -1
    return at


@kernel
def _walk_type(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if proto_version >= 2 and in_stream:
        if end - at < 9:
            return -1
        if u8(data, at) != 89:
            return -1
        at += 9
    else:
        if end - at < 5:
            return -1
        if u8(data, at) != 89:
            return -1
        at += 5
    at = find_nul(data, at, end) + 1
    if at == 0:
        return -1
    at = find_nul(data, at, end) + 1
    if at == 0:
        return -1
    return at


@kernel
def _walk_insert(
    data: Any,
    at: int,
    end: int,
    row: int,
    proto_version: int,
    in_stream: bool,
    parallel: bool,
    xid: Any,
    relation_oid: Any,
    new: Any,
    old_kind: Any,
    old: Any,
) -> int:
    if proto_version >= 2 and in_stream:
        if end - at < 10:
            return -1
        if u8(data, at) != 73:
            return -1
        xid[row] = u32(data, at + 1)
        relation_oid[row] = u32(data, at + 5)
        if u8(data, at + 9) != 78:
            return -1
        at += 10
    else:
        if end - at < 6:
            return -1
        if u8(data, at) != 73:
            return -1
        relation_oid[row] = u32(data, at + 1)
        if u8(data, at + 5) != 78:
            return -1
        at += 6
    new[row] = at
    at = _walk_tuple_data(data, at, end, proto_version, in_stream, parallel)
    if at < 0:
        return -1
    return at


@kernel
def _walk_update(
    data: Any,
    at: int,
    end: int,
    row: int,
    proto_version: int,
    in_stream: bool,
    parallel: bool,
    xid: Any,
    relation_oid: Any,
    new: Any,
    old_kind: Any,
    old: Any,
) -> int:
    if proto_version >= 2 and in_stream:
        if end - at < 9:
            return -1
        if u8(data, at) != 85:
            return -1
        xid[row] = u32(data, at + 1)
        relation_oid[row] = u32(data, at + 5)
        at += 9
    else:
        if end - at < 5:
            return -1
        if u8(data, at) != 85:
            return -1
        relation_oid[row] = u32(data, at + 1)
        at += 5
    kind = u8(data, at) if at < end else 0
    if kind == 75:  # key
        old_kind[row] = kind
        at += 1
        old[row] = at
        at = _walk_tuple_data(data, at, end, proto_version, in_stream, parallel)
        if at < 0:
            return -1
    elif kind == 79:  # row
        old_kind[row] = kind
        at += 1
        old[row] = at
        at = _walk_tuple_data(data, at, end, proto_version, in_stream, parallel)
        if at < 0:
            return -1
    if end - at < 1:
        return -1
    if u8(data, at) != 78:
        return -1
    at += 1
    new[row] = at
    at = _walk_tuple_data(data, at, end, proto_version, in_stream, parallel)
    if at < 0:
        return -1
    return at


@kernel
def _walk_delete(
    data: Any,
    at: int,
    end: int,
    row: int,
    proto_version: int,
    in_stream: bool,
    parallel: bool,
    xid: Any,
    relation_oid: Any,
    new: Any,
    old_kind: Any,
    old: Any,
) -> int:
    if proto_version >= 2 and in_stream:
        if end - at < 9:
            return -1
        if u8(data, at) != 68:
            return -1
        xid[row] = u32(data, at + 1)
        relation_oid[row] = u32(data, at + 5)
        at += 9
    else:
        if end - at < 5:
            return -1
        if u8(data, at) != 68:
            return -1
        relation_oid[row] = u32(data, at + 1)
        at += 5
    if at >= end:
        return -1
    kind = u8(data, at)
    if kind == 75:  # key
        old_kind[row] = kind
        at += 1
        old[row] = at
        at = _walk_tuple_data(data, at, end, proto_version, in_stream, parallel)
        if at < 0:
            return -1
    elif kind == 79:  # row
        old_kind[row] = kind
        at += 1
        old[row] = at
        at = _walk_tuple_data(data, at, end, proto_version, in_stream, parallel)
        if at < 0:
            return -1
    else:
        return -1
    return at


@kernel
def _walk_truncate(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if proto_version >= 2 and in_stream:
        if end - at < 10:
            return -1
        if u8(data, at) != 84:
            return -1
        relation_count = u32(data, at + 5)
        if u8(data, at + 9) & ~0x3:
            return -1
        at += 10
    else:
        if end - at < 6:
            return -1
        if u8(data, at) != 84:
            return -1
        relation_count = u32(data, at + 1)
        if u8(data, at + 5) & ~0x3:
            return -1
        at += 6
    for _ in range(relation_count):
        if end - at < 4:
            return -1
        at += 4
    return at


@kernel
def _walk_stream_start(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if proto_version < 2:
        return -1
    if end - at < 6:
        return -1
    if u8(data, at) != 83:
        return -1
    if u8(data, at + 5) not in (
        0,
        1,
    ):
        return -1
    at += 6
    return at


@kernel
def _walk_stream_stop(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if proto_version < 2:
        return -1
    if end - at < 1:
        return -1
    if u8(data, at) != 69:
        return -1
    at += 1
    return at


@kernel
def _walk_stream_commit(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if proto_version < 2:
        return -1
    if end - at < 30:
        return -1
    if u8(data, at) != 99:
        return -1
    if u8(data, at + 5) != 0:
        return -1
    at += 30
    return at


@kernel
def _walk_stream_abort(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if proto_version >= 4 and parallel:
        if end - at < 25:
            return -1
        if u8(data, at) != 65:
            return -1
        at += 25
    else:
        if end - at < 9:
            return -1
        if u8(data, at) != 65:
            return -1
        at += 9
    return at


@kernel
def _walk_begin_prepare(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if end - at < 29:
        return -1
    if u8(data, at) != 98:
        return -1
    at += 29
    at = find_nul(data, at, end) + 1
    if at == 0:
        return -1
    return at


@kernel
def _walk_prepare(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if end - at < 30:
        return -1
    if u8(data, at) != 80:
        return -1
    if u8(data, at + 1) != 0:
        return -1
    at += 30
    at = find_nul(data, at, end) + 1
    if at == 0:
        return -1
    return at


@kernel
def _walk_commit_prepared(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if end - at < 30:
        return -1
    if u8(data, at) != 75:
        return -1
    if u8(data, at + 1) != 0:
        return -1
    at += 30
    at = find_nul(data, at, end) + 1
    if at == 0:
        return -1
    return at


@kernel
def _walk_rollback_prepared(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if end - at < 38:
        return -1
    if u8(data, at) != 114:
        return -1
    if u8(data, at + 1) != 0:
        return -1
    at += 38
    at = find_nul(data, at, end) + 1
    if at == 0:
        return -1
    return at


@kernel
def _walk_stream_prepare(data: Any, at: int, end: int, proto_version: int, in_stream: bool, parallel: bool) -> int:
    if end - at < 30:
        return -1
    if u8(data, at) != 112:
        return -1
    if u8(data, at + 1) != 0:
        return -1
    at += 30
    at = find_nul(data, at, end) + 1
    if at == 0:
        return -1
    return at


@kernel
def index(
    data: Any,
    starts: Any,
    ends: Any,
    streams: Any,
    proto_version: int,
    parallel: bool,
    tags: Any,
    valid: Any,
    xid: Any,
    relation_oid: Any,
    new: Any,
    old_kind: Any,
    old: Any,
) -> None:
    """Index a batch: the kind of each payload, whether it is a message, and what is kept of rows."""
    for row in range(len(starts)):
        at, end, in_stream = starts[row], ends[row], streams[row]
        if at >= end:
            continue
        kind = u8(data, at)
        tags[row] = kind
        if kind == 66:
            at = _walk_begin(data, at, end, proto_version, in_stream, parallel)
        elif kind == 77:
            at = _walk_message(data, at, end, proto_version, in_stream, parallel)
        elif kind == 67:
            at = _walk_commit(data, at, end, proto_version, in_stream, parallel)
        elif kind == 79:
            at = _walk_origin(data, at, end, proto_version, in_stream, parallel)
        elif kind == 82:
            at = _walk_relation(data, at, end, proto_version, in_stream, parallel)
        elif kind == 89:
            at = _walk_type(data, at, end, proto_version, in_stream, parallel)
        elif kind == 73:
            at = _walk_insert(
                data, at, end, row, proto_version, in_stream, parallel, xid, relation_oid, new, old_kind, old
            )
        elif kind == 85:
            at = _walk_update(
                data, at, end, row, proto_version, in_stream, parallel, xid, relation_oid, new, old_kind, old
            )
        elif kind == 68:
            at = _walk_delete(
                data, at, end, row, proto_version, in_stream, parallel, xid, relation_oid, new, old_kind, old
            )
        elif kind == 84:
            at = _walk_truncate(data, at, end, proto_version, in_stream, parallel)
        elif kind == 83:
            at = _walk_stream_start(data, at, end, proto_version, in_stream, parallel)
        elif kind == 69:
            at = _walk_stream_stop(data, at, end, proto_version, in_stream, parallel)
        elif kind == 99:
            at = _walk_stream_commit(data, at, end, proto_version, in_stream, parallel)
        elif kind == 65:
            at = _walk_stream_abort(data, at, end, proto_version, in_stream, parallel)
        elif kind == 98:
            at = _walk_begin_prepare(data, at, end, proto_version, in_stream, parallel)
        elif kind == 80:
            at = _walk_prepare(data, at, end, proto_version, in_stream, parallel)
        elif kind == 75:
            at = _walk_commit_prepared(data, at, end, proto_version, in_stream, parallel)
        elif kind == 114:
            at = _walk_rollback_prepared(data, at, end, proto_version, in_stream, parallel)
        elif kind == 112:
            at = _walk_stream_prepare(data, at, end, proto_version, in_stream, parallel)
        else:
            at = -1
        valid[row] = at == end


@kernel
def values_tuple_data(data: Any, places: Any, columns: int, tags: Any, starts: Any, lengths: Any) -> int:
    """Find the values of rows (not those at -1); return the first with another number of columns, or -1."""
    for row in range(len(places)):
        at = places[row]
        if at < 0:
            continue
        if u16(data, at) != columns:
            return row
        at += 2
        for column in range(columns):
            kind = u8(data, at)
            at += 1
            length = 0
            if kind == 116 or kind == 98:
                length = u32(data, at)
                at += 4
            tags[column, row] = kind
            starts[column, row] = at
            lengths[column, row] = length
            at += length
    return -1


@kernel
def read_begin(
    data: Any, places: Any, streams: Any, proto_version: int, parallel: bool, final_lsn: Any, commit_time: Any, xid: Any
) -> None:
    for row in range(len(places)):
        at = places[row]
        final_lsn[row] = u64(data, at + 1)
        commit_time[row] = u64(data, at + 9)
        xid[row] = u32(data, at + 17)
        at += 21


@kernel
def read_message(
    data: Any,
    places: Any,
    streams: Any,
    proto_version: int,
    parallel: bool,
    xid: Any,
    has_xid: Any,
    flags: Any,
    lsn: Any,
    prefix_starts: Any,
    prefix_lengths: Any,
    content_starts: Any,
    content_lengths: Any,
) -> None:
    for row in range(len(places)):
        at = places[row]
        in_stream = streams[row]
        if proto_version >= 2 and in_stream:
            xid[row] = u32(data, at + 1)
            has_xid[row] = True
            flags[row] = u8(data, at + 5)
            lsn[row] = u64(data, at + 6)
            at += 14
        else:
            flags[row] = u8(data, at + 1)
            lsn[row] = u64(data, at + 2)
            at += 10
        prefix_starts[row] = at
        prefix_lengths[row] = find_nul(data, at, len(data)) - at
        at += prefix_lengths[row] + 1
        content_length = u32(data, at)
        at += 4
        content_starts[row] = at
        content_lengths[row] = content_length
        at += content_length


@kernel
def read_commit(
    data: Any,
    places: Any,
    streams: Any,
    proto_version: int,
    parallel: bool,
    commit_lsn: Any,
    end_lsn: Any,
    commit_time: Any,
) -> None:
    for row in range(len(places)):
        at = places[row]
        commit_lsn[row] = u64(data, at + 2)
        end_lsn[row] = u64(data, at + 10)
        commit_time[row] = u64(data, at + 18)
        at += 26


@kernel
def read_origin(
    data: Any,
    places: Any,
    streams: Any,
    proto_version: int,
    parallel: bool,
    origin_lsn: Any,
    name_starts: Any,
    name_lengths: Any,
) -> None:
    for row in range(len(places)):
        at = places[row]
        origin_lsn[row] = u64(data, at + 1)
        at += 9
        name_starts[row] = at
        name_lengths[row] = find_nul(data, at, len(data)) - at
        at += name_lengths[row] + 1


@kernel
def read_relation(
    data: Any,
    places: Any,
    streams: Any,
    proto_version: int,
    parallel: bool,
    xid: Any,
    has_xid: Any,
    relation_oid: Any,
    namespace_starts: Any,
    namespace_lengths: Any,
    name_starts: Any,
    name_lengths: Any,
    replica_identity: Any,
) -> None:
    for row in range(len(places)):
        at = places[row]
        in_stream = streams[row]
        if proto_version >= 2 and in_stream:
            xid[row] = u32(data, at + 1)
            has_xid[row] = True
            relation_oid[row] = u32(data, at + 5)
            at += 9
        else:
            relation_oid[row] = u32(data, at + 1)
            at += 5
        namespace_starts[row] = at
        namespace_lengths[row] = find_nul(data, at, len(data)) - at
        at += namespace_lengths[row] + 1
        name_starts[row] = at
        name_lengths[row] = find_nul(data, at, len(data)) - at
        at += name_lengths[row] + 1
        replica_identity[row] = u8(data, at)
        at += 3


@kernel
def read_type(
    data: Any,
    places: Any,
    streams: Any,
    proto_version: int,
    parallel: bool,
    xid: Any,
    has_xid: Any,
    type_oid: Any,
    namespace_starts: Any,
    namespace_lengths: Any,
    name_starts: Any,
    name_lengths: Any,
) -> None:
    for row in range(len(places)):
        at = places[row]
        in_stream = streams[row]
        if proto_version >= 2 and in_stream:
            xid[row] = u32(data, at + 1)
            has_xid[row] = True
            type_oid[row] = u32(data, at + 5)
            at += 9
        else:
            type_oid[row] = u32(data, at + 1)
            at += 5
        namespace_starts[row] = at
        namespace_lengths[row] = find_nul(data, at, len(data)) - at
        at += namespace_lengths[row] + 1
        name_starts[row] = at
        name_lengths[row] = find_nul(data, at, len(data)) - at
        at += name_lengths[row] + 1


@kernel
def read_insert(
    data: Any, places: Any, streams: Any, proto_version: int, parallel: bool, xid: Any, has_xid: Any, relation_oid: Any
) -> None:
    for row in range(len(places)):
        at = places[row]
        in_stream = streams[row]
        if proto_version >= 2 and in_stream:
            xid[row] = u32(data, at + 1)
            has_xid[row] = True
            relation_oid[row] = u32(data, at + 5)
            at += 10
        else:
            relation_oid[row] = u32(data, at + 1)
            at += 6


@kernel
def read_update(
    data: Any, places: Any, streams: Any, proto_version: int, parallel: bool, xid: Any, has_xid: Any, relation_oid: Any
) -> None:
    for row in range(len(places)):
        at = places[row]
        in_stream = streams[row]
        if proto_version >= 2 and in_stream:
            xid[row] = u32(data, at + 1)
            has_xid[row] = True
            relation_oid[row] = u32(data, at + 5)
            at += 9
        else:
            relation_oid[row] = u32(data, at + 1)
            at += 5


@kernel
def read_delete(
    data: Any, places: Any, streams: Any, proto_version: int, parallel: bool, xid: Any, has_xid: Any, relation_oid: Any
) -> None:
    for row in range(len(places)):
        at = places[row]
        in_stream = streams[row]
        if proto_version >= 2 and in_stream:
            xid[row] = u32(data, at + 1)
            has_xid[row] = True
            relation_oid[row] = u32(data, at + 5)
            at += 9
        else:
            relation_oid[row] = u32(data, at + 1)
            at += 5


@kernel
def read_truncate(
    data: Any, places: Any, streams: Any, proto_version: int, parallel: bool, xid: Any, has_xid: Any, options: Any
) -> None:
    for row in range(len(places)):
        at = places[row]
        in_stream = streams[row]
        if proto_version >= 2 and in_stream:
            xid[row] = u32(data, at + 1)
            has_xid[row] = True
            options[row] = u8(data, at + 9)
            at += 10
        else:
            options[row] = u8(data, at + 5)
            at += 6


@kernel
def read_stream_start(
    data: Any, places: Any, streams: Any, proto_version: int, parallel: bool, xid: Any, first_segment: Any
) -> None:
    for row in range(len(places)):
        at = places[row]
        xid[row] = u32(data, at + 1)
        first_segment[row] = u8(data, at + 5)
        at += 6


@kernel
def read_stream_commit(
    data: Any,
    places: Any,
    streams: Any,
    proto_version: int,
    parallel: bool,
    xid: Any,
    commit_lsn: Any,
    end_lsn: Any,
    commit_time: Any,
) -> None:
    for row in range(len(places)):
        at = places[row]
        xid[row] = u32(data, at + 1)
        commit_lsn[row] = u64(data, at + 6)
        end_lsn[row] = u64(data, at + 14)
        commit_time[row] = u64(data, at + 22)
        at += 30


@kernel
def read_stream_abort(
    data: Any,
    places: Any,
    streams: Any,
    proto_version: int,
    parallel: bool,
    xid: Any,
    subxid: Any,
    abort_lsn: Any,
    has_abort_lsn: Any,
    abort_time: Any,
    has_abort_time: Any,
) -> None:
    for row in range(len(places)):
        at = places[row]
        if proto_version >= 4 and parallel:
            xid[row] = u32(data, at + 1)
            subxid[row] = u32(data, at + 5)
            abort_lsn[row] = u64(data, at + 9)
            has_abort_lsn[row] = True
            abort_time[row] = u64(data, at + 17)
            has_abort_time[row] = True
            at += 25
        else:
            xid[row] = u32(data, at + 1)
            subxid[row] = u32(data, at + 5)
            at += 9


@kernel
def read_begin_prepare(
    data: Any,
    places: Any,
    streams: Any,
    proto_version: int,
    parallel: bool,
    prepare_lsn: Any,
    end_lsn: Any,
    prepare_time: Any,
    xid: Any,
    gid_starts: Any,
    gid_lengths: Any,
) -> None:
    for row in range(len(places)):
        at = places[row]
        prepare_lsn[row] = u64(data, at + 1)
        end_lsn[row] = u64(data, at + 9)
        prepare_time[row] = u64(data, at + 17)
        xid[row] = u32(data, at + 25)
        at += 29
        gid_starts[row] = at
        gid_lengths[row] = find_nul(data, at, len(data)) - at
        at += gid_lengths[row] + 1


@kernel
def read_prepare(
    data: Any,
    places: Any,
    streams: Any,
    proto_version: int,
    parallel: bool,
    prepare_lsn: Any,
    end_lsn: Any,
    prepare_time: Any,
    xid: Any,
    gid_starts: Any,
    gid_lengths: Any,
) -> None:
    for row in range(len(places)):
        at = places[row]
        prepare_lsn[row] = u64(data, at + 2)
        end_lsn[row] = u64(data, at + 10)
        prepare_time[row] = u64(data, at + 18)
        xid[row] = u32(data, at + 26)
        at += 30
        gid_starts[row] = at
        gid_lengths[row] = find_nul(data, at, len(data)) - at
        at += gid_lengths[row] + 1


@kernel
def read_commit_prepared(
    data: Any,
    places: Any,
    streams: Any,
    proto_version: int,
    parallel: bool,
    commit_lsn: Any,
    end_lsn: Any,
    commit_time: Any,
    xid: Any,
    gid_starts: Any,
    gid_lengths: Any,
) -> None:
    for row in range(len(places)):
        at = places[row]
        commit_lsn[row] = u64(data, at + 2)
        end_lsn[row] = u64(data, at + 10)
        commit_time[row] = u64(data, at + 18)
        xid[row] = u32(data, at + 26)
        at += 30
        gid_starts[row] = at
        gid_lengths[row] = find_nul(data, at, len(data)) - at
        at += gid_lengths[row] + 1


@kernel
def read_rollback_prepared(
    data: Any,
    places: Any,
    streams: Any,
    proto_version: int,
    parallel: bool,
    prepare_end_lsn: Any,
    rollback_end_lsn: Any,
    prepare_time: Any,
    rollback_time: Any,
    xid: Any,
    gid_starts: Any,
    gid_lengths: Any,
) -> None:
    for row in range(len(places)):
        at = places[row]
        prepare_end_lsn[row] = u64(data, at + 2)
        rollback_end_lsn[row] = u64(data, at + 10)
        prepare_time[row] = u64(data, at + 18)
        rollback_time[row] = u64(data, at + 26)
        xid[row] = u32(data, at + 34)
        at += 38
        gid_starts[row] = at
        gid_lengths[row] = find_nul(data, at, len(data)) - at
        at += gid_lengths[row] + 1


@kernel
def read_stream_prepare(
    data: Any,
    places: Any,
    streams: Any,
    proto_version: int,
    parallel: bool,
    prepare_lsn: Any,
    end_lsn: Any,
    prepare_time: Any,
    xid: Any,
    gid_starts: Any,
    gid_lengths: Any,
) -> None:
    for row in range(len(places)):
        at = places[row]
        prepare_lsn[row] = u64(data, at + 2)
        end_lsn[row] = u64(data, at + 10)
        prepare_time[row] = u64(data, at + 18)
        xid[row] = u32(data, at + 26)
        at += 30
        gid_starts[row] = at
        gid_lengths[row] = find_nul(data, at, len(data)) - at
        at += gid_lengths[row] + 1


READERS: Final[Mapping[int, tuple[str, Callable[..., None] | None, tuple[tuple[str, str], ...]]]] = {
    66: (
        "Begin",
        read_begin,
        (
            ("final_lsn", "number"),
            ("commit_time", "number"),
            ("xid", "number"),
        ),
    ),
    77: (
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
    67: (
        "Commit",
        read_commit,
        (
            ("commit_lsn", "number"),
            ("end_lsn", "number"),
            ("commit_time", "number"),
        ),
    ),
    79: (
        "Origin",
        read_origin,
        (
            ("origin_lsn", "number"),
            ("name", "bytes"),
        ),
    ),
    82: (
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
    89: (
        "Type",
        read_type,
        (
            ("xid", "number?"),
            ("type_oid", "number"),
            ("namespace", "bytes"),
            ("name", "bytes"),
        ),
    ),
    73: (
        "Insert",
        read_insert,
        (
            ("xid", "number?"),
            ("relation_oid", "number"),
        ),
    ),
    85: (
        "Update",
        read_update,
        (
            ("xid", "number?"),
            ("relation_oid", "number"),
        ),
    ),
    68: (
        "Delete",
        read_delete,
        (
            ("xid", "number?"),
            ("relation_oid", "number"),
        ),
    ),
    84: (
        "Truncate",
        read_truncate,
        (
            ("xid", "number?"),
            ("options", "number"),
        ),
    ),
    83: (
        "StreamStart",
        read_stream_start,
        (
            ("xid", "number"),
            ("first_segment", "number"),
        ),
    ),
    69: ("StreamStop", None, ()),
    99: (
        "StreamCommit",
        read_stream_commit,
        (
            ("xid", "number"),
            ("commit_lsn", "number"),
            ("end_lsn", "number"),
            ("commit_time", "number"),
        ),
    ),
    65: (
        "StreamAbort",
        read_stream_abort,
        (
            ("xid", "number"),
            ("subxid", "number"),
            ("abort_lsn", "number?"),
            ("abort_time", "number?"),
        ),
    ),
    98: (
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
    80: (
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
    75: (
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
    114: (
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
    112: (
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
"""By first byte: the message's name, what reads its header, and how each of its fields is read."""

TUPLES: Final[Mapping[str, Callable[..., int]]] = {
    "TupleData": values_tuple_data,
}
"""What finds the values of each kind of row."""
