"""The group of commands: each is imported when it is needed, and an error is one line and an exit status."""

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from pgoutput_construct import __version__
from pgoutput_construct.cli.commands import COMMANDS
from pgoutput_construct.cli.options import in_arguments
from pgoutput_construct.cli.spark_errors import spark_reason
from pgoutput_construct.cli.words import printable
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.extras import installation

__all__ = ["BROKEN_PIPE", "INTERRUPTED", "cli", "reason"]

INTERRUPTED = 130
BROKEN_PIPE = 141


class _LazyGroup(click.Group):
    """Imports commands when they are needed; shows errors without a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names for the help."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        place = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(place.module), place.function)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; the exit status is 1 for bad input, 130 after Ctrl-C, 141 when the output's reader is gone."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            _forget_stdout()
            ctx.exit(BROKEN_PIPE)
        except Exception as error:
            text = reason(error)
            if text is None:
                raise
            raise click.ClickException(_lines(text)) from error


def reason(error: Exception) -> str | None:
    """Return what the user is told of an error; None for a defect of the program, whose traceback is shown."""
    match error:
        case ImportError() if "libpq" in str(error):
            return f"psycopg is installed without libpq; {installation('cli', 'postgres')}"
        case OSError():
            place = f"{error.filename}: " if error.filename is not None else ""
            return f"{place}{error.strerror or error}"
        case MemoryError():
            return "not enough memory for a message of this size"
        case PgoutputError():
            return in_arguments(str(error))
        case _:
            return spark_reason(error)


def _lines(text: str) -> str:
    """Return an error as it is printed: lines after the first one are indented, so that none looks like an error."""
    return "\n  ".join(map(printable, text.splitlines()))


def _forget_stdout() -> None:
    # Python flushes it once more at exit, which would fail again and be reported.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", prog_name="pgoutput")
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
