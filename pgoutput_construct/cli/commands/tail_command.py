"""``pgoutput tail``: committed transactions, as a person reads them or as JSON lines."""

import secrets
import time
from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import click

from pgoutput_construct.cli._logging import print_notes
from pgoutput_construct.cli._options import LSN, TABLE, command, is_log
from pgoutput_construct.cli._printing import say
from pgoutput_construct.cli._values import Values
from pgoutput_construct.cli.commands._log_relations import LogRelations
from pgoutput_construct.cli.commands._tail_output import Header, JsonPrinter, TailSelection, TextPrinter
from pgoutput_construct.errors import ChangeLogError, ProtocolError
from pgoutput_construct.stream import RelationCache, RowReader, Session
from pgoutput_construct.stream.bounds import effect_of, said
from pgoutput_construct.wire import Lsn, PrimaryKeepalive, Timestamp, XLogData, parse
from pgoutput_construct.wire.protocol import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgoutput_construct.changelog import ChangeLog, LogEntry
    from pgoutput_construct.postgres import ReplicationStream
    from pgoutput_construct.stream.rows import RowChange
    from pgoutput_construct.stream.transaction_reader import EndedTransaction
    from pgoutput_construct.wire.messages import PgoutputMessage

__all__ = ["tail_command"]

_DSN_SCHEMES: Final = ("postgresql://", "postgres://")


@command("tail", short_help="Show committed transactions of a change log or a server.")
@click.argument("source", metavar="LOG|DSN")
@click.option("--publication", "publications", multiple=True, help="Of a server: a publication; can be repeated.")
@click.option("--follow", "-f", is_flag=True, help="Of a log: continue with what a capture adds; a server always does.")
@click.option("--from-lsn", type=LSN, help="Of a log: begin with the first commit at or after this.")
@click.option("--table", "tables", multiple=True, type=TABLE, help="Show only changes of this table; can be repeated.")
@click.option("--limit", "-n", type=click.IntRange(min=1), metavar="N", help="End after N transactions.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each change.")
@click.option("--all", "everything", is_flag=True, help="Show long values in full.")
def tail_command(
    source: str,
    *,
    publications: tuple[str, ...],
    follow: bool,
    from_lsn: Lsn | None,
    tables: tuple[str, ...],
    limit: int | None,
    as_json: bool,
    everything: bool,
) -> None:
    """Show committed transactions in the order of their commits, each with its changes, old values -> new.

    From a change log (its directory, or its address in an object store), with the events that the capture noted; or
    from a server, what commits from now on, through a temporary slot that holds WAL only while the command runs. What
    was rolled back, also only to a savepoint, is not shown.

    With --json each change is an object: commit_lsn, commit_time, xid, seq (the position in the transaction), op,
    table (schema and name, too, by themselves), new, old, and unchanged: the columns whose value was not sent.
    Values are PostgreSQL's text, whichever format was captured; but smallint, integer, bigint, oid, finite real and
    double precision are JSON numbers, boolean and NULL JSON's true, false and null. Values of all other types are
    strings: numeric, money, xid, xid8 and oid8, arrays and ranges. A bigint may exceed 2^53: parsers that read numbers
    as float64 lose its last digits.

    \b
    Examples:
      pgoutput tail changelog/ --table public.orders --limit 10
      pgoutput tail changelog/ --follow --json | jq .
      pgoutput tail service=shop --publication shop
    """
    live = is_dsn(source)
    if live and not publications:
        raise click.UsageError("--publication is required for a server")
    if live and from_lsn is not None:
        raise click.UsageError("--from-lsn is for change logs: a temporary slot starts at the current LSN")
    if not live and publications:
        raise click.UsageError(f"--publication is for servers, and {source!r} is taken for a change log")
    printer = (JsonPrinter if as_json else TextPrinter)(Values(), everything)
    selection = TailSelection(printer, tables, limit)
    if live:
        _tail_server(source, publications, selection)
    else:
        _tail_log(source, selection, from_lsn, follow)


