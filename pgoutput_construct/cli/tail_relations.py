"""What describes the rows of a log, at whatever position: by its index, without reading it in order."""

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from pgoutput_construct.cli.words import qualified
from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.stream import RelationCache
from pgoutput_construct.wire.messages import PgoutputMessage, Relation

if TYPE_CHECKING:
    from pgoutput_construct.changelog import LogEntry
    from pgoutput_construct.changelog.index import SegmentIndex

__all__ = ["LogRelations"]


class LogRelations(RelationCache):
    """The descriptions at one entry of a log; ``go_to`` says which."""

    def __init__(self, index: "SegmentIndex") -> None:
        """Know what an index knows."""
        from pgoutput_construct.changelog.described import described

        super().__init__()
        earlier = _earlier(index)
        self._known = {each.seq: each for each in described([*earlier, *index.entries("descriptions").to_pylist()])}
        self._changes: dict[tuple[int | None, int], list[tuple[int, int]]] = {}
        for row in earlier:
            self._changes.setdefault((row["stream_xid"], row["oid"]), []).append((index.first_seq, row["seq"]))
        for row in index.entries("changes").to_pylist():
            self._changes.setdefault((row["stream_xid"], row["oid"]), []).append((row["seq"], row["description"]))
        for description in self._known.values():
            self.types.update(description.types)
        self._entry: LogEntry

    def names(self) -> set[str]:
        """Return the tables of the log."""
        return {qualified(each.relation) for each in self._known.values()}

    def go_to(self, entry: "LogEntry") -> None:
        """Stand at an entry."""
        self._entry = entry

    def update(self, message: PgoutputMessage) -> None:
        """Change nothing: all is known already."""

    def get(self, relation_oid: int) -> Relation:
        """Return the Relation of an OID for the entry; raise ProtocolError where none describes it."""
        seq, scope = self._entry.seq, self._entry.stream_xid
        changes = self._changes.get((scope, relation_oid), [])
        place = bisect_right(changes, seq, key=lambda change: change[0]) - 1
        description = self._known.get(changes[place][1]) if place >= 0 else None
        if description is None:
            raise ProtocolError(f"seq {seq}: no Relation describes the relation OID {relation_oid} before this row")
        return description.relation


def _earlier(index: "SegmentIndex") -> list[dict[str, Any]]:
    """Return the descriptions from before the first segment, which a pruned log inherits."""
    import pyarrow.compute as pc

    inherited = index.entries("inherited")
    rows: list[dict[str, Any]] = inherited.filter(pc.less(inherited["seq"], index.first_seq)).to_pylist()
    return rows
