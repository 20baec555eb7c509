"""A proxy in front of a server that can fall silent, as a firewall or a hanging host does, be cut, or alter bytes."""

import selectors
import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

import psycopg

from pgoutput_construct.demo.embedded_server import EmbeddedServer

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Proxy"]


class Proxy:
    """Passes bytes between clients on a port of this machine and a server; a context manager."""

    def __init__(self, server: EmbeddedServer) -> None:
        """Listen, and connect whoever comes to ``server``."""
        host = psycopg.conninfo.conninfo_to_dict(server.dsn)["host"]
        self._target = f"{host}/.s.PGSQL.5432"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)  # of its connections: full soon
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._ended = False
        self.silent = False
        """Take in what comes, which TCP acknowledges, and pass nothing on."""
        self._stalled: set[socket.socket] = set()
        self.stuck = False
        """Receive nothing, so that senders block."""
        self.pause = 0.0
        """Seconds to wait after each 64 KB at most: a slow path."""
        self.alter: Callable[[bytes], bytes] = bytes
        """What it makes of the bytes that the server sends."""
        self._thread = threading.Thread(target=self._run)

    def dsn(self, dsn: str) -> str:
        """Return a connection string that leads through here."""
        host, port = self._listener.getsockname()
        return psycopg.conninfo.make_conninfo(dsn, host=host, port=port)

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._pairs) // 2

    def stall(self) -> None:
        """Let current connections fall silent: neither end learns that the other one is disconnected."""
        self._stalled |= set(self._pairs)

    def cut(self) -> None:
        """Close every connection."""
        for end in list(self._pairs):
            with suppress(OSError):  # closed already
                end.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended = True
        self._thread.join(5)
        for end in (*self._pairs, self._listener):
            end.close()
        self._selector.close()

    def _run(self) -> None:
        while not self._ended:
            for key, _ in self._selector.select(0.05):
                if self.stuck:
                    time.sleep(0.05)
                elif key.fileobj is self._listener:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket) and key.fileobj in self._pairs:
                    self._pass(key.fileobj)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(self._target)
        for one, other in ((client, server), (server, client)):
            self._pairs[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _pass(self, end: socket.socket) -> None:
        try:
            data = end.recv(65536)
            data = self.alter(data) if end.family == socket.AF_UNIX else data
            if data and not self.silent and end not in self._stalled:
                self._pairs[end].sendall(data)
                time.sleep(self.pause)
        except OSError:
            data = b""
        if not data and end in self._stalled:
            self._selector.unregister(end)
        elif not data:
            other = self._pairs.pop(end)
            self._pairs.pop(other)
            for closed in (end, other):
                self._selector.unregister(closed)
                closed.close()
