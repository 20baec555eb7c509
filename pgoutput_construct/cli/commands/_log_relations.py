"""The Relation messages that are in force at any position of a log, from its index, without reading it in order."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from pgoutput_construct.stream import RelationCache
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.wire.messages import PgoutputMessage, Relation

if TYPE_CHECKING:
    from pgoutput_construct.changelog import LogEntry
    from pgoutput_construct.changelog._segment.segment_index import SegmentIndex

__all__ = ["LogRelations"]


class LogRelations(RelationCache):
    """The descriptions that are in force at one entry of a log, which ``go_to`` sets."""

    def __init__(self, index: "SegmentIndex") -> None:
        """Read the descriptions of an index."""
        from pgoutput_construct.changelog._index.planning import relation_history

        super().__init__()
        self._history = relation_history(index)
        for description in self._history.descriptions:
            self.types.update(description.types)
        self._entry: LogEntry

    def names(self) -> set[str]:
        """Return the qualified names of the log's tables."""
        return {full_name(each.relation) for each in self._history.descriptions}

    def oids(self, names: Collection[str]) -> set[int]:
        """Return the OIDs of the tables that had one of these names at any time."""
        return {each.relation.relation_oid for each in self._history.descriptions if full_name(each.relation) in names}

    def go_to(self, entry: "LogEntry") -> None:
        """Set the current entry."""
        self._entry = entry

    def update(self, message: PgoutputMessage) -> None:
        """Do nothing: the index has all descriptions already."""

    def get(self, relation_oid: int) -> Relation:
        """Return the Relation of an OID that is in force at the entry; raise ProtocolError if there is none."""
        index = self._history.index(relation_oid, self._entry.seq, self._entry.scope)
        return self._history.descriptions[index].relation
