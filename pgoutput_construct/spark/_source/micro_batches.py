"""What a micro-batch contains: from the offset of a query to the next one, in whole transactions and copies.

A micro-batch is a range of seqs, and has what *ended* in it: transactions whose commit, and table copies whose
completion, the log has there. So no transaction and no copy is split, each is in exactly one micro-batch, and they come
in the order of their commits. A transaction that began before the range is in it with all of its rows; one that ends
later is in a later one (``first_needed_seq`` is where its rows begin, which prune must retain). Limits on transactions
and bytes move the end of a range to such a seq, and always let one transaction or copy through.

Offsets are seqs, with what a person wants to know of them; a checkpoint also identifies its log.

Where a micro-batch begins is Spark's to say, and PySpark 4.1 does not: ``QueryOffset`` knows it from the calls.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from pgoutput_construct.changelog._facts.copies import copies_of
from pgoutput_construct.changelog._index.log_index import LogIndex
from pgoutput_construct.changelog._index.planning import committed_transactions, earliest_after, last_commit
from pgoutput_construct.changelog._index.segment_sizes import Sizes
from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.changelog.reader import ChangeLog, LogIdentity, identity_of
from pgoutput_construct.changelog.registry import readers, register
from pgoutput_construct.columnar import unify
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.spark._source.source_options import SourceOptions
from pgoutput_construct.wire import Lsn, Timestamp

_NOTHING: Final = -1


@dataclass(frozen=True)
class Offset:
    """Everything that ended by a seq of the log has been read."""

    seq: int
    """Only this counts; the rest is informative."""
    lsn: int | None = None
    """The LSN of the last commit by then."""
    time: int | None = None
    """Its timestamp: microseconds since 2000-01-01 UTC."""
    final: int | None = None
    """No commit that the log has after the seq is earlier than this time.

    It is the time of the last commit, or an earlier one. A commit that the log does not have yet can still be earlier:
    a server takes the timestamp before it writes the commit record, and its clock may be set back.
    """

    def to_json(self) -> dict[str, Any]:
        """Return what Spark stores in a checkpoint, and shows in the progress of a query."""
        if self.lsn is None or self.time is None:
            return {"seq": self.seq}
        final = self.time if self.final is None else self.final
        times = {"commit_time": str(Timestamp(self.time)), "finalizedUntil": str(Timestamp(final))}
        return {"seq": self.seq, "commit_lsn": str(Lsn(self.lsn)), **times}


def log_field(log: ChangeLog) -> dict[str, Any]:
    """Return the part of an offset that identifies its log."""
    return {"log": identity_of(log).to_json()}


def check_same_log(log: ChangeLog, *offsets: Mapping[str, Any]) -> None:
    """Raise ChangeLogError where offsets are of another log."""
    identity = identity_of(log)
    for offset in offsets:
        try:
            different = LogIdentity.from_json(offset.get("log", {})).differences(identity)
        except ValueError as error:
            different = [f"it does not say which: {error}"]
        if different:
            raise ChangeLogError(
                f"{log.store}: the checkpoint of the query is of another log ({'; '.join(different)}): give that log, "
                "or begin the query from scratch, with another checkpointLocation and an empty table to write into"
            )


def offset_at(index: LogIndex, seq: int) -> Offset:
    """Return the offset of a seq."""
    last = last_commit(index, seq)
    if last is None:
        return Offset(seq)
    return Offset(seq, last["commit_lsn"], last["commit_time"], _final(index, seq, last["commit_time"]))


def _final(index: LogIndex, seq: int, time: int) -> int:
    """Return a time, or that of the earliest later commit if it is earlier: commits are not ordered by their clocks."""
    earliest = earliest_after(index, seq)
    return time if earliest is None else min(time, earliest)


def latest_seq(index: LogIndex, after: int = _NOTHING) -> int:
    """Return the seq of the last commit or event; ``after`` where there is no later one."""
    for end in range(len(index), 0, -1):
        part = index.one(end - 1)
        seqs = [pc.max(part.entries(name)["seq"]).as_py() for name in ("transactions", "events")]
        last = max((seq for seq in seqs if seq is not None), default=_NOTHING)
        if last > _NOTHING or part.first_seq <= after:
            return max(last, after)
    return after


@dataclass(frozen=True)
class Limits:
    """The limits of a micro-batch; None for no limit."""

    transactions: int | None = None
    bytes: int | None = None
    """Bytes of payloads, estimated from the sizes of segments; a single transaction or copy may have more."""

    def __bool__(self) -> bool:
        return self.transactions is not None or self.bytes is not None


def next_seq(log: ChangeLog, after: int, limits: Limits) -> int:
    """Return the last seq of the micro-batch that begins after one; ``after`` itself where nothing is new."""
    first = max(log.segments.find(after + 1), 0)
    index = log.index.slice(first)
    if not limits:
        return latest_seq(index, after)
    last, passed = None, np.zeros(2, np.int64)
    sizes = None if limits.bytes is None else Sizes.from_segments(log.segments[first:])
    for seqs, steps in _steps(index, after, sizes):
        totals = passed + np.cumsum(steps, 0)
        if (end := _end(totals, limits)) < len(seqs):
            return last if not end and last is not None else int(seqs[max(end, 1) - 1])
        last, passed = int(seqs[-1]), totals[-1]
    return after if last is None else last


def _end(totals: Numbers, limits: Limits) -> int:
    """Return how many steps are within limits, given the totals of transactions and bytes after each."""
    end = len(totals)
    for column, limit in enumerate((limits.transactions, limits.bytes)):
        if limit is not None:
            end = min(end, int(np.searchsorted(totals[:, column], limit, "right")))
    return end


def _steps(index: LogIndex, after: int, sizes: Sizes | None) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield, in parts, the seqs of commits and events after one, each with its number of transactions and bytes.

    Without ``sizes`` bytes are 0.
    """
    copied = {} if sizes is None else _copies(index, sizes)
    for _, part in index.parts():
        seqs, steps = _steps_of(part, after, copied, sizes)
        if len(seqs):
            yield seqs, steps


