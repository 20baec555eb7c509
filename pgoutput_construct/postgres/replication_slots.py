"""Replication slots: made, checked and dropped, with errors that say what to run."""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

import psycopg
from psycopg import sql

from pgoutput_construct.catalog_queries import BLOCKING_WRITER, SLOTS
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres._patience import ANSWER_SECONDS, Patience, PatientConnection, Stopped
from pgoutput_construct.postgres.connection import (
    Connection,
    ask,
    check_wal_level,
    connect,
    current_lsn,
    describe_error,
    fetch,
)
from pgoutput_construct.wire import Lsn

__all__ = [
    "ExportedSnapshot",
    "LostSlotError",
    "SlotHealth",
    "UndecodableSlotError",
    "check_slot",
    "check_unread",
    "create_slot",
    "create_slot_with_snapshot",
    "drop_slot",
    "end_reader",
    "ensure_slot",
    "slot_health",
]


Made = TypeVar("Made")

_ARGUMENTS = {"temporary": 0, "twophase": 140000, "failover": 170000}
"""The optional arguments of pg_create_logical_replication_slot, and since which server they are there."""

_COMMAND_OPTIONS = {"twophase": "TWO_PHASE", "failover": "FAILOVER"}
_PARENTHESES_SINCE = 150000
_IN_USE = "55006"  # object_in_use, which START_REPLICATION reports (ReplicationSlotAcquire)


class LostSlotError(ReplicationError):
    """A slot that never gives changes again: the server removed what it needs."""


class UndecodableSlotError(LostSlotError):
    """A slot at which decoding fails with the same internal error, however often it is read.

    An example is "could not map filenumber ... to relation OID" (ReorderBufferProcessTXN): a change whose table the
    historic snapshot of the slot does not show, as may be in slots that are created while transactions run that
    TRUNCATE. The slot is not invalidated, so the server never says that it is lost.
    """

    def __init__(self, slot: str, error: ReplicationError, replaced: int = 0) -> None:
        """Report that reading ``slot`` ended with ``error`` again and again; it replaced so many others like it."""
        others = f" It was the same with {replaced} before it, which it replaced." if replaced else ""
        self.reason = f"{error}; reading slot {slot!r} ends with this internal error each time"
        """What is wrong, without the remedy."""
        super().__init__(
            f"{self.reason}: the server cannot decode the change that comes next, for any reader, and never will."
            f"{others} Have the capture drop the slot, create another one and copy all tables again into the same log: "
            f"--on-lost-slot snapshot (on_lost_slot='snapshot'); or drop it (SELECT pg_drop_replication_slot({slot!r})"
            "), create a new one, and begin a new log with an initial copy of the tables. Report the error to "
            "PostgreSQL, with the server's log",
            sqlstate=error.sqlstate,
        )


@dataclass(frozen=True)
class ExportedSnapshot:
    """What a slot was created with: the rows as they were at the position from which it sends changes."""

    connection: Connection
    """The replication connection that created the slot; the snapshot lasts until it is used again, or closed."""
    name: str
    """What SET TRANSACTION SNAPSHOT takes."""
    lsn: Lsn
    """The position."""
    published: frozenset[int] = frozenset()
    """The tables that were published when its creation began: of others, transactions that it does not have may have
    written what the stream does not have either."""

    def close(self) -> None:
        """Let the snapshot go."""
        self.connection.close()


def check_slot(connection: Connection, slot: str) -> Lsn:
    """Return the confirmed position of ``slot``; raise ReplicationError unless it gives pgoutput to ``connection``."""
    found = slot_health(connection, slot)
    if not found:
        create = sql.SQL("SELECT pg_create_logical_replication_slot({}, 'pgoutput')").format(slot)
        raise ReplicationError(f"there is no replication slot {slot!r}; run {create.as_string(connection)}")
    health = found[0]
    if health.plugin != "pgoutput":
        raise ReplicationError(f"slot {slot!r} is of {health.plugin or 'physical replication'}, not of pgoutput")
    if health.database != connection.info.dbname:
        raise ReplicationError(f"slot {slot!r} is of database {health.database!r}, not {connection.info.dbname!r}")
    if health.lost:
        raise LostSlotError(str(health.problem), sqlstate="55000")
    return health.confirmed_lsn or Lsn(0)


