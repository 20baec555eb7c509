"""What is said of the columns of a table again and again: a text is read only where it differs from the one before it.

A table has up to 1,600 columns. Each event TABLE_FACTS and each Relation has all of them, and an ALTER TABLE mostly
concerns one: a thousand alterations of a wide table are hundreds of megabytes, of which some kilobytes are new. So:

- A text is compared with its predecessor from both ends, as numpy compares words (``SuccessiveText``). Only the pieces,
  one a column, that are not within what both have in common are parsed: by the JSON parser (``facts.py``), or by the
  codec (``described.py``). The objects of all others are those of the predecessor.
- The columns of a reading are in chunks, and a reading has the chunks of its predecessor wherever all their columns are
  the same objects (``SharedColumns``). A reading costs a chunk and a list of the chunks, instead of 1,600 references,
  and readings are compared chunk by chunk, by identity.

Neither changes what is read: a piece is taken from the predecessor where its bytes are the same, and stands alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, compress
from operator import is_not
from typing import Final, Generic, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from pgoutput_construct.changelog.block import Numbers

__all__ = ["SharedColumns", "SuccessiveText"]

_CHUNK: Final = 32
_WORD: Final = np.dtype(np.uint64)


@dataclass(frozen=True)
class SuccessiveText:
    """A text of pieces, of which the next text may have some."""

    text: bytes | memoryview = b""
    starts: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    """Where each piece begins."""
    gap: int = 0
    """Bytes between two pieces."""

    def differing(self, text: bytes | memoryview) -> tuple[slice, bytes] | None:
        """Return the pieces that the next text may not have, and what it has instead of them; None if it is equal."""
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
        """Return the next text, which has pieces of these lengths instead of those that differ."""
        first, end = differing.start, differing.stop
        if len(text) == len(self.text) and len(lengths) == end - first == 1:
            return SuccessiveText(text, self.starts, self.gap)
        start = int(self.starts[first]) if len(self.starts) else 0
        begun = list(accumulate((length + self.gap for length in lengths), initial=start))[:-1]
        rest = self.starts[end:] + (len(text) - len(self.text))
        return SuccessiveText(text, np.concatenate([self.starts[:first], np.array(begun, np.int64), rest]), self.gap)


def _common_ends(mine: bytes | memoryview, other: bytes | memoryview) -> tuple[int, int]:
    """Return how many bytes two texts have in common at the beginning, and how many of the others at the end."""
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
    elif mine[len(mine) - loose :] == other[len(other) - loose :]:  # the words that were compared end before these
        tail = min(loose + _leading_equal(differs[::-1]) * size, rest)
    else:
        tail = 0
    while tail < rest and mine[-1 - tail] == other[-1 - tail]:
        tail += 1
    return head, tail


def _leading_equal(differs: NDArray[np.bool_]) -> int:
    """Return how many words are equal before the first that differs."""
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
    """The columns of a reading; chunks of them are those of other readings, too."""

    __slots__ = ("_chunks", "published")

    def __init__(self, columns: Iterable[_Column] = ()) -> None:
        """Take the columns."""
        self._chunks = [*_chunks(tuple(columns))]
        self.published = tuple(sorted(_published(self)))
        """The numbers of those that are published, sorted; of columns that replace others mostly the same object."""

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
        place = index if index >= 0 else range(len(self))[index]
        return self._chunks[place // _CHUNK][place % _CHUNK]

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, SharedColumns) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def replaced(self, where: slice, columns: Sequence[_Column]) -> "SharedColumns[_Column]":
        """Return these columns with others instead of some."""
        first = where.start // _CHUNK
        found: SharedColumns[_Column] = SharedColumns.__new__(SharedColumns)
        if len(columns) == where.stop - where.start == 1:  # mostly so, and then all others stay where they are
            (column,), place = columns, where.start - first * _CHUNK
            chunk = self._chunks[first]
            found._chunks = self._chunks.copy()
            found._chunks[first] = (*chunk[:place], column, *chunk[place + 1 :])
            found.published = self._published_with(chunk[place : place + 1], columns)
            return found
        # Of as many columns those after them stay in their chunks.
        end = -(-where.stop // _CHUNK) if len(columns) == where.stop - where.start else len(self._chunks)
        mine = tuple(chain.from_iterable(self._chunks[first:end]))
        start, stop = where.start - first * _CHUNK, where.stop - first * _CHUNK
        chunks = [*_chunks((*mine[:start], *columns, *mine[stop:]))]
        for place, (old, new) in enumerate(zip(self._chunks[first:end], chunks, strict=False)):
            if old == new:
                chunks[place] = old
        found._chunks = [*self._chunks[:first], *chunks, *self._chunks[end:]]
        found.published = self._published_with(mine[start:stop], columns)
        return found

    def differing(self, *others: "SharedColumns[_Column]") -> list[list[_Column]]:
        """Return the columns that are not one object in these and all others: those of these, and those of each other.

        The first columns are compared with the first, and so on; those that the shortest does not have, differ.
        """
        all_of = self, *others
        found: list[list[_Column]] = [[] for _ in all_of]
        for place in _unlike(*(each._chunks for each in all_of)):
            chunks = [each._chunks[place] for each in all_of]
            places = _unlike(*chunks)
            for side, chunk in zip(found, chunks, strict=True):
                side.extend(map(chunk.__getitem__, places))
        shortest = min(map(len, all_of))
        for side, each in zip(found, all_of, strict=True):
            side.extend(each[shortest:] if len(each) > shortest else ())
        return found

    def _published_with(self, removed: Sequence[_Column], added: Sequence[_Column]) -> tuple[int, ...]:
        """Return the numbers of those that are published, with some columns instead of others."""
        former, latter = _published(removed), _published(added)
        if former == latter:
            return self.published
        gone = {*former}
        return tuple(sorted([*(number for number in self.published if number not in gone), *latter]))


def _published(columns: Iterable[_Column]) -> list[int]:
    return [column.number for column in columns if column.published]


def _unlike(first: Sequence[object], *others: Sequence[object]) -> list[int]:
    """Return where some of the others do not have the object that the first one has, as far as all of them go."""
    shortest = min(map(len, (first, *others)))
    if len(others) == 1:
        return [*compress(range(shortest), map(is_not, first, *others))]
    found = {place for other in others for place in compress(range(shortest), map(is_not, first, other))}
    return sorted(found)


def _chunks(columns: tuple[_Column, ...]) -> Iterator[tuple[_Column, ...]]:
    for start in range(0, len(columns), _CHUNK):
        yield columns[start : start + _CHUNK]
