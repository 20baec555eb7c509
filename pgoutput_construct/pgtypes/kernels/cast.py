"""From kernels to casts: the buffers that a kernel fills, and what it leaves to the slow path."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.compiled.memory import bitmap

__all__ = ["LEFT", "NULL", "TAKEN", "Cast", "ColumnValues", "Result", "array_of"]

NULL: Final = 0
TAKEN: Final = 1
LEFT: Final = 2
"""What a kernel says of a row: no value of this format, taken, or left to be loaded by itself."""

SLACK: Final = 8
"""Bytes after a buffer that the last word written to it may run over."""

Flags = NDArray[np.bool_]


@dataclass(slots=True)
class ColumnValues:
    """Values of one column that came in one format; rows with another tag have none."""

    data: NDArray[np.uint8]
    """The bytes of the batch."""
    starts: NDArray[np.signedinteger[Any]]
    """Where each value starts."""
    lengths: NDArray[np.int32]
    """How many bytes each has."""
    tags: NDArray[np.uint8]
    """The tag of each value (VALUE_TAGS)."""
    code: int
    """The tag of those meant here."""
    count: int
    """How many have it."""
    size: int
    """How many bytes all values have, whatever their tag."""

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def given(self) -> Any:
        """What every kernel is given first."""
        return self.data, self.starts, self.lengths, self.tags, self.code


Result = tuple[pa.Array, Flags | None]
Cast = Callable[[ColumnValues, pa.DataType], Result]
"""Returns an array of the type, and which rows are left (None for none): these are null, to be loaded one by one."""


def array_of(
    values: ColumnValues, target: pa.DataType, state: NDArray[np.uint8], missing: int, *buffers: Any
) -> Result:
    """Return what a cast does, from the buffers that a kernel has filled, and the rows that it says are missing."""
    left = state == LEFT if missing > len(values) - values.count else None
    taken = state if left is None else state == TAKEN
    validity = bitmap(taken) if missing else None
    return pa.Array.from_buffers(target, len(state), [validity, *map(pa.py_buffer, buffers)]), left
