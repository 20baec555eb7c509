"""What readers of rows need to know of a log before they read it, out of its index alone."""

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._index.log_index import NUMBERS, LogIndex, apart, count_commits
from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.changelog._segment.events import BEGUN_ANEW, events_of
from pgoutput_construct.changelog._segment.segment_descriptions import Sent, described
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.stream.relations import Description, RelationHistory
from pgoutput_construct.stream.transaction_reader import COMMITTED, Spans
from pgoutput_construct.wire.messages import Relation

__all__ = [
    "LostHistory",
    "commit_stats",
    "committed_transactions",
    "earliest_after",
    "first_commit_after",
    "last_commit",
    "latest_descriptions",
    "lost_histories",
    "relation_history",
    "run_spans",
    "sent_by_seq",
    "spans_of",
    "without_lost_history",
    "xid_distances",
]


class LostHistory(NamedTuple):
    """A history of the server that was lost: the log has it, and it does not count."""

    before_seq: int
    """The seq at which the log was restarted."""
    after_lsn: int
    """The LSN up to which transactions that ended before that seq still count."""

    def voids(self, seq: int, lsn: int) -> bool:
        """Return whether what the log has at a seq, with its LSN, is of this history."""
        return seq < self.before_seq and lsn > self.after_lsn


_INT64_MAX: Final = 2**63 - 1


def run_spans(index: SegmentIndex) -> Spans:
    """Return the spans of committed transactions in which a run of the index's ``rows`` begins or ends.

    These are a few of each segment, however many it has; some others may be among them.
    """
    return spans_of(committed_transactions(index.marked, lost_histories(index)))


def committed_transactions(transactions: pa.Table, lost: Iterable[LostHistory] = ()) -> pa.Table:
    """Return those of the transactions that committed, without those of a history of the server that was ``lost``."""
    counts = pc.equal(transactions["outcome"], COMMITTED)
    # Mostly all are: a million need not be copied.
    return without_lost_history(transactions if pc.all(counts).as_py() else transactions.filter(counts), lost)


def without_lost_history(rows: pa.Table, lost: Iterable[LostHistory], by: str = "end_lsn") -> pa.Table:
    """Return those of the transactions that ended that are not of a history of the server that was ``lost``.

    Of other rows ``by`` is the column that has their LSNs. What was rolled back at an LSN that the server did not send
    is never left out.
    """
    for each in lost:
        is_before = pc.less(rows["seq"], each.before_seq)
        is_void = pc.and_(is_before, pc.greater(rows[by], each.after_lsn))
        rows = rows.filter(pc.invert(pc.fill_null(is_void, False)))
    return rows


def lost_histories(index: SegmentIndex) -> list[LostHistory]:
    """Return where a history of the server was lost: transactions before the seq that ended after the position."""
    found = ((event.seq, event.details["void_after"]) for event in events_of(index, BEGUN_ANEW))
    return [LostHistory(seq, end) for seq, end in found if end is not None]


def spans_of(transactions: pa.Table) -> Spans:
    """Return where committed transactions stand."""
    spans, parents = _flat(transactions["spans"])
    first, last = (pc.struct_field(spans, name).to_numpy() for name in ("first", "last"))
    xid = _numbers(transactions["xid"])
    # Without streams they are in order, each of another transaction: a million need not be copied again and again.
    order: Numbers | slice = slice(None) if (first[1:] >= first[:-1]).all() else np.argsort(first, kind="stable")
    owners = parents[order]
    columns = {  # one by one: each needs room for what it is made of
        "first_seq": _array(first[order]),
        "last_seq": _array(last[order]),
        "stream_xid": _array(np.where(transactions["streamed"].to_numpy(), xid, -1)[owners]),
        "commit_lsn": _array(_numbers(transactions["commit_lsn"])[owners]),
        "commit_time": _array(_numbers(transactions["commit_time"])[owners]),
        "xid": _array(xid[owners]),
        "position": _array(_before(last - first + 1, parents)[order]),
    }
    return Spans(**columns, aborted=_aborted(transactions["aborted"], owners))


