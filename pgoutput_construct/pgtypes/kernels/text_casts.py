"""Casts to string or binary in Arrow: bytea, uuid, inet and cidr (IPv4), time; and the copy of a text."""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from pgoutput_construct.compiled.jit import WORD, copy_word, inlined, kernel, put_length, put_word, u8, u32, u64
from pgoutput_construct.compiled.memory import room
from pgoutput_construct.pgtypes.kernels.cast import LEFT, NULL, SLACK, TAKEN, Cast, ColumnValues, Result, array_of
from pgoutput_construct.pgtypes.kernels.date_readers import NONE, write_time

__all__ = ["BYTEA_TEXT", "INET_BINARY", "NO_ASCII", "TIME_BINARY", "UUID_BINARY", "UUID_TEXT", "copy_text"]

NO_ASCII: Final = -0x7F7F7F7F7F7F7F80
"""The highest bit of each byte of a word."""


@inlined
def copy_text(data: Any, source: int, size: int, out: Any, at: int) -> int:
    """Copy bytes word by word; return the bitwise OR of the words, which shows whether all are ASCII (NO_ASCII).

    The last word written may extend past the end of the text, where the next text is written afterwards.
    """
    last_word, stop, seen = len(data) - WORD, at + size, 0
    while at + WORD <= stop:
        seen |= u64(data, source)
        copy_word(out, at, data, source)
        at += WORD
        source += WORD
    if at < stop and source <= last_word:
        seen |= u64(data, source) & (-1 << 8 * (WORD - stop + at))
        copy_word(out, at, data, source)
        return seen
    while at < stop:
        seen |= u8(data, source)
        out[at] = u8(data, source)
        at += 1
        source += 1
    return seen


BACKSLASH: Final = ord("\\")
X: Final = ord("x")
DASH: Final = ord("-")
DOT: Final = ord(".")
SLASH: Final = ord("/")
ZEROS: Final = 0x3030303030303030
"""A word of digits 0."""
UUID_BYTES: Final = 16
UUID_DIGITS: Final = 36
HEAD: Final = 4
IPV4: Final = 2
"""network_send(): family (IPV4 is PGSQL_AF_INET), bits, whether it is a cidr, size of the address; the address."""
BYTEA, BYTES_OF_UUID, UUID, INET, TIME = range(5)
"""The conversions. One kernel handles all of them, because numba caches no kernel that takes a function as argument."""


@inlined
def _hex(number: int) -> int:
    """Return the eight hexadecimal digits of four bytes, as a big-endian word."""
    word = number >> 16 << 32 | number & 0xFFFF
    word = (word << 8 | word) & 0x00FF00FF00FF00FF
    word = (word << 4 | word) & 0x0F0F0F0F0F0F0F0F
    letters = ((word + 0x0606060606060606) >> 4) & 0x0101010101010101
    return word + 0x3030303030303030 + letters * 39  # from '0' to 'a' less ten


@inlined
def _four_bytes(word: int) -> int:
    """Return the four bytes of eight hexadecimal digits, unchecked: compare ``_hex`` of the result with the input."""
    digits = (word & 0x0F0F0F0F0F0F0F0F) + ((word >> 6) & 0x0101010101010101) * 9
    word = (digits >> 4 | digits) & 0x00FF00FF00FF00FF
    word = (word >> 8 | word) & 0x0000FFFF0000FFFF
    return (word >> 16 | word) & 0xFFFFFFFF


@inlined
def _bytea(data: Any, source: int, size: int, out: Any, at: int) -> int:
    """Write the bytes of ``\\x`` and hexadecimal digits."""
    end, offset = source + size, source + 2
    if end < WORD or size < 2 or size % 2 or u8(data, source) != BACKSLASH or u8(data, source + 1) != X:
        return NONE
    stop, wrong = at + size // 2 - 1, 0
    # The last word written may extend past the end; the next value overwrites that.
    while offset < end:
        if offset + WORD <= end:
            word = u64(data, offset)
        else:
            rest = 8 * (end - offset)
            word = u64(data, end - WORD) << 64 - rest | ZEROS >> rest
        four = _four_bytes(word)
        wrong |= _hex(four) ^ word
        put_length(out, at, four)
        offset += WORD
        at += 4
    return NONE if wrong else stop


