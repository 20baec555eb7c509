"""What a log holds, in its order: transactions, where they were prepared, table copies, messages and events.

Whoever needs to know what comes when reads it here: the publisher, ``pgoutput tail``, replay and prune. No payload is
read for it but those of PREPAREs and of logical messages outside of transactions, where somebody asks for them.
Transactions stay in Arrow tables, each an object only when it is looked at. Spark's tasks and ``verify`` need no order:
they ask whether a row counts, for millions of rows at once, and read the same facts as columns from
``_index/planning.py`` (which transactions committed, and where their rows are), which this module rests on, too.

The order
    A log has the order of its slot: transactions by the end of each, which is the order of their commit records in the
    WAL (``ReorderBufferCommit()`` is called as the commit record is decoded). The seq of whatever ends a transaction
    orders it, so seqs, commit LSNs and end LSNs all increase along the log, but for what a lost history left (below).
    Within a transaction the spans have the order: a streamed one has a span for each of its segments, others have one.
    An event stands at its seq: a capture writes it when it has learned something, which may be after the stream has
    passed the LSN that the event is about. A logical message outside of transactions stands at its seq, too.

Where a table copy stands
    A copy has two positions. At its seq the log says that it is complete: whoever reads the log by seqs has all of its
    rows there, and all commits that it may contain (``_facts/visibility.py``). Whoever applies it one item after the
    other needs the other one: between the last commit that is in the copy and the first one that is not, so that its
    rows, then the changes that follow, are the table. That is before the commit at ``place_lsn``. A commit after it
    that it does contain (``contained``) is not applied to this table; all other changes of that commit are.
    A copy needs a position in the WAL of its own there: a client says what it has by LSNs alone. It gets the snapshot's
    LSN, or the first one after the end of the item before it: the commit record of the item after it is larger than
    that, so there is room. Where more copies stand before the same item than there are LSNs before its end, the last
    ones share a transaction. This position depends on what precedes the copy, and on the snapshot, not on where
    segments begin or on what is appended: it is the same after a compaction, and while the log grows.
    A copy under the snapshot of a new slot may be complete before the stream has come to it: it has its position when
    the log is complete up to its snapshot.

What a copy makes superfluous
    Before its first copy a table has changes of rows that nobody has: an UPDATE finds nothing, and what an INSERT adds
    is in the copy, too. So changes before the position of the first copy are withheld for its table; only for a client
    that was sent some before the copy was complete is the table emptied. Not so where the log holds a table from its
    first row on without a copy, since it was created or emptied while it was captured (``begun_without_copy()``): then
    all changes are sent, and the table is emptied when its copy comes, as for each later copy. A client that retains
    rows which the source has deleted gets all changes, and a copy only where it follows none.

Why a client may have passed the position of a copy
    A copy becomes complete when the stream has passed ``sees_until``, or later, once all rows are in the log. By then a
    client that follows the log has been sent commits after the copy's position, and has confirmed their LSNs, and those
    of keepalives, up to which nothing else ended. A copy at an LSN before these would never be sent; and no LSN after
    them can be the copy's own: the LSN of a keepalive is the end of a segment, which no longer exists after a
    compaction. So the client gets the copy out of order: the table is emptied, then come the rows, then the changes of
    this table after the position are repeated, all in one transaction at the LSN that the client has reached
    (``publisher/_feed/cursor.py``). By that LSN alone nobody knows whether the client has the copy: its slot notes the
    seq of the last copy that it has (``Slot.copied``).

Prepared transactions
    A PREPARE is an item of its own for a slot that has two phases, at the LSN and time of its record; the COMMIT
    PREPARED or ROLLBACK PREPARED is another one. For other slots the transaction is one item, at its COMMIT PREPARED.
    Whether a copy contains it is decided by its commit: a snapshot does not see what is merely prepared. No copy stands
    between a PREPARE and the end of that transaction: applying a copy may TRUNCATE, which waits for the locks that a
    prepared transaction holds. It stands before the PREPARE instead, and the changes of commits between are left out
    for its table where the copy contains them.

Lost histories
    Where the server was restored, or replaced by a standby that was not as far (event BEGUN_ANEW with ``void_after``),
    transactions before that seq which ended after that LSN are void: they are not in the timeline, and neither is a
    copy whose snapshot is after that LSN. Seqs go on, LSNs go back.

Where the log was pruned
    It begins with a later seq, and all that ended before an LSN is gone. A copy that needs a commit before that LSN
    (``TableCopy.since_lsn``) has no position: what is left does not make the table of its rows.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from functools import cached_property
from itertools import takewhile
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._facts.catalog_readings import table_readings
from pgoutput_construct.changelog._facts.completeness import begun_without_copy, present_copies
from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._index.log_index import LogIndex, LogPoint
from pgoutput_construct.changelog._index.planning import (
    LostHistory,
    commit_stats,
    committed_transactions,
    last_commit,
    lost_histories,
    spans_of,
    without_lost_history,
)
from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.changelog._segment.events import COPIED_TABLE, EventRow, LogEvent, event_rows
from pgoutput_construct.changelog._segment.footer import Segment
from pgoutput_construct.changelog._segment.prune_note import read_pruned
from pgoutput_construct.changelog._segment.segment_index import COLUMNS, SegmentIndex
from pgoutput_construct.changelog.decoding_order import DecodingOrder, ended_transaction, transaction_of
from pgoutput_construct.changelog.reader import ChangeLog, parsed_entries
from pgoutput_construct.stream.bounds import having, said
from pgoutput_construct.stream.transaction_reader import (
    ABORTED,
    COMMITTED,
    PREPARED,
    EndedTransaction,
    LoggedTransaction,
    decoded,
)
from pgoutput_construct.wire import Lsn, Timestamp
from pgoutput_construct.wire.messages import Message, PgoutputMessage
from pgoutput_construct.wire.protocol import MessageFlags

__all__ = [
    "NOTHING_ENDED",
    "ItemKind",
    "LogicalMessage",
    "Timeline",
    "TimelineFollower",
    "TimelineItem",
    "first_uncontained",
    "last_ends",
    "lasting_transactions",
    "lsn_before",
    "point_at",
    "seq_until",
]

NOTHING_ENDED: Final = -(2**63)
"""Instead of the last end in a segment (``last_ends``)."""
_INT64_MAX: Final = 2**63 - 1
_CHUNKS: Final = 64
"""Arrow chunks of the transactions, above which they are put together."""
_PREPARES: Final = [cls.TAG[0] for cls in having("prepare", "prepare_streamed")]


class LogicalMessage(NamedTuple):
    """What ``pg_logical_emit_message()`` wrote outside of transactions."""

    seq: int
    """Its seq."""
    message: Message
    """The message, with its LSN."""


TimelineItem: TypeAlias = EndedTransaction | TableCopy | LogicalMessage | LogEvent
"""What a timeline yields; the outcome of an EndedTransaction is COMMITTED, or PREPARED for what is prepared there."""


class ItemKind(Enum):
    """The kinds of items of a timeline."""

    TRANSACTION = auto()
    """Committed transactions."""
    PREPARED = auto()
    """Transactions at the seqs where they were prepared. Segments that have some are read for it."""
    COPY = auto()
    """Complete table copies, at the seqs at which they became so; without it their events are yielded as EVENT."""
    MESSAGE = auto()
    """Logical messages outside of transactions. Each segment is read for it."""
    EVENT = auto()
    """All other events."""


class Timeline:
    """The items of a log, or of a slice of it, by their seqs; of one segment at a time."""

    def __init__(
        self,
        log: ChangeLog,
        kinds: Collection[ItemKind] = (ItemKind.TRANSACTION, ItemKind.COPY, ItemKind.EVENT),
        *,
        after: int = -1,
        until: int = _INT64_MAX,
        first_lsn: int = 0,
        last_lsn: int = _INT64_MAX,
        first_time: int = -_INT64_MAX,
        last_time: int = _INT64_MAX,
        relation_oids: Collection[int] | None = None,
        lost: Iterable[LostHistory] | None = None,
        read: Callable[[Segment], pa.Table] | None = None,
    ) -> None:
        """Choose a slice.

        Args:
            log: The log.
            kinds: What is yielded; by default what the index alone says.
            after: Items after this seq.
            until: Items up to this seq.
            first_lsn: Transactions that committed, or were prepared, at this LSN or later; copies, messages and events
                of such LSNs.
            last_lsn: The same, up to this LSN.
            first_time: Transactions, copies and events of this time or later: microseconds since 2000-01-01 UTC.
            last_time: The same, up to this time. A message has no time.
            relation_oids: Copies of these tables, and transactions that may have changes of one: the index counts rows
                by segment, and of short transactions together. None: all.
            lost: The lost histories, of which transactions are left out; None: those of the log. A reader that shows
                what a log has rather than what counts passes none.
            read: Reads a segment; None: ``ChangeLog.table``.
        """
        self._log = log
        self._kinds = frozenset(kinds)
        self._seqs = after, until
        self._lsns = first_lsn, last_lsn
        self._times = first_time, last_time
        self._oids = None if relation_oids is None else frozenset(relation_oids)
        self._lost = lost_histories(log.index) if lost is None else list(lost)
        self._read = read or log.table

    def __iter__(self) -> Iterator[TimelineItem]:
        after, until = self._seqs
        firsts, lasts, complete = (
            self._log.index.table[name].to_numpy() for name in ("first_seq", "last_seq", "complete_lsn")
        )
        # What the stream sent up to the end of a segment has no LSN after that up to which the log is complete there.
        is_reached = complete >= self._lsns[0]
        chosen = is_reached.copy()
        chosen[list(self._events)] = True
        for segment_index in np.flatnonzero(chosen & (firsts <= until) & (lasts > after)).tolist():
            found = [*self._events.get(segment_index, ())]
            if is_reached[segment_index]:
                found += self._sent(segment_index)
            yield from (item for seq, item in sorted(found, key=itemgetter(0)) if after < seq <= until)

    def _sent(self, segment_index: int) -> Iterator[tuple[int, TimelineItem]]:
        """Yield what the stream sent of the slice in a segment, with the seqs, in any order."""
        if ItemKind.TRANSACTION in self._kinds:
            yield from ((each.seq, each) for each in self._transactions(slice(segment_index, segment_index + 1)))
        if ItemKind.PREPARED in self._kinds and segment_index in self._segments_of_prepares:
            yield from ((each.seq, each) for each in self._prepared(segment_index))
        if ItemKind.MESSAGE in self._kinds and self._oids is None:
            yield from ((each.seq, each) for each in self._messages(segment_index))

    def _transactions(self, of: slice) -> Iterator[EndedTransaction]:
        rows = committed_transactions(self._log.index.entries("transactions", of), self._lost)
        lsns, times = rows["commit_lsn"].to_numpy(), rows["commit_time"].to_numpy()
        chosen = _within(lsns, self._lsns) & _within(times, self._times)
        for ended in map(ended_transaction, rows.filter(pa.array(chosen)).to_pylist()):
            if self._may_have(ended):
                yield ended

    def _prepared(self, segment_index: int) -> Iterator[EndedTransaction]:
        for seq, prepare in _prepares_in(self._log, segment_index, self._read):
            known = self._with_gids.get((said(prepare, "xid"), said(prepare, "gid")))
            if known is not None:
                ended = _prepared(seq, prepare, known)
                is_chosen = self._lsns[0] <= (ended.commit_lsn or 0) <= self._lsns[1]
                is_chosen = is_chosen and self._times[0] <= (ended.time or 0) <= self._times[1]
                if is_chosen and not _is_void(ended, self._lost) and self._may_have(ended):
                    yield ended

    def _messages(self, segment_index: int) -> Iterator[LogicalMessage]:
        for seq, message in _messages_in(self._log, segment_index, [Message.TAG[0]], self._read):
            is_outside = isinstance(message, Message) and not message.flags & MessageFlags.TRANSACTIONAL
            if isinstance(message, Message) and is_outside and self._lsns[0] <= message.lsn <= self._lsns[1]:
                yield LogicalMessage(seq, message)

    @cached_property
    def _events(self) -> Mapping[int, Sequence[tuple[int, TimelineItem]]]:
        """The events and copies of the slice with their seqs, by the index of the segment."""
        found = defaultdict[int, list[tuple[int, TimelineItem]]](list)
        for row in event_rows(self._log.index) if {ItemKind.COPY, ItemKind.EVENT} & self._kinds else ():
            is_within = self._lsns[0] <= row.lsn <= self._lsns[1] and self._times[0] <= row.time <= self._times[1]
            item = self._event(row) if is_within else None
            if item is not None:
                found[self._log.segments.find(row.seq)].append((row.seq, item))
        return found

    def _event(self, row: EventRow) -> TimelineItem | None:
        if row.name == COPIED_TABLE and ItemKind.COPY in self._kinds:
            copy = self._copies.get(row.seq)
            return copy if copy is not None and (self._oids is None or copy.relation_oid in self._oids) else None
        return row.read() if ItemKind.EVENT in self._kinds and self._oids is None else None

    @cached_property
    def _copies(self) -> Mapping[int, TableCopy]:
        return {copy.seq: copy for copy in present_copies(self._log.index) if not _is_void(copy, self._lost)}

    @cached_property
    def _segments_of_prepares(self) -> frozenset[int]:
        return frozenset(_segments_with_gids(self._log.index))

    @cached_property
    def _with_gids(self) -> Mapping[tuple[int, str], LoggedTransaction]:
        """Transactions that are, or were, prepared: ``LogIndex.marked`` has all that ended."""
        rows = [*self._log.index.marked.to_pylist(), *self._log.index.open.to_pylist()]
        return {(row["xid"], row["gid"]): transaction_of(row) for row in rows if row["gid"] is not None}

    def _may_have(self, ended: EndedTransaction) -> bool:
        """Return whether a transaction may have changes of the tables: whether runs of their rows are in its spans."""
        if self._oids is None:
            return True
        firsts, lasts = self._runs
        spans = ended.transaction.spans
        return any(lasts[np.searchsorted(firsts, last, "right")] >= first for first, last in spans)

    @cached_property
    def _runs(self) -> tuple[Numbers, Numbers]:
        """The first seqs of the runs of the tables' rows, and the greatest last seq of none, one, two ... of them."""
        rows = self._log.index.entries("rows")
        rows = rows.filter(pa.array(np.isin(rows["oid"].to_numpy(), sorted(self._oids or ())))).sort_by("first_seq")
        lasts = np.maximum.accumulate(np.append(-1, rows["last_seq"].to_numpy()))
        return rows["first_seq"].to_numpy(), lasts


