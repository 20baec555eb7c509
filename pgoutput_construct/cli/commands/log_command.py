"""``pgoutput log``: describes, verifies, compacts and prunes a change log, and manages its readers."""

import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from pgoutput_construct.cli._options import LOG, LSN, LSN_OR_TIME
from pgoutput_construct.cli._printing import counted, json_line, printable, say, sized
from pgoutput_construct.cli._progress import progress_line
from pgoutput_construct.cli.command_table import COMMANDS
from pgoutput_construct.cli.commands._log_report import SHOWN, describe_log, describe_segments, print_report, server_lag
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.extras import require
from pgoutput_construct.wire import Lsn, Timestamp

if TYPE_CHECKING:
    from pgoutput_construct.changelog.compact import Compaction
    from pgoutput_construct.changelog.prune import Prune
    from pgoutput_construct.changelog.registry import RegisteredReader

__all__ = ["log_command"]


_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON: an object of each line's figures.")


class _ShowByDefault(click.Group):
    """A group whose default command is ``show``: arguments that do not begin with a command are passed to it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line."""
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group(
    "log", cls=_ShowByDefault, short_help="Describe, verify, compact or prune a change log; manage its readers."
)
def log_command() -> None:
    """Describe a change log: pgoutput log LOG, with the options of pgoutput log show.

    The rows of a log, which are messages and events, are numbered from 0; seq is such a row number.

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
@click.option("--verify", is_flag=True, help="Read everything: verify checksums, continuity and indexes.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with everything.")
@click.option(
    "--all", "everything", is_flag=True, help="Show all segments, descriptions and events, not only the last ones."
)
@click.option("--dsn", help="The server of the log: also show the lag.")
def show_command(log: str, verify: bool, as_json: bool, everything: bool, dsn: str | None) -> None:
    """Show the segments of a change log, its tables and their descriptions, open transactions, events, and size.

    Each seq is a row number in the log. With --verify every segment is read and checked; the exit status is 1 if there
    is a problem.

    \b
    Examples:
      pgoutput log changelog/
      pgoutput log changelog/ --dsn service=shop --json
      pgoutput log s3://bucket/shop --verify
    """
    from pgoutput_construct.changelog import ChangeLog

    checked = _verify(log) if verify else {}
    opened = ChangeLog(log)
    report = {**checked, **describe_log(opened)}
    if dsn is not None:
        end, lag = server_lag(dsn, opened)
        report |= {"server_lsn": str(end), "lag_bytes": lag}
    if as_json:
        click.echo(json.dumps({**report, "segments": list(describe_segments(opened))}, default=str))
    else:
        print_report(report, describe_segments(opened, None if everything else SHOWN), everything)


def _verify(log: str) -> dict[str, Any]:
    """Return the result of the verification; raise ChangeLogError if there is a problem."""
    from pgoutput_construct.changelog.verify import verify

    with progress_line() as show:
        found = verify(log, lambda found: show(f"{found.checked:,} of {counted(found.segments, 'segment')} verified"))
    if found.problems:
        raise ChangeLogError("\n".join(found.problems))
    return {"verification": asdict(found)}


@log_command.command("compact", short_help="Merge small segments into large ones.")
@click.argument("log", type=LOG)
@click.option(
    "--rows", type=click.IntRange(min=1), help="Maximum rows in a segment, at most 1,500,000.  [default: 1,000,000]"
)
@click.option("--least", type=click.IntRange(min=2), help="Minimum number of small segments to merge.  [default: 8]")
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="How long the small segments are retained for readers that have them open.  [default: 10]",
)
@click.option("--dry-run", is_flag=True, help="Only print what would be done.")
@_JSON
def _compact_command(log: str, dry_run: bool, as_json: bool, **given: Any) -> None:
    """Merge the small segments of a change log into large ones, while a capture and readers run.

    Nothing is lost: a large segment is durable before the small ones are removed, and a crash leaves a log that reads
    the same as before. Only one compaction or prune runs at a time. The newest segment is never merged.

    \b
    Examples:
      pgoutput log compact changelog/
      pgoutput log compact s3://bucket/shop --grace 600
    """
    from pgoutput_construct.changelog.compact import CompactionLimits, compact, plan_compaction

    limits = CompactionLimits(**{name: value for name, value in given.items() if value is not None})
    if dry_run:
        planned = plan_compaction(log, limits)
        say(json_line(planned, dry_run=True) if as_json else f"would be done: {_compacted(planned)}")
        return
    with progress_line() as show:
        done = compact(log, limits, lambda done: show(_compacted(done)))
    say(json_line(done, dry_run=False) if as_json else _compacted(done))


@log_command.command("prune", short_help="Remove old segments that nobody needs.")
@click.argument("log", type=LOG)
@click.option(
    "--before",
    type=LSN_OR_TIME,
    required=True,
    help="Remove what ended before this time or LSN; UTC without a zone.",
)
@click.option(
    "--without-states",
    "states",
    flag_value=False,
    default=True,
    help="Also remove table copies, and the changes since, from which the state of tables is built. "
    "pgoutput capture --snapshot does not copy these tables again; pgoutput snapshot does.",
)
@click.option("--dry-run", is_flag=True, help="Only print what would be removed, and what retains the rest.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation (which happens only on a terminal).")
@_JSON
def _prune_command(log: str, before: Lsn | Timestamp, states: bool, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Remove the segments of a change log that have only transactions that ended before a time or an LSN.

    A segment is retained, with all after it, if an open or prepared transaction, a transaction that ended later, or a
    registered reader needs it, or if the state of a table is built from it: from the table's latest copy, and the
    changes since (pgoutput snapshot makes a later copy). The reason for the first retained segment is always printed.
    The newest segment is never removed.

    \b
    Examples:
      pgoutput log prune changelog/ --before 2026-01-01T00:00+00:00 --dry-run
      pgoutput log prune changelog/ --before 16/B374D848 --yes
    """
    from pgoutput_construct.changelog.prune import prune

    asks = not yes and sys.stdin is not None and sys.stdin.isatty()
    if dry_run or asks:
        planned = prune(log, before, states=states, dry_run=True)
        shown = json_line(planned, dry_run=True) if as_json and dry_run else f"would be removed: {_pruned(planned)}"
        click.echo(shown, err=not dry_run)
        if dry_run or not planned.size:
            return
        click.confirm("Remove them?", abort=True, err=True)
    with progress_line() as show:
        done = prune(log, before, states=states, on_progress=lambda done: show(f"{done.removed:,} files removed"))
    click.echo(json_line(done, dry_run=False) if as_json else f"removed: {_pruned(done)}")


