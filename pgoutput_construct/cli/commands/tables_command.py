"""``pgoutput tables``: decodes a change log into one typed Parquet dataset per table, with Spark."""

from pathlib import Path

import click

from pgoutput_construct.cli._logging import print_notes
from pgoutput_construct.cli._options import LOG, TABLE, command, spark_options
from pgoutput_construct.cli._printing import counted, say
from pgoutput_construct.cli._progress import announce_spark

__all__ = ["tables_command"]

OUTPUT = click.Path(file_okay=False, path_type=Path)


@command("tables", short_help="Decode a change log into typed Parquet datasets.")
@click.argument("changelog", type=LOG)
@click.option("--output", "-o", required=True, type=OUTPUT, help="Folder for the datasets.")
@click.option("--table", "tables", multiple=True, type=TABLE, help="Decode only this table; can be repeated.")
@click.option("--types", default="", metavar="TYPE=...", help="Spark types: numeric=decimal(38,10),uuid=binary.")
@click.option(
    "--metadata-prefix",
    default="_",
    show_default=True,
    metavar="PREFIX",
    help="Prefix of the columns that are added to each table, such as pg_.",
)
@spark_options
@click.option("--overwrite", is_flag=True, help="Replace existing datasets.")
def tables_command(
    changelog: str,
    output: Path,
    tables: tuple[str, ...],
    types: str,
    metadata_prefix: str,
    master: str,
    conf: tuple[tuple[str, str], ...],
    overwrite: bool,
) -> None:
    """Decode the committed changes of a change log into one typed Parquet dataset per table, OUTPUT/schema.table.

    CHANGELOG is the log that pgoutput capture wrote: a directory, or a URL such as s3://bucket/folder. Each row has the
    table's columns and _op, _commit_lsn, _seq, _commit_time, _xid, _before, _unchanged, _untyped, _relation_oid; for a
    table that has one of these columns itself, choose another --metadata-prefix. Order rows by (_commit_lsn, _seq).
    To read a table whose column names differ only in case, set spark.sql.caseSensitive to true.

    \b
    Examples:
      pgoutput tables changelog/ --output tables/
      pgoutput tables changelog/ --output tables/ --table public.orders --overwrite
    """
    from pgoutput_construct.changelog import ChangeLog
    from pgoutput_construct.spark import open_log, spark_session, write_tables
    from pgoutput_construct.spark._log_view.added_columns import check_prefix
    from pgoutput_construct.spark._log_view.log_tables import LogTables

    # Check everything before starting a session.
    check_prefix(metadata_prefix)
    known = LogTables.from_log(ChangeLog(changelog), types=types)
    for name in tables:
        known.table(name)
    announce_spark(master)
    with spark_session(master, dict(conf)) as spark:
        log = open_log(spark, changelog, types=types, metadata_prefix=metadata_prefix)
        names = tables or log.tables
        for number, name in enumerate(names, 1):
            say(f"[{number}/{len(names)}] {name}", err=True)
            (written,) = write_tables(log, output, [name], "overwrite" if overwrite else "error").values()
            counts = ", ".join(counted(count, op) for op, count in written.counts.items())
            dropped = " (dropped)" if log.table(name).dropped else ""
            say(f"{name}{dropped}: {counts}: {written.path}")
        oids = {log.table(name).relation_oid for name in names}
        print_notes("warning", [lack for lack in log.lacks if lack.relation_oid in oids])
