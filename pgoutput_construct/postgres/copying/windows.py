"""Commits that the log has had since a copy was begun, as far as its snapshot may not see them."""

import threading
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow.compute as pc

from pgoutput_construct.changelog.block import Numbers
from pgoutput_construct.changelog.footer import Segment
from pgoutput_construct.changelog.indexes import index_of
from pgoutput_construct.changelog.planning import committed
from pgoutput_construct.changelog.visibility import Snapshot, Visibility
from pgoutput_construct.wire import Lsn

__all__ = ["CommitWindow", "CommitWindows"]

_END: Final = Lsn(2**63 - 1)


@dataclass(eq=False)
class CommitWindow:
    """The commits of the log between two LSNs: those that the snapshot of a copy may see or not.

    It is opened before ``since`` is read from the server. A server sends nothing that it has not flushed, so what
    commits at its flush position or later comes after that, into a segment that the window is told of.
    """

    since: Lsn = field(default_factory=Lsn)
    """The snapshot sees all commits before this LSN."""
    until: Lsn = _END
    """The snapshot sees no commit from this LSN on (``Visibility.sees_until``)."""
    _lsns: list[Numbers] = field(default_factory=list)
    _xids: list[Numbers] = field(default_factory=list)

    def add(self, lsns: Numbers, xids: Numbers) -> None:
        """Take in the commits of one more segment."""
        is_within = (lsns >= int(self.since)) & (lsns < int(self.until))
        if is_within.any():
            self._lsns.append(lsns[is_within])
            self._xids.append(xids[is_within])

    def visibility(self, snapshot: Snapshot) -> Visibility:
        """Return what a snapshot contains, once the log has all commits before ``until``."""
        lsns, xids = (np.concatenate([np.empty(0, np.int64), *parts]) for parts in (self._lsns, self._xids))
        is_within = lsns >= int(self.since)  # some may have come before it was known
        return Visibility.of_commits(snapshot, self.until, lsns[is_within], xids[is_within])


class CommitWindows:
    """The windows that are open: opened and closed by who copies, filled by who writes the log."""

    def __init__(self) -> None:
        self._open: list[CommitWindow] = []
        self._lock = threading.Lock()

    def open(self) -> CommitWindow:
        """Begin to take in commits; ``close`` ends it."""
        window = CommitWindow()
        with self._lock:
            self._open.append(window)
        return window

    def close(self, window: CommitWindow | None) -> None:
        """Take in no more commits for a window; None, and one that is closed, is nothing."""
        with self._lock:
            self._open = [other for other in self._open if other is not window]

    def add(self, segment: Segment) -> None:
        """Take in the commits of a segment that has become durable."""
        with self._lock:
            windows = list(self._open)
        if not windows:
            return
        transactions = committed(index_of(segment).transactions)
        if transactions.num_rows and pc.max(transactions["commit_lsn"]).as_py() >= min(each.since for each in windows):
            lsns, xids = (transactions[name].to_numpy() for name in ("commit_lsn", "xid"))
            for window in windows:
                window.add(lsns, xids)
