"""One column's values from a batch into Arrow: whole columns by Arrow's casts, and what is left one by one.

Arrow casts text; the kernels here only bring it the bytes. Values that a cast cannot take, such as infinite dates, are
left to ``columnar.values``, which loads them one by one or says that the type cannot hold them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.columnar.gather import binary, fixed
from pgoutput_construct.columnar.jit import kernel, u8, u16
from pgoutput_construct.columnar.kernels import VALUE_TAGS

__all__ = ["Cast", "Values", "find_cast"]

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Values:
    """Values of one column that all came in one format, or are null."""

    data: NDArray[np.uint8]
    """The bytes of the batch."""
    starts: NDArray[np.int64]
    """Where each value starts."""
    lengths: NDArray[Any]
    """How many bytes each has."""
    mask: Flags | None = None
    """Which of them are null; None for none."""

    def __len__(self) -> int:
        return len(self.starts)

    def strings(self, mask: Flags | None, text: bool = False) -> pa.Array:
        """Return the bytes as they are; masked ones are null."""
        return binary(self.data, self.starts, self.lengths, mask, text)


Cast = Callable[[Values, pa.DataType], tuple[pa.Array, Flags]]
"""Returns an array of the type, and which of its entries are right; the others are to be done one by one."""


@kernel
def _looks_plain(data: Any, starts: Any, lengths: Any, out: Any) -> None:
    """Find the texts that begin as a number or a date does, and end in a digit: no infinity, no NaN, no BC.

    Nor is 0x1 one: Arrow would read it as 1, and PostgreSQL never writes it.
    """
    for row in range(len(starts)):
        at, end = starts[row], starts[row] + lengths[row]
        if at < end and u8(data, at) == 45:  # a minus
            at += 1
        if at < end:
            second = u8(data, at + 1) | 32 if at + 1 < end else 0
            out[row] = 48 <= u8(data, at) <= 57 and 48 <= u8(data, end - 1) <= 57 and second != 120


@kernel
def _booleans(data: Any, starts: Any, lengths: Any, yes: int, no: int, out: Any, fits: Any) -> None:
    for row in range(len(starts)):
        if lengths[row] == 1:
            byte = u8(data, starts[row])
            out[row] = byte == yes
            fits[row] = byte in (yes, no)


@kernel
def _nibble(byte: int) -> int:
    if 48 <= byte <= 57:
        return byte - 48
    if 97 <= byte <= 102:
        return byte - 87
    return -1


@kernel
def _unhex(data: Any, starts: Any, lengths: Any, ends: Any, out: Any, fits: Any) -> None:
    """Turn bytea's ``\\x`` and hexadecimal digits into bytes; ``ends`` says where those of each value go."""
    for row in range(len(starts)):
        first, size = starts[row], lengths[row]
        if size < 2 or size % 2 or u8(data, first) != 92 or u8(data, first + 1) != 120:
            continue
        good = True
        for step in range(ends[row + 1] - ends[row]):
            high, low = _nibble(u8(data, first + 2 + 2 * step)), _nibble(u8(data, first + 3 + 2 * step))
            good = good and high >= 0 and low >= 0
            out[ends[row] + step] = (high << 4 | low) & 255
        fits[row] = good


def _all(values: Values) -> Flags:
    return np.ones(len(values), np.bool_)


def _null_or(values: Values, fits: Flags) -> Flags:
    return fits if values.mask is None else fits | values.mask


def _text(values: Values, kind: pa.DataType) -> tuple[pa.Array, Flags]:
    return values.strings(values.mask).cast(kind), _all(values)


def _plain_text(values: Values, kind: pa.DataType) -> tuple[pa.Array, Flags]:
    plain = np.zeros(len(values), np.bool_)
    _looks_plain(values.data, values.starts, values.lengths, plain)
    if values.mask is not None:
        plain &= ~values.mask
    mask = None if plain.all() else ~plain
    return values.strings(mask, text=True).cast(kind), _null_or(values, plain)


