"""The user's callbacks of a capture, ``stop`` and ``on_progress``, on a thread of their own: a slow one delays none."""

import logging
import threading
from collections.abc import Callable
from typing import Generic, Self, TypeVar

__all__ = ["Callbacks"]

_LOG = logging.getLogger("pgoutput_construct")

Progress = TypeVar("Progress")


_INTERVAL = 0.05  # seconds
_PATIENCE = 3.0
"""Seconds for which the end of a capture waits for a callback that is running."""


class Callbacks(Generic[Progress]):
    """Calls the user's callbacks on a thread of its own; a context manager that reports the last progress on exit.

    ``stop`` is called about every 50 ms. A progress report that arrives while ``on_progress`` is running replaces the
    one that is waiting. Errors of callbacks are raised by ``stopped``, ``report`` or the end of the context. A callback
    that has not returned by then is abandoned, with a warning.
    """

    def __init__(self, stop: Callable[[], bool] | None, on_progress: Callable[[Progress], None] | None) -> None:
        """Take the callbacks; None for none."""
        self._stop, self._on_progress = stop, on_progress
        self._latest: Progress | None = None
        self._stopped = False
        self._error: BaseException | None = None
        self._news, self._done = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="callbacks of a capture", daemon=True)

    def stopped(self) -> bool:
        """Return whether ``stop`` has returned True."""
        self._raise()
        return self._stopped

    def report(self, progress: Progress) -> None:
        """Pass ``progress``, which must not change any more, to ``on_progress`` soon."""
        self._raise()
        self._latest = progress
        self._news.set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        self._done.set()
        self._news.set()
        self._thread.join(_PATIENCE)
        if self._thread.is_alive():
            _LOG.warning("a callback has not returned within %g seconds: the capture ends without it", _PATIENCE)
        if error is None:
            self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _run(self) -> None:
        try:
            while not self._done.is_set():
                polls = self._stop is not None and not self._stopped
                self._news.wait(_INTERVAL if polls else None)
                self._show()
                if self._stop is not None and polls:
                    self._stopped = self._stop()
            self._show()
        except BaseException as error:  # whatever it is, the caller's thread raises it
            self._error = error

    def _show(self) -> None:
        self._news.clear()
        latest, self._latest = self._latest, None
        if latest is not None and self._on_progress is not None:
            self._on_progress(latest)
