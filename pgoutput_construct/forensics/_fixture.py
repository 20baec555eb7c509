"""Fixtures: a stream of production, cut to what a test needs, and masked; and whether a command fails with one."""

import os
import signal
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._facts.catalog_readings import table_readings
from pgoutput_construct.changelog._index.planning import lost_histories, without_lost_history
from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.changelog.reader import ChangeLog, LogEntry, parsed_entries
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.forensics._blame import MISSING, KeyValue, blame
from pgoutput_construct.forensics._delta_debugging import minimized
from pgoutput_construct.forensics._masks import MaskRule, StreamMasks
from pgoutput_construct.forensics._stream_cut import CutEntry, StreamCut
from pgoutput_construct.forensics._table_changes import SegmentTables
from pgoutput_construct.forensics._tracked_table import LoggedTables
from pgoutput_construct.stream import Session
from pgoutput_construct.stream.bounds import effect_of, having, said
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.stream.rows import SNAPSHOT, tables_of
from pgoutput_construct.wire import Lsn, Timestamp, parse
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.json_lines import Decoded, format_line
from pgoutput_construct.wire.protocol import OPTIONS

if TYPE_CHECKING:
    from pgoutput_construct.wire.messages import PgoutputMessage

__all__ = ["Fixture", "command_fails", "fixture"]

_ENDS: Final = frozenset(
    {"commit_streamed", "abort_streamed", "prepare_streamed", "commit_prepared", "rollback_prepared"}
)
"""The effects of messages that stand outside of the spans of their transaction."""


@dataclass(frozen=True)
class Fixture:
    """A stream for a test: transactions in the form in which the log has them."""

    options: Mapping[str, Any]
    """The options of START_REPLICATION that decide the layout of the messages."""
    _cut: StreamCut

    @property
    def transactions(self) -> int:
        """How many transactions it has."""
        return len(self._cut.transactions)

    @property
    def changes(self) -> int:
        """How many changes and logical messages it has."""
        return len(self._cut.changes)

    def messages(self) -> Iterator[tuple[Lsn, "PgoutputMessage"]]:
        """Yield the messages in the order of the stream, each with its LSN."""
        yield from ((each.lsn, each.message) for each in self._cut.messages())

    def lines(self) -> Iterator[bytes]:
        """Yield the messages as JSON lines, as ``pgoutput decode`` prints them.

        Raises:
            EncodeError: A message cannot be sent under the options, which would be a defect of this package.
        """
        session = Session(**self.options)
        for each in self._cut.messages():
            given = {**self.options, **session.state.parameters}
            payload = session.build(each.message)
            if parse(payload, **given) != each.message:
                raise PgoutputError(f"{each.message!r:.200} is not what its bytes say: please report this")
            yield format_line(Decoded(each.message, payload, given, {"wal_start": str(each.lsn)}))

    def save(self, path: str | Path) -> None:
        """Write the JSON lines to a file, which ``pgoutput serve`` and ``TestPublisher.play`` serve."""
        lines = [*self.lines()]
        Path(path).write_bytes(b"".join(lines))

    def shrunk(
        self, fails: Callable[["Fixture"], bool], on_trial: Callable[["Fixture"], None] | None = None
    ) -> "Fixture":
        """Return a part of it that still fails, and does not without any one transaction, change or column of it.

        Columns of keys are retained.

        Args:
            fails: Returns whether a fixture fails, such as ``command_fails`` returns of a command.
            on_trial: Called before each trial.

        Raises:
            PgoutputError: The whole fixture does not fail.
        """

        def is_failing(cut: StreamCut) -> bool:
            trial = replace(self, _cut=cut)
            if on_trial is not None:
                on_trial(trial)
            return fails(trial)

        cut = self._cut
        if not is_failing(cut):
            raise PgoutputError("with the whole fixture nothing fails, so there is nothing to shrink")
        cut = cut.only(minimized(cut.transactions, lambda some: is_failing(cut.only(some))))
        transactions = cut
        seqs = minimized([each.seq for each in cut.changes], lambda some: is_failing(transactions.only_changes(some)))
        changes = cut.only_changes(seqs)
        columns = changes.columns()
        left = minimized(columns, lambda some: is_failing(_with_columns(changes, columns, some)))
        return replace(self, _cut=_with_columns(changes, columns, left))


