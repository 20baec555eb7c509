"""Parsers in other languages: a harness of ours for each, built on the spot, which measures itself.

A harness is started with a file of payloads (each after its length, 4 bytes, most significant first), the protocol
version and the option streaming. It answers ``ready COUNT``, then each line on its standard input with one line: to
``pass``, after parsing everything once, the nanoseconds, the number of messages, and a number that depends on them all;
to ``allocated``, after parsing everything once more, the number of allocations, ``-`` where the language does not count
them, and their bytes; to ``tally``, JSON with the messages by kind and, where the parser leaves them as they are, the
number of values and their bytes.

A client is started with the host, port, user and database of a publisher, the slot, the publication, the protocol
version and a number of messages. It reads so many, prints each in a line as its library has it, and ends.
"""

import hashlib
import json
import shutil
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from pgoutput_construct.demo.processes import kill
from tools.benchmark.batch import Batch
from tools.benchmark.errors import BenchmarkError, Unavailable
from tools.benchmark.measure import Pass
from tools.cache import FOLDER
from tools.codecs import BUILT_FOLDERS, TSC, is_built, missing_tools
from tools.codecs import CODECS as CODEC_TOOLS

__all__ = [
    "CLIENTS",
    "CODECS",
    "HARNESSES",
    "PEERS",
    "Allocated",
    "Harness",
    "Running",
    "allocated",
    "built",
    "lacking",
    "missing",
    "prepare",
    "start",
]

PEERS: Final = FOLDER / "benchmark"
"""Where they are built, for every clone of this user."""

_SOURCES: Final = Path(__file__).parent
_SPEC: Final = _SOURCES.parents[1] / "spec"
_SECONDS: Final = 600
"""A build that takes longer, since it gets no answer from a registry for example, is given up."""


@dataclass(frozen=True, slots=True)
class Harness:
    """One parser in another language."""

    name: str
    language: str
    folder: str
    tool: str
    """The command that must be on the PATH."""
    build: tuple[str, ...]
    run: tuple[str, ...]
    """The command that starts it, from its folder."""
    streaming: bool = True
    """Whether the parser knows streamed transactions."""
    kind: str = "peers"
    """The folder of its folder."""
    root: Path = _SOURCES
    """The folder of that."""
    codec: str = ""
    """The folder of spec/ with a codec that our part uses: it is copied next to that, as codec/."""

    @property
    def title(self) -> str:
        """What it is, for people."""
        return f"{self.name} ({self.language}): its {'client' if self.kind == 'clients' else 'parser'}"

    @property
    def sources(self) -> Path:
        """Where our part of it is."""
        return self.root / self.kind / self.folder

    @property
    def stamp(self) -> str:
        """A name of the sources: a program that was built from others is built again."""
        found = hashlib.sha256()
        for folder in [self.sources] + [_SPEC / self.codec] * bool(self.codec):
            for path in sorted(folder.rglob("*")):
                name = path.relative_to(folder)
                if path.is_file() and not is_built(path, folder):
                    data = path.read_bytes()
                    found.update(f"{name.as_posix()}\0{len(data)}\0".encode() + data)
        return found.hexdigest()[:16]

    def check(self, batch: Batch) -> None:
        """Raise Unavailable for a case that the parser does not know."""
        if batch.case.streaming != "off" and not self.streaming:
            raise Unavailable("it does not know streamed transactions")


@dataclass(frozen=True, slots=True)
class Allocated:
    """What a parser allocates for a message, on average."""

    engine: str
    allocations: float | None
    """None where the language does not count them."""
    bytes: float


HARNESSES = (
    Harness("pglogrepl", "Go", "pglogrepl", "go", ("go", "build", "-mod=mod", "-o", "harness", "."), ("./harness",)),
    Harness(
        "pg-walstream",
        "Rust",
        "pg_walstream",
        "cargo",
        ("cargo", "build", "--release", "--quiet", "--target-dir", "target"),
        ("target/release/pg_walstream_harness",),
    ),
    Harness(
        "pg-logical-replication",
        "JavaScript",
        "node",
        "node",
        ("npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"),
        ("node", "main.mjs"),
        streaming=False,
    ),
)
"""Every parser in another language."""

CODECS = (
    Harness(
        "rust-codec",
        "Rust",
        "rust",
        "cargo",
        ("cargo", "build", "--offline", "--quiet", "--release", "--examples"),
        ("target/release/examples/harness",),
        kind="spec",
        root=_SOURCES.parents[1],
    ),
    Harness(
        "go-codec",
        "Go",
        "go",
        "go",
        ("go", "build", "-o", "harness", "./cmd/harness"),
        ("./harness",),
        kind="spec",
        root=_SOURCES.parents[1],
    ),
    Harness(
        "typescript-codec",
        "TypeScript",
        "typescript",
        "node",
        (str(TSC),),
        ("node", "harness.mjs"),
        kind="spec",
        root=_SOURCES.parents[1],
    ),
)
"""Our codecs in other languages."""