def check_unread(connection: Connection, slot: str) -> None:
    """Raise ReplicationError, which may pass, where another process reads ``slot``: a slot has one reader."""
    for health in slot_health(connection, slot):
        if health.active_pid is not None:
            who = f"process {health.active_pid}" + (f" ({health.reader})" if health.reader else "")
            raise ReplicationError(
                f"slot {slot!r} is being read by {who}: stop that reader, give this capture a slot of its own, or wait "
                "until the server notices that the reader is gone",
                transient=True,
                sqlstate=_IN_USE,
            )


def create_slot(
    connection: Connection,
    slot: str,
    *,
    two_phase: bool = False,
    temporary: bool = False,
    failover: bool = False,
    timeout: float | None = None,
    on_wait: Callable[[list[str]], None] | None = None,
) -> Lsn:
    """Create a logical slot of pgoutput and return the position from which it sends changes.

    The server waits until the transactions that write now have ended.

    Args:
        connection: An open connection to the database whose changes are wanted.
        slot: The name of the slot.
        two_phase: It sends prepared transactions at PREPARE TRANSACTION (PostgreSQL 14).
        temporary: It ends with ``connection``.
        failover: Standbys keep a copy of it, with which a capture goes on after a failover (PostgreSQL 17; the standby
            needs ``sync_replication_slots``).
        timeout: Seconds after which the attempt is given up; None to wait as long as it takes.
        on_wait: Called after two seconds, and whenever they change, with the transactions that are waited for, in
            words; without it they are logged as a warning.

    Raises:
        ReplicationError: The slot exists, the server cannot make it, or the time is over. Then no slot is left behind.
    """
    arguments = _arguments(connection, temporary=temporary, twophase=two_phase, failover=failover)
    return _create_watched(connection, slot, timeout, on_wait, lambda: _create(connection, slot, arguments))


def create_slot_with_snapshot(
    connection: Connection,
    slot: str,
    *,
    published: Iterable[int] = (),
    two_phase: bool = False,
    failover: bool = False,
    timeout: float | None = None,
) -> ExportedSnapshot:
    """Create a slot as create_slot does, by a replication connection that then keeps its snapshot and does no more.

    ``published`` are the tables that were found published before.
    """
    arguments = _arguments(connection, twophase=two_phase, failover=failover)
    options = ["SNAPSHOT 'export'", *(_COMMAND_OPTIONS[name] for name in arguments)]
    if connection.info.server_version >= _PARENTHESES_SINCE:
        listed = f"({', '.join(options)})"
    else:
        listed = " ".join(["EXPORT_SNAPSHOT", *options[1:]])
    command = sql.SQL("CREATE_REPLICATION_SLOT {} LOGICAL pgoutput ").format(sql.Identifier(slot)).as_string(connection)
    row = _create_watched(
        connection, slot, timeout, None, lambda: connection.execute((command + listed).encode()).fetchone()
    )
    assert row is not None
    return ExportedSnapshot(connection, str(row[2]), Lsn(row[1]), frozenset(published))


def _arguments(connection: Connection, **given: bool) -> list[str]:
    """Return the names of what is asked for; raise ReplicationError where the server cannot do it."""
    check_wal_level(connection)
    arguments = [name for name, value in given.items() if value]
    for name in arguments:
        if connection.info.server_version < _ARGUMENTS[name]:
            raise ReplicationError(f"{name} needs PostgreSQL {_ARGUMENTS[name] // 10000}")
    return arguments


