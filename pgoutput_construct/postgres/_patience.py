"""Waiting for a server without hanging: every wait has a deadline, and ends early when the capture is to end."""

import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg import pq
from psycopg.abc import PQGen
from psycopg.waiting import Ready, Wait

__all__ = [
    "ANSWER_SECONDS",
    "Patience",
    "PatientConnection",
    "StopCheck",
    "Stopped",
    "collected_signals",
    "failed_result",
    "result_of",
    "run_in_thread",
]


Result = TypeVar("Result")

ANSWER_SECONDS = 60.0
"""Seconds without an answer to a statement after which a connection counts as lost."""

_CANCEL_SECONDS = 2.0
_SLICE = 0.1  # seconds after which a signal or stop() is noticed at the latest
_EVENTS = {Wait.R: select.POLLIN, Wait.W: select.POLLOUT, Wait.RW: select.POLLIN | select.POLLOUT}
_COPIES = {pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH}
_BROKEN = select.POLLERR | select.POLLHUP | select.POLLNVAL

StopCheck = Callable[[], str | None]
"""Called while waiting for a server: returns the reason to stop waiting, or None."""


class Stopped(Exception):  # noqa: N818 - no error
    """A wait was ended on request; the text is the reason. Never leaves ``capture``."""


@dataclass
class Patience:
    """How long a wait may last, and what may end it."""

    seconds: float = ANSWER_SECONDS
    """Seconds of silence of the server after which the wait ends with psycopg.OperationalError."""
    stop: StopCheck | None = None
    """Called ten times a second; a reason ends the wait with Stopped."""
    is_working: Callable[[], bool] | None = None
    """Called after ``seconds``: returns whether the server is active, by another connection; then the time starts
    again. Without it only silence counts."""

    def wait(self, fileno: int, wanted: Wait) -> Ready:
        """Wait until the socket is ready for ``wanted``, with the GIL released."""
        deadline = time.monotonic() + self.seconds
        poll = select.poll()
        poll.register(fileno, _EVENTS[wanted])
        while not (events := poll.poll(_SLICE * 1000)):
            deadline = self.check(deadline)
        return _ready(events[0][1], wanted)

    def check(self, deadline: float) -> float:
        """Return the current deadline (time.monotonic()), extended if it has passed and the server is active.

        Raises Stopped if a stop is requested, and psycopg.OperationalError if the deadline has passed.
        """
        if self.stop is not None and (reason := self.stop()):
            raise Stopped(reason)
        if time.monotonic() < deadline:
            return deadline
        if self.is_working is None or not self.is_working():
            raise psycopg.OperationalError(f"the server has not answered for {self.seconds:g} seconds")
        return time.monotonic() + self.seconds


class PatientConnection(psycopg.Connection[Any]):
    """A psycopg connection on which every statement has a deadline, and can be interrupted by a signal."""

    patience = Patience()
    """How long to wait for an answer; set it on the instance."""

    def wait(self, gen: PQGen[Result], interval: float = _SLICE, timeout: float | None = None) -> Result:
        """Run a psycopg generator; the deadline starts again whenever the server sends something.

        Raises psycopg.Error, also if the server does not answer in time, and Stopped.
        """
        patience = Patience(timeout, self.patience.stop) if timeout is not None else self.patience
        try:
            wanted = _advance(gen, None)
            while True:
                wanted = _advance(gen, patience.wait(self.pgconn.socket, wanted))
        except StopIteration as end:
            result: Result = end.value
            return result
        except psycopg.OperationalError as error:
            if error.sqlstate is None:  # otherwise the server sent it, for example after lock_timeout
                self._abandon(gen)
            raise
        except (Stopped, KeyboardInterrupt, SystemExit):
            # A server that waits for something does not detect that its client is gone: the statement would continue.
            with suppress(psycopg.Error):
                self.cancel_safe(timeout=_CANCEL_SECONDS)
            self._abandon(gen)
            raise

    def _abandon(self, gen: PQGen[Result]) -> None:
        gen.close()
        self.pgconn.finish()  # a late answer must not be read as that of the next statement


