"""How the replication slots of a server are: what each holds back, who reads it, and what is wrong with it."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from pgoutput_construct.catalog_queries import BLOCKING_WRITER, SLOTS
from pgoutput_construct.postgres.connection import connect
from pgoutput_construct.postgres.queries import Connection, ask
from pgoutput_construct.postgres.server import current_lsn
from pgoutput_construct.wire import Lsn

__all__ = ["SlotHealth", "slot_health"]


@dataclass(frozen=True, kw_only=True)
class SlotHealth:
    """One replication slot, as the server describes it (view pg_replication_slots); None where it does not say."""

    name: str
    """Its name."""
    plugin: str | None
    """The output plugin; None for a slot of physical replication."""
    database: str | None
    """The database whose changes it gives; None for a physical one."""
    temporary: bool
    """It ends with the connection that made it."""
    active_pid: int | None
    """The process that serves its reader; None when nobody reads it."""
    reader: str | None
    """User, application and host of its reader, as far as they may be seen."""
    wal_status: str | None
    """``reserved``, ``extended``, ``unreserved`` (soon lost) or ``lost``."""
    invalidation_reason: str | None
    """Why it is lost, such as ``wal_removed`` (PostgreSQL 17; 16 says ``conflict`` on a standby)."""
    restart_lsn: Lsn | None
    """The server keeps the WAL from here on."""
    confirmed_lsn: Lsn | None
    """The reader confirmed everything before this position."""
    lag_bytes: int | None
    """From the confirmed position to the end of the WAL."""
    retained_bytes: int | None
    """From the restart position to the end of the WAL: the WAL that the slot keeps on the disk."""
    safe_wal_size: int | None
    """Bytes that may still be written before the slot is in danger (max_slot_wal_keep_size)."""
    xmin_age: int | None
    """How many transactions old the rows of the catalog are that VACUUM must keep for it."""
    two_phase: bool
    """Prepared transactions are sent at PREPARE TRANSACTION."""
    failover: bool
    """It is synchronized to standbys (PostgreSQL 17)."""
    synced: bool
    """It is the copy, on a standby, of a slot of its primary (PostgreSQL 17)."""
    inactive_since: str | None
    """Since when nobody reads it (PostgreSQL 17)."""
    held_by: str
    """What keeps it where it is: its reader, nobody, or the oldest transaction that still writes."""

    @property
    def lost(self) -> bool:
        """True when the server removed what the slot needs: it never gives changes again."""
        return self.invalidation_reason is not None or self.wal_status == "lost"

    @property
    def problem(self) -> str | None:
        """What is wrong with it, and what to do; None when nothing is."""
        if self.lost:
            reason = self.invalidation_reason or "wal_removed"
            return (
                f"slot {self.name!r} is lost ({reason}): the server removed what it needs to go on; drop it (SELECT "
                f"pg_drop_replication_slot({self.name!r})), create a new one, and begin a new log with an initial copy "
                "of the tables; or have a capture do so in its log (--on-lost-slot snapshot, on_lost_slot='snapshot')"
            )
        if self.wal_status == "unreserved":
            return f"slot {self.name!r} is about to be lost (max_slot_wal_keep_size): let its reader catch up"
        return None


def slot_health(source: str | Connection, slot: str | None = None) -> list[SlotHealth]:
    """Describe the replication slots of a server, or the one named ``slot``, ordered by name.

    ``source`` is a connection string or an open connection. Raises ReplicationError.
    """
    opened = connect(source, replication=False) if isinstance(source, str) else nullcontext(source)
    with opened as connection:
        rows = ask(connection, SLOTS, slot=slot)
        if not rows:
            return []
        end = current_lsn(connection)
        writer = next((str(row["writer"]) for row in ask(connection, BLOCKING_WRITER) if row["writer"]), None)
        return [_health(row["slot"], row["xmin_age"], row["reader"] or None, end, writer) for row in rows]


def _health(row: Mapping[str, Any], age: int | None, reader: str | None, end: Lsn, writer: str | None) -> SlotHealth:
    restart, confirmed = _lsn(row["restart_lsn"]), _lsn(row.get("confirmed_flush_lsn"))
    return SlotHealth(
        name=row["slot_name"],
        plugin=row["plugin"],
        database=row["database"],
        temporary=row["temporary"],
        active_pid=row["active_pid"],
        reader=reader,
        wal_status=row.get("wal_status"),
        invalidation_reason=row.get("invalidation_reason") or _conflict(row),
        restart_lsn=restart,
        confirmed_lsn=confirmed,
        lag_bytes=None if confirmed is None else max(end - confirmed, 0),
        retained_bytes=None if restart is None else max(end - restart, 0),
        safe_wal_size=row.get("safe_wal_size"),
        xmin_age=age,
        two_phase=bool(row.get("two_phase")),
        failover=bool(row.get("failover")),
        synced=bool(row.get("synced")),
        inactive_since=row.get("inactive_since"),
        held_by=_holder(row, reader, writer),
    )


def _conflict(row: Mapping[str, Any]) -> str | None:
    # PostgreSQL 16 calls every invalidated slot conflicting; where WAL was removed it has no restart position any more.
    return "conflict" if row.get("conflicting") and row["restart_lsn"] is not None else None


def _holder(row: Mapping[str, Any], reader: str | None, writer: str | None) -> str:
    if row["active_pid"] is None:
        since = row.get("inactive_since")
        return "nobody reads it" + (f" since {since}" if since else "")
    who = f"its reader, pid {row['active_pid']}" + (f" ({reader})" if reader else "")
    # The restart position cannot pass the beginning of a transaction that still writes.
    return f"{who}, or {writer}" if writer else who


def _lsn(text: str | None) -> Lsn | None:
    return None if text is None else Lsn(text)
