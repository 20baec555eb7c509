"""A publisher on a socket: it accepts clients, and serves each on its own."""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from pgoutput_construct.publisher.authentication import Method
from pgoutput_construct.publisher.feed import Feed
from pgoutput_construct.publisher.refusals import Refusal, error_response
from pgoutput_construct.publisher.session import Session
from pgoutput_construct.publisher.slots import Slot, Slots
from pgoutput_construct.wire.connection import build_connection

__all__ = ["Publisher", "Settings"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a publisher serves."""

    host: str = "127.0.0.1"
    port: int = 0
    """0: one that is free."""
    method: Method = "trust"
    """How clients prove who they are."""
    user: str | None = None
    """Who may connect; None: anyone."""
    password: str | None = None
    tls: ssl.SSLContext | None = None
    """With a certificate: clients that ask for TLS get it; None: they are refused it."""
    slots_file: Path | None = None
    """Where positions of slots are kept; None: nowhere."""
    creates_slots: bool = True
    """Whether a slot is made when a client starts from one that there is not; otherwise it is refused."""
    rate: int | None = None
    """Changes a second for each client at most; None: as fast as it reads."""
    wal_sender_timeout: float = 60
    """Seconds after which a silent client is disconnected; 0 for never."""
    authentication_timeout: float = 60
    """Seconds in which a client must be known."""
    max_connections: int = 100
    """Clients at the same time; more are refused."""


class Publisher:
    """Serves a feed as a walsender does."""

    def __init__(self, feed: Feed, settings: Settings | None = None, tell: Callable[[str], None] | None = None) -> None:
        """Prepare to serve; raises PgoutputError for a file of slots that cannot be read.

        Args:
            feed: What is served.
            settings: How.
            tell: Called with a line for whoever looks on.
        """
        self.feed = feed
        self.settings = settings or Settings()
        self.slots = Slots(self.settings.slots_file)
        self.told = tell or (lambda line: None)
        self.port = self.settings.port
        """Where it listens, once it does."""
        self._server: asyncio.Server | None = None
        self._sessions: set[asyncio.Task[None]] = set()
        self._numbers = count(1)
        self._served = asyncio.Event()
        self._target = 0

    async def start(self) -> None:
        """Begin to listen; raises OSError where the port is taken."""
        self._server = await asyncio.start_server(self._accept, self.settings.host, self.settings.port, limit=1 << 16)
        self.port = self._server.sockets[0].getsockname()[1]
        self._target = max((ended.end_lsn or 0 for ended in self.feed.ended), default=0)

    async def stop(self) -> None:
        """End all connections, and listen no more."""
        if self._server is not None:
            self._server.close()
        for task in self._sessions:
            task.cancel()
        await asyncio.gather(*self._sessions, return_exceptions=True)

    async def until_served(self) -> None:
        """Wait until a client has confirmed all that was there when listening began."""
        await self._served.wait()

    def confirmed(self, slot: Slot) -> None:
        """Note that a client has confirmed more."""
        if slot.confirmed >= self._target:
            self._served.set()

    async def more(self, seconds: float) -> None:
        """Wait a while, and look whether there is more to serve."""
        await asyncio.sleep(seconds)
        await asyncio.to_thread(self.feed.refresh)

    def server_settings(self) -> dict[str, str]:
        """Return what a client is told of the server when it connects."""
        version = self.feed.about.server_version
        return {
            "server_version": f"{version // 10000}.{version % 10000}",
            "server_encoding": "UTF8",
            "integer_datetimes": "on",
            "standard_conforming_strings": "on",
            "DateStyle": "ISO, MDY",
            "IntervalStyle": "postgres",
            "TimeZone": "UTC",
            "is_superuser": "on",
            "in_hot_standby": "off",
            "default_transaction_read_only": "off",
        }

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._sessions.add(task)
        try:
            if len(self._sessions) > self.settings.max_connections:
                refusal = Refusal("53300", "sorry, too many clients already", fatal=True)
                writer.write(build_connection(error_response(refusal)))
            else:
                await Session(self, reader, writer, next(self._numbers)).run()
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._sessions.discard(task)
            writer.close()
