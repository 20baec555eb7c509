"""Which Relation describes the rows of an OID: now, and at any position of a log."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.stream.bounds import effect_of, having, said
from pgoutput_construct.stream.state import ControlMessage, StreamState
from pgoutput_construct.wire import messages as m

__all__ = ["DESCRIBING", "Description", "RelationCache", "RelationHistory"]

DESCRIBING: Final = having("begin_segment", "commit_streamed", "abort_streamed", "prepare_streamed") | {
    m.Relation,
    m.Type,
}
"""The messages that change which Relation describes an OID."""

_FORGOTTEN: Final = -1


@dataclass(frozen=True, slots=True)
class Description:
    """All that is needed to decode the rows of a table, as sent at one moment."""

    seq: int
    """Position of the Relation message in the log (or how many messages came before it)."""
    relation: m.Relation
    """The table and its columns."""
    types: Mapping[int, m.Type]
    """The types of the columns that are not built in, by OID, as far as they have been named."""


class RelationCache:
    """What describes each OID after the latest message.

    A streamed transaction has relations of its own: PostgreSQL sends each once per relation and top-level
    transaction (maybe_send_schema()), because the table may look different inside it. When the transaction
    commits they count for everyone; when it or a subtransaction of it aborts, PostgreSQL forgets having sent them
    (cleanup_rel_sync_cache()) and so do we; after Stream Prepare PostgreSQL sends them again as well, and so it does
    when a stream begins again after a lost connection.
    """

    def __init__(self) -> None:
        self.types: dict[int, m.Type] = {}
        """The types that are not built in, by OID."""
        self._latest: dict[int | None, dict[int, Description]] = {None: {}}
        self.stream_xid: int | None = None
        """The top-level xid of the stream that is open, None outside a stream."""
        self._state = StreamState()
        self._seen = 0

    def update(self, message: m.PgoutputMessage) -> None:
        """Take in the next message of the stream, whatever it is."""
        self.read(ControlMessage(self._seen, self.stream_xid, message))
        self._state.follow(message)
        self.stream_xid = self._state.stream_xid
        self._seen += 1

    def read(self, control: ControlMessage) -> None:
        """Take in the next control message of a log; others may come too and change nothing."""
        seq, stream_xid, message = control
        match message:
            case m.Relation():
                self._set(seq, stream_xid, Description(seq, message, self._types_of(message)))
            case m.Type():
                self.types[message.type_oid] = message
            case _:
                self._leave_stream(seq, message)

    def _leave_stream(self, seq: int, message: m.PgoutputMessage) -> None:
        match effect_of(message):
            case "commit_streamed":
                for description in self._forget(seq, said(message, "xid")):
                    self._set(seq, None, description)
            case "abort_streamed" | "prepare_streamed":
                self._forget(seq, said(message, "xid"))
            case "begin_segment" if said(message, "first"):
                self._forget(seq, said(message, "xid"))

    def get(self, relation_oid: int) -> m.Relation:
        """Return the Relation that describes an OID here; raise ProtocolError when none has been sent."""
        return self.description(relation_oid).relation

    def description(self, relation_oid: int) -> Description:
        """Return all that describes an OID here; raise ProtocolError when no Relation has been sent."""
        description = self._latest.get(self.stream_xid, {}).get(relation_oid)
        if description is None:
            problem = _undescribed(relation_oid, self.stream_xid)
            raise ProtocolError(f"{problem}: read the stream from its start, or from the reconnection")
        return description

    def _set(self, seq: int, stream_xid: int | None, description: Description) -> None:
        self._latest.setdefault(stream_xid, {})[description.relation.relation_oid] = description

    def _forget(self, seq: int, stream_xid: int) -> Sequence[Description]:
        return tuple(self._latest.pop(stream_xid, {}).values())

    def _types_of(self, relation: m.Relation) -> Mapping[int, m.Type]:
        oids = {column.type_oid for column in relation.columns}
        return {oid: self.types[oid] for oid in oids if oid in self.types}


class RelationHistory(RelationCache):
    """The same, kept for every position instead of the latest alone; read a log in order, then ask in any.

    A stream has a scope of its own, named by its top-level xid; the scope None is outside of streams.
    """

    def __init__(self, descriptions: Iterable[Description] = ()) -> None:
        """Begin with nothing in force; ``descriptions`` are known already, and ``change`` says when they count."""
        super().__init__()
        self.descriptions: list[Description] = list(descriptions)
        """Every Relation of the log, in order; rows name theirs by its index in this."""
        self._indexes: dict[int, int] = {each.seq: place for place, each in enumerate(self.descriptions)}
        self._changes: dict[tuple[int | None, int], tuple[list[int], list[int]]] = {}

    def inherit(self, stream_xid: int | None, description: Description) -> None:
        """Begin with what is in force where the part of a log begins that is read; the types stay the caller's."""
        if description.seq not in self._indexes:
            self._indexes[description.seq] = len(self.descriptions)
            self.descriptions.append(description)
        self._latest.setdefault(stream_xid, {})[description.relation.relation_oid] = description
        self.change(description.seq, stream_xid, description.relation.relation_oid, description.seq)

    def in_force(self) -> Iterator[tuple[int | None, Description]]:
        """Yield what describes an OID now, and in which stream (None outside)."""
        for stream_xid, by_oid in self._latest.items():
            yield from ((stream_xid, description) for description in by_oid.values())

    def leave(self, scope: int) -> None:
        """Have a scope end without a message; its rows stay described."""
        self._latest.pop(scope, None)

    def changed(self) -> Iterator[tuple[int, int | None, int, int]]:
        """Yield all of ``changes``: from which position, in which stream, which OID, seq of what describes it."""
        for (stream_xid, oid), (seqs, indexes) in self._changes.items():
            for seq, index in zip(seqs, indexes, strict=True):
                yield seq, stream_xid, oid, index if index == _FORGOTTEN else self.descriptions[index].seq

    def change(self, seq: int, stream_xid: int | None, relation_oid: int, description: int) -> None:
        """Take over what ``changed`` yields of a history that was read earlier; all must come in order."""
        index = _FORGOTTEN if description == _FORGOTTEN else self._indexes[description]
        seqs, indexes = self._changes.setdefault((stream_xid, relation_oid), ([], []))
        seqs.append(seq)
        indexes.append(index)

    def changes(self, relation_oid: int, stream_xid: int | None = None) -> tuple[Sequence[int], Sequence[int]]:
        """Return from which positions on an OID had which description (its index, -1 for none)."""
        return self._changes.get((stream_xid, relation_oid), ((), ()))

    def index(self, relation_oid: int, seq: int, stream_xid: int | None = None) -> int:
        """Return the index in ``descriptions`` for rows of an OID at ``seq``; raise ProtocolError if there is none."""
        seqs, indexes = self.changes(relation_oid, stream_xid)
        place = bisect_right(seqs, seq) - 1
        if place < 0 or indexes[place] == _FORGOTTEN:
            raise ProtocolError(f"seq {seq}: {_undescribed(relation_oid, stream_xid)} before this row")
        return indexes[place]

    def _set(self, seq: int, stream_xid: int | None, description: Description) -> None:
        super()._set(seq, stream_xid, description)
        if description.seq == seq:
            self._indexes[seq] = len(self.descriptions)
            self.descriptions.append(description)
        self.change(seq, stream_xid, description.relation.relation_oid, description.seq)

    def _forget(self, seq: int, stream_xid: int) -> Sequence[Description]:
        forgotten = super()._forget(seq, stream_xid)
        for description in forgotten:
            self.change(seq, stream_xid, description.relation.relation_oid, _FORGOTTEN)
        return forgotten


def _undescribed(relation_oid: int, stream_xid: int | None) -> str:
    where = "" if stream_xid is None else f" in the stream of xid {stream_xid}"
    return f"no Relation has described the relation OID {relation_oid}{where}"
