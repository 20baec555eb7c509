"""Undo: the SQL that takes transactions of a change log back, row by row, as long as nobody changed the rows since.

Changes are taken back in the reverse order, each by a statement of its own: an insert by a DELETE, an update by an
UPDATE to the old values, a delete by an INSERT. Each must find its row exactly as the change left it. What a message
does not say of the row before comes from the log's earlier changes and copies of the row (``_row_states``). Every
intermediate state was one that the database accepted row by row, so unique constraints hold on the way back.

Triggers and foreign keys
    Whatever triggers and cascades wrote in a transaction is in the log like all else, and is taken back like it. Were
    they to fire again, they would write it twice. So by default the script runs as PostgreSQL's apply worker does, with
    ``session_replication_role = replica``, which a superuser may set, or who was granted SET on it. Then the server
    checks no foreign key either, so the script does that itself at its end. With triggers, a script needs no such
    right; it fails where a row is inserted before the one that it refers to, as after a cascade.

What cannot be taken back
    A change whose old values nobody has; the truncate of a table whose rows are not all in the log; whatever is not
    sent: DDL and sequences. Each is an obstacle; ``UndoScript.text`` has no SQL then, unless a part is requested.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._facts.catalog_readings import publication_readings
from pgoutput_construct.changelog._facts.completeness import lacks_of, publishes_all_operations, whole_tables
from pgoutput_construct.changelog._index.planning import committed_transactions, lost_histories
from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.changelog.decoding_order import ended_transaction
from pgoutput_construct.changelog.reader import ChangeLog, index_as_of
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.forensics._row_search import RowSearch, row_key
from pgoutput_construct.forensics._row_states import RowLife, RowStates, RowStep, sent_rows
from pgoutput_construct.forensics._table_changes import LoggedChange, SegmentTables, TableChanges, Transactions
from pgoutput_construct.forensics._tracked_table import LoggedTables
from pgoutput_construct.forensics._undo_steps import Obstacle, UndoneTable, UndoStep, literal, printed
from pgoutput_construct.postgres.connection import SESSION_SETTINGS
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.transaction_reader import EndedTransaction
from pgoutput_construct.wire import Lsn, Timestamp
from pgoutput_construct.wire.messages import Truncate
from pgoutput_construct.wire.protocol import TruncateOptions

__all__ = ["UndoScript", "UndoneTransaction", "undo"]

_MOST_NOTES: Final = 20
"""Later changes of rows that are named."""


class UndoneTransaction(NamedTuple):
    """A transaction that is taken back."""

    xid: int
    """Its top-level transaction ID."""
    commit_lsn: Lsn
    """The LSN of its commit."""
    commit_time: Timestamp
    """The time of its commit."""


@dataclass(frozen=True)
class UndoScript:
    """How transactions are taken back."""

    log: str
    """The log's address."""
    transactions: tuple[UndoneTransaction, ...]
    """The transactions, in the order of their commits."""
    tables: tuple[str, ...]
    """The tables that are written to, as SQL names them now."""
    statements: tuple[str, ...]
    """The statements in the order in which they are executed; each must change one row."""
    obstacles: tuple[str, ...]
    """What cannot be taken back, and why."""
    notes: tuple[str, ...]
    """What to know before the script is executed, such as rows that were changed since."""
    _steps: tuple[UndoStep, ...] = field(repr=False)
    _with_triggers: bool = field(repr=False)

    def text(self, partial: bool = False) -> str:
        """Return the script: one transaction, which changes nothing if a row is not as it was left.

        Args:
            partial: Take back what can be taken back, if there are obstacles; otherwise the script then has only
                comments, which name them.
        """
        lines = [f"-- {printed(line)}" for line in (*self._heading, *self._obstacle_lines)]
        if partial or not self.obstacles:
            lines += _transaction(self._steps, self.tables, with_triggers=self._with_triggers)
        return "".join(f"{line}\n" for line in lines)

    @property
    def _heading(self) -> list[str]:
        several = "s" * (len(self.transactions) != 1)
        lines = [f"Takes back {len(self.transactions):,} transaction{several} of {self.log}:"]
        lines += [f"  xid {each.xid}, committed {each.commit_time} at {each.commit_lsn}" for each in self.transactions]
        lines += ["Not DDL, sequences, and what was not published. Rows must be as these transactions left them."]
        return lines + [f"Note: {each}" for each in self.notes]

    @property
    def _obstacle_lines(self) -> list[str]:
        return ["NOT taken back:", *(f"  {each}" for each in self.obstacles)] if self.obstacles else []