def _advance(gen: PQGen[Result], ready: Any) -> Wait:
    """Let psycopg continue; what it raises for bytes that no server sends is an error of the connection."""
    try:
        return gen.send(ready)
    except UnicodeEncodeError:
        raise  # an argument's, before anything was sent
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise psycopg.OperationalError(f"the server's answer cannot be read: {error}") from error


def run_in_thread(function: Callable[[], Result], patience: Patience, discard: Callable[[Result], object]) -> Result:
    """Run a function that cannot be interrupted (DNS lookup, connecting) in a thread, and wait for it.

    Args:
        function: The function.
        patience: How long to wait, and what may end the wait.
        discard: Called with the result if the wait ended before.

    Raises:
        psycopg.OperationalError: The deadline has passed.
        Stopped: The end was requested. Errors of ``function`` are raised as they are.
    """
    outcome: Future[Result] = Future()
    threading.Thread(target=_settle, args=(outcome, function), daemon=True).start()
    deadline = time.monotonic() + patience.seconds
    try:
        while not wait_for_futures([outcome], _SLICE).done:
            deadline = patience.check(deadline)
    except BaseException:
        outcome.add_done_callback(lambda late: late.exception() or discard(late.result()))
        raise
    return outcome.result()


def result_of(pgconn: pq.abc.PGconn, patience: Patience) -> pq.abc.PGresult | None:
    """Return the next result of a command; PQgetResult alone would wait without a limit, and hold the GIL."""
    while pgconn.flush():
        patience.wait(pgconn.socket, Wait.RW)
        pgconn.consume_input()
    while pgconn.is_busy():
        patience.wait(pgconn.socket, Wait.R)
        pgconn.consume_input()
    return pgconn.get_result()


def failed_result(pgconn: pq.abc.PGconn, patience: Patience, result: pq.abc.PGresult | None) -> pq.abc.PGresult | None:
    """Read a command's results to the last one, beginning with ``result``; return the first that failed, or None.

    Raises psycopg.Error if the connection breaks before, or the server begins a COPY: its result would come for ever.
    """
    failed = None
    while result is not None:
        if result.status in _COPIES:
            raise psycopg.OperationalError("the server began a COPY that was not requested")
        if result.status != pq.ExecStatus.COMMAND_OK:
            failed = failed or result
        try:
            result = result_of(pgconn, patience)
        except psycopg.Error:
            if failed is None:
                raise
            result = None  # the error was the server's last word
    return failed


def _ready(events: int, wanted: Wait) -> Ready:
    if events & _BROKEN:
        return Ready(int(wanted))  # libpq will report the error when it reads or writes
    ready = (Ready.R if events & select.POLLIN else 0) | (Ready.W if events & select.POLLOUT else 0)
    return Ready(int(ready))


def _settle(outcome: "Future[Result]", function: Callable[[], Result]) -> None:
    try:
        outcome.set_result(function())
    except BaseException as error:
        outcome.set_exception(error)


_NUMBERS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def collected_signals(handle: bool, on_signal: Callable[[], None] = lambda: None) -> Iterator[list[str]]:
    """Collect the names of SIGINT and SIGTERM in a list; a second signal has its previous effect.

    If ``handle`` is False, and outside the main thread, the list stays empty.

    Args:
        handle: Whether to handle the signals.
        on_signal: Called by the handler: it must not take a lock.
    """
    received: list[str] = []
    if not handle or threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = {number: signal.getsignal(number) for number in _NUMBERS}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def note(number: int, _frame: object) -> None:
        received.append(signal.Signals(number).name)
        restore()
        on_signal()

    for number in _NUMBERS:
        signal.signal(number, note)
    try:
        yield received
    finally:
        restore()
