"""What all sessions of a publisher share: the feed, slots, settings and limits; and how clients are authenticated."""

import asyncio
import hmac
import ssl
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import cache
from secrets import token_bytes
from typing import Any, Final, Literal, TypeAlias, get_args

from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.publisher._feed.feed import Feed
from pgoutput_construct.publisher._server.client_connection import ClientConnection
from pgoutput_construct.publisher._server.copy_both import CopyBothStream
from pgoutput_construct.publisher._server.query_results import QueryContext
from pgoutput_construct.publisher._server.replication_commands import StartReplication
from pgoutput_construct.publisher._server.stream_request import unmade
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.publisher.slots import Slot, Slots
from pgoutput_construct.wire import connection_messages as m

__all__ = [
    "Exchange",
    "Service",
    "Settings",
    "authenticate",
    "current_task",
]


_LEAST_STRANGERS: Final = 20


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a publisher serves."""

    host: str = "127.0.0.1"
    port: int = 0
    """0: any free port."""
    method: "_Method" = "trust"
    """How clients are authenticated."""
    user: str | None = None
    """The user that may connect; None: any."""
    password: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = None
    """The context, with a certificate, for clients that request TLS; None: no TLS."""
    slots_file: Address | None = None
    """The file that stores the slots' positions, of one publisher at a time: a path or a URL; None: not stored."""
    creates_slots: bool = True
    """Whether START_REPLICATION creates a slot that does not exist; otherwise it is an error."""
    replaces_rows: bool = False
    """Whether a copy may begin with TRUNCATE although the client's publications publish no deletes or truncates."""
    rate: int | None = None
    """The maximum number of changes per second for each client; None: as fast as it reads."""
    own_pace: bool = False
    """Whether transactions are sent at the intervals at which they were committed, instead of at a rate."""
    wal_sender_timeout: float = 60
    """Seconds after which a silent client is disconnected; 0: never."""
    authentication_timeout: float = 60
    """Seconds after which a client that is not authenticated is disconnected."""
    max_connections: int = 100
    """The maximum number of authenticated clients at a time."""
    max_replication_slots: int = 1000
    """The maximum number of slots that clients can create."""

    def __post_init__(self) -> None:
        if self.method not in (methods := get_args(_Method)):
            raise PgoutputError(f"method {self.method!r}: choose from {', '.join(methods)}")
        if not isinstance(self.port, int) or not 0 <= self.port < 1 << 16:
            raise PgoutputError(f"port {self.port!r}: it is an int from 0 to 65535")


