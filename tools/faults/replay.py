"""Rebuilds the tables of a log with copies: the rows of the latest copies, then the changes that count.

Slow and plain, for judging: a change counts when its transaction is not in the snapshot of its table's latest copy.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog import ChangeLog, LogEntry
from pgoutput_construct.changelog._facts.copies import TableCopy, latest_copies
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.stream.rows import RowChange, RowReader
from pgoutput_construct.stream.state import ControlMessage
from pgoutput_construct.stream.transaction_reader import TransactionReader
from pgoutput_construct.wire import Insert, PgoutputMessage, Relation, parse
from pgoutput_construct.wire.options import STATE_PARAMETERS
from pgoutput_construct.wire.protocol import RelationColumnFlags, RelationReplicaIdentity
from tools.faults.committed_spans import spans_of_reader

__all__ = ["Tables", "replay"]

_OUTSIDE: dict[str, Any] = dict.fromkeys(STATE_PARAMETERS, False)

Row = dict[str, Any]
Tables = dict[int, list[Row]]
"""The rows of each table by its OID: values as they came, by column name."""


def replay(log: ChangeLog) -> Tables:
    """Return the tables that were copied, as they are at the end of the log."""
    copies = latest_copies(log.index)
    tables = _copied(log, copies)
    transactions, reader = TransactionReader(), RowReader(values="raw")
    found: dict[int, list[RowChange]] = {}
    for entry in log.entries():
        message = _message(log, entry)
        transactions.read(ControlMessage(entry.seq, entry.stream_xid, message))
        found[entry.seq] = [*reader.read(message)]
    for xid, change in _committed(transactions, found):
        copy = copies.get(change.relation.relation_oid)
        if copy is not None and copy.snapshot.invisible(np.array([xid]))[0]:
            tables[copy.relation_oid].apply(change)
    return {oid: table.rows for oid, table in tables.items()}


def _message(log: ChangeLog, entry: LogEntry) -> PgoutputMessage:
    keywords: dict[str, Any] = {**log.segment(entry.seq).options.layout(), **entry.states}
    message: PgoutputMessage = parse(entry.payload, **keywords)
    return message


def _copied(log: ChangeLog, copies: Mapping[int, TableCopy]) -> dict[int, "_Table"]:
    by_chunk = {n: copy for copy in copies.values() for n in range(copy.first_chunk, copy.last_chunk + 1)}
    tables, described = {oid: _Table() for oid in copies}, dict[int, Relation]()
    for segment in log.segments:
        rows, layout = log.table(segment).select(["seq", "snapshot", "payload"]), segment.options.layout()
        rows = rows.filter(pc.is_in(rows["snapshot"], pa.array([*by_chunk], pa.int32())))
        for seq, chunk, payload in zip(*(column.to_pylist() for column in rows.columns), strict=True):
            message = parse(payload, **layout, **_OUTSIDE)
            if isinstance(message, Relation):
                described[chunk] = message
            elif isinstance(message, Insert) and seq not in by_chunk[chunk].void:
                names = (column.name for column in described[chunk].columns)
                tables[by_chunk[chunk].relation_oid].add(dict(zip(names, message.new, strict=True)), described[chunk])
    for oid, copy in copies.items():
        if (count := len(tables[oid].rows)) != copy.rows:
            raise ChangeLogError(f"the copy of {copy.name} has {count} rows, and should have {copy.rows}")
    return tables


def _committed(
    transactions: TransactionReader, found: Mapping[int, list[RowChange]]
) -> Iterator[tuple[int, RowChange]]:
    """Yield the changes that were committed, in the order of their commits, each with its top-level xid."""
    spans = spans_of_reader(transactions)
    for place in np.lexsort((np.array(spans.first_seq), np.array(spans.commit_lsn))).tolist():
        aborted = spans.aborted.get(place, frozenset())
        for seq in range(spans.first_seq[place], spans.last_seq[place] + 1):
            for change in found.get(seq, ()):
                if change.xid not in aborted:
                    yield spans.xid[place], change


class _Table:
    """The rows of one table, found by what a change says of the old one."""

    def __init__(self) -> None:
        self._rows: dict[Any, list[Row]] = defaultdict(list)
        self._keys: tuple[str, ...] | None = None

    @property
    def rows(self) -> list[Row]:
        return [row for rows in self._rows.values() for row in rows]

    def add(self, row: Row, relation: Relation) -> None:
        self._find_by(relation)
        self._rows[self._identity(row)].append(row)

    def apply(self, change: RowChange) -> None:
        self._find_by(change.relation)
        if change.op == "truncate":
            self._rows.clear()
            return
        stored = None if change.op == "insert" else self._take(change)
        if change.new is not None:
            row = {name: (stored or {}).get(name) for name in change.unchanged} | change.new
            self._rows[self._identity(row)].append(row)

    def _take(self, change: RowChange) -> Row:
        rows = self._rows[self._identity(change.old or change.new or {})]
        if not rows:
            raise ChangeLogError(f"{change.op} of a row of {change.relation.name} that there is not: {change!r:.400}")
        return rows.pop()

    def _find_by(self, relation: Relation) -> None:
        """Find rows by the columns of the replica identity; of all columns, by those that are not NULL."""
        is_full = relation.replica_identity == RelationReplicaIdentity.FULL
        names = [column.name for column in relation.columns if column.flags & RelationColumnFlags.KEY]
        keys = None if is_full else tuple(names)
        if keys != self._keys:
            rows, self._keys = self.rows, keys
            self._rows.clear()
            for row in rows:
                self._rows[self._identity(row)].append(row)

    def _identity(self, row: Row) -> Any:
        # A column that was added since is NULL in rows from before.
        if self._keys is None:
            return frozenset((name, value) for name, value in row.items() if value is not None)
        return tuple(row[name] for name in self._keys)
