"""How much memory the bytes of a file may take: what they claim is compared with their number before it is allocated.

Parquet and Arrow trust what a file says of itself. 28 kB can contain 10^9 equal values, or a page of 2 GB of zeros, of
which the metadata need not say anything. So before rows are read, this module adds up what reading them allocates:

- A column of numbers takes eight bytes a row, however it is encoded. The rows are those of the row groups.
- A page that is compressed takes what its header says: that is what the decompression allocates. Other pages are bytes
  of the file.
- Payloads must have the encoding PLAIN, which takes as much as its page. Of a dictionary one entry could be repeated
  for each row, and the encodings DELTA repeat what is equal.
- A batch of an Arrow stream says before each compressed buffer how large it is. One that is not compressed is a part
  of the stream, and if it is too short, ``validate`` reports it.

Sources: parquet.thrift of the Parquet format (PageHeader); Message.fbs and Schema.fbs of Arrow, and its section "IPC
Buffer Compression"; FlatBuffers Internals.
"""

import io
from collections.abc import Iterable
from struct import unpack_from
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from pgoutput_construct.changelog._segment.thrift import read_struct
from pgoutput_construct.errors import ChangeLogError

__all__ = ["check_limits", "check_row_groups", "decompressed", "open_parquet", "read_stream"]

_LARGEST_PAYLOAD_BYTES: Final = 2**27
_LARGEST_ROWS: Final = 1_500_000
"""What a segment may have that is written, but for one payload that is larger by itself: rows of ten numbers and these
payloads can be read whatever the size of the file is."""
_ALWAYS: Final = 2**28
_RATIO: Final = 128
"""A file may take 256 MB, twice what a compacted segment has at most, or 128 times its size. Of real changes zstd makes
a tenth, of equal ones in the largest segments a hundredth."""
_CONTAINER: Final = 2**16
"""The most elements of a list in a footer: Parquet allocates as many as it claims. There are two row groups in 4096
rows."""
_PHYSICAL_TYPES: Final = frozenset(("BOOLEAN", "INT32", "INT64", "BYTE_ARRAY"))
_PAGE_HEADER: Final = 4096
_PIECE: Final = 2**18
_NUMBER_BYTES: Final = 8

_TYPE, _UNCOMPRESSED, _COMPRESSED, _DATA_PAGE = 1, 2, 3, 5
_ENCODING: Final = 2
"""Fields of PageHeader and DataPageHeader."""
_IS_DATA_PAGE: Final = 0
_IS_PLAIN: Final = 0
_HEADER, _BUFFERS, _COMPRESSION = 2, 2, 3
"""Fields of the tables Message and RecordBatch."""


def check_limits(rows: int, payload_bytes: int) -> None:
    """Raise ChangeLogError for limits of a segment by which one is written that might be refused when it is read."""
    if rows > _LARGEST_ROWS or payload_bytes > _LARGEST_PAYLOAD_BYTES:
        raise ChangeLogError(
            f"limits of a segment: rows must be at most {_LARGEST_ROWS}, payload_bytes at most {_LARGEST_PAYLOAD_BYTES}"
        )


def open_parquet(content: pa.NativeFile) -> pq.ParquetFile:
    """Open a file of Parquet, or the end of one that has its footer; raises Arrow's errors for a damaged one."""
    return pq.ParquetFile(content, page_checksum_verification=True, thrift_container_size_limit=_CONTAINER)


def check_row_groups(file: pq.ParquetFile, groups: Iterable[int], content: pa.BufferReader, schema: pa.Schema) -> None:
    """Check the row groups of a segment before they are read; raise ValueError for what this version does not write.

    Args:
        file: The file.
        groups: The indices of the row groups.
        content: Its content, of which the row groups must be there.
        schema: The columns that it may have.
    """
    names = file.schema_arrow.names
    if len({*names}) < len(names) or not all(field in [*schema] for field in file.schema_arrow):
        raise ValueError(f"it has the columns {names}")
    claimed = 0
    for group in map(file.metadata.row_group, groups):
        claimed += max(group.num_rows, 0) * len(schema) * _NUMBER_BYTES
        for column in map(group.column, range(group.num_columns)):
            if column.physical_type not in _PHYSICAL_TYPES:
                raise ValueError(f"{column.path_in_schema} consists of {column.physical_type}")
            if column.physical_type == "BYTE_ARRAY" or column.compression != "UNCOMPRESSED":
                claimed += sum(_page_sizes(column, content))
            _check(claimed, content.size())


