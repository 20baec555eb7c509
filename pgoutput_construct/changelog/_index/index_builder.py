"""Builds the index of each segment from its blocks and events; carries what is open and in force to the next one."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pgoutput_construct.changelog._index.row_counts import copied_rows, count_copied, count_rows, settled, spans_of
from pgoutput_construct.changelog._segment.block import Block, Flags, Numbers, header_role
from pgoutput_construct.changelog._segment.events import BEGUN_ANEW, CONNECTED, LogEvent
from pgoutput_construct.changelog._segment.segment_descriptions import Descriptions, Sent
from pgoutput_construct.changelog._segment.segment_index import (
    COLUMNS,
    MOST_FAULTS,
    SegmentIndex,
    first_faults,
    struct_array,
)
from pgoutput_construct.changelog._segment.segment_schema import Part
from pgoutput_construct.columnar.batch_arrays import look_up, tag_table
from pgoutput_construct.columnar.descriptions import OUTSIDE, copy_scope
from pgoutput_construct.columnar.index import IS_ROW
from pgoutput_construct.errors import EngineError, PgoutputError
from pgoutput_construct.stream.bounds import PLAIN_BEGIN, PLAIN_COMMIT
from pgoutput_construct.stream.rows import unread_problem
from pgoutput_construct.stream.state import ControlMessage
from pgoutput_construct.stream.transaction_reader import (
    COMMITTED,
    EndedTransaction,
    LoggedTransaction,
    TransactionReader,
)
from pgoutput_construct.wire.protocol import BEGINS, DESCRIPTIONS, ENDS, UNREAD

__all__ = ["IndexBuilder"]


_DESCRIBES: Final = tag_table(DESCRIPTIONS)

SentBy = Callable[[Iterable[int]], Iterable[Sent]]


class IndexBuilder:
    """Takes the blocks and events of a log in order and returns the index of each segment.

    It holds the transactions without an outcome, the descriptions in force, and the counts of the current segment.
    """

    def __init__(self, last: SegmentIndex | None = None, sent_by: SentBy | None = None) -> None:
        """Begin a log, or resume after a segment.

        Args:
            last: The index of the last segment, or of several up to it; None for a new log.
            sent_by: Returns the entries of ``descriptions`` for some seqs, as far as the log still has them.
        """
        self._next_seq = 0 if last is None else last.last_seq + 1
        opened = [] if last is None else last.open.to_pylist()
        self._began = {row["first_seq"]: (row["since_lsn"], row["since_time"]) for row in opened}
        self._transactions = TransactionReader(map(_unfinished, opened))
        in_force = [] if last is None else last.entries("in_force", slice(len(last) - 1, None)).to_pylist()
        sent = sent_by(row["seq"] for row in in_force) if sent_by is not None and in_force else ()
        self._descriptions = Descriptions(sent, in_force)
        self._begin()

    @property
    def next_seq(self) -> int:
        """The seq of the next row."""
        return self._next_seq

    @property
    def sent(self) -> dict[int, Sent]:
        """The descriptions in force, by seq: another builder can resume with them."""
        return dict(self._descriptions.sent)

    def _begin(self) -> None:
        self._first_seq = self._next_seq
        self._plain: list[pa.Array] = []
        self._rows: list[pa.Table] = []
        self._events: list[dict[str, Any]] = []
        self._faults: dict[str, int] = {}

    def add(self, part: Part) -> None:
        """Add the next block or event."""
        if isinstance(part, LogEvent):
            self._add_event(part)
        elif part.chunk is None:
            self._add_sent(part)
        else:
            self._add_copied(part, part.chunk)

    def _add_sent(self, part: Block) -> None:
        plain = _find_plain(part)
        since, first_seq = self._transactions.since, self._next_seq
        self._read_others(part, plain.others, plain.last)
        self._note_unread(part)
        spans = spans_of(part, first_seq, plain.first, since)
        self._rows.append(count_rows(part, first_seq, spans, self._descriptions.history))
        self._plain.append(plain.entries(first_seq))
        self._next_seq += len(part)

    def finish(self, complete_lsn: int) -> SegmentIndex:
        """Return the index of the rows added since the last call; with them the log is complete to ``complete_lsn``."""
        ended = self._transactions.ended
        whole = [e.transaction.first_seq for e in ended if e.outcome == COMMITTED and _is_plain(e.transaction)]
        committed = np.array([seq for seq in whole if seq >= self._first_seq], np.int64)
        rows = settled(self._rows, committed) if self._rows else struct_array("rows", [])
        used = np.unique(rows.field("description").to_numpy()).tolist()
        lists = {
            "transactions": self._ended(ended),
            "open": struct_array("open", map(self._opened, self._transactions.unfinished())),
            "rows": rows,
            "events": struct_array("events", self._events),
            "faults": first_faults(self._faults),
            "snapshots": copied_rows(rows),
            **self._descriptions.finish(self._first_seq, used),
        }
        index = SegmentIndex.from_lists(self._first_seq, self._next_seq - 1, complete_lsn, **lists)
        ended.clear()
        self._began = {first: self._began[first] for first in (t.first_seq for t in self._transactions.unfinished())}
        self._begin()
        return index

    def _add_event(self, event: LogEvent) -> None:
        if event.name == CONNECTED:
            self._transactions.reconnect()
        elif event.name == BEGUN_ANEW:
            self._transactions.forget()
        numbers = {"seq": self._next_seq, "lsn": int(event.lsn), "time": int(event.time)}
        self._events.append(numbers | {"name": event.name, "payload": event.payload()})
        self._next_seq += 1

    def _add_copied(self, block: Block, chunk: int) -> None:
        if self._transactions.since is not None:
            raise EngineError(f"seq {self._next_seq}: copied rows inside a transaction; please report this")
        scope, first_seq = copy_scope(chunk), self._next_seq
        for row in np.flatnonzero(look_up(block.index.tags, _DESCRIBES)).tolist():
            control = ControlMessage(first_seq + row, scope, block.index.message(row))
            self._descriptions.read(control, block.index.payload(row), block.index.keywords(row))
        self._rows.append(count_copied(block, first_seq, self._descriptions.history))
        self._descriptions.leave(scope)
        self._next_seq += len(block)

    def _read_others(self, block: Block, others: Any, plain_ends: Any) -> None:
        """Read one by one the messages outside of plain transactions, in the order of both."""
        describing = np.flatnonzero(look_up(block.index.tags, _DESCRIBES) & block.index.valid)
        wrong = np.flatnonzero(~block.index.valid & ~IS_ROW[block.index.tags])
        rows = np.sort(np.concatenate([others, describing, wrong]))
        passed = np.searchsorted(plain_ends, np.append(rows, len(block)))
        for row, more in zip(rows.tolist(), (np.diff(passed, prepend=0) > 0).tolist(), strict=False):
            if more:
                self._transactions.interrupt()
            self._read(block, row)
        if len(plain_ends) and (not len(rows) or passed[-1] > passed[-2]):
            self._transactions.interrupt()

    def _read(self, block: Block, row: int) -> None:
        seq, scope = self._next_seq + row, int(block.stream_xid[row])
        try:
            message = block.index.message(row)
            control = ControlMessage(seq, None if scope == OUTSIDE else scope, message)
            self._began[seq] = int(block.wal_start[row]), int(block.send_time[row])
            self._transactions.read(control)
            self._descriptions.read(control, block.index.payload(row), block.index.keywords(row))
        except PgoutputError as error:
            if len(self._faults) < MOST_FAULTS:
                self._faults.setdefault(str(error), seq)

    def _note_unread(self, block: Block) -> None:
        """Note the first message of a segment of each class whose rows nothing reads: readers of tables refuse it."""
        for cls in UNREAD:
            found = np.flatnonzero((block.index.tags == cls.TAG[0]) & block.index.valid)
            if len(found):
                self._faults.setdefault(unread_problem(cls), self._next_seq + int(found[0]))

    def _ended(self, ended: list[EndedTransaction]) -> pa.Array:
        others = struct_array("transactions", map(_entry, ended))
        together = pa.concat_arrays([*self._plain, others])
        if len(others):
            together = together.take(pa.array(np.argsort(together.field("seq").to_numpy(), kind="stable")))
        return together

    def _opened(self, transaction: LoggedTransaction) -> dict[str, Any]:
        first = transaction.first_seq
        since_lsn, since_time = self._began[first]
        numbers = {"first_seq": first, "since_lsn": since_lsn, "since_time": since_time}
        own = {"since": transaction.since, "final_lsn": transaction.final_lsn}
        return _entry_of(transaction) | numbers | own


def _is_plain(transaction: LoggedTransaction) -> bool:
    return not transaction.streamed and transaction.gid is None


def _entry(ended: EndedTransaction) -> dict[str, Any]:
    own = {"seq": ended.seq, "outcome": ended.outcome, "commit_lsn": ended.commit_lsn, "end_lsn": ended.end_lsn}
    return _entry_of(ended.transaction) | own | {"commit_time": ended.time}


def _entry_of(transaction: LoggedTransaction) -> dict[str, Any]:
    spans = [{"first": first, "last": last} for first, last in transaction.spans]
    names = {"xid": transaction.xid, "gid": transaction.gid, "streamed": transaction.streamed}
    return names | {"spans": spans, "aborted": sorted(transaction.aborted)}


def _unfinished(entry: dict[str, Any]) -> LoggedTransaction:
    own = {name: entry[name] for name in ("xid", "gid", "streamed", "since", "final_lsn")}
    spans = [(span["first"], span["last"]) for span in entry["spans"]]
    return LoggedTransaction(**own, spans=spans, aborted=set(entry["aborted"]))


_BOUNDS: Final = tag_table(BEGINS | ENDS)
_INT64_MAX: Final = 2**63 - 1


@dataclass(frozen=True)
class _PlainTransactions:
    """Transactions of a Begin and its Commit with no other begin or end of a transaction between them."""

    first: Numbers
    """The row of each Begin in the block."""
    last: Numbers
    """The row of its Commit."""
    columns: tuple[pa.Array, ...]
    """xid, commit_lsn, end_lsn and commit_time of each."""
    others: Numbers
    """The rows of all other messages that begin or end a transaction."""

    def entries(self, first_seq: int) -> pa.Array:
        """Return them as entries of the index's ``transactions``; ``first_seq`` is the seq of the block's first row."""
        count = len(self.first)
        xid, commit_lsn, end_lsn, commit_time = self.columns
        ends = pa.array(self.last + first_seq)
        spans = pa.StructArray.from_arrays([pa.array(self.first + first_seq), ends], ["first", "last"])
        arrays = {
            "seq": ends,
            "xid": xid,
            "gid": pa.nulls(count, pa.string()),
            "streamed": pa.array(np.zeros(count, np.bool_)),
            "outcome": pa.repeat(COMMITTED, count),
            "commit_lsn": commit_lsn,
            "end_lsn": end_lsn,
            "commit_time": commit_time,
            "spans": pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32)), spans),
            "aborted": pa.ListArray.from_arrays(pa.array(np.zeros(count + 1, np.int32)), pa.array([], pa.int64())),
        }
        kind = COLUMNS["transactions"]
        return pa.StructArray.from_arrays([arrays[field.name] for field in kind], fields=list(kind))


def _find_plain(block: Block) -> _PlainTransactions:
    """Find the transactions whose Commit directly follows their Begin among begins and ends, and has the same LSN."""
    bounds = np.flatnonzero(look_up(block.index.tags, _BOUNDS) & block.index.valid)
    tags = block.index.tags[bounds]
    (begin_rows, begin), (commit_rows, commit) = block.header(PLAIN_BEGIN), block.header(PLAIN_COMMIT)
    opens = np.flatnonzero((tags[:-1] == PLAIN_BEGIN.TAG[0]) & (tags[1:] == PLAIN_COMMIT.TAG[0]))
    begins, commits = np.searchsorted(begin_rows, bounds[opens]), np.searchsorted(commit_rows, bounds[opens + 1])
    # pgoutput_begin_txn() and pgoutput_commit_txn() send the same LSN.
    announced, is_announced = _positions(header_role(PLAIN_BEGIN, "lsn", begin))
    lsns, is_held = _positions(header_role(PLAIN_COMMIT, "lsn", commit))
    _, is_end_held = _positions(header_role(PLAIN_COMMIT, "end_lsn", commit))
    fits = (announced[begins] == lsns[commits]) & is_announced[begins] & is_held[commits] & is_end_held[commits]
    opens, begins, commits = opens[fits], begins[fits], commits[fits]
    is_other = np.ones(len(bounds), np.bool_)
    is_other[opens] = is_other[opens + 1] = False
    own = (header_role(PLAIN_COMMIT, role, commit).take(pa.array(commits)) for role in _OF_COMMIT)
    columns = header_role(PLAIN_BEGIN, "xid", begin).take(pa.array(begins)), *own
    numbers = tuple(column.cast(pa.int64()) for column in columns)
    return _PlainTransactions(begin_rows[begins], commit_rows[commits], numbers, bounds[is_other])


_OF_COMMIT: Final = ("lsn", "end_lsn", "time")


def _positions(column: pa.Array) -> tuple[Numbers, Flags]:
    """Return LSNs, and for each whether it is present and fits into the index (63 bits)."""
    lsns: Numbers = column.fill_null(0).to_numpy()
    return lsns, column.is_valid().to_numpy(zero_copy_only=False) & (lsns <= _INT64_MAX)
