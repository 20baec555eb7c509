"""Replication slots: made, checked and dropped, with errors that say what to run."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg import sql

from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.connection import describe_error
from pgoutput_construct.postgres.health import slot_health
from pgoutput_construct.postgres.queries import Connection, fetch
from pgoutput_construct.postgres.server import check_wal_level
from pgoutput_construct.postgres.slot_wait import SlotWait
from pgoutput_construct.postgres.waiting import Stopped
from pgoutput_construct.wire import Lsn

__all__ = [
    "ExportedSnapshot",
    "LostSlotError",
    "UndecodableSlotError",
    "check_slot",
    "check_unread",
    "create_slot",
    "create_slot_with_snapshot",
    "drop_slot",
    "end_reader",
    "ensure_slot",
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
    return _waiting(connection, slot, timeout, on_wait, lambda: _create(connection, slot, arguments))


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
    row = _waiting(connection, slot, timeout, None, lambda: connection.execute((command + listed).encode()).fetchone())
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


def _waiting(
    connection: Connection,
    slot: str,
    timeout: float | None,
    on_wait: Callable[[list[str]], None] | None,
    create: Callable[[], Made],
) -> Made:
    """Create a slot, however long it takes, with what is waited for told."""
    with SlotWait(connection, slot, timeout, on_wait) as wait:
        try:
            return create()
        except psycopg.Error as error:
            raise wait.failure() or _refused(slot, error) from error
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


def _refused(slot: str, error: psycopg.Error) -> ReplicationError:
    if isinstance(error, psycopg.errors.DuplicateObject):
        text = f"slot {slot!r} exists: capture() resumes it, drop_slot() removes it"
        return ReplicationError(text, sqlstate=error.sqlstate)
    return describe_error(error, f"slot {slot!r} cannot be created")
