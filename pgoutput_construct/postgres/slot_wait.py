"""What the creation of a slot waits for: the transactions that write now, told while it waits."""

import logging
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

import psycopg

from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.connection import connect
from pgoutput_construct.postgres.queries import Connection, fetch
from pgoutput_construct.postgres.waiting import ANSWER_SECONDS, Patience, PatientConnection

__all__ = ["SlotWait"]

_LOG = logging.getLogger("pgoutput_construct")
_INTERVAL = 2.0

# SnapBuildWaitSnapshot waits for the lock that each transaction holds on its own xid; 0 is a prepared transaction.
_BLOCKERS = """SELECT concat_ws(', ', 'pid ' || b, 'user ' || usename, 'application ' || nullif(application_name, ''),
        state, 'open since ' || xact_start)
    FROM unnest(pg_blocking_pids(%s)) b LEFT JOIN pg_stat_activity ON pid = b WHERE b <> 0
    UNION ALL SELECT format('prepared transaction %%L of %%s, since %%s', gid, owner, prepared) FROM pg_prepared_xacts
    WHERE 0 = ANY(pg_blocking_pids(%s)) ORDER BY 1"""
_ON_STANDBY = "the primary to log its running transactions (run SELECT pg_log_standby_snapshot() on the primary)"


class SlotWait:
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
        self._expired = self._gone = False
        self._patience: Patience | None = None
        self._waited_for: list[str] = []
        self._thread = threading.Thread(target=self._watch, name=f"creation of slot {slot}", daemon=True)

    def failure(self) -> ReplicationError | None:
        """Return why the wait was ended: its time was over, or the server is gone; None when it was not."""
        if self._gone:
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
        return "the server is gone" if self._gone else asked() if asked else None

    def _watch(self) -> None:
        heard = time.monotonic()
        deadline = heard + self._timeout
        while not self._done.wait(max(0.0, min(_INTERVAL, deadline - time.monotonic()))):
            with suppress(ReplicationError, psycopg.Error):
                self._look()
                heard = time.monotonic()
            self._gone = time.monotonic() - heard >= ANSWER_SECONDS
            if time.monotonic() >= deadline:
                self._expired = True
                with suppress(psycopg.Error):
                    self._connection.cancel_safe(timeout=5)
                return

    def _look(self) -> None:
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