class TimelineFollower:
    """The items of a log that grows: each is taken in once."""

    def __init__(self, point: LogPoint | None = None) -> None:
        """Begin with nothing.

        Args:
            point: Take in what ended by then, and copies that were complete or made by then; None: all.
        """
        self._point = point or LogPoint(_INT64_MAX)
        self._generation = 0
        self.copies: list[TableCopy] = []
        """The copies that have a position."""
        self.begins = Lsn(0)
        """What ended up to this LSN was pruned."""
        self._clear([], 0)

    def _clear(self, lost: list[LostHistory], first_seq: int) -> None:
        self._lost, self._first_seq = lost, first_seq
        self._rows = pa.Table.from_batches([], pa.schema(list(COLUMNS["transactions"])))
        self._next_seq = 0
        self._prepares: dict[tuple[int, str], tuple[int, PgoutputMessage]] = {}
        """PREPAREs with their seqs, by xid and gid."""
        self._unread: list[int] = []
        """The first seqs of segments that may have PREPAREs."""
        self._open: list[dict[str, Any]] = []

    def update(self, log: ChangeLog) -> None:
        """Take in what is new."""
        self._log = log
        lost, first_seq = lost_histories(log.index), log.segments[0].first_seq
        is_other = (lost, first_seq) != (self._lost, self._first_seq)
        if is_other:
            self._clear(lost, first_seq)
        first = max(log.segments.find(self._next_seq), 0)
        index = log.index.slice(first)
        self._rows = pa.concat_tables([self._rows, self._new(index)])
        if self._rows["seq"].num_chunks > _CHUNKS:
            self._rows = self._rows.combine_chunks()
        self._unread += [log.segments[first + offset].first_seq for offset in _segments_with_gids(index)]
        self._open = [row for row in log.index.open.to_pylist() if row["gid"] is not None and row["since"] is None]
        self._next_seq = log.segments[-1].last_seq + 1
        self.begins = read_pruned(log.store).lsn
        copies = self._with_positions(present_copies(log.index), log.complete_lsn)
        self._generation += is_other or copies != self.copies
        self.copies = copies

    def _new(self, index: LogIndex) -> pa.Table:
        rows = without_lost_history(index.transactions, self._lost)
        is_new = pc.and_(pc.greater_equal(rows["seq"], self._next_seq), pc.less_equal(rows["seq"], self._point.seq))
        return rows.filter(pc.and_(is_new, pc.not_equal(rows["outcome"], ABORTED)))

    def _with_positions(self, copies: Iterable[TableCopy], complete_lsn: int) -> list[TableCopy]:
        """Return the copies whose positions are known, not of what was pruned, or lost."""
        placed = takewhile(lambda copy: copy.snapshot.lsn <= complete_lsn, copies)
        last_seq, lsn, end = self._point
        seqs = range(_INT64_MAX if end is None else end + 1)
        known = (
            copy for copy in placed if copy.seq <= last_seq or (copy.snapshot.lsn <= (lsn or 0) and copy.seq in seqs)
        )
        return [copy for copy in known if copy.since_lsn >= self.begins and not _is_void(copy, self._lost)]

    def order(
        self,
        two_phase_at: int | None = None,
        superfluous: Collection[int] = (),
        begun: Mapping[int, int] = MappingProxyType({}),
    ) -> DecodingOrder:
        """Return what a slot sends.

        Args:
            two_phase_at: What is prepared after this LSN is sent as prepared; None: nothing is.
            superfluous: The seqs of copies that are not sent; see ``DecodingOrder``.
            begun: The seqs from which on the log holds tables without a copy, by OID.
        """
        if two_phase_at is None:
            rows, others = self._rows.filter(pc.equal(self._rows["outcome"], COMMITTED)), list[EndedTransaction]()
        else:
            is_plain = pc.is_null(self._rows["gid"])
            ended = self._rows.filter(pc.invert(is_plain)).to_pylist()
            rows, others = self._rows.filter(is_plain), [*self._two_phase([*ended, *self._open], two_phase_at)]
        order = DecodingOrder(rows, others, self.copies, superfluous, begun)
        order.generation, order.begins, order.first_seq = self._generation, self.begins, self._first_seq
        return order

    def _two_phase(self, rows: Iterable[Mapping[str, Any]], two_phase_at: int) -> Iterator[EndedTransaction]:
        """Yield the items of transactions that were, or are, prepared."""
        for seq in self._unread:
            for at, message in _prepares_in(self._log, self._log.segments.find(seq)):
                self._prepares[said(message, "xid"), said(message, "gid")] = at, message
        self._unread = []
        for row in rows:
            found = self._prepares.get((row["xid"], row["gid"] or ""))
            prepare = None if found is None else _prepared(*found, transaction_of(row))
            if prepare is not None:
                yield from decoded(prepare, None, two_phase_at)
            if "outcome" in row:
                yield from decoded(ended_transaction(row), prepare, two_phase_at)


