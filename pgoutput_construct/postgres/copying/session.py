"""Connections that copy: they read all or fail, in one order, and nobody ends their transactions."""

from typing import Any, Final

from pgoutput_construct.postgres.connection import connect
from pgoutput_construct.postgres.queries import Connection, fetch, run
from pgoutput_construct.postgres.waiting import Asked, Patience, PatientConnection

__all__ = ["connect_to_copy", "connect_to_keep", "keep_transactions"]

_ENDLESS: Final = (
    "statement_timeout",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "transaction_timeout",
)
_SETTINGS: Final = {
    # Who waits for a lock gives way to another table; and others wait behind who waits.
    "lock_timeout": "10s",
    # An error where a policy would leave rows out: they would be missing without a word.
    "row_security": "off",
    # Rows come in the order of their pages, each time the same, so that a copy can go on where it was broken off.
    "synchronize_seqscans": "off",
    "enable_indexscan": "off",
    "enable_indexonlyscan": "off",
    "enable_bitmapscan": "off",
    "max_parallel_workers_per_gather": "0",
}


def connect_to_copy(dsn: str, asked: Asked | None) -> PatientConnection:
    """Open an ordinary connection that copies; ``asked`` ends its waits. Raises ReplicationError."""
    connection = connect(dsn, replication=False, patience=Patience(asked=asked))
    keep_transactions(connection)
    for name, value in _SETTINGS.items():
        run(connection, f"SET {name} = '{value}'")
    return connection


def connect_to_keep(dsn: str, patience: Patience) -> PatientConnection:
    """Open a replication connection that keeps a snapshot for as long as that takes. Raises ReplicationError."""
    connection = connect(dsn, patience=patience)
    keep_transactions(connection)
    return connection


def keep_transactions(connection: Connection) -> None:
    """Set no limit to how long statements and transactions of a connection may take."""
    names: list[Any] = [list(_ENDLESS)]
    fetch(connection, "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = ANY(%s)", names)
