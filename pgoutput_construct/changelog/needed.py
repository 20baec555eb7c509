"""From where on a log must be kept so that its tables can be rebuilt."""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

from pgoutput_construct.changelog.copies import TableCopy
from pgoutput_construct.changelog.log_index import LogIndex
from pgoutput_construct.changelog.planning import committed, lost_ends, spans_of
from pgoutput_construct.changelog.visibility import Visibility
from pgoutput_construct.changelog.wholeness import begun_without_copy, present_copies
from pgoutput_construct.columnar.descriptions import copy_scope
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.wire import Lsn

__all__ = ["Need", "needs_of"]

_NEVER = 2**63 - 1
_Copied: TypeAlias = tuple[Visibility, Lsn]
"""What copies contain, and from which LSN on they need commits (``TableCopy.since_lsn``)."""


class Need(NamedTuple):
    """What the state of a table is built from."""

    seq: int
    """All from here on."""
    relation_oid: int
    """The table."""
    words: str
    """Why."""


def needs_of(index: LogIndex) -> Iterator[Need]:
    """Yield from where on the state of each table needs a log; of those that the log does not hold as a whole, nothing.

    With a copy these are the copy's pieces, and the transactions that its snapshot did not see: some may have come
    before the first piece.
    """
    begun = begun_without_copy(index)
    latest = {copy.relation_oid: copy for copy in present_copies(index)}
    firsts = _first_pieces(index, latest)
    unseen = _unseen(index, {(copy.visibility, copy.since_lsn) for copy in latest.values()})
    for oid, copy in latest.items():
        seq = min(firsts.get(oid, copy.seq), unseen[copy.visibility, copy.since_lsn])
        name = full_name(copy)
        yield Need(seq, oid, f"the state of {name} needs its latest copy, and what came after the snapshot of that")
    for oid, (seq, name) in begun.items():
        if oid not in latest:
            yield Need(seq, oid, f"the state of {name} needs all since its first row")


def _unseen(index: LogIndex, copied: set[_Copied]) -> dict[_Copied, int]:
    """Return where the first transaction begins that copies do not contain, or the segment that may have it."""
    complete, starts = (index.table[name].to_numpy() for name in ("complete_lsn", "first_seq"))
    found = {each: int(starts[complete > int(each[1])].min(initial=_NEVER)) for each in copied}
    lost = lost_ends(index)
    for _, part in index.parts() if copied else ():
        spans = spans_of(committed(part.transactions, lost))
        lsns, xids, seqs = (np.asarray(column) for column in (spans.commit_lsn, spans.xid, spans.first_seq))
        for each in copied:
            found[each] = min(found[each], int(seqs[each[0].adds(lsns, xids)].min(initial=_NEVER)))
    return found


def _first_pieces(index: LogIndex, copies: dict[int, TableCopy]) -> dict[int, int]:
    """Return where the first piece of each copy stands: it begins with what describes its rows."""
    sent = index.entries("descriptions")
    chunks = copy_scope(0) - sent["stream_xid"].fill_null(0).to_numpy()
    oids, seqs, found = sent["oid"].to_numpy(), sent["seq"].to_numpy(), dict[int, int]()
    for place in np.flatnonzero(chunks >= 0).tolist():
        copy = copies.get(int(oids[place]))
        if copy is not None and copy.first_chunk <= chunks[place] <= copy.last_chunk:
            found.setdefault(copy.relation_oid, int(seqs[place]))
    return found
