"""Writes the rows of a segment as one Parquet file with checksums of pages, columns, footer and index."""

import io
import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pgoutput_construct.changelog._segment.events import OPTIONS_CHANGED, log_events
from pgoutput_construct.changelog._segment.footer import Position, Segment, footer_pairs, segment_name
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.changelog._segment.segment_schema import SCHEMA, checksums
from pgoutput_construct.changelog._segment.thrift import Struct, read_struct, struct_bytes
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.columnar.index import payload_bounds
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

_LARGE_BYTES: Final = 2**26
"""A capture ends the segment after each payload that is so large."""
_MAGIC: Final = b"PAR1"
_TAIL: Final = 4 + len(_MAGIC)  # after the footer: its size, and the magic bytes
_UNCOMPRESSED_SIZE, _COMPRESSED_SIZE, _CRC = 2, 3, 4
"""Fields of PageHeader (parquet.thrift of the Parquet format)."""
_ROW_GROUPS, _COLUMNS, _GROUP_SIZE, _GROUP_COMPRESSED, _COLUMN_METADATA = 4, 1, 2, 6, 3
"""Fields of FileMetaData, RowGroup and ColumnChunk."""
_TOTAL_UNCOMPRESSED, _TOTAL_COMPRESSED, _PAGE_OFFSET, _SIZE_STATISTICS = 6, 7, 9, 16
"""Fields of ColumnMetaData."""


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
            if len(_last_payload(table)) >= _LARGE_BYTES:
                _write_large(file, table, footer_pairs(segment), group_rows)
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


def _write_large(file: BinaryIO, table: pa.Table, pairs: Mapping[bytes, bytes], group_rows: int) -> None:
    """Write a table whose last payload is large, uncompressed; the last row is a row group by itself.

    ``pairs`` are the segment's footer, as key-value metadata of Parquet. Nothing else patches Parquet by hand. The
    writer of pyarrow copies a value into its page and the page into what it writes; where it compresses, there is a
    third copy. While one value of 600 MB is captured (PostgreSQL 18, binary format, pyarrow 26.0) the peak of the
    process is 1.5 GB this way, and 3.3 GB where pyarrow writes the segment, without compression and in whichever
    encoding.

    The writer gets an empty payload instead of the large one, which is the last value of the file and alone in its
    column chunk. So the file that it writes ends with the page of that payload, and the footer. The payload is then
    inserted into the page, and its size into the page header and the footer: both are structs in Thrift's compact
    protocol, which are parsed, changed, and serialized again.
    """
    content = io.BytesIO(_with_stand_in(table, pairs, group_rows))
    payload = _last_payload(table)
    footer, page_start = _read_footer(content)
    content.seek(page_start)
    header = read_struct(content)
    length = len(payload).to_bytes(4, "little")  # precedes each value in the encoding PLAIN
    _change(header, _UNCOMPRESSED_SIZE, lambda size: size + len(payload))
    _change(header, _COMPRESSED_SIZE, lambda size: size + len(payload))
    _change(header, _CRC, lambda _: _signed(zlib.crc32(payload, zlib.crc32(length))))
    before = content.tell() - page_start
    head = struct_bytes(header)
    _grow(footer, len(payload) + len(head) - before)
    end = struct_bytes(footer)
    file.write(content.getbuffer()[:page_start])
    for piece in (head, length, payload, end, len(end).to_bytes(4, "little"), _MAGIC):
        file.write(piece)


def _last_payload(table: pa.Table) -> memoryview:
    data, starts, ends = payload_bounds(table["payload"].slice(table.num_rows - 1).chunk(0))
    return data[starts[0] : ends[0]].data


def _with_stand_in(table: pa.Table, pairs: Mapping[bytes, bytes], group_rows: int) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    rest, last = table.slice(0, table.num_rows - 1), table.slice(table.num_rows - 1)
    index = SCHEMA.get_field_index("payload")
    with pq.ParquetWriter(sink, SCHEMA, store_schema=False, **{**_SETTINGS, "compression": "none"}) as parquet:
        if rest.num_rows:
            parquet.write_table(rest, row_group_size=group_rows)
        parquet.write_table(last.set_column(index, SCHEMA.field(index), pa.array([b""])))
        parquet.add_key_value_metadata(pairs)
    return sink.getvalue()


def _read_footer(content: io.BytesIO) -> tuple[Struct, int]:
    """Return the footer, and the offset of the last page."""
    end = content.seek(-_TAIL, io.SEEK_END)
    content.seek(end - int.from_bytes(content.read(4), "little"))
    footer = read_struct(content)
    return footer, _last_column(footer)[_PAGE_OFFSET][1]


def _last_column(footer: Struct) -> Struct:
    group = footer[_ROW_GROUPS][1][1][-1]
    metadata: Struct = group[_COLUMNS][1][1][-1][_COLUMN_METADATA][1]
    return metadata


def _grow(footer: Struct, size: int) -> None:
    group, column = footer[_ROW_GROUPS][1][1][-1], _last_column(footer)
    for fields, numbers in (
        (group, (_GROUP_SIZE, _GROUP_COMPRESSED)),
        (column, (_TOTAL_UNCOMPRESSED, _TOTAL_COMPRESSED)),
    ):
        for number in numbers:
            _change(fields, number, lambda before: before + size)
    column.pop(_SIZE_STATISTICS, None)  # optional


def _change(fields: Struct, number: int, change: Callable[[int], int]) -> None:
    kind, value = fields[number]
    fields[number] = kind, change(value)


def _signed(number: int) -> int:
    return number - 2**32 if number >= 2**31 else number
