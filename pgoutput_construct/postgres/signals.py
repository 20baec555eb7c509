"""SIGINT and SIGTERM as a wish to end, so that what was received is finished first."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collected_signals"]

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
