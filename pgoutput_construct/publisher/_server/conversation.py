"""One connection without a socket: bytes become messages, messages bytes, and the specification says which may come."""

import asyncio
import ssl
from dataclasses import replace
from typing import Final

from pgoutput_construct.errors import DecodeError
from pgoutput_construct.publisher._feed.encodings import UTF8, ClientEncoding
from pgoutput_construct.publisher._server.refusals import Refusal
from pgoutput_construct.wire import connection_messages as m
from pgoutput_construct.wire.connection_engine import (
    FIRST_STATE,
    Role,
    build_connection,
    message_size,
    next_state,
    parse_connection,
)
from pgoutput_construct.wire.connection_messages import ConnectionMessage

__all__ = ["ClientConnection", "Conversation", "Ended"]


class Ended(Exception):  # noqa: N818 - nothing has failed
    """The other side has closed the connection, or said goodbye."""


class Conversation:
    """What one side of a connection has received and said so far.

    It holds no socket: whoever has one gives it what was received and sends what it returns.
    """

    def __init__(self, role: Role, largest: int) -> None:
        """Begin a connection.

        Args:
            role: Which side this is: ``server`` or ``client``.
            largest: Bytes of the largest message that is accepted from the other side; nothing larger is waited for.
        """
        self.state = FIRST_STATE
        """The state of the connection, one of spec/protocol.yaml."""
        self.largest = largest
        self._role: Role = role
        self._other: Role = "client" if role == "server" else "server"
        self._received = bytearray()

    @property
    def buffered(self) -> int:
        """Bytes that were received and are no whole message yet."""
        return len(self._received)

    def receive(self, data: bytes) -> None:
        """Take in what came from the other side."""
        self._received += data

    def next_message(self) -> ConnectionMessage | None:
        """Return the next message of the other side; None where more bytes are needed.

        Raises DecodeError for what is no message, or none that the other side can send now, or one that is too large.
        """
        size = message_size(self._received, self._other, self.state)
        if size is not None and size > self.largest:
            raise DecodeError(f"a message of {size:,} bytes: this side accepts {self.largest:,} at most")
        if size is None or len(self._received) < size:
            return None
        message = parse_connection(bytes(self._received[:size]), self._other, self.state)
        del self._received[:size]
        self.state = next_state(message, self._other, self.state)
        return message

    def say(self, message: ConnectionMessage) -> bytes:
        """Return the bytes of a message to send; raise DecodeError for one that cannot be sent in this state."""
        self.state = next_state(message, self._role, self.state)
        return build_connection(message)


_READ_BYTES: Final = 1 << 16


class ClientConnection:
    """Receives and sends messages; what may come when, the specification says (``Conversation``)."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, largest: int) -> None:
        """Begin a connection; ``largest`` are the bytes of the largest message that is accepted."""
        self._reader = reader
        self._writer = writer
        self._conversation = Conversation("server", largest)
        self.encoding: ClientEncoding = UTF8
        """What the client reads and writes."""

    @property
    def state(self) -> str:
        """The state of the connection, one of spec/protocol.yaml."""
        return self._conversation.state

    def accept(self, largest: int) -> None:
        """Accept messages of at most ``largest`` bytes from now on."""
        self._conversation.largest = largest

    async def encrypt(self, context: ssl.SSLContext) -> None:
        """Go on under TLS; raise Refusal where unencrypted bytes have come already."""
        if self._conversation.buffered:
            raise Refusal("08P01", "received unencrypted data after SSL request", fatal=True)
        await self.send(m.EncryptionAccepted())
        await self._writer.start_tls(context)

    @property
    def is_left(self) -> bool:
        """Whether the client has closed its side of the connection, seen also while nothing is received from it."""
        return self._reader.at_eof()

    async def receive(self) -> m.ConnectionMessage:
        """Return the client's next message; raise Refusal for what is none."""
        while (message := self._next_message()) is None:
            data = await self._reader.read(_READ_BYTES)
            if not data:
                raise Ended
            self._conversation.receive(data)
        return message

    def _next_message(self) -> m.ConnectionMessage | None:
        try:
            return self._conversation.next_message()
        except DecodeError as error:
            raise Refusal("08P01", f"protocol violation: {error}", fatal=True) from error

    async def send(self, *messages: m.ConnectionMessage) -> None:
        """Send messages; raise Ended where the client has said goodbye."""
        encoded = [self._encoded(message) for message in messages]  # all of them before the first is said
        await self.write(b"".join(self._say(message) for message in encoded))

    def _encoded(self, message: m.ConnectionMessage) -> m.ConnectionMessage:
        if isinstance(message, m.ErrorResponse):  # it is what a client gets of text that cannot be converted
            return replace(message, details=tuple(map(self._shown, message.details)))
        if isinstance(message, m.DataRow):
            return replace(message, row=tuple(value and self.encoding.encode(value) for value in message.row))
        # What a client says of itself is not converted when it connects, nor on its way back.
        return message if isinstance(message, m.ParameterStatus) else self.encoding.message(message)

    def _shown(self, field: m.NoticeField) -> m.NoticeField:
        codec = self.encoding.codec
        shown = field.value.encode(codec, "replace").decode("utf-8", "surrogateescape") if codec else field.value
        return replace(field, value=shown)

    async def write(self, data: bytes) -> None:
        """Send bytes, and wait while the client is slow to read."""
        self._writer.write(data)
        await self._writer.drain()

    def abort(self) -> None:
        """Drop the connection without a word."""
        self._writer.transport.abort()

    def post(self, message: m.ConnectionMessage) -> None:
        """Send a message without waiting for a client that is slow to read: for what is small, and seldom."""
        self._writer.write(self._say(message))

    def _say(self, message: m.ConnectionMessage) -> bytes:
        # A stream may still be sending when the client's Terminate is read.
        if self._conversation.state == "closed":
            raise Ended
        return self._conversation.say(message)