def _float_text(values: Values, kind: pa.DataType) -> tuple[pa.Array, Flags]:
    array = values.strings(values.mask, text=True).cast(kind)
    # A number too large becomes infinite without a word: only those that say so are.
    infinite = np.isinf(array.to_numpy(zero_copy_only=False))
    if not infinite.any():
        return array, _all(values)
    plain = np.zeros(len(values), np.bool_)
    _looks_plain(values.data, values.starts, values.lengths, plain)
    return array, ~(infinite & plain)


def _boolean(yes: int, no: int) -> Cast:
    def cast(values: Values, kind: pa.DataType) -> tuple[pa.Array, Flags]:
        out, fits = np.zeros(len(values), np.bool_), np.zeros(len(values), np.bool_)
        _booleans(values.data, values.starts, values.lengths, yes, no, out, fits)
        return pa.array(out, mask=values.mask).cast(kind), _null_or(values, fits)

    return cast


def _bytea_text(values: Values, kind: pa.DataType) -> tuple[pa.Array, Flags]:
    sizes = np.maximum(values.lengths - 2, 0) // 2
    ends = np.zeros(len(values) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    out, fits = np.zeros(int(ends[-1]), np.uint8), np.zeros(len(values), np.bool_)
    _unhex(values.data, values.starts, values.lengths, ends, out, fits)
    large = len(out) >= 2**31
    validity = None if values.mask is None else pa.array(~values.mask).buffers()[1]
    buffers = [validity, pa.py_buffer(ends if large else ends.astype(np.int32)), pa.py_buffer(out)]
    array = pa.Array.from_buffers(pa.large_binary() if large else pa.binary(), len(values), buffers)
    return array.cast(kind), _null_or(values, fits)


def _number(dtype: str) -> Cast:
    def cast(values: Values, kind: pa.DataType) -> tuple[pa.Array, Flags]:
        raw, fits = fixed(values.data, values.starts, values.lengths, np.dtype(dtype).itemsize)
        return pa.array(raw.view(dtype)[:, 0], mask=values.mask).cast(kind), _null_or(values, fits)

    return cast


@kernel
def _numerics(data: Any, starts: Any, lengths: Any, scale: int, limit: int, out: Any, fits: Any) -> None:
    """Read numeric_send(): digits to base 10,000, the weight of the first, a sign; into units of 10 ** -scale."""
    for row in range(len(starts)):
        at, size = starts[row], lengths[row]
        if size < 8:
            continue
        digits, sign = u16(data, at), u16(data, at + 4)
        weight = u16(data, at + 2)
        if weight >= 32768:
            weight -= 65536
        if size != 8 + 2 * digits or sign not in (0, 16384):  # NaN and infinities have signs of their own
            continue
        if digits == 0 and weight != 0:
            continue
        value, good = 0, True
        for step in range(digits):
            good = good and value < 900_000_000_000_000  # the next four digits fit into the word as well
            if good:
                value = value * 10_000 + u16(data, at + 8 + 2 * step)
        power = 4 * (weight - digits + 1) + scale
        while good and power > 0 and value:
            good = value < limit
            value *= 10
            power -= 1
        while good and power < 0 and value:
            good = value % 10 == 0
            value //= 10
            power += 1
        if good and value < limit:
            fits[row] = True
            out[row, 0] = -value if sign else value
            out[row, 1] = -1 if sign and value else 0


def _numeric(values: Values, kind: pa.DataType) -> tuple[pa.Array, Flags]:
    """Cast binary numerics of up to 16 digits, which a word holds with room to spare."""
    out, fits = np.zeros((len(values), 2), np.int64), np.zeros(len(values), np.bool_)
    if kind.precision <= 16:
        _numerics(values.data, values.starts, values.lengths, kind.scale, 10**kind.precision, out, fits)
    buffers = [None if values.mask is None else pa.array(~values.mask).buffers()[1], pa.py_buffer(out)]
    return pa.Array.from_buffers(kind, len(values), buffers), _null_or(values, fits)


def _moment(dtype: str, epoch: int, lowest: int, highest: int) -> Cast:
    """Return the cast of days or microseconds since 2000; infinities and years outside 1 to 9999 do not fit."""

    def cast(values: Values, kind: pa.DataType) -> tuple[pa.Array, Flags]:
        raw, fits = fixed(values.data, values.starts, values.lengths, np.dtype(dtype).itemsize)
        numbers = raw.view(dtype)[:, 0]
        fits &= (numbers >= lowest - epoch) & (numbers <= highest - epoch)
        since_1970 = np.where(fits, numbers, 0).astype(dtype) + np.dtype(dtype).type(epoch)
        return pa.array(since_1970, mask=values.mask).cast(kind), _null_or(values, fits)

    return cast


def _jsonb(values: Values, kind: pa.DataType) -> tuple[pa.Array, Flags]:
    """Take the version byte of jsonb_send() away."""
    fits = values.lengths > 0
    fits[fits] = values.data[values.starts[fits]] == 1
    inner = Values(values.data, values.starts + 1, np.where(fits, values.lengths - 1, 0), values.mask)
    return _text(inner, kind)[0], _null_or(values, fits)


_DAYS, _MICROSECONDS = 10_957, 946_684_800_000_000  # from 1970 to 2000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # the years 1 to 9999
_FIRST_MOMENT, _LAST_MOMENT = -62_135_596_800_000_000, 253_402_300_799_999_999

_is = pa.types
TEXT_CASTS: Final[tuple[tuple[Callable[[pa.DataType], bool], Cast], ...]] = (
    (_is.is_string, _text),
    (_is.is_boolean, _boolean(ord("t"), ord("f"))),
    (_is.is_floating, _float_text),
    (_is.is_integer, _plain_text),
    (_is.is_decimal, _plain_text),
    (_is.is_date, _plain_text),
    (_is.is_timestamp, _plain_text),
    (_is.is_binary, _bytea_text),
)
"""By the column's Arrow type."""

_MOMENT = _moment("<i8", _MICROSECONDS, _FIRST_MOMENT, _LAST_MOMENT)
BINARY_CASTS: Final[Mapping[int, tuple[Callable[[pa.DataType], bool], Cast]]] = {
    16: (_is.is_boolean, _boolean(1, 0)),
    17: (_is.is_binary, _text),
    20: (_is.is_integer, _number("<i8")),
    21: (_is.is_integer, _number("<i2")),
    23: (_is.is_integer, _number("<i4")),
    26: (_is.is_integer, _number("<u4")),
    700: (_is.is_floating, _number("<f4")),
    701: (_is.is_floating, _number("<f8")),
    1700: (_is.is_decimal, _numeric),
    1082: (_is.is_date, _moment("<i4", _DAYS, _FIRST_DAY, _LAST_DAY)),
    1114: (_is.is_timestamp, _MOMENT),
    1184: (_is.is_timestamp, _MOMENT),
    19: (_is.is_string, _text),
    25: (_is.is_string, _text),
    114: (_is.is_string, _text),
    142: (_is.is_string, _text),
    1042: (_is.is_string, _text),
    1043: (_is.is_string, _text),
    3802: (_is.is_string, _jsonb),
}
"""By the OID of the built-in type, and for which Arrow types: a column that was altered may have a wider one."""


def find_cast(kind: int, type_oid: int, target: pa.DataType) -> Cast | None:
    """Return how values of a kind (VALUE_TAGS) are cast as a whole, None where they are done one by one."""
    if kind == VALUE_TAGS["text"]:
        return next((cast for is_kind, cast in TEXT_CASTS if is_kind(target)), None)
    if kind == VALUE_TAGS["binary"]:
        is_kind, cast = BINARY_CASTS.get(type_oid, (None, None))
        return cast if is_kind is not None and is_kind(target) else None
    return None
