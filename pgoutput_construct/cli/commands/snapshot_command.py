"""``pgoutput snapshot``: copies the current rows of tables into a change log, alongside its capture."""

import click

from pgoutput_construct.cli._logging import LOGGER, logging_to_stderr
from pgoutput_construct.cli._options import TABLE, command
from pgoutput_construct.cli._printing import counted
from pgoutput_construct.stream.identifiers import full_name

__all__ = ["snapshot_command"]


@command("snapshot", short_help="Copy the current rows of tables into a change log.")
@click.argument("dsn")
@click.argument("log")
@click.option("--table", "tables", required=True, multiple=True, type=TABLE, help="A table; can be repeated.")
@click.option(
    "--workers", type=click.IntRange(min=1), default=2, show_default=True, help="Number of connections per table copy."
)
def snapshot_command(dsn: str, log: str, tables: tuple[str, ...], workers: int) -> None:
    """Copy the current rows of tables into the change log LOG, for tables that were published later or became stale.

    DSN is a connection string of libpq or a URL; "" takes everything from the environment. The tables are named as in
    SQL, and must be published. If a capture writes LOG, it begins the copies within about a second; otherwise this
    command captures until they are durable. Readers use the latest copy of each table, and the changes since. Nothing
    is locked against writes. Ctrl-C withdraws the request.

    \b
    Examples:
      pgoutput snapshot service=shop changelog/ --table public.orders
      pgoutput snapshot "" s3://bucket/shop --table sales.customers --table sales.countries --workers 4
    """
    from pgoutput_construct.cli._progress import Meter, showing
    from pgoutput_construct.postgres import CaptureProgress, snapshot

    meter = Meter(CaptureProgress())
    with logging_to_stderr("text") as logged:
        LOGGER.info("requesting copies of %s", ", ".join(tables))
        with showing(meter, logged, True) as report:
            copies = snapshot(dsn, log, tables, workers=workers, on_progress=report, on_wait=_waiting)
        for copy in copies:
            LOGGER.info("table %s is in the log: %s", full_name(copy), counted(copy.rows, "row"))


def _waiting(rows: int) -> None:
    LOGGER.info("the capture is copying: %s so far", counted(rows, "row"))
