"""Copies of tables: the rows that they had at one moment, and which later changes count beside them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any

from pgoutput_construct.changelog.events import COPIED_TABLE, LogEvent, events_of
from pgoutput_construct.changelog.format_2 import visibilities
from pgoutput_construct.changelog.index import SegmentIndex
from pgoutput_construct.changelog.visibility import Snapshot, Visibility
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.wire import Lsn

__all__ = ["TableCopy", "copies_of", "latest_copies", "snapshot_command"]


@dataclass(frozen=True)
class TableCopy:
    """A table that was copied into the log as a whole."""

    seq: int
    """Where the log says that it is complete."""
    relation_oid: int
    """The table, as its Relation names it."""
    namespace: str
    """Its schema then."""
    name: str
    """Its name then."""
    snapshot: Snapshot
    """What its rows contain."""
    first_chunk: int
    """The number of its first chunk: the column ``snapshot`` of the log has it. Chunks of a copy that did not become
    complete are of no copy, and count nothing."""
    last_chunk: int
    """That of its last one; lower than the first for a table without rows."""
    rows: int
    """How many rows it had."""
    is_requested: bool = False
    """Whether somebody asked for it; else it was made since the log had no copy of the table."""
    known_visibility: Visibility | None = None
    """Which transactions its rows contain; None where that is not known (yet): see ``visibility``."""

    @property
    def visibility(self) -> Visibility:
        """Which transactions its rows contain, of a copy that ``copies_of`` returned; others raise ChangeLogError."""
        if self.known_visibility is None:
            raise ChangeLogError(
                f"seq {self.seq}: the copy of {full_name(self)} does not say which transactions it contains"
            )
        return self.known_visibility

    @property
    def since_lsn(self) -> Lsn:
        """The LSN from which on commits must be in the log, for its rows and these to be those of the table.

        Where the log was pruned, what a copy of format 2 contains is worked out from what is left: its snapshot's LSN
        is then what is certain.
        """
        return min(self.visibility.place_lsn, self.snapshot.lsn)

    @classmethod
    def of(cls, event: LogEvent) -> "TableCopy":
        """Read an event COPIED_TABLE; of log format 2 it says nothing of LSNs."""
        told = event.details
        snapshot = Snapshot(told["xmin"], told["xmax"], tuple(told["xip"]), event.lsn)
        first, last = told["chunks"]
        named = event.seq, told["oid"], told["schema"], told["table"]
        is_requested, visibility = bool(told.get("requests")), Visibility.read(told)
        return cls(*named, snapshot, first, last, told["rows"], is_requested, visibility)

    def said(self) -> dict[str, Any]:
        """Return the details of the event that says it; the position of that is the snapshot's."""
        snapshot, chunks = self.snapshot, [self.first_chunk, self.last_chunk]
        told = {"oid": self.relation_oid, "schema": self.namespace, "table": self.name, "chunks": chunks}
        told |= {"rows": self.rows, "xmin": snapshot.xmin, "xmax": snapshot.xmax, "xip": list(snapshot.xip)}
        return told | (self.known_visibility.details() if self.known_visibility else {})


def copies_of(index: SegmentIndex) -> Iterator[TableCopy]:
    """Yield the copies that are complete, in the order in which they became so.

    What those of log format 2 contain is worked out from the transactions of ``index``, which must be that of the log.
    """
    copies = [*map(TableCopy.of, events_of(index, COPIED_TABLE))]
    unknown = [(copy.seq, copy.snapshot) for copy in copies if copy.known_visibility is None]
    worked_out = visibilities(index, unknown)
    for copy in copies:
        yield replace(copy, known_visibility=worked_out[copy.seq]) if copy.seq in worked_out else copy


def latest_copies(index: SegmentIndex) -> dict[int, TableCopy]:
    """Return the latest copy of each table, by its OID."""
    return {copy.relation_oid: copy for copy in copies_of(index)}


def snapshot_command(*tables: str) -> str:
    """Return the command that copies tables, by qualified name, into a log: as a shell reads it, for remedies."""
    return " ".join(["pgoutput snapshot DSN LOG", *(f"--table {quote(table)}" for table in tables)])
