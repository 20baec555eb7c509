"""Rows of COPY ... TO STDOUT to Insert payloads, by one kernel for the text format and one for the binary format.

Source: PostgreSQL's documentation, COPY, section "File Formats". In both formats the server sends each row in a
CopyData message of its own. The kernels write the same bytes as ``wire.build`` (tests compare them).
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.compiled.jit import (
    WORD,
    copy_word,
    inlined,
    kernel,
    memory_word,
    put8,
    put_length,
    u8,
    u16,
    u32,
)
from pgoutput_construct.compiled.memory import read_only
from pgoutput_construct.errors import EngineError
from pgoutput_construct.wire import Insert, build
from pgoutput_construct.wire.messages import VALUE_TAGS
from pgoutput_construct.wire.options import STATE_PARAMETERS

__all__ = ["CopiedRows", "CopyFormat", "binary_copy_start"]

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]

_OUTSIDE: Final[Mapping[str, Any]] = dict.fromkeys(STATE_PARAMETERS, False)
_NULL, _TEXT, _BINARY = (VALUE_TAGS[name] for name in ("null", "text", "binary"))
_HEAD: Final = 5  # bytes of a value before its data: tag and length

_TAB, _NEWLINE, _ESCAPE, _NULL_MARK = ord("\t"), ord("\n"), ord("\\"), ord("N")
_ESCAPED: Final = np.zeros(256, np.uint8)
"""The character of each escape sequence, by its letter; 0 for what COPY TO never writes (CopyAttributeOutText)."""
for _letter, _meaning in zip(b"bfnrtv\\", b"\b\f\n\r\t\v\\", strict=True):
    _ESCAPED[_letter] = _meaning

_ONES: Final = 0x0101010101010101
_HIGHS: Final = -0x7F7F7F7F7F7F7F80
_IS_LITTLE: Final = sys.byteorder == "little"

_SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0"
_NULL_LENGTH: Final = 0xFFFFFFFF


@inlined
def _plain_bytes(word: int) -> int:
    """Return the number of leading bytes of a word that are neither control characters nor backslashes."""
    other = word ^ (_ESCAPE * _ONES)
    marks = (((word - 0x20 * _ONES) & ~word) | ((other - _ONES) & ~other)) & _HIGHS
    if marks == 0:
        return 8
    # The subtraction borrows, so marks above the lowest one may be wrong; the lowest one is right.
    return (((marks & -marks) - 1 & _ONES) * _ONES >> 56) - 1


@inlined
def _copy(target: Any, at: int, data: Any, start: int, size: int) -> None:
    """Copy ``size`` bytes word by word; it reads and writes up to seven bytes more, for which both arrays have room."""
    for step in range(0, size, WORD):
        copy_word(target, at + step, data, start + step)


@kernel
def _put_text(data: Any, at: int, end: int, out: Any, to: int, escaped: Any) -> tuple[int, int]:
    """Write one value of the text format; return the positions after it, -1 in ``data`` if it is malformed."""
    start = to + _HEAD
    offset = start
    if at + 1 < end and u8(data, at) == _ESCAPE and u8(data, at + 1) == _NULL_MARK:
        put8(out, to, _NULL)
        return at + 2, to + 1
    while at < end:
        if _IS_LITTLE and at + WORD <= end:
            copy_word(out, offset, data, at)
            step = _plain_bytes(memory_word(data, at))
            at += step
            offset += step
            if step == WORD:
                continue
        byte = u8(data, at)
        if byte in (_TAB, _NEWLINE):
            break
        if byte == _ESCAPE:
            at += 1
            byte = escaped[u8(data, at)] if at < end else 0
            if byte == 0:
                return -1, to
        put8(out, offset, byte)
        at += 1
        offset += 1
    put8(out, to, _TEXT)
    put_length(out, to + 1, offset - start)
    return at, offset


@kernel
def _from_text(data: Any, ends: Any, head: Any, kinds: Any, escaped: Any, out: Any, to: int, out_ends: Any) -> int:
    """Write the payloads of rows in text format at ``to``; return the number of rows before a malformed one."""
    at, columns = 0, len(kinds)
    for row in range(len(ends)):
        end = ends[row] - 1
        if end < at or u8(data, end) != _NEWLINE:
            return row
        _copy(out, to, head, 0, len(head) - WORD)
        to += len(head) - WORD
        for column in range(columns):
            if column > 0:
                if at >= end or u8(data, at) != _TAB:
                    return row
                at += 1
            at, to = _put_text(data, at, end, out, to, escaped)
            if at < 0:
                return row
        if at != end:
            return row
        at = end + 1
        out_ends[row] = to
    return len(ends)


@kernel
def _from_binary(data: Any, ends: Any, head: Any, kinds: Any, escaped: Any, out: Any, to: int, out_ends: Any) -> int:
    """Write the payloads of rows in binary format at ``to``; return the number of rows before a malformed one."""
    at, columns = 0, len(kinds)
    for row in range(len(ends)):
        end = ends[row]
        if end - at < 2 or u16(data, at) != columns:
            return row
        at += 2
        _copy(out, to, head, 0, len(head) - WORD)
        to += len(head) - WORD
        for column in range(columns):
            if end - at < 4:
                return row
            size = u32(data, at)
            at += 4
            if size == _NULL_LENGTH:
                put8(out, to, _NULL)
                to += 1
                continue
            if size > end - at:
                return row
            put8(out, to, kinds[column])
            put_length(out, to + 1, size)
            _copy(out, to + _HEAD, data, at, size)
            at += size
            to += _HEAD + size
        if at != end:
            return row
        out_ends[row] = to
    return len(ends)


class CopyFormat:
    """The format of the COPY of one table, and the head of its payloads."""

    def __init__(
        self, relation_oid: int, columns: int, layout: Mapping[str, Any], binary: Sequence[bool] | None = None
    ) -> None:
        """Prepare the conversion of a table's rows into Inserts.

        Args:
            relation_oid: The table.
            columns: The number of columns.
            layout: The options of START_REPLICATION that determine layouts (``StreamOptions.layout``).
            binary: None for the text format. For the binary format, whether each column's type has a binary format:
                the others are copied as text, and are marked as text.
        """
        empty = build(Insert(relation_oid=relation_oid, new=(None,) * columns), **_OUTSIDE, **layout)
        # The kernels copy whole words, so they read and write up to a word beyond the end.
        self._head = np.frombuffer(empty[: len(empty) - columns] + bytes(WORD), np.uint8)
        self._kinds = np.where(np.array(binary or [False] * columns, np.bool_), _BINARY, _TEXT).astype(np.uint8)
        self._kernel = _from_text if binary is None else _from_binary

    def room(self, rows: int, size: int) -> int:
        """Return the most bytes that the payloads of ``rows`` rows with ``size`` bytes in total can take."""
        return size + rows * (len(self._head) + _HEAD * len(self._kinds)) + 2 * WORD

    def write(self, data: Bytes, ends: Numbers, out: Bytes, at: int) -> Numbers:
        """Write a payload for each row; return the offsets in ``out`` at which the payloads end.

        Args:
            data: The rows, one after the other.
            ends: The offset at which each row ends.
            out: The target, with ``room`` after ``at``.
            at: The offset of the first payload.

        Raises:
            EngineError: A row that no COPY sends.
        """
        size, out_ends = int(ends[-1]), np.empty(len(ends), np.int64)
        source = data if len(data) >= size + WORD else np.append(data[:size], np.zeros(WORD, np.uint8))
        good = self._kernel(read_only(source), ends, self._head, self._kinds, _ESCAPED, out, at, out_ends)
        if good < len(ends):
            raise EngineError(
                f"row {good} of a COPY with {len(self._kinds)} columns cannot be read; please report this"
            )
        return out_ends


class CopiedRows:
    """The payloads of copied rows in one buffer, after the Relation and Types that describe them."""

    def __init__(self, form: CopyFormat, described: Sequence[bytes], size: int) -> None:
        """Create an empty buffer.

        Args:
            form: The format of the rows.
            described: The payloads of the Types and the Relation, which come first.
            size: Bytes to allocate; more if the first rows need more.
        """
        self._form, self._described, self._size = form, b"".join(described), size
        self._ends: list[Numbers] = [np.cumsum([0, *map(len, described)], dtype=np.int64)]
        self._out = np.empty(0, np.uint8)
        self.rows = 0
        """The number of rows added."""

    def has_room(self, data: Bytes, ends: Numbers) -> bool:
        """Return whether the rows fit into the buffer; the first ones always do."""
        return not self.rows or self._form.room(len(ends), int(ends[-1])) <= len(self._out) - int(self._ends[-1][-1])

    def add(self, data: Bytes, ends: Numbers) -> None:
        """Add rows that fit (``has_room``), one after the other in ``data``; ``ends`` are the offsets of their ends.

        Raises EngineError for a row that no COPY sends.
        """
        at = int(self._ends[-1][-1])
        if not self.rows:
            self._out = np.empty(max(self._size, at + self._form.room(len(ends), int(ends[-1]))), np.uint8)
            self._out[:at] = np.frombuffer(self._described, np.uint8)
        self._ends.append(self._form.write(data, ends, self._out, at))
        self.rows += len(ends)

    def payloads(self) -> pa.Array:
        """Return all payloads as an array that shares the buffer."""
        ends = np.concatenate(self._ends)
        content = self._out[: ends[-1]] if self.rows else np.frombuffer(self._described, np.uint8)
        return pa.Array.from_buffers(
            pa.large_binary(), len(ends) - 1, [None, pa.py_buffer(ends), pa.py_buffer(content)]
        )


def binary_copy_start(data: Bytes) -> int:
    """Return the size in bytes of the header of COPY's binary format; raise EngineError if ``data`` has none."""
    start = len(_SIGNATURE) + 8
    if bytes(data[: len(_SIGNATURE)]) != _SIGNATURE or len(data) < start:
        raise EngineError("COPY in binary format does not begin with its signature; please report this")
    return start + int.from_bytes(bytes(data[start - 4 : start]), "big")
