"""The range of a log that a batch read is of."""

from pgoutput_construct.changelog._index.planning import lost_ends
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.spark.source.known import address_of, log_at
from pgoutput_construct.spark.source.options import SourceOptions
from pgoutput_construct.spark.source.pieces import Range
from pgoutput_construct.spark.source.positions import as_of_seq, bounds_of

__all__ = ["log_of", "range_between", "range_of"]


def log_of(options: SourceOptions) -> tuple[ChangeLog, int]:
    """Open the log that options name, and return the seq as of which it is read."""
    log = log_at(address_of(options))
    return log, as_of_seq(log, options)


def range_of(log: ChangeLog, as_of: int, options: SourceOptions) -> Range:
    """Return what a batch read is of."""
    return range_between(log, -1 if options.fromSeq is None else options.fromSeq - 1, as_of, options)


def range_between(log: ChangeLog, after: int, until: int, options: SourceOptions) -> Range:
    """Return what ended after one seq, up to another."""
    lost = tuple((seq, end) for seq, end in lost_ends(log.index) if seq <= until)  # what was lost later, was there then
    return Range(after, until, bounds_of(options), lost)
