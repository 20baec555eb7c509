"""``replicate``: bring the tables of a warehouse up to a change log, batch after batch, once or following the log."""

import logging
import time
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final

from pyspark.sql import SparkSession

from pgoutput_construct.changelog._facts.completeness import IncompleteTableWarning, Lack, lacks_of
from pgoutput_construct.changelog._index.log_index import LogMoment
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.changelog.timeline import moment_at
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.spark._log_view.added_columns import PREFIX, check_prefix
from pgoutput_construct.spark._log_view.log_tables import LogTables
from pgoutput_construct.spark._open_log import open_log
from pgoutput_construct.spark._own_session import active_session, own_session
from pgoutput_construct.spark._replicate.batch_plan import BATCH_BYTES, BatchProgress, Reporter
from pgoutput_construct.spark._replicate.column_layout import ColumnLayout, LayoutOptions
from pgoutput_construct.spark._replicate.column_rules import NO_RULES, ColumnRules
from pgoutput_construct.spark._replicate.dataset_columns import Naming
from pgoutput_construct.spark._replicate.dataset_names import DatasetNames
from pgoutput_construct.spark._replicate.maintenance import (
    DEFAULT_RETENTION,
    MAINTAIN_EVERY,
    MaintenanceReport,
    TableMaintenance,
)
from pgoutput_construct.spark._replicate.sink import Retention, Sink, WriteOptions
from pgoutput_construct.spark._replicate.sinks import open_sink, write_options_of
from pgoutput_construct.spark._replicate.table_batches import Batch, WarehouseTables
from pgoutput_construct.spark._replicate.troubles import combined_error
from pgoutput_construct.spark._replicate.warehouse_log import check_same_log
from pgoutput_construct.spark._replicate.warehouse_notes import Progress, Warehouse
from pgoutput_construct.spark._source.micro_batches import Limits, latest_seq, next_seq
from pgoutput_construct.spark._state.demands import OnMissing, check_on_missing
from pgoutput_construct.spark.formats import check_format
from pgoutput_construct.stream.identifiers import normal_name
from pgoutput_construct.wire import Lsn, Timestamp

_WORKERS: Final = 4
_TICK: Final = 0.2
"""Seconds between two looks for a log, and at ``stop``."""
_LOG: Final = logging.getLogger("pgoutput_construct")
_LEAST_INTERVAL: Final = 0.01
_NAME_OPTIONS: Final = ("namespace", "table-name", "schema-column")
GivenNames = tuple[str | None, str | None, str | None]
"""The templates of namespaces and of names, and the column of the schema, as a caller gives them, or None."""


