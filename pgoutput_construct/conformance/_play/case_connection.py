"""A client's connection over which bytes may be sent in pieces, each in a segment of its own."""

import asyncio
import socket
from typing import Final

from pgoutput_construct.publisher._server.client_connection import ClientConnection

__all__ = ["CaseConnection"]

_PAUSE_SECONDS: Final = 0.0002
"""Between two pieces, so that the client may read each before the next one is there."""


class CaseConnection(ClientConnection):
    """The server side of a connection; sends in pieces of ``split`` bytes, unless that is 0."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, split: int) -> None:
        """Begin a connection.

        Args:
            reader: Receives from the client.
            writer: Sends to the client.
            split: The size of a piece in bytes; 0: everything is sent as it comes.
        """
        super().__init__(reader, writer)
        self.split = split
        connection: socket.socket = writer.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def write(self, data: bytes) -> None:
        """Send bytes, and wait while the client is slow to read."""
        size = self.split or len(data) or 1
        for at in range(0, len(data), size):
            await super().write(data[at : at + size])
            if self.split:
                await asyncio.sleep(_PAUSE_SECONDS)
