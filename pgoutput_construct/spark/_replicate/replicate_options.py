"""What ``replicate`` is to do: the options that callers give, combined with what the notes of a warehouse say."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from pgoutput_construct.changelog._index.log_index import LogPoint
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.lake._notes import Progress, Warehouse
from pgoutput_construct.spark._log_view.added_columns import PREFIX, check_prefix
from pgoutput_construct.spark._log_view.log_tables import LogTables
from pgoutput_construct.spark._replicate.batch_plan import BATCH_BYTES, BatchProgress
from pgoutput_construct.spark._replicate.column_layout import DEFAULT_LAYOUT, ColumnLayout
from pgoutput_construct.spark._replicate.column_rules import ColumnRules
from pgoutput_construct.spark._replicate.dataset_names import DatasetNames
from pgoutput_construct.spark._replicate.maintenance import DEFAULT_RETENTION, MAINTAIN_EVERY, MaintenanceReport
from pgoutput_construct.spark._replicate.warehouse_log import check_same_log
from pgoutput_construct.spark._state.demands import OnMissing, check_on_missing
from pgoutput_construct.spark._table_formats.dataset_columns import Naming
from pgoutput_construct.spark._table_formats.sink import Retention, Sink, WriteOptions
from pgoutput_construct.spark._table_formats.sinks import open_sink, write_options_of
from pgoutput_construct.stream.identifiers import normal_name
from pgoutput_construct.wire import Lsn, Timestamp

if TYPE_CHECKING:
    from pgoutput_construct.spark._replicate.table_batches import Batch

_WORKERS: Final = 4
_NAME_OPTIONS: Final = ("namespace", "table_name", "schema_column")


def _ignore(_: object) -> None:
    pass


def _never() -> bool:
    return False


@dataclass(frozen=True, repr=False)
class ReplicateOptions:
    """The arguments of ``replicate``, but for the session; without a repr, as masks may have salts, addresses keys."""

    log: Address
    """The change log's address; executors must reach it."""
    warehouse: Address
    """A directory that executors reach, too, or a URL; created if it does not exist."""
    into: str = "parquet"
    """The format of the tables: ``parquet``, ``delta``, ``iceberg``."""
    tables: Collection[str] | None = None
    """Their names (``schema.table``, as SQL writes them), None for all."""
    once: bool = True
    """Return when the tables are at the present end of the log, instead of following it, and waiting for a log that
    does not exist yet."""
    history: bool = False
    """Also record, in ``schema.table.history``, every row that a table had, with ``_valid_from`` and ``_valid_to`` (see
    HISTORY, and ``read_history``)."""
    _: KW_ONLY
    as_of: Lsn | Timestamp | LogPoint | None = None
    """Bring the tables to the last commit at or before this LSN or time, instead of the end of the log; with ``once``
    alone, and not for a warehouse that is later already."""
    keep_dropped: bool = False
    """Retain the datasets of tables that were dropped."""
    interval: float = 1.0
    """Seconds between two polls for new changes."""
    workers: int = _WORKERS
    """How many tables are written at the same time."""
    on_missing: OnMissing = "error"
    """What an update or delete of a row is that should exist and does not (see ``OpenLog.state``): an ``error`` of its
    table, which stays as it is, or reported (``report``, see ``read_missing``)."""
    metadata_prefix: str | None = None
    """How the names of the columns begin that are added to a table's own, such as ``pg_`` for ``pg_commit_lsn``; None
    for that of the warehouse, ``_`` for a new one. It cannot be changed later."""
    resync: Collection[str] = ()
    """Tables whose datasets the first batch writes from scratch: from the latest copy in the log and the changes since.
    Readers see the old one until then. A history is continued with a copy that it does not have yet; where the log has
    none, it is written from scratch, too."""
    grace: float = 600.0
    """For how many seconds replaced Parquet files are retained for their readers."""
    write_mode: str | None = None
    """What a merge does with a data file in which it changes rows: ``merge-on-read`` keeps it, and writes which of its
    rows are gone; ``copy-on-write`` writes it again without them. None for the format's own: merge-on-read for Iceberg,
    and for Parquet but for small tables; copy-on-write for Delta Lake, where merge-on-read needs readers that know
    deletion vectors. Delta Lake's tables get another mode when they are next written as a whole."""
    table_properties: Mapping[str, str] = field(default_factory=dict)
    """Further properties of the tables, by the names that the format has for them."""
    catalog: str | None = None
    """The session's catalog that has the tables of Iceberg, each in the namespace of its schema; None for one of files
    in the warehouse. The notes are in the warehouse in any case. It cannot be changed later."""
    namespace: str | None = None
    """A template of the namespaces of tables: those of a catalog, else the part of the directory's name before the dot.
    ``{schema}`` is the schema of the table: the default. It cannot be changed later."""
    table_name: str | None = None
    """A template of their names, with ``{table}`` for the name at the source, and perhaps ``{schema}``, such as
    ``{schema}__{table}``; None for ``{table}``. It cannot be changed later. Two tables that would have the same name
    are errors of both, unless one has it already."""
    schema_column: str | None = None
    """The name of a column, with which tables of the same name in several schemas become one table of Delta Lake or
    Iceberg, which is partitioned by it: it has the schema of each row. For it, ``namespace`` has no ``{schema}``. It
    cannot be changed later, and is not for histories and soft deletes. The columns of the shared table are those of
    all; one of another type is an error of its table."""
    partition_by: Mapping[str, Collection[str]] = field(default_factory=dict)
    """How tables are partitioned, by their names: ``column``, or for Iceberg also ``day(column)``, ``bucket(16,
    column)`` and the like. It applies to tables that are written as a whole, and is remembered. A new table without
    such a column is in trouble."""
    batch_transactions: int | None = None
    """The most transactions of a batch; None for no limit."""
    batch_bytes: int | None = BATCH_BYTES
    """About how many bytes of payloads a batch has, and how many bytes of changes are staged at a time; a single
    transaction or table copy may have more. None for no limit."""
    adopt: bool = False
    """Take over tables that another log made. Those that this log has completely are replaced, others stay as they are;
    a warning says first which these are. Also replace tables, and files, of other programs that exist where tables are
    to be written; otherwise each is an error of its table, which says how they differ."""
    exclude_columns: Collection[str] = ()
    """Columns (``schema.table.column``) that no table, history or report has. They are remembered, and stay excluded
    under other names. A column of the key cannot be excluded."""
    masks: Mapping[str, str] = field(default_factory=dict)
    """What replaces values, by columns: ``sha256($NAME)``, ``sha256(@FILE)`` or ``sha256(SALT)``
    (``column_masks``; the salt is in the environment, in a file, or given), ``null``, ``text(...)``. Values are masked
    before anything is stored. They are remembered as columns that are excluded, but for a salt that is given itself,
    which each call must give. To change what is made of a column, or with ``plain`` to end it, give its table as
    ``resync``, too."""
    rename_columns: Mapping[str, str] = field(default_factory=dict)
    """Names of columns in the warehouse, such as ``{"public.t._file": "file"}``, for those that a format cannot have.
    They are remembered, and stay when the columns are renamed at the source; a change of them, or with ``plain`` as the
    mask their end, needs the table as ``resync``."""
    soft_delete: bool | None = None
    """Whether deleted rows stay in tables, with ``_deleted_at``, the timestamp of the commit that deleted them (null
    while they exist). None for as in the warehouse, False in a new one. A change of this, or of one of the next three,
    writes tables again, from the log."""
    metadata_columns: str | None = None
    """The metadata columns of tables: ``none``, ``lsn`` (``_commit_lsn`` and ``_seq``) or ``all``
    (``_commit_time`` and ``_xid``, too, also in histories; null for copied rows). None for as in the warehouse, ``lsn``
    in a new one."""
    untyped: str | None = None
    """Which tables have ``_untyped``: ``always`` all, ``needed`` those with a type that cannot hold every value,
    ``never`` none, so that such a value is an error of its table. None for as in the warehouse; where
    ``metadata_columns`` changes, ``never`` with ``none``, else ``always``."""
    types: str | None = None
    """Types of columns instead of the usual ones, such as ``numeric=decimal(38,10),uuid=binary`` (see ``open_log``).
    None for as in the warehouse."""
    maintains: bool | None = None
    """Whether tables are maintained between batches, with ``once`` in the end (see ``maintain``); None for unless
    ``once``."""
    maintain_every: int = MAINTAIN_EVERY
    """After how many of its batches a table is maintained; with ``once`` it is in any case."""
    retention: Retention = DEFAULT_RETENTION
    """What that retains of former snapshots."""
    on_batch: "Callable[[Batch], None]" = _ignore
    """Called after each batch."""
    on_progress: Callable[[BatchProgress], None] = _ignore
    """Called as the tables of a batch are brought up to date."""
    on_maintenance: Callable[[MaintenanceReport], None] = _ignore
    """Called with what maintenance did for a table."""
    stop: Callable[[], bool] = _never
    """Called between batches; True to return."""

    def check(self) -> Warehouse:
        """Check the options before anything is started or written; return the warehouse. It needs no session.

        Raises:
            ChangeLogError: There is no such log, unless it is waited for; it lacks one of ``tables``, which the
                warehouse does not have either, or of ``resync``; a table lacks a column of a rule, or has it in its
                key; or the tables of the warehouse are of another log, and not to ``adopt``.
            PgoutputError: An option is invalid, or the format does not have it; the tables of the warehouse are of
                another format, in another ``catalog``, or have another prefix, names or rules.
        """
        check_on_missing(self.on_missing)
        if self.metadata_prefix is not None:
            check_prefix(self.metadata_prefix)
        options, _, _ = self.write_options, self.rules, DEFAULT_LAYOUT.chosen(*self._layout)
        warehouse = Warehouse(self.warehouse)
        known = warehouse.progress()
        if self.names_in(warehouse).schema_column:
            self._check_shared()
        if known is not None:
            self._check_known(known, warehouse)
        rules = self.rules_in(warehouse)
        if self.once or has_begun(self.log):
            found = ChangeLog(self.log)
            self._check_tables(found, warehouse, [*(self.tables or ()), *options.partitions])
            if rules.rules:
                list(rules.check(LogTables.from_log(found)))
            if not self.adopt:
                check_same_log(found, known, warehouse)
        return warehouse

    @cached_property
    def write_options(self) -> WriteOptions:
        """How tables are written, as far as that is given; raises PgoutputError for what the format does not have."""
        mode, properties = self.write_mode, self.table_properties
        return write_options_of(self.into, mode, properties, self.grace, self.catalog, self.partition_by)

    @cached_property
    def rules(self) -> ColumnRules:
        """The given rules of columns; raises PgoutputError for invalid ones."""
        return ColumnRules.parse(self.exclude_columns, self.masks.items(), self.rename_columns.items())

    @property
    def from_scratch(self) -> frozenset[str]:
        """The tables that the first batch writes from scratch."""
        return frozenset(map(normal_name, self.resync))

    @property
    def chosen(self) -> frozenset[str] | None:
        """The tables to replicate, None for all."""
        return None if self.tables is None else self.from_scratch.union(map(normal_name, self.tables))

    @property
    def is_maintained(self) -> bool:
        """Whether tables are maintained."""
        return not self.once if self.maintains is None else self.maintains

    def layout_in(self, warehouse: Warehouse) -> ColumnLayout:
        """Return which columns tables have in addition to their own: as given, else as in the warehouse."""
        known = warehouse.progress()
        return ColumnLayout.from_notes(known.layout if known else {}).chosen(*self._layout)

    def rules_in(self, warehouse: Warehouse) -> ColumnRules:
        """Return the rules of columns, with those of the warehouse.

        Raises:
            PgoutputError: See ``ColumnRules.joined_with``.
        """
        known = warehouse.progress()
        noted, datasets = ColumnRules.from_notes(known.rules if known else ()), warehouse.readable_datasets()[0]
        return self.rules.joined_with(noted, datasets.values(), self.from_scratch, str(warehouse.store))

    def names_in(self, warehouse: Warehouse) -> DatasetNames:
        """Return the names of datasets: as given, else those of the warehouse; raise PgoutputError for invalid ones."""
        known = warehouse.progress()
        if known is None:
            return DatasetNames.parse(*self._names)
        noted = (known.namespace, known.table_name, known.schema_column or None)
        pairs = zip(self._names, noted, strict=True)
        return DatasetNames.parse(*(name if given is None else given for given, name in pairs))

    def sink_of(self, warehouse: Warehouse) -> Sink:
        """Return the sink of the warehouse, with the prefix that it has already."""
        names, known = self.names_in(warehouse), warehouse.progress()
        if names.schema_column:
            self._check_shared()  # another process may have made the warehouse since it was asked first
        sink = open_sink(self.into, warehouse, replace(self.write_options, schema_column=names.schema_column))
        sink.naming = Naming(known.prefix if known else self.metadata_prefix or PREFIX)
        sink.adopts = self.adopt
        return sink

    @property
    def _layout(self) -> tuple[bool | None, str | None, str | None, str | None]:
        return self.soft_delete, self.metadata_columns, self.untyped, self.types

    @property
    def _names(self) -> tuple[str | None, str | None, str | None]:
        return self.namespace, self.table_name, self.schema_column

    def _check_shared(self) -> None:
        """Raise PgoutputError for what tables that schemas share cannot have: a format, or one of other options."""
        if self.into == "parquet":
            raise PgoutputError(
                "tables of Parquet are not shared by schemas (--schema-column): choose delta or iceberg"
            )
        given = {"history": self.history, "partition_by": self.partition_by, "soft_delete": self.soft_delete}
        for name in sorted(name for name, value in given.items() if value):
            raise PgoutputError(
                f"tables that schemas share (--schema-column) have no --{_flag(name)} ({name}=): replicate into "
                "another warehouse, where each has its own"
            )

    def _check_known(self, known: Progress, warehouse: Warehouse) -> None:
        """Raise PgoutputError where the warehouse has another format, catalog, prefix or names."""
        if known.format != self.into:
            raise PgoutputError(
                f"{warehouse.store}: the tables there are {known.format}, not {self.into}: choose another warehouse"
            )
        if known.catalog != self.catalog:
            there = "in the warehouse itself" if known.catalog is None else f"in the catalog {known.catalog!r}"
            remedy = f"give --catalog {known.catalog} (catalog=)" if known.catalog else "omit --catalog (catalog=)"
            raise PgoutputError(f"{warehouse.store}: its tables are {there}: {remedy}, or choose another warehouse")
        if self.metadata_prefix not in (None, known.prefix):
            raise PgoutputError(
                f"{warehouse.store}: the prefix of its added columns is {known.prefix!r}, not "
                f"{self.metadata_prefix!r}: omit --metadata-prefix (metadata_prefix=), or choose another warehouse"
            )
        noted = (known.namespace, known.table_name, known.schema_column)
        for option, given, name in zip(_NAME_OPTIONS, self._names, noted, strict=True):
            if given not in (None, name):
                remedy = f"omit --{_flag(option)} ({option}=), or choose another warehouse"
                if not name:
                    raise PgoutputError(f"{warehouse.store}: its schemas share no tables: {remedy}")
                raise PgoutputError(
                    f"{warehouse.store}: its tables were named by --{_flag(option)} {name!r}, not {given!r}: {remedy}"
                )

    def _check_tables(self, log: ChangeLog, warehouse: Warehouse, tables: Collection[str]) -> None:
        """Raise ChangeLogError for a table that neither the log nor, perhaps under a former name, the warehouse has."""
        known = {each.version.table for each in warehouse.readable_datasets()[0].values()} if tables else set()
        unknown = set(map(normal_name, tables)) - known | self.from_scratch
        if unknown:
            found = LogTables.from_log(log)
            for name in sorted(unknown - found.tables.keys() - found.refused.keys()):
                raise ChangeLogError(f"the log has no table {name}: it has {', '.join(found.tables) or 'none'}")


def has_begun(log: Address) -> bool:
    """Return whether a log has a segment."""
    return any(name.endswith(".parquet") for name in open_store(log).files())


def _flag(option: str) -> str:
    return option.replace("_", "-")
