"""Recording what a server sends: the workload once, through one slot for each mode."""

import json
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.wire.protocol import OPTIONS
from tests.live import workload
from tests.live.capture import MODES, SERVER_SETTINGS, Capture, Mode, emit_marker, slots, wait_for
from tools.servers import SERVERS, open_server

if TYPE_CHECKING:
    import psycopg

__all__ = ["STORE", "Recording", "record", "record_all"]

STORE = Path(__file__).parents[1] / "data" / "recordings"
"""Where the recordings for tests without a server are kept."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One complete stream in order: the payloads, and (not stored) the frames that carried them."""

    server_version: int
    mode: Mode
    payloads: tuple[bytes, ...]
    frames: tuple[bytes, ...] = ()

    @property
    def name(self) -> str:
        """The name of its file, without the suffix."""
        return f"{self.server_version}-{self.mode.name}"

    def save(self, directory: Path = STORE) -> Path:
        """Write a header line with the options and one line of hex per payload; the name says server and mode."""
        header = json.dumps({name: value for name, value in asdict(self.mode).items() if name in OPTIONS})
        path = directory / f"{self.name}.txt"
        path.write_text("\n".join([f"# {header}", *(p.hex() for p in self.payloads), ""]), "utf-8")
        return path

    @classmethod
    def load(cls, path: Path) -> "Recording":
        """Read what ``save`` wrote."""
        version, _, name = path.stem.partition("-")
        (mode,) = (mode for mode in MODES if mode.name == name)
        return cls(int(version), mode, tuple(map(bytes.fromhex, path.read_text("utf-8").splitlines()[1:])))


def record_all(server: EmbeddedServer, modes: Iterable[Mode] = MODES) -> dict[str, Recording]:
    """Run the workload once in a database of its own and record it in every mode."""
    modes, dbname = tuple(modes), "workload"
    captures: dict[Mode, Capture] = {}
    markers = (f"sync {number}".encode() for number in range(1000))

    def connect() -> "psycopg.Connection[Any]":
        return server.connect(dbname=dbname)

    with server.connect() as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {dbname} WITH (FORCE)")
        admin.execute(f"CREATE DATABASE {dbname}")
    workload.create_schema(connect, server.version)
    with connect() as main, slots(main, modes) as names, ExitStack() as open_captures:

        def start() -> None:
            for mode in modes:
                captures[mode] = Capture(server.dsn, mode, names[mode], dbname, workload.PUBLICATIONS)
                open_captures.callback(captures[mode].close)

        def sync() -> None:
            marker = next(markers)
            emit_marker(main, marker)
            wait_for(captures.values(), marker)

        workload.run("workload.sql", connect, server.version, {"record": start, "sync": sync})
        sync()
    return {
        mode.name: Recording(server.version, mode, capture.payloads, tuple(capture.frames))
        for mode, capture in captures.items()
    }


def record(version: int) -> dict[str, Recording]:
    """Start a server, record the workload in every mode, and throw the server away."""
    with open_server(version, SERVER_SETTINGS) as server:
        return record_all(server)


def main() -> None:
    """Write the recordings that the tests without a server read: of all servers, or the versions given."""
    STORE.mkdir(parents=True, exist_ok=True)
    for version in map(int, sys.argv[1:] or SERVERS):
        for recording in record(version).values():
            path = recording.save()
            print(f"{path.name}: {len(recording.payloads)} payloads, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
