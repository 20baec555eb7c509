"""What the sessions of all clients of a publisher share: what is served, how, to whom, and who looks on."""

import asyncio
import hmac
import ssl
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import cache
from secrets import token_bytes
from typing import Any, Final, Literal, TypeAlias

from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.publisher._feed.feed import Feed
from pgoutput_construct.publisher._server.refusals import Refusal
from pgoutput_construct.publisher._server.stream_request import unmade
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
    """0: one that is free."""
    method: "_Method" = "trust"
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


_Method: TypeAlias = Literal["trust", "password", "scram-sha-256"]
"""How a client proves who it is, as ``pg_hba.conf`` calls it."""

_MECHANISM = "SCRAM-SHA-256"

_SALT_BYTES: Final = 16
"""SCRAM_DEFAULT_SALT_LEN."""
_KEY_BYTES: Final = 32
_MOCK_NONCE: Final = token_bytes(32)
"""What salts of users that do not exist are derived from (GetMockAuthenticationNonce())."""

Exchange: TypeAlias = Generator[m.ConnectionMessage, m.ConnectionMessage | None, None]
"""What the server says; it is sent the client's answer to each question."""


def authenticate(method: _Method, user: str, known: str | None, password: str | None) -> Exchange:
    """Yield what the server says to a client until it is authenticated; raise Refusal where that fails.

    A user that does not exist is asked for a password as others are, and gets the same error: nobody learns names by
    trying them.

    Args:
        method: How a client proves who it is.
        user: The user that the client names.
        known: The user that may connect; None: any.
        password: The password of that user.
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
        said = exchange.get_server_final()
    except (ScramException, ValueError, LookupError) as error:
        raise _failed(user) from error
    if password is None:
        raise _failed(user)
    yield m.AuthenticationSASLFinal(said.encode())


def _take_first(exchange: Any, said: str) -> None:
    """Take in the first message of a client, whose name libpq leaves empty: the startup message has said it.

    scramp reads no empty name, and needs one for nothing but its lookup: it is given another, and signs what was said.
    """
    *header, bare = said.split(",", 2)
    named = bare.replace("n=,", "n=*,", 1) if bare.startswith("n=,") else bare
    exchange.set_client_first(",".join([*header, named]))
    exchange.client_first_bare = bare


@cache
def _verifier(password: str) -> Any:
    """Return what is known of a password: derived once, as PostgreSQL stores it, for it takes thousands of hashes."""
    from scramp import ScramMechanism

    return ScramMechanism(_MECHANISM).make_auth_info(password, salt=token_bytes(_SALT_BYTES))


def _mock_verifier(user: str) -> Any:
    """Return a verifier that no password fits, with a salt that stays the same for a name (mock_scram_secret()).

    A salt that changed would tell a name that does not exist from one that does.
    """
    from scramp import ScramMechanism

    salt = hmac.digest(_MOCK_NONCE, user.encode("utf-8", "surrogateescape"), "sha256")[:_SALT_BYTES]
    return salt, bytes(_KEY_BYTES), bytes(_KEY_BYTES), int(ScramMechanism(_MECHANISM).iteration_count)


def _failed(user: str) -> Refusal:
    return Refusal("28P01", f'password authentication failed for user "{user}"', fatal=True)