def undo(
    log: ChangeLog | Address,
    *,
    xid: int | None = None,
    lsn: Lsn | None = None,
    since: Lsn | Timestamp | None = None,
    until: Lsn | Timestamp | None = None,
    tables: Collection[str] = (),
    with_triggers: bool = False,
) -> UndoScript:
    """Return the SQL that takes transactions back.

    Args:
        log: The log, or its address.
        xid: The top-level transaction ID of one transaction; or
        lsn: the LSN of its commit; or
        since: all that committed at this LSN or time, or later,
        until: and up to this one.
        tables: Only changes of these tables, named as in SQL; all if empty.
        with_triggers: Let triggers fire and foreign keys cascade, which needs no right of a superuser.

    Raises:
        ChangeLogError: There is no such transaction or table, or the log is damaged.
        PgoutputError: None of ``xid``, ``lsn`` and ``since`` is given, or more than one.
    """
    if [xid, lsn, since].count(None) != 2:
        raise PgoutputError("give one of the transaction's xid, the LSN of its commit, and since")
    if until is not None and since is None:
        raise PgoutputError("until needs since")
    opened = log if isinstance(log, ChangeLog) else ChangeLog(log)
    selected = [*_selected(opened, xid, lsn, since, until)]
    if not selected and since is None:
        which = f"xid {xid}" if lsn is None else f"a commit at {lsn}"
        raise ChangeLogError(f"{opened.store}: no committed transaction has {which}: pgoutput tail shows them")
    if xid is not None and len(selected) > 1:
        commits = ", ".join(str(Lsn(each.commit_lsn or 0)) for each in selected)
        raise ChangeLogError(f"{opened.store}: several transactions have xid {xid}: give the LSN of one: {commits}")
    return _Undo(opened, selected, tables, with_triggers).script()


def _selected(
    log: ChangeLog, xid: int | None, lsn: Lsn | None, since: Lsn | Timestamp | None, until: Lsn | Timestamp | None
) -> Iterator[EndedTransaction]:
    """Yield transactions in the order of the log."""
    conditions: list[tuple[str, Callable[..., Any], int]] = []
    if xid is not None:
        conditions.append(("xid", pc.equal, xid))
    if lsn is not None:
        conditions.append(("commit_lsn", pc.equal, lsn))
    for bound, compare in ((since, pc.greater_equal), (until, pc.less_equal)):
        if bound is not None:
            conditions.append(("commit_time" if isinstance(bound, Timestamp) else "commit_lsn", compare, bound))
    lost = lost_histories(log.index)
    for _, part in log.index.parts():
        found = committed_transactions(part.transactions, lost)
        for column, compare, value in conditions:
            found = found.filter(compare(found[column], pa.scalar(int(value), pa.int64())))
        yield from map(ended_transaction, found.to_pylist())


