"""A publisher in a thread of its own, for programs that do something else meanwhile."""

import asyncio
from collections.abc import Callable, Coroutine
from threading import Thread
from types import TracebackType
from typing import Any, Self

from pgoutput_construct.publisher.feed import Feed
from pgoutput_construct.publisher.server import Publisher
from pgoutput_construct.publisher.service import Settings

__all__ = ["ThreadedPublisher"]


class ThreadedPublisher:
    """Serves while it is open; use it as a context manager."""

    def __init__(self, feed: Feed, settings: Settings | None = None, tell: Callable[[str], None] | None = None) -> None:
        """Prepare to serve a feed; see ``Publisher``."""
        self._publisher = Publisher(feed, settings, tell)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="publisher", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._run(self._publisher.start())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self._publisher.stop())
        self._end()

    @property
    def publisher(self) -> Publisher:
        """What serves."""
        return self._publisher

    @property
    def dsn(self) -> str:
        """A connection string, without a password."""
        settings, about = self._publisher.settings, self._publisher.feed.about
        user = f" user={settings.user}" if settings.user else ""
        return f"host={settings.host} port={self._publisher.port} dbname={about.database}{user}"

    def until_served(self, timeout: float) -> None:
        """Wait until a client has confirmed all that there was; raises TimeoutError after ``timeout`` seconds."""
        future = asyncio.run_coroutine_threadsafe(self._publisher.until_served(), self._loop)
        try:
            future.result(timeout)
        except TimeoutError:
            future.cancel()
            raise

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
