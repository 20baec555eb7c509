"""``pgoutput fork``: a database and tables as they were at one commit of a change log."""

import warnings

import click

from pgoutput_construct.cli._options import LOG, LSN_OR_TIME, TABLE_FORMATS, spark_options
from pgoutput_construct.cli._printing import counted, say
from pgoutput_construct.cli._progress import announce_spark, progress_line
from pgoutput_construct.extras import require
from pgoutput_construct.wire import Lsn, Timestamp

__all__ = ["fork_command"]


@click.command("fork", short_help="Make a database and tables as they were at one commit.")
@click.argument("log", type=LOG)
@click.option("--at", required=True, type=LSN_OR_TIME, help="The last commit at or before this LSN or time.")
@click.option("--into", metavar="DSN", help="The server: a connection string of libpq, or a URL.")
@click.option("--warehouse", metavar="DIR", help="The directory, or URL, of the tables.")
@click.option(
    "--format",
    "form",
    type=click.Choice(TABLE_FORMATS),
    default="parquet",
    show_default=True,
    help="The format of the tables.",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address at which the server reaches this machine."
)
@spark_options
def fork_command(
    log: str,
    *,
    at: Lsn | Timestamp,
    into: str | None,
    warehouse: str | None,
    form: str,
    host: str,
    master: str,
    conf: tuple[tuple[str, str], ...],
) -> None:
    """Make a database, tables of a lake, or both, as they were at one commit of the change log LOG.

    That is the last commit at or before an LSN or time. The tables of the warehouse are written as by pgoutput
    replicate --as-of, the database as by pgoutput replay --until-lsn: missing tables are created, existing ones must be
    empty. A warehouse whose tables are later already is refused.

    \b
    Examples:
      pgoutput fork changelog/ --at 2026-01-31T12:00+00:00 --into dbname=before
      pgoutput fork changelog/ --at 16/B374D848 --into dbname=before --warehouse before/ --format delta
    """
    if into is None and warehouse is None:
        raise click.UsageError("give --into, --warehouse, or both")
    require("cli", "changelog", *(["postgres", "publisher"] if into else []), *(["spark"] if warehouse else []))
    from pgoutput_construct.changelog import ChangeLog
    from pgoutput_construct.changelog._facts.completeness import IncompleteTableWarning
    from pgoutput_construct.forensics import fork
    from pgoutput_construct.forensics._fork import fork_point

    fork_point(ChangeLog(log), at)  # before Spark is started, and anything is written
    if into is not None:
        from pgoutput_construct.publisher.replay import connected

        with connected(into):
            pass
    spark = None
    if warehouse is not None:
        from pgoutput_construct.spark import spark_session

        announce_spark(master, form)
        spark = spark_session(master, dict(conf), into=[form], warehouse=warehouse)
    warnings.simplefilter("ignore", IncompleteTableWarning)
    with progress_line() as show:
        shown = lambda here, end: show(f"at {here} of {end}")  # noqa: E731
        done = fork(log, at, into, warehouse, form, spark=spark, host=host, on_progress=shown)
    say(f"at the commit {done.point.commit_lsn} of {done.point.commit_time}")
    for lack in done.lacks:
        say(f"warning: incomplete: {lack}", err=True)
    if into is not None:
        say(f"server: {counted(done.transactions, 'transaction')}")
    for name, rows in done.rows.items():
        say(f"server: {name}: {counted(rows, 'row')}")
    for name in done.tables:
        say(f"warehouse: {name}")
