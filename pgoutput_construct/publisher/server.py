"""A publisher on a socket: it accepts clients and serves each one in a task of its own."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from itertools import count
from threading import Thread
from types import TracebackType
from typing import Any, Final, Self

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.publisher._feed.feed import Feed
from pgoutput_construct.publisher._server.client_connection import ClientConnection
from pgoutput_construct.publisher._server.client_session import ClientSession
from pgoutput_construct.publisher._server.copy_both import CopyBothStream
from pgoutput_construct.publisher._server.query_results import QueryContext
from pgoutput_construct.publisher._server.replication_commands import StartReplication
from pgoutput_construct.publisher._server.service import Service, Settings, current_task
from pgoutput_construct.publisher._server.walsender import WalSender
from pgoutput_construct.publisher.slots import Slot

__all__ = ["Publisher", "ThreadedPublisher"]


_CLOSING_SECONDS: Final = 5.0
"""Seconds for which a closing connection waits for the client to read the rest."""
_SLOTS_SECONDS: Final = 1.0
"""Seconds between writes of the slots' positions; after a crash, clients get again what they confirmed meanwhile."""


class Publisher(Service):
    """Serves a feed to clients on a socket, as PostgreSQL's walsender does."""

    def __init__(
        self, feed: Feed | None, settings: Settings | None = None, report: Callable[[str], None] | None = None
    ) -> None:
        """Prepare to serve.

        Args:
            feed: The feed; None: ``serve`` is called with it later.
            settings: How it is served; Settings() by default.
            report: Called with each line of the publisher's log.
        """
        super().__init__(feed, settings, report)
        self.port = self.settings.port
        """The port; after ``start``, the one that it listens on."""
        self._server: asyncio.Server | None = None
        self._sessions: set[asyncio.Task[None]] = set()
        self._numbers = count(1)
        self._background: set[asyncio.Task[None]] = set()

    def open_stream(
        self, client: ClientConnection, context: QueryContext, slot: Slot, command: StartReplication
    ) -> CopyBothStream:
        """See Service."""
        return WalSender(self, client, context, slot, command)

    def session(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ClientSession:
        """Return the session of a client that has connected."""
        return ClientSession(self, ClientConnection(reader, writer), next(self._numbers))

    async def start(self) -> None:
        """Listen for clients.

        Raises:
            OSError: The port is in use.
            PgoutputError: The file of slots is damaged, or in use by another publisher.
        """
        if self._feed is not None:
            self.serve(self._feed)
        await asyncio.to_thread(self.slots.open)
        host, port = self.settings.host, self.settings.port
        try:
            self._server = await asyncio.start_server(self._accept, host, port, limit=1 << 16)
        except BaseException:
            self.slots.close()
            raise
        self.port = self._server.sockets[0].getsockname()[1]
        self._background.add(asyncio.create_task(self._keep_slots()))

    async def stop(self) -> None:
        """Stop listening, and end all connections."""
        if self._server is not None:
            self._server.close()
        tasks = self._sessions | self._background
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._save_slots()
        self.slots.close()

    async def _keep_slots(self) -> None:
        while True:
            await asyncio.sleep(_SLOTS_SECONDS)
            await self._save_slots()

    async def _save_slots(self) -> None:
        try:
            await asyncio.to_thread(self.slots.save)
        except PgoutputError as error:
            self.report(f"the slots cannot be saved: {error}")

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = current_task()
        self._sessions.add(task)
        self.meet(task, writer.transport)
        try:
            _notice_dead_peers(writer)
            await self.session(reader, writer).run()
            await _close(writer)
        except asyncio.CancelledError:
            pass  # the publisher stops; asyncio logs errors of this callback
        finally:
            writer.transport.abort()
            self._sessions.discard(task)
            self.leave(task)


async def _close(writer: asyncio.StreamWriter) -> None:
    """Close a connection when its client has read the rest, or after a timeout."""
    try:
        writer.close()
        async with asyncio.timeout(_CLOSING_SECONDS):
            await writer.wait_closed()
    except OSError:  # TimeoutError and errors of TLS are among them
        pass


def _notice_dead_peers(writer: asyncio.StreamWriter) -> None:
    """Enable TCP keepalives, as PostgreSQL does (pq_init())."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


class ThreadedPublisher:
    """A publisher in a thread, as a context manager."""

    def __init__(
        self,
        feed: Feed,
        settings: Settings | None = None,
        report: Callable[[str], None] | None = None,
        publisher: Callable[[Feed, Settings | None, Callable[[str], None] | None], Publisher] = Publisher,
    ) -> None:
        """Prepare to serve.

        Args:
            feed: The feed.
            settings: How it is served; Settings() by default.
            report: Called with each line of the publisher's log.
            publisher: What makes the publisher, with these arguments.
        """
        self._publisher = publisher(feed, settings, report)
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
        """The publisher."""
        return self._publisher

    @property
    def dsn(self) -> str:
        """A connection string for clients, without a password."""
        settings, about = self._publisher.settings, self._publisher.feed.about
        user = f" user={settings.user}" if settings.user else ""
        return f"host={settings.host} port={self._publisher.port} dbname={about.database}{user}"

    def until_served(self, timeout: float) -> None:
        """Wait until a client has confirmed everything in the feed; raises TimeoutError after ``timeout`` seconds."""
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