class _Undo:
    """Takes transactions back, table by table."""

    def __init__(
        self, log: ChangeLog, selected: Sequence[EndedTransaction], tables: Collection[str], with_triggers: bool
    ) -> None:
        self._log, self._with_triggers = log, with_triggers
        self._selected = {each.seq: each for each in selected}
        self._tables, self._segments, self._known = LoggedTables(log), SegmentTables(log), Transactions(log)
        spans = sorted(span for each in selected for span in each.transaction.spans)
        self._firsts = np.array([first for first, _ in spans], np.int64)
        self._lasts = np.array([last for _, last in spans], np.int64)
        named = [self._tables.named(name) for name in tables]
        self._wanted = None if not tables else {table.relation_oid for each in named for table in each}
        self._obstacles: list[str] = []
        self._notes: list[str] = []
        self._incomplete: set[int] = set()
        """The seqs of truncates whose rows the log does not have."""
        self._stuck: set[RowLife] = set()
        """Rows of which a change is not taken back."""
        self._steps: list[tuple[int, int, int, UndoneTable, RowStep]] = []

    def script(self) -> UndoScript:
        """Return the script."""
        for oid in self._touched():
            self._read(TableChanges(self._tables, self._tables.table(oid), self._segments, self._known))
        # The rows of a truncate have one seq; they are inserted in any order.
        order = sorted(self._steps, key=lambda each: each[:3], reverse=True)
        taken, names = list[UndoStep](), dict[str, None]()
        for *_, table, step in order:
            found = self._taken_back(table, step)
            if found is not None:
                taken.append(found)
                names[table.name] = None
        self._notes += dict.fromkeys(note for *_, table, _ in order for note in table.notes)
        by_commit = sorted(self._selected.values(), key=attrgetter("seq"))
        return UndoScript(
            log=str(self._log.store),
            transactions=tuple(
                UndoneTransaction(each.transaction.xid, Lsn(each.commit_lsn or 0), Timestamp(each.time or 0))
                for each in by_commit
            ),
            tables=tuple(names),
            statements=tuple(step.statement for step in taken),
            obstacles=tuple(dict.fromkeys(self._obstacles)),
            notes=tuple(self._notes),
            _steps=tuple(taken),
            _with_triggers=self._with_triggers,
        )

    def _taken_back(self, table: UndoneTable, step: RowStep) -> UndoStep | None:
        """Return what takes a change back; None, with an obstacle, where nothing does."""
        if step.life in self._stuck:
            # A later change of the row stays, so the row is not as this one left it.
            self._obstacles.append(f"{table.about(step)}: a later change of this row is not taken back")
            return None
        found = None
        if step.change.seq not in self._incomplete:
            found = table.take_back(step)
        if isinstance(found, Obstacle):
            self._obstacles.append(str(found))
        if isinstance(found, Obstacle) or step.change.seq in self._incomplete:
            self._stuck.add(step.life)
            return None
        return found

    @cached_property
    def _with_deletes(self) -> frozenset[int]:
        """The OIDs of the tables whose deletes are published."""
        latest = {reading.name: reading for reading in publication_readings(self._log.index)}
        publishing = (each for each in latest.values() if each.captured and "delete" in each.operations)
        return frozenset(oid for each in publishing for oid in each.tables)

    def _touched(self) -> list[int]:
        """Return the OIDs of the tables that may have changes in the transactions."""
        rows = self._log.index.entries("rows")
        first, last = rows["first_seq"].to_numpy(), rows["last_seq"].to_numpy()
        if not len(self._firsts):
            return []
        span_indexes = np.searchsorted(self._firsts, last, "right") - 1
        latest = np.maximum.accumulate(self._lasts)
        overlaps = (span_indexes >= 0) & (latest[span_indexes] >= first)
        oids: list[int] = np.unique(rows["oid"].to_numpy()[overlaps]).tolist()
        return [oid for oid in oids if self._wanted is None or oid in self._wanted]

    def _is_selected(self, change: LoggedChange) -> bool:
        return isinstance(change.source, EndedTransaction) and change.source.seq in self._selected

    def _read(self, changes: TableChanges) -> None:
        """Find the steps of one table."""
        table = UndoneTable(changes.table, publishes_deletes=changes.table.relation_oid in self._with_deletes)
        own = self._own(changes)
        if not own:
            return
        truncates = [change for change in own if change.description is None]
        self._check_definition(own)
        seqs = None if truncates else self._needed(changes, own)
        self._incomplete |= {change.seq for change in truncates if not self._can_restore(table, change)}
        undone, later = set[RowLife](), dict[RowLife, str]()
        for step in RowStates(changes.table).follow(changes.ordered(changes.locate(seqs))):
            change = step.change
            if not isinstance(change, LoggedChange):
                continue
            if self._is_selected(change):
                commit_lsn = getattr(change.source, "commit_lsn", None) or 0
                self._steps.append((commit_lsn, change.seq, len(self._steps), table, step))
                undone.add(step.life)
            elif step.life in undone:
                later[step.life] = f"{table.about(step)}: this row was changed later, so its check will fail"
        self._notes += [*later.values()][:_MOST_NOTES]
        if len(later) > _MOST_NOTES:
            self._notes.append(f"and {len(later) - _MOST_NOTES:,} more rows of {table.name} were changed later")

    def _own(self, changes: TableChanges) -> list[LoggedChange]:
        """Return the changes of a table in the transactions."""
        seqs = set[int]()
        for segment_index in changes.segment_indexes:
            segment = self._log.segments[segment_index]
            span = int(np.searchsorted(self._lasts, segment.first_seq))
            if span < len(self._firsts) and self._firsts[span] <= segment.last_seq:
                seqs |= changes.within(segment_index, self._firsts, self._lasts)
        ordered = changes.ordered(changes.locate(seqs))
        return [each for each in ordered if isinstance(each, LoggedChange) and self._is_selected(each)]

    def _needed(self, changes: TableChanges, own: Iterable[LoggedChange]) -> set[int]:
        """Return the seqs of the changes that say what rows were before: none where whole old rows are sent."""
        keys, seqs = dict[Any, None](), set[int]()
        identities = changes.table.identities()
        for change in own:
            seqs.add(change.seq)
            sent = sent_rows(changes.table, change)
            if sent is not None and not sent.shape.is_full:
                rows = (sent.old, sent.new)
                found = (key for row in rows for each in identities if (key := row_key(each, row)))
                keys |= dict.fromkeys(found)
        return seqs | (RowSearch(changes, keys).seqs() if keys else set())

    def _check_definition(self, own: Sequence[LoggedChange]) -> None:
        """Note a table that was altered between two of its changes in one transaction."""
        latest = dict[int, Any]()
        for change in own:
            if change.description is not None:
                relation = change.description.relation
                seen = relation.namespace, relation.name, relation.columns, relation.replica_identity
                if latest.setdefault(change.source.seq, seen) != seen:
                    xid = self._selected[change.source.seq].transaction.xid
                    self._obstacles.append(f"xid {xid}: it altered {full_name(relation)}: DDL is not in the stream")
                latest[change.source.seq] = seen

    def _can_restore(self, table: UndoneTable, change: LoggedChange) -> bool:
        """Return whether all rows that a truncate removed are in the log; otherwise note the obstacle."""
        about = f"seq {change.seq}: truncate of {table.name}"
        if isinstance(change.message, Truncate) and change.message.options & TruncateOptions.RESTART_IDENTITY:
            self._obstacles.append(f"{about}: it restarted the sequences of the table (RESTART IDENTITY)")
        oid, before = table.table.relation_oid, change.source.seq - 1
        if before >= self._log.index.first_seq:
            index = index_as_of(self._log, before)
            if oid in whole_tables(index, lacks_of(index)) and publishes_all_operations(index):
                return True
        self._obstacles.append(
            f"{about}: the log does not have all rows that the table had: it needs a table copy before"
        )
        return False