def replicate(
    spark: SparkSession,
    log: Address,
    warehouse: Address,
    into: str = "parquet",
    tables: Collection[str] | None = None,
    once: bool = True,
    history: bool = False,
    *,
    as_of: Lsn | Timestamp | LogMoment | None = None,
    keep_dropped: bool = False,
    interval: float = 1.0,
    workers: int = _WORKERS,
    on_missing: OnMissing = "error",
    metadata_prefix: str | None = None,
    resync: Collection[str] = (),
    grace: float = 600.0,
    write_mode: str | None = None,
    table_properties: Mapping[str, str] = MappingProxyType({}),
    catalog: str | None = None,
    namespace: str | None = None,
    table_name: str | None = None,
    schema_column: str | None = None,
    partition_by: Mapping[str, Collection[str]] = MappingProxyType({}),
    batch_transactions: int | None = None,
    batch_bytes: int | None = BATCH_BYTES,
    adopt: bool = False,
    exclude_columns: Collection[str] = (),
    masks: Mapping[str, str] = MappingProxyType({}),
    rename_columns: Mapping[str, str] = MappingProxyType({}),
    soft_delete: bool | None = None,
    metadata_columns: str | None = None,
    untyped: str | None = None,
    types: str | None = None,
    maintains: bool | None = None,
    maintain_every: int = MAINTAIN_EVERY,
    retention: Retention = DEFAULT_RETENTION,
    on_batch: Callable[[Batch], None] = lambda batch: None,
    on_progress: Callable[[BatchProgress], None] = lambda progress: None,
    on_maintenance: Callable[[MaintenanceReport], None] = lambda report: None,
    stop: Callable[[], bool] = lambda: False,
) -> Batch | None:
    """Bring the tables of a warehouse up to a change log, and keep them up to date unless ``once``.

    Each table is a dataset ``schema.table`` (``directory_name``) of the columns that it has, ``_untyped``,
    ``_commit_lsn`` and ``_seq``. Every batch brings all tables to one seq of the log; readers see a table before or
    after a batch, never between. A table that fails stays as it was (see ``Batch.troubled``), while the others are
    brought up to date; later batches retry it, after pauses that grow; with ``once`` the last batch retries each. The
    seq is written with the data, so that the next call completes an interrupted batch, and nothing is applied twice.
    The dataset of a renamed table moves, that of a dropped one is removed. Warns (IncompleteTableWarning) of tables
    that the log does not have completely.

    Args:
        spark: The session; for Delta Lake and Iceberg as ``spark_session(into=...)`` makes it. What runs in it has
            settings of its own: of this one's count catalogs, resources, and those of Hadoop and Delta Lake.
        log: The change log's address; executors must reach it.
        warehouse: A directory that executors reach, too, or a URL; created if it does not exist.
        into: The format of the tables: ``parquet``, ``delta``, ``iceberg``.
        tables: Their names (``schema.table``, as SQL writes them), None for all.
        once: Return when the tables are at the present end of the log, instead of following it, and waiting for a log
            that does not exist yet.
        history: Also record, in ``schema.table.history``, every row that a table had, with ``_valid_from`` and
            ``_valid_to`` (see HISTORY, and ``read_history``).
        as_of: Bring the tables to the last commit at or before this LSN or time, instead of the end of the log; with
            ``once`` alone, and not for a warehouse that is later already.
        keep_dropped: Retain the datasets of tables that were dropped.
        interval: Seconds between two polls for new changes.
        workers: How many tables are written at the same time.
        on_missing: What an update or delete of a row is that should exist and does not (see ``OpenLog.state``): an
            ``error`` of its table, which stays as it is, or reported (``report``, see ``read_missing``).
        metadata_prefix: How the names of the columns begin that are added to a table's own, such as ``pg_`` for
            ``pg_commit_lsn``; None for that of the warehouse, ``_`` for a new one. It cannot be changed later.
        resync: Tables whose datasets the first batch writes from scratch: from the latest copy in the log and the
            changes since. Readers see the old one until then. A history is continued with a copy that it does not have
            yet; where the log has none, it is written from scratch, too.
        grace: For how many seconds replaced Parquet files are retained for their readers.
        write_mode: What a merge does with a data file in which it changes rows: ``merge-on-read`` keeps it, and writes
            which of its rows are gone; ``copy-on-write`` writes it again without them. None for the format's own:
            merge-on-read for Iceberg, and for Parquet but for small tables; copy-on-write for Delta Lake, where
            merge-on-read needs readers that know deletion vectors. Delta Lake's tables get another mode when they are
            next written as a whole.
        table_properties: Further properties of the tables, by the names that the format has for them.
        catalog: The session's catalog that has the tables of Iceberg, each in the namespace of its schema; None for one
            of files in the warehouse. The notes are in the warehouse in any case. It cannot be changed later.
        namespace: A template of the namespaces of tables: those of a catalog, else the part of the directory's name
            before the dot. ``{schema}`` is the schema of the table: the default. It cannot be changed later.
        table_name: A template of their names, with ``{table}`` for the name at the source, and perhaps ``{schema}``,
            such as ``{schema}__{table}``; None for ``{table}``. It cannot be changed later. Two tables that would have
            the same name are errors of both, unless one has it already.
        schema_column: The name of a column, with which tables of the same name in several schemas become one table of
            Delta Lake or Iceberg, which is partitioned by it: it has the schema of each row. For it, ``namespace`` has
            no ``{schema}``. It cannot be changed later, and is not for histories and soft deletes. The columns of the
            shared table are those of all; one of another type is an error of its table.
        partition_by: How tables are partitioned, by their names: ``column``, or for Iceberg also ``day(column)``,
            ``bucket(16, column)`` and the like. It applies to tables that are written as a whole, and is remembered. A
            new table without such a column is in trouble.
        batch_transactions: The most transactions of a batch; None for no limit.
        batch_bytes: About how many bytes of payloads a batch has, and how many bytes of changes are staged at a time; a
            single transaction or table copy may have more. None for no limit.
        adopt: Take over tables that another log made. Those that this log has completely are replaced, others stay as
            they are; a warning says first which these are. Also replace tables, and files, of other programs that exist
            where tables are to be written; otherwise each is an error of its table, which says how they differ.
        exclude_columns: Columns (``schema.table.column``) that no table, history or report has. They are remembered,
            and stay excluded under other names. A column of the key cannot be excluded.
        masks: What takes the place of values, by columns: ``sha256($NAME)``, ``sha256(@FILE)`` or ``sha256(SALT)``
            (``column_masks``; the salt is in the environment, in a file, or given), ``null``, ``text(...)``. Values are
            masked before anything is stored. They are remembered as columns that are excluded, but for a salt that is
            given itself, which each call must give. To change what is made of a column, or with ``plain`` to end it,
            give its table as ``resync``, too.
        rename_columns: Names of columns in the warehouse, such as ``{"public.t._file": "file"}``, for those that a
            format cannot have. They are remembered, and stay when the columns are renamed at the source; a change of
            them, or with ``plain`` as the mask their end, needs the table as ``resync``.
        soft_delete: Whether deleted rows stay in tables, with ``_deleted_at``, the timestamp of the commit that deleted
            them (null while they exist). None for as in the warehouse, False in a new one. A change of this, or of one
            of the next three, writes tables again, from the log.
        metadata_columns: Which columns say by which change a row came: ``none``, ``lsn`` (``_commit_lsn`` and ``_seq``)
            or ``all`` (``_commit_time`` and ``_xid``, too, also in histories; null for copied rows). None for as in the
            warehouse, ``lsn`` in a new one.
        untyped: Which tables have ``_untyped``: ``always`` all, ``needed`` those with a type that cannot hold every
            value, ``never`` none, so that such a value is an error of its table. None for as in the warehouse; where
            ``metadata_columns`` changes, ``never`` with ``none``, else ``always``.
        types: Types of columns in place of the usual ones, such as ``numeric=decimal(38,10),uuid=binary`` (see
            ``open_log``). None for as in the warehouse.
        maintains: Whether tables are maintained between batches, with ``once`` in the end (see ``maintain``); None for
            unless ``once``.
        maintain_every: After how many of its batches a table is maintained; with ``once`` it is in any case.
        retention: What that retains of former snapshots.
        on_batch: Called after each batch.
        on_progress: Called as the tables of a batch are brought up to date.
        on_maintenance: Called with what maintenance did for a table.
        stop: Called between batches; True to return.

    Returns:
        The last batch; None if it stopped before the log had begun.

    Raises:
        ChangeLogError: The log is damaged, or not that of the tables; ``tables`` or ``resync`` has a name that it
            lacks; with ``once``, a table failed (``Batch.troubled``), such as one that the log does not have
            completely, or of which a row that does not exist is changed. Tables that it does not name are up to date.
        PgoutputError: The warehouse is of another format or prefix, another process writes into it, the session lacks
            jars or is one of Spark Connect, or the tables are later than ``as_of``.
    """
    own = own_session(spark, "replicate")
    check_on_missing(on_missing)
    check_format(own, into)
    write_options = write_options_of(into, write_mode, table_properties, grace, catalog, partition_by)
    given, names, columns = (
        ColumnRules.parse(exclude_columns, masks.items(), rename_columns.items()),
        (namespace, table_name, schema_column),
        LayoutOptions(soft_delete, metadata_columns, untyped, types).check(),
    )
    check = partial(
        check_request,
        log,
        warehouse,
        into,
        [*(tables or ()), *write_options.partitions],
        prefix=metadata_prefix,
        resync=resync,
        adopt=adopt,
        catalog=catalog,
        rules=given,
        names=names,
    )
    destination = check(waits=not once)
    if not await_log(log, stop, check):
        return None
    destination.store.prepare()
    with active_session(own), destination.store.lock("replicate") as lock:
        from_scratch, layout = set(map(normal_name, resync)), noted_layout(destination).chosen(*columns)
        sink = _sink_of(
            destination,
            into,
            write_options,
            metadata_prefix,
            adopt,
            names_of(destination, names),
            {"history": history, "soft_delete": layout.soft_delete, "partition_by": partition_by},
        )
        reporter = Reporter(on_progress, batch_bytes)
        all_tables = WarehouseTables(
            own,
            sink,
            None if tables is None else set(map(normal_name, tables)) | from_scratch,
            keep_dropped,
            history,
            workers,
            on_missing,
            reporter,
            from_scratch,
            joined_rules(given, destination, from_scratch),
            names_of(destination, names),
            layout,
        )
        sink.prepare(own)
        maintenance = TableMaintenance(
            own,
            sink,
            retention,
            on_maintenance,
            1 if once else maintain_every,
            all_tables.record_maintained,
            lock.check,
        )
        is_maintained = maintains if maintains is not None else not once
        maintenance.count(() if once else all_tables.directories, 0)  # what was replaced before is removed in its time
        known, limits = ChangeLog(log), Limits(batch_transactions, batch_bytes)
        all_tables.attach(known, adopt, lock.check)
        warned, batches = set[Lack](), list[Batch]()

        def advance_to(target: int, moment: LogMoment | None = None) -> None:
            """Bring the tables up to a seq of the log, or to a moment, in batches within the limits."""
            nonlocal known
            while True:
                lock.check()
                known, reporter.target = ChangeLog(log, known), target
                after, least = batches[0].seq if batches else all_tables.applied, all_tables.least_seq
                end = _batch_end(known, after, least, target, limits)
                lacking = {lack.relation_oid for lack in lacks_of(known.index)} if end < target else None
                opened = open_log(own, log, moment if moment and end >= target else LogMoment(end), layout.types, known)
                batches[:] = [all_tables.apply(opened, lacking, tries_all=once and end >= target)]
                maintenance.count(all_tables.written)
                _warn(batches[0].lacks, warned)
                on_batch(batches[0])
                if end >= target or stop():
                    return

        def between() -> None:
            if all_tables.is_due:
                advance_to(batches[0].seq)
            elif is_maintained:
                lock.check()
                maintenance.maintain_one()

        advance_to(*_target(known, as_of, all_tables, once))
        if not once:
            follow(log, batches[0].seq, advance_to, interval, stop, between)
        while is_maintained and not stop() and maintenance.maintain_one():
            lock.check()
        if once and batches[0].troubled:
            raise combined_error(batches[0].troubled)
    return batches[0]