def _with_columns(cut: StreamCut, columns: Sequence[tuple[int, str]], some: Collection[tuple[int, str]]) -> StreamCut:
    return replace(cut, without_columns=frozenset(columns) - frozenset(some))


def fixture(
    log: ChangeLog | Address,
    *,
    tables: Collection[str] = (),
    key: KeyValue | Sequence[KeyValue] | Mapping[str, KeyValue] | None = None,
    where: Mapping[str, str] | None = None,
    xids: Collection[int] = (),
    since: Lsn | Timestamp | None = None,
    until: Lsn | Timestamp | None = None,
    masks: Iterable[tuple[str, str]] = (),
) -> Fixture:
    """Cut a log to the changes that meet all conditions, and mask their values.

    Transactions keep their form: streamed ones are streamed, in alternating segments, prepared ones are prepared,
    subtransactions are rolled back. Those without a change left are left out. Copies of tables, and transactions that
    were incomplete, are not included. Logical messages are included if neither tables, a key nor values are requested.

    Args:
        log: The log, or its address.
        tables: The tables, as in SQL; all if empty.
        key: The key of one row of the one table, as in ``blame``: all changes of that row.
        where: Values of columns, as text: rows that have them before or after the change.
        xids: The top-level transaction IDs; all if empty.
        since: What ended at this LSN or time, or later.
        until: What ended at this LSN or time, or earlier. A rolled-back transaction whose LSN was not sent counts as of
            the end before it in the log.
        masks: Columns and their masks, the last one of a column counts: ``("public.orders.note", "null")``. Columns are
            ``*``, ``schema.table.*`` or ``schema.table.column``; masks ``token``, ``plain``, ``null`` or
            ``text(VALUE)``. What no mask is about is replaced by tokens, also origins, identifiers of prepared
            transactions and the content of logical messages, unless the mask of ``*`` is ``plain``.

    Raises:
        ChangeLogError: The log has no such table or transaction, or is damaged.
        PgoutputError: A mask is none, or ``key`` is given without one table.
    """
    opened = log if isinstance(log, ChangeLog) else ChangeLog(log)
    if key is not None and len(tables) != 1:
        raise PgoutputError("a key is that of one table: name it")
    rules = [MaskRule.parse(columns, mask) for columns, mask in masks]
    known = LoggedTables(opened)
    oids = {table.relation_oid for name in tables for table in known.named(name)}
    seqs = None
    if key is not None:
        touches = blame(opened, next(iter(tables)), key)
        seqs = {touch.seq for touch in touches if touch.op not in (SNAPSHOT, MISSING)}
    selection = _ChosenChanges(frozenset(oids) if tables else None, seqs, dict(where or {}))
    rows = [*_ended(opened, xids, since, until)]
    if missing := {*xids} - {row["xid"] for row in rows}:
        raise ChangeLogError(f"{opened.store}: no transaction has xid {min(missing)}: pgoutput tail shows them")
    entries = [*_Cutter(opened, known, rows, selection).entries()]
    cut = StreamCut(entries).tidied()
    types = [each for readings in table_readings(opened.index).values() for read in readings for each in read.types]
    masks_of, options = StreamMasks(rules, types), _options(opened, cut.entries)
    masked = [replace(entry, message=_laid_out(_masked(entry, masks_of), entry.lsn, options)) for entry in cut.entries]
    return Fixture(options, replace(cut, entries=masked))


@dataclass(frozen=True)
class _ChosenChanges:
    """Which changes are requested."""

    oids: frozenset[int] | None
    seqs: Collection[int] | None
    where: Mapping[str, str]

    @property
    def has_all(self) -> bool:
        """Whether every message of a transaction is requested."""
        return self.oids is None and self.seqs is None and not self.where

    def of(self, entry: CutEntry) -> CutEntry | None:
        """Return what is requested of a change: of a truncate some of its tables; None for nothing."""
        if self.seqs is not None and entry.seq not in self.seqs:
            return None
        oids = [oid for oid in tables_of(entry.message) if self.oids is None or oid in self.oids]
        if not oids or not self._has_values(entry, oids[0]):
            return None
        descriptions = {oid: entry.descriptions[oid] for oid in oids if oid in entry.descriptions}
        if hasattr(entry.message, "relation_oids"):
            return replace(entry, message=replace(entry.message, relation_oids=tuple(oids)), descriptions=descriptions)
        return entry

    def _has_values(self, entry: CutEntry, oid: int) -> bool:
        if not self.where:
            return True
        names = [column.name for column in entry.descriptions[oid].relation.columns]
        rows = (getattr(entry.message, name, None) for name in ("old", "new"))
        known = [dict(zip(names, row, strict=True)) for row in rows if row is not None]
        return any(
            all(row.get(name) == value.encode("utf-8", "surrogateescape") for name, value in self.where.items())
            for row in known
        )


