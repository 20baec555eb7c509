"""Reads the rows of one segment, all of them or the row groups that are needed, and verifies every checksum.

Damage is reported with the seqs and the fields that it is in. A segment that was compacted away after it was listed is
read from the segment that covers it, so a reader does not notice a compaction.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pgoutput_construct.changelog._segment.footer import (
    DAMAGE,
    Segment,
    chosen,
    damaged,
    footer_index,
    read_footer,
    read_tail,
)
from pgoutput_construct.changelog._segment.prune_note import read_pruned
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.changelog._segment.segment_schema import SCHEMA, checksums, upgraded
from pgoutput_construct.changelog._segment.size_limits import check_row_groups, open_parquet
from pgoutput_construct.changelog._store.store import MissingFileError

__all__ = ["Needed", "read_indexed", "read_segment"]

Needed = Callable[[SegmentIndex], tuple[NDArray[np.int64], NDArray[np.int64]]]
"""Given a segment's index, returns the rows to read: the first and the last seqs of ranges, in ascending order."""

Rows = tuple[pa.Table, bytes]
"""The rows of a segment, and the serialized index in its footer."""

_LARGE: Final = 1 << 20
"""The size in bytes above which only the needed parts of a file are read."""
_NONE: Final = np.array([], np.int64)
_latest: Final[list[tuple[Segment, Rows]]] = []
"""The segment read last instead of a compacted one, and its rows: the next small segment is mostly in it, too."""


def read_segment(segment: Segment) -> pa.Table:
    """Read all rows of a segment and verify its checksums.

    If it was compacted away since it was listed, its rows are read from the segment that covers it.

    Raises:
        ChangeLogError: A byte of the file has changed.
        MissingFileError: The segment was pruned, or removed.
    """
    return _read(segment)[0]


def read_indexed(segment: Segment, needed: Needed | None = None) -> tuple[pa.Table, SegmentIndex]:
    """Read the rows of a segment like ``read_segment``, and the index in its file.

    With ``needed``, only the row groups that contain needed rows are read. Then the checksums of their pages are
    verified, and those of whole columns are not, since they cover all rows.

    If the segment was compacted away, the index is that of the segment that covers it, and describes more rows.
    """
    table, content = _read(segment, needed)
    return table, _index(segment, content)


def _read(segment: Segment, needed: Needed | None = None) -> Rows:
    try:
        content, groups = _content(segment, needed)
    except MissingFileError:
        return _read_covered(segment)
    with _reporting(segment, content):
        # Not read_table: for a small segment its dataset costs three times as much as everything else.
        file = open_parquet(content)
        bounds, index = _bounds(segment, file.metadata), footer_index(file.metadata.metadata)
    if groups is None:
        groups = _groups(segment, file.metadata, needed)
    with _reporting(segment):
        check_row_groups(file, groups, content, SCHEMA)
    with _reporting(segment, content, groups):
        table = upgraded(file.read_row_groups(groups, use_threads=False))
        _check(segment, table, np.concatenate([_NONE, *(np.arange(*bounds[group : group + 2]) for group in groups)]))
        if len(groups) == file.num_row_groups:
            _check_columns(segment, table)
    return table, index


@contextmanager
def _reporting(
    segment: Segment, content: pa.BufferReader | None = None, groups: Sequence[int] | None = None
) -> Iterator[None]:
    """Have damage that is found in the block be reported: with its seqs and fields, if the content is given."""
    try:
        yield
    except DAMAGE as error:
        raise damaged(segment.path if content is None else _damaged_range(segment, content, groups), error) from error


def _groups(segment: Segment, metadata: pq.FileMetaData, needed: Needed | None) -> list[int]:
    """Return the indices of the row groups to read."""
    index = footer_index(metadata.metadata)
    if needed is None:
        return [*range(metadata.num_row_groups)]
    bounds, (first, last) = _bounds(segment, metadata), needed(_index(segment, index))
    ranges = np.searchsorted(last, bounds[:-1])
    found = ranges < len(first)
    found[found] = first[ranges[found]] < bounds[1:][found]
    return [int(group) for group in np.flatnonzero(found)]


def _index(segment: Segment, content: bytes) -> SegmentIndex:
    with _reporting(segment):
        return _decoded(content)


