"""A second connection next to the stream: polls slot, publications and catalog, and writes a heartbeat."""

import logging
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import psycopg

from pgoutput_construct.catalog_queries import SENDER_STATE
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres._catalog.catalog_watch import CatalogWatch
from pgoutput_construct.postgres._patience import Patience, Stopped
from pgoutput_construct.postgres.connection import Connection, connect, fetch, fetch_named
from pgoutput_construct.postgres.publications import LostPublicationError, missing_publications
from pgoutput_construct.postgres.replication_slots import SlotHealth, slot_health

__all__ = ["HEARTBEAT_PREFIX", "Heartbeat", "SlotWatch"]

_LOG = logging.getLogger("pgoutput_construct")

_CATALOG_SECONDS = 1.0
_PAUSE_FACTOR = (
    10  # the pause after a query is at least 10 times its duration: large catalogs are not polled constantly
)
_MIN_PAUSE = 0.02  # seconds between two rounds, even if someone waits for them

HEARTBEAT_PREFIX = "pgoutput_construct"
"""The prefix of the logical messages that a heartbeat writes."""


@dataclass(frozen=True)
class Heartbeat:
    """A logical message that is written periodically, so that the slot of a quiet database advances."""

    seconds: float
    """The interval."""
    transactional: bool = False
    """Whether each message is part of a transaction, with a Begin and a Commit."""

    def write(self, connection: Connection) -> None:
        """Write one message; any role may, unless EXECUTE on pg_logical_emit_message() was revoked from PUBLIC."""
        query = "SELECT pg_logical_emit_message(%s, %s, '')"
        fetch(connection, query, [self.transactional, HEARTBEAT_PREFIX], doing="the heartbeat cannot be written")


class SlotWatch:
    """Polls the server over an ordinary connection, in a thread of its own; a context manager.

    ``check`` raises what it has found. A lost connection is opened again: whether the server is reachable is for the
    stream to decide.
    """

    def __init__(
        self,
        dsn: str,
        slot: str,
        publications: Sequence[str],
        interval: float,
        heartbeat: Heartbeat | None = None,
        catalog: CatalogWatch | None = None,
        replaces_lost_slot: bool = False,
    ) -> None:
        """Prepare to poll; ``start`` begins.

        Args:
            dsn: The connection string, as libpq reads it.
            slot: The name of the slot.
            publications: The names of the publications, which must not be dropped.
            interval: Seconds between two polls of the slot and the publications.
            heartbeat: What to write periodically; None for nothing.
            catalog: Polled every second, or every ``interval`` if that is shorter, and whenever it calls ``wake``.
            replaces_lost_slot: Whether the capture replaces a slot that is lost, which is then no error here.
        """
        self.synchronous = False
        """Whether commits wait for the confirmations of the slot's reader (synchronous_standby_names)."""
        self.health: SlotHealth | None = None
        """The slot when it was last polled; None before that."""
        self._checked_at = self._last_active = 0.0
        self._dsn, self._slot, self._publications = dsn, slot, tuple(publications)
        self._health = _Task(self._check_slot, interval)
        self._tasks = [self._health]
        if heartbeat is not None:
            self._tasks.append(_Task(heartbeat.write, heartbeat.seconds))
        self._woken = threading.Event()
        self._watched, self._replaces_lost_slot = catalog, replaces_lost_slot
        if catalog is not None:
            self._catalog = _Task(catalog.poll, min(interval, _CATALOG_SECONDS))
            self._tasks.append(self._catalog)
            catalog.wake = self._wake_for_catalog
        self._problem: Exception | None = None
        self._connection: Connection | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch of slot {slot}", daemon=True)

    def last_active(self) -> float:
        """Return when the slot's walsender was last seen active, in seconds of ``time.monotonic``.

        The caller has a silent stream, so the slot is polled again once an interval has passed, however long the last
        poll took.
        """
        if time.monotonic() - self._checked_at >= self._health.interval:
            self._health.due = 0.0
            self._woken.set()
        return self._last_active

    def check(self) -> None:
        """Raise the ReplicationError or ChangeLogError for which the capture must end, if there is one."""
        if self._watched is not None:
            self._watched.check()
        if self._problem is not None:
            raise self._problem

    def start(self) -> None:
        """Start polling; does nothing if it was started before."""
        if self._thread.ident is None:
            self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join(5)

    def _run(self) -> None:
        while not self._done.wait(_MIN_PAUSE):
            for task in self._tasks:
                if time.monotonic() >= task.due:
                    self._run_task(task)
            self._woken.wait(max(0.0, min(task.due for task in self._tasks) - time.monotonic()))
            self._woken.clear()
        self._disconnect()

    def _wake_for_catalog(self) -> None:
        self._catalog.due = 0.0
        self._woken.set()

    def _run_task(self, task: "_Task") -> None:
        try:
            began = time.monotonic()
            task.due = began + task.interval
            if self._connection is None:
                self._connection = connect(self._dsn, replication=False, patience=Patience(stop=self._stopped))
            self._warn_once(task, task.action(self._connection))
            if task.due:  # nobody has requested it meanwhile
                task.due = max(task.due, time.monotonic() + _PAUSE_FACTOR * (time.monotonic() - began))
        except Stopped:
            self._disconnect()
        except (ReplicationError, psycopg.Error) as error:
            self._disconnect()
            if self._watched is not None and task is self._catalog:
                self._watched.note_failure()
            self._warn_once(task, f"{error} (on the second connection; the stream continues)")
        except Exception as error:  # such as a log that cannot be read: the capture must not continue unwatched
            self._problem = error

    def _check_slot(self, connection: Connection) -> str | None:
        self._checked_at = time.monotonic()
        if missing := missing_publications(connection, self._publications):
            names = ", ".join(map(repr, missing))
            self._problem = LostPublicationError(f"publication {names} no longer exists")
        self.health = next(iter(slot_health(connection, self._slot)), None)
        problem = self.health.problem if self.health else None
        if self.health and self.health.lost and not self._replaces_lost_slot:
            self._problem = ReplicationError(str(problem))
        pid = self.health.active_pid if self.health else None
        state = next(
            iter(fetch_named(connection, SENDER_STATE, pid=pid)), {"is_synchronous": False, "is_at_work": False}
        )
        self.synchronous = state["is_synchronous"]
        self._last_active = self._checked_at if state["is_at_work"] else self._last_active
        return problem

    def _stopped(self) -> str | None:
        return "stop" if self._done.is_set() else None

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _warn_once(self, task: "_Task", text: str | None) -> None:
        # Once for as long as it lasts, whichever task finds it; texts that differ in numbers only are the same problem.
        state = re.sub(r"\d+", "", text or "")
        if text and all(state != other.state for other in self._tasks):
            _LOG.warning("%s", " ".join(text.split()))
        task.state = state


@dataclass
class _Task:
    action: Callable[[Connection], str | None]
    """Returns a problem; None for none."""
    interval: float
    due: float = 0.0
    state: str = ""
    """The last problem, without the numbers in it."""
