"""A session that is opened when something needs Spark: small batches need none.

What reads and writes small tables runs in this process, and asks of its session only for settings, which are known
before there is one. So a ``DeferredSession`` stands in for a session wherever one is passed on; the first
attribute that it does not have itself starts Spark. Where there is no Java, a small database is
replicated all the same, and what needs Spark is an error of its table.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, Final, cast

from pyspark.sql import SparkSession

from pgoutput_construct.errors import PgoutputError

__all__ = ["NEEDED_BY", "DeferredSession", "has_no_spark", "is_closed", "needed_by"]

NEEDED_BY: Final = ContextVar("NEEDED_BY", default="")
"""What is being done, such as the name of a table: if Spark is started, it is for that."""
_TICK: Final = 0.1
"""Seconds between two looks whether the start of Spark is still waited for."""
_DEFAULTS: Final[Mapping[str, str]] = {"spark.sql.parquet.compression.codec": "snappy", "spark.sql.extensions": ""}
"""Spark's defaults of the settings that are read before it starts."""


class DeferredSession:
    """Stands for a session until it is opened; its settings are known before.

    Args:
        start: Returns the session. It is called once, or again where it raised a PgoutputError; if it starts Spark, in
            a thread of its own.
        settings: Its settings, as far as they are not Spark's defaults.
        parent: The session that it is made of, and that is opened first; None if it starts Spark itself.
        can_start: Returns whether Spark can be started at all.
    """

    def __init__(
        self,
        start: Callable[[], SparkSession],
        settings: Mapping[str, str],
        parent: "DeferredSession | None" = None,
        can_start: Callable[[], bool] = lambda: True,
    ) -> None:
        self._start, self._parent, self._can_start = start, parent, can_start
        self._session = cast("SparkSession | None", None)
        self._error = cast("Exception | None", None)
        self._lock, self._activated, self._cancelled = threading.Lock(), threading.local(), threading.Event()
        self.settings = settings

    @property
    def is_open(self) -> bool:
        """Whether it was needed."""
        return self._session is not None

    @property
    def spark(self) -> SparkSession | None:
        """The session, or the one that it will be made of; None if Spark was not needed."""
        return self._session if self._session is not None or self._parent is None else self._parent.spark

    @property
    def has_failed(self) -> bool:
        """Whether Spark could not be started."""
        return self._error is not None if self._parent is None else self._parent.has_failed

    @property
    def can_start(self) -> bool:
        """Whether Spark can be started, which a machine without Java cannot."""
        return self._can_start() if self._parent is None else self._parent.can_start

    def opened(self) -> SparkSession:
        """Return the session, which is opened if it was not; raise PgoutputError once it was cancelled."""
        self._check()
        with self._lock:
            if self._error is not None:
                raise self._error
            if self._session is None:
                self._session = self._started()
        activate = getattr(self._activated, "activate", None)
        if activate is not None:
            self._activated.activate = None
            activate(self._session)
        return self._session

    def _started(self) -> SparkSession:
        try:
            return self._start() if self._parent is not None else self._in_own_thread()
        except PgoutputError:
            raise
        except Exception as error:
            self._error = error
            raise

    def _in_own_thread(self) -> SparkSession:
        """Start Spark in a thread of its own.

        In the main thread its context would replace the handler of SIGINT; in any one, the session would be that
        thread's active one from then on. And nobody can end the wait for a thread that starts a JVM but by leaving it.
        """
        started, context = Future[SparkSession](), copy_context()

        def run() -> None:
            try:
                started.set_result(context.run(self._start))
            except BaseException as error:
                started.set_exception(error)

        threading.Thread(target=run, name="start of Spark", daemon=True).start()
        while not started.done():
            self._check()
            wait([started], _TICK)
        return started.result()

    def cancel(self) -> None:
        """Cancel the jobs that run, and let no more be started; nobody waits for the start of Spark any longer."""
        if self._parent is not None:
            self._parent.cancel()
        else:
            self._cancelled.set()
            if self._session is not None:
                self._session.sparkContext.cancelAllJobs()

    def _check(self) -> None:
        if self._parent is not None:
            self._parent._check()
        elif self._cancelled.is_set():
            raise PgoutputError("it was interrupted")

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
        return _DeferredConf(self) if self._session is None else self._session.conf

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


class _DeferredConf:
    """The settings of a session that is not open yet: what is not known of them opens it."""

    def __init__(self, session: DeferredSession) -> None:
        self._session = session

    def get(self, name: str, *default: str | None) -> str | None:
        """Return a setting."""
        if name in self._session.settings:
            return self._session.settings[name]
        if name in _DEFAULTS or (default and not name.startswith("spark.sql.")):
            return _DEFAULTS.get(name, *default)
        found: str | None = self._session.opened().conf.get(name, *default)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session.opened().conf, name)


def is_closed(spark: SparkSession | DeferredSession) -> bool:
    """Return whether a session was not opened yet."""
    return isinstance(spark, DeferredSession) and not spark.is_open


def has_no_spark(spark: SparkSession | DeferredSession) -> bool:
    """Return whether a session stands for one that cannot be opened."""
    return isinstance(spark, DeferredSession) and spark.spark is None and not spark.can_start


@contextmanager
def needed_by(what: str) -> Iterator[None]:
    """If Spark is started while the block runs, say that it is for this."""
    token = NEEDED_BY.set(what)
    try:
        yield
    finally:
        NEEDED_BY.reset(token)
