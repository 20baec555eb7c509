"""``pgoutput replay``: applies a change log to a PostgreSQL server, through its own subscription."""

from typing import TYPE_CHECKING

import click

from pgoutput_construct.cli._options import LOG, LSN, REPLACE_ROWS, TIME, command
from pgoutput_construct.cli._printing import counted, say
from pgoutput_construct.cli._progress import progress_line
from pgoutput_construct.wire import Lsn, Timestamp

if TYPE_CHECKING:
    from pgoutput_construct.publisher.replay import TargetTable

__all__ = ["replay_command"]


@command("replay", short_help="Apply a change log to a PostgreSQL server.")
@click.argument("log", type=LOG)
@click.option("--into", required=True, metavar="DSN", help="The server: a connection string of libpq, or a URL.")
@click.option("--until-lsn", type=LSN, help="Apply up to the commit at this LSN.")
@click.option("--until-time", type=TIME, help="Apply up to the last commit at or before this time.")
@click.option(
    "--compare",
    "source",
    metavar="DSN",
    help="Compare the tables with those of this server; exit with 1 if any differs.",
)
@click.option("--replace-rows", is_flag=True, help=REPLACE_ROWS)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address at which the server reaches this machine."
)
def replay_command(
    log: str,
    into: str,
    until_lsn: Lsn | None,
    until_time: Timestamp | None,
    source: str | None,
    replace_rows: bool,
    host: str,
) -> None:
    """Apply the change log LOG to an empty PostgreSQL server, up to its end or to an earlier commit.

    LOG is served as by a publisher, and the server's own subscription applies it. Missing tables are created as the log
    describes them; existing ones must be empty. User-defined types must exist. Finally the subscription is dropped.

    \b
    Examples:
      pgoutput replay changelog/ --into dbname=copy
      pgoutput replay changelog/ --into service=copy --until-time 2026-01-31T12:00+00:00
      pgoutput replay changelog/ --into dbname=copy --compare service=shop
    """
    from pgoutput_construct.publisher.replay import connected, replay

    if until_lsn is not None and until_time is not None:
        raise click.UsageError("give --until-lsn or --until-time, not both")
    if source is not None:
        with connected(source):
            pass  # check the connection first
    with progress_line() as show:
        until = until_time if until_lsn is None else until_lsn
        shown = lambda here, end: show(f"at {here} of {end}")  # noqa: E731
        done = replay(log, into, until, host=host, replace_rows=replace_rows, on_progress=shown)
    say(f"{counted(done.transactions, 'transaction')}, up to {done.lsn}")
    for lack in done.lacks:
        say(f"warning: incomplete: {lack}", err=True)
    for name, rows in done.tables.items():
        say(f"{name}: {counted(rows, 'row')}{', created' if name in done.created else ''}")
    if source is not None:
        _compare(into, source, done.targets)


def _compare(into: str, source: str, tables: "tuple[TargetTable, ...]") -> None:
    """Compare the tables with those of the source server, which must be in the state at which the log ends."""
    from pgoutput_construct.publisher.replay import compare_tables

    different = 0
    for each in compare_tables(into, source, tables):
        different += not each.equal
        verdict = "equal" if each.equal else f"DIFFERS: {each.rows:,} rows here, {each.source_rows:,} there"
        say(f"{each.table}: {verdict}")
    if different:
        raise click.ClickException(f"{counted(different, 'table')} differ from the server")
