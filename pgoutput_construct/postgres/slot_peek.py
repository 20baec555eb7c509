"""Reading a slot without a capture: its changes are peeked at (they remain in the slot) until it is advanced.

This is the source of Spark's live reads: a micro-batch that is retried peeks at the same transactions again.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres._patience import Patience, PatientConnection
from pgoutput_construct.postgres._snapshot.copied_tables import read_tables
from pgoutput_construct.postgres.connection import connect, fetch, fetch_row, run
from pgoutput_construct.postgres.replication import is_at_work
from pgoutput_construct.postgres.replication_slots import check_slot
from pgoutput_construct.stream.identifiers import qualified_name
from pgoutput_construct.wire import Commit, Lsn, parse

__all__ = ["SlotPeek", "open_slot"]

_PEEK: Final = """SELECT data FROM pg_logical_slot_peek_binary_changes(%s, %s::pg_lsn, %s,
    'proto_version', '1', 'publication_names', %s)"""
_ENDS: Final = _PEEK + " WHERE substr(data, 1, 1) = %s"
_LAST_END: Final = _ENDS + " ORDER BY lsn DESC LIMIT 1"
_DECLARE: Final = "DECLARE pgoutput_peek NO SCROLL CURSOR FOR " + _PEEK
_FETCH: Final = "FETCH 1000 FROM pgoutput_peek"
_ALL_PUBLICATIONS: Final = "SELECT pubname FROM pg_publication ORDER BY pubname"
_TABLE: Final = """SELECT c.oid::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p')"""
_TWO_PHASE: Final = (
    "SELECT coalesce((to_jsonb(s) ->> 'two_phase')::bool, false) FROM pg_replication_slots s WHERE slot_name = %s"
)
PEEK_CHANGES: Final = 200_000
"""The number of changes after which one peek ends, at the end of a transaction (upto_nchanges)."""
_MOST_CHANGES: Final = (1 << 31) - 1
"""The largest upto_nchanges."""
_PART_BYTES = 1 << 26
"""The memory that messages may need before they become a part, at the end of a transaction."""
_MESSAGE_BYTES: Final = 200
"""About what a message needs in memory in addition to its bytes, as an object and in an index."""


class SlotPeek:
    """A slot and the connection to peek at it; ``open_slot`` returns it."""

    def __init__(self, connection: PatientConnection, slot: str, publications: Sequence[str]) -> None:
        self._connection = connection
        self._slot = slot
        self.publications = publications

    @property
    def confirmed(self) -> Lsn:
        """The LSN up to which the slot was advanced; raises ReplicationError for a slot that cannot be read."""
        return check_slot(self._connection, self._slot)

    def ends(self, after: int = 0, changes: int = PEEK_CHANGES) -> list[Commit]:
        """Return the commits of the next transactions that end after an LSN, in order, up to about ``changes`` changes.

        A peek begins at the confirmed position, so it may end with what was read already: then a longer one follows.
        """
        peeked = self._ends(changes)
        found = _later(peeked, after)
        if peeked and not found and (last := self.last_end()) is not None and last.end_lsn > after:
            while not found and changes < _MOST_CHANGES:
                changes = min(2 * changes, _MOST_CHANGES)
                found = _later(self._ends(changes), after)
        return found

    def _ends(self, changes: int) -> list[Commit]:
        return self._commits(_ENDS, [self._slot, None, changes, self._published(), Commit.TAG])

    def last_end(self) -> Commit | None:
        """Return the commit of the last transaction; None if the slot has none."""
        commits = self._commits(_LAST_END, [self._slot, None, None, self._published(), Commit.TAG])
        return commits[0] if commits else None

    def _commits(self, query: str, arguments: Sequence[Any]) -> list[Commit]:
        found = (parse(data) for (data,) in fetch(self._connection, query, arguments, doing=self._doing))
        return [commit for commit in found if isinstance(commit, Commit)]

    def payloads(self, until: Lsn) -> Iterator[list[bytes]]:
        """Yield the messages of all transactions up to the one whose end LSN is ``until``.

        Each list ends with a transaction. It has more than some tens of megabytes only for the sake of a large one. The
        server decodes once: it stores what a cursor has not fetched, on disk if that is more than ``work_mem``.
        """
        run(self._connection, "BEGIN", doing=self._doing)
        run(self._connection, _DECLARE, [self._slot, str(until), None, self._published()], doing=self._doing)
        part, size, end = list[bytes](), 0, 0
        while rows := fetch(self._connection, _FETCH, doing=self._doing):
            for (data,) in rows:
                part.append(data)
                size += len(data) + _MESSAGE_BYTES
                if data[:1] == Commit.TAG:
                    end = len(part)
            if size > _PART_BYTES and end:
                yield part[:end]
                part, end = part[end:], 0
                size = sum(map(len, part)) + len(part) * _MESSAGE_BYTES
        run(self._connection, "COMMIT", doing=self._doing)
        if part:
            yield part

    def advance(self, position: Lsn) -> None:
        """Advance the slot to an LSN, so that the server may remove earlier WAL; does nothing for an earlier LSN."""
        if position > self.confirmed:
            query = "SELECT pg_replication_slot_advance(%s, %s::pg_lsn)"
            run(self._connection, query, [self._slot, str(position)], doing=f"slot {self._slot!r} cannot be advanced")

    def describe(self, namespace: str, name: str) -> list[bytes]:
        """Return the messages that describe a table as it is now; raise ReplicationError if it is not published."""
        oids = [oid for (oid,) in fetch(self._connection, _TABLE, [namespace, name], doing="the table is not found")]
        for table in read_tables(self._connection, self.publications, oids):
            return table.descriptions({"proto_version": 1})
        title = qualified_name(namespace, name)
        raise ReplicationError(f"none of the publications {', '.join(map(repr, self.publications))} has table {title}")

    def _published(self) -> str:
        return ",".join('"' + name.replace('"', '""') + '"' for name in self.publications)

    @property
    def _doing(self) -> str:
        return f"the changes of slot {self._slot!r} cannot be peeked at"


def _later(commits: Sequence[Commit], after: int) -> list[Commit]:
    return [commit for commit in commits if commit.end_lsn > after]


@contextmanager
def open_slot(dsn: str, slot: str, publications: Sequence[str] = ()) -> Iterator[SlotPeek]:
    """Open a slot for peeking.

    The server decodes everything before it sends the first row (pg_logical_slot_get_changes_guts() fills a tuplestore),
    so a query has no time limit while its backend is active.

    Args:
        dsn: The connection string, as libpq reads it; its password appears in no error.
        slot: The name of the slot.
        publications: The names of the publications; all of the database if empty.

    Raises:
        ReplicationError: The server cannot be reached; or the slot does not exist, has another plugin, or has
            two_phase: transactions that it sends at PREPARE TRANSACTION may be rolled back.
    """
    with connect(dsn, replication=False) as connection:
        connection.patience = Patience(is_working=lambda: is_at_work(dsn, connection.pgconn.backend_pid))
        check_slot(connection, slot)
        if fetch_row(connection, _TWO_PHASE, [slot], doing="the slot cannot be read")[0]:
            raise ReplicationError(
                f"slot {slot!r} has two_phase, which live reads do not support: capture it into a change log, or "
                f"create another one: SELECT pg_create_logical_replication_slot('name', 'pgoutput')"
            )
        names = list(publications) or [n for (n,) in fetch(connection, _ALL_PUBLICATIONS, doing="no publications")]
        if not names:
            raise ReplicationError("the database has no publication: CREATE PUBLICATION ... FOR TABLE ...")
        yield SlotPeek(connection, slot, names)
