"""Connections that copy: they read all or fail, and in one order."""

from typing import Final

from pgoutput_construct.postgres.connection import connect
from pgoutput_construct.postgres.queries import run
from pgoutput_construct.postgres.waiting import Asked, Patience, PatientConnection

__all__ = ["connect_to_copy"]

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
    for name, value in _SETTINGS.items():
        run(connection, f"SET {name} = '{value}'")
    return connection
