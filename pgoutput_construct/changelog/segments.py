"""The rows of a segment: one Parquet file, written so that damage cannot go unnoticed."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pgoutput_construct.changelog.columns import SCHEMA, checksums, upgraded
from pgoutput_construct.changelog.events import OPTIONS_CHANGED, log_events
from pgoutput_construct.changelog.footer import DAMAGE, Position, Segment, damaged, footer_pairs, read_footer
from pgoutput_construct.changelog.index import SegmentIndex
from pgoutput_construct.changelog.names import chosen, segment_name
from pgoutput_construct.changelog.options import LOG_FORMAT, LogOptions
from pgoutput_construct.changelog.pruned import first_kept
from pgoutput_construct.changelog.store import LogStore, MissingFileError
from pgoutput_construct.errors import ChangeLogError

__all__ = ["GROUP_ROWS", "Position", "Segment", "read_segment", "write_segment"]

_LARGE_BYTES: Final = 2**26
GROUP_ROWS: Final = 2048
"""Rows in a group of a segment: damage is found in one of them, and the others stay readable."""


def read_segment(segment: Segment) -> pa.Table:
    """Read one segment with its checks; raise ChangeLogError when a byte of what it says has changed.

    A segment that was compacted away since it was listed is read from the one that covers it.
    """
    try:
        content = _content(segment)
    except MissingFileError:
        return _read_covered(segment)
    try:
        table = pq.read_table(content, page_checksum_verification=True, use_threads=False, partitioning=None)
        table = upgraded(table)
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
    return table


def _content(segment: Segment) -> pa.BufferReader:
    # Read before it is parsed: what the store cannot do is no damage of the segment.
    with segment.store.explained("cannot be read", segment.name), segment.store.open(segment.name) as file:
        return pa.BufferReader(file.read_buffer())


def _read_covered(segment: Segment) -> pa.Table:
    files = segment.store.files()
    for name in chosen(files)[0]:
        if name.first_seq <= segment.first_seq and name.last_seq is not None and name.last_seq >= segment.last_seq:
            table = read_segment(read_footer(segment.store, name, files[name.name]))
            return table.slice(segment.first_seq - name.first_seq, segment.rows)
    reason = "it was pruned" if segment.last_seq < first_kept(segment.store) else "no other segment has its seqs"
    raise MissingFileError(f"segment {segment.place}: it is no longer there, {reason}; open the log again")


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


def write_segment(
    store: LogStore,
    table: pa.Table,
    options: LogOptions,
    position: Position,
    index: SegmentIndex,
    group_rows: int = GROUP_ROWS,
) -> Segment:
    """Write one segment so that it is either complete and durable or not there.

    ``table`` has the columns of ``SCHEMA`` and at least one row, ``index`` is that of its rows. Raises
    ChangeLogError when the file exists.
    """
    first, last = table["seq"][0].as_py(), table["seq"][-1].as_py()
    name = segment_name(first, last)
    options = replace(options, log_format=LOG_FORMAT)
    told = *_told(table), pc.sum(pc.binary_length(table["payload"])).as_py()
    segment = Segment(store, name, options, first, last, position, checksums(table), *told, index=index.to_bytes())
    if store.has(name):
        raise ChangeLogError(f"{segment.place}: exists already, another program writes into this directory")
    try:
        with store.writing(name) as file:
            with pq.ParquetWriter(_sink(file), SCHEMA, store_schema=False, **_settings(table)) as parquet:
                parquet.write_table(table, row_group_size=group_rows)
                parquet.add_key_value_metadata(footer_pairs(segment))
            size = file.seek(0, os.SEEK_END)
    except (OSError, pa.ArrowException) as error:
        raise ChangeLogError(f"segment {segment.place} cannot be written: {error}") from error
    return replace(segment, size=size)


def _settings(table: pa.Table) -> dict[str, Any]:
    """Return how Parquet is written: what is large is not copied more often than Parquet itself does.

    Statistics would keep the least and the greatest payload in memory, and compression one more copy of each.
    """
    is_large = table["payload"].nbytes >= _LARGE_BYTES * table.num_rows
    return {
        "compression": "none" if is_large else "zstd",
        "use_dictionary": False,
        "write_page_checksum": True,
        "write_statistics": [name for name in SCHEMA.names if name != "payload"],
    }


def _sink(file: BinaryIO) -> Any:
    """Return what Parquet writes to: a file's path, where it has one, since Python's files get copies."""
    name = getattr(file, "name", None)
    return str(name) if isinstance(name, str | Path) else file


def _told(table: pa.Table) -> tuple[int, tuple[str, ...]]:
    """Return how many rows are events, and of which options they say that they changed."""
    events = table.filter(table["tag"].is_null())
    named = {name for event in log_events(events) if event.name == OPTIONS_CHANGED for name in event.details}
    return events.num_rows, tuple(sorted(named))
