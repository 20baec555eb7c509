"""Where the tables of a warehouse are, how far each has come, and its rows in Arrow."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import pyarrow as pa

from pgoutput_construct.changelog._store.store import Address, LogStore
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._directories import HISTORY_SUFFIX, SHARED
from pgoutput_construct.lake._notes import Dataset, Progress, Warehouse
from pgoutput_construct.lake._parquet_parts import Parts, data_files, row_batches, stored_schema
from pgoutput_construct.stream.identifiers import normal_name

__all__ = ["Location", "TableStatus", "WarehouseStatus", "locate", "read", "read_batches", "status", "tables"]

_METADATA: Final = re.compile(r"v(\d+)(\.gz)?\.metadata\.json")


class Location(NamedTuple):
    """Where the present rows of a table are, for other programs."""

    format: str
    """``parquet``, ``delta`` or ``iceberg``."""
    path: str
    """Of Delta Lake the table's directory; of Iceberg the file of its present metadata; of Parquet the warehouse."""
    files: tuple[str, ...] = ()
    """Of Parquet the files of rows, below the path."""
    deleted: tuple[str, ...] = ()
    """Of Parquet the files of deleted positions, below the path: ``file`` is the name of a file of rows, and ``row``
    the number of a row in it, from 0 on. These rows do not count."""


class TableStatus(NamedTuple):
    """How far a table of a warehouse has come."""

    table: str
    """The table as SQL writes it."""
    history: bool
    """Whether it is the table's history."""
    seq: int
    """Everything that ended in the log up to this seq is in it; -1 for nothing."""
    trouble: str | None
    """Why the last batch could not bring it up to date; None if it did."""
    previous_log: bool = False
    """Whether its rows are of a log that the warehouse followed before (``replicate --adopt``): they are not updated
    until the present log has a copy of the table.
    """


class WarehouseStatus(NamedTuple):
    """How far a warehouse has come."""

    address: str
    """Its directory, or its URL without credentials."""
    format: str
    """``parquet``, ``delta`` or ``iceberg``."""
    batch: int
    """The number of the last batch."""
    done: bool
    """Whether that batch is complete: not while it is under way, nor after it was interrupted or failed in a table."""
    log: Mapping[str, Any] | None
    """The server, database and slot of its log, and the log's own id; None before its first batch."""
    tables: tuple[TableStatus, ...]
    """Its tables, by name; and those in trouble that have no rows yet."""


def tables(warehouse: Address) -> list[str]:
    """Return the names of the tables of a warehouse, as SQL writes them.

    Args:
        warehouse: Its directory, or its URL (``s3://``, ``gs://``, ``abfs://``).

    Raises:
        PgoutputError: There is no warehouse, or it cannot be read.
    """
    opened = Warehouse(warehouse, exact=False)
    opened.existing_progress()
    return sorted(each.version.table for each in opened.datasets().values() if not each.is_history)


def status(warehouse: Address) -> WarehouseStatus:
    """Return how far a warehouse and each of its tables have come.

    Args:
        warehouse: Its directory, or its URL.

    Raises:
        PgoutputError: There is no warehouse, or it cannot be read.
    """
    opened = Warehouse(warehouse, exact=False)
    progress, found = opened.existing_progress(), list[TableStatus]()
    for dataset in opened.datasets().values():
        version, is_foreign = dataset.version, progress.is_foreign(dataset.version)
        seq = -1 if is_foreign else progress.to_seq(version)  # its seq and OID are those of the other log
        trouble = progress.troubled.get(version.table)
        found.append(TableStatus(version.table, dataset.is_history, seq, trouble, is_foreign))
    known = {each.table for each in found}
    found += [TableStatus(name, False, -1, reason) for name, reason in progress.troubled.items() if name not in known]
    return WarehouseStatus(
        str(opened.store),
        progress.format,
        progress.batch,
        progress.done,
        None if progress.log is None else progress.log.to_json(),
        tuple(sorted(found, key=lambda each: (each.table, each.history))),
    )


def locate(warehouse: Address, table: str, *, history: bool = False) -> Location:
    """Return where the present rows of a table are. It changes with the next batch: ask again then.

    What is replaced stays for a while (``replicate --grace``, ``--retain``), so that readers can finish.

    Args:
        warehouse: The warehouse's directory, or its URL.
        table: The table as SQL writes it, such as ``public.orders``.
        history: The history of the table instead of its present rows (``replicate --history``).

    Raises:
        PgoutputError: There is no such warehouse or table, or it cannot be read.
    """
    opened = Warehouse(warehouse, exact=False)
    return _location(opened.store, opened.existing_progress(), opened.find(normal_name(table), history))


def read(warehouse: Address, table: str, columns: Collection[str] | None = None, *, history: bool = False) -> pa.Table:
    """Return the present rows of a table: its columns, and those of the change that made each row.

    With ``replicate --soft-delete``, deleted rows are among them: where ``_deleted_at`` is not NULL.

    Args:
        warehouse: The warehouse's directory, or its URL.
        table: The table as SQL writes it, such as ``public.orders``.
        columns: The names of the columns to read, None for all.
        history: The history of the table instead of its present rows.

    Raises:
        PgoutputError: As for ``read_batches``.
    """
    return read_batches(warehouse, table, columns, history=history).read_all()


