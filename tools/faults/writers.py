"""Writers that run during an attack: transactions of every kind, on several connections, across server crashes."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors

from tools.faults.errors import FaultsError
from tools.faults.steps import NOTE_STEP, STEPS, STEPS_TO_KEEP, TICKET_STEP

__all__ = ["Writers", "finish_prepared"]

Connect = Callable[..., "psycopg.Connection[Any]"]
"""Opens an autocommit connection to the database; takes libpq's options."""

WRITERS = 4
_TRANSIENT = (errors.DeadlockDetected, errors.LockNotAvailable, errors.UniqueViolation, errors.DuplicateObject)
"""Errors that writers cause each other: the transaction is rolled back, and the next one begins."""
_SETTINGS = "-c lock_timeout=300ms"
_RETRY_SECONDS = 0.1
_PAUSE_SECONDS, _CALM_SECONDS = 0.1, 0.5
"""Between two transactions of a writer, in the mean."""


class Writers:
    """Several writers in threads of their own; a context manager that stops them and finishes what they prepared."""

    def __init__(self, connect: Connect, seed: int) -> None:
        """``connect`` opens connections; ``seed`` makes the choices, not their timing."""
        self._connect = connect
        self._pause = _PAUSE_SECONDS
        self._stop, self._may_write = threading.Event(), threading.Event()
        self._may_write.set()
        self._rolled_back: list[str] = []
        self._pool = ThreadPoolExecutor(WRITERS, "writer")
        self._futures: list[Future[None]] = [
            self._pool.submit(self._run, random.Random(f"{seed} {number}")) for number in range(WRITERS)
        ]

    @property
    def rolled_back(self) -> int:
        """How many transactions and savepoints were rolled back."""
        return len(self._rolled_back)

    @contextmanager
    def calm(self) -> Iterator[None]:
        """Reduce the writes during a block, so that a stalled capture has little to catch up with."""
        self._pause = _CALM_SECONDS
        try:
            yield
        finally:
            self._pause = _PAUSE_SECONDS

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let no writer begin a transaction during a block; those that are open end."""
        self._may_write.clear()
        try:
            yield
        finally:
            self._may_write.set()

    def check(self) -> None:
        """Raise the error of a writer that ended early, if any."""
        for future in self._futures:
            if future.done() and (error := future.exception()):
                raise FaultsError(f"a writer failed: {type(error).__name__}: {error}") from error

    def stop(self) -> None:
        """Let each writer end its transaction, then commit or roll back what is prepared; raises FaultsError."""
        self._stop.set()
        self._pool.shutdown(wait=True)
        self.check()

    def __enter__(self) -> "Writers":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown(wait=True)

    def _run(self, chance: random.Random) -> None:
        while not self._stop.is_set():
            try:
                with self._connect(options=_SETTINGS) as connection:
                    self._session(connection, chance)
            except psycopg.OperationalError:
                time.sleep(_RETRY_SECONDS)  # the server is down, or was

    def _session(self, connection: "psycopg.Connection[Any]", chance: random.Random) -> None:
        cursor = connection.cursor()
        while self._may_write.wait() and not self._stop.is_set():
            try:
                self._transaction(cursor, chance)
            except _TRANSIENT:
                self._roll_back(cursor, "ROLLBACK")
            time.sleep(chance.expovariate(1 / self._pause))

    def _transaction(self, cursor: Any, chance: random.Random) -> None:
        cursor.execute("BEGIN")
        slow = chance.random() < 0.05
        for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
            if chance.random() < 0.25:
                self._savepoint(cursor, chance)
            else:
                self._step(cursor, chance, {**STEPS, **STEPS_TO_KEEP})
            if slow:
                self._stop.wait(chance.random())  # open while others commit, and while things break
        self._end(cursor, chance)

    def _step(self, cursor: Any, chance: random.Random, steps: dict[str, Any]) -> None:
        steps[chance.choice(list(steps))](cursor, chance)

    def _savepoint(self, cursor: Any, chance: random.Random, depth: int = 1) -> None:
        cursor.execute(f"SAVEPOINT s{depth}")
        self._step(cursor, chance, STEPS)
        if depth < 3 and chance.random() < 0.3:
            self._savepoint(cursor, chance, depth + 1)
            self._step(cursor, chance, STEPS)
        if chance.random() < 0.5:
            cursor.execute(f"RELEASE SAVEPOINT s{depth}")
        else:
            self._roll_back(cursor, f"ROLLBACK TO SAVEPOINT s{depth}")

    def _roll_back(self, cursor: Any, statement: str) -> None:
        cursor.execute(statement)
        self._rolled_back.append(statement)

    def _end(self, cursor: Any, chance: random.Random) -> None:
        drawn = chance.random()
        if drawn < 0.15:
            self._roll_back(cursor, "ROLLBACK")
        elif drawn < 0.35:
            self._end_prepared(cursor, chance)
        else:
            if drawn < 0.45:
                NOTE_STEP(cursor, chance)
            TICKET_STEP(cursor, chance)
            cursor.execute("COMMIT")

    def _end_prepared(self, cursor: Any, chance: random.Random) -> None:
        cursor.execute(f"PREPARE TRANSACTION 'gid {chance.randint(1, 40)}'")  # names come again
        if chance.random() < 0.7:
            finish_prepared(cursor.connection, chance, most=2)


def finish_prepared(connection: "psycopg.Connection[Any]", chance: random.Random, most: int | None = None) -> None:
    """Commit or roll back transactions that are prepared in the database of ``connection``, the oldest first.

    ``most`` is how many; None finishes all.
    """
    query = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() ORDER BY prepared LIMIT %s"
    for (gid,) in connection.execute(query, [most]).fetchall():
        try:
            connection.execute(f"{chance.choice(('COMMIT', 'COMMIT', 'ROLLBACK'))} PREPARED '{gid}'".encode())
        except (errors.UndefinedObject, errors.ObjectNotInPrerequisiteState):
            continue  # another writer finishes it
