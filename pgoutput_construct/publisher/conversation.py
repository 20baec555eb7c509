"""One connection without a socket: bytes become messages, messages bytes, and the specification says which may come."""

from pgoutput_construct.errors import DecodeError
from pgoutput_construct.wire.connection import (
    FIRST_STATE,
    Role,
    build_connection,
    message_size,
    next_state,
    parse_connection,
)
from pgoutput_construct.wire.connection_messages import ConnectionMessage

__all__ = ["Conversation", "Ended"]


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