def _steps_of(
    index: SegmentIndex, after: int, copied: Mapping[int, int], sizes: Sizes | None
) -> tuple[Numbers, Numbers]:
    transactions = committed_transactions(index.transactions)
    transactions = transactions.filter(pc.greater(transactions["seq"], after)).combine_chunks()
    ends = transactions["seq"].to_numpy()
    events = index.entries("events")["seq"]
    events = events.filter(pc.greater(events, after)).to_numpy()
    seqs = np.concatenate([ends, events])
    own = np.zeros(len(ends), np.int64) if sizes is None else _bytes(transactions, sizes)
    lengths = np.concatenate([own, [copied.get(seq, 0) for seq in events.tolist()]]).astype(np.int64)
    counts = np.concatenate([np.ones(len(ends), np.int64), np.zeros(len(events), np.int64)])
    order = np.argsort(seqs, kind="stable")
    return seqs[order], np.stack([counts, lengths], 1)[order]


def _bytes(transactions: pa.Table, sizes: Sizes) -> Numbers:
    """Estimate the bytes of payloads of each transaction."""
    spans = transactions["spans"].combine_chunks()
    starts, flat = spans.offsets.to_numpy() - spans.offsets[0].as_py(), spans.flatten()
    first, last = (flat.field(name).to_numpy() for name in ("first", "last"))
    of_spans = (last - first + 1) * sizes.mean(first, last)
    found: Numbers = np.diff(np.append(0, np.cumsum(of_spans))[starts]).astype(np.int64)
    return found