def _prepares_in(
    log: ChangeLog, segment_index: int, read: Callable[[Segment], pa.Table] | None = None
) -> Iterator[tuple[int, PgoutputMessage]]:
    """Yield the PREPAREs of a segment, given its index, with their seqs; ``read`` reads it."""
    return _messages_in(log, segment_index, _PREPARES, read or log.table)


def _messages_in(
    log: ChangeLog, segment_index: int, tags: Sequence[int], read: Callable[[Segment], pa.Table]
) -> Iterator[tuple[int, PgoutputMessage]]:
    """Yield the messages of a segment that have one of some tags, with their seqs; raise ChangeLogError for damage."""
    segment = log.segments[segment_index]
    table = read(segment)
    chosen = table.filter(pc.is_in(table["tag"], pa.array(tags, table["tag"].type)))
    yield from ((entry.seq, message) for entry, message in parsed_entries(chosen, segment))


def last_ends(index: LogIndex, by: str) -> Numbers:
    """Return of each segment the last LSN, or time, at which a transaction ended in it.

    Args:
        index: The log's.
        by: "end_lsn", among which the LSN counts up to which the log is complete at the end of the segment; or
            "commit_time": microseconds since 2000-01-01 UTC.

    Returns:
        An entry a segment, NOTHING_ENDED where nothing did.
    """
    latest = np.full(len(index), NOTHING_ENDED, np.int64)
    for first, part in index.parts():
        transactions, segment_indexes = part.located("transactions")
        # Without the option streaming=parallel an abort does not say its LSN, nor its time.
        np.maximum.at(latest, first + segment_indexes, transactions[by].fill_null(NOTHING_ENDED).to_numpy())
    return np.maximum(latest, index.table["complete_lsn"].to_numpy()) if by == "end_lsn" else latest


