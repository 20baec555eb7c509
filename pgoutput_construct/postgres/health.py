"""How the logical slots of a server are: who reads them, how far behind they are, what they hold, what is wrong."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row

from pgoutput_construct.postgres.connection import describe_error
from pgoutput_construct.wire import Lsn

__all__ = ["SlotHealth", "slot_health"]

# All columns, whatever they are: wal_status came with PostgreSQL 13, inactive_since and invalidation_reason with 17.
_SLOTS = """
SELECT slot.*, slot.restart_lsn - '0/0' AS restart, slot.confirmed_flush_lsn - '0/0' AS confirmed,
    server.lsn - '0/0' AS server_position, server.lsn - slot.confirmed_flush_lsn AS lag,
    server.lsn - slot.restart_lsn AS retained, age(slot.catalog_xmin) AS catalog_age,
    reader.application_name, reader.client_addr::text AS client, reader.state AS reader_state
FROM (SELECT CASE WHEN pg_is_in_recovery()
        THEN greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())
        ELSE pg_current_wal_flush_lsn() END AS lsn) AS server
    CROSS JOIN pg_replication_slots AS slot
    LEFT JOIN pg_stat_replication AS reader ON reader.pid = slot.active_pid
WHERE slot.slot_type = 'logical' ORDER BY slot.slot_name"""

# A slot's restart_lsn cannot pass the begin of a transaction that still runs, nor that of one that is prepared.
_OLDEST = """
SELECT 'transaction ' || backend_xid || ' of pid ' || pid || ' (' || coalesce(state, 'unknown state') || ')' AS holder,
    xact_start AS since, age(backend_xid) AS age FROM pg_stat_activity WHERE backend_xid IS NOT NULL
UNION ALL
SELECT 'prepared transaction ' || quote_literal(gid), prepared, age(transaction) FROM pg_prepared_xacts
ORDER BY age DESC LIMIT 1"""

_LOST = "begin a new log with a new slot and a new copy of the tables"
_STATUS = {
    "unreserved": "its WAL is removed at the next checkpoint unless its reader catches up: raise "
    "max_slot_wal_keep_size, or speed up the reader",
    "lost": f"the server has removed WAL that it needs; drop it, and {_LOST}",
}


@dataclass(frozen=True)
class SlotHealth:
    """One logical slot, as the server saw it at one moment; None where its version does not say."""

    name: str
    plugin: str
    database: str
    temporary: bool
    active_pid: int | None
    """The server process of its reader, None when nobody reads."""
    reader: str
    """Who reads: application name, address and state; empty when nobody does."""
    inactive_since: datetime | None
    restart_lsn: Lsn | None
    """The server keeps all WAL from here on."""
    confirmed_lsn: Lsn | None
    """Its reader has everything before this durably."""
    server_lsn: Lsn
    """The end of the server's WAL (of a standby's, that it has received)."""
    lag_bytes: int | None
    """WAL behind ``confirmed_lsn``."""
    retained_bytes: int | None
    """WAL that is kept because of this slot."""
    safe_wal_size: int | None
    """Bytes of WAL that can be written before the slot is in danger of being lost; None also without a limit."""
    wal_status: str | None
    """``reserved``, ``extended``, ``unreserved`` or ``lost``."""
    invalidation_reason: str | None
    catalog_xmin_age: int | None
    """Transactions since the oldest whose removed catalog rows VACUUM must keep for it."""
    two_phase: bool
    failover: bool
    """Whether it is synchronized to standbys (PostgreSQL 17)."""
    synced: bool
    """Whether it is such a copy on a standby."""
    holder: str
    """The oldest transaction that is open on the server, which keeps every ``restart_lsn`` from moving on."""

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with it, in words; empty for a healthy slot."""
        found = []
        if self.invalidation_reason and self.wal_status != "lost":
            found.append(f"invalidated ({self.invalidation_reason}): drop it, and {_LOST}")
        if self.wal_status in _STATUS:
            reason = f" ({self.invalidation_reason})" if self.invalidation_reason else ""
            found.append(f"{self.wal_status}{reason}: {_STATUS[self.wal_status]}")
        elif self.active_pid is None and not self.synced:
            found.append("nobody reads it, and it keeps WAL: start its reader, or drop it")
        return tuple(found)


def slot_health(connection: psycopg.Connection[Any], slot: str | None = None) -> list[SlotHealth]:
    """Return the logical slots of a server by name, or only one; raise ReplicationError when it cannot be asked.

    ``connection`` is any connection to it; a role that may not read pg_stat_activity of others sees less of readers
    and holders (grant it pg_monitor).
    """
    try:
        with connection.cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(_SLOTS).fetchall()
            oldest = cursor.execute(_OLDEST).fetchone()
    except psycopg.Error as error:
        raise describe_error(error, "the replication slots cannot be read") from error
    holder = f"{oldest['holder']} since {oldest['since']}" if oldest and oldest["holder"] else ""
    return [_health(row, holder) for row in rows if slot in (None, row["slot_name"])]


def _health(row: dict[str, Any], holder: str) -> SlotHealth:
    parts = (row["application_name"], row["client"], row["reader_state"])
    return SlotHealth(
        name=row["slot_name"],
        plugin=row["plugin"],
        database=row["database"],
        temporary=row["temporary"],
        active_pid=row["active_pid"],
        reader=", ".join(filter(None, parts)),
        inactive_since=row.get("inactive_since"),
        restart_lsn=_lsn(row["restart"]),
        confirmed_lsn=_lsn(row["confirmed"]),
        server_lsn=Lsn(int(row["server_position"] or 0)),
        lag_bytes=_bytes(row["lag"]),
        retained_bytes=_bytes(row["retained"]),
        safe_wal_size=_bytes(row.get("safe_wal_size")),
        wal_status=row.get("wal_status"),
        invalidation_reason=row.get("invalidation_reason"),
        catalog_xmin_age=row["catalog_age"],
        two_phase=bool(row.get("two_phase")),
        failover=bool(row.get("failover")),
        synced=bool(row.get("synced")),
        holder=holder,
    )


def _lsn(value: Any) -> Lsn | None:
    return None if value is None else Lsn(int(value))


def _bytes(value: Any) -> int | None:
    return None if value is None else max(int(value), 0)
