"""The rows of one segment, with all checks: damage cannot go unnoticed, and is told by seq and field."""

from collections.abc import Iterator
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pgoutput_construct.changelog.columns import SCHEMA, checksums, upgraded
from pgoutput_construct.changelog.footer import DAMAGE, Segment, damaged, footer_index, read_footer
from pgoutput_construct.changelog.index import SegmentIndex
from pgoutput_construct.changelog.names import chosen
from pgoutput_construct.changelog.pruned import first_kept
from pgoutput_construct.changelog.store import MissingFileError

__all__ = ["read_indexed", "read_segment"]

Rows = tuple[pa.Table, bytes | None]
"""The rows of a segment, and the index in its footer."""

_latest: Final[list[tuple[Segment, Rows]]] = []
"""The segment that covered one that was gone, and its rows: who reads many small segments needs it for each."""


def read_segment(segment: Segment) -> pa.Table:
    """Read one segment with its checks; raise ChangeLogError when a byte of what it says has changed.

    A segment that was compacted away since it was listed is read from the one that covers it.
    """
    return _read(segment)[0]


def read_indexed(segment: Segment) -> tuple[pa.Table, SegmentIndex | None]:
    """Read the rows of a segment, as ``read_segment`` does, and the index in its file; None in format 1.

    The index of a segment that was compacted away is that of the one that covers it, which has more rows.
    """
    table, content = _read(segment)
    try:
        return table, None if content is None else SegmentIndex.from_bytes(content)
    except DAMAGE as error:
        raise damaged(segment.place, error) from error


def _read(segment: Segment) -> Rows:
    try:
        content = _content(segment)
    except MissingFileError:
        return _read_covered(segment)
    try:
        # Not read_table: its datasets cost three times as much as all else for a small segment.
        file = pq.ParquetFile(content, page_checksum_verification=True)
        table = upgraded(file.read(use_threads=False))
        if not table.schema.equals(SCHEMA):
            raise ValueError(f"its columns are {table.schema.names}")
        table.validate(full=True)
        if not np.array_equal(table["seq"].to_numpy(), np.arange(segment.first_seq, segment.last_seq + 1)):
            raise ValueError(f"its seqs are not {segment.first_seq} to {segment.last_seq}")
        checks = checksums(table)
        if changed := [name for name, check in segment.checks.items() if checks.get(name) != check]:
            raise ValueError(f"the checksum of {', '.join(changed)} does not match")
    except DAMAGE as error:
        raise damaged(_damaged_place(segment, content), error) from error
    return table, footer_index(file.metadata.metadata)


def _content(segment: Segment) -> pa.BufferReader:
    # Read before it is parsed: what the store cannot do is no damage of the segment.
    with segment.store.explained("cannot be read", segment.name), segment.store.open(segment.name) as file:
        return pa.BufferReader(file.read_buffer())


def _read_covered(segment: Segment) -> Rows:
    for large, rows in chain(_latest, _covering(segment)):
        if large.store == segment.store and large.first_seq <= segment.first_seq <= segment.last_seq <= large.last_seq:
            _latest[:] = [(large, rows)]
            return rows[0].slice(segment.first_seq - large.first_seq, segment.rows), rows[1]
    reason = "it was pruned" if segment.last_seq < first_kept(segment.store) else "no other segment has its seqs"
    raise MissingFileError(f"segment {segment.place}: it is no longer there, {reason}; open the log again")


def _covering(segment: Segment) -> Iterator[tuple[Segment, Rows]]:
    """Yield the segment that covers one that is gone, and its rows."""
    files = segment.store.files()
    for name in chosen(files)[0]:
        if name.first_seq <= segment.first_seq and name.last_seq is not None and name.last_seq >= segment.last_seq:
            large = read_footer(segment.store, name, files[name.name])
            yield large, _read(large)


def _damaged_place(segment: Segment, content: pa.BufferReader) -> str:
    """Say which rows and columns cannot be read: each group of rows has checksums of its own."""
    first, bad = segment.first_seq, []
    try:
        content.seek(0)
        with pq.ParquetFile(content, page_checksum_verification=True) as file:
            for group in range(file.num_row_groups):
                end = first + file.metadata.row_group(group).num_rows
                names = (name for name in file.schema_arrow.names if not _is_readable(file, group, name))
                bad += [(first, end - 1, name) for name in names]
                first = end
    except DAMAGE:
        return segment.place
    if not bad:
        return f"{segment.place}, seq {segment.first_seq} to {segment.last_seq}"
    return f"{segment.place}, seq {bad[0][0]} to {bad[-1][1]}, field {', '.join(sorted({name for *_, name in bad}))}"


def _is_readable(file: pq.ParquetFile, group: int, name: str) -> bool:
    try:
        file.read_row_group(group, columns=[name])
    except DAMAGE:
        return False
    return True