@inlined
def _bytes_of_uuid(data: Any, source: int, size: int, out: Any, at: int) -> int:
    """Write the sixteen bytes of 8-4-4-4-12 hexadecimal digits."""
    if size != UUID_DIGITS:
        return NONE
    wrong = u8(data, source + 8) ^ DASH | u8(data, source + 13) ^ DASH
    wrong |= u8(data, source + 18) ^ DASH | u8(data, source + 23) ^ DASH
    middle = u32(data, source + 9) << 32 | u32(data, source + 14)
    after = u32(data, source + 19) << 32 | u32(data, source + 24)
    for step, word in enumerate((u64(data, source), middle, after, u64(data, source + 28))):
        four = _four_bytes(word)
        wrong |= _hex(four) ^ word
        put_length(out, at + 4 * step, four)
    return NONE if wrong else at + UUID_BYTES


@inlined
def _uuid(data: Any, source: int, size: int, out: Any, at: int) -> int:
    """Write sixteen bytes as 8-4-4-4-12 hexadecimal digits."""
    if size != UUID_BYTES:
        return NONE
    high, low = u64(data, source), u64(data, source + WORD)
    put_word(out, at, _hex((high >> 32) & 0xFFFFFFFF))
    middle, after = _hex(high & 0xFFFFFFFF), _hex((low >> 32) & 0xFFFFFFFF)
    # Each word is longer than its group of digits; the next one overwrites the excess.
    put_word(out, at + 9, middle)
    put_word(out, at + 14, middle << 32)
    put_word(out, at + 19, after)
    put_word(out, at + 24, after << 32)
    put_word(out, at + 28, _hex(low & 0xFFFFFFFF))
    out[at + 8] = out[at + 13] = out[at + 18] = out[at + 23] = DASH
    return at + UUID_DIGITS


@inlined
def _decimal(out: Any, at: int, number: int) -> int:
    """Write a number below 1000; return the offset of its end."""
    for power in (100, 10, 1):
        if number >= power or power == 1:
            out[at] = 48 + number // power % 10
            at += 1
    return at


@inlined
def _inet(data: Any, source: int, size: int, out: Any, at: int) -> int:
    """Write an IPv4 address, with its prefix length if it is a cidr or the length is below 32."""
    if size != HEAD + 4 or u8(data, source) != IPV4 or u8(data, source + 3) != 4:
        return NONE
    bits, network = u8(data, source + 1), u8(data, source + 2)
    if bits > 32 or network > 1:
        return NONE
    for offset in range(source + HEAD, source + size):
        at = _decimal(out, at, u8(data, offset))
        out[at] = DOT
        at += 1
    at -= 1
    if network or bits < 32:
        out[at] = SLASH
        at = _decimal(out, at + 1, bits)
    return at


@inlined
def _write(kind: int, data: Any, source: int, size: int, out: Any, at: int) -> int:
    """Convert one value; return the offset of its end in ``out``, NONE if it is left."""
    if kind == BYTEA:
        return _bytea(data, source, size, out, at)
    if kind == BYTES_OF_UUID:
        return _bytes_of_uuid(data, source, size, out, at)
    if kind == UUID:
        return _uuid(data, source, size, out, at)
    if kind == INET:
        return _inet(data, source, size, out, at)
    return write_time(data, source, size, out, at)


@kernel
def _rewrite(
    data: Any, starts: Any, lengths: Any, tags: Any, code: int, kind: int, out: Any, ends: Any, state: Any
) -> int:
    """Convert the values of a column; return the number of rows without a converted value."""
    missing, at = 0, 0
    ends[0] = 0
    for row in range(len(starts)):
        state[row] = NULL
        if tags[row] == code:
            end = _write(kind, data, starts[row], lengths[row], out, at)
            state[row] = TAKEN if end >= 0 else LEFT
            at = max(at, end)
        missing += state[row] != TAKEN
        ends[row + 1] = at
    return missing


def _rewritten(kind: int, width: int | None = None) -> Cast:
    """Return the cast of a conversion whose output has at most ``width`` bytes per row; None: as many as its input."""

    def cast(values: ColumnValues, target: pa.DataType) -> Result:
        size = values.size if width is None else width * len(values)
        state, ends = room(len(values)), room(len(values) + 1, np.int32)
        out = room(size + SLACK)
        missing = _rewrite(*values.given, kind, out, ends, state)
        return array_of(values, target, state, missing, ends, out[: ends[-1]])

    return cast


BYTEA_TEXT: Final = _rewritten(BYTEA)
UUID_BINARY: Final = _rewritten(UUID, UUID_DIGITS)
UUID_TEXT: Final = _rewritten(BYTES_OF_UUID, UUID_BYTES)
INET_BINARY: Final = _rewritten(INET, len("255.255.255.255/32."))
TIME_BINARY: Final = _rewritten(TIME, len("00:00:00.000000"))