def lasting_transactions(index: LogIndex) -> tuple[Numbers, Numbers, pa.ChunkedArray]:
    """Return the transactions that may lie in several segments: others are not needed to know what must stay together.

    Returns:
        The first seq of each, the last one (2**63 - 1 for a transaction without an outcome), and the top-level xids.
    """
    ended, opened = index.marked, index.open
    ended = ended.filter(pc.greater(pc.list_value_length(ended["spans"]), 0))
    begins = pc.struct_field(pc.list_element(ended["spans"], 0), "first").to_numpy()
    first = np.concatenate([begins, opened["first_seq"].to_numpy()])
    last = np.concatenate([ended["seq"].to_numpy(), np.full(len(opened), _INT64_MAX)])
    return first, last, pa.chunked_array([*ended["xid"].chunks, *opened["xid"].chunks], pa.int64())


def first_uncontained(index: LogIndex, copies: Iterable[TableCopy]) -> dict[int, int]:
    """Return by the seqs of copies where what they do not contain begins: a transaction, or a segment that may have it.

    It is 2**63 - 1 where nothing follows a copy.
    """
    complete, starts = (index.table[name].to_numpy() for name in ("complete_lsn", "first_seq"))
    keys = {copy.seq: (copy.visibility, copy.since_lsn) for copy in copies}
    found = {key: int(starts[complete > int(key[1])].min(initial=_INT64_MAX)) for key in keys.values()}
    lost = lost_histories(index)
    for _, part in index.parts() if found else ():
        spans = spans_of(committed_transactions(part.transactions, lost))
        lsns, xids, seqs = (np.asarray(column) for column in (spans.commit_lsn, spans.xid, spans.first_seq))
        for key, seq in found.items():
            found[key] = min(seq, int(seqs[key[0].adds(lsns, xids)].min(initial=_INT64_MAX)))
    return {seq: found[key] for seq, key in keys.items()}