class Service(ABC):
    """Serves a feed to clients; ``Publisher`` accepts them on a socket."""

    def __init__(
        self, feed: Feed | None, settings: Settings | None = None, report: Callable[[str], None] | None = None
    ) -> None:
        """Prepare to serve.

        Args:
            feed: The feed; None: ``serve`` is called with it later.
            settings: How it is served; Settings() by default.
            report: Called with each line of the publisher's log.
        """
        self._feed = feed
        self.settings = settings or Settings()
        self.slots = Slots(self.settings.slots_file, self.settings.max_replication_slots)
        self.report = report or (lambda line: None)
        self.refused: str | None = None
        """The last error that a client was sent."""
        self.withheld: dict[str, None] = {}
        """Descriptions of table copies that were not served: they would have replaced rows that a client retains."""
        self._admitted: set[asyncio.Task[None]] = set()
        """The tasks of authenticated clients."""
        self._strangers: dict[asyncio.Task[None], asyncio.WriteTransport] = {}
        """The tasks of clients that are not authenticated yet, the oldest first, with their transports."""
        self._is_flooded = False
        self._looking: asyncio.Task[bool] | None = None
        self._looked = 0.0
        self._served = asyncio.Event()
        self._target = 0

    @abstractmethod
    def open_stream(
        self, client: ClientConnection, context: QueryContext, slot: Slot, command: StartReplication
    ) -> CopyBothStream:
        """Return the stream that a client has asked for; raise Refusal if its request is invalid.

        Args:
            client: The client's connection.
            context: The session's context.
            slot: The slot, acquired by this client.
            command: The client's START_REPLICATION.
        """

    @property
    def feed(self) -> Feed:
        """The feed; raises Refusal, like a server that is starting up, if there is none yet."""
        if self._feed is None:
            detail = "The change log has no segment yet: a capture writes the first one."
            raise Refusal("57P03", "the database system is starting up", detail=detail, fatal=True)
        return self._feed

    def serve(self, feed: Feed) -> None:
        """Begin to serve a feed, if there was none before.

        If the feed is that of a server version whose messages have fields that this publisher cannot fill, a log is
        served to clients with older protocol versions only, and a warning is reported.

        Raises:
            PgoutputError: There are such fields, and the feed is not a log but messages of that version.
        """
        if (problem := unmade(feed.about)) is not None:
            if not feed.about.layout:
                older = feed.about.server_version // 10000 - 1
                raise PgoutputError(f"this publisher cannot send {problem}: serve as PostgreSQL {older} or older")
            self.report(f"warning: clients whose options need what this publisher cannot send are refused: {problem}")
        self._feed, self._target = feed, feed.order().end

    async def until_served(self) -> None:
        """Wait until a client has confirmed everything that was in the feed when serving began."""
        await self._served.wait()

    def confirmed(self, slot: Slot) -> None:
        """Record that a client has confirmed more."""
        if slot.confirmed >= self._target:
            self._served.set()

    def refuse(self, problem: str) -> None:
        """Record and report an error that a client is sent."""
        self.refused = problem
        self.report(f"refused: {problem}")

    def withhold(self, slot: Slot, title: str, seq: int | None) -> None:
        """Record and report a table copy that a client is not served.

        Args:
            slot: The client's slot.
            title: The table, and what is not served of it.
            seq: The seq of the copy; None for rows that the client had ignored.
        """
        if seq is not None:
            self.slots.withhold(slot, seq)
        text = (
            f"{title}: table copy not sent: its deletes or truncates are not published, so a copy must not replace its "
            "rows; --replace-rows overrides this"
        )
        self.withheld[text] = None
        self.report(f"warning: slot {slot.name}: {text}")

    async def more(self, seconds: float) -> None:
        """Wait some seconds, then look for more to serve, once for all waiting clients."""
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
            looking.exception()  # raised in the tasks that waited for it

    def admit(self) -> None:
        """Count the client of the current task as authenticated; raise Refusal if there are too many."""
        if len(self._admitted) >= self.settings.max_connections:
            raise Refusal("53300", "sorry, too many clients already", fatal=True)
        task = current_task()
        self._admitted.add(task)
        self._strangers.pop(task, None)

    def meet(self, task: asyncio.Task[None], transport: asyncio.WriteTransport) -> None:
        """Add the client of a task, which is not authenticated yet."""
        self._strangers[task] = transport
        self._drop_strangers()

    def leave(self, task: asyncio.Task[None]) -> None:
        """Remove the client of a task."""
        self._admitted.discard(task)
        self._strangers.pop(task, None)

    def _drop_strangers(self) -> None:
        """Drop the oldest connections that are not authenticated, if there are too many.

        PostgreSQL counts them among all connections (canAcceptConnections()), so silent sockets can exhaust
        max_connections until authentication_timeout. Here they do not affect real clients, whose authentication is
        complete long before so many new connections arrive.
        """
        most = max(self.settings.max_connections, _LEAST_STRANGERS)
        while len(self._strangers) > most:
            oldest = next(iter(self._strangers))
            self._strangers.pop(oldest).abort()
            if not self._is_flooded:
                self._is_flooded = True  # reported once a flood
                self.report(f"more than {most} connections are not authenticated: the oldest of them are dropped")
        self._is_flooded = self._is_flooded and len(self._strangers) > most // 2


def current_task() -> asyncio.Task[Any]:
    """Return the current task."""
    task = asyncio.current_task()
    assert task is not None
    return task


_Method: TypeAlias = Literal["trust", "password", "scram-sha-256"]
"""Authentication methods, with their names in ``pg_hba.conf``."""

