"""What the walk over rows reads on its way: values of a fixed width in Arrow, and texts that are copied."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.compiled.jit import (
    WORD,
    double_bits,
    entry_at,
    inlined,
    kernel,
    put32,
    put64,
    put_entry,
    single_bits,
    u8,
    u64,
)
from pgoutput_construct.compiled.memory import LINE, allocate, bitmap
from pgoutput_construct.pgtypes.kernels.cast import SLACK
from pgoutput_construct.pgtypes.kernels.date_readers import read_day, read_timestamp
from pgoutput_construct.pgtypes.kernels.number_readers import WIDTH as DECIMAL
from pgoutput_construct.pgtypes.kernels.number_readers import (
    read_boolean,
    read_decimal,
    read_decimal_text,
    read_float,
    read_integer,
)
from pgoutput_construct.pgtypes.kernels.text_casts import NO_ASCII, copy_text

__all__ = [
    "BOOLEAN",
    "DATE",
    "ENTRIES",
    "FLOAT",
    "FORMAT_ENTRIES",
    "INTEGER",
    "KIND",
    "NUMERIC",
    "NUMERIC_TEXT",
    "OFFSET",
    "READ",
    "TEXT",
    "TIMESTAMP",
    "Plan",
    "lay_out",
    "learn",
    "put_nothing",
    "read_array",
    "read_value",
]

READ: Final = 0
"""What stands for the tag of a value that was read, and where there is no row: no protocol has it."""

TAG, KIND, MASK, SIGN, LOW, HIGH, MORE = range(7)
FORMAT_ENTRIES: Final = 7
"""What a plan says of the values of a column that have one tag (0 for none): how they are read; all bits of a number,
and the bit of its sign (0 for none); the lowest and the highest number taken, or what else the kind goes by; what is
added to a big-endian number."""
WIDTH, FIRST, CONTENT, END, LIMIT, SEEN = range(2 * FORMAT_ENTRIES, 2 * FORMAT_ENTRIES + 6)
ENTRIES: Final = 2 * FORMAT_ENTRIES + 6
"""That is said for text and for binary format; then the bytes that a value, or the end of a text, has in Arrow (0 for a
column that is not read), and where the first one is written. Of texts: where their content begins, where the next one
is written, and where there is no more room (0 for what is no text); and all their bits, to tell ASCII.

A number is written as a word, least byte first, whatever the column's width: what is too much of it stands where the
next row's is written later. So rows are written in their order, each of them, and there is SLACK after the last."""

NUMERIC, NUMERIC_TEXT, INTEGER, BOOLEAN, FLOAT, DATE, TIMESTAMP, TEXT = range(-1, -9, -1)
"""The kinds, in addition to big-endian numbers, whose kinds are their sizes in bytes. Numerics go by precision and
scale, booleans by their letters, floats by the greatest integer and power of ten, timestamps by whether they have a
zone, texts by the byte that stands before them (-1 for none)."""

OFFSET: Final = 4
"""Bytes of the end of a text in Arrow."""
SPARE: Final = 256
"""Bytes of texts beyond those that are expected."""

Plan = NDArray[np.int64]
"""ENTRIES for each column."""


@inlined
def _entry(plan: Any, column: int, entry: int) -> int:
    """Return an entry of a plan."""
    return entry_at(plan, column * ENTRIES + entry)


@inlined
def _set_entry(plan: Any, column: int, entry: int, number: int) -> None:
    """Set an entry of a plan."""
    put_entry(plan, column * ENTRIES + entry, number)


@inlined
def put_nothing(plan: Any, column: int, row: int, out: Any) -> None:
    """Write zeros for what is no value of a column that is read: it holds nothing, not what was there before."""
    width = _entry(plan, column, WIDTH)
    if _entry(plan, column, LIMIT):
        _put_end(plan, column, row, out)
    elif width:
        place = _entry(plan, column, FIRST) + row * width
        put64(out, place, 0)
        if width == DECIMAL:
            put64(out, place + WORD, 0)


@inlined
def _put_end(plan: Any, column: int, row: int, out: Any) -> None:
    place = _entry(plan, column, FIRST) + OFFSET * (row + 1)
    put32(out, place, _entry(plan, column, END) - _entry(plan, column, CONTENT))


@inlined
def _read_text(data: Any, at: int, length: int, version: int, plan: Any, column: int, row: int, out: Any) -> bool:
    """Copy a text after those that were copied; return whether there was room, and the byte before it is right."""
    skip = version >= 0
    begin = _entry(plan, column, END)
    stop = begin + length - skip
    if stop > _entry(plan, column, LIMIT) or (skip and (length == 0 or u8(data, at) != version)):
        return False
    _set_entry(plan, column, SEEN, _entry(plan, column, SEEN) | copy_text(data, at + skip, length - skip, out, begin))
    _set_entry(plan, column, END, stop)
    _put_end(plan, column, row, out)
    return True