def _target(
    log: ChangeLog, as_of: Lsn | Timestamp | LogMoment | None, tables: WarehouseTables, once: bool
) -> tuple[int, LogMoment | None]:
    """Return the seq and moment of the tables as of an LSN or time; raise PgoutputError for one that is not possible.

    What is added to the log meanwhile does not count for it.
    """
    if as_of is None:
        return log.index.last_seq, None
    if not once:
        raise PgoutputError("tables that follow a log are at its end: give once=True with as_of")
    if isinstance(as_of, LogMoment):
        moment, as_of = as_of, as_of.lsn
    else:
        moment = moment_at(log.index, as_of)._replace(known=log.index.last_seq)
    if moment.seq < log.index.first_seq:
        raise PgoutputError(f"{log.store}: the log begins after {as_of}: choose a later LSN or time")
    if max(tables.applied, tables.least_seq) > moment.seq:
        raise PgoutputError(
            f"the tables of the warehouse are later than {as_of} already, and do not go back: choose another "
            "warehouse, or a later LSN or time"
        )
    return moment.seq, moment


def _sink_of(
    destination: Warehouse,
    into: str,
    options: WriteOptions,
    metadata_prefix: str | None,
    adopt: bool,
    names: DatasetNames,
    others: Mapping[str, object],
) -> Sink:
    """Return the sink of a warehouse, with the prefix that it has already."""
    if names.schema_column:
        check_shared(into, others)
    options, known = replace(options, schema_column=names.schema_column), destination.progress()
    sink = open_sink(into, destination, options)
    sink.naming = Naming(known.prefix if known else metadata_prefix or PREFIX)
    sink.adopts = adopt
    return sink


