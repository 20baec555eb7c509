"""What the sessions of all clients of a publisher share: what is served, how, to whom, and who looks on."""

import asyncio
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from pgoutput_construct.changelog.store import Address
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.publisher.authentication import Method
from pgoutput_construct.publisher.feed import Feed
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.publisher.request import unmade
from pgoutput_construct.publisher.slots import Slot, Slots

__all__ = ["Service", "Settings", "current_task"]

_LEAST_STRANGERS: Final = 20


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
    password: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = None
    """With a certificate: clients that ask for TLS get it; None: they are refused it."""
    slots_file: Address | None = None
    """Where positions of slots are kept, by one publisher at a time: a path, or a URI; None: nowhere."""
    creates_slots: bool = True
    """Whether a slot is made when a client starts from one that there is not; otherwise it is refused."""
    replaces_rows: bool = False
    """Whether a copy may come by TRUNCATE though what the client subscribes to publishes no deletes or truncates."""
    rate: int | None = None
    """Changes a second for each client at most; None: as fast as it reads."""
    own_pace: bool = False
    """Whether transactions come as far apart as they were committed, instead of at a rate."""
    wal_sender_timeout: float = 60
    """Seconds after which a silent client is disconnected; 0 for never."""
    authentication_timeout: float = 60
    """Seconds after which a client is disconnected that is not authenticated."""
    max_connections: int = 100
    """Clients at the same time; more are refused. Those that are not authenticated yet do not count."""
    max_replication_slots: int = 1000
    """Slots that clients can make."""


class Service:
    """Serves a feed to clients that somebody else accepts."""

    def __init__(
        self, feed: Feed | None, settings: Settings | None = None, tell: Callable[[str], None] | None = None
    ) -> None:
        """Prepare to serve.

        Args:
            feed: What is served; None: ``serve`` is called with it later.
            settings: How.
            tell: Called with a line for whoever looks on.
        """
        self._feed = feed
        self.settings = settings or Settings()
        self.slots = Slots(self.settings.slots_file, self.settings.max_replication_slots)
        self.told = tell or (lambda line: None)
        self.refused: str | None = None
        """What a client was refused last."""
        self.withheld: dict[str, None] = {}
        """What was not served, in words: copies that would have replaced rows which a client retains."""
        self._admitted: set[asyncio.Task[None]] = set()
        """Those of clients that are authenticated."""
        self._strangers: dict[asyncio.Task[None], asyncio.WriteTransport] = {}
        """Those of clients that are not, the oldest first, with their transports."""
        self._is_flooded = False
        self._looking: asyncio.Task[bool] | None = None
        self._looked = 0.0
        self._served = asyncio.Event()
        self._target = 0

    @property
    def feed(self) -> Feed:
        """What is served; raises Refusal, as a server that is starting does, where that is not known yet."""
        if self._feed is None:
            detail = "The change log has no segment yet: a capture writes the first one."
            raise Refusal("57P03", "the database system is starting up", detail=detail, fatal=True)
        return self._feed

    def serve(self, feed: Feed) -> None:
        """Serve a feed from now on, where none was served before.

        Raises PgoutputError where it stands for a server whose newest messages have fields that nothing here fills.
        A log of such a server is served to clients of older protocol versions, and a line says so.
        """
        if (problem := unmade(feed.about)) is not None:
            if not feed.about.layout:
                older = feed.about.server_version // 10000 - 1
                raise PgoutputError(f"this publisher cannot say {problem}: serve as PostgreSQL {older} or older")
            self.told(f"warning: clients that ask for what this publisher cannot say are refused: {problem}")
        self._feed, self._target = feed, feed.order().end

    async def until_served(self) -> None:
        """Wait until a client has confirmed all that was there when listening began."""
        await self._served.wait()

    def confirmed(self, slot: Slot) -> None:
        """Note that a client has confirmed more."""
        if slot.confirmed >= self._target:
            self._served.set()

    def refuse(self, problem: str) -> None:
        """Note that a client was refused something."""
        self.refused = problem
        self.told(f"refused: {problem}")

    def withhold(self, slot: Slot, title: str, seq: int | None) -> None:
        """Note what a client is not served: a copy by its seq, None for rows that it had ignored."""
        if seq is not None:
            self.slots.withhold(slot, seq)
        told = (
            f"{title}: not served: what was published of it has no deletes or no truncates, so no copy may replace its "
            "rows; --replace-rows replaces them all the same"
        )
        self.withheld[told] = None
        self.told(f"warning: slot {slot.name}: {told}")

    async def more(self, seconds: float) -> None:
        """Wait a while, and look whether there is more to serve: once for all clients that wait."""
        await asyncio.sleep(seconds)
        if self._looking is None and time.monotonic() - self._looked < seconds:
            return
        if self._looking is None:
            self._looking = asyncio.create_task(asyncio.to_thread(self.feed.refresh))
            self._looking.add_done_callback(self._has_looked)
        await asyncio.shield(self._looking)

    def server_settings(self) -> dict[str, str]:
        """Return the settings that a server reports to a client that connects (ParameterStatus)."""
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

    def _has_looked(self, looking: asyncio.Task[bool]) -> None:
        self._looking, self._looked = None, time.monotonic()
        if not looking.cancelled():
            looking.exception()  # those who waited for it have it

    def admit(self) -> None:
        """Count the client of this task as authenticated; raise Refusal where there are as many as may be."""
        if len(self._admitted) >= self.settings.max_connections:
            raise Refusal("53300", "sorry, too many clients already", fatal=True)
        task = current_task()
        self._admitted.add(task)
        self._strangers.pop(task, None)

    def meet(self, task: asyncio.Task[None], transport: asyncio.WriteTransport) -> None:
        """Count the client of a task as one that is not authenticated yet."""
        self._strangers[task] = transport
        self._drop_strangers()

    def leave(self, task: asyncio.Task[None]) -> None:
        """Forget the client of a task."""
        self._admitted.discard(task)
        self._strangers.pop(task, None)

    def _drop_strangers(self) -> None:
        """Drop the oldest connections that are not authenticated, where there are too many.

        PostgreSQL counts them with all others (canAcceptConnections()), so that silent sockets keep its clients out
        until authentication_timeout. Here they take nothing from clients with a password, whose exchange is over long
        before as many new connections have come.
        """
        most = max(self.settings.max_connections, _LEAST_STRANGERS)
        while len(self._strangers) > most:
            oldest = next(iter(self._strangers))
            self._strangers.pop(oldest).abort()
            if not self._is_flooded:
                self._is_flooded = True  # reported once a flood
                self.told(f"more than {most} connections are not authenticated: the oldest of them are dropped")
        self._is_flooded = self._is_flooded and len(self._strangers) > most // 2


def current_task() -> asyncio.Task[Any]:
    """Return the task that calls this."""
    task = asyncio.current_task()
    assert task is not None
    return task
