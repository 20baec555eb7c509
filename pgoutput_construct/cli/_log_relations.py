"""What describes the rows of a log, at whatever position: by its index, without reading it in order."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from pgoutput_construct.stream import RelationCache
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.wire.messages import PgoutputMessage, Relation

if TYPE_CHECKING:
    from pgoutput_construct.changelog import LogEntry
    from pgoutput_construct.changelog._index.segment_index import SegmentIndex

__all__ = ["LogRelations"]


class LogRelations(RelationCache):
    """The descriptions at one entry of a log; ``go_to`` says which."""

    def __init__(self, index: "SegmentIndex") -> None:
        """Know what an index knows."""
        from pgoutput_construct.changelog._index.planning import relation_history

        super().__init__()
        self._history = relation_history(index)
        for description in self._history.descriptions:
            self.types.update(description.types)
        self._entry: LogEntry

    def names(self) -> set[str]:
        """Return the tables of the log."""
        return {full_name(each.relation) for each in self._history.descriptions}

    def oids(self, names: Collection[str]) -> set[int]:
        """Return the OIDs of what had one of these names at some time."""
        return {each.relation.relation_oid for each in self._history.descriptions if full_name(each.relation) in names}

    def go_to(self, entry: "LogEntry") -> None:
        """Stand at an entry."""
        self._entry = entry

    def update(self, message: PgoutputMessage) -> None:
        """Change nothing: all is known already."""

    def get(self, relation_oid: int) -> Relation:
        """Return the Relation of an OID for the entry; raise ProtocolError where none describes it."""
        index = self._history.index(relation_oid, self._entry.seq, self._entry.scope)
        return self._history.descriptions[index].relation
