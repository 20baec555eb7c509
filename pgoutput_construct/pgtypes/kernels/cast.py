"""Casts: from the values of a column in one format to an Arrow array, and the rows that are left to the slow path."""

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
"""The result of a kernel for a row: no value of this format, decoded, or left to the slow path."""

SLACK: Final = 8
"""Spare bytes after a buffer, because kernels write whole words: the last one may extend past the end."""

Flags = NDArray[np.bool_]


@dataclass(slots=True)
class ColumnValues:
    """The values of one column in one format; rows with another tag are null."""

    data: NDArray[np.uint8]
    """The bytes of the batch."""
    starts: NDArray[np.signedinteger[Any]]
    """The offset of each value."""
    lengths: NDArray[np.int32]
    """The length of each value in bytes."""
    tags: NDArray[np.uint8]
    """The tag of each value (VALUE_TAGS)."""
    code: int
    """The tag of the values to decode."""
    count: int
    """The number of values with this tag."""
    size: int
    """The total bytes of all values, whatever their tag."""

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def given(self) -> Any:
        """The first arguments of every kernel."""
        return self.data, self.starts, self.lengths, self.tags, self.code


Result = tuple[pa.Array, Flags | None]
Cast = Callable[[ColumnValues, pa.DataType], Result]
"""Returns an array of the type, and a mask of the rows that are left (None: none), which are null in the array."""


def array_of(
    values: ColumnValues, target: pa.DataType, state: NDArray[np.uint8], missing: int, *buffers: Any
) -> Result:
    """Return the result of a cast from what a kernel has written.

    Args:
        values: The values.
        target: The Arrow type.
        state: NULL, TAKEN or LEFT for each row.
        missing: The number of rows that are not TAKEN.
        buffers: The data buffers of the array, without the validity bitmap.
    """
    left = state == LEFT if missing > len(values) - values.count else None
    taken = state if left is None else state == TAKEN
    validity = bitmap(taken) if missing else None
    return pa.Array.from_buffers(target, len(state), [validity, *map(pa.py_buffer, buffers)]), left
