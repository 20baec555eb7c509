"""Where a log cannot go on with what its slot has: refused with the remedy, or (``on_lost_slot``) begun anew."""

import logging
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pgoutput_construct.changelog.events import BEGUN_ANEW
from pgoutput_construct.changelog.footer import Position
from pgoutput_construct.changelog.options import LogOptions
from pgoutput_construct.changelog.writer import LogWriter
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.postgres.announcements import announce
from pgoutput_construct.postgres.copying.snapshots import check_can_copy, read_snapshot
from pgoutput_construct.postgres.health import slot_health
from pgoutput_construct.postgres.queries import Connection
from pgoutput_construct.postgres.server import current_lsn
from pgoutput_construct.postgres.slots import LostSlotError, UndecodableSlotError, drop_slot
from pgoutput_construct.wire import Lsn

__all__ = ["REMEDY", "LogGapError", "OnLostSlot", "Recovery", "begin_anew"]

OnLostSlot: TypeAlias = Literal["snapshot", "stop"]
"""What a capture does where changes are missing: have all tables copied again, and go on; or end with the remedy."""

REMEDY = (
    "begin a new log in an empty directory, with a new slot and an initial copy of the tables, or have all tables "
    "copied again into this one (--on-lost-slot snapshot, on_lost_slot='snapshot')"
)
"""What to do about it, for errors."""

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
    void_after = getattr(gap, "void_after", None)
    if confirmed is not None and void_after is not None:  # what comes again is not to be there twice
        void_after = min(void_after, confirmed)
    announce(writer, options)
    snapshot = read_snapshot(connection, current_lsn(connection))
    told = {"reason": reason, "snapshot": [snapshot.xmin, snapshot.xmax, list(snapshot.xip)]}
    writer.append_fact(BEGUN_ANEW, snapshot.lsn, **told, void_after=None if void_after is None else int(void_after))
    writer.begin_anew(Position(confirmed) if confirmed else Position())
