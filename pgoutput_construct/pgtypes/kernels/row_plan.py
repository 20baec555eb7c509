"""The plan of the walk over rows, which decodes values of fixed width in Arrow, and copies texts, on its way.

A plan is an int64 array with ENTRIES numbers for each column, so that the generated walk needs no Python objects. The
walk passes each value to ``read_value``, which looks up the value's tag in the plan, decodes the value, and writes it
to the column's part of one common buffer. A value that it does not decode keeps its offset, length and tag, and is
decoded later (``columnar.table``).
"""

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
"""Instead of the tag of a value that the walk has decoded, and of a row without a tuple; no protocol has this tag."""

TAG, KIND, MASK, SIGN, LOW, HIGH, MORE = range(7)
FORMAT_ENTRIES: Final = 7
"""The entries for the values of a column in one format:

- TAG: the tag of the format (0: none).
- KIND: how they are decoded: one of the kinds below, or the size in bytes of a big-endian number.
- MASK, SIGN: all bits of a number, and its sign bit (0: unsigned).
- LOW, HIGH: the lowest and the highest number that is decoded; for some kinds, other parameters.
- MORE: what is added to a big-endian number.
"""
WIDTH, FIRST, CONTENT, END, LIMIT, SEEN = range(2 * FORMAT_ENTRIES, 2 * FORMAT_ENTRIES + 6)
ENTRIES: Final = 2 * FORMAT_ENTRIES + 6
"""The entries for a column: FORMAT_ENTRIES for each of two formats, then

- WIDTH: the bytes of a value, or of a text's offset, in Arrow (0: the walk does not decode the column).
- FIRST: the offset of the first one in the buffer.
- CONTENT, END, LIMIT: for texts, where the content starts, where the next one is written, and where room ends (0: no
  text). A text that would end after LIMIT is left for later; that bounds what a batch can make the walk write.
- SEEN: the bitwise OR of all text, which shows whether all of it is ASCII.

A number is written as a whole little-endian word, whatever the column's width; the excess bytes are overwritten by the
next row. Therefore rows must be written in order, without gaps, and SLACK follows the last one.
"""

NUMERIC, NUMERIC_TEXT, INTEGER, BOOLEAN, FLOAT, DATE, TIMESTAMP, TEXT = range(-1, -9, -1)
"""The kinds other than big-endian numbers, and their parameters LOW and HIGH: numerics have precision and scale,
booleans their letters, floats the greatest exact integer and power of ten, timestamps whether they have a zone, texts
their version byte (-1: none)."""

OFFSET: Final = 4
"""Bytes of an offset of Arrow's strings."""
SPARE: Final = 256
"""Bytes of room for texts in addition to those expected."""

Plan = NDArray[np.int64]
"""An array of ENTRIES for each column."""


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
    """Write zeros for a row without a decoded value, so that uninitialised memory does not end up in the array."""
    width = _entry(plan, column, WIDTH)
    if _entry(plan, column, LIMIT):
        _put_end(plan, column, row, out)
    elif width:
        offset = _entry(plan, column, FIRST) + row * width
        put64(out, offset, 0)
        if width == DECIMAL:
            put64(out, offset + WORD, 0)


@inlined
def _put_end(plan: Any, column: int, row: int, out: Any) -> None:
    offset = _entry(plan, column, FIRST) + OFFSET * (row + 1)
    put32(out, offset, _entry(plan, column, END) - _entry(plan, column, CONTENT))


@inlined
def _read_text(data: Any, at: int, length: int, version: int, plan: Any, column: int, row: int, out: Any) -> bool:
    """Append a text; return whether there was room for it, and its version byte, if any, is right."""
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
    """Return whether a big-endian number is within bounds, and the number: the low bits of the word that it ends."""
    if end < WORD:
        return False, 0
    sign = _entry(plan, column, line + SIGN)
    number = ((u64(data, end - WORD) & _entry(plan, column, line + MASK)) ^ sign) - sign
    return low <= number <= high, number


@inlined
def _read_number(kind: int, data: Any, at: int, length: int, low: int, high: int, width: int) -> tuple[bool, int]:
    """Return whether a value was decoded, and the number to write for it."""
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
    """Decode a value and write it at its offset; return whether it was decoded, and False if its tag has no plan."""
    line = 0 if tag == _entry(plan, column, TAG) else FORMAT_ENTRIES
    if tag != _entry(plan, column, line + TAG):
        return False
    kind = _entry(plan, column, line + KIND)
    low, high = _entry(plan, column, line + LOW), _entry(plan, column, line + HIGH)
    if kind == TEXT:
        return _read_text(data, at, length, low, plan, column, row, out)
    width = _entry(plan, column, WIDTH)
    offset = _entry(plan, column, FIRST) + row * width
    if kind > 0:
        taken, number = _read_word(data, at + length, plan, column, line, low, high)
        taken &= length == kind
        if taken:
            put64(out, offset, number + _entry(plan, column, line + MORE))
        return taken
    if kind == NUMERIC:
        return read_decimal(data, at, length, low, high, out, offset)
    if kind == NUMERIC_TEXT:
        return read_decimal_text(data, at, at + length, low, high, out, offset)
    taken, number = _read_number(kind, data, at, length, low, high, width)
    if taken:
        put64(out, offset, number)
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
    """Write the first offset of each column of texts."""
    for column in range(len(plan)):
        if _entry(plan, column, LIMIT):
            put32(out, _entry(plan, column, FIRST), 0)


def lay_out(lines: Plan, rows: int, expected: NDArray[np.int64]) -> tuple[Plan, pa.Buffer]:
    """Return a plan with the offsets of all columns in one buffer, and the buffer.

    Args:
        lines: The plan without offsets.
        rows: The number of rows to be written.
        expected: The expected bytes of text of each column per row.
    """
    plan = lines.copy()
    content = allocate(max(_lay_out(plan, rows, expected), LINE))
    _begin(plan, np.frombuffer(content, np.uint8))
    return plan, content


@kernel
def learn(plan: Any, left: Any, rows: int, expected: Any) -> None:
    """Update the expected bytes of text to those of the last ``rows`` rows plus a quarter.

    Args:
        plan: The plan after the walk.
        left: The bytes of each column's values for which there was no room.
        rows: The number of rows walked.
        expected: The expected bytes per row, updated in place.
    """
    for column in range(len(plan)):
        found = plan[column, END] - plan[column, CONTENT] + left[column]
        expected[column] = max(found * 5 // (4 * rows) + 1, expected[column] // 2)


def read_array(
    target: pa.DataType, entries: Sequence[int], content: pa.Buffer, count: int, validity: pa.Buffer | None
) -> pa.Array:
    """Return the array of a column that the walk has written.

    Args:
        target: The Arrow type.
        entries: The column's entries in the plan.
        content: The buffer.
        count: The number of rows.
        validity: The validity bitmap, None if every row has a value.

    Raises:
        ArrowInvalid: A text is not UTF-8.
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
    return array if checked else array.cast(target)  # Arrow's cast validates UTF-8
