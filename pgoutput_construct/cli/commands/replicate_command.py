"""``pgoutput replicate``: replicates the tables of a change log to Parquet, Delta Lake or Iceberg."""

import logging
import warnings
from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pgoutput_construct.cli._logging import LOGGER, logging_to_stderr, metrics_option, print_notes, serving_metrics
from pgoutput_construct.cli._options import (
    COLUMNS,
    KEY_VALUE,
    LSN_OR_TIME,
    MASKING,
    PARTITIONING,
    RENAMING,
    SECONDS,
    TABLE,
    TABLE_FORMATS,
    WRITE_MODES,
    Listen,
    retention_options,
    spark_options,
)
from pgoutput_construct.cli._printing import counted, json_line, listed
from pgoutput_construct.cli._progress import Estimate, announce_spark, progress_line
from pgoutput_construct.cli.command_table import COMMANDS
from pgoutput_construct.cli.commands.maintain_command import described
from pgoutput_construct.extras import require
from pgoutput_construct.wire import Timestamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pgoutput_construct.changelog._facts.completeness import Lack, UnpublishedColumns
    from pgoutput_construct.spark._replicate import Batch, BatchProgress, MaintenanceReport

__all__ = ["replicate_command"]

_SMALL_FORMATS: Final = ("parquet", "delta")
"""The formats whose small tables are written without Spark."""