def _batch_end(log: ChangeLog, after: int, least: int, target: int, limits: Limits) -> int:
    """Return the last seq of the batch that begins after one.

    It is within the limits, at least ``least``, at most ``target``; and it is one of a commit or an event: the rows of
    a copy count where the log says that it is complete, so that no copy is split.
    """
    end = next_seq(log, max(after, log.index.first_seq - 1), limits)
    is_last = end <= after or end >= latest_seq(log.index)
    return target if is_last else min(max(end, least), target)


def _warn(lacks: Collection[Lack], warned: set[Lack]) -> None:
    for lack in set(lacks) - warned:
        warnings.warn(str(lack), IncompleteTableWarning, stacklevel=4)
    warned.update(lacks)


def check_request(
    log: Address,
    warehouse: Address,
    into: str,
    tables: Collection[str] | None,
    waits: bool = False,
    prefix: str | None = None,
    resync: Collection[str] = (),
    adopt: bool = False,
    catalog: str | None = None,
    rules: ColumnRules = NO_RULES,
    names: GivenNames = (None, None, None),
) -> Warehouse:
    """Check the arguments of ``replicate`` before anything is started or written; return the warehouse.

    It needs no session.

    Args:
        log: The change log's address.
        warehouse: The warehouse's address.
        into: The format of the tables.
        tables: Their names, None for all.
        waits: Whether ``replicate`` waits for a log that does not exist yet.
        prefix: The prefix of added columns, None for that of the warehouse.
        resync: Tables to write from scratch.
        adopt: Whether to take over tables that another log made.
        catalog: The catalog that has the tables, None for files in the warehouse.
        rules: Which columns are excluded, masked or renamed.
        names: The templates of namespaces and of names, and the column of the schema; None for those of the warehouse.

    Raises:
        ChangeLogError: There is no such log, unless it is waited for; it lacks one of ``tables``, which the warehouse
            does not have either, or of ``resync``; a table lacks a column of ``rules``, or has it in its key; or the
            tables of the warehouse are of another log, and not to ``adopt``.
        PgoutputError: The tables of the warehouse are of another format, in another ``catalog``, or have another
            ``prefix``, ``names`` or ``rules``.
    """
    if prefix is not None:
        check_prefix(prefix)
    destination = Warehouse(warehouse)
    known = destination.progress()
    if names_of(destination, names).schema_column:
        check_shared(into)
    if known is not None and known.format != into:
        raise PgoutputError(
            f"{destination.store}: the tables there are {known.format}, not {into}: choose another warehouse"
        )
    if known is not None and known.catalog != catalog:
        there = "in the warehouse itself" if known.catalog is None else f"in the catalog {known.catalog!r}"
        remedy = "omit --catalog (catalog=)" if known.catalog is None else f"give --catalog {known.catalog} (catalog=)"
        raise PgoutputError(f"{destination.store}: its tables are {there}: {remedy}, or choose another warehouse")
    if known is not None and prefix not in (None, known.prefix):
        raise PgoutputError(
            f"{destination.store}: the prefix of its added columns is {known.prefix!r}, not {prefix!r}: omit "
            "--metadata-prefix (metadata_prefix=), or choose another warehouse"
        )
    if known is not None:
        _check_names(destination, known, names)
    all_rules = joined_rules(rules, destination, set(map(normal_name, resync)))
    if _has_begun(log) or not waits:
        found = ChangeLog(log)
        _check_tables(found, destination, tables or (), resync)
        if all_rules.rules:
            list(all_rules.check(LogTables.from_log(found)))
        if not adopt:
            check_same_log(found, known, destination)
    return destination


