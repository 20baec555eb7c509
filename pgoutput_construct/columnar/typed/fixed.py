"""Values that have a fixed width in Arrow: the walk over rows reads them on its way, without noting where they are."""

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.columnar.jit import (
    double_bits,
    inlined,
    put8,
    put16,
    put32,
    put64,
    single_bits,
    u8,
    u16,
    u32,
    u64,
)
from pgoutput_construct.columnar.memory import bitmap, room
from pgoutput_construct.columnar.typed.decimals import WIDTH as DECIMAL
from pgoutput_construct.columnar.typed.decimals import read_decimal, read_decimal_text
from pgoutput_construct.columnar.typed.moments import read_day, read_moment
from pgoutput_construct.columnar.typed.numbers import read_boolean, read_float, read_integer

__all__ = [
    "BOOLEAN",
    "DATE",
    "ENTRIES",
    "FLOAT",
    "FORM",
    "INTEGER",
    "MOMENT",
    "NUMERIC",
    "NUMERIC_TEXT",
    "READ",
    "WIDTH",
    "Bytes",
    "Plan",
    "lay_out",
    "put_nothing",
    "read_array",
    "read_number",
]

READ: Final = 1
"""What stands for the tag of a value that was read: no protocol has it, since it is no character."""

TAG, KIND, SIGN, LOW, HIGH, MORE = range(6)
FORM: Final = 6
"""What a plan says of the values of a column that have one tag (0 for none): how they are read; the bit of their sign
(0 for none); the lowest and the highest number taken, or what else the kind goes by; what is added to each."""
WIDTH, FIRST = 2 * FORM, 2 * FORM + 1
ENTRIES: Final = 2 * FORM + 2
"""That is said for text and for binary format; then the bytes that a value has in Arrow (0 for a column that is not
read), and where the first one is written."""

NUMERIC, NUMERIC_TEXT, INTEGER, BOOLEAN, FLOAT, DATE, MOMENT = range(-1, -8, -1)
"""The kinds, beside those of big-endian numbers, which are called by the bytes that they have. Numerics go by precision
and scale, booleans by their letters, floats by the greatest integer and power of ten, moments by whether they have a
zone."""

LINE: Final = 64
"""Bytes at whose multiples Arrow wants a buffer to begin."""

Plan = NDArray[np.int64]
"""ENTRIES for each column."""
Bytes = NDArray[np.uint8]


@inlined
def _put(number: int, width: int, out: Any, place: int) -> None:
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
def put_nothing(plan: Any, column: int, row: int, out: Any) -> None:
    """Write zeros for a null of a column that is read: it holds nothing, not what was there before."""
    width = plan[column, WIDTH]
    if width:
        _put(0, width, out, plan[column, FIRST] + row * width)


@inlined
def _word(data: Any, at: int, size: int) -> int:
    """Return a number of so many bytes, without a sign where it has less than eight."""
    if size == 8:
        return u64(data, at)
    if size == 4:
        return u32(data, at)
    return u16(data, at) if size == 2 else u8(data, at)


@inlined
def read_number(tag: int, data: Any, at: int, length: int, plan: Any, column: int, row: int, out: Any) -> bool:
    """Read a value, if it has a tag of the plan; return whether it is taken."""
    line = 0 if tag == plan[column, TAG] else FORM
    if tag != plan[column, line + TAG]:
        return False
    kind, low, high = plan[column, line + KIND], plan[column, line + LOW], plan[column, line + HIGH]
    end, width = at + length, plan[column, WIDTH]
    place = plan[column, FIRST] + row * width
    if kind > 0:
        number = _word(data, at, kind) if length == kind else 0
        number = (number ^ plan[column, line + SIGN]) - plan[column, line + SIGN]
        taken = length == kind and low <= number <= high
        number += plan[column, line + MORE]
    elif kind == NUMERIC:
        return read_decimal(data, at, length, low, high, out, place)
    elif kind == NUMERIC_TEXT:
        return read_decimal_text(data, at, end, low, high, out, place)
    elif kind == INTEGER:
        taken, number = read_integer(data, at, end, low, high)
    elif kind == MOMENT:
        taken, number = read_moment(data, at, end, low)
    elif kind == DATE:
        taken, number = read_day(data, at, length)
    elif kind == BOOLEAN:
        taken, number = read_boolean(data, at, length, low, high)
    else:
        taken, real = read_float(data, at, end, low, high)
        number = double_bits(real) if width == 8 else single_bits(real)
    if taken:
        _put(number, width, out, place)
    return taken


def lay_out(lines: Plan, rows: int) -> tuple[Plan, Bytes]:
    """Return a plan in which each value of so many rows has its place, and one piece of memory for all."""
    plan = lines.copy()
    ends = np.cumsum(-(-plan[:, WIDTH] * rows // LINE) * LINE)
    plan[1:, FIRST] = ends[:-1]
    return plan, room(int(ends[-1]) if len(ends) else 0)


def read_array(target: pa.DataType, entries: Plan, out: Bytes, count: int, validity: pa.Buffer | None) -> pa.Array:
    """Return the values of a column that were read.

    ``entries`` are the column's in the plan, ``count`` how many rows there are, ``validity`` which of them have a
    value, None for all.
    """
    content = out[entries[FIRST] : entries[FIRST] + count * entries[WIDTH]]
    values = bitmap(content) if pa.types.is_boolean(target) else pa.py_buffer(content)
    return pa.Array.from_buffers(target, count, [validity, values])
