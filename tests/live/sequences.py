"""What a recording must contain across messages: interleaving, pairs, changing descriptions."""

from collections.abc import Callable, Iterator
from itertools import groupby, pairwise
from typing import Any

import pgoutput_construct as pgo
from tests.live.items import Item

__all__ = ["RULES", "SEQUENCES"]

Stream = list[Item]
OUTCOMES = "CcApPKr"
ORDER = {
    "idle": {"B": "transaction", "b": "preparing", "S": "stream", **dict.fromkeys("McApKr", "idle")},
    "transaction": {"C": "idle", **dict.fromkeys("MORYIUDT", "transaction")},
    "preparing": {"P": "idle", **dict.fromkeys("MORYIUDT", "preparing")},
    "stream": {"E": "idle", **dict.fromkeys("MORYIUDT", "stream")},
}
END = {**dict.fromkeys("CcPpK", "end_lsn"), "r": "rollback_end_lsn"}


def _segments(stream: Stream) -> list[int]:
    return [item.message.xid for item in stream if item.kind == "S"]


def _streams_interleave(stream: Stream) -> bool:
    """Segments of one transaction stand on both sides of another's."""
    runs = [xid for xid, _ in groupby(_segments(stream))]
    return len(runs) > len(set(runs))


def _a_transaction_between_segments(stream: Stream) -> bool:
    """A transaction commits while another one's stream is not finished."""
    unfinished = set[int]()
    for item in stream:
        if item.kind == "B" and unfinished:
            return True
        if item.kind == "S":
            unfinished.add(item.message.xid)
        elif item.kind in "cp" or (item.kind == "A" and item.message.xid == item.message.subxid):
            unfinished.discard(item.message.xid)
    return False


def _an_empty_segment(stream: Stream) -> bool:
    """Changes that no publication wants still open a segment."""
    return any(a.kind == "S" and b.kind == "E" for a, b in pairwise(stream))


def _children_abort_first(stream: Stream) -> bool:
    """A savepoint inside a rolled back savepoint is taken back before it (its xid is the higher one)."""
    aborts = [item.message for item in stream if item.kind == "A" and item.message.xid != item.message.subxid]
    return any(a.xid == b.xid and a.subxid > b.subxid for a, b in pairwise(aborts))


def _a_table_changes_in_a_transaction(stream: Stream) -> bool:
    """Within one transaction a table is described again, with other columns."""
    columns: dict[int, object] = {}
    for item in stream:
        if item.kind in "BbS":
            columns = {}
        elif item.kind == "R":
            if columns.get(item.message.relation_oid, item.message.columns) != item.message.columns:
                return True
            columns[item.message.relation_oid] = item.message.columns
    return False


def _work_between_prepare_and_its_end(stream: Stream) -> bool:
    """A transaction commits between a prepare and what became of it."""
    kinds = [item.kind for item in stream if item.kind in OUTCOMES]
    return any(a in "Pp" and b in "Cc" for a, b in pairwise(kinds)) and "K" in kinds and "r" in kinds


SEQUENCES: dict[str, tuple[Callable[[Stream], bool], frozenset[str]]] = {
    "streams interleave": (_streams_interleave, frozenset({"streaming"})),
    "a transaction between segments": (_a_transaction_between_segments, frozenset({"streaming", "whole"})),
    "an empty segment": (_an_empty_segment, frozenset({"streaming"})),
    "children abort first": (_children_abort_first, frozenset({"streaming"})),
    "a table changes in a transaction": (_a_table_changes_in_a_transaction, frozenset({"whole"})),
    "work between a prepare and its end": (_work_between_prepare_and_its_end, frozenset({"two-phase"})),
}
"""What is seen in every recording that has all the traits."""


def _order_holds(stream: Stream) -> Iterator[str]:
    """Each message may come where it comes, and a recording ends between transactions."""
    state = "idle"
    for number, item in enumerate(stream):
        if item.kind not in ORDER[state]:
            yield f"{number}: {item.kind} in state {state}"
        state = ORDER[state].get(item.kind, state)
    if state != "idle":
        yield f"the recording ends in state {state}"


def _tables_are_described_first(stream: Stream) -> Iterator[str]:
    """No change comes before the description of its table."""
    known = set[int]()
    for item in stream:
        if item.kind == "R":
            known.add(item.message.relation_oid)
        elif item.kind in "IUD" and item.message.relation_oid not in known:
            yield str(item.message)


def _positions_to_confirm_grow(stream: Stream) -> Iterator[str]:
    """Transactions end in the order of the log."""
    ends = [(getattr(item.message, END[item.kind]), item) for item in stream if item.kind in END]
    for (before, _), (end, item) in pairwise(ends):
        if end <= before:
            yield f"{item.message} after {before}"


def _begin_and_end_agree(stream: Stream) -> Iterator[str]:
    """Begin has the LSN of the commit record, Begin Prepare everything that Prepare repeats."""
    begun: Any = None
    for item in stream:
        message = item.message
        if item.kind in "Bb":
            begun = message
        elif item.kind == "C" and begun.final_lsn != message.commit_lsn:
            yield f"{begun} and {message}"
        elif item.kind == "P":
            fields = ("prepare_lsn", "end_lsn", "prepare_time", "xid", "gid")
            if any(getattr(begun, field) != getattr(message, field) for field in fields):
                yield f"{begun} and {message}"


def _old_rows_are_complete(stream: Stream) -> Iterator[str]:
    """No old row or key has an unchanged value: the server fetches it."""
    for item in stream:
        if pgo.UNCHANGED in (getattr(item.message, "old", None) or ()):
            yield str(item.message)


def _messages_have_the_top_level_xid(stream: Stream) -> Iterator[str]:
    """A message in a stream has its transaction's xid, whatever the savepoint; outside it is never there."""
    for item in stream:
        if item.kind == "M" and item.message.xid != item.stream_xid:
            yield str(item.message)


def _origin_comes_first(stream: Stream) -> Iterator[str]:
    """Origin follows Begin, Begin Prepare or the first Stream Start."""
    for before, item in pairwise(stream):
        if item.kind == "O" and (before.kind not in "BbS" or getattr(before.message, "first_segment", 1) != 1):
            yield str(item.message)


def _first_segments_come_once(stream: Stream) -> Iterator[str]:
    """Only a transaction's first segment is marked as the first."""
    started = set[int]()
    for item in stream:
        if item.kind == "S":
            if item.message.first_segment == (item.message.xid in started):
                yield str(item.message)
            started.add(item.message.xid)


RULES: tuple[Callable[[Stream], Iterator[str]], ...] = (
    _order_holds,
    _tables_are_described_first,
    _positions_to_confirm_grow,
    _begin_and_end_agree,
    _old_rows_are_complete,
    _messages_have_the_top_level_xid,
    _origin_comes_first,
    _first_segments_come_once,
)
"""Rules that no recording breaks; each returns where it was broken."""