def noted_layout(warehouse: Warehouse) -> ColumnLayout:
    """Return which columns the tables of a warehouse have in addition to their own, as its notes have it."""
    known = warehouse.progress()
    return ColumnLayout.from_notes(known.layout if known else {})


def joined_rules(rules: ColumnRules, warehouse: Warehouse, resync: Collection[str]) -> ColumnRules:
    """Return the rules of columns in a warehouse for a run that is given some.

    Args:
        rules: The given ones.
        warehouse: The warehouse.
        resync: The tables to write from scratch, whose rules may change.

    Raises:
        PgoutputError: See ``ColumnRules.joined_with``.
    """
    known = warehouse.progress()
    noted, datasets = ColumnRules.from_notes(known.rules if known else ()), warehouse.readable_datasets()[0].values()
    return rules.joined_with(noted, datasets, resync, str(warehouse.store))


def names_of(warehouse: Warehouse, given: GivenNames) -> DatasetNames:
    """Return the names of datasets: as given, else those of the warehouse; raise PgoutputError for invalid ones."""
    known = warehouse.progress()
    if known is None:
        return DatasetNames.parse(*given)
    there = (known.namespace, known.table_name, known.schema_column or None)
    return DatasetNames.parse(*(noted if each is None else each for each, noted in zip(given, there, strict=True)))


