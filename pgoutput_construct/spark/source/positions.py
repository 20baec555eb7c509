"""From an LSN or a time to a seq: which transactions had committed by then."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.changelog._index.log_index import LogIndex
from pgoutput_construct.changelog._index.planning import commits_of, committed, lost_ends
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark.source.bounds import Bounds
from pgoutput_construct.spark.source.options import SourceOptions
from pgoutput_construct.wire import Lsn, Timestamp

__all__ = ["as_of_seq", "bounds_of"]

Numbers = NDArray[np.int64]


def as_of_seq(log: ChangeLog, options: SourceOptions) -> int:
    """Return the seq as of which a log is to be read; raise ChangeLogError where it does not have that position yet.

    A position in the WAL is one only for what comes before it: all of that must be in the log. A time is, as
    recovery_target_time is, up to the first commit that is later: commits may be told in another order than that of
    their clocks.
    """
    if options.asOfSeq is not None:
        return options.asOfSeq
    if options.asOfLsn is not None:
        _check_complete(log, options.asOfLsn)
        return _last_by(log.index, "lsn", options.asOfLsn)
    if options.asOfTime is not None:
        return _last_by(log.index, "time", options.asOfTime)
    return log.index.last_seq


def bounds_of(options: SourceOptions) -> Bounds:
    """Return what ``_commit_lsn`` is between.

    A copy that was made after a position may stand before what committed there: the seq alone does not leave it out.
    """
    last = (int(each) for each in (options.asOfLsn, options.untilLsn) if each is not None)
    return Bounds(int(options.fromLsn or 0), min(last, default=Bounds.last_lsn))


def _check_complete(log: ChangeLog, lsn: Lsn) -> None:
    known = max(int(log.complete_lsn), int(commits_of(log.index)["most_lsn"].max()))
    if lsn > known:
        raise ChangeLogError(
            f"{log.store}: asOfLsn is {lsn}, but the log is complete up to {Lsn(known)} only: what may still commit "
            "before that is not known; read it as of an earlier position, or when the capture has come further"
        )


def _last_by(index: LogIndex, what: str, limit: int) -> int:
    """Return the seq of the last transaction or event up to a position or time, before the first that is later."""
    lost, end, found = lost_ends(index), index.last_seq + 1, np.array([], np.int64)
    commits = commits_of(index, lost)
    has_some = commits["commits"] > 0
    for place in np.flatnonzero(has_some & (commits[f"most_{what}"] > limit))[:1].tolist():
        transactions = committed(index.one(place).transactions, lost)
        seqs, numbers = (_numbers(transactions[name]) for name in ("seq", f"commit_{what}"))
        end = int(seqs[np.flatnonzero(numbers > limit)[0]])
        found = seqs[seqs < end]
    events, before = index.entries("events"), commits["last_commit"][has_some]
    told = _numbers(events["seq"])[_numbers(events[what]) <= limit]
    found = np.concatenate([found, before[before < end], told[told < end]])
    if not len(found):
        name = Lsn(limit) if what == "lsn" else Timestamp(limit)
        raise ChangeLogError(f"nothing of the log is as old as {name}: it begins later")
    return int(found.max())


def _numbers(column: pa.ChunkedArray) -> Numbers:
    numbers: Numbers = column.to_numpy()
    return numbers