def lsn_before(index: LogIndex, time: Timestamp) -> Lsn | None:
    """Return the last LSN before that of the first commit that is later than a time; None where none is.

    Commits may have another order than that of their clocks: of those that are later, the least LSN counts.
    """
    lost = lost_histories(index)
    commits = commit_stats(index, lost)
    found = list[int]()
    for segment_index in np.flatnonzero((commits["commits"] > 0) & (commits["most_time"] > int(time))).tolist():
        if found and int(commits["least_lsn"][segment_index]) >= min(found):
            continue
        later = committed_transactions(index.one(segment_index).transactions, lost)
        found.append(pc.min(later.filter(pc.greater(later["commit_time"], int(time)))["commit_lsn"]).as_py())
    return Lsn(min(found) - 1) if found else None


def seq_until(index: LogIndex, until: Lsn | Timestamp) -> int:
    """Return the last seq up to which nothing ends that committed after an LSN, or after a time.

    As of that seq a log has the transactions that committed up to the LSN, and copies that became complete before the
    next one. Of a time it is the last commit before the first one that is later. It is lower than the first seq of the
    log if that begins later.
    """
    lsn = lsn_before(index, until) if isinstance(until, Timestamp) else until
    if lsn is None:
        return index.last_seq
    lost = lost_histories(index)
    latest = commit_stats(index, lost)["most_lsn"]
    for segment_index in np.flatnonzero(latest > int(lsn)).tolist():
        later = committed_transactions(index.one(segment_index).transactions, lost)
        return int(pc.min(later.filter(pc.greater(later["commit_lsn"], int(lsn)))["seq"]).as_py()) - 1
    return index.last_seq