def is_dsn(source: str) -> bool:
    """Return whether this is a connection string, and not the address of a change log.

    It is for ``service=shop``, a URI of PostgreSQL, or ''.
    """
    return not source or source.startswith(_DSN_SCHEMES) or ("=" in source and not is_log(source))


_PAUSE: Final = 1.0
"""Seconds between two reads of a log that is followed; longer where opening it takes longer."""
_TABLES: Final = 2
"""Segments in memory at a time."""


def _tail_log(address: str, selection: TailSelection, from_lsn: Lsn | None, follow: bool) -> None:
    """Show committed transactions of a log, with messages and events between them, from the LSN of a commit on.

    ``follow`` waits for the log, if it has no segment yet, and continues with what a capture adds, until interrupted.
    Raises ChangeLogError for a log that does not exist or is damaged, or does not know a selected table, and
    ProtocolError for one that contradicts itself.
    """
    last_seq = -1
    while True:
        log, began = _opened(address, follow), time.monotonic()
        reader = _Reader(log, selection)
        if not follow:
            reader.check()
        if last_seq < 0:
            reader.warn()
        else:
            reader.log.check_kept(last_seq + 1)
        last_seq = reader.show(last_seq, from_lsn or Lsn(0))
        if selection.enough or not follow:
            return
        time.sleep(max(_PAUSE, 2 * (time.monotonic() - began)))


def _opened(address: str, follow: bool) -> "ChangeLog":
    from pgoutput_construct.changelog import ChangeLog
    from pgoutput_construct.changelog.reader import EmptyLogError

    has_told = False
    while True:
        try:
            return ChangeLog(address)
        except EmptyLogError as error:
            if not follow:
                raise
            if not has_told:
                say(f"{error}: waiting for the capture's first segment", err=True)
            has_told = True
            time.sleep(_PAUSE)


class _Reader:
    """Shows what a log holds now: the items of its timeline, and the changes of each transaction."""

    def __init__(self, log: "ChangeLog", selection: TailSelection) -> None:
        self.log = log
        self.selection = selection
        self.relations = LogRelations(log.index)
        self._tables = lru_cache(_TABLES)(lambda first_seq: log.table(log.segment(first_seq)))
        self._starts = [segment.first_seq for segment in log.segments]
        self._holding = self._segment_indexes() if selection.tables else frozenset(range(len(log.segments)))

    def check(self) -> None:
        """Raise ChangeLogError for a selected table that the log does not know."""
        if unknown := sorted(set(self.selection.tables) - (known := self.relations.names())):
            raise ChangeLogError(f"{self.log.store}: no table {unknown[0]!r}: the log has {', '.join(sorted(known))}")

    def warn(self) -> None:
        """Warn of what the log lacks of the selected tables."""
        from pgoutput_construct.changelog._facts.completeness import lacks_of

        lacks, oids = lacks_of(self.log.index), self.relations.oids(self.selection.tables)
        print_notes("warning", [lack for lack in lacks if not self.selection.tables or lack.relation_oid in oids])

    def show(self, after_seq: int, from_lsn: Lsn) -> int:
        """Show what ended after a seq, at an LSN or later; return the seq up to which the log was read."""
        from pgoutput_construct.changelog import LogEvent
        from pgoutput_construct.changelog.timeline import ItemKind, LogicalMessage, Timeline
        from pgoutput_construct.stream.transaction_reader import EndedTransaction

        self.selection.printer.values.types = self.relations.types
        items = Timeline(
            self.log,
            {ItemKind.TRANSACTION, ItemKind.MESSAGE, ItemKind.EVENT},
            after=after_seq,
            first_lsn=from_lsn,
            relation_oids=self.relations.oids(self.selection.tables) if self.selection.tables else None,
            lost=(),  # what a lost history left may have been shown already: an event says that it is void
            read=lambda segment: self._tables(segment.first_seq),
        )
        for item in items:
            if self.selection.enough:
                return item.seq
            if isinstance(item, EndedTransaction):
                self._show_transaction(item)
            elif isinstance(item, LogicalMessage):
                self.selection.take(item.seq, item.message, ())
            elif isinstance(item, LogEvent):
                self.selection.event(item)
        return self.log.segments[-1].last_seq

    def _show_transaction(self, ended: "EndedTransaction") -> None:
        transaction = ended.transaction
        self.selection.begin(Header(Lsn(ended.commit_lsn or 0), Timestamp(ended.time or 0), transaction.xid))
        reader, before = RowReader(self.relations, "raw"), 0
        for first, last in transaction.spans:
            for entry, message in self._between(first, last):
                if getattr(message, "xid", None) not in transaction.aborted:
                    self.relations.go_to(entry)
                    self.selection.take(before + entry.seq - first, message, _rows_of(reader, entry, message))
            before += last - first + 1
        self.selection.end()

    def _between(self, first: int, last: int) -> "Iterator[tuple[LogEntry, PgoutputMessage]]":
        from pgoutput_construct.changelog.reader import table_entries

        index = bisect_right(self._starts, first) - 1
        while index < len(self._starts) and self._starts[index] <= last:
            if index in self._holding:
                segment = self.log.segments[index]
                low = max(first, segment.first_seq)
                rows = self._tables(segment.first_seq).slice(low - segment.first_seq, last - low + 1)
                for entry in table_entries(rows, segment.name):
                    yield entry, parse(entry.payload, **{**segment.options.layout(), **entry.states})
            index += 1

    def _segment_indexes(self) -> frozenset[int]:
        """Return the indexes of the segments that hold changes of the tables: the others need not be read."""
        import pyarrow as pa
        import pyarrow.compute as pc

        rows, indexes = self.log.index.located("rows")
        oids = pa.array(self.relations.oids(self.selection.tables), pa.int64())
        return frozenset(indexes[pc.is_in(rows["oid"], oids).to_numpy()].tolist())


