"""Which Relation describes the rows of a relation OID: at the end of the stream so far, and at any position of a log.

PostgreSQL sends a Relation before the first row of a table, and again after the table has changed or its cache entry
was invalidated. It remembers per table whether it has done so (RelationSyncEntry in pgoutput.c), and separately for
each streamed transaction, because the table may look different inside it. This module mirrors that bookkeeping.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.stream.bounds import effect_of, having, said
from pgoutput_construct.stream.state import INSIDE_ONLY, ControlMessage, StreamState
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.protocol import CHANGES

if TYPE_CHECKING:
    from pgoutput_construct.wire.messages import PgoutputMessage

__all__ = ["DESCRIBING", "Description", "RelationCache", "RelationHistory", "undescribed_row"]

DESCRIBING: Final = having("begin_segment", "commit_streamed", "abort_streamed", "prepare_streamed") | {
    m.Relation,
    m.Type,
}
"""The messages that change which Relation describes an OID."""

_FORGOTTEN: Final = -1
_ROWS: Final = (INSIDE_ONLY & CHANGES) - DESCRIBING
"""The messages of rows, which change neither the state of a stream nor what describes its rows."""


@dataclass(frozen=True, slots=True)
class Description:
    """A Relation and the types of its columns: all that is needed to decode the rows that follow it."""

    seq: int
    """The seq of the Relation message in the log; without a log, the number of messages before it."""
    relation: m.Relation
    """The table and its columns."""
    types: Mapping[int, m.Type]
    """The Type messages of its columns, by OID, as far as they have been sent; built-in types have none."""


class RelationCache:
    """The latest Relation of each OID.

    A streamed transaction has relations of its own: PostgreSQL sends a Relation once per relation and top-level
    transaction (maybe_send_schema()), because the table may look different inside the transaction. When it commits, its
    relations become everyone's. When it or one of its subtransactions aborts, PostgreSQL forgets that it has sent them
    (cleanup_rel_sync_cache()), and so does this cache. PostgreSQL also sends them again after Stream Prepare, and when
    a stream starts from the beginning after a lost connection.
    """

    def __init__(self) -> None:
        self.types: dict[int, m.Type] = {}
        """The Type messages, by OID."""
        self._latest: dict[int | None, dict[int, Description]] = {None: {}}
        self.stream_xid: int | None = None
        """The top-level xid of the stream that is open, None outside a stream."""
        self._state = StreamState()
        self._seen = 0

    def update(self, message: "PgoutputMessage") -> None:
        """Process the next message of the stream; every message must be passed, in order."""
        if type(message) in _ROWS:  # the usual ones change nothing
            self._seen += 1
            return
        self.read(ControlMessage(self._seen, self.stream_xid, message))
        self._state.follow(message)
        self.stream_xid = self._state.stream_xid
        self._seen += 1

    def read(self, control: ControlMessage) -> None:
        """Process the next control message of a log; other messages are permitted and change nothing."""
        seq, stream_xid, message = control
        match message:
            case m.Relation():
                self._set(seq, stream_xid, Description(seq, message, self._types_of(message)))
            case m.Type():
                self.types[message.type_oid] = message
            case _:
                self._leave_stream(seq, message)

    def _leave_stream(self, seq: int, message: "PgoutputMessage") -> None:
        match effect_of(message):
            case "commit_streamed":
                for description in self._forget(seq, said(message, "xid")):
                    self._set(seq, None, description)
            case "abort_streamed" | "prepare_streamed":
                self._forget(seq, said(message, "xid"))
            case "begin_segment" if said(message, "first"):
                self._forget(seq, said(message, "xid"))

    def get(self, relation_oid: int) -> m.Relation:
        """Return the Relation that describes an OID now; raise ProtocolError if none has been sent."""
        return self.description(relation_oid).relation

    def description(self, relation_oid: int) -> Description:
        """Return the description of an OID now; raise ProtocolError if no Relation has been sent."""
        description = self._latest.get(self.stream_xid, {}).get(relation_oid)
        if description is None:
            problem = undescribed_row(relation_oid, self.stream_xid)
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
    """A RelationCache that keeps every position: a log is read in order, then queried at any seq.

    The *scope* of a row is the top-level xid of the stream that it is in, None outside of streams. For each scope and
    OID, the history has the seqs at which the description changed.
    """

    def __init__(self, descriptions: Iterable[Description] = ()) -> None:
        """Start with no description in force; for ``descriptions`` known already, ``change`` adds the seqs."""
        super().__init__()
        self.descriptions: list[Description] = list(descriptions)
        """Every Relation of the log, in order; rows refer to one by its index in this list."""
        self._indexes: dict[int, int] = {each.seq: index for index, each in enumerate(self.descriptions)}
        self._changes: dict[tuple[int | None, int], tuple[list[int], list[int]]] = {}

    def inherit(self, stream_xid: int | None, description: Description) -> None:
        """Add a description that is in force at the start of the part of a log that is read; types are not added.

        Args:
            stream_xid: The scope, None outside of streams.
            description: The Relation, with its own seq, which is before that part.
        """
        if description.seq not in self._indexes:
            self._indexes[description.seq] = len(self.descriptions)
            self.descriptions.append(description)
        self._latest.setdefault(stream_xid, {})[description.relation.relation_oid] = description
        self.change(description.seq, stream_xid, description.relation.relation_oid, description.seq)

    def in_force(self) -> Iterator[tuple[int | None, Description]]:
        """Yield each description in force after the last message, with its scope."""
        for stream_xid, by_oid in self._latest.items():
            yield from ((stream_xid, description) for description in by_oid.values())

    def leave(self, scope: int) -> None:
        """End a scope without a message; the rows read so far stay described."""
        self._latest.pop(scope, None)

    def changed(self) -> Iterator[tuple[int, int | None, int, int]]:
        """Yield every change of a description, as the arguments of ``change``."""
        for (stream_xid, oid), (seqs, indexes) in self._changes.items():
            for seq, index in zip(seqs, indexes, strict=True):
                yield seq, stream_xid, oid, index if index == _FORGOTTEN else self.descriptions[index].seq

    def change(self, seq: int, stream_xid: int | None, relation_oid: int, description: int) -> None:
        """Restore a change that ``changed`` has yielded; of one scope and OID they must come in order.

        Args:
            seq: The first seq to which it applies.
            stream_xid: The scope, None outside of streams.
            relation_oid: The OID.
            description: The seq of the description that applies from there on, -1 for none.
        """
        index = _FORGOTTEN if description == _FORGOTTEN else self._indexes[description]
        seqs, indexes = self._changes.setdefault((stream_xid, relation_oid), ([], []))
        seqs.append(seq)
        indexes.append(index)

    def changes(self, relation_oid: int, stream_xid: int | None = None) -> tuple[Sequence[int], Sequence[int]]:
        """Return the seqs at which the description of an OID changed, and its index from each on (-1 for none)."""
        return self._changes.get((stream_xid, relation_oid), ((), ()))

    def index(self, relation_oid: int, seq: int, stream_xid: int | None = None) -> int:
        """Return the index in ``descriptions`` for rows of an OID at ``seq``; raise ProtocolError if it has none.

        Args:
            relation_oid: The OID.
            seq: The seq of the row.
            stream_xid: The scope of the row, None outside of streams.
        """
        seqs, indexes = self.changes(relation_oid, stream_xid)
        last = bisect_right(seqs, seq) - 1
        if last < 0 or indexes[last] == _FORGOTTEN:
            raise ProtocolError(f"seq {seq}: {undescribed_row(relation_oid, stream_xid)} before this row")
        return indexes[last]

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


def undescribed_row(relation_oid: int, stream_xid: int | None = None) -> str:
    """Return the text of the error for a row that no Relation describes."""
    where = "" if stream_xid is None else f" in the stream of xid {stream_xid}"
    return f"no Relation has described the relation OID {relation_oid}{where}"