def relation_history(index: SegmentIndex) -> RelationHistory:
    """Return what describes each OID at each position, also where older segments were pruned."""
    inherited, segment_indexes = index.located("inherited")
    is_before = _numbers(inherited["seq"]) < index.first_seq
    before = _distinct(inherited.filter(pa.array(is_before)), segment_indexes[is_before])
    sent = {row["seq"]: row for row in (*before, *index.entries("descriptions").to_pylist())}
    history = RelationHistory(described(sent.values()))
    known = {description.seq for description in history.descriptions}
    changes = index.entries("changes").to_pylist()
    relations = [row for row in before if row["seq"] in known]  # the others are their Types
    for change in [*_in_force_before(relations, changes, _numbers(index.table["first_seq"])), *changes]:
        # What no row of the log needs was pruned with what sent it.
        description = change["description"] if change["description"] in known else -1
        history.change(change["seq"], change["stream_xid"], change["oid"], description)
    return history


def sent_by_seq(index: SegmentIndex) -> dict[int, Sent]:
    """Return the Relations and Types in an index by seq: those that its segments inherited, and those sent in them."""
    rows = [*index.entries("inherited").to_pylist(), *index.entries("descriptions").to_pylist()]
    return {row["seq"]: row for row in rows}


def latest_descriptions(index: SegmentIndex) -> list[Description]:
    """Return the latest Relation of each OID, of those that ``relation_history`` has; no other one is parsed."""
    inherited, sent = index.entries("inherited"), index.entries("descriptions")
    rows = pa.concat_tables([inherited.filter(pc.less(inherited["seq"], index.first_seq)), sent])
    is_relation = pc.equal(pc.binary_slice(rows["payload"], 0, 1), pa.scalar(Relation.TAG, pa.binary()))
    relations = rows.filter(is_relation).sort_by("seq").group_by("oid", use_threads=False)
    latest = relations.aggregate([("seq", "last"), ("payload", "last"), ("keywords", "last")])
    names = {f"{name}_last": name for name in ("seq", "payload", "keywords")}
    return [*described(latest.rename_columns(names).to_pylist())]


def _in_force_before(before: list[dict[str, Any]], changes: list[dict[str, Any]], firsts: Numbers) -> Iterator[Sent]:
    """Yield what describes which OID at the begin of a log: what rows inherited before the first change of the OID."""
    first_changes: dict[tuple[int | None, int], int] = {}
    for change in changes:
        first_changes.setdefault((change["stream_xid"], change["oid"]), change["seq"])
    for row in before:
        scope = row["stream_xid"], row["oid"]
        if first_changes.get(scope, _INT64_MAX) >= firsts[row["segment_index"]]:
            first_changes[scope] = -1
            yield {**row, "description": row["seq"]}


def _distinct(inherited: pa.Table, segment_indexes: Numbers) -> list[dict[str, Any]]:
    """Return what segments inherited, each once, with the ``segment_index`` of the first segment that did."""
    table = inherited.append_column("segment_index", pa.array(segment_indexes))
    keys = ["seq", "stream_xid", "oid", "payload", "keywords"]
    found = table.group_by(keys, use_threads=False).aggregate([("segment_index", "min")])
    rows: list[dict[str, Any]] = found.rename_columns([*keys, "segment_index"]).sort_by("segment_index").to_pylist()
    return rows


def _array(column: Numbers) -> "array[int]":
    numbers = array("q")
    numbers.frombytes(np.ascontiguousarray(column, np.int64).view(np.uint8).data)
    return numbers


def _flat(lists: pa.ChunkedArray) -> tuple[pa.Array, Numbers]:
    """Return the items of lists, and the row of each."""
    array = lists.combine_chunks()
    return pc.list_flatten(array), pc.list_parent_indices(array).to_numpy()


def _before(lengths: Numbers, parents: Numbers) -> Numbers:
    """Return how many messages of each span's transaction the earlier spans hold."""
    passed = np.cumsum(lengths) - lengths
    is_first = np.diff(parents, prepend=-1) != 0
    firsts: Numbers = np.repeat(passed[is_first], np.diff(np.append(np.flatnonzero(is_first), len(parents))))
    return passed - firsts