_MECHANISM = "SCRAM-SHA-256"

_SALT_BYTES: Final = 16
"""SCRAM_DEFAULT_SALT_LEN."""
_KEY_BYTES: Final = 32
_MOCK_NONCE: Final = token_bytes(32)
"""From which the salts of nonexistent users are derived (GetMockAuthenticationNonce())."""

Exchange: TypeAlias = Generator[m.ConnectionMessage, m.ConnectionMessage | None, None]
"""Yields the server's messages, and is sent the client's response to each request."""


def authenticate(method: _Method, user: str, known: str | None, password: str | None) -> Exchange:
    """Yield the server's messages until a client is authenticated.

    A nonexistent user is asked for a password like any other and gets the same error, so that names cannot be guessed.

    Args:
        method: The authentication method.
        user: The user in the startup packet.
        known: The user that may connect; None: any.
        password: The password of that user.

    Raises:
        Refusal: Authentication failed.
    """
    exists = known is None or user == known
    if method == "password":
        yield from _password(user, password if exists else None)
    elif method == "scram-sha-256":
        yield from _scram(user, password if exists else None)
    elif not exists:
        raise Refusal("28000", f'role "{user}" does not exist', fatal=True)
    yield m.AuthenticationOk()


def _password(user: str, password: str | None) -> Exchange:
    answer = yield m.AuthenticationCleartextPassword()
    given = answer.password if isinstance(answer, m.PasswordMessage) else ""
    is_right = hmac.compare_digest(given.encode("utf-8", "surrogateescape"), (password or "").encode())
    if password is None or not is_right:
        raise _failed(user)


def _scram(user: str, password: str | None) -> Exchange:
    from scramp import ScramException, ScramMechanism

    verifier = _mock_verifier(user) if password is None else _verifier(password)
    exchange = ScramMechanism(_MECHANISM).make_server(lambda _: verifier)
    first = yield m.AuthenticationSASL((_MECHANISM,))
    try:
        if not isinstance(first, m.SASLInitialResponse) or first.mechanism != _MECHANISM:
            raise Refusal("28000", "the client has chosen a SASL mechanism that was not offered", fatal=True)
        _take_first(exchange, (first.data or b"").decode())
        final = yield m.AuthenticationSASLContinue(exchange.get_server_first().encode())
        exchange.set_client_final(final.data.decode() if isinstance(final, m.SASLResponse) else "")
        signature = exchange.get_server_final()
    except (ScramException, ValueError, LookupError) as error:
        raise _failed(user) from error
    if password is None:
        raise _failed(user)
    yield m.AuthenticationSASLFinal(signature.encode())


def _take_first(exchange: Any, message: str) -> None:
    """Process the first SCRAM message of a client, in which libpq leaves the user name empty (see startup packet).

    scramp rejects an empty name, which it needs only for its lookup: it is given another one, and signs the original.
    """
    *header, bare = message.split(",", 2)
    named = bare.replace("n=,", "n=*,", 1) if bare.startswith("n=,") else bare
    exchange.set_client_first(",".join([*header, named]))
    exchange.client_first_bare = bare


@cache
def _verifier(password: str) -> Any:
    """Return the SCRAM verifier of a password, derived once: it takes thousands of hashes."""
    from scramp import ScramMechanism

    return ScramMechanism(_MECHANISM).make_auth_info(password, salt=token_bytes(_SALT_BYTES))


def _mock_verifier(user: str) -> Any:
    """Return a verifier that no password matches, whose salt is always the same for a name (mock_scram_secret()).

    A salt that changed would reveal that the user does not exist.
    """
    from scramp import ScramMechanism

    salt = hmac.digest(_MOCK_NONCE, user.encode("utf-8", "surrogateescape"), "sha256")[:_SALT_BYTES]
    return salt, bytes(_KEY_BYTES), bytes(_KEY_BYTES), int(ScramMechanism(_MECHANISM).iteration_count)


def _failed(user: str) -> Refusal:
    return Refusal("28P01", f'password authentication failed for user "{user}"', fatal=True)
