"""A client's connection over which bytes may be sent in pieces, each in a segment of its own."""

import asyncio
import socket
from typing import Final

from pgoutput_construct.publisher._server.client_connection import ClientConnection

__all__ = ["CaseConnection"]

_SPLIT_BYTES: Final = 2500
"""Bytes that are sent in pieces, after which everything is sent as it comes: results of queries may be large."""
_PAUSE_SECONDS: Final = 0.0002
"""Between two pieces, so that the client may read each before the next one is there."""


class CaseConnection(ClientConnection):
    """The server side of a connection; sends in pieces of some bytes, if it was told to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, split: int) -> None:
        """Begin a connection.

        Args:
            reader: Receives from the client.
            writer: Sends to the client.
            split: The size of a piece in bytes; 0: everything is sent as it comes.
        """
        super().__init__(reader, writer)
        self._split, self._left = split, _SPLIT_BYTES
        connection: socket.socket = writer.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def write(self, data: bytes) -> None:
        """Send bytes, and wait while the client is slow to read."""
        at = 0
        while at < len(data):
            size = self._split if self._split and self._left > 0 else len(data)
            await super().write(data[at : at + size])
            at += size
            self._left -= size
            if self._split:
                await asyncio.sleep(_PAUSE_SECONDS)

    def split(self, size: int) -> None:
        """Send what comes next in pieces of a size, 0 for as it comes."""
        self._split, self._left = size, _SPLIT_BYTES
