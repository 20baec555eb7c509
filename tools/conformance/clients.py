"""The clients of the report card: what each is, its version, and how it is started."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from pgoutput_construct import __version__
from pgoutput_construct.conformance import CommandClient, ConformanceClient
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from tools.benchmark import pypgoutput
from tools.benchmark.harness import Harness, lacking, prepare
from tools.cache import FOLDER, fetching
from tools.conformance.capture_log import CaptureClient
from tools.conformance.forked import ForkedClient
from tools.conformance.recvlogical import PROGRAM, RecvlogicalClient
from tools.conformance.subscription import SUBSCRIBER_SETTINGS, SubscriptionClient

__all__ = ["CLIENTS", "ClientEntry", "UnavailableClientError"]

_HERE: Final = Path(__file__).parent
_BUILT: Final = FOLDER / "conformance"


class UnavailableClientError(Exception):
    """A client cannot be had on this machine, for the reason that it says."""


@dataclass(frozen=True)
class ClientEntry:
    """One client."""

    name: str
    title: str
    language: str
    open: Callable[[], Any]
    """Returns a context manager of the client; raises UnavailableClientError."""
    version: Callable[[], str]
    note: str = ""
    """What of it is tested, where that needs a word."""


@contextmanager
def _subscription(release: int) -> Iterator[ConformanceClient]:
    with EmbeddedServer(release, SUBSCRIBER_SETTINGS) as server:
        yield SubscriptionClient(server)


def _server_version(release: int) -> str:
    with EmbeddedServer(release) as server, server.connect() as connection:
        return str(connection.execute("SHOW server_version").fetchone()[0]).split()[0]  # type: ignore[index]


@contextmanager
def _plain(client: ConformanceClient) -> Iterator[ConformanceClient]:
    yield client


def _forked(title: str, name: str) -> Any:
    return _plain(ForkedClient(title, f"tools.conformance.adapters.{name}"))


def _pypgoutput() -> Any:
    path = pypgoutput.prepare()
    if isinstance(path, str):
        raise UnavailableClientError(path)
    return _forked("pypgoutput", "pypgoutput_client")


def _recvlogical() -> Any:
    if shutil.which(PROGRAM) is None:
        raise UnavailableClientError(f"no {PROGRAM} on the PATH: it comes with PostgreSQL's client programs")
    return _plain(RecvlogicalClient())


def _recvlogical_version() -> str:
    said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"\d+(\.\d+)+", said)
    return found[0] if found else said.strip()


_GO: Final = Harness(
    "pglogrepl",
    "Go",
    "pglogrepl",
    "go",
    ("go", "build", "-mod=mod", "-o", "client", "."),
    ("./client",),
    kind="clients",
    root=_HERE,
)
_RUST: Final = Harness(
    "pg-walstream",
    "Rust",
    "pg_walstream",
    "cargo",
    ("cargo", "build", "--quiet", "--target-dir", "target"),
    ("target/debug/pg_walstream_conformance",),
    kind="clients",
    root=_HERE,
)
_NODE: Final = Harness(
    "pg-logical-replication",
    "JavaScript",
    "node",
    "node",
    ("npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"),
    ("node", "main.mjs"),
    streaming=False,
    kind="clients",
    root=_HERE,
)
_CODEC_GO: Final = Harness(
    "Go codec",
    "Go",
    "codec_go",
    "go",
    ("go", "build", "-mod=mod", "-o", "client", "."),
    ("./client",),
    kind="clients",
    root=_HERE,
    codec="go",
)
_CODEC_RUST: Final = Harness(
    "Rust codec",
    "Rust",
    "codec_rust",
    "cargo",
    ("cargo", "build", "--quiet", "--target-dir", "target"),
    ("target/debug/codec_conformance",),
    kind="clients",
    root=_HERE,
    codec="rust",
)
_CODEC_TYPESCRIPT: Final = Harness(
    "TypeScript codec",
    "TypeScript",
    "codec_typescript",
    "node",
    ("npm", "run", "--silent", "build"),
    ("node", "dist/main.js"),
    kind="clients",
    root=_HERE,
    codec="typescript",
)
_ASKED: Final = "{slot} {publication} {proto_version} {streaming} {binary} {messages} {two_phase} {origin} {timeout}"
_ARGUMENTS: Final = {
    _CODEC_GO: f"{{url}} {_ASKED}",
    _CODEC_RUST: f"{{host}} {{port}} {{user}} {{password}} {{database}} {_ASKED}",
    _CODEC_TYPESCRIPT: f"{{url}} {_ASKED}",
    _GO: "{url} {slot} {publication} {proto_version} {streaming} {binary} {messages} {timeout}",
    _RUST: "{url} {slot} {publication} {proto_version} {streaming} {binary} {messages} {two_phase} {timeout}",
    _NODE: "{host} {port} {user} {password} {database} {slot} {publication} {binary} {messages}",
}


def _command(harness: Harness) -> Any:
    if problem := lacking(harness):
        raise UnavailableClientError(problem)  # what is built already may need node all the same
    with fetching(f"conformance-{harness.folder}"):
        folder = prepare(harness, _BUILT)
    if isinstance(folder, str):
        raise UnavailableClientError(folder)
    program = str(folder / harness.run[0]) if "/" in harness.run[0] else harness.run[0]
    command = [program, *harness.run[1:], *_ARGUMENTS[harness].split()]
    return _plain(CommandClient(command, harness.name, folder))


def _required(harness: Harness, file: str, pattern: str) -> str:
    found = re.search(pattern, (harness.sources / file).read_text("utf-8"))
    assert found is not None, f"{file} says no version"
    return found[1]


def _node_version() -> str:
    return str(json.loads((_NODE.sources / "package.json").read_text("utf-8"))["dependencies"][_NODE.name])


CLIENTS: Final = (
    ClientEntry(
        "postgresql-18",
        "PostgreSQL 18",
        "C",
        lambda: _subscription(18),
        lambda: _server_version(18),
        "its subscription",
    ),
    ClientEntry(
        "postgresql-16",
        "PostgreSQL 16",
        "C",
        lambda: _subscription(16),
        lambda: _server_version(16),
        "its subscription",
    ),
    ClientEntry(
        "pg_recvlogical", "pg_recvlogical", "C", _recvlogical, _recvlogical_version, "its file, which our parser reads"
    ),
    ClientEntry(
        "capture", "pgoutput capture", "Python", lambda: _plain(CaptureClient()), lambda: __version__, "its change log"
    ),
    ClientEntry(
        "stream",
        "postgres.stream",
        "Python",
        lambda: _forked("postgres.stream", "live_client"),
        lambda: __version__,
        "our live client",
    ),
    ClientEntry(
        "psycopg2",
        "psycopg2",
        "Python",
        lambda: _forked("psycopg2", "psycopg2_client"),
        lambda: version("psycopg2-binary"),
        "its cursor, and a parser by hand as in many programs",
    ),
    ClientEntry(
        "pypgoutput",
        "pypgoutput",
        "Python",
        _pypgoutput,
        lambda: pypgoutput.REQUIREMENT.partition("==")[2],
        "its decoders, and psycopg2's cursor",
    ),
    ClientEntry(
        "pglogrepl", "pglogrepl", "Go", lambda: _command(_GO), lambda: _required(_GO, "go.mod", r"pglogrepl v(\S+)")
    ),
    ClientEntry(
        "pg-walstream",
        "pg_walstream",
        "Rust",
        lambda: _command(_RUST),
        lambda: _required(_RUST, "Cargo.toml", r"=(\d[\d.]+)"),
    ),
    ClientEntry(
        "pg-logical-replication", "pg-logical-replication", "JavaScript", lambda: _command(_NODE), _node_version
    ),
    ClientEntry(
        "rust-codec",
        "Rust codec",
        "Rust",
        lambda: _command(_CODEC_RUST),
        lambda: __version__,
        "spec/rust, and parts of pgwire-replication for the connection",
    ),
    ClientEntry(
        "go-codec",
        "Go codec",
        "Go",
        lambda: _command(_CODEC_GO),
        lambda: __version__,
        "spec/go, and pgx's pgconn for the connection",
    ),
    ClientEntry(
        "typescript-codec",
        "TypeScript codec",
        "TypeScript",
        lambda: _command(_CODEC_TYPESCRIPT),
        lambda: __version__,
        "spec/typescript, and node-postgres for the connection",
    ),
)
"""In the order of the report card."""