def _create_watched(
    connection: Connection,
    slot: str,
    timeout: float | None,
    on_wait: Callable[[list[str]], None] | None,
    create: Callable[[], Made],
) -> Made:
    """Create a slot, however long it takes, with what is waited for told."""
    with _SlotWait(connection, slot, timeout, on_wait) as wait:
        try:
            return create()
        except psycopg.Error as error:
            raise wait.failure() or _creation_error(slot, error) from error
        except Stopped:
            if failure := wait.failure():
                raise failure from None
            raise


def ensure_slot(connection: Connection, slot: str, **options: Any) -> bool:
    """Create ``slot`` where there is none, with the ``options`` of create_slot; return whether it was created."""
    if slot_health(connection, slot):
        return False
    create_slot(connection, slot, **options)
    return True


def drop_slot(connection: Connection, slot: str, *, missing_ok: bool = False) -> None:
    """Drop ``slot``, and with it the server's promise to keep the WAL that its reader has not confirmed.

    Raises ReplicationError for a slot that there is not, unless it is ``missing_ok``.
    """
    query = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s"
    if not fetch(connection, query, [slot], doing=f"slot {slot!r} cannot be dropped") and not missing_ok:
        raise ReplicationError(f"there is no replication slot {slot!r}")


def end_reader(connection: Connection, slot: str, pid: int) -> None:
    """End the walsender ``pid`` where it still reads ``slot``: one of our own, whose connection is lost.

    It may not know that for long, for ever with ``wal_sender_timeout = 0``, and keep the slot. A role may end its own
    processes; one that may not waits until the server notices.
    """
    query = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = %s AND active_pid = %s"
    with suppress(ReplicationError):
        fetch(connection, query, [slot, pid])


def _create(connection: Connection, slot: str, arguments: Iterable[str]) -> Lsn:
    named = "".join(f", {name} => true" for name in arguments)
    query = f"SELECT lsn - '0/0'::pg_lsn FROM pg_create_logical_replication_slot(%s, 'pgoutput'{named})"
    row = connection.execute(query.encode(), [slot]).fetchone()
    assert row is not None
    return Lsn(int(row[0]))


def _creation_error(slot: str, error: psycopg.Error) -> ReplicationError:
    if isinstance(error, psycopg.errors.DuplicateObject):
        text = f"slot {slot!r} exists: capture() resumes it, drop_slot() removes it"
        return ReplicationError(text, sqlstate=error.sqlstate)
    return describe_error(error, f"slot {slot!r} cannot be created")


_LOG = logging.getLogger("pgoutput_construct")
_INTERVAL = 2.0

# SnapBuildWaitSnapshot waits for the lock that each transaction holds on its own xid; 0 is a prepared transaction.
_BLOCKERS = """SELECT concat_ws(', ', 'pid ' || b, 'user ' || usename, 'application ' || nullif(application_name, ''),
        state, 'open since ' || xact_start)
    FROM unnest(pg_blocking_pids(%s)) b LEFT JOIN pg_stat_activity ON pid = b WHERE b <> 0
    UNION ALL SELECT format('prepared transaction %%L of %%s, since %%s', gid, owner, prepared) FROM pg_prepared_xacts
    WHERE 0 = ANY(pg_blocking_pids(%s)) ORDER BY 1"""
_ON_STANDBY = "the primary to log its running transactions (run SELECT pg_log_standby_snapshot() on the primary)"


