"""The session of one client: from the startup packet to the end of its connection."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from pgoutput_construct.errors import DecodeError, PgoutputError
from pgoutput_construct.publisher._feed.encodings import find_encoding
from pgoutput_construct.publisher._feed.feed import About, Feed
from pgoutput_construct.publisher._server.answers import answer, show, statements
from pgoutput_construct.publisher._server.client_connection import ClientConnection, ConnectionEnded
from pgoutput_construct.publisher._server.query_results import QueryContext, Result
from pgoutput_construct.publisher._server.replication_commands import (
    AlterSlot,
    Command,
    CreateSlot,
    DropSlot,
    IdentifySystem,
    ReadSlot,
    Show,
    StartReplication,
    TimelineHistory,
    is_replication_command,
    parse_command,
)
from pgoutput_construct.publisher._server.service import Exchange, Service, authenticate
from pgoutput_construct.publisher.refusals import Refusal, error_response, no_copies
from pgoutput_construct.publisher.slots import PLUGIN
from pgoutput_construct.wire import connection_messages as m

__all__ = ["ClientSession"]


_STARTUP_BYTES: Final = 10_000
"""MAX_STARTUP_PACKET_LENGTH of PostgreSQL."""
_QUERY_BYTES: Final = 1 << 14
"""Longer than any known query; the time to match one grows faster than its length."""
_NEWEST_MINOR: Final = 0
_NEWEST_VERSION: Final = 3 << 16
_LATE: Final = (m.CopyData, m.ClientCopyDone, m.CopyFail)


class ClientSession:
    """The session of one client."""

    def __init__(self, service: Service, client: ClientConnection, process_id: int) -> None:
        """Prepare to serve a client.

        Args:
            service: What all sessions share.
            client: The client's connection.
            process_id: The id for BackendKeyData.
        """
        self._service = service
        self._process_id = process_id
        self._client = client
        client.accept(_STARTUP_BYTES)
        self._context: QueryContext
        """The context of queries, once the client is authenticated."""
        self._replicates = False
        self._reads = ""

    async def run(self) -> None:
        """Serve the client until it disconnects; its mistakes end at most its own connection."""
        try:
            await self._authenticated_in_time()
            self._client.accept(_QUERY_BYTES)
            while True:
                await self._serve(await self._client.receive())
        except Refusal as refusal:
            await self._send_last_error(refusal)
        except (ConnectionEnded, OSError):
            pass  # the client has disconnected; an error of TLS is an OSError
        except Exception as error:  # a bug ends this connection, and no other
            problem = f"internal error: {type(error).__name__}: {error}"
            await self._send_last_error(Refusal("XX000", problem, fatal=True))
        finally:
            self._service.slots.forget_temporary(self._process_id)
            if self._reads:
                self._service.report(f"slot {self._reads}: its client has disconnected")

    async def _authenticated_in_time(self) -> None:
        try:
            async with asyncio.timeout(self._service.settings.authentication_timeout):
                await self._begin()
        except TimeoutError:
            raise Refusal("57014", "canceling authentication due to timeout", fatal=True) from None

    async def _begin(self) -> None:
        """Handle everything from the first bytes to the first ReadyForQuery."""
        startup = await self._startup()
        feed = self._service.feed  # raises if there is none yet, as for CAC_STARTUP
        given = {each.name: each.value for each in startup.parameters}
        user = given.get("user", "")
        if not user:
            raise Refusal("28000", "no PostgreSQL user name specified in startup packet", fatal=True)
        if startup.minor_version > _NEWEST_MINOR or any(name.startswith("_pq_.") for name in given):
            unknown = tuple(name for name in given if name.startswith("_pq_."))
            await self._client.send(m.NegotiateProtocolVersion(_NEWEST_VERSION, unknown))
        await self._authenticate(user)
        self._service.admit()
        self._replicates = given.get("replication", "false").lower() in ("database", "true", "on", "yes", "1")
        if given.get("replication", "").lower() in ("true", "on", "yes", "1"):
            problem = "this publisher does not support physical replication"
            raise Refusal("0A000", problem, hint="Connect with replication=database.", fatal=True)
        await self._greet(feed, given, user)

    async def _startup(self) -> m.StartupMessage:
        while True:
            message = await self._client.receive()
            if isinstance(message, m.StartupMessage):
                return message
            if isinstance(message, m.CancelRequest):
                raise ConnectionEnded
            if isinstance(message, m.SSLRequest) and self._service.settings.tls is not None:
                await self._client.encrypt(self._service.settings.tls)
            else:
                await self._client.send(m.EncryptionRefused())

    async def _authenticate(self, user: str) -> None:
        settings = self._service.settings
        exchange = authenticate(settings.method, user, settings.user, settings.password)
        message = _next_step(exchange, None)
        while message is not None:
            await self._client.send(message)
            expects_reply = self._client.state not in ("authentication", "starting")
            answer = await self._client.receive() if expects_reply else None
            # Deriving keys is slow by design.
            message = await asyncio.to_thread(_next_step, exchange, answer)

    async def _greet(self, feed: Feed, given: Mapping[str, str], user: str) -> None:
        try:
            self._client.encoding = find_encoding(_requested_encoding(given))
        except Refusal as refusal:
            refusal.fatal = True
            raise
        settings = self._service.server_settings() | {
            "application_name": given.get("application_name", ""),
            "client_encoding": self._client.encoding.name,
            "session_authorization": user,
        }
        timeout = self._service.settings.wal_sender_timeout
        self._context = QueryContext(feed, self._service.slots, settings, self._process_id, timeout)
        statuses = [m.ParameterStatus(name, value) for name, value in settings.items()]
        key = m.BackendKeyData(self._process_id, self._process_id.to_bytes(4, "big"))
        await self._client.send(*statuses, key, m.ReadyForQuery("I"))

    async def _serve(self, message: m.ConnectionMessage) -> None:
        if isinstance(message, m.Terminate):
            raise ConnectionEnded
        if isinstance(message, m.Query):
            await self._query(message.text)
        elif isinstance(message, m.Sync):
            await self._client.send(m.ReadyForQuery("I"))
        elif isinstance(message, _LATE):
            pass  # it was in transit when an error ended the stream (PostgresMain())
        elif isinstance(message, m.FunctionCall):
            await self._client.send(_forbidden("fastpath function calls"), m.ReadyForQuery("I"))
        else:
            await self._extended(message)

    async def _extended(self, message: m.ConnectionMessage) -> None:
        """Refuse the extended query protocol, and skip messages up to Sync."""
        await self._client.send(_forbidden("extended query protocol"))
        while not isinstance(message, m.Sync):
            message = await self._client.receive()
            if isinstance(message, m.Terminate):
                raise ConnectionEnded
        await self._client.send(m.ReadyForQuery("I"))

    async def _query(self, text: str) -> None:
        try:
            text = self._client.encoding.read(text)
            if self._replicates and is_replication_command(text):
                await self._command(parse_command(text))
            else:
                await self._statements(text)
        except Refusal as refusal:
            if refusal.fatal:
                raise
            self._service.refuse(refusal.message)
            self._service.slots.forget_temporary(self._process_id)  # WalSndErrorCleanup()
            await self._client.send(error_response(refusal))
        except PgoutputError as error:
            # The log is damaged: the client is sent the error, which says where.
            self._service.refuse(str(error))
            await self._client.send(error_response(Refusal("XX001", str(error))))
        await self._client.send(*self._changed_encoding(), m.ReadyForQuery("I"))

    def _changed_encoding(self) -> Iterator[m.ParameterStatus]:
        """Yield ParameterStatus for client_encoding if the client has changed it: drivers rely on it."""
        if (name := self._context.settings["client_encoding"]) != self._client.encoding.name:
            self._client.encoding = find_encoding(name)
            yield m.ParameterStatus("client_encoding", name)

    async def _statements(self, text: str) -> None:
        found = statements(text)
        for statement in found:
            # An answer may have to read new segments of the log.
            result = await asyncio.to_thread(answer, self._context, statement)
            await self._client.send(*result.messages())
        if not found:
            await self._client.send(m.EmptyQueryResponse())

    async def _command(self, command: Command) -> None:
        if isinstance(command, StartReplication):
            await self._start(command)
        else:
            result = await _COMMANDS[type(command)](self._context, self._client, command)
            await self._client.send(*result.messages())

    async def _start(self, command: StartReplication) -> None:
        slots = self._service.slots
        if slots.get(command.slot) is None and self._service.settings.creates_slots:
            slots.create(command.slot, client=self._context.settings.get("application_name", ""))
            self._service.report(f"slot {command.slot} created at its first use")
        with slots.acquired(command.slot, self._process_id) as slot:
            # This reads new segments of a log, and with two_phase searches it for prepared transactions.
            sender = await asyncio.to_thread(self._service.open_stream, self._client, self._context, slot, command)
            await self._client.send(m.CopyBothResponse(0, ()))
            self._reads = slot.name
            await sender.run()
            self._reads = ""

    async def _send_last_error(self, refusal: Refusal) -> None:
        self._service.report(f"connection ended: {refusal.message}")
        try:
            async with asyncio.timeout(5):
                await self._client.send(error_response(refusal))
        except (ConnectionEnded, DecodeError, OSError):
            pass  # the client has disconnected, or cannot be sent an error in this state


def _forbidden(what: str) -> m.ErrorResponse:
    """Return the error for what a walsender does not do (forbidden_in_wal_sender())."""
    return error_response(Refusal("08P01", f"{what} not supported in a replication connection"))


def _requested_encoding(given: Mapping[str, str]) -> str:
    """Return the encoding that a client requests when it connects: as a parameter, or in ``options``."""
    in_options = re.findall(r"(?:-c\s*|--)client[_-]encoding=(\S+)", given.get("options", ""))
    return given.get("client_encoding") or (in_options[-1] if in_options else "UTF8")


def _next_step(exchange: Exchange, answer: m.ConnectionMessage | None) -> m.ConnectionMessage | None:
    """Return the server's next authentication message; None when the exchange is complete."""
    try:
        return exchange.send(answer)
    except StopIteration:
        return None


