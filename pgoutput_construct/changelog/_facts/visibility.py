"""Which transactions a snapshot sees, and which changes count in addition to a table copy that was made under it.

PostgreSQL decides visibility by xids: those that had not ended when the snapshot was taken are not in it. A log has
commits in the order of their LSNs instead, which do not wrap around, and in which a slot sends them. The two orders
differ only briefly: a commit record is in the WAL before its transaction leaves the ProcArray
(``RecordTransactionCommit()``, then ``ProcArrayEndTransaction()``), and may wait there for a synchronous standby. So

- whatever a snapshot sees has a commit record before ``sees_until``, the WAL insert position read after the snapshot
  was taken: what commits from there on is not in it;
- before ``place_lsn``, the first commit that it does not see, it sees everything;
- between the two it sees those transactions alone whose xids are ``contained``: mostly none.

A capture records this when the log has all commits before ``sees_until`` (``Visibility.of_commits``). Until then
nobody can say it, so until then the copy is not complete. Only top-level xids matter: a snapshot sees a subtransaction
when it sees the transaction that it is of, and what was rolled back is in neither.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, overload

import numpy as np

from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.wire import Lsn

__all__ = ["Snapshot", "Visibility"]

_XIDS: Final = 2**32


@dataclass(frozen=True)
class Snapshot:
    """Which transactions a server's snapshot contains, as pg_current_snapshot() says: with 64-bit xids."""

    xmin: int
    """All transactions before this have ended: the rows are as they left them."""
    xmax: int
    """The snapshot sees neither this transaction nor any later one."""
    xip: tuple[int, ...]
    """The transactions between the two that had not ended."""
    lsn: Lsn
    """An LSN that the server had reached when it made the snapshot."""

    @classmethod
    def parse(cls, text: str, lsn: Lsn) -> "Snapshot":
        """Return a snapshot that is written as ``xmin:xmax:xip,...``; raise ValueError for other text."""
        xmin, xmax, running = text.split(":")
        return cls(int(xmin), int(xmax), tuple(int(xid) for xid in running.split(",") if xid), lsn)

    def invisible(self, xids: Numbers) -> Flags:
        """Return for each top-level xid, as in messages, whether the snapshot does not see its transaction.

        Xids are 32 bits wide and wrap around: the transactions must be fewer than 2**31 away from the snapshot.
        """
        after = (xids - self.xmax % _XIDS) % _XIDS < _XIDS // 2
        return after | np.isin(xids, np.array([xid % _XIDS for xid in self.xip], np.int64))


@dataclass(frozen=True)
class Visibility:
    """Which transactions a table copy contains, by the LSNs of their commits."""

    place_lsn: Lsn
    """The copy contains all commits before this LSN."""
    contained: frozenset[int]
    """The top-level xids (32 bits) of those commits from ``place_lsn`` on that it contains, too."""
    sees_until: Lsn
    """It contains no commit from this LSN on."""

    @classmethod
    def at(cls, lsn: Lsn) -> "Visibility":
        """Return the visibility of a snapshot that sees exactly the commits before an LSN, like a new slot's."""
        return cls(lsn, frozenset(), lsn)

    @classmethod
    def of_commits(cls, snapshot: Snapshot, sees_until: Lsn, lsns: Numbers, xids: Numbers) -> "Visibility":
        """Return which transactions a snapshot contains.

        Args:
            snapshot: The snapshot.
            sees_until: The WAL insert position read after it was taken.
            lsns: The LSNs of commits: at least of all before ``sees_until`` that the snapshot may not see.
            xids: Their top-level xids, fewer than 2**31 away from the snapshot.
        """
        is_before = lsns < int(sees_until)
        lsns, xids = lsns[is_before], xids[is_before]
        unseen = snapshot.invisible(xids)
        first_unseen = int(lsns[unseen].min(initial=int(sees_until)))
        return cls(Lsn(first_unseen), frozenset(xids[~unseen & (lsns >= first_unseen)].tolist()), sees_until)

    @classmethod
    def read(cls, details: Mapping[str, Any]) -> "Visibility":
        """Return what the details of an event COPIED_TABLE say."""
        return cls(Lsn(details["place_lsn"]), frozenset(details["contained"]), Lsn(details["sees_until"]))

    def details(self) -> dict[str, Any]:
        """Return the visibility as details of an event."""
        return {
            "place_lsn": int(self.place_lsn),
            "contained": sorted(self.contained),
            "sees_until": int(self.sees_until),
        }

    @overload
    def adds(self, lsns: Numbers, xids: Numbers) -> Flags: ...

    @overload
    def adds(self, lsns: Any, xids: Any, is_in: Callable[[Any, list[int]], Any]) -> Any: ...

    def adds(self, lsns: Any, xids: Any, is_in: Callable[[Any, list[int]], Any] = np.isin) -> Any:
        """Return for each change whether it counts in addition to the copy.

        Args:
            lsns: The LSNs of their commits, as an array or as a column of a query.
            xids: The top-level xids of their transactions, as one, too.
            is_in: What tests whether values are in a list.
        """
        counts = lsns >= int(self.place_lsn)
        if self.contained:
            counts &= (lsns >= int(self.sees_until)) | ~is_in(xids, sorted(self.contained))
        return counts
