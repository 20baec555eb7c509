"""Writes the rows of a segment as one Parquet file with checksums of pages, columns, footer and index."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pgoutput_construct.changelog._segment.events import OPTIONS_CHANGED, log_events
from pgoutput_construct.changelog._segment.footer import Position, Segment, footer_pairs, segment_name
from pgoutput_construct.changelog._segment.large_payload import ends_large, write_large
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.changelog._segment.segment_schema import SCHEMA, checksums
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.errors import ChangeLogError

__all__ = ["GROUP_ROWS", "write_segment"]

GROUP_ROWS: Final = 2048
"""Rows in a row group: damage is confined to one, and the others stay readable."""
_NUMBERS: Final = [each.name for each in SCHEMA if pa.types.is_integer(each.type) or pa.types.is_timestamp(each.type)]
_SETTINGS: Final[dict[str, Any]] = {
    # Consecutive numbers differ little: delta encoding makes them smaller than zstd does, in a third of the time.
    "column_encoding": dict.fromkeys(_NUMBERS, "DELTA_BINARY_PACKED"),
    "compression": {name: "zstd" if name == "payload" else "none" for name in SCHEMA.names},
    "use_dictionary": False,
    "write_page_checksum": True,
    "write_batch_size": 8192,  # rows encoded at a time: with the default 1024 writing takes a tenth longer
    # Statistics of the payload would keep the smallest and the largest one in memory.
    "write_statistics": [name for name in SCHEMA.names if name != "payload"],
}


def write_segment(
    store: LogStore,
    table: pa.Table,
    options: LogOptions,
    position: Position,
    index: SegmentIndex,
    group_rows: int = GROUP_ROWS,
) -> Segment:
    """Write one segment; when this returns, it is durable, and if it raises, it does not exist.

    Args:
        store: The store of the log.
        table: Rows with the columns of SCHEMA, at least one.
        options: The options under which they were captured.
        position: How far the log is complete with this segment.
        index: The index of the rows.
        group_rows: Rows in a row group.

    Raises:
        ChangeLogError: The file exists already, or it cannot be written.
    """
    first, last = table["seq"][0].as_py(), table["seq"][-1].as_py()
    name = segment_name(first, last)
    said = *_event_counts(table), pc.sum(pc.binary_length(table["payload"])).as_py()
    segment = Segment(store, name, options, first, last, position, checksums(table), *said, index=index.to_bytes())
    if store.has(name):
        raise ChangeLogError(f"{segment.path}: exists already: another program writes into this log")
    try:
        with store.writing(name) as file:
            if ends_large(table):
                write_large(file, table, footer_pairs(segment), group_rows, _SETTINGS)
            else:
                with pq.ParquetWriter(_sink(file), SCHEMA, store_schema=False, **_SETTINGS) as parquet:
                    parquet.write_table(table, row_group_size=group_rows)
                    parquet.add_key_value_metadata(footer_pairs(segment))
            size = file.seek(0, os.SEEK_END)
    except (OSError, pa.ArrowException) as error:
        raise ChangeLogError(f"segment {segment.path} cannot be written: {error}") from error
    return replace(segment, size=size)


def _sink(file: BinaryIO) -> Any:
    """Return the path of a file, if it has one, for Parquet to write to: a Python file object would get copies."""
    name = getattr(file, "name", None)
    return str(name) if isinstance(name, str | Path) else file


def _event_counts(table: pa.Table) -> tuple[int, tuple[str, ...]]:
    """Return the number of events, and the names of the options whose change they record."""
    events = table.filter(table["tag"].is_null())
    named = {name for event in log_events(events) if event.name == OPTIONS_CHANGED for name in event.details}
    return events.num_rows, tuple(sorted(named))
