"""A relay in front of a server's Unix socket: one client reaches it over TCP, and it keeps what both sides say.

A process of its own: while libpq waits for the server, nothing else runs in the client's. Its arguments are the socket;
it prints its port, and at the end the segments as lines of JSON.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Thread

__all__ = ["Relay", "relay"]

PIECE = 1 << 15


@dataclass
class Relay:
    """A relay, its port, and at its end what was said: by the client or not, and the bytes."""

    port: int
    said: list[tuple[bool, bytes]] = field(default_factory=list)


@contextmanager
def relay(path: str) -> Iterator[Relay]:
    """Relay one client to a Unix socket, until it hangs up."""
    command = [sys.executable, __file__, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = Relay(int(process.stdout.readline()))
        try:
            yield found
            lines, _ = process.communicate(timeout=300)
        finally:
            process.kill()
        found.said += [(by_client, bytes.fromhex(digits)) for by_client, digits in map(json.loads, lines.splitlines())]


def _serve(path: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        client, _ = listener.accept()
    said: list[tuple[bool, str]] = []
    with client, socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        answers = Thread(target=_pump, args=(server, client, False, said))
        answers.start()
        _pump(client, server, True, said)
        answers.join()
    print(*map(json.dumps, said), sep="\n")


def _pump(source: socket.socket, target: socket.socket, by_client: bool, said: list[tuple[bool, str]]) -> None:
    with suppress(OSError):  # who hangs up may leave bytes unread
        while data := source.recv(PIECE):
            said.append((by_client, data.hex()))
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    _serve(sys.argv[1])