def _pruned(done: "Prune") -> str:
    what = f"{done.segments:,} of {counted(done.segments + done.kept, 'segment')}, {counted(done.rows, 'row')}"
    retained = f"{what}, {sized(done.size)}; the log is retained from seq {done.first_seq} on"
    return "\n".join([retained, *(printable(f"  {hold}") for hold in done.holds)])


def _compacted(done: "Compaction") -> str:
    merged = f"{done.merged:,} of {counted(done.before, 'segment')} merged into {done.written:,}"
    return f"{merged}; {counted(done.removed, 'file')} of {sized(done.freed_bytes)} removed"


@log_command.command("readers", short_help="List, add and remove the readers for which prune retains segments.")
@click.argument("log", type=LOG)
@click.option("--add", metavar="NAME", help="Register a reader, or update the position of a registered one.")
@click.option("--at", type=LSN, help="It has read everything committed before this LSN.  [default: nothing]")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Seconds after its last update for which segments are retained.  [default: no limit]",
)
@click.option("--remove", metavar="NAME", help="Remove a reader: what only it needed may be pruned.")
@_JSON
def _readers_command(
    log: str, add: str | None, at: Lsn | None, wait: float | None, remove: str | None, as_json: bool
) -> None:
    """List the registered readers of a change log: prune removes nothing that one of them has not read.

    Register a reader before its first read, and update its position after each read: --at with the LSN up to which the
    log was complete when it was opened (pgoutput log shows it).

    \b
    Examples:
      pgoutput log readers changelog/
      pgoutput log readers changelog/ --add warehouse
      pgoutput log readers changelog/ --add warehouse --at 16/B374D848
      pgoutput log readers changelog/ --remove warehouse
    """
    from pgoutput_construct.changelog.registry import readers

    if add is not None and remove is not None:
        raise click.UsageError("give --add or --remove, not both")
    if add is None and not (at is None and wait is None):
        raise click.UsageError("--at and --wait need a reader: name it with --add")
    if add is not None:
        added = _added(log, add, at, wait)
        say(json_line(added) if as_json else _shown(added))
    elif remove is not None:
        _remove(log, remove)
    else:
        for reader in readers(log):
            say(json_line(reader) if as_json else _shown(reader))


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
    say(f"{name} was removed: what only it needed may be pruned")


def _shown(reader: "RegisteredReader") -> str:
    since = datetime.fromtimestamp(reader.time, UTC).isoformat(sep=" ", timespec="seconds")
    wait = "without limit" if reader.seconds is None else f"for {reader.seconds:,.0f} seconds since then"
    return (
        f"{reader.name}: needs everything from seq {reader.next_seq} on, is at {reader.lsn}; updated {since}, "
        f"retained {wait}"
    )
