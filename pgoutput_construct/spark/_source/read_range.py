"""Which log a read is of, as of which point, and which transactions and copies of it are selected."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._index.log_index import LogIndex, LogPoint
from pgoutput_construct.changelog._index.planning import (
    LostHistory,
    commit_stats,
    committed_transactions,
    lost_histories,
)
from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.changelog.timeline import point_at
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark._execution import cache_archives
from pgoutput_construct.spark._log_view.log_tables import LogTables
from pgoutput_construct.spark._source.source_options import SourceOptions
from pgoutput_construct.wire import Lsn, Timestamp


def log_as_of(options: SourceOptions) -> tuple[ChangeLog, LogPoint]:
    """Open the log that options name, and return the point as of which it is read."""
    log = log_at(log_address(options))
    return log, point_of(log, options)


_MOST: Final = 2**63 - 1


@dataclass(frozen=True)
class LogRange:
    """The transactions and copies that a read selects.

    The LSNs come from options, never from a filter that Spark pushes down (``DataSourceReader.pushFilters``): up to
    version 4 it stores what a read with pushed filters is planned to read in the source (``setReadInfo`` in
    PythonScanBuilder), not in the scan. Any other read of the same DataFrame, in that plan or in a later one, would
    lack the rows that the filter excluded.
    """

    after: int
    """Those that ended after this seq,"""
    until: int
    """up to this one,"""
    first_lsn: int = 0
    """and committed from this LSN on,"""
    last_lsn: int = _MOST
    """up to this one;"""
    lost: tuple[LostHistory, ...] = ()
    """without those of timelines that the server lost (``planning.lost_histories``)."""

    def mask(self, transactions: pa.Table) -> NDArray[np.bool_]:
        """Return whether each committed transaction is selected."""
        seqs, lsns = (transactions[name].to_numpy() for name in ("seq", "commit_lsn"))
        selected: NDArray[np.bool_] = (seqs > self.after) & (seqs <= self.until)
        return selected & (lsns >= self.first_lsn) & (lsns <= self.last_lsn)

    def includes(self, copy: TableCopy) -> bool:
        """Return whether the rows of a copy are selected."""
        return self.after < copy.seq <= self.until and self.first_lsn <= copy.snapshot.lsn <= self.last_lsn

    def transactions(self, index: SegmentIndex) -> pa.Table:
        """Return the selected transactions of an index."""
        found = committed_transactions(index.transactions, self.lost)
        return found.filter(pa.array(self.mask(found)))


def range_of(log: ChangeLog, as_of: LogPoint, options: SourceOptions) -> LogRange:
    """Return the range of a batch read."""
    return range_between(log, -1 if options.fromSeq is None else options.fromSeq - 1, as_of.seq, options)


def range_between(log: ChangeLog, after: int, until: int, options: SourceOptions) -> LogRange:
    """Return the range of what ended after one seq, up to another."""
    # What was lost later still existed then.
    lost = tuple(each for each in lost_histories(log.index) if each.before_seq <= until)
    # A copy that was made after an LSN may come before its commits in the log: the seq alone does not exclude it.
    last_lsns = (int(each) for each in (options.asOfLsn, options.untilLsn) if each is not None)
    return LogRange(after, until, int(options.fromLsn or 0), min(last_lsns, default=_MOST), lost)


def point_of(log: ChangeLog, options: SourceOptions) -> LogPoint:
    """Return the point as of which options read a log; raise ChangeLogError where it does not reach that position yet.

    The log must have everything that committed up to an LSN. A time, like recovery_target_time, means everything before
    the first commit that is later: the order of commits is not always that of their timestamps.
    """
    if options.asOfSeq is not None:
        return options.asOfSeq
    if options.asOfLsn is not None:
        _check_complete(log, options.asOfLsn)
        return LogPoint(_last_seq_by(log.index, "lsn", options.asOfLsn), options.asOfLsn)
    if options.asOfTime is not None:
        return LogPoint(_last_seq_by(log.index, "time", options.asOfTime), point_at(log.index, options.asOfTime).lsn)
    return LogPoint(log.index.last_seq)


def _check_complete(log: ChangeLog, lsn: Lsn) -> None:
    known = max(int(log.complete_lsn), int(commit_stats(log.index)["most_lsn"].max()))
    if lsn > known:
        raise ChangeLogError(
            f"{log.store}: asOfLsn is {lsn}, but the log is complete only up to {Lsn(known)}: read it as of an "
            "earlier LSN, or once the capture has advanced"
        )


def _last_seq_by(index: LogIndex, what: str, limit: int) -> int:
    """Return the seq of the last transaction or event up to an LSN or a time, before the first that is later."""
    lost, end, found = lost_histories(index), index.last_seq + 1, np.array([], np.int64)
    commits = commit_stats(index, lost)
    has_some = commits["commits"] > 0
    for segment in np.flatnonzero(has_some & (commits[f"most_{what}"] > limit))[:1].tolist():
        transactions = committed_transactions(index.one(segment).transactions, lost)
        seqs, numbers = (_numbers(transactions[name]) for name in ("seq", f"commit_{what}"))
        end = int(seqs[np.flatnonzero(numbers > limit)[0]])
        found = seqs[seqs < end]
    events, before = index.entries("events"), commits["last_commit"][has_some]
    of_events = _numbers(events["seq"])[_numbers(events[what]) <= limit]
    found = np.concatenate([found, before[before < end], of_events[of_events < end]])
    if not len(found):
        name = Lsn(limit) if what == "lsn" else Timestamp(limit)
        raise ChangeLogError(f"the log begins after {name}: read it as of a later position")
    return int(found.max())


def _numbers(column: pa.ChunkedArray) -> Numbers:
    numbers: Numbers = column.to_numpy()
    return numbers


_latest: dict[str, tuple[dict[str, int], ChangeLog]] = {}


def log_address(options: SourceOptions) -> str:
    """Return the address of the log that options name."""
    assert options.path is not None
    return options.path


def log_at(address: str) -> ChangeLog:
    """Return the log at an address as it is now; it is opened again only if the names or sizes of its files changed."""
    cache_archives()
    files, log = _latest.get(address, ({}, None))
    found = open_store(address).files()
    if log is None or found != files:
        log = ChangeLog(address, log)
        _latest.clear()
        _latest[address] = found, log
    return log


@lru_cache(maxsize=1)  # those of earlier micro-batches are of no use
def tables_at(log: ChangeLog, as_of: LogPoint, types: str = "", allow_undescribed: bool = False) -> LogTables:
    """Return the tables of a log as of a point; see ``LogTables.from_log``."""
    return LogTables.from_log(log, as_of, types, allow_undescribed=allow_undescribed)