def read_batches(
    warehouse: Address, table: str, columns: Collection[str] | None = None, *, history: bool = False
) -> pa.RecordBatchReader:
    """Return a reader of the rows of ``read``, batch by batch, for tables that do not fit into memory.

    All batches are of one version of the table.

    Args:
        warehouse: The warehouse's directory, or its URL.
        table: The table as SQL writes it.
        columns: The names of the columns to read, None for all.
        history: The history of the table instead of its present rows.

    Raises:
        PgoutputError: There is no such warehouse, table or column, or it cannot be read; or the package is not
            installed that reads the format of its tables.
    """
    opened = Warehouse(warehouse, exact=False)
    progress, dataset = opened.existing_progress(), opened.find(normal_name(table), history)
    found = _location(opened.store, progress, dataset)
    if found.format == "delta":
        return _read_delta(found, columns)
    if found.format == "iceberg":
        return _read_iceberg(found, columns)
    schema = stored_schema(dataset)
    chosen = pa.schema([schema.field(name) for name in _chosen(schema.names, columns)])
    return pa.RecordBatchReader.from_batches(chosen, row_batches(opened.store, found.files, found.deleted, chosen))


def _location(store: LogStore, progress: Progress, dataset: Dataset) -> Location:
    kind = progress.format
    whole, shared, _ = dataset.directory.partition(SHARED)
    if shared:
        raise PgoutputError(
            f"{store}: {dataset.version.table} is in the table {whole}, which schemas share: read that as a table of "
            f"{kind}, with a condition on its column {progress.schema_column!r}, or this one with "
            "pgoutput_construct.spark.read_current"
        )
    if kind == "delta":
        return Location(kind, store.path_of(dataset.directory))
    if kind == "iceberg":
        return Location(kind, store.path_of(_iceberg_metadata(store, dataset.directory, progress.catalog)))
    parts = Parts.of(dataset)
    return Location(kind, store.shown, tuple(data_files(store, parts.paths)), tuple(data_files(store, parts.deleted)))


def _iceberg_metadata(store: LogStore, directory: str, catalog: str | None) -> str:
    """Return the file of the present metadata of a table, in a catalog of files."""
    folder = f"{directory.replace('.', '/', 1) if '.' in directory else f'_/{directory}'}/metadata"
    names = {int(found[1]): name for name in store.files(folder) if (found := _METADATA.fullmatch(name))}
    if not names:
        function = "read_history" if directory.endswith(HISTORY_SUFFIX) else "read_current"
        elsewhere = f"open it there, or read it with pgoutput_construct.spark.{function}"
        reason = f"the table is in the catalog {catalog!r}: {elsewhere}" if catalog else "the table was lost"
        raise PgoutputError(f"{store.path_of(folder)}: no metadata of Iceberg: {reason}")
    return f"{folder}/{names[max(names)]}"


def _read_delta(found: Location, columns: Collection[str] | None) -> pa.RecordBatchReader:
    with _reader_of("deltalake", found):
        from deltalake import DeltaTable, QueryBuilder
    if "%" in found.path:  # it takes the path for a URL
        raise PgoutputError(
            f"{found.path}: deltalake cannot open a directory with % in its name: read it with "
            "pgoutput_construct.spark.read_current"
        )
    with _explained_by("deltalake", found):
        table = DeltaTable(found.path)
    names = [field.name for field in table.schema().fields]
    chosen = ", ".join(f'"{name.replace(chr(34), chr(34) * 2)}"' for name in _chosen(names, columns))
    with _explained_by("deltalake", found):
        query = QueryBuilder().register("t", table).execute(f"SELECT {chosen} FROM t")
        rows = pa.RecordBatchReader.from_stream(query)
    return rows.cast(pa.schema([field.with_type(_without_views(field.type)) for field in rows.schema]))


def _without_views(kind: pa.DataType) -> pa.DataType:
    """Return a type as tables of the other formats have it: views of text in lists cannot become values of pandas."""
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return pa.string() if pa.types.is_string_view(kind) else pa.binary()
    if pa.types.is_map(kind):
        return pa.map_(_without_views(kind.key_type), _without_views(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_without_views(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([part.with_type(_without_views(part.type)) for part in kind.fields])
    return kind


def _read_iceberg(found: Location, columns: Collection[str] | None) -> pa.RecordBatchReader:
    with _reader_of("pyiceberg", found):
        from pyiceberg.table import StaticTable
    with _explained_by("pyiceberg", found):
        table = StaticTable.from_metadata(found.path)
    names = [field.name for field in table.schema().fields]
    chosen = _chosen(names, columns)
    with _explained_by("pyiceberg", found):
        return table.scan(selected_fields=chosen).to_arrow_batch_reader()


def _chosen(names: Sequence[str], columns: Collection[str] | None) -> tuple[str, ...]:
    """Return the columns to read; raise PgoutputError for one that the table lacks."""
    chosen = tuple(names if columns is None else columns)
    for name in chosen:
        if name not in names:
            raise PgoutputError(f"no column {name!r}: the table has {', '.join(map(repr, names))}")
    return chosen


@contextmanager
def _explained_by(package: str, found: Location) -> Iterator[None]:
    """Raise PgoutputError for a table that a package cannot open: it has classes of errors of its own."""
    try:
        yield
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        remedy = "read it with pgoutput_construct.spark.read_current"
        raise PgoutputError(f"{found.path}: {package} cannot open this table ({reason}): {remedy}") from error


@contextmanager
def _reader_of(package: str, found: Location) -> Iterator[None]:
    """Raise PgoutputError for an import that fails: the package that reads a format is not installed."""
    try:
        yield
    except ImportError as error:
        remedy = f"pip install {package}, or read it with pgoutput_construct.spark.read_current"
        raise PgoutputError(f"{found.path}: a table of {found.format}: {remedy}") from error