def _ended(
    log: ChangeLog, xids: Collection[int], since: Lsn | Timestamp | None, until: Lsn | Timestamp | None
) -> Iterator[dict[str, Any]]:
    """Yield the transactions that ended, however they did.

    What was rolled back at an LSN that the server did not send ended where the one before it in the log did, or later.
    """
    lost, reached = lost_histories(log.index), dict[str, int | None]({"commit_lsn": None, "commit_time": None})
    for _, part in log.index.parts():
        found = without_lost_history(part.transactions, lost)
        chosen = pc.is_in(found["xid"], pa.array(sorted(xids), pa.int64())) if xids else pc.is_valid(found["xid"])
        for name, before in reached.items():
            known = pc.if_else(pc.equal(found[name], 0), None, found[name])
            ends = pc.fill_null_forward(pa.chunked_array([pa.array([before], pa.int64()), *known.chunks]))
            for bound, compare in ((since, pc.greater_equal), (until, pc.less_equal)):
                if bound is not None and isinstance(bound, Timestamp) == (name == "commit_time"):
                    chosen = pc.and_(chosen, compare(ends[1:], int(bound)))
            reached[name] = ends[-1].as_py()
        yield from found.filter(chosen).to_pylist()


class _Cutter:
    """Reads the messages of some transactions."""

    def __init__(
        self, log: ChangeLog, tables: LoggedTables, rows: Sequence[Mapping[str, Any]], selection: _ChosenChanges
    ) -> None:
        self._log, self._tables, self._selection = log, tables, selection
        self._segments = SegmentTables(log)
        spans = sorted(
            (span["first"], span["last"], number) for number, row in enumerate(rows) for span in row["spans"]
        )
        self._firsts, self._lasts, self._numbers = (
            np.array([span[each] for span in spans], np.int64) for each in range(3)
        )
        self._ends = {(row["xid"], row["gid"]): number for number, row in enumerate(rows)}
        self._bounds = [(min((s["first"] for s in row["spans"]), default=row["seq"]), row["seq"]) for row in rows]
        self._streams = {row["xid"]: number for number, row in enumerate(rows) if row["streamed"]}

    def entries(self) -> Iterator[CutEntry]:
        """Yield the messages of the transactions that are requested, in the order of the log."""
        if not self._bounds:
            return
        first, last = min(low for low, _ in self._bounds), max(high for _, high in self._bounds)
        segment_indexes = range(max(self._log.segments.find(first), 0), self._log.segments.find(last) + 1)
        for segment_index in segment_indexes:
            segment = self._log.segments[segment_index]
            rows = self._segments.read(segment_index)
            seqs = rows["seq"].to_numpy()
            numbers = self._owners(seqs)
            is_sent = rows["snapshot"].is_null().to_numpy() & rows["tag"].is_valid().to_numpy()
            is_end = np.isin(rows["tag"].fill_null(0).to_numpy(), _END_TAGS)
            chosen = is_sent & ((numbers >= 0) | is_end)
            owners = dict(zip(seqs[chosen].tolist(), numbers[chosen].tolist(), strict=True))
            for entry, message in parsed_entries(rows.filter(pa.array(chosen)), segment):
                found = self._entry(entry, message, owners[entry.seq])
                if found is not None:
                    yield found

    def _owners(self, seqs: Any) -> Any:
        """Return the number of the transaction that each seq is in, -1 for none."""
        if not len(self._firsts):
            return np.full(len(seqs), -1)
        span_indexes = np.searchsorted(self._firsts, seqs, "right") - 1
        return np.where((span_indexes >= 0) & (seqs <= self._lasts[span_indexes]), self._numbers[span_indexes], -1)

    def _entry(self, entry: LogEntry, message: m.PgoutputMessage, number: int) -> CutEntry | None:
        if isinstance(message, m.Relation | m.Type):
            return None
        if number < 0:
            number = self._of_end(entry.seq, message)
        if number < 0:
            return None
        oids = tables_of(message)
        found = CutEntry(entry.seq, entry.wal_start, message, number, entry.stream_xid, self._descriptions(entry, oids))
        if oids:
            return self._selection.of(found)
        return None if isinstance(message, m.Message) and not self._selection.has_all else found

    def _of_end(self, seq: int, message: m.PgoutputMessage) -> int:
        """Return the number of the transaction that a message outside of its spans is of, -1 for none."""
        effect = effect_of(message)
        if effect not in _ENDS:
            return -1
        xid, gid = said(message, "xid"), said(message, "gid")
        number = self._ends.get((xid, gid), -1) if gid is not None else self._streams.get(xid, -1)
        first, last = self._bounds[number] if number >= 0 else (0, -1)
        return number if first <= seq <= last else -1

    def _descriptions(self, entry: LogEntry, oids: Iterable[int]) -> Mapping[int, Description]:
        history = self._tables.history
        return {oid: history.descriptions[history.index(oid, entry.seq, entry.scope)] for oid in oids}


