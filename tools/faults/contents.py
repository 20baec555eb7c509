"""The committed contents of a change log, read entry by entry."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pgoutput_construct.changelog import ChangeLog, LogEntry
from pgoutput_construct.stream.rows import RowReader
from pgoutput_construct.stream.state import ControlMessage
from pgoutput_construct.stream.transaction_reader import EndedTransaction, Spans, TransactionReader
from pgoutput_construct.wire import Commit, CommitPrepared, Message, PgoutputMessage, StreamCommit, parse
from pgoutput_construct.wire.protocol import MessageFlags
from tools.faults.changes import Change, shown
from tools.faults.committed_spans import spans_of_reader
from tools.faults.steps import NOTE_PREFIX

__all__ = ["Contents", "Transaction", "read_contents", "read_log", "together"]


@dataclass(frozen=True)
class Transaction:
    """A transaction that the log shows as committed."""

    xid: int
    commit_lsn: int
    commit_time: int
    """Microseconds since 2000-01-01 UTC."""
    changes: list[Change] = field(default_factory=list)


@dataclass(frozen=True)
class Contents:
    """The committed contents of a log."""

    transactions: list[Transaction]
    """By commit LSN."""
    commits: list[int]
    """The commit LSNs in the order of their messages in the log."""
    notes: Counter[str]
    """The non-transactional messages, each with its count."""
    entries: int
    ended: Sequence[EndedTransaction] = ()
    """The transactions as they ended, in the order of the log."""

    @property
    def changes(self) -> int:
        """How many changes the transactions have."""
        return sum(len(transaction.changes) for transaction in self.transactions)


def read_log(log: ChangeLog) -> Contents:
    """Read a log; raises PgoutputError if it is damaged or inconsistent."""
    layouts = {segment.name: segment.options.layout() for segment in log.segments}
    return read_contents(log.entries(), layouts, _described_before(log))


def read_contents(
    entries: Iterable[LogEntry], layouts: Mapping[str, dict[str, Any]], described: Iterable[PgoutputMessage] = ()
) -> Contents:
    """Read entries in order; ``layouts`` say by segment how payloads are laid out (keywords of parse).

    ``described``: the Relations and Types that were sent before the first entry, where older segments were pruned.
    """
    transactions, reader = TransactionReader(), RowReader()
    for message in described:
        reader.relations.update(message)
    found: dict[int, list[tuple[int | None, Change]]] = {}
    commits: list[int] = []
    notes: Counter[str] = Counter()
    count = 0
    for entry in entries:
        message = parse(entry.payload, **{**layouts[entry.segment], **entry.states})
        transactions.read(ControlMessage(entry.seq, entry.stream_xid, message))
        found[entry.seq] = [*_changes(reader, message)]
        match message:
            case Commit() | StreamCommit() | CommitPrepared():
                commits.append(int(message.commit_lsn))
            case Message(prefix=prefix) if prefix == NOTE_PREFIX:
                notes[message.content.decode()] += 1
        count += 1
    committed = _committed(spans_of_reader(transactions), found)
    return Contents(committed, commits, notes, count, tuple(transactions.ended))


def _described_before(log: ChangeLog) -> Iterator[PgoutputMessage]:
    """Return the descriptions outside of streams that segments inherit from pruned ones, in order."""
    first = log.segments[0].first_seq
    inherited = {row["seq"]: row for row in log.index.entries("inherited").to_pylist() if row["seq"] < first}
    for _, row in sorted(inherited.items()):
        if row["stream_xid"] is None:
            yield parse(row["payload"], **json.loads(row["keywords"]))


def together(earlier: Contents | None, log: Contents, pruned: int) -> Contents:
    """Join the contents from before a prune with the present ones; what is before LSN ``pruned`` may be missing now."""
    if earlier is None:
        return log
    here = {(transaction.xid, transaction.commit_lsn) for transaction in log.transactions}
    gone = [t for t in earlier.transactions if (t.xid, t.commit_lsn) not in here and t.commit_lsn < pruned]
    commits = [lsn for lsn in earlier.commits if lsn < min(log.commits, default=pruned)]
    transactions = sorted([*gone, *log.transactions], key=lambda transaction: transaction.commit_lsn)
    return Contents(transactions, [*commits, *log.commits], earlier.notes | log.notes, log.entries, log.ended)


def _changes(reader: RowReader, message: Any) -> Iterator[tuple[int | None, Change]]:
    for row in reader.read(message):
        yield row.xid, Change(row.op, row.relation.name, shown(row.old), shown(row.new), row.unchanged)
    if isinstance(message, Message) and message.flags & MessageFlags.TRANSACTIONAL:
        yield message.xid, Change("message", "", None, {"mark": message.content.decode()})


def _committed(spans: Spans, found: dict[int, list[tuple[int | None, Change]]]) -> list[Transaction]:
    """Assemble the transactions; one that occurs twice is returned twice."""
    transactions: list[Transaction] = []
    of_stream: dict[int, Transaction] = {}
    for index, (first, last, xid) in enumerate(zip(spans.first_seq, spans.last_seq, spans.xid, strict=True)):
        if spans.position[index] == 0:
            of_stream[xid] = Transaction(xid, spans.commit_lsn[index], spans.commit_time[index])
            transactions.append(of_stream[xid])
        aborted = spans.aborted.get(index, frozenset())
        rows = (row for seq in range(first, last + 1) for row in found.get(seq, ()))  # there are events in between, too
        of_stream[xid].changes.extend(change for subxid, change in rows if subxid not in aborted)
    return sorted(transactions, key=lambda transaction: transaction.commit_lsn)
