"""The workload: ``schema.sql`` and ``workload.sql``, run step by step over several connections."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

__all__ = ["PUBLICATIONS", "Step", "create_schema", "run", "steps"]

PUBLICATIONS = ("pub", "pub_insert", "pub_root", "pub_generated")
"""The publications that ``schema.sql`` makes."""

Connect = Callable[[], "psycopg.Connection[Any]"]
HOOKS = ("record", "sync")


class Step(NamedTuple):
    """One step of a script: the connection it runs on, and a statement or the name of a hook."""

    connection: str
    statement: str
    hook: str | None = None


def steps(script: str, version: int) -> Iterator[Step]:
    """Read a script: statements, and directives in comments that begin with ``-- @``."""
    connection, lines, skip = "main", [], False
    for line in script.splitlines():
        if line.startswith("-- @"):
            directive = line.removeprefix("-- @").strip()
            if directive in HOOKS:
                yield Step(connection, "", directive)
            elif directive.isdigit():
                skip = version < int(directive)
            else:
                connection = directive
        elif line and not line.startswith("--"):
            lines.append(line)
            if line.endswith(";"):
                if not skip:
                    yield Step(connection, "\n".join(lines))
                lines, skip = [], False


def create_schema(connect: Connect, version: int) -> None:
    """Make the tables, types and publications in an empty database."""
    run("schema.sql", connect, version)


def run(script: str, connect: Connect, version: int, hooks: dict[str, Callable[[], None]] | None = None) -> None:
    """Run a script of this directory; a connection is opened where its name comes first."""
    text = (Path(__file__).parent / script).read_text("utf-8")
    connections: dict[str, psycopg.Connection[Any]] = {}
    with ExitStack() as stack:
        for step in steps(text, version):
            if step.hook is not None:
                (hooks or {})[step.hook]()
                continue
            if step.connection not in connections:
                connections[step.connection] = stack.enter_context(connect())
            _execute(connections[step.connection], step)


def _execute(connection: "psycopg.Connection[Any]", step: Step) -> None:
    try:
        connection.execute(step.statement.encode())
    except psycopg.Error as error:
        error.add_note(f"on connection {step.connection}: {step.statement}")
        raise