_END_TAGS: Final = [cls.TAG[0] for cls in having(*_ENDS)]


def _options(log: ChangeLog, entries: Sequence[CutEntry]) -> dict[str, Any]:
    """Return the options under which the messages were sent; of several those that can send all of them."""
    segments = {log.segments.find(entry.seq) for entry in entries} or {len(log.segments) - 1}
    layouts = [log.segments[segment_index].options.layout() for segment_index in segments]
    streaming = [*OPTIONS["streaming"].values]
    return dict(max(layouts, key=lambda layout: (layout["proto_version"], streaming.index(layout["streaming"]))))


def _laid_out(message: Any, lsn: Lsn, options: Mapping[str, Any]) -> Any:
    """Return a message as the options have it: a Stream Abort has an LSN and a time if they say parallel."""
    if not isinstance(message, m.StreamAbort):
        return message
    if options["streaming"] != "parallel":
        return m.StreamAbort(message.xid, message.subxid)
    known = message.abort_lsn is not None
    return message if known else replace(message, abort_lsn=lsn, abort_time=Timestamp(0))


def _masked(entry: CutEntry, masks: StreamMasks) -> Any:
    """Return the message of an entry with masked values."""
    message = entry.message
    changed: dict[str, Any] = {}
    if entry.descriptions and not hasattr(message, "relation_oids"):
        [description] = entry.descriptions.values()
        rows = {name: row for name in ("old", "new") if (row := getattr(message, name, None)) is not None}
        changed = {name: masks.row(row, description) for name, row in rows.items()}
    elif isinstance(message, m.Message):
        changed = {"content": masks.content(message.content)}
    elif isinstance(message, m.Origin):
        changed = {"name": masks.name("origin", message.name)}
    elif getattr(message, "gid", None) is not None:
        changed = {"gid": masks.name("gid", message.gid)}
    return replace(message, **changed) if changed else message


_NOT_EXECUTED: Final = (126, 127)
"""The exit statuses of a POSIX shell for a command that is not executable, or was not found."""


def command_fails(command: str, timeout: float) -> Callable[[Fixture], bool]:
    """Return what executes a command with a fixture, and returns whether it fails.

    A command that takes too long is ended, with the processes that it has started, and fails: it hangs.

    Args:
        command: A command of the shell; ``{file}`` is replaced by the path of the fixture, ``{dsn}`` by the connection
            string of a publisher that serves it.
        timeout: Seconds after which it hangs.

    What is returned raises PgoutputError if the shell cannot execute the command: every fixture would fail then.
    """

    def fails(trial: Fixture) -> bool:
        with TemporaryDirectory(prefix="fixture-") as directory:
            path = Path(directory) / "fixture.jsonl"
            trial.save(path)
            if "{dsn}" not in command:
                return _fails(command.replace("{file}", str(path)), timeout)
            from pgoutput_construct.testing import publisher

            with publisher() as served:
                served.play(path)
                return _fails(command.replace("{file}", str(path)).replace("{dsn}", served.dsn), timeout)

    return fails


def _fails(command: str, timeout: float) -> bool:
    process = subprocess.Popen(
        command, shell=True, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        status = process.wait(timeout)
        if status in _NOT_EXECUTED:
            raise PgoutputError(f"the command cannot be executed: the shell ends with status {status}")
        return status != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
