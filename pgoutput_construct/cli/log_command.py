"""``pgoutput log``: what a change log holds; compact and prune it, and know its readers."""

import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from pgoutput_construct.cli._log_report import SHOWN, print_report
from pgoutput_construct.cli._options import LOG, LSN, LSN_OR_TIME
from pgoutput_construct.cli._printing import counted, printable, say, sized
from pgoutput_construct.cli._progress import progress_line
from pgoutput_construct.cli.command_table import COMMANDS
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.extras import require
from pgoutput_construct.wire import Lsn, Timestamp

if TYPE_CHECKING:
    from pgoutput_construct.changelog.compact import Compaction
    from pgoutput_construct.changelog.prune import Prune
    from pgoutput_construct.changelog.registry import RegisteredReader

__all__ = ["log_command"]


class _ShowByDefault(click.Group):
    """A group that takes what names no command of it for the arguments of ``show``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line."""
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group(
    "log", cls=_ShowByDefault, short_help="Describe, verify, compact or prune a change log, and know its readers."
)
def log_command() -> None:
    """Describe a change log: pgoutput log LOG, with the options of pgoutput log show.

    The rows of a log, messages and events, are numbered from 0 on; what is called seq is such a row number.

    \b
    Examples:
      pgoutput log changelog/
      pgoutput log changelog/ --verify
      pgoutput log compact changelog/
      pgoutput log prune changelog/ --before 2026-01-01 --dry-run
      pgoutput log readers changelog/ --add warehouse
    """
    require(*COMMANDS["log"].extras)


@log_command.command("show")
@click.argument("log", type=LOG)
@click.option("--verify", is_flag=True, help="Read everything: checksums, continuity, and the indexes again.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with everything.")
@click.option(
    "--all", "everything", is_flag=True, help="Show every segment, description and event, not the last alone."
)
@click.option("--dsn", help="Its server: also show how far the log is behind it.")
def show_command(log: str, verify: bool, as_json: bool, everything: bool, dsn: str | None) -> None:
    """Show the segments of a change log, its tables and their descriptions, open transactions, events, and size.

    Each seq is a row number in the log. With --verify every segment is read and checked, and the exit status is 1 if
    anything is wrong.

    \b
    Examples:
      pgoutput log changelog/
      pgoutput log changelog/ --dsn service=shop --json
      pgoutput log s3://bucket/shop --verify
    """
    from pgoutput_construct.changelog import ChangeLog
    from pgoutput_construct.cli._log_report import describe_log, describe_segments

    checked = _verify(log) if verify else {}
    opened = ChangeLog(log)
    report = {**checked, **describe_log(opened), **({} if dsn is None else _lag(dsn, opened.complete_lsn))}
    if as_json:
        click.echo(json.dumps({**report, "segments": list(describe_segments(opened))}, default=str))
    else:
        print_report(report, describe_segments(opened, None if everything else SHOWN), everything)


def _verify(log: str) -> dict[str, Any]:
    """Return what was verified; raise ChangeLogError where anything is wrong."""
    from pgoutput_construct.changelog.verify import verify

    with progress_line() as show:
        found = verify(log, lambda found: show(f"{found.checked:,} of {counted(found.segments, 'segment')} verified"))
    if found.problems:
        raise ChangeLogError("\n".join(found.problems))
    return {"verification": asdict(found)}


def _lag(dsn: str, complete_lsn: Lsn) -> dict[str, Any]:
    require("cli", "postgres")
    from pgoutput_construct.postgres import connect, current_lsn

    with connect(dsn, replication=False) as connection:
        end = current_lsn(connection)
    return {"server_lsn": str(end), "lag_bytes": max(end - complete_lsn, 0)}


@log_command.command("compact", short_help="Merge small segments into large ones.")
@click.argument("log", type=LOG)
@click.option("--rows", type=click.IntRange(min=1), help="Most rows in a segment.  [default: 1,000,000]")
@click.option("--least", type=click.IntRange(min=2), help="Leave fewer small segments than this alone.  [default: 8]")
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="How long the small segments stay next to the large ones, for readers that have them open.  [default: 10]",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
def _compact_command(log: str, dry_run: bool, **given: Any) -> None:
    """Merge the small segments of a change log into large ones, while a capture and readers run.

    Nothing is lost: a large segment is durable before the small ones go, and a crash leaves a log that is read as
    before. One compaction or prune works at a time. The newest segment stays as it is.

    \b
    Examples:
      pgoutput log compact changelog/
      pgoutput log compact s3://bucket/shop --grace 600
    """
    from pgoutput_construct.changelog.compact import CompactionLimits, compact, plan_compaction

    limits = CompactionLimits(**{name: value for name, value in given.items() if value is not None})
    if dry_run:
        say(f"would be done: {_compacted(plan_compaction(log, limits))}")
        return
    with progress_line() as show:
        done = compact(log, limits, lambda done: show(_compacted(done)))
    say(_compacted(done))


@log_command.command("prune", short_help="Remove what is old and nobody needs.")
@click.argument("log", type=LOG)
@click.option(
    "--before",
    type=LSN_OR_TIME,
    required=True,
    help="Remove what ended before this; UTC if no zone.",
)
@click.option(
    "--without-states",
    "states",
    flag_value=False,
    default=True,
    help="Also remove what the state of tables is built from: their copies, and what came after these. "
    "pgoutput capture --snapshot does not copy these tables again; pgoutput snapshot does.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed, and what keeps the rest.")
@click.option("--yes", is_flag=True, help="Do not ask. Only on a terminal there is somebody to ask.")
def _prune_command(log: str, before: Lsn | Timestamp, states: bool, dry_run: bool, yes: bool) -> None:
    """Remove the segments of a change log that hold only what ended before a time or a position.

    A segment stays, and all after it, when an open or prepared transaction, a transaction that ended later, or a
    registered reader needs it, or the state of a table is built from it: that needs the table's latest copy, and what
    came after it (pgoutput snapshot makes a later one). What retains the first segment that stays is always
    printed. The newest segment always stays.

    \b
    Examples:
      pgoutput log prune changelog/ --before 2026-01-01T00:00+00:00 --dry-run
      pgoutput log prune changelog/ --before 16/B374D848 --yes
    """
    from pgoutput_construct.changelog.prune import prune

    asks = not yes and sys.stdin is not None and sys.stdin.isatty()
    if dry_run or asks:
        planned = prune(log, before, states=states, dry_run=True)
        click.echo(f"would be removed: {_pruned(planned)}")
        if dry_run or not planned.size:
            return
        click.confirm("Remove them?", abort=True)
    with progress_line() as show:
        done = prune(log, before, states=states, on_progress=lambda done: show(f"{done.removed:,} files removed"))
    click.echo(f"removed: {_pruned(done)}")


def _pruned(done: "Prune") -> str:
    what = f"{done.segments:,} of {counted(done.segments + done.kept, 'segment')}, {counted(done.rows, 'row')}"
    kept = f"{what}, {sized(done.size)}; the log is kept from seq {done.first_seq} on"
    return "\n".join([kept, *(printable(f"  {hold}") for hold in done.holds)])


def _compacted(done: "Compaction") -> str:
    merged = f"{done.merged:,} of {counted(done.before, 'segment')} merged into {done.written:,}"
    return f"{merged}; {counted(done.removed, 'file')} of {sized(done.freed_bytes)} removed"


@log_command.command("readers", short_help="List, add and remove the readers that prune waits for.")
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
def _readers_command(log: str, add: str | None, at: Lsn | None, wait: float | None, remove: str | None) -> None:
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
    from pgoutput_construct.changelog.registry import next_seq_at, register

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
