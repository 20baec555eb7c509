"""The relation cache over a whole log: which Relation describes an OID at any position, also out of order."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.stream.transactions import ControlMessage
from pgoutput_construct.wire.messages import (
    Relation,
    StreamAbort,
    StreamCommit,
    StreamPrepare,
    StreamStart,
    Type,
)

__all__ = ["Description", "RelationTimeline", "follow_relations"]

_FORGOTTEN = -1


@dataclass(frozen=True, slots=True)
class Description:
    """All that is needed to decode the rows of a table, as sent at one moment."""

    seq: int
    """Position of the Relation message in the log."""
    relation: Relation
    """The table and its columns."""
    types: Mapping[int, Type]
    """The types of the columns that are not built in, by OID, as far as they have been named."""


@dataclass(slots=True)
class _History:
    """What one OID was in one scope: from ``seqs[i]`` on, the version ``versions[i]``."""

    seqs: list[int] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)

    def add(self, seq: int, version: int) -> None:
        self.seqs.append(seq)
        self.versions.append(version)

    def at(self, seq: int) -> int:
        index = bisect_right(self.seqs, seq) - 1
        return self.versions[index] if index >= 0 else _FORGOTTEN


class RelationTimeline:
    """The same rules as RelationCache, kept for every position instead of the latest alone.

    A stream has a scope of its own, named by its top-level xid; its relations count for everyone from its Stream
    Commit on, and are forgotten at a Stream Abort (of a subtransaction, too), at a Stream Prepare, and when the
    stream is sent anew after a lost connection.
    """

    def __init__(self) -> None:
        self.descriptions: list[Description] = []
        """Every Relation of the log in order; a version is an index into this."""
        self._types: dict[int, Type] = {}
        self._histories: dict[int | None, dict[int, _History]] = {None: {}}
        self._live: dict[int, dict[int, int]] = {}

    def read(self, control: ControlMessage) -> None:
        """Take in the next control message of the log."""
        seq, stream_xid, message = control
        match message:
            case Relation():
                self._describe(seq, stream_xid, message)
            case Type():
                self._types[message.type_oid] = message
            case StreamCommit():
                for oid, version in self._forget(seq, message.xid).items():
                    self._history(None, oid).add(seq, version)
            case StreamAbort() | StreamPrepare():
                self._forget(seq, message.xid)
            case StreamStart(first_segment=1):
                self._forget(seq, message.xid)

    def history(self, relation_oid: int, stream_xid: int | None = None) -> tuple[Sequence[int], Sequence[int]]:
        """Return from which positions on an OID had which version (an index in ``descriptions``, -1 for none)."""
        history = self._histories.get(stream_xid, {}).get(relation_oid, _History())
        return history.seqs, history.versions

    def version(self, relation_oid: int, seq: int, stream_xid: int | None = None) -> int:
        """Return the index in ``descriptions`` for rows of an OID at ``seq``; raise ProtocolError if there is none."""
        history = self._histories.get(stream_xid, {}).get(relation_oid)
        version = _FORGOTTEN if history is None else history.at(seq)
        if version == _FORGOTTEN:
            where = "" if stream_xid is None else f" in the stream of xid {stream_xid}"
            raise ProtocolError(
                f"seq {seq}: no Relation has described the relation OID {relation_oid}{where} before this row"
            )
        return version

    def describe(self, relation_oid: int, seq: int, stream_xid: int | None = None) -> Description:
        """Return what describes the rows of an OID at ``seq``; raise ProtocolError when nothing does."""
        return self.descriptions[self.version(relation_oid, seq, stream_xid)]

    def _describe(self, seq: int, stream_xid: int | None, relation: Relation) -> None:
        oids = {column.type_oid for column in relation.columns}
        types = {oid: self._types[oid] for oid in oids if oid in self._types}
        version = len(self.descriptions)
        self.descriptions.append(Description(seq, relation, types))
        self._history(stream_xid, relation.relation_oid).add(seq, version)
        if stream_xid is not None:
            self._live.setdefault(stream_xid, {})[relation.relation_oid] = version

    def _forget(self, seq: int, stream_xid: int) -> dict[int, int]:
        forgotten = self._live.pop(stream_xid, {})
        for oid in forgotten:
            self._history(stream_xid, oid).add(seq, _FORGOTTEN)
        return forgotten

    def _history(self, stream_xid: int | None, oid: int) -> _History:
        return self._histories.setdefault(stream_xid, {}).setdefault(oid, _History())


def follow_relations(controls: Iterable[ControlMessage]) -> RelationTimeline:
    """Return the timeline of a log, given its control messages in order."""
    timeline = RelationTimeline()
    for control in controls:
        timeline.read(control)
    return timeline
