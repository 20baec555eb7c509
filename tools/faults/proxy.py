"""A TCP proxy for a server's Unix socket that can cut connections, or accept everything and forward nothing."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

__all__ = ["Proxy"]

_CHUNK = 64 * 1024
_START_SECONDS = 10


class _Link:
    """One connection of a client, and the one to the server that belongs to it."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter, begin: bytes) -> None:
        self.client, self.server = client, server
        self.replication = b"\0replication\0" in begin
        """Whether its startup packet, which comes first where no encryption is asked for, says so."""
        self.silent = False

    async def pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward until ``reader`` ends; in silence read on, so that TCP acknowledges, and forward nothing."""
        while data := await _read(reader):
            if not self.silent:
                with suppress(OSError):  # the pump that reads from there notices that it is closed
                    writer.write(data)
                    await writer.drain()
        if self.silent and writer is self.client:
            self.server.transport.abort()  # the server gave up: a stalled path does not forward that to the client
        else:
            self.cut()

    def cut(self) -> None:
        """Reset both connections."""
        for writer in (self.client, self.server):
            writer.transport.abort()


async def _read(reader: asyncio.StreamReader) -> bytes:
    with suppress(OSError):
        return await reader.read(_CHUNK)
    return b""


class Proxy:
    """Forwards connections to ``127.0.0.1:port``; a context manager, its loop runs in a thread of its own."""

    def __init__(self, socket: Path) -> None:
        """Take the server's Unix socket; if nothing listens there, clients are disconnected."""
        self.port = 0
        """The TCP port, once entered."""
        self._socket = socket
        self._links: set[_Link] = set()
        self._stall_next = False
        self._ready, self._end = threading.Event(), asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)

    @property
    def connected(self) -> int:
        """How many replication connections there are that are not silent."""
        return self._each(lambda link: None, lambda link: link.replication and not link.silent)

    @property
    def silent(self) -> int:
        """How many replication connections are silent and not given up by the client, or will be silent."""
        return self._each(lambda link: None, lambda link: link.replication and link.silent) + self._stall_next

    def cut(self) -> int:
        """Reset all connections, silent ones too; return how many there were."""
        self._stall_next = False
        return self._each(_Link.cut)

    def stall(self) -> int:
        """Stall the present connections for good; return their number."""
        return self._each(lambda link: setattr(link, "silent", True))

    def stall_next(self) -> None:
        """Stall the next replication connection from its beginning."""
        self._stall_next = True

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(_START_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(_START_SECONDS)
        self._loop.close()

    def _each(self, do: Callable[[_Link], None], which: Callable[[_Link], bool] = lambda link: True) -> int:
        async def all_of_them() -> int:
            links = [link for link in self._links if which(link)]
            for link in links:
                do(link)
            return len(links)

        return asyncio.run_coroutine_threadsafe(all_of_them(), self._loop).result(_START_SECONDS)

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._end.wait()
        server.close()
        await asyncio.sleep(0.1)  # for the connections that were cut to end

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            begin = await _read(reader)
            server_reader, server_writer = await asyncio.open_unix_connection(self._socket)
        except OSError:
            writer.transport.abort()
            return
        link = _Link(writer, server_writer, begin)
        if link.replication:
            link.silent, self._stall_next = self._stall_next, False
        if not link.silent:
            server_writer.write(begin)
        self._links.add(link)
        ways: list[Awaitable[None]] = [link.pump(reader, server_writer), link.pump(server_reader, writer)]
        try:
            await asyncio.gather(*ways)
        finally:
            self._links.discard(link)
