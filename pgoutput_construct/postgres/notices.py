"""Warnings of the server that must not be passed over: what it skips is missing in the log."""

from typing import Any

import psycopg

from pgoutput_construct.errors import ReplicationError

__all__ = ["Notices", "lost_publication"]

_SKIPPED = "55000"


class Notices:
    """Listens to the warnings of one replication connection.

    PostgreSQL 18 goes on without a publication that was dropped: it says ``WARNING: skipped loading publication``
    (pgoutput's LoadPublications), skips the changes, and moves past them. Versions before end with an error.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        """Listen to ``connection`` from now on."""
        self._skipped: str | None = None
        connection.add_notice_handler(self._note)

    def check(self) -> None:
        """Raise ReplicationError when the server skips changes; call it before what it sent is taken in."""
        if self._skipped is not None:
            raise ReplicationError(lost_publication(self._skipped), sqlstate=_SKIPPED)

    def _note(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.sqlstate == _SKIPPED and self._skipped is None:
            self._skipped = notice.message_primary or "a publication is skipped"


def lost_publication(what: str) -> str:
    """Say what to do about a publication that is gone from the changes that are decoded now; ``what`` happened."""
    return (
        f"{what}. It was dropped, or created too late: decoding sees the catalog as it was when each change was made, "
        "so creating it again brings back only what is changed afterwards. No change was skipped and then confirmed. "
        "Either capture with the publications that are left; or create it again, then a new slot, and begin a new log "
        "with an initial copy of the tables"
    )
