"""The keys of rows as they were sent: bytes by which rows of one table are told apart, whatever their types."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pgoutput_construct.columnar.decode_plan import SENT, DecodePlan
from pgoutput_construct.columnar.index import BatchIndex
from pgoutput_construct.columnar.table import BLOCK_ROWS, RowImages
from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.wire.protocol import RelationColumnFlags

__all__ = ["UnsentKeyError", "row_keys"]

Numbers = NDArray[np.int64]

_NO_COLUMNS: Final = pa.schema([])


class UnsentKeyError(Exception):
    """A column of the key was not sent, or is null: nothing says which row this is."""


def row_keys(index: BatchIndex, rows: Numbers, side: str, description: Description, names: Sequence[str]) -> pa.Array:
    """Return the keys of rows, as binary values: of each column its length in 4 bytes, and its bytes.

    Args:
        index: The index of a batch.
        rows: The indexes of payloads, all of which have a tuple on this side.
        side: ``new`` or ``old``.
        description: The Relation that describes them.
        names: The columns of the key.

    Raises:
        UnsentKeyError: A row lacks a value of a column, or the Relation lacks the column.
        ProtocolError: A row has more or fewer values than its Relation has columns.
    """
    columns = enumerate(description.relation.columns)
    numbers = {column.name: number for number, column in columns if column.flags & RelationColumnFlags.KEY}
    if not numbers.keys() >= set(names):
        raise UnsentKeyError(f"{full_name(description.relation)} had another key than {', '.join(names)}")
    positions = [numbers[name] for name in names]
    return pa.concat_arrays([pa.array([], pa.binary()), *_blocks(index, rows, side, description, positions)])


def _blocks(
    index: BatchIndex, rows: Numbers, side: str, description: Description, positions: Sequence[int]
) -> Iterator[pa.Array]:
    plan = DecodePlan(description, _NO_COLUMNS)
    for first in range(0, len(rows), BLOCK_ROWS):
        images = RowImages(index, plan, rows[first : first + BLOCK_ROWS], side)
        if not images.fits:
            raise ProtocolError(f"a row of {full_name(description.relation)} does not have the columns of its Relation")
        parts = []
        for position in positions:
            if not np.isin(images.tags[position], [*SENT.values()]).all():
                raise UnsentKeyError(f"a row of {full_name(description.relation)} lacks a value of its key")
            lengths = images.lengths[position].astype(np.int64)
            parts += [_lengths(lengths), _values(index.data, images.starts[position], lengths)]
        yield pc.binary_join_element_wise(*parts, b"")


def _lengths(lengths: Numbers) -> pa.Array:
    """Return numbers as binary values of four bytes."""
    content = lengths.astype(">u4").tobytes()
    offsets = np.arange(len(lengths) + 1, dtype=np.int32) * 4
    return pa.BinaryArray.from_buffers(pa.binary(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(content)])


def _values(data: NDArray[np.uint8], starts: Numbers, lengths: Numbers) -> pa.Array:
    """Return pieces of a buffer as binary values."""
    ends = np.cumsum(lengths)
    where = np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)
    offsets = np.append(0, ends).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data[where]))]
    return pa.BinaryArray.from_buffers(pa.binary(), len(lengths), buffers)
