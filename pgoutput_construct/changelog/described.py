"""What describes the rows of a log from segment to segment: the history of one, and what the next ones inherit."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import takewhile
from operator import itemgetter
from typing import Any, Final, TypeAlias, overload

import pyarrow as pa
from construct import ConstructError, Struct

from pgoutput_construct.changelog.index import struct_array
from pgoutput_construct.changelog.successive import SuccessiveText
from pgoutput_construct.errors import DecodeError
from pgoutput_construct.stream.relations import Description, RelationHistory
from pgoutput_construct.stream.state import ControlMessage
from pgoutput_construct.wire import definitions
from pgoutput_construct.wire.engine import engine, parse
from pgoutput_construct.wire.messages import PgoutputMessage, Relation, RelationColumn, Type
from pgoutput_construct.wire.primitives import UInt16

__all__ = ["Descriptions", "RelationReader", "Sent", "described", "read_sent"]

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
            message = known[text] = read_sent(*text)
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


def read_sent(payload: bytes, keywords: str) -> PgoutputMessage:
    """Return a message as it was sent; ``keywords`` are those of parse, as JSON."""
    return parse(payload, **json.loads(keywords))


def _message(row: Sent) -> PgoutputMessage:
    return read_sent(row["payload"], row["keywords"])
