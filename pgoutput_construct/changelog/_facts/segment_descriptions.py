"""What describes the rows of a log from segment to segment: the history of one, and what the next ones inherit."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import accumulate, chain, compress, takewhile
from operator import is_not, itemgetter
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, overload

import numpy as np
import pyarrow as pa
from construct import ConstructError, Struct
from numpy.typing import NDArray

from pgoutput_construct.changelog._index.segment_index import struct_array
from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.errors import DecodeError
from pgoutput_construct.stream.relations import Description, RelationHistory
from pgoutput_construct.stream.state import ControlMessage
from pgoutput_construct.wire import definitions
from pgoutput_construct.wire.engine import engine, parse
from pgoutput_construct.wire.messages import PgoutputMessage, Relation, RelationColumn, Type
from pgoutput_construct.wire.primitives import UInt16

__all__ = [
    "Descriptions",
    "RelationReader",
    "Sent",
    "SharedColumns",
    "SuccessiveText",
    "described",
]


Sent: TypeAlias = Mapping[str, Any]
"""A Relation or Type as it was sent: an entry of the index's ``descriptions``."""


def described(sent: Iterable[Sent]) -> Iterator[Description]:
    """Yield a description for each Relation, with the Types that it takes; ``sent`` may come in any order.

    Raises DecodeError for what is no Relation and no Type.
    """
    types: dict[int, Type] = {}
    # A server sends all again over each connection, mostly as it was: what is the same is parsed once.
    known: dict[tuple[bytes, str], PgoutputMessage] = {}
    for row in sorted(sent, key=lambda row: int(row["seq"])):
        text = row["payload"], row["keywords"]
        if (message := known.get(text)) is None:
            message = known[text] = _read_sent(*text)
        if isinstance(message, Type):
            types[message.type_oid] = message
        elif isinstance(message, Relation):
            oids = {column.type_oid for column in message.columns}.intersection(types)
            yield Description(row["seq"], message, {oid: types[oid] for oid in oids})


