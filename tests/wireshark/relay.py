"""A relay in front of a server's Unix socket: clients reach it over TCP, and it keeps what both sides say."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread

from tests.wireshark.pcap import Said

__all__ = ["Relay", "relay"]

PIECE = 1 << 15


@dataclass
class Relay:
    """One connection through a port of its own."""

    port: int
    said: list[Said] = field(default_factory=list)


@contextmanager
def relay(path: str) -> Iterator[Relay]:
    """Relay one client to a Unix socket; at the end both have hung up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = Relay(listener.getsockname()[1])
        thread = Thread(target=_serve, args=(listener, path, found.said), daemon=True)
        thread.start()
        yield found
    thread.join(30)
    assert not thread.is_alive()


def _serve(listener: socket.socket, path: str, said: list[Said]) -> None:
    client, _ = listener.accept()
    with client, socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        answers = Thread(target=_pump, args=(server, client, False, said), daemon=True)
        answers.start()
        _pump(client, server, True, said)
        answers.join(30)


def _pump(source: socket.socket, target: socket.socket, by_client: bool, said: list[Said]) -> None:
    while data := source.recv(PIECE):
        said.append(Said(by_client, data))
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)