@inlined
def _read_word(data: Any, end: int, plan: Any, column: int, line: int, low: int, high: int) -> tuple[bool, int]:
    """Return whether a big-endian number is taken, and the number: the last bits of the word that ends with it."""
    if end < WORD:
        return False, 0
    sign = _entry(plan, column, line + SIGN)
    number = ((u64(data, end - WORD) & _entry(plan, column, line + MASK)) ^ sign) - sign
    return low <= number <= high, number


@inlined
def _read_number(kind: int, data: Any, at: int, length: int, low: int, high: int, width: int) -> tuple[bool, int]:
    """Return whether a value is taken, and the number that is written for it."""
    end = at + length
    if kind == INTEGER:
        return read_integer(data, at, end, low, high)
    if kind == TIMESTAMP:
        return read_timestamp(data, at, end, low)
    if kind == DATE:
        return read_day(data, at, length)
    if kind == BOOLEAN:
        return read_boolean(data, at, length, low, high)
    taken, real = read_float(data, at, end, low, high)
    return taken, double_bits(real) if width == 8 else single_bits(real)


@inlined
def read_value(tag: int, data: Any, at: int, length: int, plan: Any, column: int, row: int, out: Any) -> bool:
    """Read a value, if it has a tag of the plan; return whether it is taken."""
    line = 0 if tag == _entry(plan, column, TAG) else FORMAT_ENTRIES
    if tag != _entry(plan, column, line + TAG):
        return False
    kind = _entry(plan, column, line + KIND)
    low, high = _entry(plan, column, line + LOW), _entry(plan, column, line + HIGH)
    if kind == TEXT:
        return _read_text(data, at, length, low, plan, column, row, out)
    width = _entry(plan, column, WIDTH)
    place = _entry(plan, column, FIRST) + row * width
    if kind > 0:
        taken, number = _read_word(data, at + length, plan, column, line, low, high)
        taken &= length == kind
        if taken:
            put64(out, place, number + _entry(plan, column, line + MORE))
        return taken
    if kind == NUMERIC:
        return read_decimal(data, at, length, low, high, out, place)
    if kind == NUMERIC_TEXT:
        return read_decimal_text(data, at, at + length, low, high, out, place)
    taken, number = _read_number(kind, data, at, length, low, high, width)
    if taken:
        put64(out, place, number)
    return taken


@kernel
def _lay_out(plan: Any, rows: int, expected: Any) -> int:
    at = 0
    for column in range(len(plan)):
        plan[column, FIRST] = at
        at += -(-(plan[column, WIDTH] * (rows + 1) + SLACK) // LINE) * LINE
        if plan[column, KIND] == TEXT or plan[column, FORMAT_ENTRIES + KIND] == TEXT:
            plan[column, CONTENT] = plan[column, END] = at
            at += -(-(expected[column] * rows + SPARE) // LINE) * LINE
            plan[column, LIMIT] = at - SLACK
    return at


@kernel
def _begin(plan: Any, out: Any) -> None:
    """Write where the first text of each column begins."""
    for column in range(len(plan)):
        if _entry(plan, column, LIMIT):
            put32(out, _entry(plan, column, FIRST), 0)


def lay_out(lines: Plan, rows: int, expected: NDArray[np.int64]) -> tuple[Plan, pa.Buffer]:
    """Return a plan in which each value of ``rows`` rows has its place, and one piece of memory for all.

    ``expected`` are the bytes that a row's text in each column may have, on the average.
    """
    plan = lines.copy()
    content = allocate(max(_lay_out(plan, rows, expected), LINE))
    _begin(plan, np.frombuffer(content, np.uint8))
    return plan, content


@kernel
def learn(plan: Any, left: Any, rows: int, expected: Any) -> None:
    """Expect what was found in ``rows`` rows, and a quarter more; ``left``: the bytes for which there was no room."""
    for column in range(len(plan)):
        found = plan[column, END] - plan[column, CONTENT] + left[column]
        expected[column] = max(found * 5 // (4 * rows) + 1, expected[column] // 2)


def read_array(
    target: pa.DataType, entries: Sequence[int], content: pa.Buffer, count: int, validity: pa.Buffer | None
) -> pa.Array:
    """Return the values of a column that were read.

    ``entries`` are the column's in the plan, ``content`` the memory that was written, ``count`` how many rows there
    are, ``validity`` which of them have a value, None for all. Raises ArrowInvalid where texts are not UTF-8.
    """
    if count == 0:
        return pa.array([], target)
    values = content.slice(entries[FIRST], (count + bool(entries[LIMIT])) * entries[WIDTH])
    if pa.types.is_boolean(target):
        values = bitmap(np.frombuffer(values, np.uint8))
    if not entries[LIMIT]:
        return pa.Array.from_buffers(target, count, [validity, values])
    texts = content.slice(entries[CONTENT], entries[END] - entries[CONTENT])
    checked = pa.types.is_binary(target) or not entries[SEEN] & NO_ASCII
    array = pa.Array.from_buffers(target if checked else pa.binary(), count, [validity, values, texts])
    return array if checked else array.cast(target)  # Arrow sees whether it is UTF-8
