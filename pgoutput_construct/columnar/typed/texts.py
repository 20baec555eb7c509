"""Types that are text or bytes in Arrow: text as it is, bytea, jsonb, uuid, inet and cidr (IPv4)."""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from pgoutput_construct.columnar.jit import WORD, copy_word, inlined, kernel, put_word, u8, u64
from pgoutput_construct.columnar.typed.column import LEFT, NULL, SLACK, TAKEN, Cast, Result, Values, array_of, varying

__all__ = ["BYTEA_TEXT", "INET_BINARY", "JSONB_BINARY", "TEXT", "UUID_BINARY", "UUID_TEXT"]

BACKSLASH: Final = ord("\\")
X: Final = ord("x")
DASH: Final = ord("-")
DOT: Final = ord(".")
SLASH: Final = ord("/")
NO_ASCII: Final = -0x7F7F7F7F7F7F7F80
"""The highest bit of each byte of a word."""
UUID_BYTES: Final = 16
UUID_DIGITS: Final = 36
HEAD: Final = 4
IPV4: Final = 2
"""inet.c: family (PGSQL_AF_INET), bits, whether it is a cidr, and the bytes that follow."""


@kernel
def _copy(
    data: Any, starts: Any, lengths: Any, tags: Any, code: int, version: int, out: Any, ends: Any, state: Any
) -> int:
    """Copy values, each without a first byte of this version (-1: they have none).

    Return how many rows are not taken; with all bits inverted (less than 0) where a byte is not ASCII.
    """
    last_word = len(data) - WORD
    skip = version >= 0
    missing, at, seen = 0, 0, 0
    ends[0] = 0
    for row in range(len(starts)):
        state[row] = NULL
        if tags[row] == code:
            source, size = starts[row] + skip, lengths[row] - skip
            state[row] = LEFT if skip and (size < 0 or u8(data, source - 1) != version) else TAKEN
            if state[row] == TAKEN:
                stop = at + size
                # The last word of a value runs over its end: what follows it is written later.
                while at + WORD <= stop:
                    seen |= u64(data, source)
                    copy_word(out, at, data, source)
                    at += WORD
                    source += WORD
                if at < stop and source <= last_word:
                    seen |= u64(data, source) & (-1 << 8 * (WORD - stop + at))
                    copy_word(out, at, data, source)
                while at < stop and source > last_word:
                    seen |= u8(data, source) << 56
                    out[at] = u8(data, source)
                    at += 1
                    source += 1
                at = stop
        missing += state[row] != TAKEN
        ends[row + 1] = at
    return ~missing if seen & NO_ASCII else missing


def _copied(version: int = -1) -> Cast:
    def cast(values: Values, target: pa.DataType) -> Result:
        state, ends = np.empty(len(values), np.uint8), np.empty(len(values) + 1, np.int32)
        out = np.empty(values.size + SLACK, np.uint8)
        missing = _copy(*values.given, version, out, ends, state)
        buffers = ends, out[: ends[-1]]
        if missing >= 0 or pa.types.is_binary(target):
            return array_of(values, target, state, missing if missing >= 0 else ~missing, *buffers)
        array, left = array_of(values, pa.binary(), state, ~missing, *buffers)
        return array.cast(target), left  # Arrow sees whether it is UTF-8

    return cast


@inlined
def _nibble(byte: int) -> int:
    if 48 <= byte <= 57:
        return byte - 48
    return byte - 87 if 97 <= byte <= 102 else -1


