"""What a change log says was committed, read from its entries one after the other."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pgoutput_construct.changelog import ChangeLog, LogEntry
from pgoutput_construct.stream.rows import RowReader
from pgoutput_construct.stream.state import ControlMessage
from pgoutput_construct.stream.transactions import Spans, TransactionReader
from pgoutput_construct.wire import Commit, CommitPrepared, Message, StreamCommit, parse
from pgoutput_construct.wire.protocol import MessageFlags
from tools.faults.changes import Change, shown
from tools.faults.steps import NOTE_PREFIX

__all__ = ["Contents", "Transaction", "read_contents", "read_log"]


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
    """All that a log shows."""

    transactions: list[Transaction]
    """By commit LSN."""
    commits: list[int]
    """The commit LSNs in the order in which their messages stand in the log."""
    notes: Counter[str]
    """The messages that belong to no transaction, each as often as it is there."""
    entries: int

    @property
    def changes(self) -> int:
        """How many changes the transactions have."""
        return sum(len(transaction.changes) for transaction in self.transactions)


def read_log(log: ChangeLog) -> Contents:
    """Read a log; raises PgoutputError for one that is damaged, or makes no sense."""
    return read_contents(log.entries(), {segment.name: segment.options.layout() for segment in log.segments})


def read_contents(entries: Iterable[LogEntry], layouts: Mapping[str, dict[str, Any]]) -> Contents:
    """Read entries in order; ``layouts`` say by segment how payloads are laid out (keywords of parse)."""
    transactions, reader = TransactionReader(), RowReader()
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
    return Contents(_committed(transactions.spans(), found), commits, notes, count)


def _changes(reader: RowReader, message: Any) -> Iterator[tuple[int | None, Change]]:
    for row in reader.read(message):
        yield row.xid, Change(row.op, row.relation.name, shown(row.old), shown(row.new), row.unchanged)
    if isinstance(message, Message) and message.flags & MessageFlags.TRANSACTIONAL:
        yield message.xid, Change("message", "", None, {"mark": message.content.decode()})


def _committed(spans: Spans, found: dict[int, list[tuple[int | None, Change]]]) -> list[Transaction]:
    """Put the transactions together; the same one twice comes out twice."""
    transactions: list[Transaction] = []
    of_stream: dict[int, Transaction] = {}
    for index, (first, last, xid) in enumerate(zip(spans.first_seq, spans.last_seq, spans.xid, strict=True)):
        if spans.position[index] == 0:
            of_stream[xid] = Transaction(xid, spans.commit_lsn[index], spans.commit_time[index])
            transactions.append(of_stream[xid])
        aborted = spans.aborted.get(index, frozenset())
        rows = (row for seq in range(first, last + 1) for row in found[seq])
        of_stream[xid].changes.extend(change for subxid, change in rows if subxid not in aborted)
    return sorted(transactions, key=lambda transaction: transaction.commit_lsn)