_WAIT_SECONDS: Final = 0.1
_TWO_PHASE_CREATED, _TWO_PHASE_ALTERED, _FAILOVER = 15, 18, 17
"""The first server versions with an option of CREATE_REPLICATION_SLOT or ALTER_REPLICATION_SLOT."""
_SWITCH: Final = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


async def _identify(context: QueryContext, client: ClientConnection, command: IdentifySystem) -> Result:
    about, position = context.feed.about, context.feed.position
    columns = [("systemid", "text"), ("timeline", "int8"), ("xlogpos", "text"), ("dbname", "text")]
    row = [about.system_identifier, str(about.timeline), str(position), about.database]
    return Result("IDENTIFY_SYSTEM", columns, [row])


async def _show(context: QueryContext, client: ClientConnection, command: Show) -> Result:
    return show(context.settings, command.name)


async def _history(context: QueryContext, client: ClientConnection, command: TimelineHistory) -> Result:
    file = f"{command.timeline:08X}.history"
    if command.timeline != context.feed.about.timeline:
        raise Refusal("58P01", f'could not open file "pg_wal/{file}": No such file or directory')
    return Result("TIMELINE_HISTORY", [("filename", "text"), ("content", "bytea")], [[file, ""]])


async def _create_slot(context: QueryContext, client: ClientConnection, command: CreateSlot) -> Result:
    if command.plugin != PLUGIN:
        raise Refusal("58P01", f'could not access file "{command.plugin}": only the plugin {PLUGIN} is available')
    known = ("snapshot", *_altered(context.feed.about, created=True))
    _check_options(command.options, known)
    if (action := command.options.get("snapshot") or "nothing") != "nothing":
        raise no_copies(f"there is no snapshot to {action}")
    owner = context.process_id if command.temporary else None
    application = context.settings.get("application_name", "")
    switches: Any = {name: _switch(name, value) for name, value in command.options.items() if name != "snapshot"}
    context.slots.create(command.name, command.plugin, temporary=owner, client=application, **switches)
    columns = [(name, "text") for name in ("slot_name", "consistent_point", "snapshot_name", "output_plugin")]
    return Result("CREATE_REPLICATION_SLOT", columns, [[command.name, "0/0", None, command.plugin]])