class Descriptions:
    """The descriptions in force, and those of the segment that is being indexed."""

    def __init__(self, sent: Iterable[Sent] = (), in_force: Iterable[Mapping[str, Any]] = ()) -> None:
        """Begin a log, or go on with one: ``in_force`` is the column of its last index, ``sent`` has what it names."""
        self.sent: dict[int, Sent] = {row["seq"]: row for row in sent}
        """The descriptions in force, and those of this segment, by seq."""
        self._new: list[Sent] = []
        self._uses: dict[int, tuple[int, ...]] = {}
        self._types: dict[int, int] = {}
        for row in sorted(self.sent.values(), key=lambda row: int(row["seq"])):
            self._take_type(row["seq"], _message(row))
        known = {description.seq: description for description in described(self.sent.values())}
        scopes = [(row["stream_xid"], known[row["seq"]]) for row in in_force if row["seq"] in known]
        self._begin(scopes, {oid: _message(self.sent[seq]) for oid, seq in self._types.items()})

    def read(self, control: ControlMessage, payload: bytes, keywords: Mapping[str, Any]) -> None:
        """Take in the next control message, as it was sent, and the keywords of parse with which it is read."""
        self.history.read(control)
        seq, stream_xid, message = control
        if isinstance(message, Relation | Type):
            oid = message.relation_oid if isinstance(message, Relation) else message.type_oid
            texts = {"payload": payload, "keywords": json.dumps(keywords, sort_keys=True)}
            self.sent[seq] = {"seq": seq, "stream_xid": stream_xid, "oid": oid, **texts}
            self._new.append(self.sent[seq])
            self._take_type(seq, message)

    def leave(self, scope: int) -> None:
        """Forget what describes the rows of a chunk: what comes after it begins with a Relation again."""
        self.history.leave(scope)

    def finish(self, first_seq: int, used: Iterable[int]) -> dict[str, pa.Array]:
        """Return the columns of the index for a segment whose rows used these descriptions, and go on to the next."""
        in_force = list(self.history.in_force())
        changes = self._changes(first_seq)
        # What a stream described comes into force for all where it commits, whether or not a row has needed it yet.
        rows: dict[str, list[Sent]] = {
            "descriptions": self._new,
            "inherited": self._inherited_rows({*used, *(change["description"] for change in changes)}),
            "changes": changes,
            "in_force": self._named(in_force),
        }
        self.sent = {seq: self.sent[seq] for seq in {row["seq"] for row in rows["in_force"]}}
        self._uses = {description.seq: self._uses[description.seq] for _, description in in_force}
        self._begin(in_force, self.history.types)
        return {name: struct_array(name, entries) for name, entries in rows.items()}

    def _begin(self, in_force: Iterable[tuple[int | None, Description]], types: Mapping[int, Any]) -> None:
        """Begin a segment."""
        self._new = []
        self._inherited = list(in_force)
        self.history = RelationHistory()
        self.history.types = dict(types)
        for stream_xid, description in self._inherited:
            self.history.inherit(stream_xid, description)

    def _take_type(self, seq: int, message: PgoutputMessage) -> None:
        if isinstance(message, Type):
            self._types[message.type_oid] = seq
        elif isinstance(message, Relation):
            oids = {column.type_oid for column in message.columns}
            self._uses[seq] = tuple(self._types[oid] for oid in oids if oid in self._types)

    def _inherited_rows(self, used: set[int]) -> list[Sent]:
        """Return what stands before the segment, and its rows need."""
        found = [(scope, seq) for scope, description in self._inherited if (seq := description.seq) in used]
        new = {row["seq"] for row in self._new}
        relations = [*(seq for _, seq in found), *new]
        types = {(None, seq) for relation in relations for seq in self._uses.get(relation, ()) if seq not in new}
        return [{**self.sent[seq], "stream_xid": scope} for scope, seq in [*sorted(types), *found]]

    def _changes(self, first_seq: int) -> list[Sent]:
        found = sorted((change for change in self.history.changed() if change[0] >= first_seq), key=itemgetter(0))
        return [dict(zip(("seq", "stream_xid", "oid", "description"), change, strict=True)) for change in found]

    def _named(self, in_force: Iterable[tuple[int | None, Description]]) -> list[Sent]:
        """Name what is in force, and the Types that it takes."""
        found: list[tuple[int, int | None]] = [(description.seq, scope) for scope, description in in_force]
        types = {*self._types.values(), *(seq for relation, _ in found for seq in self._uses[relation])}
        found += [(seq, None) for seq in sorted(types)]
        return [{"seq": seq, "stream_xid": scope, "oid": self.sent[seq]["oid"]} for seq, scope in found]