def check_shared(into: str, others: Mapping[str, object] = MappingProxyType({})) -> None:
    """Raise PgoutputError for what tables that schemas share cannot have: a format, or one of other arguments."""
    if into == "parquet":
        raise PgoutputError("tables of Parquet are not shared by schemas (--schema-column): choose delta or iceberg")
    for name in sorted(name for name, value in others.items() if value):
        raise PgoutputError(
            f"tables that schemas share (--schema-column) have no --{name.replace('_', '-')} ({name}=): replicate into "
            "another warehouse, where each has its own"
        )


def _check_names(destination: Warehouse, known: Progress, names: GivenNames) -> None:
    noted = (known.namespace, known.table_name, known.schema_column)
    for option, wanted, there in zip(_NAME_OPTIONS, names, noted, strict=True):
        if wanted not in (None, there):
            if not there:
                raise PgoutputError(
                    f"{destination.store}: its schemas share no tables: omit --{option}, or choose another warehouse"
                )
            raise PgoutputError(
                f"{destination.store}: its tables were named by --{option} {there!r}, not {wanted!r}: omit "
                f"--{option} ({option.replace('-', '_')}=), or choose another warehouse"
            )


def await_log(log: Address, stop: Callable[[], bool], check: Callable[[], object] = lambda: None) -> bool:
    """Wait until a log has a segment, such as while its capture begins; return False if it is time to stop.

    Args:
        log: The log.
        stop: Returns True to end.
        check: Called after a wait: what the log has could not be checked before.
    """
    is_said = False
    while not _has_begun(log):
        if stop():
            return False
        if not is_said:
            _LOG.info("%s: waiting for the capture's first segment", open_store(log))
            is_said = True
        time.sleep(_TICK)
    if is_said:
        check()
    return True


def _has_begun(log: Address) -> bool:
    return any(name.endswith(".parquet") for name in open_store(log).files())


def _check_tables(log: ChangeLog, destination: Warehouse, tables: Collection[str], resync: Collection[str]) -> None:
    # A renamed table is found by its OID.
    known = {each.version.table for each in destination.readable_datasets()[0].values()} if tables else set()
    unknown = {normal_name(table) for table in tables} - known | {normal_name(table) for table in resync}
    if unknown:
        found = LogTables.from_log(log)
        for name in sorted(unknown - found.tables.keys() - found.refused.keys()):
            raise ChangeLogError(f"the log has no table {name}: it has {', '.join(found.tables) or 'none'}")


def follow(
    log: Address,
    after: int,
    apply: Callable[[int], None],
    interval: float,
    stop: Callable[[], bool],
    between: Callable[[], None] = lambda: None,
) -> None:
    """Call ``apply`` with the seq of the last commit or event of a log, whenever that is a later one, until ``stop``.

    Args:
        log: The change log's address.
        after: The seq that is applied already.
        apply: Brings the tables up to a seq.
        interval: Seconds between two polls.
        stop: Returns True to end.
        between: Called again and again.
    """
    store, files, known, due = open_store(log), dict[str, int](), None, time.monotonic()
    while not stop():
        if time.monotonic() >= due:
            if (there := store.files()) != files:  # else the log has not changed
                files, known = there, ChangeLog(store, known)
                if (latest := latest_seq(known.index, after)) > after:
                    apply(latest)
                    after = latest
            due = time.monotonic() + max(interval, _LEAST_INTERVAL)
        between()
        time.sleep(min(_TICK, max(due - time.monotonic(), 0.0)))
