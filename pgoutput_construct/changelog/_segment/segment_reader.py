"""The rows of one segment, with all checks: damage cannot go unnoticed, and is told by seq and field."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pgoutput_construct.changelog._index.listing import first_kept
from pgoutput_construct.changelog._index.segment_index import SegmentIndex
from pgoutput_construct.changelog._segment.footer import (
    DAMAGE,
    Segment,
    chosen,
    damaged,
    footer_index,
    read_footer,
    read_tail,
)
from pgoutput_construct.changelog._segment.segment_schema import SCHEMA, checksums, upgraded
from pgoutput_construct.changelog._store.store import MissingFileError

__all__ = ["Needed", "read_indexed", "read_segment"]

Needed = Callable[[SegmentIndex], tuple[NDArray[np.int64], NDArray[np.int64]]]
"""Which of a segment's rows are needed, by its index: the first and the last seqs of ranges, in the order of both."""

Rows = tuple[pa.Table, bytes]
"""The rows of a segment, and the index in its footer."""

_LARGE: Final = 1 << 20
"""Bytes of a file of which parts are read, where parts are needed."""
_NONE: Final = np.array([], np.int64)
_latest: Final[list[tuple[Segment, Rows]]] = []
"""The segment that covered one that was gone, and its rows: who reads many small segments needs it for each."""


def read_segment(segment: Segment) -> pa.Table:
    """Read one segment with its checks; raise ChangeLogError when a byte of what it says has changed.

    A segment that was compacted away since it was listed is read from the one that covers it.
    """
    return _read(segment)[0]


def read_indexed(segment: Segment, needed: Needed | None = None) -> tuple[pa.Table, SegmentIndex]:
    """Read the rows of a segment, as ``read_segment`` does, and the index in its file.

    With ``needed`` only the groups of rows that have some which are needed are read.
    Of some groups only the checksums of their pages are compared; those of whole columns need all.

    The rows, and the index, of a segment that was compacted away are those of the one that covers it, which may have
    more.
    """
    table, content = _read(segment, needed)
    return table, _index(segment, content)


def _read(segment: Segment, needed: Needed | None = None) -> Rows:
    try:
        content = _content(segment, needed)
    except MissingFileError:
        return _read_covered(segment)
    try:
        # Not read_table: its datasets cost three times as much as all else for a small segment.
        file = pq.ParquetFile(content, page_checksum_verification=True)
        bounds, index = _bounds(segment, file.metadata), footer_index(file.metadata.metadata)
    except DAMAGE as error:
        raise damaged(_damaged_place(segment, content), error) from error
    groups = _groups(segment, file.metadata, needed)
    try:
        table = upgraded(file.read_row_groups(groups, use_threads=False))
        _check(segment, table, np.concatenate([_NONE, *(np.arange(*bounds[group : group + 2]) for group in groups)]))
        if len(groups) == file.num_row_groups:
            _check_columns(segment, table)
    except DAMAGE as error:
        raise damaged(_damaged_place(segment, content, groups), error) from error
    return table, index


def _groups(segment: Segment, metadata: pq.FileMetaData, needed: Needed | None) -> list[int]:
    """Return which groups of rows are needed."""
    index = footer_index(metadata.metadata)
    if needed is None:
        return [*range(metadata.num_row_groups)]
    bounds, (first, last) = _bounds(segment, metadata), needed(_index(segment, index))
    ranges = np.searchsorted(last, bounds[:-1])
    found = ranges < len(first)
    found[found] = first[ranges[found]] < bounds[1:][found]
    return [int(group) for group in np.flatnonzero(found)]


def _index(segment: Segment, content: bytes) -> SegmentIndex:
    try:
        return _decoded(content)
    except DAMAGE as error:
        raise damaged(segment.path, error) from error


@lru_cache(maxsize=1)
def _decoded(content: bytes) -> SegmentIndex:
    """Read an index; the last one is kept, since what is needed, and what is read, both want it."""
    return SegmentIndex.from_bytes(content)


def _bounds(segment: Segment, metadata: pq.FileMetaData) -> NDArray[np.int64]:
    """Return the first seq of each group of rows, and what would be that of the next one."""
    sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    return segment.first_seq + np.append(0, np.cumsum(np.array(sizes, np.int64)))


