"""Texts copied a word at a time."""

from typing import Any, Final

from pgoutput_construct.compiled.jit import WORD, copy_word, inlined, u8, u64

__all__ = ["NO_ASCII", "copy_text"]

NO_ASCII: Final = -0x7F7F7F7F7F7F7F80
"""The highest bit of each byte of a word."""


@inlined
def copy_text(data: Any, source: int, size: int, out: Any, at: int) -> int:
    """Copy bytes; return their bits, which tell whether all are ASCII (NO_ASCII).

    The last word of a text runs over its end, where the next one is written later.
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