@lru_cache(maxsize=1)
def _decoded(content: bytes) -> SegmentIndex:
    """Parse an index; the last one is cached, since ``needed`` and the caller both use it."""
    return SegmentIndex.from_bytes(content)


def _bounds(segment: Segment, metadata: pq.FileMetaData) -> NDArray[np.int64]:
    """Return the first seq of each row group, and the seq after the last one."""
    sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    return segment.first_seq + np.append(0, np.cumsum(np.array(sizes, np.int64)))


def _check(segment: Segment, table: pa.Table, seqs: NDArray[np.int64]) -> None:
    if not table.schema.equals(SCHEMA):
        raise ValueError(f"it has the columns {table.schema.names}")
    table.validate(full=True)
    if not np.array_equal(table["seq"].to_numpy(), seqs):
        raise ValueError(f"its seqs are not {segment.first_seq} to {segment.last_seq}")


def _check_columns(segment: Segment, table: pa.Table) -> None:
    if table.num_rows != segment.rows:
        raise ValueError(f"its seqs are not {segment.first_seq} to {segment.last_seq}")
    checks = checksums(table)
    if changed := [name for name, check in segment.checks.items() if checks.get(name) != check]:
        raise ValueError(f"the checksum of {', '.join(changed)} does not match")


def _content(segment: Segment, needed: Needed | None) -> tuple[pa.BufferReader, list[int] | None]:
    """Read a file; of a large one only the footer and the needed row groups, with zeros between, and return these."""
    ranges = None
    if needed is not None and segment.size > _LARGE:
        tail = read_tail(segment.store, segment.name)
        ranges = _ranges(segment, tail, needed)
    # Read before it is parsed: an error of the store is not damage of the segment.
    with segment.store.explained("cannot be read", segment.name), segment.store.open(segment.name) as file:
        if ranges is None:
            return pa.BufferReader(file.read_buffer()), None
        content = bytearray(segment.size)  # untouched pages take no memory
        content[-len(tail) :] = tail
        for first, end in ranges.values():
            file.seek(first)
            content[first:end] = file.read(end - first)
    return pa.BufferReader(pa.py_buffer(content)), [*ranges]


def _ranges(segment: Segment, tail: bytes, needed: Needed) -> dict[int, tuple[int, int]] | None:
    """Return the byte ranges of the needed row groups, given the end of the file, by their indices; None for all."""
    with _reporting(segment):
        metadata = open_parquet(pa.BufferReader(tail)).metadata
        ranges = [_byte_range(metadata.row_group(group)) for group in range(metadata.num_row_groups)]
        if not all(0 <= first <= end <= segment.size for first, end in ranges):
            raise ValueError("its footer has offsets beyond the end of the file")
    groups = _groups(segment, metadata, needed)
    return None if len(groups) == len(ranges) else {group: ranges[group] for group in groups}


def _byte_range(group: pq.RowGroupMetaData) -> tuple[int, int]:
    columns = [group.column(number) for number in range(group.num_columns)]
    first = min(column.data_page_offset for column in columns)  # there are no dictionary pages
    return first, max(column.data_page_offset + column.total_compressed_size for column in columns)


def _read_covered(segment: Segment) -> Rows:
    for large, rows in chain(_latest, _covering(segment)):
        if large.store == segment.store and large.first_seq <= segment.first_seq <= segment.last_seq <= large.last_seq:
            _latest[:] = [(large, rows)]
            return rows[0].slice(segment.first_seq - large.first_seq, segment.rows), rows[1]
    reason = (
        "it was pruned" if segment.last_seq < read_pruned(segment.store).first_seq else "no other segment has its seqs"
    )
    raise MissingFileError(f"segment {segment.path}: it no longer exists, {reason}; open the log again")


def _covering(segment: Segment) -> Iterator[tuple[Segment, Rows]]:
    """Yield segments that cover a removed one, and their rows."""
    files = segment.store.files()
    for name in chosen(files)[0]:
        if name.first_seq <= segment.first_seq <= segment.last_seq <= name.last_seq:
            large = read_footer(segment.store, name, files[name.name])
            yield large, _read(large)


def _damaged_range(segment: Segment, content: pa.BufferReader, groups: Sequence[int] | None = None) -> str:
    """Return the path, and the seqs and fields that cannot be read: each row group has checksums of its own."""
    first, bad = segment.first_seq, []
    try:
        content.seek(0)
        with open_parquet(content) as file:
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