@kernel
def _bytea(data: Any, starts: Any, lengths: Any, tags: Any, code: int, out: Any, ends: Any, state: Any) -> int:
    """Turn ``\\x`` and hexadecimal digits into bytes."""
    missing, at = 0, 0
    ends[0] = 0
    for row in range(len(starts)):
        state[row] = NULL
        if tags[row] == code:
            source, size = starts[row], lengths[row]
            good = size >= 2 and size % 2 == 0 and u8(data, source) == BACKSLASH and u8(data, source + 1) == X
            wrong = 0
            for step in range(1, size // 2 if good else 0):
                high, low = _nibble(u8(data, source + 2 * step)), _nibble(u8(data, source + 2 * step + 1))
                wrong |= high | low  # negative where one is no digit
                out[at + step - 1] = (high << 4 | low) & 255
            good = good and wrong >= 0
            state[row] = TAKEN if good else LEFT
            at += size // 2 - 1 if good else 0
        missing += state[row] != TAKEN
        ends[row + 1] = at
    return missing


@kernel
def _bytes_of_uuids(data: Any, starts: Any, lengths: Any, tags: Any, code: int, out: Any, ends: Any, state: Any) -> int:
    """Turn 8-4-4-4-12 hexadecimal digits into sixteen bytes."""
    missing, at = 0, 0
    ends[0] = 0
    for row in range(len(starts)):
        state[row] = NULL
        if tags[row] == code:
            source, wrong = starts[row], 0
            good = lengths[row] == UUID_DIGITS
            for step in range(UUID_BYTES if good else 0):
                source += step in (4, 6, 8, 10) and u8(data, source) == DASH
                high, low = _nibble(u8(data, source)), _nibble(u8(data, source + 1))
                wrong |= high | low  # negative where one is no digit
                out[at + step] = (high << 4 | low) & 255
                source += 2
            good = good and wrong >= 0 and source == starts[row] + UUID_DIGITS
            state[row] = TAKEN if good else LEFT
            at += UUID_BYTES if good else 0
        missing += state[row] != TAKEN
        ends[row + 1] = at
    return missing


@inlined
def _hex(number: int) -> int:
    """Return four bytes as eight hexadecimal digits, the most significant first."""
    word = number >> 16 << 32 | number & 0xFFFF
    word = (word << 8 | word) & 0x00FF00FF00FF00FF
    word = (word << 4 | word) & 0x0F0F0F0F0F0F0F0F
    letters = ((word + 0x0606060606060606) >> 4) & 0x0101010101010101
    return word + 0x3030303030303030 + letters * 39  # from '0' to 'a' less ten


@kernel
def _uuids(data: Any, starts: Any, lengths: Any, tags: Any, code: int, out: Any, ends: Any, state: Any) -> int:
    """Write sixteen bytes as 8-4-4-4-12 hexadecimal digits."""
    missing, at = 0, 0
    ends[0] = 0
    for row in range(len(starts)):
        state[row] = NULL
        if tags[row] == code:
            state[row] = TAKEN if lengths[row] == UUID_BYTES else LEFT
            if state[row] == TAKEN:
                high, low = u64(data, starts[row]), u64(data, starts[row] + WORD)
                put_word(out, at, _hex((high >> 32) & 0xFFFFFFFF))
                middle, after = _hex(high & 0xFFFFFFFF), _hex((low >> 32) & 0xFFFFFFFF)
                # Each word runs over what is written next.
                put_word(out, at + 9, middle)
                put_word(out, at + 14, middle << 32)
                put_word(out, at + 19, after)
                put_word(out, at + 24, after << 32)
                put_word(out, at + 28, _hex(low & 0xFFFFFFFF))
                out[at + 8] = out[at + 13] = out[at + 18] = out[at + 23] = DASH
                at += UUID_DIGITS
        missing += state[row] != TAKEN
        ends[row + 1] = at
    return missing


@inlined
def _decimal(out: Any, at: int, number: int) -> int:
    """Write a number below 1000; return where it ends."""
    for power in (100, 10, 1):
        if number >= power or power == 1:
            out[at] = 48 + number // power % 10
            at += 1
    return at


@kernel
def _inets(data: Any, starts: Any, lengths: Any, tags: Any, code: int, out: Any, ends: Any, state: Any) -> int:
    """Write IPv4 addresses; the bits after those of a network, or where they are fewer than all."""
    missing, at = 0, 0
    ends[0] = 0
    for row in range(len(starts)):
        state[row] = NULL
        if tags[row] == code:
            source, size = starts[row], lengths[row]
            state[row] = LEFT
            if size == HEAD + 4 and u8(data, source) == IPV4 and u8(data, source + 3) == 4:
                bits, network = u8(data, source + 1), u8(data, source + 2)
                if bits <= 32 and network <= 1:
                    for place in range(source + HEAD, source + size):
                        at = _decimal(out, at, u8(data, place))
                        out[at] = DOT
                        at += 1
                    at -= 1
                    if network or bits < 32:
                        out[at] = SLASH
                        at = _decimal(out, at + 1, bits)
                    state[row] = TAKEN
        missing += state[row] != TAKEN
        ends[row + 1] = at
    return missing


TEXT: Final = _copied()
JSONB_BINARY: Final = _copied(version=1)
BYTEA_TEXT: Final = varying(_bytea)
UUID_BINARY: Final = varying(_uuids, UUID_DIGITS)
UUID_TEXT: Final = varying(_bytes_of_uuids, UUID_BYTES)
INET_BINARY: Final = varying(_inets, len("255.255.255.255/32."))
