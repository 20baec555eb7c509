"""A publisher for tests: a replication client connects to it without a server, and meets what the test commits, or
faults.

>>> with publisher() as served:
...     orders = served.table("orders", {"id": "int4", "note": "text"}, key=["id"])
...     end = served.commit([orders.insert({"id": 1, "note": "first"})])
...     my_client(served.dsn)  # reads from any slot, up to ``end``
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.pgtypes.builtin_types import FIRST_USER_OID
from pgoutput_construct.publisher._feed.feed import About
from pgoutput_construct.publisher._feed.message_feed import Script
from pgoutput_construct.publisher._feed.message_lines import read_message_lines
from pgoutput_construct.publisher._server.service import Settings
from pgoutput_construct.publisher.faults import Fault
from pgoutput_construct.publisher.server import ThreadedPublisher
from pgoutput_construct.publisher.slots import Slot
from pgoutput_construct.testing.fake_tables import Change, FakeTable
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.protocol import MessageFlags, StreamStartFirstSegment
from pgoutput_construct.wire.types import Lsn, Timestamp

if TYPE_CHECKING:
    from pgoutput_construct.wire.messages import PgoutputMessage

__all__ = ["TestPublisher", "publisher"]

_START: Final = 0x1000000
_RECORD: Final = 0x40
"""Bytes of WAL of a record."""
_FIRST: Final = int(StreamStartFirstSegment.FIRST_SEGMENT)
_LATER: Final = int(StreamStartFirstSegment.LATER_SEGMENT)


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
        port: The port to listen on; 0: a free port, see ``TestPublisher.dsn``.
        server_version: The server version that it claims, such as 160004.
        publications: The publications that exist; empty: any that a client names.
        database: The name of its database.
        settings: Further fields of ``pgoutput_construct.publisher.Settings``: ``method``, ``user``, ``password``,
            ``rate``, ``wal_sender_timeout`` and others.

    Raises:
        PgoutputError: An argument that does not exist, or is not of its type.
    """
    if isinstance(publications, str):
        raise PgoutputError(f"publications are a sequence of names, such as [{publications!r}]")
    if unknown := sorted(settings.keys() - {field.name for field in fields(Settings)}):
        names = ", ".join(field.name for field in fields(Settings))
        raise PgoutputError(f"a publisher has no setting {unknown[0]!r}: it has {names}")
    about = About(server_version, "7000000000000000000", database, 1, tuple(publications), {})
    script = Script(about)
    with ThreadedPublisher(script, Settings(port=port, **settings)) as running:
        yield TestPublisher(running, script)


