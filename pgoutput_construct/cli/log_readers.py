"""``pgoutput log readers``: who reads a change log, so that prune keeps what they have not read."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from pgoutput_construct.cli.params import LOG, LSN
from pgoutput_construct.cli.words import say
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire import Lsn

if TYPE_CHECKING:
    from pgoutput_construct.changelog.registry import RegisteredReader

__all__ = ["readers_command"]


@click.command("readers", short_help="List, add and remove the readers that prune waits for.")
@click.argument("log", type=LOG)
@click.option("--add", metavar="NAME", help="Register a reader, or say how far a registered one has come.")
@click.option("--at", type=LSN, help="It has read all that was committed before this.  [default: nothing]")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Keep nothing for it any more so long after it was last said how far it is.  [default: for ever]",
)
@click.option("--remove", metavar="NAME", help="Forget a reader: what only it needed may be pruned.")
def readers_command(log: str, add: str | None, at: Lsn | None, wait: float | None, remove: str | None) -> None:
    """Show who reads a change log, and how far each has come: prune removes nothing that one of them has not read.

    Register a reader before its first read, and after each read say how far it has come: --at with the position up to
    which the log was complete when it was opened (pgoutput log shows it).

    \b
    Examples:
      pgoutput log readers changelog/
      pgoutput log readers changelog/ --add warehouse
      pgoutput log readers changelog/ --add warehouse --at 16/B374D848
      pgoutput log readers changelog/ --remove warehouse
    """
    from pgoutput_construct.changelog.registry import readers

    if add is not None and remove is not None:
        raise click.UsageError("--add and --remove are two commands")
    if add is None and not (at is None and wait is None):
        raise click.UsageError("--at and --wait say something of a reader: name it with --add")
    if add is not None:
        say(_shown(_added(log, add, at, wait)))
    elif remove is not None:
        _remove(log, remove)
    else:
        for reader in readers(log):
            say(_shown(reader))


def _added(log: str, name: str, at: Lsn | None, wait: float | None) -> "RegisteredReader":
    from pgoutput_construct.changelog import ChangeLog
    from pgoutput_construct.changelog.reached import next_seq_at
    from pgoutput_construct.changelog.registry import register

    opened = ChangeLog(log)
    next_seq = opened.segments[0].first_seq if at is None else next_seq_at(opened, at)
    return register(log, name, next_seq, at or Lsn(0), wait)


def _remove(log: str, name: str) -> None:
    from pgoutput_construct.changelog.registry import forget, readers

    known = [reader.name for reader in readers(log)]
    if name not in known:
        raise ChangeLogError(f"{log}: no reader {name!r} is registered; known: {', '.join(known) or 'none'}")
    forget(log, name)
    say(f"{name} is forgotten: what only it needed may be pruned")


def _shown(reader: "RegisteredReader") -> str:
    since = datetime.fromtimestamp(reader.time, UTC).isoformat(sep=" ", timespec="seconds")
    wait = "for ever" if reader.seconds is None else f"for {reader.seconds:,.0f} seconds since then"
    return f"{reader.name}: needs all from seq {reader.next_seq} on, is at {reader.lsn}; said {since}, kept {wait}"
