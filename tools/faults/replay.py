"""The tables that a log with copies says there are: rows of the latest copies, then the changes that count.

Slow and plain, for judging: a change counts when its transaction is not in the snapshot of its table's latest copy.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pgoutput_construct.changelog import ChangeLog, LogEntry
from pgoutput_construct.changelog.copies import TableCopy, latest_copies
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.stream.rows import RowChange, RowReader
from pgoutput_construct.stream.state import ControlMessage
from pgoutput_construct.stream.transactions import TransactionReader
from pgoutput_construct.wire import PgoutputMessage, parse
from pgoutput_construct.wire.protocol import RelationColumnFlags, RelationReplicaIdentity

__all__ = ["Tables", "replay"]

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
            _apply(tables[copy.relation_oid], change)
    return tables


def _message(log: ChangeLog, entry: LogEntry) -> PgoutputMessage:
    keywords: dict[str, Any] = {**log.segment(entry.seq).options.layout(), **entry.states}
    message: PgoutputMessage = parse(entry.payload, **keywords)
    return message


def _copied(log: ChangeLog, copies: Mapping[int, TableCopy]) -> Tables:
    readers: dict[int, RowReader] = defaultdict(lambda: RowReader(values="raw"))
    by_chunk = {n: copy for copy in copies.values() for n in range(copy.first_chunk, copy.last_chunk + 1)}
    tables: Tables = {oid: [] for oid in copies}
    for entry in log.entries(copied=True):
        if entry.snapshot is not None and entry.snapshot in by_chunk:
            rows = readers[entry.snapshot].read(_message(log, entry))
            tables[by_chunk[entry.snapshot].relation_oid].extend(row.new or {} for row in rows)
    for oid, copy in copies.items():
        if len(tables[oid]) != copy.rows:
            raise ChangeLogError(f"the copy of {copy.name} has {len(tables[oid])} rows, and should have {copy.rows}")
    return tables


def _committed(
    transactions: TransactionReader, found: Mapping[int, list[RowChange]]
) -> Iterator[tuple[int, RowChange]]:
    """Yield the changes that were committed, in the order of their commits, each with its top-level xid."""
    spans = transactions.spans()
    for place in np.lexsort((np.array(spans.first_seq), np.array(spans.commit_lsn))).tolist():
        aborted = spans.aborted.get(place, frozenset())
        for seq in range(spans.first_seq[place], spans.last_seq[place] + 1):
            for change in found.get(seq, ()):
                if change.xid not in aborted:
                    yield spans.xid[place], change


def _apply(rows: list[Row], change: RowChange) -> None:
    if change.op == "truncate":
        rows.clear()
        return
    stored = None if change.op == "insert" else _taken(rows, change)
    if change.new is not None:
        kept = {name: (stored or {}).get(name) for name in change.unchanged}
        rows.append(kept | change.new)


def _taken(rows: list[Row], change: RowChange) -> Row:
    """Take the row out that a change is of."""
    key = change.old or _key(change)
    for place, row in enumerate(rows):
        if all(row.get(name) == value for name, value in key.items()):
            return rows.pop(place)
    raise ChangeLogError(f"{change.op} of a row of {change.relation.name} that there is not: {key!r:.200}")


def _key(change: RowChange) -> Row:
    assert change.relation.replica_identity != RelationReplicaIdentity.FULL and change.new is not None
    keys = [column.name for column in change.relation.columns if column.flags & RelationColumnFlags.KEY]
    return {name: change.new[name] for name in keys}
