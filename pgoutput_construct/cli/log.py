"""``pgoutput log``: what a change log holds; compact and prune it, and know its readers."""

import json
from dataclasses import asdict
from typing import Any

import click

from pgoutput_construct.cli.commands import COMMANDS
from pgoutput_construct.cli.log_keep import compact_command, prune_command
from pgoutput_construct.cli.log_print import SHOWN, print_report
from pgoutput_construct.cli.log_readers import readers_command
from pgoutput_construct.cli.params import LOG
from pgoutput_construct.cli.progress import progress_line
from pgoutput_construct.cli.words import counted
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.extras import require
from pgoutput_construct.wire import Lsn

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
    from pgoutput_construct.cli.log_report import describe_log, describe_segments

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


log_command.add_command(compact_command)
log_command.add_command(prune_command)
log_command.add_command(readers_command)