def _aborted(lists: pa.ChunkedArray, parents: Numbers) -> dict[int, frozenset[int]]:
    """Return the rolled-back subtransactions by span; ``parents`` are the transactions of the spans."""
    lengths = pc.list_value_length(lists).to_numpy()
    span_indexes = np.flatnonzero(lengths[parents]).tolist()
    return {span_index: frozenset(lists[int(parents[span_index])].as_py()) for span_index in span_indexes}


def _numbers(column: pa.ChunkedArray) -> Numbers:
    numbers: Numbers = column.to_numpy()
    return numbers


def commit_stats(index: LogIndex, lost: Collection[LostHistory] = ()) -> dict[str, Numbers]:
    """Return the NUMBERS of each segment, without what committed in a history of the server that was ``lost``."""
    numbers: dict[str, Numbers] = {name: index.table[name].to_numpy() for name in NUMBERS}
    has_lost = np.zeros(len(index), np.bool_)
    for each in lost:
        is_before = (numbers["commits"] > 0) & (numbers["first_commit"] < each.before_seq)
        has_lost |= is_before & (numbers["most_end_lsn"] > each.after_lsn)
    if has_lost.any():
        numbers = {name: column.copy() for name, column in numbers.items()}
    for segment_index in np.flatnonzero(has_lost).tolist():
        one = index.one(segment_index)
        found = committed_transactions(one.transactions, lost)
        first_seqs = np.array([one.first_seq], np.int64)
        for name, (number,) in count_commits(found, np.zeros(len(found), np.int64), first_seqs).items():
            numbers[name][segment_index] = number
    return numbers


def last_commit(index: LogIndex, seq: int) -> dict[str, Any] | None:
    """Return the last transaction that committed up to a seq, None where none did.

    Histories that were lost by then do not count.
    """
    lost = [each for each in lost_histories(index) if each.before_seq <= seq]
    numbers = commit_stats(index, lost)
    for segment_index in np.flatnonzero((numbers["commits"] > 0) & (numbers["first_commit"] <= seq))[-1:].tolist():
        found = committed_transactions(index.one(segment_index).transactions, lost)
        found = found.filter(pc.less_equal(found["seq"], seq))
        last: dict[str, Any] = found.slice(len(found) - 1).to_pylist()[0]
        return last
    return None


def first_commit_after(index: LogIndex, seq: int) -> dict[str, Any] | None:
    """Return the first transaction that committed after a seq, None where none did.

    Histories that were lost by then do not count; what was lost later still existed.
    """
    lost = [each for each in lost_histories(index) if each.before_seq <= seq]
    for segment_index in np.flatnonzero(commit_stats(index, lost)["last_commit"] > seq).tolist():
        found = committed_transactions(index.one(segment_index).transactions, lost)
        first: dict[str, Any] = found.filter(pc.greater(found["seq"], seq)).slice(0, 1).to_pylist()[0]
        return first
    return None


def earliest_after(index: LogIndex, seq: int) -> int | None:
    """Return the least time of what committed after a seq, None where nothing did."""
    numbers = commit_stats(index)
    is_later = (numbers["commits"] > 0) & (numbers["first_commit"] > seq)
    found = numbers["least_time"][is_later].tolist()
    for segment_index in np.flatnonzero((numbers["first_commit"] <= seq) & (numbers["last_commit"] > seq)).tolist():
        some = committed_transactions(index.one(segment_index).transactions)
        found.append(pc.min(some.filter(pc.greater(some["seq"], seq))["commit_time"]).as_py())
    return min(found, default=None)


def xid_distances(commits: Mapping[str, Numbers]) -> Numbers:
    """Return how far it is from the first xid of all to the first of each segment, from one to the next.

    Each segment must have some that committed. 2**31 and more away is what 32 bits do not tell before from after.
    """
    steps = commits["walk"][:-1] + apart(commits["first_xid"][1:] - commits["last_xid"][:-1])
    return np.append(0, np.cumsum(steps))
