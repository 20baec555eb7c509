"""Who a server is, how far its WAL reaches, and whether it can decode it."""

from typing import Any

from pgoutput_construct.catalog_queries import FLUSHED_LSN, IS_STANDBY
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.queries import Connection, ask_one, fetch_row
from pgoutput_construct.wire import Lsn

__all__ = ["check_wal_level", "current_lsn", "identify", "is_standby"]

_RAISED_SINCE = 190000


def identify(connection: Connection) -> dict[str, Any]:
    """Ask a replication connection who its server is: the fields of LogOptions from server_version to timeline."""
    system, timeline, _, database = fetch_row(connection, "IDENTIFY_SYSTEM")
    return {
        "server_version": connection.info.server_version,
        "system_identifier": str(system),
        "timeline": int(timeline),
        "database": str(database),
    }


def is_standby(connection: Connection) -> bool:
    """Return whether the server is in recovery: it replays the WAL of another."""
    return bool(ask_one(connection, IS_STANDBY))


def current_lsn(connection: Connection) -> Lsn:
    """Return the end of the server's flushed WAL (a standby: of the WAL that it has received or replayed)."""
    return Lsn(int(ask_one(connection, FLUSHED_LSN)))


def check_wal_level(connection: Connection) -> None:
    """Raise ReplicationError unless the server of ``connection`` can decode, or will with the first slot.

    Since PostgreSQL 19 a primary with ``wal_level = replica`` writes what decoding needs while it has a logical
    slot (EnsureLogicalDecodingEnabled); a standby only follows its primary. ``effective_wal_level`` shows it.
    """
    level = fetch_row(connection, "SHOW wal_level")[0]
    if level == "logical":
        return
    if connection.info.server_version < _RAISED_SINCE or level != "replica":
        raise ReplicationError(
            f"wal_level is {level}, logical decoding needs logical; run ALTER SYSTEM SET wal_level = "
            "'logical' and restart the server"
        )
    if is_standby(connection) and fetch_row(connection, "SHOW effective_wal_level")[0] != "logical":
        raise ReplicationError(
            "the standby's primary does not write what logical decoding needs (effective_wal_level is replica); create "
            "a logical slot on the primary, or run ALTER SYSTEM SET wal_level = 'logical' there and restart it"
        )
