"""Gaps between a log and its slot: an error with the remedy, or (``on_lost_slot='snapshot'``) a restart of the log.

**Which transactions of the log still count after a restart.** Usually only the slot was dropped: the server has every
transaction of the log, and table histories and reads as of an earlier time need them. But the server may also have been
reset to a state before some of them, and without the slot nothing records how far: within one timeline PostgreSQL's
only record of its history is its WAL, which may have been removed. In either case the new table copies must not pick up
changes of the lost history: a transaction counts in addition to a copy if its xid is invisible to the copy's snapshot,
and the server may not have reached the xids of the lost history yet.

So the server's current snapshot decides, by the same rule by which copies are read (``Snapshot.invisible``):

- A transaction that is invisible has not ended on this server, although the log says that it has: it belongs to another
  history. So do all transactions that ended after it, since WAL is sequential, and all that ended after the end of the
  server's WAL. These are void.
- Every other transaction is visible to all later snapshots too, so no new copy misses or repeats it.
- If the server has reused an xid of the lost history, that transaction looks visible. It stays in table histories as
  the log recorded it, until the new copies replace it.
- A commit that waits for a synchronous standby is still invisible. It is void, and the new copies contain it.
"""

import logging
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.changelog._index.indexes import indexes_of
from pgoutput_construct.changelog._index.listing import list_log
from pgoutput_construct.changelog._index.log_index import apart
from pgoutput_construct.changelog._index.planning import committed_transactions, lost_histories
from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.changelog._segment.events import BEGUN_ANEW, CONNECTED, CREATED_SLOT, OPTIONS_CHANGED
from pgoutput_construct.changelog._segment.footer import Position
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.changelog.writer import LogWriter
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.postgres._snapshot.snapshots import check_can_copy, read_snapshot
from pgoutput_construct.postgres.connection import Connection, current_lsn
from pgoutput_construct.postgres.replication_slots import LostSlotError, UndecodableSlotError, drop_slot, slot_health
from pgoutput_construct.wire import Lsn

__all__ = [
    "REMEDY",
    "LogGapError",
    "OnLostSlot",
    "Recovery",
    "are_recent",
    "record_connection",
    "record_new_slot",
    "restart_log",
]


OnLostSlot: TypeAlias = Literal["snapshot", "stop"]
"""What a capture does if changes were lost: ``snapshot`` copies all tables again, ``stop`` raises an error."""

REMEDY = (
    "start a new log in an empty directory, with a new slot and an initial copy of the tables, or copy all tables "
    "again into this one (--on-lost-slot snapshot, on_lost_slot='snapshot')"
)
"""The remedy, as errors end with it."""

_XIDS: Final = 1 << 32
_LOG = logging.getLogger("pgoutput_construct")


class LogGapError(ChangeLogError):
    """Changes between the log and its slot were lost, or the log has transactions that the server does not have."""

    def __init__(self, text: str, void_after: Lsn | None = None) -> None:
        """Describe the gap; the server does not have the transactions that ended in the log after ``void_after``."""
        super().__init__(text)
        self.void_after = void_after


@dataclass
class Recovery:
    """The state of recovering from a gap; it outlives the connection that found it."""

    gap: LogGapError | UndecodableSlotError | None = None
    """The gap that a stream found, which the next connection handles: it restarts the log."""
    restarted: bool = False
    """Whether the log was restarted and the copier has not been notified yet."""


