"""The group of commands: imports them when they are needed, and turns errors into one line and an exit status."""

import os
import platform
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import click

from pgoutput_construct import __version__
from pgoutput_construct.cli._options import in_arguments
from pgoutput_construct.cli._printing import printable
from pgoutput_construct.cli.command_table import COMMANDS, GROUPS
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.extras import JAVA, installation

__all__ = ["BROKEN_PIPE", "INTERRUPTED", "cli", "reason", "spark_reason"]

INTERRUPTED = 130
BROKEN_PIPE = 141


class _LazyGroup(click.Group):
    """Imports commands when they are needed; prints errors without a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands for ``--help``."""
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in their groups, each with its short help."""
        width = max(map(len, COMMANDS))
        for group in GROUPS:
            names = [name for name, entry in COMMANDS.items() if entry.group == group]
            found = {name: self.get_command(ctx, name) for name in names}
            with formatter.section(group):
                formatter.write_dl(
                    [
                        (name.ljust(width), each.get_short_help_str(100))
                        for name, each in found.items()
                        if each is not None
                    ]
                )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        name = f"{cmd_name}_command"
        command: click.Command = getattr(import_module(f"pgoutput_construct.cli.commands.{name}"), name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; the exit status is 1 for an error, 130 after Ctrl-C, 141 if the output's reader is gone."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            _detach_stdout()
            ctx.exit(BROKEN_PIPE)
        except Exception as error:
            text = reason(error)
            if text is None:
                raise
            raise click.ClickException(_lines(text)) from error


def reason(error: Exception) -> str | None:
    """Return the text of an error for the user; None for a bug of the program, whose traceback is printed."""
    match error:
        case ImportError() if "libpq" in str(error):
            return f"psycopg is installed without libpq; {installation('cli', 'postgres')}"
        case OSError():
            location = f"{error.filename}: " if error.filename is not None else ""
            return f"{location}{error.strerror or error}"
        case MemoryError():
            return "not enough memory for a message of this size"
        case PgoutputError():
            return in_arguments(str(error))
        case _:
            return spark_reason(error)


def _lines(text: str) -> str:
    """Return the text to print; lines after the first are indented, so that none looks like another error."""
    return "\n  ".join(map(printable, text.splitlines()))


def _detach_stdout() -> None:
    # Python flushes it again at exit, which would fail and be reported.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_LIBRARIES: Final = ("construct", "pyarrow", "numba", "psycopg", "pyspark")
"""The libraries whose versions matter in a report of a problem."""


def _print_version(ctx: click.Context, _option: click.Parameter, is_given: bool) -> None:
    if not is_given:
        return
    click.echo(f"pgoutput {__version__}")
    click.echo(f"  Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            click.echo(f"  {name} {version(name)}")
    ctx.exit()


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show versions."
)
def cli() -> None:
    """Captures, reads and writes PostgreSQL's logical replication messages (pgoutput).

    \b
    Examples:
      pgoutput capture service=shop changelog/ --slot warehouse --publication shop
      pgoutput tail changelog/ --follow               what has committed, and what commits
      pgoutput decode changelog/                      a change log, as JSON lines
      pgoutput decode changes.bin | pgoutput build    and back to bytes
      pgoutput COMMAND --help                         options and examples of a command
    """


_MODULES: Final = frozenset({"pyspark", "py4j"})
_KNOWN: Final[Mapping[str, str]] = {
    "PATH_ALREADY_EXISTS": "choose another --output, or give --overwrite to replace the existing one",
    "JAVA_GATEWAY_EXITED": JAVA,
    "on a stopped SparkContext": "the master given as --master cannot be reached, or has ended the application",
    "Could not parse Master URL": "--master is local, local[N], spark://HOST:PORT, yarn, or k8s://HOST:PORT",
}
"""Remedies, by a part of Spark's error text."""

_NOISE: Final = re.compile(r"^(\[\w[\w.]*\]|An error occurred while calling .*|: |[\w.$]+(Exception|Error): |\s+)+")
_CODE: Final = re.compile(r"\s*SQLSTATE: \w+.*")
_RAISED: Final = re.compile(
    r"^(?!py4j\.|pyspark\.)[a-zA-Z_][\w.]*(?:Error|Exception|Interrupt|Exit)(?:: .*)?$", re.MULTILINE
)
"""The last line of a Python traceback."""
_LACKING: Final = re.compile(r"No module named '?([\w.]+)")


def spark_reason(error: BaseException) -> str | None:
    """Return the text of an exception of Spark for the user; None for other exceptions."""
    if not any(kind.__module__.partition(".")[0] in _MODULES for kind in type(error).__mro__):
        return None
    from pgoutput_construct.spark._execution import without_secrets

    text = without_secrets(str(error))
    if (cause := _cause(text)) is not None:
        return cause
    remedy = next((remedy for mark, remedy in _KNOWN.items() if mark in text), None)
    line = _first_line(text) or type(error).__name__
    return f"Spark: {line}" if remedy is None else f"Spark: {line.rstrip('.')}: {remedy}"


def _cause(text: str) -> str | None:
    """Return the error that an executor's Python raised, which Spark appends to its own text; None for none."""
    raised = _RAISED.findall(text.partition("JVM stacktrace")[0]) if "Traceback (most recent call last)" in text else []
    lacking = _LACKING.search(raised[-1] if raised else text)
    if lacking is not None:
        return (
            f"Spark: an executor's Python has no module {lacking[1]}: install this package with the extra spark in the "
            "Python of all workers, and set PYSPARK_PYTHON to it"
        )
    return f"Spark: in an executor: {raised[-1]}" if raised else None


def _first_line(text: str) -> str:
    """Return the first line that is not empty after removing class names and error codes."""
    return next((plain for line in text.splitlines() if (plain := _CODE.sub("", _NOISE.sub("", line)).strip())), "")
