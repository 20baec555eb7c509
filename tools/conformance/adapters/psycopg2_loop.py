"""A slot that is followed with psycopg2's replication cursor; what a message means is up to a parser.

psycopg2 answers keepalives while it waits for messages, with the LSNs that it was last given; it does not connect
again: an error ends the program, and whoever supervises it starts it again.
"""

from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

import psycopg2  # type: ignore[import-untyped]
from psycopg2.extras import LogicalReplicationConnection  # type: ignore[import-untyped]

from pgoutput_construct.conformance.conformance_client import ClientTask
from tools.conformance.forked import Report

__all__ = ["TransactionParser", "follow"]

_STATUS_SECONDS: Final = 1


class TransactionParser:
    """Gathers the changes of a transaction; subclasses parse messages."""

    def __init__(self) -> None:
        self.changes: list[dict[str, Any]] = []

    def take(self, data: bytes) -> int | None:
        """Take a message; return the end of the transaction if it is a Commit."""
        raise NotImplementedError


def follow(task: ClientTask, report: Report, make: Callable[[], TransactionParser]) -> None:
    """Report what a parser gathers, transaction by transaction, and confirm each."""
    parser = make()

    def read(message: Any) -> None:
        end = parser.take(message.payload)
        if end is not None:
            for change in parser.changes:
                report({"transaction": end, **change})
            parser.changes.clear()
            message.cursor.send_feedback(flush_lsn=end, apply_lsn=end, force=True)

    with closing(psycopg2.connect(task.dsn, connection_factory=LogicalReplicationConnection)) as connection:
        cursor = connection.cursor()
        quoted = '"' + task.publication.replace('"', '""') + '"'
        options = {"proto_version": "1", "publication_names": quoted}
        cursor.start_replication(slot_name=task.slot, options=options, decode=False, status_interval=_STATUS_SECONDS)
        cursor.consume_stream(read, keepalive_interval=_STATUS_SECONDS)
