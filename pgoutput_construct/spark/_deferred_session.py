"""A session that is opened when something needs Spark: small batches need none.

What reads and writes small tables runs in this process, and asks of its session only for settings, which are known
before there is one. So a ``DeferredSession`` takes the place of a session wherever one is passed on; the first
attribute that it does not have itself is the moment when Spark starts. Where there is no Java, a small database is
replicated all the same, and what needs Spark is an error of its table.
"""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, cast

from pyspark.sql import SparkSession

__all__ = ["NEEDED_BY", "DeferredSession", "handlers_kept", "is_closed"]

NEEDED_BY: Final = ContextVar("NEEDED_BY", default="")
"""The table that is being written: if Spark is started, it is for that one."""

_DEFAULTS: Final[Mapping[str, str]] = {"spark.sql.parquet.compression.codec": "snappy", "spark.sql.extensions": ""}
"""Spark's defaults of settings that are asked for."""


class DeferredSession:
    """Stands for a session until it is opened; its settings are known before.

    Args:
        start: Returns the session, once.
        settings: Its settings, as far as they are not Spark's defaults.
    """

    def __init__(self, start: Callable[[], SparkSession], settings: Mapping[str, str]) -> None:
        self._start, self._session = start, cast("SparkSession | None", None)
        self._lock, self._activated = threading.Lock(), threading.local()
        self.settings = settings

    @property
    def is_open(self) -> bool:
        """Whether Spark was needed."""
        return self._session is not None

    def opened(self) -> SparkSession:
        """Return the session, which is opened if it was not."""
        with self._lock:
            if self._session is None:
                self._session = self._start()
        activate = getattr(self._activated, "activate", None)
        if activate is not None:
            self._activated.activate = None
            activate(self._session)
        return self._session

    @contextmanager
    def activated(
        self, activate: Callable[[SparkSession], None], end: Callable[[SparkSession], None]
    ) -> Iterator[None]:
        """Call ``activate`` in this thread before it uses the session in the block, and ``end`` after it has."""
        self._activated.activate = activate
        try:
            yield
        finally:
            if self._session is not None and self._activated.activate is None:
                end(self._session)
            self._activated.activate = None

    @property
    def conf(self) -> Any:
        """The settings."""
        return self if self._session is None else self.opened().conf

    def get(self, name: str, *default: str | None) -> str | None:
        """Return a setting as ``conf.get`` does: those that are not known are asked for."""
        if name in self.settings:
            return self.settings[name]
        if name in _DEFAULTS or (default and not name.startswith("spark.sql.")):
            return _DEFAULTS.get(name, *default)
        found: str | None = self.opened().conf.get(name, *default)
        return found

    def set(self, name: str, value: str) -> None:
        """Change a setting, as ``conf.set`` does."""
        self.opened().conf.set(name, value)

    def unset(self, name: str) -> None:
        """Have a setting be Spark's default, as ``conf.unset`` does."""
        self.opened().conf.unset(name)

    def stop(self) -> None:
        """Stop Spark, if it has started."""
        if self._session is not None:
            self._session.stop()

    def __enter__(self) -> "DeferredSession":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.opened(), name)


def is_closed(spark: SparkSession | DeferredSession) -> bool:
    """Return whether a session was not opened yet."""
    return isinstance(spark, DeferredSession) and not spark.is_open


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Keep the handler of SIGINT while the block runs: Spark's context sets one of its own in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
