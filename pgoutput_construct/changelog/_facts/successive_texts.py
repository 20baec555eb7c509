"""Reads successive versions of a table's columns by parsing only what is needed of them.

The capture records all columns of a table whenever one of them changes: up to 1,600 columns, of which an ALTER TABLE
mostly concerns one. Parsing all of them again would take most of the time of opening a log. So the next text is
compared with the previous one, as bytes: what both have at the beginning and at the end is the same, and only the
pieces between are parsed (``SuccessiveText``, by which ``catalog_readings.TableFactsReader`` reads events TABLE_FACTS).
The columns that did not change are then the same objects (``SharedColumns`` shares chunks of them between versions), so
that comparing two versions takes ``is`` for each chunk.

A server sends a Relation again over each connection and after each change, too. Of most of them only the number of
columns is needed, so they are parsed when a column is accessed (``RelationReader``).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from itertools import accumulate, chain, compress, takewhile
from operator import is_not
from typing import Final, Generic, Protocol, TypeVar, overload

import numpy as np
from construct import ConstructError, Struct
from numpy.typing import NDArray

from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.changelog._segment.segment_descriptions import sent_engine
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire import definitions
from pgoutput_construct.wire.messages import Relation, RelationColumn
from pgoutput_construct.wire.primitives import UInt16

__all__ = ["RelationReader", "SharedColumns", "SuccessiveText"]

_CHUNK: Final = 32
_WORD: Final = np.dtype(np.uint64)


@dataclass(frozen=True)
class SuccessiveText:
    """A text that consists of pieces, most of which the next text has too."""

    text: bytes | memoryview = b""
    starts: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    """Where each piece begins."""
    gap: int = 0
    """Bytes between two pieces."""

    def differing(self, text: bytes | memoryview) -> tuple[slice, bytes] | None:
        """Return the pieces that the next text does not have, and what it has instead of them; None if it is equal."""
        head, tail = _common_ends(self.text, text)
        if head + tail == len(self.text) == len(text):
            return None
        count = len(self.starts)
        first = max(int(self.starts.searchsorted(head, "right")) - 1, 0)
        end = int(self.starts.searchsorted(len(self.text) - tail + self.gap))
        start = int(self.starts[first]) if count else 0
        rest = len(self.text) - int(self.starts[end]) + self.gap if end < count else 0
        return slice(first, end), bytes(text[start : len(text) - rest])

    def next(self, text: bytes | memoryview, differing: slice, lengths: Sequence[int]) -> "SuccessiveText":
        """Return the next text.

        Args:
            text: Its bytes.
            differing: The pieces that it does not have.
            lengths: The lengths in bytes of the pieces that it has instead.
        """
        first, end = differing.start, differing.stop
        if len(text) == len(self.text) and len(lengths) == end - first == 1:
            return SuccessiveText(text, self.starts, self.gap)
        start = int(self.starts[first]) if len(self.starts) else 0
        begun = list(accumulate((length + self.gap for length in lengths), initial=start))[:-1]
        rest = self.starts[end:] + (len(text) - len(self.text))
        return SuccessiveText(text, np.concatenate([self.starts[:first], np.array(begun, np.int64), rest]), self.gap)


def _common_ends(mine: bytes | memoryview, other: bytes | memoryview) -> tuple[int, int]:
    """Return the lengths of the common prefix and of the common suffix, which do not overlap."""
    rest, size = min(len(mine), len(other)), _WORD.itemsize
    words = rest // size
    differs = np.frombuffer(mine, _WORD, words) != np.frombuffer(other, _WORD, words)
    head = _leading_equal(differs) * size
    while head < rest and mine[head] == other[head]:
        head += 1
    rest -= head
    loose = len(mine) % size
    if len(mine) != len(other):
        words = rest // size
        mine_end = np.frombuffer(mine, _WORD, words, len(mine) - words * size)
        tail = _leading_equal((mine_end != np.frombuffer(other, _WORD, words, len(other) - words * size))[::-1]) * size
    elif mine[len(mine) - loose :] == other[len(other) - loose :]:  # the words compared above end before these bytes
        tail = min(loose + _leading_equal(differs[::-1]) * size, rest)
    else:
        tail = 0
    while tail < rest and mine[-1 - tail] == other[-1 - tail]:
        tail += 1
    return head, tail


def _leading_equal(differs: NDArray[np.bool_]) -> int:
    """Return the number of leading words that are equal."""
    if not len(differs):
        return 0
    found = int(differs.argmax())
    return found if differs[found] else len(differs)


class _Numbered(Protocol):
    @property
    def number(self) -> int: ...

    @property
    def published(self) -> bool: ...


_Column = TypeVar("_Column", bound=_Numbered)


class SharedColumns(Sequence[_Column], Generic[_Column]):
    """The columns of one version of a table, in chunks that are shared with other versions."""

    __slots__ = ("_chunks", "published")

    def __init__(self, columns: Iterable[_Column] = ()) -> None:
        """Split columns into chunks."""
        self._chunks = [*_chunks(tuple(columns))]
        self.published = tuple(sorted(_published(self)))
        """The numbers of published columns, sorted; mostly the same object as in the previous version."""

    def __len__(self) -> int:
        return (len(self._chunks) - 1) * _CHUNK + len(self._chunks[-1]) if self._chunks else 0

    def __iter__(self) -> Iterator[_Column]:
        return chain.from_iterable(self._chunks)

    @overload
    def __getitem__(self, index: int) -> _Column: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[_Column]: ...

    def __getitem__(self, index: int | slice) -> _Column | Sequence[_Column]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            first = start // _CHUNK
            some = tuple(chain.from_iterable(self._chunks[first : -(-stop // _CHUNK)])) if step == 1 else tuple(self)
            return some[start - first * _CHUNK : stop - first * _CHUNK] if step == 1 else some[index]
        number = index if index >= 0 else range(len(self))[index]
        return self._chunks[number // _CHUNK][number % _CHUNK]

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, SharedColumns) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def replaced(self, where: slice, columns: Sequence[_Column]) -> "SharedColumns[_Column]":
        """Return these columns with those of a slice replaced by others; other chunks are shared."""
        first = where.start // _CHUNK
        found: SharedColumns[_Column] = SharedColumns.__new__(SharedColumns)
        if len(columns) == where.stop - where.start == 1:  # the usual case: all others stay in their chunks
            (column,), offset = columns, where.start - first * _CHUNK
            chunk = self._chunks[first]
            found._chunks = self._chunks.copy()
            found._chunks[first] = (*chunk[:offset], column, *chunk[offset + 1 :])
            found.published = self._published_with(chunk[offset : offset + 1], columns)
            return found
        # If the number is the same, later columns stay in their chunks.
        end = -(-where.stop // _CHUNK) if len(columns) == where.stop - where.start else len(self._chunks)
        mine = tuple(chain.from_iterable(self._chunks[first:end]))
        start, stop = where.start - first * _CHUNK, where.stop - first * _CHUNK
        chunks = [*_chunks((*mine[:start], *columns, *mine[stop:]))]
        for index, (old, new) in enumerate(zip(self._chunks[first:end], chunks, strict=False)):
            if old == new:
                chunks[index] = old
        found._chunks = [*self._chunks[:first], *chunks, *self._chunks[end:]]
        found.published = self._published_with(mine[start:stop], columns)
        return found

    def differing(self, *others: "SharedColumns[_Column]") -> list[list[_Column]]:
        """Return the columns that are not the same object in all versions: one list for each version.

        Columns are compared by index; columns beyond the end of the shortest version differ.
        """
        all_of = self, *others
        found: list[list[_Column]] = [[] for _ in all_of]
        for chunk_index in _unlike(*(each._chunks for each in all_of)):
            chunks = [each._chunks[chunk_index] for each in all_of]
            indexes = _unlike(*chunks)
            for side, chunk in zip(found, chunks, strict=True):
                side.extend(map(chunk.__getitem__, indexes))
        shortest = min(map(len, all_of))
        for side, each in zip(found, all_of, strict=True):
            side.extend(each[shortest:] if len(each) > shortest else ())
        return found

    def _published_with(self, removed: Sequence[_Column], added: Sequence[_Column]) -> tuple[int, ...]:
        """Return the numbers of published columns after replacing some columns by others."""
        former, latter = _published(removed), _published(added)
        if former == latter:
            return self.published
        gone = {*former}
        return tuple(sorted([*(number for number in self.published if number not in gone), *latter]))


def _published(columns: Iterable[_Column]) -> list[int]:
    return [column.number for column in columns if column.published]


def _unlike(first: Sequence[object], *others: Sequence[object]) -> list[int]:
    """Return the indices at which not all sequences have the same object, up to the end of the shortest."""
    shortest = min(map(len, (first, *others)))
    if len(others) == 1:
        return [*compress(range(shortest), map(is_not, first, *others))]
    found = {index for other in others for index in compress(range(shortest), map(is_not, first, other))}
    return sorted(found)


def _chunks(columns: tuple[_Column, ...]) -> Iterator[tuple[_Column, ...]]:
    for start in range(0, len(columns), _CHUNK):
        yield columns[start : start + _CHUNK]


class RelationReader:
    """Reads the successive Relations of a table, all with the same keywords of ``parse``.

    It knows of the layout only that the number of columns comes last in the header, and the columns after it.
    """

    def __init__(self, keywords: str) -> None:
        """Take the keywords of ``parse``, as JSON."""
        self._engine = sent_engine(keywords)
        self._payload = b""
        self._columns: tuple[RelationColumn, ...] = ()
        self._latest: tuple[bytes, Sequence[RelationColumn]] = b"", ()
        self._start = b""

    def columns(self, payload: bytes) -> Sequence[RelationColumn]:
        """Return the columns, parsed when one is accessed if there are many: mostly only their number is needed.

        The same payload as before returns the same object.
        """
        if payload != self._latest[0]:
            columns = self.read(payload) if len(payload) < _LONG else _LaterColumns(self, payload, self._count(payload))
            self._latest = payload, columns
        return self._latest[1]

    def read(self, payload: bytes) -> tuple[RelationColumn, ...]:
        """Return the columns; the same payload as before returns the same tuple. Raises DecodeError like ``parse``."""
        if payload != self._payload:
            message = self._engine.parse(payload)
            if not isinstance(message, Relation):
                raise ChangeLogError(f"the index has a {type(message).__name__} as the Relation of rows")
            self._payload, self._columns = payload, message.columns
        return self._columns

    def _count(self, payload: bytes) -> int:
        """Return the number of columns of a Relation."""
        size = len(self._start)
        if not size or not payload.startswith(self._start):
            try:
                size = self._measure(payload) - _COUNT_SIZE
            except ConstructError:
                return len(self.read(payload))  # which raises the error
            self._start = payload[:size]
        return int.from_bytes(payload[size : size + _COUNT_SIZE], "big")

    def _measure(self, payload: bytes) -> int:
        """Return the size of a Relation's header in bytes; raises ConstructError."""
        with BytesIO(payload) as stream:
            _HEADER.parse_stream(stream, **self._engine.options.parameters())
            return stream.tell()


class _LaterColumns(Sequence[RelationColumn]):
    """The columns of a Relation, parsed when one is accessed."""

    def __init__(self, reader: RelationReader, payload: bytes, count: int) -> None:
        self._reader, self._payload, self._count = reader, payload, count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> RelationColumn: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[RelationColumn]: ...

    def __getitem__(self, index: int | slice) -> RelationColumn | Sequence[RelationColumn]:
        return self._reader.read(self._payload)[index]

    def __iter__(self) -> Iterator[RelationColumn]:
        return iter(self._reader.read(self._payload))


_LONG: Final = 512
"""Bytes of a Relation from which on its columns are parsed only when one is accessed."""
_COUNT_SIZE: Final = UInt16.sizeof()
"""Bytes of the last field of the header, the number of columns."""
_HEADER: Final = Struct(*takewhile(lambda field: field.name != "columns", definitions.Relation.subcons))
"""The fields of a Relation before its columns."""
