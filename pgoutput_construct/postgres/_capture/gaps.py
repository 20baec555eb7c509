"""Where a log cannot go on with what its slot has: refused with the remedy, or (``on_lost_slot``) begun anew.

**What of the log still counts then.** A slot that was dropped is mostly all that has happened: the server has each
transaction of the log, and histories and reads as of an earlier moment need them. But the server may have been put back
to before them, too, and without the slot nothing says how far (on one timeline PostgreSQL keeps no mark of its history
but its WAL, which may be gone). Whatever happened, its new copies must not get ghosts: a transaction counts on top of a
copy when its xid is not visible to the copy's snapshot, and xids of a lost history may still be to come.

So the server's snapshot decides, by the rule with which copies are read (``Snapshot.invisible``). What it does not
show has not ended on this server, although the log says that it has: it is of another history. So is all that ended
after it, since WAL is written from one end to the other, and all that ended after the end of the server's WAL. These
are void. All else is visible to each later snapshot, too: no copy has it twice, or lacks it. What a lost history had
under xids that the server has used for others meanwhile stays in histories as what the log saw, until the new copies.
A commit that still waits for a synchronous standby is not visible either: it is void, and the copies have it.
"""

import logging
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._facts.events import BEGUN_ANEW, CONNECTED, CREATED_SLOT, OPTIONS_CHANGED
from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.changelog._index.indexes import indexes_of
from pgoutput_construct.changelog._index.listing import list_log
from pgoutput_construct.changelog._index.planning import committed, lost_ends
from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.changelog._segment.footer import Position
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.changelog.writer import LogWriter
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.postgres._snapshot.snapshots import check_can_copy, read_snapshot
from pgoutput_construct.postgres.connection import Connection, current_lsn
from pgoutput_construct.postgres.slots import LostSlotError, UndecodableSlotError, drop_slot, slot_health
from pgoutput_construct.wire import Lsn

__all__ = ["REMEDY", "LogGapError", "OnLostSlot", "Recovery", "announce", "announce_slot", "begin_anew", "near_ones"]


OnLostSlot: TypeAlias = Literal["snapshot", "stop"]
"""What a capture does where changes are missing: have all tables copied again, and go on; or end with the remedy."""

REMEDY = (
    "begin a new log in an empty directory, with a new slot and an initial copy of the tables, or have all tables "
    "copied again into this one (--on-lost-slot snapshot, on_lost_slot='snapshot')"
)
"""What to do about it, for errors."""

_XIDS: Final = 1 << 32
_LOG = logging.getLogger("pgoutput_construct")


class LogGapError(ChangeLogError):
    """Changes are missing between the log and its slot, or the log has some of a history that the server lost."""

    def __init__(self, text: str, void_after: Lsn | None = None) -> None:
        """Say what is wrong; transactions of the log that ended after ``void_after`` are not in the server's past."""
        super().__init__(text)
        self.void_after = void_after


@dataclass
class Recovery:
    """How far a log has come in getting over a gap, over however many connections that takes."""

    gap: LogGapError | UndecodableSlotError | None = None
    """What a stream has found: why the log begins again, or its slot is dropped, before the next one."""
    begun_anew: bool = False
    """The log begins anew, and what copies tables does not know it yet."""


