"""The rows that a log has of a table into which was only inserted, by the rule of its copies."""

from bisect import bisect_right

import numpy as np

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog.copies import latest_copies
from pgoutput_construct.changelog.planning import committed_spans
from pgoutput_construct.wire import Insert, parse
from tests.postgres.shop import Shop

__all__ = ["ids", "oid_of"]


def ids(log: ChangeLog, oid: int) -> list[int]:
    """Return the ids of a table into which was only inserted: those of its latest copy, and what that does not see."""
    copy, spans, found = latest_copies(log.index)[oid], committed_spans(log.index), []
    for entry in log.entries(copied=True):
        message = parse(entry.payload, **{**log.options.layout(), **entry.states})
        if not isinstance(message, Insert) or message.relation_oid != oid:
            continue
        place = bisect_right(spans.first_seq, entry.seq) - 1
        in_span = place >= 0 and entry.seq <= spans.last_seq[place]
        if entry.snapshot is not None:
            counts = copy.first_chunk <= entry.snapshot <= copy.last_chunk
        else:
            counts = in_span and bool(copy.snapshot.invisible(np.array([spans.xid[place]]))[0])
        if counts:
            found.append(int(bytes(message.new[0])))  # type: ignore[arg-type]
    return sorted(found)


def oid_of(shop: Shop) -> int:
    """Ask for the OID of the table."""
    with shop.connect() as connection:
        (oid,) = connection.execute("SELECT 'item'::regclass::oid::bigint").fetchone() or (0,)
        return int(oid)