class _SlotWait:
    """Watches, over a second connection, the statement that creates a slot; a context manager around it.

    The statement may take as long as it needs while the server answers the second connection.
    """

    def __init__(
        self,
        connection: Connection,
        slot: str,
        timeout: float | None,
        on_wait: Callable[[list[str]], None] | None,
    ) -> None:
        """Prepare to watch ``connection``; ``timeout`` is in seconds, None for none."""
        self._connection = connection
        self._slot = slot
        self._timeout = math.inf if timeout is None else timeout
        self._on_wait = on_wait or self._log
        self._pid = connection.info.backend_pid
        self._done = threading.Event()
        self._expired = self._unreachable = False
        self._patience: Patience | None = None
        self._waited_for: list[str] = []
        self._thread = threading.Thread(target=self._watch, name=f"creation of slot {slot}", daemon=True)

    def failure(self) -> ReplicationError | None:
        """Return why the wait was ended: its time was over, or the server is gone; None when it was not."""
        if self._unreachable:
            return ReplicationError(f"the server does not answer: slot {self._slot!r} was not created", transient=True)
        if not self._expired:
            return None
        return ReplicationError(
            f"slot {self._slot!r} was not created in {self._timeout:g} seconds, and none is left behind: the server "
            f"waits for {'; '.join(self._waited_for) or 'transactions that write'}; end them, or wait longer (timeout)",
            sqlstate="57014",
        )

    def __enter__(self) -> Self:
        if isinstance(self._connection, PatientConnection):
            self._patience = self._connection.patience
            self._connection.patience = Patience(math.inf, self._asked)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join(_INTERVAL)
        if isinstance(self._connection, PatientConnection) and self._patience is not None:
            self._connection.patience = self._patience

    def _asked(self) -> str | None:
        asked = self._patience.asked if self._patience else None
        return "the server is gone" if self._unreachable else asked() if asked else None

    def _watch(self) -> None:
        heard = time.monotonic()
        deadline = heard + self._timeout
        while not self._done.wait(max(0.0, min(_INTERVAL, deadline - time.monotonic()))):
            with suppress(ReplicationError, psycopg.Error):
                self._find_blockers()
                heard = time.monotonic()
            self._unreachable = time.monotonic() - heard >= ANSWER_SECONDS
            if time.monotonic() >= deadline:
                self._expired = True
                with suppress(psycopg.Error):
                    self._connection.cancel_safe(timeout=5)
                return

    def _find_blockers(self) -> None:
        info = self._connection.info
        with connect(info.dsn + _password(info.password), replication=False) as second:
            found = [str(row[0]) for row in fetch(second, _BLOCKERS, [self._pid, self._pid])]
            if not found and fetch(second, "SELECT WHERE pg_is_in_recovery()"):
                found = [_ON_STANDBY]
        if found and found != self._waited_for and not self._done.is_set():
            self._waited_for = found
            self._on_wait(found)

    def _log(self, found: list[str]) -> None:
        _LOG.warning("the creation of slot %r waits for %s", self._slot, "; ".join(found))


def _password(password: str) -> str:
    return f" {psycopg.conninfo.make_conninfo(password=password)}" if password else ""


@dataclass(frozen=True, kw_only=True)
class SlotHealth:
    """One replication slot, as the server describes it (view pg_replication_slots); None where it does not say."""

    name: str
    """Its name."""
    plugin: str | None
    """The output plugin; None for a slot of physical replication."""
    database: str | None
    """The database whose changes it gives; None for a physical one."""
    temporary: bool
    """It ends with the connection that made it."""
    active_pid: int | None
    """The process that serves its reader; None when nobody reads it."""
    reader: str | None
    """User, application and host of its reader, as far as they may be seen."""
    wal_status: str | None
    """``reserved``, ``extended``, ``unreserved`` (soon lost) or ``lost``."""
    invalidation_reason: str | None
    """Why it is lost, such as ``wal_removed`` (PostgreSQL 17; 16 says ``conflict`` on a standby)."""
    restart_lsn: Lsn | None
    """The server keeps the WAL from here on."""
    confirmed_lsn: Lsn | None
    """The reader confirmed everything before this position."""
    lag_bytes: int | None
    """From the confirmed position to the end of the WAL."""
    retained_bytes: int | None
    """From the restart position to the end of the WAL: the WAL that the slot keeps on the disk."""
    safe_wal_size: int | None
    """Bytes that may still be written before the slot is in danger (max_slot_wal_keep_size)."""
    xmin_age: int | None
    """How many transactions old the rows of the catalog are that VACUUM must keep for it."""
    two_phase: bool
    """Prepared transactions are sent at PREPARE TRANSACTION."""
    failover: bool
    """It is synchronized to standbys (PostgreSQL 17)."""
    synced: bool
    """It is the copy, on a standby, of a slot of its primary (PostgreSQL 17)."""
    inactive_since: str | None
    """Since when nobody reads it (PostgreSQL 17)."""
    held_by: str
    """What keeps it where it is: its reader, nobody, or the oldest transaction that still writes."""

    @property
    def lost(self) -> bool:
        """True when the server removed what the slot needs: it never gives changes again."""
        return self.invalidation_reason is not None or self.wal_status == "lost"

    @property
    def problem(self) -> str | None:
        """What is wrong with it, and what to do; None when nothing is."""
        if self.lost:
            reason = self.invalidation_reason or "wal_removed"
            return (
                f"slot {self.name!r} is lost ({reason}): the server removed what it needs to go on; drop it (SELECT "
                f"pg_drop_replication_slot({self.name!r})), create a new one, and begin a new log with an initial copy "
                "of the tables; or have a capture do so in its log (--on-lost-slot snapshot, on_lost_slot='snapshot')"
            )
        if self.wal_status == "unreserved":
            return f"slot {self.name!r} is about to be lost (max_slot_wal_keep_size): let its reader catch up"
        return None


