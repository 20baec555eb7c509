"""Programs that follow a slot, and a run of one in a process of its own: ``python -m tools.benchmark.consumers``.

This process imports only what a program of the kind imports: its memory counts.
"""

import ast
import json
import resource
import sys
import time
from dataclasses import asdict, dataclass
from importlib import import_module
from io import StringIO
from pathlib import Path
from tokenize import COMMENT, DEDENT, ENDMARKER, INDENT, NEWLINE, NL, generate_tokens
from typing import Any, Final

__all__ = ["CONSUMERS", "Consumer", "ConsumerRun", "code_lines"]

_NO_CODE: Final = frozenset({COMMENT, DEDENT, ENDMARKER, INDENT, NEWLINE, NL})


@dataclass(frozen=True, slots=True)
class Consumer:
    """One of the programs that are compared."""

    name: str
    title: str
    module: str
    """Its module in this package; what is measured is its function ``consume``."""

    @property
    def path(self) -> Path:
        """The file of the program."""
        return Path(__file__).with_name(f"{self.module}.py")


CONSUMERS: Final = (
    Consumer("stream", "pgoutput_construct.postgres.stream", "stream_consumer"),
    Consumer("psycopg2", "psycopg2's replication cursor, a parser by hand", "psycopg2_consumer"),
)
"""The live client, and the one that it is compared with."""


@dataclass(frozen=True, slots=True)
class ConsumerRun:
    """One run of a consumer."""

    changes: int
    transactions: int
    start: float
    """Seconds until its modules are imported and ready."""
    seconds: float
    """Seconds from opening the connection until it is closed."""
    cpu: float
    """Seconds of CPU of the process in that time, all its threads."""
    peak: int
    """Most resident bytes of the process."""


def code_lines(path: Path) -> int:
    """Return the number of lines of a program that are neither empty, nor comments, nor docstrings.

    Args:
        path: Its file.
    """
    text = path.read_text("utf-8")
    found: set[int] = set()
    for token in generate_tokens(StringIO(text).readline):
        if token.type not in _NO_CODE:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(found)


def _measured(name: str, dsn: str, slot: str, publication: str, transactions: str, file: str) -> ConsumerRun:
    """Measure a consumer in this process; with a file, write what it delivers, one change a line."""
    began = time.perf_counter()
    consumer = next(found for found in CONSUMERS if found.name == name)
    consume = import_module(f"tools.benchmark.{consumer.module}").consume
    if consumer is CONSUMERS[0]:
        from pgoutput_construct.postgres._frames import Gatherer

        Gatherer()  # loads its kernel, or compiles it: that is part of the start
    start, changes, enough = time.perf_counter() - began, 0, int(transactions)

    def count(_: Any) -> None:
        nonlocal changes
        changes += 1

    began, cpu = time.perf_counter(), time.process_time()
    if file:
        with Path(file).open("w", encoding="utf-8") as lines:
            consume(dsn, slot, publication, enough, lambda change: print(_line(change), file=lines))
    else:
        consume(dsn, slot, publication, enough, count)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return ConsumerRun(changes, enough, start, seconds, cpu, _peak())


def _peak() -> int:
    """Return the most resident bytes that this program had; ru_maxrss includes the program that started it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    line = next(text for text in status.read_text("ascii").splitlines() if text.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def _line(change: Any) -> str:
    return repr((change.table, change.op, change.new, change.old, change.unchanged, int(change.lsn)))


if __name__ == "__main__":
    print(json.dumps(asdict(_measured(*sys.argv[1:]))))
