"""Replication slots: creating, checking, describing and dropping them, with errors that name the SQL to run."""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import psycopg
from psycopg import sql

from pgoutput_construct.catalog_queries import BLOCKING_WRITER, SLOTS
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres._patience import ANSWER_SECONDS, Patience, PatientConnection, Stopped
from pgoutput_construct.postgres.connection import (
    Connection,
    check_wal_level,
    connect,
    current_lsn,
    describe_error,
    fetch,
    fetch_named,
    reading_answer,
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
"""The optional arguments of pg_create_logical_replication_slot, each with the first ``server_version_num`` it has."""

_COMMAND_OPTIONS = {"twophase": "TWO_PHASE", "failover": "FAILOVER"}
_PARENTHESES_SINCE = 150000
_IN_USE = "55006"  # object_in_use, which START_REPLICATION reports (ReplicationSlotAcquire)


class LostSlotError(ReplicationError):
    """A slot that can never send changes again: the server removed what it needs."""


class UndecodableSlotError(LostSlotError):
    """A slot for which decoding fails with the same internal error every time.

    An example is "could not map filenumber ... to relation OID" (ReorderBufferProcessTXN): the slot's historic snapshot
    does not show the table of a change, which may happen if the slot was created while transactions with TRUNCATE ran.
    The slot is not invalidated, so the server never reports it as lost.
    """

    def __init__(self, slot: str, error: ReplicationError, replaced: int = 0) -> None:
        """Describe the error.

        Args:
            slot: The name of the slot.
            error: The error with which each attempt ended.
            replaced: The number of undecodable slots that this one has replaced already.
        """
        others = f" It replaced {replaced} others that failed in the same way." if replaced else ""
        self.reason = f"{error}; reading slot {slot!r} ends with this internal error each time"
        """The problem, without the remedy."""
        super().__init__(
            f"{self.reason}: the server cannot decode the next change, for any reader."
            f"{others} Let the capture drop the slot, create another one and copy all tables again into the same log: "
            f"--on-lost-slot snapshot (on_lost_slot='snapshot'); or drop it (SELECT pg_drop_replication_slot({slot!r})"
            "), create a new one, and start a new log with an initial copy of the tables. Report the error to "
            "PostgreSQL, with the server's log",
            sqlstate=error.sqlstate,
        )


@dataclass(frozen=True)
class ExportedSnapshot:
    """The snapshot of a new slot: it sees the rows as of the LSN from which the slot sends changes."""

    connection: Connection
    """The replication connection that created the slot; the snapshot exists until it is used again or closed."""
    name: str
    """The name for SET TRANSACTION SNAPSHOT."""
    lsn: Lsn
    """The slot's consistent point."""
    published: frozenset[int] = frozenset()
    """The OIDs of the tables that were published before the slot was created. For other tables there may be
    transactions that the snapshot does not see and the stream does not have."""

    def close(self) -> None:
        """Release the snapshot."""
        self.connection.close()


def check_slot(connection: Connection, slot: str) -> Lsn:
    """Return the confirmed LSN of a slot; raise ReplicationError unless it is a usable slot of this database."""
    found = slot_health(connection, slot)
    if not found:
        create = sql.SQL("SELECT pg_create_logical_replication_slot({}, 'pgoutput')").format(slot)
        raise ReplicationError(
            f"replication slot {slot!r} does not exist; run {create.as_string(None)}, or let it be created: "
            "--create-slot (create_slot=True)"
        )
    health = found[0]
    if health.plugin != "pgoutput":
        kind = f"has the plugin {health.plugin}" if health.plugin else "is a physical slot"
        raise ReplicationError(f"slot {slot!r} {kind}: create a logical one with the plugin pgoutput")
    if health.database != connection.info.dbname:
        raise ReplicationError(f"slot {slot!r} belongs to database {health.database!r}, not {connection.info.dbname!r}")
    if health.lost:
        raise LostSlotError(str(health.problem), sqlstate="55000")
    return health.confirmed_lsn or Lsn(0)


def check_unread(connection: Connection, slot: str) -> None:
    """Raise a transient ReplicationError if another process reads ``slot``: a slot has one reader."""
    for health in slot_health(connection, slot):
        if health.active_pid is not None:
            who = f"process {health.active_pid}" + (f" ({health.reader})" if health.reader else "")
            raise ReplicationError(
                f"slot {slot!r} is being read by {who}: stop that reader, give this capture a slot of its own, or wait "
                "until the server detects that the reader is disconnected",
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
    """Create a logical slot with the plugin pgoutput; return its consistent point, from which it sends changes.

    The server waits until the transactions that are writing now have ended.

    Args:
        connection: An open connection to the database.
        slot: The name of the slot.
        two_phase: Send prepared transactions at PREPARE TRANSACTION (PostgreSQL 14).
        temporary: Drop the slot when ``connection`` is closed.
        failover: Synchronize it to standbys, so that a capture can continue with it after a failover (PostgreSQL 17;
            the standby needs ``sync_replication_slots``).
        timeout: Seconds after which the attempt fails; None for no limit.
        on_wait: Called after two seconds, and whenever they change, with descriptions of the transactions that the
            server waits for; by default they are logged as a warning.

    Raises:
        ReplicationError: The slot exists, the server cannot create it, or the timeout expired. No slot is left behind.
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
    """Create a slot as ``create_slot`` does, and export its snapshot.

    Args:
        connection: A replication connection, which must then not be used: it holds the snapshot.
        slot: The name of the slot.
        published: The OIDs of the tables that are published already.
        two_phase: As for ``create_slot``.
        failover: As for ``create_slot``.
        timeout: As for ``create_slot``, in seconds.

    Raises:
        ReplicationError: As ``create_slot``.
    """
    arguments = _arguments(connection, twophase=two_phase, failover=failover)
    options = ["SNAPSHOT 'export'", *(_COMMAND_OPTIONS[name] for name in arguments)]
    if connection.info.server_version >= _PARENTHESES_SINCE:
        listed = f"({', '.join(options)})"
    else:
        listed = " ".join(["EXPORT_SNAPSHOT", *options[1:]])
    command = sql.SQL("CREATE_REPLICATION_SLOT {} LOGICAL pgoutput ").format(sql.Identifier(slot)).as_string(None)

    def create() -> ExportedSnapshot:
        ((_, lsn, snapshot, _),) = connection.execute((command + listed).encode()).fetchall()
        return ExportedSnapshot(connection, str(snapshot), Lsn(lsn), frozenset(published))

    return _create_watched(connection, slot, timeout, None, create)


def _arguments(connection: Connection, **given: bool) -> list[str]:
    """Return the names of the arguments that are set; raise ReplicationError if the server does not have one."""
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
    """Create a slot by ``create``, and report the transactions that the server waits for meanwhile."""
    with _SlotWait(connection, slot, timeout, on_wait) as wait:
        try:
            with reading_answer(f"slot {slot!r} cannot be created"):
                return create()
        except psycopg.Error as error:
            raise wait.failure() or _creation_error(slot, error) from error
        except Stopped:
            if failure := wait.failure():
                raise failure from None
            raise


def ensure_slot(connection: Connection, slot: str, **options: Any) -> bool:
    """Create ``slot`` if it does not exist, with the ``options`` of create_slot; return whether it was created."""
    if slot_health(connection, slot):
        return False
    create_slot(connection, slot, **options)
    return True


def drop_slot(connection: Connection, slot: str, *, missing_ok: bool = False) -> None:
    """Drop a slot: the server no longer retains WAL for it.

    Args:
        connection: An open connection.
        slot: The name of the slot.
        missing_ok: Whether to do nothing if the slot does not exist.

    Raises:
        ReplicationError: The slot does not exist, or is being read.
    """
    query = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s"
    if not fetch(connection, query, [slot], doing=f"slot {slot!r} cannot be dropped") and not missing_ok:
        raise ReplicationError(f"replication slot {slot!r} does not exist")


def end_reader(connection: Connection, slot: str, pid: int) -> None:
    """Terminate the walsender ``pid`` if it still reads ``slot``: that of our own last connection, which was lost.

    It may not detect that for long, never with ``wal_sender_timeout = 0``, and occupies the slot meanwhile. A role may
    terminate its own processes; if it may not, the capture waits until the server detects it.

    Args:
        connection: An open connection.
        slot: The name of the slot.
        pid: The process id of the walsender.
    """
    query = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = %s AND active_pid = %s"
    with suppress(ReplicationError):
        fetch(connection, query, [slot, pid])


def _create(connection: Connection, slot: str, arguments: Iterable[str]) -> Lsn:
    named = "".join(f", {name} => true" for name in arguments)
    query = f"SELECT lsn - '0/0'::pg_lsn FROM pg_create_logical_replication_slot(%s, 'pgoutput'{named})"
    ((lsn,),) = connection.execute(query.encode(), [slot]).fetchall()
    return Lsn(int(lsn))


def _creation_error(slot: str, error: psycopg.Error) -> ReplicationError:
    if isinstance(error, psycopg.errors.DuplicateObject):
        text = f"slot {slot!r} exists already: capture() resumes it, drop_slot() removes it"
        return ReplicationError(text, sqlstate=error.sqlstate)
    return describe_error(error, f"slot {slot!r} cannot be created")


_LOG = logging.getLogger("pgoutput_construct")
_INTERVAL = 2.0

# SnapBuildWaitSnapshot waits for the lock that each transaction holds on its xid; pid 0 is a prepared transaction.
_BLOCKERS = """SELECT concat_ws(', ', 'pid ' || b, 'user ' || usename, 'application ' || nullif(application_name, ''),
        state, 'open since ' || xact_start)
    FROM unnest(pg_blocking_pids(%s)) b LEFT JOIN pg_stat_activity ON pid = b WHERE b <> 0
    UNION ALL SELECT format('prepared transaction %%L of %%s, since %%s', gid, owner, prepared) FROM pg_prepared_xacts
    WHERE 0 = ANY(pg_blocking_pids(%s)) ORDER BY 1"""
_ON_STANDBY = "the primary to log its running transactions (run SELECT pg_log_standby_snapshot() on the primary)"


class _SlotWait:
    """Watches the creation of a slot over a second connection; a context manager around the statement.

    The statement has no time limit while the server answers the second connection.
    """

    def __init__(
        self,
        connection: Connection,
        slot: str,
        timeout: float | None,
        on_wait: Callable[[list[str]], None] | None,
    ) -> None:
        """Prepare to watch; the arguments are those of ``create_slot``."""
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
        """Return the error if the wait was ended: by the timeout, or because the server does not answer; else None."""
        if self._unreachable:
            return ReplicationError(f"the server does not answer: slot {self._slot!r} was not created", transient=True)
        if not self._expired:
            return None
        return ReplicationError(
            f"slot {self._slot!r} was not created in {self._timeout:g} seconds, and none is left behind: the server "
            f"waits for {'; '.join(self._waited_for) or 'open transactions'}; end them, or use a longer timeout",
            sqlstate="57014",
        )

    def __enter__(self) -> Self:
        if isinstance(self._connection, PatientConnection):
            self._patience = self._connection.patience
            self._connection.patience = Patience(math.inf, self._stop_reason)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(_INTERVAL)
        if isinstance(self._connection, PatientConnection) and self._patience is not None:
            self._connection.patience = self._patience

    def _stop_reason(self) -> str | None:
        stop = self._patience.stop if self._patience else None
        return "the server does not answer" if self._unreachable else stop() if stop else None

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
    """One replication slot, from the view pg_replication_slots; None for values that the server does not have."""

    name: str
    """The name."""
    plugin: str | None
    """The output plugin; None for a physical slot."""
    database: str | None
    """The database whose changes it sends; None for a physical slot."""
    temporary: bool
    """Whether it is dropped with the connection that created it."""
    active_pid: int | None
    """The process that serves its reader; None if it is not being read."""
    reader: str | None
    """User, application and host of its reader, as far as the role may see them."""
    wal_status: str | None
    """``reserved``, ``extended``, ``unreserved`` (soon lost) or ``lost``."""
    invalidation_reason: str | None
    """Why it is lost, such as ``wal_removed`` (PostgreSQL 17; 16 has ``conflict`` on a standby)."""
    restart_lsn: Lsn | None
    """The oldest LSN whose WAL the server retains for it."""
    confirmed_lsn: Lsn | None
    """The reader confirmed everything before this LSN (confirmed_flush_lsn)."""
    lag_bytes: int | None
    """Bytes of WAL from the confirmed LSN to the end."""
    retained_bytes: int | None
    """Bytes of WAL from the restart LSN to the end, which the slot keeps on disk."""
    safe_wal_size: int | None
    """Bytes that may be written before the slot may become lost (max_slot_wal_keep_size)."""
    xmin_age: int | None
    """The age, in transactions, of the oldest catalog rows that VACUUM must retain for it."""
    two_phase: bool
    """Whether prepared transactions are sent at PREPARE TRANSACTION."""
    failover: bool
    """Whether it is synchronized to standbys (PostgreSQL 17)."""
    synced: bool
    """Whether it was synchronized, on a standby, from its primary (PostgreSQL 17)."""
    inactive_since: str | None
    """The time since which it is not being read (PostgreSQL 17)."""
    held_by: str
    """What keeps it from advancing: its reader, the lack of one, or the oldest transaction that is still writing."""

    @property
    def lost(self) -> bool:
        """Whether the server removed what the slot needs: it can never send changes again."""
        return self.invalidation_reason is not None or self.wal_status == "lost"

    @property
    def problem(self) -> str | None:
        """The problem with it, and the remedy; None for none."""
        if self.lost:
            reason = self.invalidation_reason or "wal_removed"
            return (
                f"slot {self.name!r} is lost ({reason}): the server removed what it needs to continue; drop it (SELECT "
                f"pg_drop_replication_slot({self.name!r})), create a new one, and start a new log with an initial copy "
                "of the tables; or let a capture do so in its log (--on-lost-slot snapshot, on_lost_slot='snapshot')"
            )
        if self.wal_status == "unreserved":
            return f"slot {self.name!r} is about to be lost (max_slot_wal_keep_size): its reader must catch up"
        return None


def slot_health(source: str | Connection, slot: str | None = None) -> list[SlotHealth]:
    """Describe the replication slots of a server, or the one named ``slot``, ordered by name.

    ``source`` is a connection string or an open connection. Raises ReplicationError.
    """
    opened = connect(source, replication=False) if isinstance(source, str) else nullcontext(source)
    with opened as connection:
        rows = fetch_named(connection, SLOTS, slot=slot)
        if not rows:
            return []
        end = current_lsn(connection)
        writer = next((str(row["writer"]) for row in fetch_named(connection, BLOCKING_WRITER) if row["writer"]), None)
        with reading_answer(SLOTS.purpose):
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
    # PostgreSQL 16 sets conflicting for every invalidated slot; if WAL was removed, restart_lsn is null.
    return "conflict" if row.get("conflicting") and row["restart_lsn"] is not None else None


def _holder(row: Mapping[str, Any], reader: str | None, writer: str | None) -> str:
    if row["active_pid"] is None:
        since = row.get("inactive_since")
        return "nobody reads it" + (f" since {since}" if since else "")
    who = f"its reader, pid {row['active_pid']}" + (f" ({reader})" if reader else "")
    # restart_lsn cannot advance past the beginning of a transaction that is still writing.
    return f"{who}, or {writer}" if writer else who


def _lsn(text: str | None) -> Lsn | None:
    return None if text is None else Lsn(text)
