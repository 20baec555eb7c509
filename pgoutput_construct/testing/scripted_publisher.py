"""A publisher for tests: a client of replication meets what it should, and what it should not, without a server.

>>> with testing.publisher() as publisher:
...     orders = publisher.table("orders", {"id": "int4", "note": "text"}, key=["id"])
...     publisher.commit([orders.insert({"id": 1, "note": "first"})])
...     my_client(publisher.dsn)
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pgoutput_construct.pgtypes.builtin_types import FIRST_USER_OID
from pgoutput_construct.publisher._feed.feed import About
from pgoutput_construct.publisher._feed.message_feed import Script
from pgoutput_construct.publisher._server.service import Settings
from pgoutput_construct.publisher.faults import Fault
from pgoutput_construct.publisher.server import ThreadedPublisher
from pgoutput_construct.publisher.slots import Slot
from pgoutput_construct.testing.fake_tables import Change, FakeTable
from pgoutput_construct.testing.script_writer import ScriptWriter
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.protocol import MessageFlags
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["TestPublisher", "publisher"]


@contextmanager
def publisher(
    *,
    port: int = 0,
    server_version: int = 180000,
    publications: Sequence[str] = (),
    database: str = "postgres",
    **settings: Any,
) -> Iterator["TestPublisher"]:
    """Serve what a test commits, on a port of 127.0.0.1, while the context is open.

    Args:
        port: Where it listens; 0: at a free port, see ``TestPublisher.dsn``.
        server_version: The PostgreSQL that it stands for, such as 160004.
        publications: The publications that it has; none: any that a client names.
        database: The database that it stands for.
        settings: More of ``pgoutput_construct.publisher.Settings``: ``method``, ``user``, ``password``, ``rate``,
            ``wal_sender_timeout`` and others.
    """
    about = About(server_version, "7000000000000000000", database, 1, tuple(publications), {})
    script = Script(about)
    with ThreadedPublisher(script, Settings(port=port, **settings)) as running:
        yield TestPublisher(running, script)


class TestPublisher(ScriptWriter):
    """A publisher whose stream a test invents; what it commits is served at once."""

    __test__ = False  # not a class of tests

    def __init__(self, running: ThreadedPublisher, script: Script) -> None:
        super().__init__(script)
        self._running = running
        self._oid = FIRST_USER_OID

    @property
    def dsn(self) -> str:
        """A connection string of libpq, without a password."""
        return self._running.dsn

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._running.publisher.port

    def slot(self, name: str) -> Slot | None:
        """Return a slot, and in it the position that its client has confirmed; None where it does not exist."""
        return self._running.publisher.slots.get(name)

    def wait_confirmed(self, slot: str, lsn: Lsn, timeout: float = 30.0) -> Slot:
        """Wait until a slot's client has confirmed a position; return the slot.

        A client confirms what it has a little later than it has it: PostgreSQL when it is flushed, others every few
        seconds.

        Args:
            slot: The slot; a client that begins with it may come yet.
            lsn: The position, such as ``commit`` returns it.
            timeout: Seconds after which TimeoutError is raised; it says how far the client has come.
        """
        return self._running.publisher.slots.wait_confirmed(slot, lsn, timeout)

    def create_slot(self, name: str, **options: Any) -> Slot:
        """Make a slot, as CREATE_REPLICATION_SLOT does; a client that begins with one that there is not makes it."""
        return self._running.publisher.slots.create(name, **options)

    def table(
        self, name: str, columns: Mapping[str, str], key: Sequence[str] = (), namespace: str = "public"
    ) -> FakeTable:
        """Create a table: publications have it from now on, and a subscription finds it before its first row.

        Args:
            name: Its name.
            columns: The built-in type of each column, such as ``{"id": "int4"}``.
            key: The columns of its replica identity; none: REPLICA IDENTITY FULL.
            namespace: Its schema.
        """
        self._oid += 2
        table = FakeTable(name, columns, key, namespace, self._oid)
        self._script.create(table.relation)
        return table

    def commit(
        self,
        changes: Sequence[Change | Fault] = (),
        *,
        streamed: bool = False,
        prepared: str | None = None,
        rolled_back: Sequence[Change] = (),
        origin: str | None = None,
    ) -> Lsn:
        """Serve a transaction; return the position behind its end, which a client that has it confirms.

        Args:
            changes: What ``FakeTable.insert`` and the others return; a Fault between them shows there.
            streamed: Send it while it runs, to clients that ask for that.
            prepared: Prepare it under this name first, for clients that ask for that.
            rolled_back: Changes of a subtransaction that is rolled back: only a streamed transaction sends them.
            origin: The replication origin that it comes from.
        """
        if streamed:
            return self._commit_streamed(changes, prepared, rolled_back)
        xid = self._next_xid()
        if prepared is None:
            return self._commit_plain(changes, xid, origin)
        self.prepare(changes, prepared, xid)
        return self.commit_prepared(prepared, xid)

    def prepare(self, changes: Sequence[Change | Fault], gid: str, xid: int | None = None) -> int:
        """Serve a transaction up to its PREPARE; return its xid."""
        xid = self._next_xid() if xid is None else xid
        (start, end), now = self._record_behind(changes), Timestamp.now()
        self._add(Lsn(self._lsn), m.BeginPrepare(start, end, now, xid, gid))
        self._changes(changes)
        self._add(end, m.Prepare(start, end, now, xid, gid))
        self._record()
        return xid

    def interleaved(self, *transactions: Sequence[Change]) -> Lsn:
        """Serve streamed transactions whose segments alternate; return the position behind the last of them."""
        xids = [self._next_xid() for _ in transactions]
        for place in range(max(map(len, transactions), default=0)):
            for xid, changes in zip(xids, transactions, strict=True):
                if place < len(changes):
                    self._segment(xid, changes[place : place + 1], is_first=place == 0)
        end = Lsn(self._lsn)
        for xid, changes in zip(xids, transactions, strict=True):
            end = self._stream_commit(xid) if changes else end
        return end

    def message(self, prefix: str, content: bytes, transactional: bool = True) -> Lsn:
        """Serve a message of pg_logical_emit_message(), of any size; return the position behind it."""
        flags = int(MessageFlags.TRANSACTIONAL) if transactional else 0
        start, end = self._record()
        sent = m.Message(flags=flags, lsn=end, prefix=prefix, content=content)
        if not transactional:
            self._add(end, sent)
            return end
        self._add(start, m.Begin(start, Timestamp.now(), self._next_xid()))
        self._add(end, sent)
        self._add(end, m.Commit(start, end, Timestamp.now()))
        return end

    def stray_stream_abort(self) -> None:
        """Serve the abort of a transaction that was never streamed, as PostgreSQL 18 does now and then."""
        xid = self._next_xid()
        self._add(Lsn(self._lsn), m.StreamAbort(xid, xid))

    def abort_of_unknown_subtransaction(self, xid: int) -> None:
        """Serve the abort of a subtransaction that sent nothing."""
        self._add(Lsn(self._lsn), m.StreamAbort(xid, self._next_xid()))

    def describe(self, table: FakeTable) -> None:
        """Serve what describes a table, though it was served before: in a transaction that does nothing else."""
        start, end = self._record()
        self._add(start, m.Begin(start, Timestamp.now(), self._next_xid()))
        self._add(Lsn(0), table.relation)
        self._add(end, m.Commit(start, end, Timestamp.now()))

    def undescribed(self, change: Change) -> Lsn:
        """Serve a change whose Relation comes behind it, which no server does; return the position behind both."""
        start, end = self._record()
        self._add(start, m.Begin(start, Timestamp.now(), self._next_xid()))
        self._add(end, change.message)
        self._add(Lsn(0), change.table.relation)
        self._add(end, m.Commit(start, end, Timestamp.now()))
        return end

    def send(self, message: m.PgoutputMessage, lsn: Lsn | None = None) -> None:
        """Serve one message as it is; raise ProtocolError where it cannot come."""
        self._add(Lsn(self._lsn) if lsn is None else lsn, message)

    def fault(self, name: str, **arguments: Any) -> None:
        """Let a fault show before whatever is served next, once.

        The names are the keys of ``pgoutput_construct.publisher.faults.FAULTS``: cut, cut inside a message, stall
        (``seconds``), keepalive storm (``count``), keepalive that demands a reply, empty payload, clock going back
        (``seconds``), error (``sqlstate``, ``message``).
        """
        self._script.fault(Fault(name, arguments))
