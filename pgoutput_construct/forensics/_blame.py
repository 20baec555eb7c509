"""Blame: every transaction of a change log that touched one row."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final, TypeAlias

from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._segment.events import COPIED_TABLE, event_rows
from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.forensics._row_search import RowKey, RowSearch
from pgoutput_construct.forensics._row_states import RowLife, RowStates, RowStep
from pgoutput_construct.forensics._table_changes import LoggedChange, SegmentTables, TableChanges, Transactions
from pgoutput_construct.forensics._tracked_table import ColumnId, LoggedTables, Row, TrackedTable
from pgoutput_construct.stream.identifiers import full_name, quote_identifier
from pgoutput_construct.wire import Lsn, Timestamp
from pgoutput_construct.wire.messages import Binary, Relation

__all__ = ["MISSING", "KeyValue", "RowTouch", "blame"]

KeyValue: TypeAlias = str | int | bool | Binary
"""A value of a key: text as PostgreSQL prints it, a number, or a boolean; Binary, if only the server knows its text."""

MISSING: Final = "missing"
"""The ``op`` of a table copy without the row."""


@dataclass(frozen=True)
class RowTouch:
    """One change of a row, or a copy of its table that has it.

    Values are PostgreSQL's text as bytes, None for NULL. A value that was captured in binary format and whose text only
    the server knows is ``Binary``.
    """

    op: str
    """``insert``, ``update``, ``delete``, ``truncate``; ``snapshot``: the row was copied with its table; ``missing``: a
    copy of the table does not have the row, which earlier changes wrote: the log lacks what removed it."""
    table: str
    """Schema and name of the table at that time, quoted as in SQL."""
    commit_lsn: Lsn
    """The LSN of the commit; of a copy, the LSN of its snapshot."""
    commit_time: Timestamp
    """When it committed; of a copy, when it was complete."""
    xid: int | None
    """The top-level transaction ID; None for a copy."""
    gid: str | None
    """The identifier under which the transaction was prepared; None if it was not."""
    origin: str | None
    """The replication origin of the transaction; None if it has none."""
    seq: int
    """The seq of the message in the log; of ``missing``, that of the copy."""
    lsn: Lsn
    """The LSN of the change, as the server sent it; 0/0 for a copied row."""
    key: Mapping[str, bytes | None]
    """The values by which the row was looked for, as it has them after this: its key may change."""
    old: Mapping[str, bytes | None] | None
    """The known values before the change, by column name; None if there was no row, as far as the log knows."""
    new: Mapping[str, bytes | None] | None
    """The known values after the change; None if there is no row."""
    changed: tuple[str, ...]
    """The columns whose value is another one, or may be: the log does not have the old one."""
    unchanged: tuple[str, ...]
    """The columns whose value was not sent (unchanged TOAST); ``new`` has it if the log has it from earlier."""
    relation: Relation | None
    """The description of the table then; None for a truncate or ``missing`` before which the row had no change."""
    payload: bytes
    """The message as received; empty for ``missing``."""
    options: Mapping[str, Any]
    """The keywords with which ``pgoutput_construct.parse`` reads the payload."""


def blame(
    log: ChangeLog | Address,
    table: str,
    key: KeyValue | Sequence[KeyValue] | Mapping[str, KeyValue],
    *,
    column: str | None = None,
    since: Lsn | Timestamp | None = None,
    until: Lsn | Timestamp | None = None,
) -> list[RowTouch]:
    """Return every change of a row, in the order of the commits.

    The row is followed over changes of its key, renames of its table and columns, truncates, and copies of the table.
    Where several rows had the key one after the other, the changes of all of them are returned. Values that were not
    sent come from earlier changes or copies of the row, if the log has these. Only segments with changes of the table
    are read.

    Args:
        log: The log, or its address.
        table: The table as in SQL; its last name, or an earlier one that no table has now.
        key: The key: one value, several in the order of the table's columns, or values by column name. Of a table with
            REPLICA IDENTITY FULL any columns, by name.
        column: Only changes of this column, by its last name or an earlier one; inserts, deletes and copies always
            count.
        since: Only what committed at this LSN or time, or later.
        until: Only what committed at this LSN or time, or earlier.

    Raises:
        ChangeLogError: The log has no such table or column, or is damaged.
        PgoutputError: The key does not have the columns of the table's replica identity, or was captured in binary
            format whose text only the server knows, such as the OID of a ``regtype``, and is given as text.
    """
    opened = log if isinstance(log, ChangeLog) else ChangeLog(log)
    tables, segments, known = LoggedTables(opened), SegmentTables(opened), Transactions(opened)
    found = list[tuple[int, RowTouch]]()
    for each in tables.named(table):
        changes = TableChanges(tables, each, segments, known)
        wanted = chosen_key(each, key)
        times = {row.seq: row.time for row in event_rows(opened.index, {COPIED_TABLE})} if changes.copies else {}
        reader = _TouchReader(each, wanted, None if column is None else each.column(column), segments, times)
        located = changes.locate(RowSearch(changes, [wanted], are_given=True).seqs())
        found += reader.touches(RowStates(each).follow(changes.ordered(located)))
    return [touch for _, touch in sorted(found, key=itemgetter(0)) if _is_within(touch, since, until)]


def chosen_key(table: TrackedTable, key: KeyValue | Sequence[KeyValue] | Mapping[str, KeyValue]) -> RowKey:
    """Return the columns and values of a key; raise PgoutputError if the table has another one."""
    shape = table.shape(table.descriptions[-1])
    names, title = table.column_names, full_name(shape.description.relation)
    identity = ", ".join(quote_identifier(names[each]) for each in shape.key)
    if isinstance(key, Mapping):
        chosen = {table.column(name): _text(value) for name, value in key.items()}
        if not shape.is_full and {*chosen} not in [{*each} for each in table.identities()]:
            raise PgoutputError(f"{title}: rows are told apart by {identity or 'nothing'}: give these columns")
        return tuple(chosen.items())
    values = [key] if isinstance(key, str | int | Binary) else [*key]
    if shape.is_full and len(shape.columns) > 1:
        raise PgoutputError(f"{title} has REPLICA IDENTITY FULL: name the columns of the key, such as id=42")
    if len(values) != len(shape.key):
        counts = f"{len(shape.key)} column{'s' * (len(shape.key) != 1)}, not {len(values)}"
        raise PgoutputError(f"{title}: the key ({identity}) has {counts}: give a value for each")
    return tuple(zip(shape.key, map(_text, values), strict=True))


def _text(value: KeyValue) -> bytes:
    if isinstance(value, Binary):
        return value
    text = {True: "t", False: "f"}[value] if isinstance(value, bool) else str(value)
    return text.encode("utf-8", "surrogateescape")


def _is_within(touch: RowTouch, since: Lsn | Timestamp | None, until: Lsn | Timestamp | None) -> bool:
    def at(bound: Lsn | Timestamp) -> int:
        return touch.commit_time if isinstance(bound, Timestamp) else touch.commit_lsn

    return (since is None or at(since) >= since) and (until is None or at(until) <= until)


@dataclass
class _TouchReader:
    """Finds what happened to the rows of one table that had a key."""

    table: TrackedTable
    key: RowKey
    """What the rows have, or had."""
    column: ColumnId | None
    """Only changes of this column; None: all."""
    segments: SegmentTables
    times: Mapping[int, int]
    """When copies were complete, by their seqs."""
    origins: dict[int, str | None] = field(default_factory=dict)
    """The origins of transactions that were looked up, by their seqs."""

    def touches(self, steps: Iterable[RowStep]) -> Iterator[tuple[int, RowTouch]]:
        """Yield what happened to the rows that had the key at any time, each with an LSN that orders it.

        The snapshot of a copy may be at a later LSN than a commit that it does not contain: what happened to one row
        stays in its order.
        """
        of_lives = dict[RowLife, list[RowStep]]()
        for step in steps:
            of_lives.setdefault(step.life, []).append(step)
        for of_life in of_lives.values():
            if any(self._has_key(row) for step in of_life for row in (step.before, step.after)):
                order = 0
                for touch in map(self._touch, filter(self._is_wanted, of_life)):
                    order = max(order, touch.commit_lsn)
                    yield order, touch

    def _has_key(self, row: Row | None) -> bool:
        return row is not None and all(row.get(column) == value for column, value in self.key)

    def _is_wanted(self, step: RowStep) -> bool:
        column = self.column
        return column is None or step.before is None or step.after is None or column in _changed(step)

    def _touch(self, step: RowStep) -> RowTouch:
        shape = step.shape
        names = {**self.table.column_names, **(shape.names() if shape else {})}
        columns = shape.columns if shape else ()

        def named(row: Row | None) -> Mapping[str, bytes | None] | None:
            return None if row is None else {names[each]: row[each] for each in columns if each in row}

        change = step.change
        relation = shape.description.relation if shape else None
        key = step.after or step.before or {}
        return RowTouch(
            op=MISSING if isinstance(change, TableCopy) else change.op,
            table=full_name(relation) if relation else full_name(self.table.descriptions[-1].relation),
            key={names[column]: key.get(column) for column, _ in self.key},
            old=named(step.before),
            new=named(step.after),
            changed=tuple(names[column] for column in columns if column in _changed(step)),
            unchanged=tuple(names[column] for column in (step.sent.unsent if step.sent else ())),
            relation=relation,
            **self._source_fields(change),
        )

    def _source_fields(self, change: LoggedChange | TableCopy) -> dict[str, Any]:
        """Return where a change comes from, as fields of RowTouch."""
        source = change if isinstance(change, TableCopy) else change.source
        if isinstance(change, TableCopy):
            message: dict[str, Any] = {"seq": change.seq, "lsn": Lsn(0), "payload": b"", "options": {}}
        else:
            lsn = Lsn(0) if isinstance(source, TableCopy) else change.lsn
            message = {"seq": change.seq, "lsn": lsn, "payload": change.payload, "options": change.options}
        if isinstance(source, TableCopy):
            time, lsn = Timestamp(self.times.get(source.seq, 0)), source.snapshot.lsn
            return {**message, "commit_lsn": lsn, "commit_time": time, "xid": None, "gid": None, "origin": None}
        if source.seq not in self.origins:
            origin = self.segments.origin(source)
            self.origins[source.seq] = None if origin is None else origin.name
        return {
            **message,
            "commit_lsn": Lsn(source.commit_lsn or 0),
            "commit_time": Timestamp(source.time or 0),
            "xid": source.transaction.xid,
            "gid": source.transaction.gid,
            "origin": self.origins[source.seq],
        }


def _changed(step: RowStep) -> set[ColumnId]:
    """Return the columns whose value is another one, or may be."""
    before, after, unsent = step.before, step.after, step.sent.unsent if step.sent else ()
    if before is None or after is None:
        return {*(before or {}), *(after or {})}
    sent = (column for column in after if column not in unsent)
    return {column for column in sent if column not in before or before[column] != after[column]}
