"""Slots, publications and settings of a server: made, and checked with errors that say what to run."""

from collections.abc import Iterable, Sequence
from typing import Any

import psycopg
from psycopg import sql

from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.connection import describe_error
from pgoutput_construct.wire import Lsn

__all__ = ["check_publications", "check_slot", "check_wal_level", "create_slot", "current_lsn", "drop_slot", "identify"]

Connection = psycopg.Connection[Any]


def identify(connection: Connection) -> dict[str, Any]:
    """Ask a replication connection who its server is: server_version, system_identifier, database (LogOptions)."""
    system, _, _, database = _row(connection, "IDENTIFY_SYSTEM")
    version = connection.info.server_version
    return {"server_version": version, "system_identifier": str(system), "database": str(database)}


def current_lsn(connection: Connection) -> Lsn:
    """Return the end of the server's flushed WAL (a standby: of its received WAL)."""
    query = """SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn()
               ELSE pg_current_wal_flush_lsn() END - '0/0'::pg_lsn"""
    return Lsn(int(_row(connection, query)[0]))


def check_wal_level(connection: Connection) -> None:
    """Raise ReplicationError unless the ``wal_level`` of the server behind ``connection`` is ``logical``."""
    level = _row(connection, "SHOW wal_level")[0]
    if level != "logical":
        raise ReplicationError(
            f"wal_level is {level}, logical decoding needs logical; run ALTER SYSTEM SET wal_level = "
            "'logical' and restart the server"
        )


def check_publications(connection: Connection, publications: Iterable[str]) -> None:
    """Raise ReplicationError for the first of ``publications`` that the database of ``connection`` does not have."""
    known = {row[0] for row in _rows(connection, "SELECT pubname FROM pg_publication")}
    for name in publications:
        if name not in known:
            create = sql.SQL("CREATE PUBLICATION {} FOR ALL TABLES").format(sql.Identifier(name))
            raise ReplicationError(
                f"there is no publication {name!r} in database {connection.info.dbname!r}; run "
                f"{create.as_string(connection)} (or FOR TABLE ...), and only then create the slot: decoding "
                "sees the catalog as it was when each change was made"
            )


def check_slot(connection: Connection, slot: str) -> Lsn:
    """Return the confirmed position of ``slot``; raise ReplicationError unless it gives pgoutput to ``connection``."""
    query = """SELECT plugin, database, confirmed_flush_lsn - '0/0'::pg_lsn
               FROM pg_replication_slots WHERE slot_name = %s"""
    rows = _rows(connection, query, [slot])
    if not rows:
        create = sql.SQL("SELECT pg_create_logical_replication_slot({}, 'pgoutput')").format(slot)
        raise ReplicationError(f"there is no replication slot {slot!r}; run {create.as_string(connection)}")
    plugin, database, confirmed = rows[0]
    if plugin != "pgoutput":
        raise ReplicationError(f"slot {slot!r} is of {plugin or 'physical replication'}, not of pgoutput")
    if database != connection.info.dbname:
        raise ReplicationError(f"slot {slot!r} is of database {database!r}, not {connection.info.dbname!r}")
    return Lsn(int(confirmed or 0))


def create_slot(connection: Connection, slot: str, *, two_phase: bool = False, temporary: bool = False) -> Lsn:
    """Create a logical slot of pgoutput and return the position from which it sends changes.

    ``two_phase`` (PostgreSQL 14) makes it send prepared transactions at PREPARE TRANSACTION. The server waits
    until the transactions that write now have ended. A ``temporary`` slot ends with ``connection``. Raises
    ReplicationError, also when the slot exists.
    """
    check_wal_level(connection)
    arguments: list[Any] = [slot, "pgoutput", temporary]
    if two_phase:
        arguments.append(True)
    marks = ", ".join(["%s"] * len(arguments))
    query = f"SELECT lsn - '0/0'::pg_lsn FROM pg_create_logical_replication_slot({marks})"
    return Lsn(int(_row(connection, query, arguments)[0]))


def drop_slot(connection: Connection, slot: str, *, missing_ok: bool = False) -> None:
    """Drop ``slot``, and with it the server's promise to keep the WAL that its reader has not confirmed.

    Raises ReplicationError for a slot that there is not, unless it is ``missing_ok``.
    """
    query = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s"
    if not _rows(connection, query, [slot]) and not missing_ok:
        raise ReplicationError(f"there is no replication slot {slot!r}")


def _row(connection: Connection, query: str, arguments: Sequence[Any] | None = None) -> Any:
    return _rows(connection, query, arguments)[0]


def _rows(connection: Connection, query: str, arguments: Sequence[Any] | None = None) -> list[Any]:
    try:
        return connection.execute(query.encode(), arguments).fetchall()
    except psycopg.Error as error:
        raise describe_error(error, f"{query.partition('(')[0].strip()} failed") from error
