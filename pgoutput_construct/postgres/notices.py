"""Publications that the decoded changes do not have: errors, and warnings of what the server skips."""

import re
import shlex
from collections.abc import Iterable
from typing import Any

import psycopg

from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.publications import missing_publications
from pgoutput_construct.postgres.queries import Connection
from pgoutput_construct.postgres.server import current_lsn

__all__ = ["LostPublicationError", "Notices"]

_SKIPPED = "55000"
_QUOTED = '["«»„“”「」] ?{} ?["«»„“”「」]'
"""A name in a message of the server, in whatever language (lc_messages)."""


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
            raise LostPublicationError(self._skipped, sqlstate=_SKIPPED)

    def _note(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.sqlstate == _SKIPPED and self._skipped is None:
            self._skipped = notice.message_primary or "a publication is skipped"


class LostPublicationError(ReplicationError):
    """A publication is not among what the decoded changes know: it was dropped, or created after they were made."""

    def __init__(self, what: str, *, sqlstate: str | None = None) -> None:
        """Report that ``what`` happened."""
        super().__init__(
            f"{what}. It was dropped, or created too late: decoding sees the catalog as it was when each change was "
            "made, so creating it again brings back only what is changed afterwards. No change was skipped and then "
            "confirmed. Either capture with the publications that are left; or create it again, then a new slot, and "
            "begin a new log with an initial copy of the tables",
            sqlstate=sqlstate,
        )
        self.what = what
        """What the server said, or lacks."""

    def remedied(self, connection: Connection, asked: Iterable[str], logged: Iterable[str]) -> ReplicationError:
        """Return an error with the way past it where the publication exists by now; itself where it does not.

        All that was changed before the end of the WAL is captured with the publications from before: ``asked``
        without the late one, or else those that the log was ``logged`` with. The late one was created before that
        end, so it is known to what is decoded afterwards. (A transaction that had begun before it was created, and
        commits after that end, still does not know it: then this error comes again, with a later position.)
        """
        names = list(asked)
        missing = set(missing_publications(connection, [*names, *logged]))
        late = [name for name in names if re.search(_QUOTED.format(re.escape(name)), self.what)]
        before = [name for name in names if name not in late] or [name for name in logged if name not in late]
        if not late or not before or missing & {*late, *before}:
            return self
        until = current_lsn(connection)
        options = " ".join(f"--publication {shlex.quote(name)}" for name in before)
        return ReplicationError(
            f"{self.what}. The publication {', '.join(map(repr, late))} exists, but is younger than changes that the "
            "slot has yet to send: decoding sees the catalog as it was when each change was made. No change was "
            f"skipped and then confirmed. Capture first with the publications from before, with {options} --until-lsn "
            f"{until} (publications={before!r}, until_lsn=Lsn('{until}')), and then with those that you have named. "
            "What was changed up to that position in tables that the late one alone publishes is not in the log; "
            "--snapshot copies them, and so does pgoutput snapshot",
            sqlstate=self.sqlstate,
        )
