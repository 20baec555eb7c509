"""What a copy contains by LSNs is what its snapshot sees by xids: in histories of transactions that are drawn."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from pgoutput_construct.changelog._facts.visibility import Snapshot, Visibility
from pgoutput_construct.changelog._segment.block import Numbers
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

    One that was prepared keeps its xid for long. Some never commit. The WAL insert position is read some steps after
    the snapshot was taken.
    """
    source, lsn = random.Random(seed), 1000
    running, ending, commits = list[int](), list[int](), list[tuple[int, int]]()
    steps, at, wait = 400, source.randrange(100, 300), source.randrange(20)
    taken, until = Snapshot(0, 0, (), Lsn(0)), Lsn(0)
    for step in range(steps):
        lsn += source.randrange(8, 80)
        if step == at:
            active = sorted([*running, *ending])
            taken = Snapshot(min(active, default=next_xid), next_xid, tuple(active), Lsn(lsn - 8))
        if step == at + wait:
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


@pytest.mark.parametrize("xmax", [100, 2**31, _XIDS - 1, _XIDS, 5 * _XIDS + 7])
def test_xids_on_both_sides_of_a_snapshot(xmax: int) -> None:
    """As far as xids can be compared, those from ``xmax`` on are not seen, and of those before, the running ones."""
    away = np.array([1 - 2**31, -(2**30), -2, -1, 0, 1, 2**30, 2**31 - 1], np.int64)
    snapshot = Snapshot(xmax - 2, xmax, (xmax - 2,), Lsn(1))
    assert snapshot.invisible((away + xmax) % _XIDS).tolist() == [False, False, True, False, True, True, True, True]


def test_xids_that_come_again() -> None:
    """What commits from ``sees_until`` on is not in the copy, whatever its xid is."""
    snapshot, until = Snapshot(90, 95, (92,), Lsn(30)), Lsn(40)
    lsns, xids = np.array([10, 20, 30, 40, 50]), np.array([92, 91, 93, 91, 93])
    visibility = Visibility.of_commits(snapshot, until, lsns, xids)
    assert visibility == Visibility(Lsn(10), frozenset({91, 93}), until)
    assert visibility.adds(lsns, xids).tolist() == [True, False, False, True, True]
    assert Visibility.of_commits(snapshot, until, np.array([40, 50]), np.array([80, 81])) == Visibility.at(until)
