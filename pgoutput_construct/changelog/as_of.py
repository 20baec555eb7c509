"""A log as it was at an earlier seq: the index that it would have if it ended there."""

import pyarrow.compute as pc

from pgoutput_construct.changelog.columns import parts_of
from pgoutput_construct.changelog.described import Sent
from pgoutput_construct.changelog.index import SegmentIndex
from pgoutput_construct.changelog.indexes import builder_after
from pgoutput_construct.changelog.log_index import LogIndex
from pgoutput_construct.changelog.reader import ChangeLog

__all__ = ["index_as_of", "last_settled"]


def index_as_of(log: ChangeLog, seq: int) -> LogIndex:
    """Return the index of a log as of a seq: transactions that ended by then, copies, facts and descriptions.

    It has a row for each segment up to that of ``seq``. Where this is amid a segment, and something ended or was told
    behind it there, that segment alone is read. Raises ChangeLogError for a seq that the log does not have.
    """
    segment = log.segment(seq)
    place = log.segments.place(seq)
    index = log.index.slice(0, place + 1)
    if last_settled(log.index.one(place), segment.last_seq) <= seq:
        return index
    builder = builder_after(log.segments[:place], _sent(index))
    rows = log.table(segment).slice(0, seq - segment.first_seq + 1)
    for part in parts_of(rows, segment.options.layout()):
        builder.add(part)
    before = index.slice(0, place)
    return LogIndex.concat([before, builder.finish(before.complete_lsn if place else 0)])


def last_settled(index: SegmentIndex, seq: int) -> int:
    """Return the last seq, up to one, at which a transaction ended or an event stands; -1 for none."""
    found = []
    for name in ("transactions", "events"):
        seqs = index.entries(name)["seq"]
        found.append(pc.max(seqs.filter(pc.less_equal(seqs, seq))).as_py())
    return max((last for last in found if last is not None), default=-1)


def _sent(index: SegmentIndex) -> dict[int, Sent]:
    """Return the descriptions of a log, by seq, so that no footer is read again for them."""
    rows = [*index.entries("inherited").to_pylist(), *index.entries("descriptions").to_pylist()]
    return {row["seq"]: row for row in rows}
