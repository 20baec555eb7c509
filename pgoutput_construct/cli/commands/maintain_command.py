"""``pgoutput maintain``: puts small files of a warehouse together, and removes what readers no longer need."""

from typing import TYPE_CHECKING

import click

from pgoutput_construct.cli._options import SECONDS, TABLE, command, retention_options, spark_options
from pgoutput_construct.cli._printing import json_line, say
from pgoutput_construct.cli._progress import announce_spark

if TYPE_CHECKING:
    from pgoutput_construct.spark._replicate import MaintenanceReport

__all__ = ["described", "maintain_command"]


@command("maintain", short_help="Rewrite small files of a warehouse, and expire old snapshots.")
@click.argument("warehouse")
@click.option("--table", "tables", multiple=True, type=TABLE, help="Maintain only this table; can be repeated.")
@retention_options
@click.option(
    "--seconds",
    type=SECONDS,
    metavar="SECONDS",
    help="Begin no other table after this time of maintenance.  [default: no limit]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per table.")
@spark_options
def maintain_command(
    warehouse: str,
    *,
    tables: tuple[str, ...],
    retain: float,
    retain_snapshots: int,
    seconds: float | None,
    as_json: bool,
    master: str,
    conf: tuple[tuple[str, str], ...],
) -> None:
    """Maintain the tables of a WAREHOUSE of pgoutput replicate, by the procedures of their formats.

    Iceberg: small data files and position deletes are rewritten, snapshots expire, orphan files are removed. Delta
    Lake: OPTIMIZE and VACUUM, and commits of expired versions are removed. Parquet: a table of which a tenth was
    replaced is written again, and replaced files are removed. Tables and histories have the same rows before and after,
    and may be read meanwhile.

    pgoutput replicate --continuous does so itself; this is for warehouses that are updated with --once. Both lock the
    warehouse. An object store has no locks: end replicate first, since the second of the two makes the other one fail.

    \b
    Exit status:
      0  all tables were maintained, or the time was over
      1  an error; of a table, it is named, and the others were maintained

    \b
    Examples:
      pgoutput maintain lake/
      pgoutput maintain s3://bucket/lake --retain 3600 --seconds 600
    """
    from pgoutput_construct.spark import Retention, maintain, spark_session
    from pgoutput_construct.spark._verify import format_of

    into, retention = format_of(warehouse), Retention(age=retain, count=retain_snapshots)
    failed = 0
    announce_spark(master, into)
    with spark_session(master, dict(conf), into=[into], warehouse=warehouse) as spark:
        for report in maintain(spark, warehouse, tables or None, retention, seconds):
            failed += bool(report.error)
            say(json_line(report) if as_json else described(report))
    if failed:
        raise click.ClickException(f"{failed} could not be maintained")


def described(report: "MaintenanceReport") -> str:
    """Return what was done for a table, as a line for people."""
    name = f"{report.table}{' (history)' if report.is_history else ''}"
    done = ", ".join(f"{what}: {number:,}" for what, number in report.done.items() if number)
    if report.error:
        return f"{name}: {f'{done}; ' if done else ''}not maintained: {report.error}"
    return f"{name}: {done or 'nothing to do'}, in {report.seconds:.1f} s"
