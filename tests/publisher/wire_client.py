"""A client of a publisher that says whatever a test wants it to, on a socket of its own."""

import contextlib
import socket
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import errors

from pgoutput_construct.publisher._server.client_connection import Conversation
from pgoutput_construct.wire import StandbyStatusUpdate, Timestamp, XLogData, build_frame, parse_frame
from pgoutput_construct.wire import connection_messages as m
from pgoutput_construct.wire.types import Lsn

__all__ = ["WireClient"]

_SECONDS = 300.0


class WireClient:
    """One connection; with a user it has been let in when it is there."""

    def __init__(self, port: int, piece: int = 1 << 20, **parameters: str) -> None:
        """Connect; ``parameters`` are those of the startup message, ``piece`` how many bytes are written at once."""
        self.socket = socket.create_connection(("127.0.0.1", port), _SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._piece = piece
        self._conversation = Conversation("client", 1 << 30)
        if parameters:
            self.say(m.StartupMessage(0, tuple(m.StartupParameter(*pair) for pair in parameters.items())))
            self.until(m.ReadyForQuery)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drop the connection without a word."""
        self.socket.close()

    def write(self, data: bytes) -> None:
        """Send bytes, as long as the other side takes them."""
        with contextlib.suppress(ConnectionError):
            for at in range(0, len(data), self._piece):
                self.socket.sendall(data[at : at + self._piece])

    def say(self, message: m.ConnectionMessage) -> None:
        """Send a message."""
        self.write(self._conversation.send(message))

    def status(self, position: int) -> None:
        """Confirm a position."""
        lsn = Lsn(position)
        self.say(m.CopyData(build_frame(StandbyStatusUpdate(lsn, lsn, lsn, Timestamp.now(), 0))))

    def receive(self) -> m.ConnectionMessage | None:
        """Return the next message; None where the connection has ended."""
        while (message := self._conversation.next_message()) is None:
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionError:
                return None
            if not data:
                return None
            self._conversation.receive(data)
        return message

    def payload(self) -> bytes | None:
        """Return the next payload of the stream, keepalives left out; None where the connection has ended."""
        while (message := self.receive()) is not None:
            frame = parse_frame(message.data) if isinstance(message, m.CopyData) else None
            if isinstance(frame, XLogData):
                return frame.data
        return None

    def rest(self) -> list[m.ConnectionMessage]:
        """Return all messages until the connection ends."""
        return list(iter(self.receive, None))

    def until(self, *kinds: type[m.ConnectionMessage]) -> list[m.ConnectionMessage]:
        """Return the messages up to one of a kind."""
        found: list[m.ConnectionMessage] = []
        while not found or not isinstance(found[-1], kinds):
            message = self.receive()
            assert message is not None, f"the connection has ended after {found}"
            found.append(message)
        return found

    def query(self, text: str) -> list[tuple[bytes | None, ...]]:
        """Return the rows of a query; raise psycopg's error for that which the server tells."""
        self.say(m.Query(text))
        answer = self.until(m.ReadyForQuery, m.CopyBothResponse)
        for message in answer:
            if isinstance(message, m.ErrorResponse):
                fields: dict[str, Any] = {each.code: each.value for each in message.details}
                raise errors.lookup(fields["C"])(fields["M"]) if fields["C"] else psycopg.Error(fields["M"])
        return [message.row for message in answer if isinstance(message, m.DataRow)]

    def start(self, command: str) -> None:
        """Begin a replication stream; raise psycopg's error where it is refused."""
        self.query(command)

    def is_open(self) -> bool:
        """Return whether the other side has not ended the connection, whatever it has sent before that."""
        self.socket.setblocking(False)
        try:
            return bool(self.socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        finally:
            self.socket.settimeout(_SECONDS)