def begin_anew(
    connection: Connection, options: LogOptions, writer: LogWriter, gap: LogGapError | LostSlotError
) -> None:
    """Have the log go on from where its slot is, or the next one begins, and say so in it; drop a slot that is lost.

    A slot that cannot be decoded is dropped, too.

    The tables of the log are stale from there. Raises ReplicationError, as on a standby, whose tables cannot be copied.
    """
    check_can_copy(connection)
    reason = gap.reason if isinstance(gap, UndecodableSlotError) else str(gap)
    _LOG.warning("the log in %s begins anew, with copies of all tables: %s", writer.store, reason)
    found = slot_health(connection, options.slot)
    if found and (found[0].lost or isinstance(gap, UndecodableSlotError)):
        drop_slot(connection, options.slot)
        found = []
    confirmed = found[0].confirmed_lsn if found else None
    announce(writer, options)
    snapshot = read_snapshot(connection, current_lsn(connection))
    void_after = _void_after(writer, snapshot, gap)
    if confirmed is not None and void_after is not None:  # what comes again is not to be there twice
        void_after = min(void_after, confirmed)
    told = {"reason": reason, "snapshot": [snapshot.xmin, snapshot.xmax, list(snapshot.xip)]}
    writer.append_fact(BEGUN_ANEW, snapshot.lsn, **told, void_after=None if void_after is None else int(void_after))
    writer.restart_at(Position(confirmed) if confirmed else Position())


def _void_after(writer: LogWriter, snapshot: Snapshot, gap: LogGapError | LostSlotError) -> Lsn | None:
    """Return the position after which nothing counts that the log has from before the gap; None where all does."""
    found = [gap.void_after if isinstance(gap, LogGapError) else None, _first_unseen(writer.store, snapshot)]
    if snapshot.lsn < writer.noted_lsn:
        found.append(snapshot.lsn)
    return min((lsn for lsn in found if lsn is not None), default=None)


def _first_unseen(store: LogStore, snapshot: Snapshot) -> Lsn | None:
    """Return the last position before all transactions of a log that ``snapshot`` does not show; None without any.

    Only those are compared whose xids are less than 2^31 away from the snapshot, as far as the log itself tells: xids
    wrap around, and those of older transactions look like later ones.
    """
    index = indexes_of(list_log(store))
    transactions = committed(index.transactions, lost_ends(index))
    xids = transactions["xid"].to_numpy()
    unseen = snapshot.invisible(xids) & near_ones(xids)
    first = pc.min(transactions["end_lsn"].filter(pa.array(unseen))).as_py()
    return None if first is None else Lsn(first - 1)


def near_ones(xids: Numbers) -> Flags:
    """Return which transactions, in the order of the log, began less than a quarter of all xids before the last one.

    Transactions end in nearly the order in which they begin, so that from one to the next an xid differs by little,
    up or down; the sum of these differences is how far away it is. A quarter, since the snapshot may be as far away.
    """
    steps = (np.diff(xids) + _XIDS // 2) % _XIDS - _XIDS // 2
    numbers = np.append(0, np.cumsum(steps))
    return np.asarray(numbers.max(initial=0) - numbers < _XIDS // 4, np.bool_)[: len(xids)]


def announce(writer: LogWriter, options: LogOptions) -> None:
    """Let ``writer`` go on under ``options``, and write into the log what is different from before.

    Raises ChangeLogError when the log cannot go on with them.
    """
    before, now = writer.options, options
    changes = {} if before is None else before.changes(now)
    changes.pop("log_format", None)
    if before is not None and before.timeline_origin is None:
        changes.pop("timeline_origin", None)  # it is known now, and no other one
    writer.use(now, said=changes)
    lsn = writer.position.complete_lsn
    if changes:
        _LOG.warning("the log goes on with other options: %s", "; ".join(map(_described, changes.items())))
        writer.append_event(OPTIONS_CHANGED, lsn, **changes)
    told = {"slot": now.slot, "timeline": now.timeline, "server_version": now.server_version}
    writer.append_event(CONNECTED, lsn, **told)


def announce_slot(writer: LogWriter, slot: str, lsn: Lsn, snapshot: Snapshot | None) -> None:
    """Write into the log that the slot was created, at a position, and what the snapshot contains that came with it."""
    told = None if snapshot is None else [snapshot.xmin, snapshot.xmax, list(snapshot.xip)]
    writer.append_event(CREATED_SLOT, lsn, slot=slot, snapshot=told)


def _described(change: tuple[str, tuple[Any, Any]]) -> str:
    name, (before, now) = change
    return f"{name}: {now!r}, before {before!r}"