def _copies(index: LogIndex, sizes: Sizes) -> dict[int, int]:
    """Estimate the bytes of payloads of each copy, by the seq of the event that completes it."""
    chunks, segments = index.located("snapshots")
    order = np.argsort(chunks["number"].to_numpy(), kind="stable")
    numbers, rows = (chunks[name].to_numpy()[order] for name in ("number", "rows"))
    before = np.stack([np.append(0, np.cumsum(each)) for each in (rows, rows * sizes.means[segments[order]])])
    found = {}
    for copy in copies_of(index):
        first, end = np.searchsorted(numbers, [copy.first_chunk, copy.last_chunk + 1]).tolist()
        known, length = (before[:, max(first, end)] - before[:, first]).tolist()
        # Rows before the range are as long, on average, as those in it.
        found[copy.seq] = int(copy.rows * length / known) if known else 0
    return found


def first_needed_seq(index: LogIndex, seq: int) -> int:
    """Return the first seq that a reader at ``seq`` still needs: transactions that began before it may end later."""
    segment = max(int(np.searchsorted(index.table["first_seq"].to_numpy(), seq, "right")) - 1, 0)
    # A transaction within one later segment began later; only those of the segment with the seq may cross it.
    ended = pa.concat_tables([index.marked, index.slice(segment, segment + 1).transactions])
    later, opened = ended.filter(pc.greater(ended["seq"], seq)), index.open
    starts = [pc.struct_field(pc.list_flatten(entries["spans"]), "first") for entries in (later, opened)]
    begun = [pc.min(each).as_py() for each in (*starts, opened["first_seq"])]
    return min([seq + 1, *(each for each in begun if each is not None)])


# PySpark 4.2 asks for the time zone, which was UTC before.
_IN_UTC: Final[dict[str, Any]] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}


def query_fields(now: pa.Schema, schema: StructType, options: SourceOptions, name: str) -> pa.Schema:
    """Return the columns of a running query, whose table may have changed since it began.

    Args:
        now: The columns of the table now.
        schema: Those that the query began with.
        options: With ``schemaChange=ignore`` added columns are dropped, and values that do not fit their column are in
            ``_untyped``.
        name: The table, for messages.

    Raises:
        ChangeLogError: Rows have columns or types for which the query has no room.
    """
    columns = to_arrow_schema(schema, **_IN_UTC)
    for field in now if options.schemaChange == "fail" else ():
        if field.name not in columns.names and options.columns is None:
            raise _changed(name, f"the column {field.name!r} was added or renamed")
        if field.name in columns.names and not _fits(columns.field(field.name).type, field.type):
            raise _changed(name, f"the column {field.name!r} is {field.type} now")
    same = {field.name for field in from_arrow_schema(now, prefer_timestamp_ntz=True) if field in schema.fields}
    return pa.schema([now.field(each) if each in same else columns.field(each) for each in columns.names])


def _fits(column: pa.DataType, now: pa.DataType) -> bool:
    """Return whether a column of the query has room for a type."""
    if pa.types.is_struct(column):  # _before has the table's columns, which are compared by themselves
        return True
    return bool(column == now or unify(column, now) == column)


def _changed(name: str, what: str) -> ChangeLogError:
    return ChangeLogError(
        f"{name}: {what}, since the query began: restart the query, which resumes from its checkpoint with the "
        "current columns, or set the option schemaChange=ignore to continue without"
    )


_ONE_BATCH: Final = (
    "PySpark 4.1 cannot limit micro-batches with the trigger availableNow, which reads everything as one: omit "
    "maxTransactionsPerTrigger and maxBytesPerTrigger, or use the trigger processingTime, or PySpark 4.2 or later"
)


