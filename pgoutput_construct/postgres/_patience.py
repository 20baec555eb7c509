"""Waiting for a server without hanging: every wait has a deadline, and gives way to whoever ends the capture."""

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
    "Asked",
    "Patience",
    "PatientConnection",
    "Stopped",
    "collected_signals",
    "result_of",
    "run_in_thread",
]


Result = TypeVar("Result")

ANSWER_SECONDS = 60.0
"""How long a server may be silent after a statement before its connection counts as lost."""

_CANCEL_SECONDS = 2.0
_SLICE = 0.1  # seconds: how long a signal or stop() may go unnoticed
_EVENTS = {Wait.R: select.POLLIN, Wait.W: select.POLLOUT, Wait.RW: select.POLLIN | select.POLLOUT}
_BROKEN = select.POLLERR | select.POLLHUP | select.POLLNVAL

Asked = Callable[[], str | None]
"""What is asked while a server is waited for: the reason to stop waiting, None to go on."""


class Stopped(Exception):  # noqa: N818 - no error
    """The end was asked for while a server was waited for; its text is the reason. Never leaves ``capture``."""


@dataclass
class Patience:
    """How long one wait may last, and who may end it."""

    seconds: float = ANSWER_SECONDS
    """Silence of the server after which the wait ends with psycopg.OperationalError."""
    asked: Asked | None = None
    """Asked ten times a second; a reason ends the wait with Stopped."""
    is_working: Callable[[], bool] | None = None
    """Asked when the time is over: whether the server is at work, as another connection shows; then the time begins
    again. Without it silence alone counts."""

    def wait(self, fileno: int, wanted: Wait) -> Ready:
        """Wait until the socket can do what is wanted, with the GIL released."""
        deadline = time.monotonic() + self.seconds
        poll = select.poll()
        poll.register(fileno, _EVENTS[wanted])
        while not (events := poll.poll(_SLICE * 1000)):
            deadline = self.check(deadline)
        return _ready(events[0][1], wanted)

    def check(self, deadline: float) -> float:
        """Return the deadline, or the next one; raise Stopped or, after the last one, psycopg.OperationalError."""
        if self.asked is not None and (reason := self.asked()):
            raise Stopped(reason)
        if time.monotonic() < deadline:
            return deadline
        if self.is_working is None or not self.is_working():
            raise psycopg.OperationalError(f"the server has not answered for {self.seconds:g} seconds")
        return time.monotonic() + self.seconds


class PatientConnection(psycopg.Connection[Any]):
    """A connection of psycopg on which no statement waits for ever, and each gives way to a signal."""

    patience = Patience()
    """How long an answer is waited for; set it on the object."""

    def wait(self, gen: PQGen[Result], interval: float = _SLICE, timeout: float | None = None) -> Result:
        """Return what psycopg gets from the server; the deadline begins again whenever the server sends something.

        Raises psycopg.Error, also when the server has not answered in time, and Stopped.
        """
        patience = Patience(timeout, self.patience.asked) if timeout is not None else self.patience
        try:
            wanted = next(gen)
            while True:
                wanted = gen.send(patience.wait(self.pgconn.socket, wanted))
        except StopIteration as end:
            result: Result = end.value
            return result
        except psycopg.OperationalError as error:
            if error.sqlstate is None:  # or else the server said so, as of a lock that was not to be had
                self._abandon(gen)
            raise
        except (Stopped, KeyboardInterrupt, SystemExit):
            # A server that waits for something does not see that its client is gone: the statement would go on.
            with suppress(psycopg.Error):
                self.cancel_safe(timeout=_CANCEL_SECONDS)
            self._abandon(gen)
            raise

    def _abandon(self, gen: PQGen[Result]) -> None:
        gen.close()
        self.pgconn.finish()  # an answer that comes later must not be taken for the next one's


def run_in_thread(function: Callable[[], Result], patience: Patience, discard: Callable[[Result], object]) -> Result:
    """Run what cannot be interrupted (finding a host, connecting) in a thread, and wait for it with patience.

    Where nobody waits any more ``discard`` gets the result. Raises what ``function`` raises, psycopg.OperationalError
    at the deadline, Stopped.
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
    """Return the result of the command that was sent; PQgetResult alone would wait for ever, and hold the GIL."""
    while pgconn.flush():
        patience.wait(pgconn.socket, Wait.RW)
        pgconn.consume_input()
    while pgconn.is_busy():
        patience.wait(pgconn.socket, Wait.R)
        pgconn.consume_input()
    return pgconn.get_result()


def _ready(events: int, wanted: Wait) -> Ready:
    if events & _BROKEN:
        return Ready(int(wanted))  # libpq finds the error when it reads or writes
    ready = (Ready.R if events & select.POLLIN else 0) | (Ready.W if events & select.POLLOUT else 0)
    return Ready(int(ready))


def _settle(outcome: "Future[Result]", function: Callable[[], Result]) -> None:
    try:
        outcome.set_result(function())
    except BaseException as error:
        outcome.set_exception(error)


_NUMBERS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def collected_signals(handle: bool) -> Iterator[list[str]]:
    """Collect the names of SIGINT and SIGTERM; a second signal does what it would have done before.

    Where ``handle`` is False, and outside the main thread, the list stays empty.
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

    for number in _NUMBERS:
        signal.signal(number, note)
    try:
        yield received
    finally:
        restore()