def point_at(index: LogIndex, at: Lsn | Timestamp) -> LogPoint:
    """Return the point of a log at an LSN or time: everything that committed by then, see ``seq_until``.

    A copy that was made later, before the next commit, has no other rows, and counts: unless the log has its table
    without it, and the table was altered meanwhile. What had been read of the catalog by a time stands in the log since
    then, at the latest.
    """
    seq = seq_until(index, at)
    last = last_commit(index, seq)
    after, lsn = (-1, 0) if last is None else (last["seq"], last["commit_lsn"])
    if isinstance(at, Timestamp):
        lost = [each for each in lost_histories(index) if each.before_seq <= seq]
        events = without_lost_history(index.entries("events"), lost, "lsn")
        is_by_then = pc.and_(pc.less_equal(events["time"], int(at)), pc.less_equal(events["seq"], seq))
        at = Lsn(max(pc.max(events.filter(is_by_then)["lsn"]).as_py() or 0, lsn))
    copies = [copy for copy in present_copies(index) if copy.seq <= seq]
    later = [copy for copy in copies if copy.seq > after and copy.snapshot.lsn > at]
    begun = begun_without_copy(index) if later else {}
    readings = table_readings(index) if later else {}
    for copy in later:
        oid, lsns = copy.relation_oid, range(at + 1, copy.snapshot.lsn + 1)
        is_known = any(each.seq < after for each in copies if each.relation_oid == oid)
        is_known |= oid in begun and begun[oid][0] < after
        if is_known and any(each.snapshot.lsn in lsns for each in readings.get(oid, ())):
            return LogPoint(copy.seq - 1, at)
    return LogPoint(seq, at)


def _within(values: Numbers, bounds: tuple[int, int]) -> Flags:
    found: Flags = (values >= bounds[0]) & (values <= bounds[1])
    return found


def _is_void(item: TableCopy | EndedTransaction, lost: Iterable[LostHistory]) -> bool:
    """Return whether a copy, or a transaction, is of a history of the server that was lost."""
    lsn = item.snapshot.lsn if isinstance(item, TableCopy) else item.end_lsn or 0
    return any(each.voids(item.seq, lsn) for each in lost)


def _segments_with_gids(index: SegmentIndex) -> list[int]:
    """Return the indexes of the segments in which a transaction may be prepared."""
    found = set[int]()
    for name in ("transactions", "open"):
        rows, segment_indexes = index.located(name)
        found.update(np.asarray(segment_indexes)[rows["gid"].is_valid().to_numpy()].tolist())
    return sorted(found)


def _prepared(seq: int, prepare: PgoutputMessage, transaction: LoggedTransaction) -> EndedTransaction:
    numbers = (int(said(prepare, role)) for role in ("lsn", "end_lsn", "time"))
    return EndedTransaction(seq, PREPARED, transaction, *numbers)