class QueryOffset:
    """The offset of a query, for PySpark 4.1, which requests the end of the next micro-batch without it.

    It is the end of the micro-batch that was planned last: Spark begins a restarted query with planning an empty one
    at its offset (``PythonMicroBatchStream.setLatestSeenOffset``). If none was planned, the query is new.

    The trigger ``availableNow`` is the exception: Spark requests an end before anything else, of a restarted query too,
    and never reads past it. With a limit the remaining changes would be left out unnoticed. No other trigger makes
    Spark request an end twice in a new query, or plan before it has requested the initial offset: both are errors.
    """

    def __init__(self, find_initial: Callable[[], dict[str, Any]], is_limited: bool) -> None:
        """Take what finds the offset where a new query begins, and whether micro-batches have limits."""
        self._find_initial = find_initial
        self._is_limited = is_limited
        self._initial: dict[str, Any] | None = None
        self._planned: dict[str, Any] | None = None
        self._has_begun = False
        self._is_presumed = False

    def initial(self) -> dict[str, Any]:
        """Return where the new query begins: the same offset each time, even if the log is pruned meanwhile."""
        self._has_begun = True
        return self._first()

    def current(self) -> dict[str, Any] | None:
        """Return where the next micro-batch begins; None if it is unknown and no limit depends on it."""
        if self._planned is not None or not self._is_limited:
            return self._planned
        if self._is_presumed:
            raise PgoutputError(_ONE_BATCH)
        self._is_presumed = True
        return self._first()

    def plan(self, end: dict[str, Any]) -> None:
        """Take the end of a micro-batch that is planned."""
        if self._is_presumed and not self._has_begun:
            raise PgoutputError(_ONE_BATCH)
        self._planned, self._is_presumed = end, False

    def _first(self) -> dict[str, Any]:
        if self._initial is None:
            self._initial = self._find_initial()
        return self._initial


Reader = TypeVar("Reader", bound=DataSourceStreamReader)


def with_available_now(kind: type[Reader]) -> type[Reader]:
    """Return a class of readers with the mark by which PySpark 4.2 limits batches of the trigger ``availableNow``."""
    try:
        limits = import_module("pyspark.sql.streaming.datasource")
    except ImportError:
        return kind
    return type(kind.__name__, (kind, limits.SupportsTriggerAvailableNow), {})


def read_limit(most: int | None) -> Any:
    """Return what PySpark 4.2 and later pass to ``latestOffset``, which applies the limits itself."""
    limits = import_module("pyspark.sql.streaming.datasource")
    return limits.ReadAllAvailable() if most is None else limits.ReadMaxRows(most)


def is_unlimited(limit: Any) -> bool:
    """Return whether PySpark 4.2 or later requests everything: with the trigger ``once`` it does, despite limits."""
    return type(limit).__name__ == "ReadAllAvailable"


Answer = TypeVar("Answer")


class PollInterval:
    """Waits before it polls again after a poll with nothing new, longer where a poll takes longer.

    Spark itself polls a hundred times a second. No answer is cached: what was written before a poll is found by it.
    """

    def __init__(self, least: float) -> None:
        """``least`` is the least number of seconds between two polls."""
        self._least = least
        self._due = 0.0

    def poll(self, question: Callable[[], Answer], is_new: Callable[[Answer], bool]) -> Answer:
        """Wait until the next poll is due, and return its answer."""
        time.sleep(max(0.0, self._due - time.monotonic()))
        began = time.monotonic()
        answer = question()
        ended = time.monotonic()
        self._due = ended if is_new(answer) else ended + max(self._least, ended - began)
        return answer


def register_reader(log: ChangeLog, name: str | None, after: int) -> None:
    """Register a reader at a seq, so that prune retains what it has not read; without a name do nothing."""
    if name is not None and name not in {reader.name for reader in readers(log.store)}:
        register(log.store, name, first_needed_seq(log.index, after), offset_at(log.index, after).lsn or 0)


def advance_reader(log: ChangeLog, name: str, seq: int) -> None:
    """Advance a registered reader to a seq; it still needs transactions that began before it and end later."""
    known = {reader.name: reader.next_seq for reader in readers(log.store)}
    needed = first_needed_seq(log.index, seq)
    if needed > known.get(name, -1):
        register(log.store, name, needed, offset_at(log.index, seq).lsn or 0)