def _check(segment: Segment, table: pa.Table, seqs: NDArray[np.int64]) -> None:
    if not table.schema.equals(SCHEMA):
        raise ValueError(f"its columns are {table.schema.names}")
    table.validate(full=True)
    if not np.array_equal(table["seq"].to_numpy(), seqs):
        raise ValueError(f"its seqs are not {segment.first_seq} to {segment.last_seq}")


def _check_columns(segment: Segment, table: pa.Table) -> None:
    if table.num_rows != segment.rows:
        raise ValueError(f"its seqs are not {segment.first_seq} to {segment.last_seq}")
    checks = checksums(table)
    if changed := [name for name, check in segment.checks.items() if checks.get(name) != check]:
        raise ValueError(f"the checksum of {', '.join(changed)} does not match")


def _content(segment: Segment, needed: Needed | None) -> pa.BufferReader:
    """Read a file, or of a large one its footer and the groups that are needed: elsewhere are zeros then."""
    ranges = None
    if needed is not None and segment.size > _LARGE:
        tail = read_tail(segment.store, segment.name)
        ranges = _ranges(segment, tail, needed)
    # Read before it is parsed: what the store cannot do is no damage of the segment.
    with segment.store.explained("cannot be read", segment.name), segment.store.open(segment.name) as file:
        if ranges is None:
            return pa.BufferReader(file.read_buffer())
        content = bytearray(segment.size)  # memory is given to what is written
        content[-len(tail) :] = tail
        for first, end in ranges:
            file.seek(first)
            content[first:end] = file.read(end - first)
    return pa.BufferReader(pa.py_buffer(content))


def _ranges(segment: Segment, tail: bytes, needed: Needed) -> list[tuple[int, int]] | None:
    """Return where the groups that are needed stand in a file, given its end; None for all."""
    try:
        metadata = pq.read_metadata(pa.BufferReader(tail))
        places = [_place(metadata.row_group(group)) for group in range(metadata.num_row_groups)]
        if not all(0 <= first <= end <= segment.size for first, end in places):
            raise ValueError("its footer names places that it does not have")
    except DAMAGE as error:
        raise damaged(segment.path, error) from error
    groups = _groups(segment, metadata, needed)
    return None if len(groups) == len(places) else [places[group] for group in groups]


def _place(group: pq.RowGroupMetaData) -> tuple[int, int]:
    columns = [group.column(number) for number in range(group.num_columns)]
    first = min(column.data_page_offset for column in columns)  # there are no dictionaries
    return first, max(column.data_page_offset + column.total_compressed_size for column in columns)


def _read_covered(segment: Segment) -> Rows:
    for large, rows in chain(_latest, _covering(segment)):
        if large.store == segment.store and large.first_seq <= segment.first_seq <= segment.last_seq <= large.last_seq:
            _latest[:] = [(large, rows)]
            return rows[0].slice(segment.first_seq - large.first_seq, segment.rows), rows[1]
    reason = "it was pruned" if segment.last_seq < first_kept(segment.store) else "no other segment has its seqs"
    raise MissingFileError(f"segment {segment.path}: it is no longer there, {reason}; open the log again")


def _covering(segment: Segment) -> Iterator[tuple[Segment, Rows]]:
    """Yield the segment that covers one that is gone, and its rows."""
    files = segment.store.files()
    for name in chosen(files)[0]:
        if name.first_seq <= segment.first_seq and name.last_seq is not None and name.last_seq >= segment.last_seq:
            large = read_footer(segment.store, name, files[name.name])
            yield large, _read(large)


def _damaged_place(segment: Segment, content: pa.BufferReader, groups: Sequence[int] | None = None) -> str:
    """Say which rows and columns cannot be read: each group of rows has checksums of its own."""
    first, bad = segment.first_seq, []
    try:
        content.seek(0)
        with pq.ParquetFile(content, page_checksum_verification=True) as file:
            for group in range(file.num_row_groups):
                end = first + file.metadata.row_group(group).num_rows
                names = file.schema_arrow.names if groups is None or group in groups else ()
                names = [name for name in names if not _is_readable(file, group, name)]
                bad += [(first, end - 1, name) for name in names]
                first = end
    except DAMAGE:
        return segment.path
    if not bad:
        return f"{segment.path}, seq {segment.first_seq} to {segment.last_seq}"
    return f"{segment.path}, seq {bad[0][0]} to {bad[-1][1]}, field {', '.join(sorted({name for *_, name in bad}))}"


def _is_readable(file: pq.ParquetFile, group: int, name: str) -> bool:
    try:
        file.read_row_group(group, columns=[name])
    except DAMAGE:
        return False
    return True