def restart_log(
    connection: Connection, options: LogOptions, writer: LogWriter, gap: LogGapError | LostSlotError
) -> None:
    """Restart a log at its slot's LSN, and record that; all its tables are stale until they are copied again.

    A slot that is lost or cannot be decoded is dropped; the log then restarts where the next slot begins.

    Args:
        connection: A replication connection to the server.
        options: The options of the capture.
        writer: The writer of the log.
        gap: Why the log is restarted.

    Raises:
        ReplicationError: The server is a standby, from which no table can be copied; or a query fails.
    """
    check_can_copy(connection)
    reason = gap.reason if isinstance(gap, UndecodableSlotError) else str(gap)
    _LOG.warning("restarting the log in %s with new copies of all tables: %s", writer.store, reason)
    found = slot_health(connection, options.slot)
    if found and (found[0].lost or isinstance(gap, UndecodableSlotError)):
        drop_slot(connection, options.slot)
        found = []
    confirmed = found[0].confirmed_lsn if found else None
    record_connection(writer, options)
    snapshot = read_snapshot(connection, current_lsn(connection))
    void_after = _void_after(writer, snapshot, gap)
    if confirmed is not None and void_after is not None:  # the slot sends what follows again
        void_after = min(void_after, confirmed)
    details = {"reason": reason, "snapshot": [snapshot.xmin, snapshot.xmax, list(snapshot.xip)]}
    writer.append_fact(BEGUN_ANEW, snapshot.lsn, **details, void_after=None if void_after is None else int(void_after))
    writer.restart_at(Position(confirmed) if confirmed else Position())


def _void_after(writer: LogWriter, snapshot: Snapshot, gap: LogGapError | LostSlotError) -> Lsn | None:
    """Return the LSN after which the log's transactions from before the gap are void; None if all of them count."""
    bounds = [gap.void_after if isinstance(gap, LogGapError) else None, _lsn_before_invisible(writer.store, snapshot)]
    if snapshot.lsn < writer.noted_lsn:
        bounds.append(snapshot.lsn)
    return min((lsn for lsn in bounds if lsn is not None), default=None)


def _lsn_before_invisible(store: LogStore, snapshot: Snapshot) -> Lsn | None:
    """Return the last LSN before the first transaction that is invisible to ``snapshot``; None if all are visible.

    Only recent transactions are compared: xids wrap around, so those of older ones would look newer than the snapshot.
    """
    index = indexes_of(list_log(store))
    transactions = committed_transactions(index.transactions, lost_histories(index))
    xids = transactions["xid"].to_numpy()
    unseen = snapshot.invisible(xids) & are_recent(xids)
    first = pc.min(transactions["end_lsn"].filter(pa.array(unseen))).as_py()
    return None if first is None else Lsn(first - 1)


def are_recent(xids: Numbers) -> Flags:
    """Return which transactions are at most 2^30 xids (a quarter of the xid space) older than the newest one.

    Transactions end in nearly the order in which they begin, so consecutive xids differ little, up or down; the sum of
    the differences is the distance without wrap-around. A quarter only, since the snapshot may be that far away too.

    ``xids`` are the 32-bit xids of the log's transactions, in the order of the log.
    """
    steps = apart(np.diff(xids))
    unwrapped = np.append(0, np.cumsum(steps))
    return np.asarray(unwrapped.max(initial=0) - unwrapped < _XIDS // 4, np.bool_)[: len(xids)]


def record_connection(writer: LogWriter, options: LogOptions) -> None:
    """Record in the log that a stream begins, and which options have changed since the last one.

    Raises ChangeLogError if the log cannot be continued with ``options``.
    """
    before, now = writer.options, options
    changes = {} if before is None else before.changes(now)
    if before is not None and before.timeline_origin is None:
        changes.pop("timeline_origin", None)  # it was unknown before, which is no change
    writer.use(now, said=changes)
    lsn = writer.position.complete_lsn
    if changes:
        _LOG.warning("the log continues with other options: %s", "; ".join(map(_describe_change, changes.items())))
        writer.append_event(OPTIONS_CHANGED, lsn, **changes)
    writer.append_event(CONNECTED, lsn, slot=now.slot, timeline=now.timeline, server_version=now.server_version)


def record_new_slot(writer: LogWriter, slot: str, lsn: Lsn, snapshot: Snapshot | None) -> None:
    """Record in the log that the capture created its slot.

    Args:
        writer: The writer of the log.
        slot: The name of the slot.
        lsn: The slot's consistent point, from which it sends changes.
        snapshot: The snapshot that was exported with the slot; None if there was none.
    """
    visible = None if snapshot is None else [snapshot.xmin, snapshot.xmax, list(snapshot.xip)]
    writer.append_event(CREATED_SLOT, lsn, slot=slot, snapshot=visible)


def _describe_change(change: tuple[str, tuple[Any, Any]]) -> str:
    name, (before, now) = change
    return f"{name}: {now!r}, previously {before!r}"
