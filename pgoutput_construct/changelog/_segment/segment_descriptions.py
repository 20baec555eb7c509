"""Which Relations and Types are in force, from segment to segment, so that each segment can be decoded by itself.

A Relation that was sent in one segment describes rows of later ones, until the table changes or the connection ends.
The index of each segment therefore has: ``descriptions``, those sent in it; ``inherited``, those from earlier segments
that its rows need, with their payloads; ``changes``, where a description came into force other than by being sent (a
stream committed); and ``in_force``, those at its end, for the segment after it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeAlias

import pyarrow as pa

from pgoutput_construct.changelog._segment.segment_index import struct_array
from pgoutput_construct.changelog._store.json_notes import from_json, parse_json
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.stream.relations import Description, RelationHistory
from pgoutput_construct.stream.state import ControlMessage
from pgoutput_construct.wire.engine import Engine, engine
from pgoutput_construct.wire.messages import PgoutputMessage, Relation, Type

__all__ = ["Descriptions", "Sent", "described", "sent_engine"]


Sent: TypeAlias = Mapping[str, Any]
"""A Relation or Type as it was sent: an entry of ``descriptions`` in the index."""


def described(sent: Iterable[Sent]) -> Iterator[Description]:
    """Yield a description for each Relation, with the Types that its columns have; ``sent`` may be in any order.

    Raises DecodeError for a payload that is neither a Relation nor a Type.
    """
    types: dict[int, Type] = {}
    # A server sends them again over each connection, mostly unchanged: equal payloads are parsed once.
    known: dict[tuple[bytes, str], PgoutputMessage] = {}
    for row in sorted(sent, key=lambda row: int(row["seq"])):
        text = row["payload"], row["keywords"]
        if (message := known.get(text)) is None:
            message = known[text] = _message(row)
        if isinstance(message, Type):
            types[message.type_oid] = message
        elif isinstance(message, Relation):
            oids = {column.type_oid for column in message.columns}.intersection(types)
            yield Description(row["seq"], message, {oid: types[oid] for oid in oids})


class Descriptions:
    """The descriptions in force, and those of the segment that is being indexed."""

    def __init__(self, sent: Iterable[Sent] = (), in_force: Iterable[Mapping[str, Any]] = ()) -> None:
        """Begin a log, or resume one.

        Args:
            sent: The descriptions that ``in_force`` refers to.
            in_force: The column ``in_force`` of the last segment's index.
        """
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
        """Add the next control message.

        Args:
            control: The message, with its seq and the stream that contains it.
            payload: The message as it was sent.
            keywords: The keywords of ``parse`` for it.
        """
        self.history.read(control)
        seq, stream_xid, message = control
        if isinstance(message, Relation | Type):
            oid = message.relation_oid if isinstance(message, Relation) else message.type_oid
            texts = {"payload": payload, "keywords": json.dumps(keywords, sort_keys=True)}
            self.sent[seq] = {"seq": seq, "stream_xid": stream_xid, "oid": oid, **texts}
            self._new.append(self.sent[seq])
            self._take_type(seq, message)

    def leave(self, scope: int) -> None:
        """Forget the Relations of a snapshot chunk; the next chunk begins with its own."""
        self.history.leave(scope)

    def finish(self, first_seq: int, used: Iterable[int]) -> dict[str, pa.Array]:
        """Return the columns of a segment's index, and begin the next segment.

        Args:
            first_seq: The seq of the segment's first row.
            used: The seqs of the descriptions that its rows use.
        """
        in_force = list(self.history.in_force())
        changes = self._changes(first_seq)
        # A description sent in a stream comes into force for all rows at the commit, whether or not a row needs it yet.
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
        """Return the descriptions from earlier segments that its rows need."""
        found = [(scope, seq) for scope, description in self._inherited if (seq := description.seq) in used]
        new = {row["seq"] for row in self._new}
        relations = [*(seq for _, seq in found), *new]
        types = {(None, seq) for relation in relations for seq in self._uses.get(relation, ()) if seq not in new}
        return [{**self.sent[seq], "stream_xid": scope} for scope, seq in [*sorted(types), *found]]

    def _changes(self, first_seq: int) -> list[Sent]:
        found = sorted((change for change in self.history.changed() if change[0] >= first_seq), key=itemgetter(0))
        return [dict(zip(("seq", "stream_xid", "oid", "description"), change, strict=True)) for change in found]

    def _named(self, in_force: Iterable[tuple[int | None, Description]]) -> list[Sent]:
        """Return references to the descriptions in force, and to their Types."""
        found: list[tuple[int, int | None]] = [(description.seq, scope) for scope, description in in_force]
        types = {*self._types.values(), *(seq for relation, _ in found for seq in self._uses[relation])}
        found += [(seq, None) for seq in sorted(types)]
        return [{"seq": seq, "stream_xid": scope, "oid": self.sent[seq]["oid"]} for seq, scope in found]


@lru_cache(maxsize=64)
def sent_engine(keywords: str) -> Engine:
    """Return what parses messages as they were sent: by the keywords of ``parse``, as JSON.

    Raises ChangeLogError for what is not that.
    """
    try:
        return engine(**from_json(dict[str, Any], parse_json(keywords)))
    except (TypeError, ValueError) as error:
        raise ChangeLogError(f"the index has a description with invalid keywords: {error}") from None


def _message(row: Sent) -> PgoutputMessage:
    return sent_engine(row["keywords"]).parse(row["payload"])
