"""Writes a segment that ends with a very large payload, without the copies that Parquet's writer makes.

No other module patches Parquet by hand. The writer of pyarrow copies a value into its page and the page into
what it writes; where it compresses, there is a third copy. While one value of 600 MB is captured (PostgreSQL 18, binary
format, pyarrow 26.0) the peak of the process is 1.5 GB with this module, and 3.3 GB where pyarrow writes the segment,
without compression and in whichever encoding.

The writer gets an empty payload instead of the large one, which is the last value of the file and alone in its column
chunk. So the file that it writes ends with the page of that payload, and the footer. The payload is then inserted into
the page, and its size into the page header and the footer: both are structs in Thrift's compact protocol, which are
parsed, changed, and serialized again.

Source: parquet.thrift of the Parquet format.
"""

import io
import zlib
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from pgoutput_construct.changelog._segment.segment_schema import SCHEMA
from pgoutput_construct.changelog._segment.thrift import Struct, read_struct, struct_bytes
from pgoutput_construct.columnar.index import payload_bounds

__all__ = ["ends_large", "write_large"]

_LARGE_BYTES: Final = 2**26
_MAGIC: Final = b"PAR1"
_TAIL: Final = 4 + len(_MAGIC)  # after the footer: its size, and the magic bytes
_UNCOMPRESSED_SIZE, _COMPRESSED_SIZE, _CRC = 2, 3, 4
"""Fields of PageHeader (parquet.thrift of the Parquet format)."""
_ROW_GROUPS, _COLUMNS, _GROUP_SIZE, _GROUP_COMPRESSED, _COLUMN_METADATA = 4, 1, 2, 6, 3
"""Fields of FileMetaData, RowGroup and ColumnChunk."""
_TOTAL_UNCOMPRESSED, _TOTAL_COMPRESSED, _PAGE_OFFSET, _SIZE_STATISTICS = 6, 7, 9, 16
"""Fields of ColumnMetaData."""


def ends_large(table: pa.Table) -> bool:
    """Return whether the last payload of a table of SCHEMA is large; a capture ends the segment after each of them."""
    return len(_last_payload(table)) >= _LARGE_BYTES


def write_large(
    file: BinaryIO, table: pa.Table, pairs: Mapping[bytes, bytes], group_rows: int, settings: Mapping[str, Any]
) -> None:
    """Write a table whose last payload is large, uncompressed.

    Args:
        file: The file, empty.
        table: Rows with the columns of SCHEMA.
        pairs: The segment's footer, as key-value metadata of Parquet.
        group_rows: Rows in a row group; the last row is a row group by itself.
        settings: Arguments of ParquetWriter; ``compression`` is ignored.
    """
    content = io.BytesIO(_with_stand_in(table, pairs, group_rows, {**settings, "compression": "none"}))
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


def _with_stand_in(
    table: pa.Table, pairs: Mapping[bytes, bytes], group_rows: int, settings: Mapping[str, Any]
) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    rest, last = table.slice(0, table.num_rows - 1), table.slice(table.num_rows - 1)
    index = SCHEMA.get_field_index("payload")
    with pq.ParquetWriter(sink, SCHEMA, store_schema=False, **settings) as parquet:
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