def _page_sizes(column: pq.ColumnChunkMetaData, content: pa.BufferReader) -> Iterable[int]:
    """Yield the sizes of the uncompressed pages of a column chunk."""
    start, size = column.data_page_offset, column.total_compressed_size
    if column.has_dictionary_page or not 0 <= size <= content.size() - start:
        raise ValueError(f"{column.path_in_schema} has a dictionary, or is not within the file")
    while size > 0:
        content.seek(start)
        window = io.BytesIO(content.read(_PAGE_HEADER))
        header = read_struct(window)
        kind, uncompressed, compressed = (header.get(name, (0, -1))[1] for name in (_TYPE, _UNCOMPRESSED, _COMPRESSED))
        _, page = header.get(_DATA_PAGE, (0, None))
        is_plain = isinstance(page, dict) and page.get(_ENCODING, (0, -1))[1] == _IS_PLAIN
        if kind != _IS_DATA_PAGE or (column.physical_type == "BYTE_ARRAY" and not is_plain):
            raise ValueError(f"{column.path_in_schema} has pages that are not of plain values")
        if uncompressed < 0 or not 0 <= compressed <= size:
            raise ValueError(f"{column.path_in_schema} has a page that is larger than the column")
        yield uncompressed
        start, size = start + window.tell() + compressed, size - window.tell() - compressed


def decompressed(content: bytes) -> pa.Buffer:
    """Decompress what zstd has compressed; raise ValueError if that is too much, Arrow's errors for anything else."""
    pieces, size = [], 0
    with pa.CompressedInputStream(pa.BufferReader(content), "zstd") as source:
        while piece := source.read(_PIECE):
            pieces.append(piece)
            size += len(piece)
            _check(size, len(content))
    return pa.py_buffer(b"".join(pieces))


def read_stream(content: pa.Buffer | bytes, schema: pa.Schema) -> pa.Table:
    """Read an Arrow stream of a schema, and check all of it; raise ValueError, or Arrow's errors, for anything else."""
    buffer = pa.py_buffer(content)
    messages, claimed = pa.ipc.MessageReader.open_stream(pa.BufferReader(buffer)), 0
    if messages.read_next_message().type != "schema":
        raise ValueError("it is no Arrow stream")
    for message in messages:
        if message.type != "record batch":
            raise ValueError(f"it has a {message.type}")
        claimed += _buffer_sizes(message)
        _check(claimed, buffer.size)
    stream = pa.ipc.open_stream(pa.BufferReader(buffer))
    if not stream.schema.equals(schema):
        raise ValueError(f"it has the columns {stream.schema.names}")
    table = stream.read_all()
    table.validate(full=True)  # Arrow trusts list offsets: one out of range would crash the process
    return table


def _buffer_sizes(message: pa.ipc.Message) -> int:
    """Return the bytes of the buffers of a batch after their decompression; 0 if they are not compressed."""
    table = memoryview(message.metadata)
    batch = _follow(table, _field(table, _follow(table, 0), _HEADER))
    if not _field(table, batch, _COMPRESSION):
        return 0
    buffers, sizes = _follow(table, _field(table, batch, _BUFFERS)), 0
    for number in range(unpack_from("<I", table, buffers)[0]):
        start, size = unpack_from("<qq", table, buffers + 4 + 16 * number)
        if size and not 0 <= start <= message.body.size - _NUMBER_BYTES:
            raise ValueError("it has a buffer that is not within its batch")
        if size:
            sizes += max(unpack_from("<q", message.body, start)[0], 0)  # -1: this one is not compressed
    return sizes


def _follow(table: memoryview, offset: int) -> int:
    return int(offset + unpack_from("<I", table, offset)[0])


def _field(table: memoryview, start: int, number: int) -> int:
    """Return the offset of a field of a FlatBuffers table, which Arrow has verified; 0 if it is not there."""
    fields = start - unpack_from("<i", table, start)[0]
    if 4 + 2 * number >= unpack_from("<H", table, fields)[0]:
        return 0
    offset: int = unpack_from("<H", table, fields + 4 + 2 * number)[0]
    return offset and start + offset


def _check(claimed: int, size: int) -> None:
    if claimed > (most := max(_ALWAYS, _RATIO * size)):
        raise ValueError(f"{size} bytes claim to be {claimed} bytes or more; at most {most} are read")
