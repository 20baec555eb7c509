"""What the caller of a capture gave to be called, on a thread of its own: a slow one cannot starve the stream."""

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Self, TypeVar

__all__ = ["Callbacks"]

Progress = TypeVar("Progress")

_LOG = logging.getLogger("pgoutput_construct")
_INTERVAL = 0.05  # seconds
_PATIENCE = 3.0
"""Seconds for which a callback that runs is waited for at the end."""


class Callbacks(Generic[Progress]):
    """Asks ``stop`` about every 50 ms, and shows progress; a context manager that shows the last one before it ends.

    Progress that comes while an earlier one is being shown replaces what waits to be shown. What a callback raises is
    raised by ``stopped``, ``report`` or the end of the context; one that does not return then is left behind, which is
    logged.
    """

    def __init__(self, stop: Callable[[], bool] | None, on_progress: Callable[[Progress], None] | None) -> None:
        """Take what to call, None for nothing."""
        self._stop, self._on_progress = stop, on_progress
        self._latest: Progress | None = None
        self._asked = False
        self._error: BaseException | None = None
        self._news, self._done = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="callbacks of a capture", daemon=True)

    def stopped(self) -> bool:
        """Tell whether ``stop`` has said so."""
        self._raise()
        return self._asked

    def report(self, progress: Progress) -> None:
        """Have ``progress``, which nobody changes any more, shown soon."""
        self._raise()
        self._latest = progress
        self._news.set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._done.set()
        self._news.set()
        self._thread.join(_PATIENCE)
        if self._thread.is_alive():
            _LOG.warning("a callback has not returned for %g seconds: the capture ends without it", _PATIENCE)
        if error is None:
            self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _run(self) -> None:
        try:
            while not self._done.is_set():
                asks = self._stop is not None and not self._asked
                self._news.wait(_INTERVAL if asks else None)
                self._show()
                if self._stop is not None and asks:
                    self._asked = self._stop()
            self._show()
        except BaseException as error:  # whatever it is, it is the caller's
            self._error = error

    def _show(self) -> None:
        self._news.clear()
        latest, self._latest = self._latest, None
        if latest is not None and self._on_progress is not None:
            self._on_progress(latest)