def _rows_of(reader: RowReader, entry: "LogEntry", message: "PgoutputMessage") -> "Iterator[RowChange]":
    from pgoutput_construct.changelog.reader import explain

    try:
        return reader.read(message)
    except ProtocolError as error:
        raise explain(entry, error) from error


_WAIT = 1.0  # seconds


def _tail_server(dsn: str, publications: tuple[str, ...], selection: TailSelection) -> None:
    """Show what commits from now on, until the limit of ``selection`` is reached; raise ReplicationError.

    Without streaming and two-phase decoding, a server sends transactions when they have committed, one by one.
    """
    from pgoutput_construct.postgres import (
        ReplicationStream,
        StreamOptions,
        check_publications,
        check_tables,
        connect,
        create_slot,
        read_publications,
    )

    connection = connect(dsn)
    slot = f"pgoutput_tail_{secrets.token_hex(6)}"
    try:
        check_publications(connection, publications)
        check_tables(read_publications(connection, publications))
        start = create_slot(connection, slot, temporary=True)
        messages = connection.info.server_version // 10000 >= OPTIONS["messages"].server
        options = StreamOptions(slot=slot, publications=publications, messages=messages)
        stream = ReplicationStream(connection, options, start)
    except BaseException:
        connection.close()
        raise
    with stream:
        _show(stream, selection)


def _show(stream: "ReplicationStream", selection: TailSelection) -> None:
    session, relations, seq, between = Session(), RelationCache(), 0, True
    relations.types = selection.printer.values.types
    reader = RowReader(relations, "raw")
    while not selection.enough:
        frame = stream.read(_WAIT)
        if isinstance(frame, PrimaryKeepalive) and between:
            # What other tables write never comes as a Commit, and the slot would keep its WAL.
            stream.confirm(frame.wal_end)
        if not isinstance(frame, XLogData) or not frame.data:
            continue
        message = session.parse(frame.data)
        if effect_of(message) == "begin":
            selection.begin(Header(*(said(message, role) for role in ("lsn", "time", "xid"))))
            seq, between = 0, False
        selection.take(seq, message, reader.read(message))
        seq += 1
        if effect_of(message) == "commit":
            selection.end()
            between = True
            stream.confirm(said(message, "end_lsn"))
