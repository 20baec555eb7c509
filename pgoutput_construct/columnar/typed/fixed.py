"""Numbers in binary format: the walk over rows reads them on its way, without noting where they are."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.columnar.jit import inlined, kernel, put8, put16, put32, put64, u8, u16, u32, u64
from pgoutput_construct.columnar.typed.column import LEFT, NULL, TAKEN, Result, Values, array_of
from pgoutput_construct.columnar.typed.decimals import WIDTH as DECIMAL
from pgoutput_construct.columnar.typed.decimals import read_decimal

__all__ = ["DECIMAL_BINARY", "ENTRIES", "READ", "Number", "Plan", "lay_out", "put_number", "read_number"]

READ: Final = 1
"""What stands for the tag of a value that was read: no protocol has it, since it is no character."""

TAG, SIZE, SIGN, LOW, HIGH, MORE, WIDTH, FIRST = range(8)
ENTRIES: Final = 8
"""What a plan says of a column: the tag of its values (0 for a column that is not read) and their bytes, the bit of
their sign (0 for none), the lowest and the highest number taken, what is added to it, the bytes that a number has in
Arrow, and where the first one is written."""

NUMERIC: Final = -1
"""The size of what has none: a numeric, whose plan says the precision and the scale where others have bounds."""

LINE: Final = 64
"""Bytes at whose multiples Arrow wants a buffer to begin."""

Plan = NDArray[np.int64]
"""ENTRIES for each column."""
Bytes = NDArray[np.uint8]


@inlined
def put_number(number: int, plan: Any, column: int, row: int, out: Any) -> None:
    """Write a number of a column that is read."""
    width = plan[WIDTH, column]
    place = plan[FIRST, column] + row * width
    if width >= 8:
        put64(out, place, number)
        if width == DECIMAL:
            put64(out, place + 8, number >> 63)
    elif width == 4:
        put32(out, place, number)
    elif width == 2:
        put16(out, place, number)
    else:
        put8(out, place, number)


@inlined
def read_number(data: Any, at: int, length: int, plan: Any, column: int, row: int, out: Any) -> bool:
    """Read a value that has the tag of the plan; return whether it is taken."""
    size = plan[SIZE, column]
    if size == NUMERIC:
        place = plan[FIRST, column] + row * DECIMAL
        return read_decimal(data, at, length, plan[LOW, column], plan[HIGH, column], out, place)
    if length != size:
        return False
    if size == 8:
        number = u64(data, at)
    elif size == 4:
        number = u32(data, at)
    else:
        number = u16(data, at) if size == 2 else u8(data, at)
    number = (number ^ plan[SIGN, column]) - plan[SIGN, column]
    if number < plan[LOW, column] or number > plan[HIGH, column]:
        return False
    put_number(number + plan[MORE, column], plan, column, row, out)
    return True


@kernel
def _read_numbers(data: Any, starts: Any, lengths: Any, tags: Any, code: int, plan: Any, out: Any, state: Any) -> int:
    missing = 0
    for row in range(len(starts)):
        taken = False
        if tags[row] == code:
            taken = read_number(data, starts[row], lengths[row], plan, 0, row, out)
        state[row] = TAKEN if taken else LEFT if tags[row] == code else NULL
        missing += not taken
    return missing


@dataclass(frozen=True)
class Number:
    """The cast of a type whose values are numbers of a fixed size."""

    size: int
    """Bytes of a value."""
    signed: bool = True
    low: int = -(1 << 63)
    high: int = (1 << 63) - 1
    """The lowest and the highest number taken."""
    more: int = 0
    """What is added to each."""
    bits_of: pa.DataType | None = None
    """The type of which the numbers are the bits, None where they are numbers of the column's type."""

    def __call__(self, values: Values, target: pa.DataType) -> Result:
        """Cast values whose places are known."""
        plan, out = lay_out(np.array([self.entries(target, values.code)]).T, len(values))
        out.fill(0)
        state = np.empty(len(values), np.uint8)
        missing = _read_numbers(*values.given, plan, out, state)
        array, left = array_of(values, self.bits_of or target, state, missing, _packed(target, out))
        return array if self.bits_of in (None, target) else array.cast(target), left

    def entries(self, target: pa.DataType, code: int) -> list[int]:
        """Return what a plan says of a column of this type; ``code`` is the tag of the format."""
        sign = 1 << 8 * self.size - 1 if self.signed and self.size < 8 else 0
        width = max((self.bits_of or target).bit_width // 8, 1)
        bounds = (target.precision, target.scale) if self.size == NUMERIC else (self.low, self.high)
        return [code, self.size, sign, *bounds, self.more, width, 0]

    def array(self, target: pa.DataType, entries: Plan, out: Bytes, count: int, tags: Bytes | None) -> pa.Array:
        """Return the values of a column that were read; the others are null. Without tags all were.

        ``entries`` are the column's in the plan, ``count`` how many rows there are.
        """
        content = out[entries[FIRST] : entries[FIRST] + count * entries[WIDTH]]
        validity = None if tags is None else pa.py_buffer(np.packbits(tags == READ, bitorder="little"))
        buffers = [validity, pa.py_buffer(_packed(target, content))]
        array = pa.Array.from_buffers(self.bits_of or target, count, buffers)
        return array if self.bits_of in (None, target) else array.cast(target)


DECIMAL_BINARY: Final = Number(NUMERIC, signed=False)


def _packed(target: pa.DataType, content: Bytes) -> Bytes:
    return np.packbits(content, bitorder="little") if pa.types.is_boolean(target) else content


def lay_out(lines: Plan, rows: int) -> tuple[Plan, Bytes]:
    """Return a plan in which each number of so many rows has its place, and one piece of memory for all."""
    plan = lines.copy()
    ends = np.cumsum(-(-plan[WIDTH] * rows // LINE) * LINE)
    plan[FIRST, 1:] = ends[:-1]
    return plan, np.empty(ends[-1] if len(ends) else 0, np.uint8)
