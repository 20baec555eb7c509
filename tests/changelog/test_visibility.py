"""What a copy contains by LSNs is what its snapshot sees by xids: in histories of transactions that are drawn."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from pgoutput_construct.changelog._facts.copies import TableCopy, copies_of
from pgoutput_construct.changelog._facts.visibility import Snapshot, Visibility
from pgoutput_construct.changelog._index.log_index import LogIndex
from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.changelog._segment.events import BEGUN_ANEW, COPIED_TABLE, LogEvent
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex, struct_array
from pgoutput_construct.wire import Lsn

_XIDS = 2**32


@dataclass(frozen=True)
class _Commit:
    """A transaction that committed: with a 64-bit xid, at an LSN."""

    xid: int
    lsn: int
    is_seen: bool
    """Whether the snapshot saw it, by PostgreSQL's own definition."""


@dataclass(frozen=True)
class _History:
    """What a server did before and after it took a snapshot."""

    snapshot: Snapshot
    sees_until: Lsn
    commits: Sequence[_Commit]
    """In the order of their LSNs."""


def _history(seed: int, next_xid: int) -> _History:
    """Run transactions; each writes its commit record, and ends for snapshots at once or some steps later.

    One that was prepared keeps its xid for long. Some never commit.
    """
    source, lsn = random.Random(seed), 1000
    running, ending, commits = list[int](), list[int](), list[tuple[int, int]]()
    steps, at = 400, source.randrange(100, 300)
    taken, until = Snapshot(0, 0, (), Lsn(0)), Lsn(0)
    for step in range(steps):
        lsn += source.randrange(8, 80)
        if step == at:
            active = sorted([*running, *ending])
            taken = Snapshot(min(active, default=next_xid), next_xid, tuple(active), Lsn(lsn - 8))
            until = Lsn(lsn)
        match source.choices(("begin", "commit", "end", "rollback"), (5, 4, 4, 1))[0]:
            case "begin":
                running.append(next_xid)
                next_xid += source.choice((1, 1, 1, 2, 5))
            case "commit" if running:
                # Mostly a young one: the others run on, as prepared ones do.
                xid = running.pop(source.choice((-1, -1, source.randrange(len(running)))))
                commits.append((xid, lsn))
                if source.random() < 0.5:
                    ending.append(xid)
            case "end" if ending:
                ending.pop(source.randrange(len(ending)))
            case "rollback" if running:
                running.pop(source.randrange(len(running)))
            case _:
                pass
    seen = (xid < taken.xmin or (xid < taken.xmax and xid not in taken.xip) for xid, _ in commits)
    return _History(taken, until, [_Commit(*commit, is_seen) for commit, is_seen in zip(commits, seen, strict=True)])


def _columns(commits: Sequence[_Commit]) -> tuple[Numbers, Numbers]:
    lsns, xids = ([getattr(commit, name) for commit in commits] for name in ("lsn", "xid"))
    return np.array(lsns, np.int64), np.array(xids, np.int64) % _XIDS


BEGINS = (3, 2**31 - 60, _XIDS - 60, 5 * _XIDS - 100, 7 * _XIDS + 3)
"""Xids to begin with: some wrap around in what follows."""


@pytest.mark.parametrize("next_xid", BEGINS)
def test_lsns_say_what_xids_say(next_xid: int) -> None:
    """Of all commits, also where some wait for long after their commit record, as for a synchronous standby."""
    has_contained = 0
    for seed in range(100):
        history = _history(seed, next_xid)
        lsns, xids = _columns(history.commits)
        visibility = Visibility.of_commits(history.snapshot, history.sees_until, lsns, xids)
        assert visibility.adds(lsns, xids).tolist() == [not commit.is_seen for commit in history.commits]
        assert Visibility.read(visibility.details()) == visibility
        has_contained += bool(visibility.contained)
    assert 10 < has_contained < 100