_BLOCK: Final = 500
"""Statements in one block of PL/pgSQL, which is compiled as a whole."""
_PRINTING: Final = ("datestyle", "intervalstyle", "extra_float_digits", "timezone", "bytea_output")
"""Settings on which the text of values depends."""

_FOREIGN_KEYS: Final = """\
DECLARE
    undo_tables oid[] := ARRAY[{tables}]::regclass[]::oid[];
    undo_key record;
    undo_rows bigint;
BEGIN
    -- Of partitions the foreign keys are those of the tables that they are part of.
    undo_tables := undo_tables || ARRAY(
        SELECT above.relid::oid FROM unnest(undo_tables) each, pg_catalog.pg_partition_ancestors(each) above);
    FOR undo_key IN
        SELECT c.conname, c.conrelid::regclass AS referring, c.confrelid::regclass AS referred,
            string_agg(format('r.%I = t.%I', r.attname, t.attname), ' AND ') AS matching,
            string_agg(format('t.%I IS NOT NULL', t.attname), ' AND ') AS given
        FROM pg_catalog.pg_constraint c, unnest(c.conkey, c.confkey) AS pair(t, r)
            JOIN pg_catalog.pg_attribute t ON t.attnum = pair.t
            JOIN pg_catalog.pg_attribute r ON r.attnum = pair.r
        WHERE c.contype = 'f' AND c.conparentid = 0 AND c.convalidated
            AND to_jsonb(c) ->> 'conperiod' IS DISTINCT FROM 'true'
            AND t.attrelid = c.conrelid AND r.attrelid = c.confrelid
            AND (c.conrelid = ANY (undo_tables) OR c.confrelid = ANY (undo_tables))
        GROUP BY c.oid, c.conname, c.conrelid, c.confrelid
    LOOP
        EXECUTE format('SELECT count(*) FROM %s t WHERE %s AND NOT EXISTS (SELECT FROM %s r WHERE %s)',
            undo_key.referring, undo_key.given, undo_key.referred, undo_key.matching) INTO undo_rows;
        IF undo_rows > 0 THEN
            RAISE EXCEPTION 'undo: % rows of % would violate the foreign key %',
                undo_rows, undo_key.referring, undo_key.conname
                USING ERRCODE = 'foreign_key_violation', HINT = 'Later rows depend on what is taken back.';
        END IF;
    END LOOP;
END"""


