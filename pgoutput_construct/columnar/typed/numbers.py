"""bool, int2, int4, int8, oid, float4 and float8."""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from pgoutput_construct.columnar.jit import kernel, u8
from pgoutput_construct.columnar.typed.column import LEFT, NULL, TAKEN, Result, Values, fixed_width
from pgoutput_construct.columnar.typed.digits import MINUS, MOST, POINT, POWERS, ZERO, digits
from pgoutput_construct.columnar.typed.fixed import Number
from pgoutput_construct.columnar.typed.texts import TEXT

__all__ = ["BOOL_BINARY", "BOOL_TEXT", "FLOAT_BINARY", "FLOAT_TEXT", "INTEGER_BINARY", "INTEGER_TEXT", "OID_BINARY"]

LAST_DIGITS: Final = 223_372_036_854_775_807
"""Of the greatest int8, behind its first digit."""
WORD_DIGITS: Final = MOST + 1


@kernel
def _booleans(
    data: Any, starts: Any, lengths: Any, tags: Any, code: int, yes: int, no: int, out: Any, state: Any
) -> int:
    missing = 0
    for row in range(len(starts)):
        out[row], state[row] = 0, NULL
        if tags[row] == code:
            byte = u8(data, starts[row]) if lengths[row] == 1 else -1
            out[row], state[row] = byte == yes, TAKEN if byte in (yes, no) else LEFT
        missing += state[row] != TAKEN
    return missing


@kernel
def _integers_of_text(
    data: Any, starts: Any, lengths: Any, tags: Any, code: int, low: int, high: int, out: Any, state: Any
) -> int:
    missing = 0
    for row in range(len(starts)):
        out[row], state[row] = 0, NULL
        if tags[row] == code:
            at, end = starts[row], starts[row] + lengths[row]
            negative = at < end and u8(data, at) == MINUS
            at += negative
            value = digits(data, at, end)
            if end - at == WORD_DIGITS:
                first, value = u8(data, at) - ZERO, digits(data, at + 1, end)
                good = 0 <= first < 9 or (first == 9 and value <= LAST_DIGITS)
                value = value + first * POWERS[MOST] if good and value >= 0 else -1
            number = -value if negative else value
            if value >= 0 and low <= number <= high:
                out[row], state[row] = number, TAKEN
            else:
                state[row] = LEFT
        missing += state[row] != TAKEN
    return missing


@kernel
def _floats_of_text(
    data: Any, starts: Any, lengths: Any, tags: Any, code: int, limit: int, most: int, out: Any, state: Any
) -> int:
    """Read what one rounded division gives exactly: a number that the type holds, over a power of ten that it holds."""
    missing = 0
    for row in range(len(starts)):
        out[row], state[row] = 0, NULL
        if tags[row] == code:
            at, end = starts[row], starts[row] + lengths[row]
            negative = at < end and u8(data, at) == MINUS
            at += negative
            point = at
            while point < end and u8(data, point) != POINT:
                point += 1
            places = max(end - point - 1, 0)
            value = digits(data, at, point)
            if places and value >= 0:
                part = digits(data, point + 1, end) if point - at + places <= MOST else -1
                value = value * POWERS[places] + part if part >= 0 else -1
            if 0 <= value <= limit and places <= most and point + 1 != end:
                number = value / POWERS[places]  # a float4 loses nothing: it has less than half of a float8's digits
                out[row], state[row] = -number if negative else number, TAKEN
            else:
                state[row] = LEFT
        missing += state[row] != TAKEN
    return missing


def _float_bounds(target: pa.DataType) -> tuple[int, int]:
    return (1 << 53, MOST) if target.bit_width == 64 else (1 << 24, 10)


def _integer_bounds(target: pa.DataType) -> tuple[int, int]:
    half = 1 << target.bit_width - 1
    return -half, half - 1


def _float_text(values: Values, target: pa.DataType) -> Result:
    """Cast texts of floats; those with more digits, or with an exponent, by Arrow's parser."""
    array, left = _SHORT_FLOATS(values, target)
    if left is None:
        return array, None
    lengths = values.lengths[left]
    rest = Values(
        values.data, values.starts[left], lengths, values.tags[left], values.code, len(lengths), int(lengths.sum())
    )
    parsed = TEXT(rest, pa.string())[0].cast(target)
    numbers = array.to_numpy(zero_copy_only=False).copy()
    numbers[left] = parsed.to_numpy()
    left &= np.isinf(numbers)  # Arrow overflows silently to infinity: what says so is left, with what is too large
    return pa.array(numbers, target, mask=left | (values.tags != values.code)), left if left.any() else None


_SHORT_FLOATS: Final = fixed_width(_floats_of_text, _float_bounds)
BOOL_TEXT: Final = fixed_width(_booleans, lambda target: (ord("t"), ord("f")))
BOOL_BINARY: Final = Number(1, signed=False, low=0, high=1)
INTEGER_TEXT: Final = fixed_width(_integers_of_text, _integer_bounds)
INTEGER_BINARY: Final = {size: Number(size) for size in (2, 4, 8)}
OID_BINARY: Final = Number(4, signed=False)
FLOAT_TEXT: Final = _float_text
FLOAT_BINARY: Final = {4: Number(4, bits_of=pa.float32()), 8: Number(8, bits_of=pa.float64())}