CLIENTS = (
    Harness(
        "pglogrepl",
        "Go",
        "pglogrepl",
        "go",
        ("go", "build", "-mod=mod", "-o", "client", "."),
        ("./client",),
        kind="clients",
    ),
    Harness(
        "pg-walstream",
        "Rust",
        "pg_walstream",
        "cargo",
        ("cargo", "build", "--quiet", "--target-dir", "target"),
        ("target/debug/pg_walstream_client",),
        kind="clients",
    ),
    Harness(
        "pg-logical-replication",
        "JavaScript",
        "node",
        "node",
        ("npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"),
        ("node", "main.mjs"),
        streaming=False,
        kind="clients",
    ),
)
"""Every client of replication in another language: it reads from a publisher."""


def built(harness: Harness, directory: Path = PEERS) -> Path | None:
    """Return the folder where a harness is built from the sources as they are, or None."""
    folder = directory / harness.kind / harness.folder
    stamp = folder / ".built"
    return folder if stamp.exists() and stamp.read_text("ascii") == harness.stamp else None


def lacking(harness: Harness) -> str:
    """Say which command a harness is built with and is missing, and what to do; "" where all are there."""
    if harness.build[0] == str(TSC) and (problem := missing_tools(CODEC_TOOLS["typescript"])):
        return problem
    missed = [tool for tool in (harness.tool, harness.build[0]) if shutil.which(tool) is None]
    return f"no {missed[0]} on the PATH" if missed else ""


def missing(harness: Harness) -> str:
    """Say what to do where a harness is not built; "" where it is."""
    if built(harness):
        return ""
    return f"{harness.name}: {lacking(harness) or 'it is not built: build it: python -m tools.benchmark peers'}"


@cache
def prepare(harness: Harness, directory: Path = PEERS) -> Path | str:
    """Build a harness if necessary, at most once per process; return its folder, or why it cannot be built."""
    if folder := built(harness, directory):
        return folder
    if problem := lacking(harness):
        return problem
    folder = directory / harness.kind / harness.folder
    ignored = shutil.ignore_patterns(*BUILT_FOLDERS)
    _clear(folder)
    shutil.copytree(harness.sources, folder, ignore=ignored, dirs_exist_ok=True)
    if harness.codec:
        shutil.copytree(_SPEC / harness.codec, folder / "codec", ignore=ignored, dirs_exist_ok=True)
    try:
        done = subprocess.run(harness.build, cwd=folder, capture_output=True, text=True, check=False, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        return f"{' '.join(harness.build)} was given up after {_SECONDS} seconds"
    if done.returncode:
        return f"{' '.join(harness.build)} failed: {(done.stdout + done.stderr).strip()[-600:]}"
    (folder / ".built").write_text(harness.stamp, "ascii")
    return folder


def _clear(folder: Path) -> None:
    """Remove the sources of an earlier build, but not what tools made of them, which saves time."""
    for path in folder.iterdir() if folder.exists() else ():
        if path.is_dir() and path.name not in BUILT_FOLDERS:
            shutil.rmtree(path)
        elif path.is_file():
            path.unlink()


class Running:
    """A harness that has read a batch and waits; use it as a context manager."""

    def __init__(self, harness: Harness, folder: Path, batch: Batch) -> None:
        harness.check(batch)
        if batch.path is None:
            raise BenchmarkError("other processes need a batch that is in a file")
        self._name, self._expected = harness.name, len(batch)
        program = (str(folder / harness.run[0]),) if harness.run[0].count("/") else harness.run[:1]
        command = (*program, *harness.run[1:], str(batch.path.resolve()), str(batch.case.proto_version))
        command += (batch.case.streaming,)
        pipe = subprocess.PIPE
        # In a session of its own: Ctrl-C is for this process, which closes the others.
        self._process = subprocess.Popen(
            command, cwd=folder, stdin=pipe, stdout=pipe, text=True, start_new_session=True
        )
        self._check_count(self._line().removeprefix("ready "))

    def run(self) -> int:
        """Parse everything once; return the nanoseconds."""
        took, count, _ = self._ask("pass").split()
        self._check_count(count)
        return int(took)

    def allocated(self) -> Allocated:
        """Parse everything once; return what was allocated for a message."""
        allocations, size = self._ask("allocated").split()
        count = None if allocations == "-" else int(allocations) / self._expected
        return Allocated(self._name, count, int(size) / self._expected)

    def tally(self) -> dict[str, Any]:
        """Return what it found."""
        found: dict[str, Any] = json.loads(self._ask("tally"))
        return found

    def close(self) -> None:
        """End the process."""
        kill(self._process)

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._line()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.close()
            raise Unavailable(f"its harness ended with status {self._process.returncode}")
        return line

    def _check_count(self, count: str) -> None:
        if int(count) != self._expected:
            self.close()
            raise BenchmarkError(f"{self._name}: {count} messages came out, {self._expected} went in")


def allocated(harness: Harness, batch: Batch) -> Allocated:
    """Return what a parser allocates for the messages of a batch, once it has parsed them; or raise Unavailable."""
    with ExitStack() as stack:
        running = _running(harness, batch, stack)
        running.run()
        return running.allocated()


def start(harness: Harness, batch: Batch, stack: ExitStack) -> Pass:
    """Start a harness on a batch, building it if need be."""
    return _running(harness, batch, stack).run


def _running(harness: Harness, batch: Batch, stack: ExitStack) -> Running:
    harness.check(batch)
    folder = prepare(harness)
    if isinstance(folder, str):
        raise Unavailable(folder)
    return stack.enter_context(Running(harness, folder, batch))
