"""One connection: bytes become messages and messages bytes, in the order that the specification allows.

``Conversation`` does this without a socket; ``ClientConnection`` adds asyncio streams, TLS and the client's encoding.
"""

import asyncio
import ssl
from dataclasses import replace
from typing import Final

from pgoutput_construct.errors import DecodeError
from pgoutput_construct.publisher._feed.encodings import UTF8, ClientEncoding
from pgoutput_construct.publisher.refusals import Refusal
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

__all__ = ["ClientConnection", "ConnectionEnded", "Conversation"]


class ConnectionEnded(Exception):  # noqa: N818 - nothing has failed
    """The client has closed the connection, or sent Terminate."""


class Conversation:
    """One side of a connection, without a socket: the caller passes received bytes and sends the returned ones."""

    def __init__(self, role: Role, largest: int) -> None:
        """Begin a connection.

        Args:
            role: Which side this is: ``server`` or ``client``.
            largest: The maximum size in bytes of a message from the other side.
        """
        self.state = FIRST_STATE
        """The state of the connection, one of spec/protocol.yaml."""
        self.largest = largest
        self._role: Role = role
        self._other: Role = "client" if role == "server" else "server"
        self._received = bytearray()

    @property
    def buffered(self) -> int:
        """The number of received bytes that are not a complete message yet."""
        return len(self._received)

    def receive(self, data: bytes) -> None:
        """Add bytes received from the other side."""
        self._received += data

    def next_message(self) -> ConnectionMessage | None:
        """Return the next message of the other side; None if more bytes are needed.

        Raises DecodeError for an invalid or too large message, and for one that the other side cannot send now.
        """
        size = message_size(self._received, self._other, self.state)
        if size is not None and size > self.largest:
            raise DecodeError(f"a message of {size:,} bytes: at most {self.largest:,} are accepted")
        if size is None or len(self._received) < size:
            return None
        message = parse_connection(bytes(self._received[:size]), self._other, self.state)
        del self._received[:size]
        self.state = next_state(message, self._other, self.state)
        return message

    def send(self, message: ConnectionMessage) -> bytes:
        """Return the bytes of a message; raises DecodeError if it cannot be sent in this state."""
        self.state = next_state(message, self._role, self.state)
        return build_connection(message)


_READ_BYTES: Final = 1 << 16


class ClientConnection:
    """The server side of a connection on asyncio streams."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Begin a connection; ``accept`` says how large its messages may be.

        Args:
            reader: Receives from the client.
            writer: Sends to the client.
        """
        self._reader = reader
        self._writer = writer
        self._conversation = Conversation("server", 0)
        self.encoding: ClientEncoding = UTF8
        """The client_encoding."""

    @property
    def state(self) -> str:
        """The state of the connection, one of spec/protocol.yaml."""
        return self._conversation.state

    def accept(self, largest: int) -> None:
        """Accept messages of at most ``largest`` bytes from now on."""
        self._conversation.largest = largest

    async def encrypt(self, context: ssl.SSLContext) -> None:
        """Continue with TLS; raise Refusal if unencrypted bytes have been received already (CVE-2021-23214)."""
        if self._conversation.buffered:
            raise Refusal("08P01", "received unencrypted data after SSL request", fatal=True)
        await self.send(m.EncryptionAccepted())
        await self._writer.start_tls(context)

    @property
    def is_left(self) -> bool:
        """Whether the client has closed its side of the connection, known even while nothing is received."""
        return self._reader.at_eof()

    async def receive(self) -> m.ConnectionMessage:
        """Return the client's next message; raise Refusal for an invalid one, ConnectionEnded at the end."""
        while (message := self._next_message()) is None:
            data = await self._reader.read(_READ_BYTES)
            if not data:
                raise ConnectionEnded
            self._conversation.receive(data)
        return message

    def _next_message(self) -> m.ConnectionMessage | None:
        try:
            return self._conversation.next_message()
        except DecodeError as error:
            raise Refusal("08P01", f"protocol violation: {error}", fatal=True) from error

    async def send(self, *messages: m.ConnectionMessage) -> None:
        """Send messages, and wait while the client is slow to read."""
        encoded = [
            self._encoded(message) for message in messages
        ]  # all of them, before the state changes with the first one
        await self.write(b"".join(self._say(message) for message in encoded))

    def _encoded(self, message: m.ConnectionMessage) -> m.ConnectionMessage:
        if isinstance(message, m.ErrorResponse):  # text that cannot be converted is replaced here
            return replace(message, details=tuple(map(self._shown, message.details)))
        if isinstance(message, m.DataRow):
            return replace(message, row=tuple(value and self.encoding.encode(value) for value in message.row))
        # Settings that a client sends when it connects are not converted, neither then nor on their way back.
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
        """Reset the connection without a message."""
        self._writer.transport.abort()

    def close(self) -> None:
        """Close the connection once everything is sent."""
        self._writer.close()

    def post(self, message: m.ConnectionMessage) -> None:
        """Send a message without waiting while the client is slow to read; only for small, rare messages."""
        self._writer.write(self._say(message))

    def _say(self, message: m.ConnectionMessage) -> bytes:
        # A stream may still be sending when the client's Terminate is read.
        if self._conversation.state == "closed":
            raise ConnectionEnded
        return self._conversation.send(message)
