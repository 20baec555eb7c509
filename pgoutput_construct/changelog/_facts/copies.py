"""Copies of tables: the rows that they had under one snapshot, and which later changes count in addition to them."""

from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote
from typing import Any

from pgoutput_construct.changelog._facts.visibility import Snapshot, Visibility
from pgoutput_construct.changelog._facts.void_rows import NO_VOID_ROWS, VoidRows
from pgoutput_construct.changelog._segment.events import COPIED_TABLE, LogEvent, events_of
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.errors import ChangeLogError
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
    visibility: Visibility
    """Which transactions its rows contain."""
    is_requested: bool = False
    """Whether somebody asked for it; else it was made since the log had no copy of the table."""
    void: VoidRows = NO_VOID_ROWS
    """Further rows of its chunks, which do not count: none of a copy that was not interrupted."""

    @property
    def since_lsn(self) -> Lsn:
        """The LSN from which on commits must be in the log, for its rows and these to be those of the table.

        It is not after the snapshot's LSN, at which a timeline may have the copy.
        """
        return min(self.visibility.place_lsn, self.snapshot.lsn)

    @classmethod
    def of(cls, event: LogEvent) -> "TableCopy":
        """Read an event COPIED_TABLE."""
        told = event.details
        snapshot = Snapshot(told["xmin"], told["xmax"], tuple(told["xip"]), event.lsn)
        first, last = told["chunks"]
        named = event.seq, told["oid"], told["schema"], told["table"]
        given = Visibility.read(told), bool(told.get("requests")), _void_rows(event)
        return cls(*named, snapshot, first, last, told["rows"], *given)

    def said(self) -> dict[str, Any]:
        """Return the details of the event that says it; the position of that is the snapshot's."""
        snapshot, chunks = self.snapshot, [self.first_chunk, self.last_chunk]
        told = {"oid": self.relation_oid, "schema": self.namespace, "table": self.name, "chunks": chunks}
        told |= {"rows": self.rows, "xmin": snapshot.xmin, "xmax": snapshot.xmax, "xip": list(snapshot.xip)}
        void = {"void": self.void.details()} if self.void.rows else {}
        return told | self.visibility.details() | void


def _void_rows(event: LogEvent) -> VoidRows:
    try:
        return VoidRows.read(event.details.get("void"))
    except ValueError as error:
        raise ChangeLogError(f"seq {event.seq}: the event {COPIED_TABLE!r} is damaged: {error}") from None


def copies_of(index: SegmentIndex) -> Iterator[TableCopy]:
    """Yield the copies that are complete, in the order in which they became so."""
    yield from map(TableCopy.of, events_of(index, COPIED_TABLE))


def latest_copies(index: SegmentIndex) -> dict[int, TableCopy]:
    """Return the latest copy of each table, by its OID."""
    return {copy.relation_oid: copy for copy in copies_of(index)}


def snapshot_command(*tables: str) -> str:
    """Return the command that copies tables, by qualified name, into a log: as a shell reads it, for remedies."""
    return " ".join(["pgoutput snapshot DSN LOG", *(f"--table {quote(table)}" for table in tables)])