def _some(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return what was given; None for nothing."""
    return values or None


def _mapping(_: click.Context, __: click.Parameter, pairs: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return values by their names; raise BadParameter for two of one name."""
    found = dict[str, str]()
    for name, value in pairs:
        if name in found:
            raise click.BadParameter(f"{name} is given twice")
        found[name] = value
    return found


def _flattened(_: click.Context, __: click.Parameter, lists: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    """Return what is in the lists of all options."""
    return tuple(each for values in lists for each in values)


def _joined(
    _: click.Context, __: click.Parameter, partitionings: tuple[tuple[str, tuple[str, ...]], ...]
) -> dict[str, tuple[str, ...]]:
    """Return the fields of each table, of all options that name it."""
    found = dict[str, tuple[str, ...]]()
    for table, fields in partitionings:
        found[table] = (*found.get(table, ()), *fields)
    return found


@click.command("replicate", short_help="Replicate a change log's tables to Parquet, Delta Lake or Iceberg.")
@click.argument("changelog", metavar="LOG")
@click.option("--into", type=click.Choice(TABLE_FORMATS), required=True, help="The format of the tables.")
@click.option("--warehouse", required=True, metavar="DIR", help="The directory, or URL, of the tables.")
@click.option("--once", "mode", flag_value="once", help="Apply LOG up to its current end, and exit.")
@click.option("--continuous", "mode", flag_value="continuous", help="Apply LOG as it grows, until Ctrl-C.")
@click.option(
    "--as-of", type=LSN_OR_TIME, help="With --once: apply LOG up to the last commit at or before this LSN or time."
)
@click.option(
    "--table",
    "tables",
    multiple=True,
    type=TABLE,
    callback=_some,
    help="Replicate only this table; can be repeated.",
)
@click.option("--history", is_flag=True, help="Also write all row versions, with _valid_from and _valid_to.")
@click.option("--keep-dropped", is_flag=True, help="Keep tables that were dropped at the source.")
@click.option(
    "--interval", type=SECONDS, default=1.0, show_default=True, metavar="SECONDS", help="How often LOG is polled."
)
@click.option(
    "--workers", type=click.IntRange(min=1), default=4, show_default=True, help="Number of tables written in parallel."
)
@click.option(
    "--on-missing",
    type=click.Choice(("error", "report")),
    default="error",
    show_default=True,
    help="For an update or delete of a row that should exist and does not: raise an error, or write to DIR/missing.",
)
@click.option(
    "--metadata-prefix",
    metavar="PREFIX",
    help="Prefix of the columns that are added to each table, such as pg_.  [default: _]",
)
@click.option(
    "--resync",
    multiple=True,
    type=TABLE,
    help="Rebuild this table from its latest copy in LOG and the changes since; can be repeated.",
)
@click.option(
    "--grace",
    type=SECONDS,
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="How long replaced Parquet files are retained for their readers.",
)
@click.option(
    "--write-mode",
    type=click.Choice(WRITE_MODES),
    help="Whether a batch marks the rows that it replaces, or rewrites the files that contain them.  [default: "
    "merge-on-read for iceberg and large tables of parquet, copy-on-write for delta]",
)
@click.option(
    "--table-property",
    "table_properties",
    multiple=True,
    type=KEY_VALUE,
    callback=_mapping,
    metavar="NAME=VALUE",
    help="Delta, Iceberg: a property of the tables, such as format-version=3; can be repeated.",
)
@click.option(
    "--catalog",
    metavar="NAME",
    help="Iceberg: the catalog that has the tables, as --conf spark.sql.catalog.NAME=... defines it.  [default: DIR]",
)
@click.option(
    "--namespace",
    metavar="TEMPLATE",
    help="Namespace of the tables, such as lake; permanent.  [default: {schema}, that of each table]",
)
@click.option(
    "--table-name",
    metavar="TEMPLATE",
    help="Names of the tables in it, such as {schema}__{table}; permanent.  [default: {table}]",
)
@click.option(
    "--schema-column",
    metavar="NAME",
    help="Delta, Iceberg: write tables of one name in several schemas into one, with a column for the schema, such as "
    "tenant; permanent. Needs --namespace.",
)
@click.option(
    "--partition-by",
    "partition_by",
    multiple=True,
    type=PARTITIONING,
    callback=_joined,
    metavar="TABLE=FIELD,...",
    help="Delta, Iceberg: partition a table, when it is written as a whole, by columns, or Iceberg's day(column), "
    "bucket(16, column) and the like; can be repeated, also for further fields of a table.",
)
@click.option(
    "--exclude-columns",
    multiple=True,
    type=COLUMNS,
    callback=_flattened,
    metavar="TABLE.COLUMN,...",
    help="Columns that no table, history or report has, such as public.users.password; can be repeated.",
)
@click.option(
    "--mask",
    "masks",
    multiple=True,
    type=MASKING,
    callback=_mapping,
    metavar="TABLE.COLUMN=MASK",
    help="Mask a column before it is stored: sha256($NAME) or sha256(@FILE), with a salt from the environment or a "
    "file, sha256(SALT), null, text(...); plain removes the mask; can be repeated.",
)
@click.option(
    "--rename-column",
    "rename_columns",
    multiple=True,
    type=RENAMING,
    callback=_mapping,
    metavar="TABLE.COLUMN=NAME",
    help="Another name of a column in the tables, such as for one that their format cannot have; can be repeated.",
)
@click.option(
    "--soft-delete/--no-soft-delete",
    default=None,
    help="Keep deleted rows, with _deleted_at; a change of this writes the tables again.  [default: as in DIR, else "
    "not]",
)
@click.option(
    "--metadata-columns",
    type=click.Choice(("none", "lsn", "all")),
    help="The metadata columns: none, lsn (_commit_lsn and _seq), or all (also _commit_time and _xid).  "
    "[default: as in DIR, else lsn]",
)
@click.option(
    "--untyped",
    type=click.Choice(("always", "needed", "never")),
    help="Which tables have _untyped: all, those with a type that cannot hold every value, or none, where such a value "
    "is an error.  [default: as in DIR, else always; never where --metadata-columns becomes none]",
)
@click.option(
    "--types",
    metavar="TYPE=TYPE,...",
    help="Types of columns instead of the usual ones, such as numeric=decimal(38,10),uuid=binary.  [default: as in "
    "DIR]",
)
@click.option(
    "--maintain/--no-maintain",
    "maintains",
    default=None,
    help="Rewrite small files and expire old snapshots between batches.  [default: with --continuous]",
)
@click.option(
    "--maintain-every",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    metavar="BATCHES",
    help="Batches of a table after which it is maintained.",
)
@retention_options
@click.option(
    "--batch-transactions",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="Maximum transactions in a batch.  [default: no limit]",
)
@click.option(
    "--batch-bytes",
    type=click.IntRange(min=1),
    default=1 << 30,
    show_default="1 GiB",
    metavar="BYTES",
    help="Approximate size of LOG per batch, and of temporary data in DIR; one transaction, or table, may exceed it.",
)
@click.option(
    "--adopt",
    is_flag=True,
    help="Rebuild from LOG the tables in DIR that belong to another log, and replace tables of other programs that "
    "exist where tables are to be written; without it both are errors.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print each batch, and each maintenance of a table, as a JSON object."
)
@click.option(
    "--spark",
    type=click.Choice(("needed", "always")),
    default="needed",
    show_default=True,
    help="Parquet, Delta: start Spark when a table needs it, as small ones do not, or at once.",
)
@spark_options
@metrics_option
def replicate_command(
    changelog: str,
    *,
    mode: str | None,
    spark: str,
    retain: float,
    retain_snapshots: int,
    as_json: bool,
    master: str,
    conf: tuple[tuple[str, str], ...],
    metrics: Listen | None,
    **chosen: Any,
) -> None:
    """Replicate the tables of the change log LOG to the warehouse DIR, once or continuously.

    LOG is the log that pgoutput capture wrote, or is still writing: a directory, or a URL such as s3://bucket/folder.
    Each of its tables becomes schema.table in DIR, with its current columns, _untyped (values that Spark's types cannot
    hold), _commit_lsn and _seq. All changes of a transaction become visible together in each table.

    The position is stored with the data: after any interruption replication resumes where it was, and applies nothing
    twice. Tables are altered, renamed, copied again and removed as at the source.

    DIR is registered with LOG as a reader, so that pgoutput log prune retains what it has not applied yet. DIR records
    the log of its tables; another log is refused, and the error says what --adopt would do. A table, or files, of
    another program where a table is to be written are left as they are; the error says how the columns differ.

    --namespace lake --table-name {schema}__{table} names the tables lake.public__orders instead, in a catalog or as a
    directory. Tables that would have the same name are errors of each, unless --schema-column makes them one table: for
    tenants that have a schema each, --namespace lake --schema-column tenant.

    Most tables of up to 4 MB in Parquet, 64 MB if they have a key, and 16 MB in Delta Lake, are written without
    Spark. It is started, and needs Java, for all others; a line says for which, and why. Delta Lake and Iceberg
    need jars, which Spark downloads from Maven Central once. Iceberg's catalog is DIR itself, unless --catalog
    names another one of the Spark session; DIR then has the notes of the tables.

    An update or delete of a row that should exist and does not is an error of its table, which is left unchanged; with
    --on-missing report replication continues, and DIR/missing/schema.table has these changes as Parquet.

    An error affects one table: it is left unchanged, the error is logged, and the others are still updated.
    --continuous retries it, after growing pauses. _warehouse.json in DIR lists such tables, and --metrics has
    pgoutput_replicate_table_troubled for each, with the class of the error. --resync TABLE rebuilds a table; readers
    see the old one until then. Its history continues with a copy that it does not include yet; if LOG has none, the
    history is rebuilt too.

    If a table has a column _seq itself, or another one that is added, the added ones begin with one more underscore;
    --metadata-prefix, given when DIR is created, replaces the prefix in all tables. To read a table whose column names
    differ only in case, set spark.sql.caseSensitive to true.

    --exclude-columns, --mask and --rename-column are remembered in DIR, and apply to columns and tables under later
    names, too; the salt of sha256(SALT), which is not stored, must be given each time. What is made of a column changes
    only together with --resync TABLE.

    With --continuous, tables are maintained between batches, each after every 50 of its batches: small files are
    rewritten, and snapshots that are older than --retain expire. With --once, give --maintain, or run pgoutput
    maintain.

    Ctrl-C or SIGTERM ends after the current batch; a second one ends at once, and loses nothing either.

    \b
    Exit status:
      0    the tables are up to date with the log; or ended as asked, by Ctrl-C or SIGTERM
      1    an error, or with --once tables that are not up to date, named in the last line on standard error
      2    the command line is wrong
      130  ended at once by a second Ctrl-C (143 by a second SIGTERM)

    \b
    Examples:
      pgoutput replicate changelog/ --into parquet --warehouse tables/ --once
      pgoutput replicate changelog/ --into iceberg --warehouse lake/ --continuous
      pgoutput replicate s3://bucket/shop --into delta --warehouse lake/ --once --table public.orders
    """
    if mode is None:
        raise click.UsageError("give --once or --continuous")
    if chosen["as_of"] is not None and mode != "once":
        raise click.UsageError("--as-of needs --once: tables that follow the log are at its end")
    starts = spark == "always" or chosen["into"] not in _SMALL_FORMATS
    require(*COMMANDS["replicate"].extras, *(["metrics"] if metrics else []), needs_java=starts)
    from pgoutput_construct.changelog._facts.completeness import IncompleteTableWarning
    from pgoutput_construct.postgres._patience import collected_signals
    from pgoutput_construct.spark._replicate import ReplicateOptions, Retention, replicate

    warnings.simplefilter("ignore", IncompleteTableWarning)
    retention = Retention(age=retain, count=retain_snapshots)
    options = {"log": changelog, "once": mode == "once", "retention": retention, **chosen}
    ReplicateOptions(**options).check()
    report, collector = _Report(), None
    if metrics:
        from pgoutput_construct.cli._collectors import ReplicateCollector

        collector = ReplicateCollector()
    with (
        logging_to_stderr("text"),
        serving_metrics(metrics, collector),
        _session(master, conf, chosen["into"], chosen["warehouse"], starts) as session,
        collected_signals(True) as wishes,
        progress_line() as show,
    ):
        estimate = Estimate()

        def on_batch(batch: "Batch") -> None:
            show("")
            if collector is not None:
                collector.report(batch)
            report(batch)
            if as_json and (batch.tables or batch.removed or batch.troubled):
                click.echo(json_line(batch, event="batch"))

        def on_maintenance(maintained: "MaintenanceReport") -> None:
            show("")
            if collector is not None:
                collector.report_maintenance(maintained)
            if as_json:
                click.echo(json_line(maintained, event="maintenance"))
            LOGGER.log(
                logging.WARNING if maintained.error else logging.INFO, "maintenance of %s", described(maintained)
            )

        batch = replicate(
            session,
            **options,
            on_batch=on_batch,
            on_maintenance=on_maintenance,
            on_progress=lambda progress: show(_shown(progress, estimate)),
            stop=lambda: bool(wishes),
        )
        LOGGER.info("%s", _conclusion(batch, wishes))


def _session(master: str, conf: tuple[tuple[str, str], ...], into: str, warehouse: str, starts: bool) -> "SparkSession":
    from pgoutput_construct.spark._deferred_session import is_closed
    from pgoutput_construct.spark.formats import deferred_session, spark_session

    announce = partial(announce_spark, master, into, LOGGER.info)
    if not starts:
        session = deferred_session(announce, master, dict(conf), into=[into], warehouse=warehouse)
        if is_closed(session):
            LOGGER.info("Spark is started when a table needs it (--spark always: at once)")
        return session
    announce()
    return spark_session(master, dict(conf), into=[into], warehouse=warehouse)


class _Report:
    """Logs each batch, and changes of incomplete tables and of tables with errors."""

    def __init__(self) -> None:
        self._lacks: Collection[Lack] = ()
        self._unpublished: Collection[UnpublishedColumns] = ()
        self._troubled: Mapping[str, str] = {}

    def __call__(self, batch: "Batch") -> None:
        """Log a batch."""
        if batch.tables or batch.removed:
            LOGGER.info("%s", _described(batch))
        for table, count in batch.missing.items():
            LOGGER.warning(
                "%s: %s of rows that do not exist: see missing/ in the warehouse",
                table,
                counted(count, "change"),
            )
        for table, reason in batch.troubled.items():
            if self._troubled.get(table) != reason:
                LOGGER.warning("%s is left unchanged, and will be retried: %s", table, reason)
        for table in self._troubled.keys() - batch.troubled.keys():
            LOGGER.info("%s is up to date again", table)
        self._troubled = batch.troubled
        print_notes("warning", [lack for lack in batch.lacks if lack not in self._lacks])
        self._lacks = batch.lacks
        print_notes("note", [each for each in batch.unpublished if each not in self._unpublished])
        self._unpublished = batch.unpublished


def _described(batch: "Batch") -> str:
    until = "copies, before any commit" if batch.commit_lsn is None else f"up to {batch.commit_lsn}"
    parts = [f"batch {batch.number}: {_named(batch.tables)} in {batch.seconds:.1f} s", until]
    if batch.removed:
        parts.append(f"removed {_named(batch.removed)}")
    whole = [f"{name} ({reason})" for name, reason in sorted(batch.reasons.items()) if reason != "it is new"]
    if whole:
        parts.append(f"written as a whole: {listed(whole)}")
    if batch.commit_time is not None:
        parts.append(f"committed {max(0, Timestamp.now() - batch.commit_time) / 1e6:,.1f} s ago")
    return ", ".join(parts)


def _shown(progress: "BatchProgress", estimate: Estimate) -> str:
    of_log = f" ({progress.part:.0%} of the log)" if progress.part < 1 else ""
    tables = f"{progress.done:,} of {counted(progress.tables, 'table')}"
    return f"batch {progress.batch:,}{of_log}: {tables}, {estimate.words(progress.done_rows, progress.rows)}"


def _named(tables: Collection[str]) -> str:
    return f"{counted(len(tables), 'table')} ({listed(sorted(tables))})"


def _conclusion(batch: "Batch | None", wishes: Collection[str]) -> str:
    why = f"ended by {next(iter(wishes))}: " if wishes else ""
    but = f", except {_named(batch.troubled)} with errors" if batch is not None and batch.troubled else ""
    lsn = None if batch is None else batch.commit_lsn
    until = "the log, which has no commit yet" if lsn is None else f"the log at {lsn}"
    return f"{why}the tables are up to date with {until}{but}"