def _index(history: _History, source: random.Random, earlier: Sequence[tuple[int, int]], void: bool) -> LogIndex:
    """Return the index of a log of these commits, with a copy of format 2 somewhere at its time or before.

    ``earlier`` are commits, as xids and LSNs, of long before; with ``void`` some of a lost history precede the copy.
    """
    commits = [*earlier, *((commit.xid, commit.lsn) for commit in history.commits)]
    first_later = len(earlier) + sum(commit.lsn < history.snapshot.lsn for commit in history.commits)
    at = source.randrange(len(earlier), first_later + 1)
    indexes, seq = list[SegmentIndex](), 0
    copy = TableCopy(-1, 7, "public", "t", history.snapshot, 0, 0, 0)
    rows, events, first_seq = list[dict[str, object]](), list[dict[str, object]](), 0
    for number in range(len(commits) + 1):
        if number == at:
            if void:
                xid = history.snapshot.xmax + 1000
                rows.append(_row(seq, seq + 1, xid, 10**7))
                seq += 2
                events.append(
                    _event(
                        LogEvent(
                            BEGUN_ANEW, Lsn(0), details={"reason": "", "void_after": 10**6, "snapshot": [0, 0, []]}
                        ),
                        seq,
                    )
                )
                seq += 1
            events.append(_event(LogEvent(COPIED_TABLE, history.snapshot.lsn, details=copy.said()), seq))
            seq += 1
        if number < len(commits):
            rows.append(_row(seq, seq + 1, *commits[number]))
            seq += 2
        if (source.random() < 0.1 or number == len(commits)) and seq > first_seq:
            columns = {"transactions": struct_array("transactions", rows), "events": struct_array("events", events)}
            indexes.append(SegmentIndex.from_lists(first_seq, seq - 1, 0, **columns))
            rows, events, first_seq = [], [], seq
    return LogIndex.concat(indexes)


def _row(first: int, last: int, xid: int, lsn: int) -> dict[str, object]:
    told = {"seq": last, "xid": xid % _XIDS, "gid": None, "streamed": False, "outcome": "committed", "commit_time": 0}
    return told | {"commit_lsn": lsn, "end_lsn": lsn + 8, "spans": [{"first": first, "last": last}], "aborted": []}


def _event(event: LogEvent, seq: int) -> dict[str, object]:
    return {"seq": seq, "name": event.name, "lsn": int(event.lsn), "time": 0, "payload": event.payload()}


@pytest.mark.slow
@pytest.mark.parametrize("void", [False, True])
@pytest.mark.parametrize("next_xid", BEGINS)
def test_logs_of_format_2(next_xid: int, void: bool) -> None:
    """Their copies contain what they contained; also after billions of transactions, and a lost history."""
    for seed in range(15):
        history, source = _history(seed, next_xid), random.Random(seed)
        steps = range(next_xid - 3 * _XIDS, next_xid, 2**30) if next_xid > 3 * _XIDS else ()
        earlier = [(xid, 100 + number) for number, xid in enumerate(steps)]
        (copy,) = copies_of(_index(history, source, earlier, void))
        lsns, xids = _columns(history.commits)
        assert copy.visibility.adds(lsns, xids).tolist() == [not commit.is_seen for commit in history.commits]
        old = np.array([lsn for _, lsn in earlier], np.int64), np.array([xid for xid, _ in earlier], np.int64) % _XIDS
        assert not copy.visibility.adds(*old).any()


def test_a_log_of_format_2_that_is_not_at_its_copy() -> None:
    """While the stream lags, the copy contains everything; in a log without commits nothing is added."""
    history = _history(5, 900)
    copy = TableCopy(0, 7, "public", "t", history.snapshot, 0, 0, 0)
    event = _event(LogEvent(COPIED_TABLE, history.snapshot.lsn, details=copy.said()), 0)
    alone = SegmentIndex.from_lists(0, 0, 0, events=struct_array("events", [event]))
    (found,) = copies_of(alone)
    assert found.visibility == Visibility.at(history.snapshot.lsn)
    seen = [commit for commit in history.commits if commit.is_seen][:3]
    rows = [_row(1 + 2 * number, 2 + 2 * number, commit.xid, commit.lsn) for number, commit in enumerate(seen)]
    later = SegmentIndex.from_lists(1, 6, 0, transactions=struct_array("transactions", rows))
    (found,) = copies_of(SegmentIndex.concat([alone, later]))
    assert not found.visibility.adds(*_columns(seen)).any()