def slot_health(source: str | Connection, slot: str | None = None) -> list[SlotHealth]:
    """Describe the replication slots of a server, or the one named ``slot``, ordered by name.

    ``source`` is a connection string or an open connection. Raises ReplicationError.
    """
    opened = connect(source, replication=False) if isinstance(source, str) else nullcontext(source)
    with opened as connection:
        rows = ask(connection, SLOTS, slot=slot)
        if not rows:
            return []
        end = current_lsn(connection)
        writer = next((str(row["writer"]) for row in ask(connection, BLOCKING_WRITER) if row["writer"]), None)
        return [_health(row["slot"], row["xmin_age"], row["reader"] or None, end, writer) for row in rows]


def _health(row: Mapping[str, Any], age: int | None, reader: str | None, end: Lsn, writer: str | None) -> SlotHealth:
    restart, confirmed = _lsn(row["restart_lsn"]), _lsn(row.get("confirmed_flush_lsn"))
    return SlotHealth(
        name=row["slot_name"],
        plugin=row["plugin"],
        database=row["database"],
        temporary=row["temporary"],
        active_pid=row["active_pid"],
        reader=reader,
        wal_status=row.get("wal_status"),
        invalidation_reason=row.get("invalidation_reason") or _conflict(row),
        restart_lsn=restart,
        confirmed_lsn=confirmed,
        lag_bytes=None if confirmed is None else max(end - confirmed, 0),
        retained_bytes=None if restart is None else max(end - restart, 0),
        safe_wal_size=row.get("safe_wal_size"),
        xmin_age=age,
        two_phase=bool(row.get("two_phase")),
        failover=bool(row.get("failover")),
        synced=bool(row.get("synced")),
        inactive_since=row.get("inactive_since"),
        held_by=_holder(row, reader, writer),
    )


def _conflict(row: Mapping[str, Any]) -> str | None:
    # PostgreSQL 16 calls every invalidated slot conflicting; where WAL was removed it has no restart position any more.
    return "conflict" if row.get("conflicting") and row["restart_lsn"] is not None else None


def _holder(row: Mapping[str, Any], reader: str | None, writer: str | None) -> str:
    if row["active_pid"] is None:
        since = row.get("inactive_since")
        return "nobody reads it" + (f" since {since}" if since else "")
    who = f"its reader, pid {row['active_pid']}" + (f" ({reader})" if reader else "")
    # The restart position cannot pass the beginning of a transaction that still writes.
    return f"{who}, or {writer}" if writer else who


def _lsn(text: str | None) -> Lsn | None:
    return None if text is None else Lsn(text)