async def _alter_slot(context: QueryContext, client: ClientConnection, command: AlterSlot) -> Result:
    """Alter a slot as ReplicationSlotAlter() does, after waiting until it is inactive."""
    known = _altered(context.feed.about)
    if not known:
        raise Refusal("42601", 'syntax error at or near "ALTER_REPLICATION_SLOT"')
    _check_options(command.options, known)
    switches: Any = {name: _switch(name, value) for name, value in command.options.items()}
    await _until_free(context, client, command.name)
    context.slots.alter(command.name, context.process_id, **switches)
    return Result("ALTER_REPLICATION_SLOT")


def _altered(about: About, created: bool = False) -> tuple[str, ...]:
    """Return the options that a server has for altering slots, or creating them."""
    since = {"two_phase": _TWO_PHASE_CREATED if created else _TWO_PHASE_ALTERED, "failover": _FAILOVER}
    return tuple(name for name, server in since.items() if about.server_version // 10000 >= server)


def _check_options(options: Mapping[str, str | None], known: Sequence[str]) -> None:
    for name in options:
        if name not in known:
            raise Refusal("XX000", f"unrecognized option: {name}")


def _switch(name: str, value: str | None) -> bool:
    """Parse a boolean option as defGetBoolean() does."""
    word = "true" if value is None else value.lower()
    if word not in _SWITCH:
        raise Refusal("42601", f"{name} requires a Boolean value")
    return _SWITCH[word]


async def _until_free(context: QueryContext, client: ClientConnection, name: str) -> None:
    while context.slots.is_active(name, context.process_id):
        if client.is_left:
            raise ConnectionEnded  # the client has given up waiting
        await asyncio.sleep(_WAIT_SECONDS)


async def _read_slot(context: QueryContext, client: ClientConnection, command: ReadSlot) -> Result:
    if context.slots.get(command.name) is not None:
        raise Refusal("0A000", "cannot use READ_REPLICATION_SLOT with a logical replication slot")
    columns = [("slot_type", "text"), ("restart_lsn", "text"), ("restart_tli", "int8")]
    return Result("READ_REPLICATION_SLOT", columns, [[None, None, None]])


async def _drop_slot(context: QueryContext, client: ClientConnection, command: DropSlot) -> Result:
    if command.wait:
        await _until_free(context, client, command.name)
    context.slots.drop(command.name, context.process_id)
    return Result("DROP_REPLICATION_SLOT")


_COMMANDS: Final[Mapping[type, Callable[..., Awaitable[Result]]]] = {
    IdentifySystem: _identify,
    Show: _show,
    TimelineHistory: _history,
    CreateSlot: _create_slot,
    AlterSlot: _alter_slot,
    ReadSlot: _read_slot,
    DropSlot: _drop_slot,
}
"""The function that executes each command."""