class RelationReader:
    """Reads the Relations of a table, one after the other, under the same keywords of parse (``successive.py``).

    What differs is put behind the header of a Relation that has these columns alone, and that is parsed. So it takes of
    the layout only that the columns come last, which the definitions say, and how long each is, which the codec does.
    """

    def __init__(self, keywords: str) -> None:
        """Take the keywords of parse, as JSON."""
        self._engine = engine(**json.loads(keywords))
        self._payload = self._header = b""
        self._columns: tuple[RelationColumn, ...] = ()
        self._text: SuccessiveText | None = None
        self._model: Relation | None = None
        self._fronts: dict[int, bytes] = {}
        self._latest: tuple[bytes, Sequence[RelationColumn]] = b"", ()
        self._start = b""

    def columns(self, payload: bytes) -> Sequence[RelationColumn]:
        """Return the columns; those of many are parsed when one is looked at: mostly, it matters how many they are.

        Those of the same payload as before are the same object.
        """
        if payload != self._latest[0]:
            columns = self.read(payload) if len(payload) < _LONG else _LaterColumns(self, payload, self._count(payload))
            self._latest = payload, columns
        return self._latest[1]

    def read(self, payload: bytes) -> tuple[RelationColumn, ...]:
        """Return the columns; those of the same payload as before are the same tuple. Raises DecodeError as parse."""
        if payload != self._payload:
            columns = self._follow(payload) if len(payload) >= _LONG else None
            if columns is None:
                message = self._engine.parse(payload)
                assert isinstance(message, Relation)
                self._model, self._text, self._fronts, columns = message, None, {}, message.columns
            self._payload, self._columns = payload, columns
        return self._columns

    def _follow(self, payload: bytes) -> tuple[RelationColumn, ...] | None:
        """Return the columns of the next Relation; None where it has to be parsed as a whole."""
        if self._model is None or not self._columns:
            return None
        try:
            if self._text is None:
                length, _ = self._measure(self._payload)
                self._header, sizes = self._payload[:length], [*map(self._size, self._columns)]
                self._text = SuccessiveText().next(self._payload[length:], slice(0, 0), sizes)
            length, count = len(self._header), len(self._columns)
            if not payload.startswith(self._header):
                length, count = self._measure(payload)
            text = payload[length:]
            differing, middle = self._text.differing(text) or (slice(0, 0), b"")
            unlike = count - len(self._columns) + differing.stop - differing.start
            if unlike < 0:
                return None
            message = self._engine.parse(self._front(unlike) + middle)
            assert isinstance(message, Relation)
        except (DecodeError, ConstructError):  # parsed as a whole, it is explained
            return None
        sizes = [len(middle)] if unlike == 1 else [*map(self._size, message.columns)]
        self._header, self._text = payload[:length], self._text.next(text, differing, sizes)
        return (*self._columns[: differing.start], *message.columns, *self._columns[differing.stop :])

    def _count(self, payload: bytes) -> int:
        """Return how many columns a Relation has."""
        size = len(self._start)
        if not size or not payload.startswith(self._start):
            try:
                end, _ = self._measure(payload)
            except ConstructError:
                return len(self.read(payload))  # which explains it
            size = end - _COUNT_SIZE
            self._start = payload[:size]
        return int.from_bytes(payload[size : size + _COUNT_SIZE], "big")

    def _front(self, count: int) -> bytes:
        """Return the header of a Relation that has some columns."""
        if count not in self._fronts:
            columns = self._columns[:1] * count
            self._fronts[count] = self._build(columns)[: len(self._build(()))]
        return self._fronts[count]

    def _size(self, column: RelationColumn) -> int:
        return len(self._build((column,))) - len(self._build(()))

    def _build(self, columns: tuple[RelationColumn, ...]) -> bytes:
        assert self._model is not None
        return self._engine.build(replace(self._model, columns=columns))

    def _measure(self, payload: bytes) -> tuple[int, int]:
        """Return the size of a Relation's header, and how many columns follow; raise ConstructError."""
        with BytesIO(payload) as stream:
            count = int(_HEADER.parse_stream(stream, **self._engine.options.parameters()).column_count)
            return stream.tell(), count


class _LaterColumns(Sequence[RelationColumn]):
    """The columns of a Relation, which are parsed when one is looked at."""

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
"""Bytes of a Relation from which on it takes less time to look for what differs than to parse all columns."""
_COUNT_SIZE: Final = UInt16.sizeof()
"""Bytes of the last field of the header: how many columns follow."""
_HEADER: Final = Struct(*takewhile(lambda field: field.name != "columns", definitions.Relation.subcons))
"""What a Relation has before its columns."""


def _read_sent(payload: bytes, keywords: str) -> PgoutputMessage:
    """Return a message as it was sent; ``keywords`` are those of parse, as JSON."""
    return parse(payload, **json.loads(keywords))


def _message(row: Sent) -> PgoutputMessage:
    return _read_sent(row["payload"], row["keywords"])


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