def _transaction(steps: Sequence[UndoStep], tables: Sequence[str], *, with_triggers: bool) -> Iterator[str]:
    """Yield the lines of a transaction.

    Args:
        steps: The statements, in the order in which they are executed.
        tables: The tables that they write to, as SQL names them.
        with_triggers: Whether triggers fire and foreign keys cascade; otherwise foreign keys are checked at the end.
    """
    yield "SET client_encoding = 'UTF8';"
    yield "BEGIN;"
    for name in _PRINTING:
        yield f"SET LOCAL {name} = {literal(SESSION_SETTINGS[name].encode())};"
    if with_triggers:
        yield "SET CONSTRAINTS ALL DEFERRED;"
    else:
        yield "-- What triggers and cascades wrote is in the log, and is taken back with the rest: they must not fire."
        yield "SET LOCAL session_replication_role = replica;"
        yield f"SET LOCAL search_path = {SESSION_SETTINGS['search_path']};"
    for first in range(0, len(steps), _BLOCK):
        yield from _block(_checked(steps[first : first + _BLOCK]))
    if not with_triggers and tables:
        names = ", ".join(literal(name.encode()) for name in tables)
        yield from _block([_FOREIGN_KEYS.replace("{tables}", names)])
    yield "COMMIT;"


def _checked(steps: Iterable[UndoStep]) -> Iterator[str]:
    """Yield a block of statements, each of which must change one row."""
    # Columns of a table may be called as the variable is.
    yield "#variable_conflict use_column"
    yield "DECLARE"
    yield "    undo_rows bigint;"
    yield "BEGIN"
    for step in steps:
        problem = literal(f"undo: {step.about}: the row is not as this change left it".encode("utf-8", "replace"))
        yield f"    -- {printed(step.about)}"
        yield f"    {step.statement};"
        yield "    GET DIAGNOSTICS undo_rows = ROW_COUNT;"
        yield f"    IF undo_rows <> 1 THEN RAISE EXCEPTION USING MESSAGE = {problem}; END IF;"
    yield "END"


def _block(lines: Iterable[str]) -> Iterator[str]:
    """Yield a DO statement, quoted so that nothing in it ends it."""
    body = [*lines]
    quotes = (f"$undo{number or ''}$" for number in count())
    quote = next(each for each in quotes if not any(each in line for line in body))
    yield f"DO {quote}"
    yield from body
    yield f"{quote};"
