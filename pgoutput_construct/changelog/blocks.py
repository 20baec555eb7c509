"""The transactions of many segments in blocks of a file, each read, and checked, when it is asked for."""

import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa

from pgoutput_construct.changelog.block import Numbers
from pgoutput_construct.changelog.ended import LISTS, Ended
from pgoutput_construct.changelog.footer import DAMAGE
from pgoutput_construct.changelog.log_index import parts_of
from pgoutput_construct.changelog.store import LogStore
from pgoutput_construct.errors import ChangeLogError

__all__ = ["PLACES", "Blocks", "write_blocks"]

PLACES: Final = ("block_start", "block_bytes", "block_check")
"""Where the block of a segment stands in the file, how long it is, and its CRC-32."""

_SCHEMA: Final = pa.schema([("transactions", LISTS)])


def write_blocks(file: BinaryIO, ended: Ended, counts: Numbers) -> dict[str, Numbers]:
    """Write transactions to the begin of a file; return the PLACES of each segment. ``counts`` says how many it has."""
    places = {name: np.zeros(len(ended), np.int64) for name in PLACES}
    start = 0
    for first, end in parts_of(counts):
        content = _packed(ended[first:end].lists())
        file.write(content)
        for name, number in zip(PLACES, (start, len(content), zlib.crc32(content)), strict=True):
            places[name][first:end] = number
        start += len(content)
    return places


@dataclass(frozen=True)
class Blocks:
    """The blocks of a file: ``Source`` of its segments."""

    store: LogStore
    name: str
    table: pa.Table
    """PLACES, a row a segment."""

    def read(self, first: int, end: int) -> pa.ChunkedArray:
        """Return the transactions of some segments; raise ChangeLogError for damage, and where the file is gone."""
        starts, sizes, checks = (self.table[name].to_numpy() for name in PLACES)
        chunks = []
        while first < end:
            begin, stop = (int(np.searchsorted(starts, starts[first], side)) for side in ("left", "right"))
            block = _block(self.store, self.name, int(starts[first]), int(sizes[first]), int(checks[first]))
            until = min(stop, end)
            chunks.append(block.slice(first - begin, until - first))
            first = until
        return pa.chunked_array(chunks, LISTS)


@lru_cache(maxsize=1)  # one segment after another is asked for
def _block(store: LogStore, name: str, start: int, size: int, check: int) -> pa.ListArray:
    with store.explained("cannot be read", name), store.open(name) as file:
        file.seek(start)
        content = file.read(size)
    try:
        if zlib.crc32(content) != check:
            raise ValueError(f"the checksum of {size} bytes from {start} on does not match")
        (batch,) = pa.ipc.open_stream(pa.BufferReader(content))
        batch.validate(full=True)
    except DAMAGE as error:
        place = store.place(name)
        raise ChangeLogError(f"{place}: damaged: {error}; remove it: the log's segments say the same") from error
    return batch.column(0)


def _packed(lists: pa.ChunkedArray) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_batch(pa.record_batch([pa.concat_arrays(lists.chunks)], _SCHEMA))
    content: bytes = sink.getvalue().to_pybytes()
    return content