class TestPublisher:
    """A publisher whose stream a test defines: commits are served at once, with increasing LSNs."""

    __test__ = False  # pytest: this is not a test class

    def __init__(self, running: ThreadedPublisher, script: Script) -> None:
        self._running = running
        self._script = script
        self._oid = FIRST_USER_OID
        self._lsn = _START
        self._xid = 700
        self._described = set[int]()
        """The tables whose Relation was sent."""
        self._in_stream: dict[int, set[int]] = {}

    @property
    def dsn(self) -> str:
        """A connection string of libpq, without a password."""
        return self._running.dsn

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._running.publisher.port

    def slot(self, name: str) -> Slot | None:
        """Return a slot, with the LSN that its client has confirmed; None if it does not exist."""
        return self._running.publisher.slots.get(name)

    def wait_confirmed(self, slot: str, lsn: Lsn, timeout: float = 30.0) -> Slot:
        """Wait until a slot's client has confirmed an LSN; return the slot.

        Clients confirm with a delay: PostgreSQL once its WAL is flushed, others every few seconds.

        Args:
            slot: The slot; it may not exist yet.
            lsn: The LSN, such as ``commit`` returns it.
            timeout: Seconds after which TimeoutError is raised, with the LSN confirmed so far.
        """
        return self._running.publisher.slots.wait_confirmed(slot, lsn, timeout)

    def create_slot(self, name: str, **options: Any) -> Slot:
        """Create a slot, as CREATE_REPLICATION_SLOT does; otherwise START_REPLICATION creates a missing one."""
        return self._running.publisher.slots.create(name, **options)

    def table(
        self, name: str, columns: Mapping[str, str], key: Sequence[str] = (), namespace: str = "public"
    ) -> FakeTable:
        """Create a table in all publications, which a subscription finds before the table's first row.

        Args:
            name: Its name.
            columns: The built-in type of each column, such as ``{"id": "int4"}``.
            key: The columns of its replica identity; empty: REPLICA IDENTITY FULL.
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
        """Serve a transaction; return the LSN after its end, which a client confirms once it has received it.

        Args:
            changes: Results of ``FakeTable.insert`` and the like; a Fault among them occurs at that point.
            streamed: Stream it before its commit, to clients that requested streaming.
            prepared: Prepare it under this gid first, for clients that requested two-phase.
            rolled_back: Changes of a subtransaction that is rolled back; sent only if ``streamed``.
            origin: The replication origin of the transaction, which is neither streamed nor prepared.

        Raises:
            PgoutputError: An argument is not of its type, or an origin is given where none can be sent.
        """
        _check_changes(changes)
        _check_changes(rolled_back)
        if origin is not None and (streamed or prepared is not None):
            raise PgoutputError("an origin is sent with plain transactions only: omit streamed and prepared")
        if streamed:
            return self._commit_streamed(changes, prepared, rolled_back)
        xid = self._next_xid()
        if prepared is None:
            return self._commit_plain(changes, xid, origin)
        self.prepare(changes, prepared, xid)
        return self.commit_prepared(prepared, xid)

    def prepare(self, changes: Sequence[Change | Fault], gid: str, xid: int | None = None) -> int:
        """Serve a transaction up to its PREPARE; return its xid."""
        _check_changes(changes)
        xid = self._next_xid() if xid is None else xid
        (start, end), now = self._record_behind(changes), Timestamp.now()
        self._add(Lsn(self._lsn), m.BeginPrepare(start, end, now, xid, gid))
        self._changes(changes)
        self._add(end, m.Prepare(start, end, now, xid, gid))
        self._record()
        return xid

    def commit_prepared(self, gid: str, xid: int) -> Lsn:
        """Serve a COMMIT PREPARED; return the LSN after it."""
        start, end = self._record()
        self._add(end, m.CommitPrepared(start, end, Timestamp.now(), xid, gid))
        return end

    def interleaved(self, *transactions: Sequence[Change]) -> Lsn:
        """Serve streamed transactions whose segments alternate; return the LSN after the last commit."""
        for changes in transactions:
            _check_changes(changes)
        xids = [self._next_xid() for _ in transactions]
        for number in range(max(map(len, transactions), default=0)):
            for xid, changes in zip(xids, transactions, strict=True):
                if number < len(changes):
                    self._segment(xid, changes[number : number + 1], is_first=number == 0)
        end = Lsn(self._lsn)
        for xid, changes in zip(xids, transactions, strict=True):
            end = self._stream_commit(xid) if changes else end
        return end

    def message(self, prefix: str, content: bytes, transactional: bool = True) -> Lsn:
        """Serve a message of pg_logical_emit_message(), of any size; return the LSN after it."""
        if not isinstance(content, bytes):
            raise PgoutputError(f"the content of a message is bytes, not {content!r:.80}")
        flags = int(MessageFlags.TRANSACTIONAL) if transactional else 0
        start, end = self._record()
        sent = m.Message(flags=flags, lsn=end, prefix=prefix, content=content)
        if not transactional:
            self._add(end, sent)
            return end
        return self._alone(start, end, (end, sent))

    def stray_stream_abort(self) -> None:
        """Serve the abort of a transaction that was never streamed, as PostgreSQL 18 may do."""
        xid = self._next_xid()
        self._add(Lsn(self._lsn), m.StreamAbort(xid, xid))

    def describe(self, table: FakeTable) -> None:
        """Serve the Relation of a table again, in a transaction without changes."""
        self._alone(*self._record(), (Lsn(0), table.relation))

    def undescribed(self, change: Change) -> Lsn:
        """Serve a change before its Relation, which no server does; return the LSN after the transaction."""
        start, end = self._record()
        return self._alone(start, end, (end, change.message), (Lsn(0), change.table.relation))

    def send(self, message: "PgoutputMessage", lsn: Lsn | None = None) -> None:
        """Serve a single message; raise ProtocolError if the stream's state does not permit it."""
        if type(message) not in m.BY_TAG.values():
            raise PgoutputError(f"{message!r:.80} is not a message: give an object of a message class")
        self._add(Lsn(self._lsn) if lsn is None else lsn, message)

    def play(self, file: str | Path) -> Lsn:
        """Serve the messages of a file of JSON lines, such as ``pgoutput fixture`` writes; return the LSN after them.

        The tables that it describes exist from now on.

        Args:
            file: The path of the file.

        Raises:
            PgoutputError: A line is not a message.
            ProtocolError: A message cannot come at that point.
        """
        with Path(file).open("rb") as lines:
            found = read_message_lines(lines, str(file))
        described = {each.relation_oid: each for _, each in found.messages if isinstance(each, m.Relation)}
        for relation in described.values():
            self._script.create(replace(relation, xid=None))
        for lsn, message in found.messages:
            self._add(lsn, message)
            self._xid = max(self._xid, getattr(message, "xid", None) or 0)
        self._lsn = max(self._lsn, self._script.position)
        return Lsn(self._lsn)

    def fault(self, name: str, **arguments: Any) -> None:
        """Inject a fault before the next message served, once.

        The names are the keys of ``pgoutput_construct.publisher.faults.FAULTS``: cut, cut inside a message, stall
        (``seconds``), keepalive storm (``count``), keepalive that demands a reply, empty payload, clock going back
        (``seconds``), error (``sqlstate``, ``message``).
        """
        self._script.fault(Fault(name, arguments))

    def _commit_plain(self, changes: Sequence[Change | Fault], xid: int, origin: str | None) -> Lsn:
        (start, end), now = self._record_behind(changes), Timestamp.now()
        self._add(Lsn(self._lsn), m.Begin(start, now, xid))
        if origin is not None:
            self._add(Lsn(0), m.Origin(Lsn(0), origin))
        self._changes(changes)
        self._add(end, m.Commit(start, end, now))
        self._record()
        return end

    def _commit_streamed(
        self, changes: Sequence[Change | Fault], gid: str | None, rolled_back: Sequence[Change]
    ) -> Lsn:
        xid = self._next_xid()
        self._segment(xid, changes[:1])
        if rolled_back:
            subxid = self._next_xid()
            self._segment(xid, rolled_back, subxid=subxid, is_first=False)
            self._add(Lsn(self._lsn), m.StreamAbort(xid, subxid))
            del self._in_stream[xid]  # PostgreSQL describes the tables again (cleanup_rel_sync_cache())
        if changes[1:]:
            self._segment(xid, changes[1:], is_first=False)
        if gid is None:
            return self._stream_commit(xid)
        start, end = self._record()
        self._add(end, m.StreamPrepare(start, end, Timestamp.now(), xid, gid))
        return self.commit_prepared(gid, xid)

    def _segment(
        self, xid: int, changes: Sequence[Change | Fault], is_first: bool = True, subxid: int | None = None
    ) -> None:
        self._add(Lsn(0), m.StreamStart(xid, _FIRST if is_first else _LATER))
        self._changes(changes, subxid or xid, self._in_stream.setdefault(xid, set()))
        self._add(Lsn(0), m.StreamStop())

    def _stream_commit(self, xid: int) -> Lsn:
        start, end = self._record()
        self._add(end, m.StreamCommit(xid, start, end, Timestamp.now()))
        self._described |= self._in_stream.pop(xid, set())
        return end

    def _changes(
        self, changes: Sequence[Change | Fault], xid: int | None = None, described: set[int] | None = None
    ) -> None:
        known = self._described if described is None else described
        for change in changes:
            if isinstance(change, Fault):
                self._script.fault(change)
                continue
            table, message = change
            if table.oid not in known:
                known.add(table.oid)
                self._add(Lsn(0), replace(table.relation, xid=xid))
            changed: Any = message
            self._add(self._record()[0], replace(changed, xid=xid))

    def _alone(self, start: Lsn, end: Lsn, *inside: tuple[Lsn, "PgoutputMessage"]) -> Lsn:
        """Serve a transaction of one record, with some messages between Begin and Commit; return the LSN after it."""
        self._add(start, m.Begin(start, Timestamp.now(), self._next_xid()))
        for lsn, message in inside:
            self._add(lsn, message)
        self._add(end, m.Commit(start, end, Timestamp.now()))
        return end

    def _add(self, lsn: Lsn, message: m.PgoutputMessage) -> None:
        self._script.add(lsn, message)

    def _record_behind(self, changes: Sequence[Change | Fault]) -> tuple[Lsn, Lsn]:
        """Return the start and end LSN of a commit record that follows the records of its changes."""
        start = self._lsn + _RECORD * sum(not isinstance(change, Fault) for change in changes)
        return Lsn(start), Lsn(start + _RECORD)

    def _record(self) -> tuple[Lsn, Lsn]:
        start, self._lsn = self._lsn, self._lsn + _RECORD
        return Lsn(start), Lsn(self._lsn)

    def _next_xid(self) -> int:
        self._xid += 1
        return self._xid


def _check_changes(changes: Sequence[Change | Fault]) -> None:
    """Raise PgoutputError for what is no sequence of changes, before any of them is served."""
    if isinstance(changes, Change | Fault) or not isinstance(changes, Sequence):
        raise PgoutputError(f"changes are a sequence, such as [table.insert(...)], not {changes!r:.80}")
    for change in changes:
        if not isinstance(change, Change | Fault):
            raise PgoutputError(f"a change is what table.insert(...) and the like return, not {change!r:.80}")
