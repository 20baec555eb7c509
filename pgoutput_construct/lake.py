"""Tables of a warehouse, read without Spark: into Arrow, and from there into pandas, Polars or DuckDB.

    >>> from pgoutput_construct import lake
    >>> lake.tables("lake")  # doctest: +SKIP
    ['public.orders']
    >>> orders = lake.read("lake", "public.orders")  # doctest: +SKIP

A warehouse is what ``replicate`` writes. Its notes say which datasets it has: of Parquet also which directories count
(``spark/_replicate/parquet_sink`` has the theory). Tables of Delta Lake and Iceberg are opened by ``deltalake`` and
``pyiceberg``, which have to be installed for them.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from pgoutput_construct.extras import needing

with needing("changelog"):
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from pgoutput_construct.changelog._store.address import open_store
    from pgoutput_construct.changelog._store.json_notes import from_json, read_note
    from pgoutput_construct.changelog._store.store import Address, LogStore
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.stream.identifiers import normal_name

__all__ = ["Location", "TableStatus", "WarehouseStatus", "locate", "read", "read_batches", "status", "tables"]

_PROGRESS: Final = "_warehouse.json"
_NOTES: Final = "_datasets"
_TYPES: Final[Mapping[str, pa.DataType]] = {
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "date": pa.date32(),
    "double": pa.float64(),
    "float": pa.float32(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "short": pa.int16(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
"""Arrow's types by the names of Spark's, in which a note of Parquet has the columns."""

_DECIMAL: Final = re.compile(r"decimal\(([1-9]|[12]\d|3[0-8]), ?(\d\d?)\)")
_METADATA: Final = re.compile(r"v(\d+)(\.gz)?\.metadata\.json")
_PLACES: Final = pa.schema([("file", pa.string()), ("row", pa.int64())])


class Location(NamedTuple):
    """Where the present rows of a table are, for other programs."""

    format: str
    """``parquet``, ``delta`` or ``iceberg``."""
    path: str
    """Of Delta Lake the table's directory; of Iceberg the file of its present metadata; of Parquet the warehouse."""
    files: tuple[str, ...] = ()
    """Of Parquet the files of rows, below the path."""
    deleted: tuple[str, ...] = ()
    """Of Parquet the files of deleted places, below the path: ``file`` is the name of a file of rows, and ``row`` the
    number of a row in it, from 0 on. These rows do not count."""


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
    """The server, database and slot of its log, and the log's own id; None in a warehouse of an earlier version."""
    tables: tuple[TableStatus, ...]
    """Its tables, by name; and those in trouble that have no rows yet."""


def tables(warehouse: Address) -> list[str]:
    """Return the names of the tables of a warehouse, as SQL writes them.

    Args:
        warehouse: Its directory, or its URL (``s3://``, ``gs://``, ``abfs://``).

    Raises:
        PgoutputError: There is no warehouse, or it cannot be read.
    """
    store = open_store(warehouse, private=False)
    _progress(store)
    return sorted(note.table for note in _notes(store) if not note.is_history)


def status(warehouse: Address) -> WarehouseStatus:
    """Return how far a warehouse and each of its tables have come.

    Args:
        warehouse: Its directory, or its URL.

    Raises:
        PgoutputError: There is no warehouse, or it cannot be read.
    """
    store = open_store(warehouse, private=False)
    progress = _progress(store)
    applied = progress.applied
    if applied is None:
        applied = progress.seq if progress.done else -1
    found = []
    for note in _notes(store):
        is_previous = note.batch <= progress.adopted  # then its seq and its OID are those of that log
        seq = -1 if is_previous else max(note.seq, progress.own_seqs.get(note.oid, applied))
        found.append(TableStatus(note.table, note.is_history, seq, progress.troubled.get(note.table), is_previous))
    known = {each.table for each in found}
    found += [TableStatus(name, False, -1, reason) for name, reason in progress.troubled.items() if name not in known]
    return WarehouseStatus(
        str(store),
        progress.format,
        progress.batch,
        progress.done,
        progress.log,
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
    store = open_store(warehouse, private=False)
    return _location(store, _progress(store).format, _note(store, normal_name(table), history))


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
    store = open_store(warehouse, private=False)
    kind, note = _progress(store).format, _note(store, normal_name(table), history)
    found = _location(store, kind, note)
    if kind == "delta":
        return _read_delta(found, columns)
    if kind == "iceberg":
        return _read_iceberg(found, columns)
    schema = _schema(note)
    chosen = schema if columns is None else pa.schema([_field(schema, name) for name in columns])
    return pa.RecordBatchReader.from_batches(chosen, _parquet_batches(store, found, chosen))


@dataclass(frozen=True)
class _Progress:
    """What is read of the note of a warehouse (``spark/_replicate/warehouse_notes``)."""

    format: str
    batch: int = 0
    seq: int = -1
    done: bool = True
    applied: int | None = None
    troubled: Mapping[str, str] = field(default_factory=dict)
    own_seqs: Mapping[int, int] = field(default_factory=dict)
    adopted: int = 0
    log: Mapping[str, Any] | None = None
    schema_column: str = ""
    catalog: str | None = None


@dataclass(frozen=True)
class _SparkField:
    name: str
    type: Any


@dataclass(frozen=True)
class _SparkStruct:
    fields: tuple[_SparkField, ...] = ()


@dataclass(frozen=True)
class _Details:
    """What the note of a table of Parquet stores in addition."""

    path: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    deleted: Mapping[str, Any] = field(default_factory=dict)
    schema: _SparkStruct = field(default_factory=_SparkStruct)


@dataclass(frozen=True)
class _Note:
    """What is read of the note of a table."""

    directory: str
    is_history: bool
    table: str
    oid: int
    batch: int
    seq: int
    details: _Details


def _progress(store: LogStore) -> _Progress:
    """Read the note of a warehouse; raise PgoutputError if it is damaged, or does not exist."""
    what, remedy = "invalid metadata of a warehouse", "replicate into another warehouse"
    progress = read_note(store, _PROGRESS, _Progress, what=what, remedy=remedy)
    if progress is None:
        raise PgoutputError(f"{store}: no warehouse here (no table was replicated into it)")
    return progress


def _notes(store: LogStore) -> Iterator[_Note]:
    what, remedy = "the note of a table is damaged", "write the table from scratch: replicate --resync TABLE"
    for name in sorted(name for name in store.files(_NOTES) if name.endswith(".json")):
        note = read_note(store, f"{_NOTES}/{name}", _Note, what=what, remedy=remedy)
        if note is not None:  # None: its table was removed meanwhile
            yield note


def _note(store: LogStore, table: str, history: bool) -> _Note:
    known = {note.table: note for note in _notes(store) if note.is_history == history}
    if table not in known:
        what = "history of the table" if history else "table"
        raise PgoutputError(f"{store}: no {what} {table}: it has {', '.join(sorted(known)) or 'none yet'}")
    return known[table]


def _location(store: LogStore, kind: str, note: _Note) -> Location:
    directory, details = note.directory, note.details
    place, shared, _ = directory.partition("@")
    if shared:
        name = _progress(store).schema_column
        raise PgoutputError(
            f"{store}: {note.table} is in the table {place}, which schemas share: read that as a table of {kind}, "
            f"with a condition on its column {name!r}, or this one with pgoutput_construct.spark.read_current"
        )
    if kind == "delta":
        return Location(kind, store.path_of(directory))
    if kind == "iceberg":
        return Location(kind, store.path_of(_iceberg_metadata(store, directory)))
    rows, deleted = _data_files(store, (details.path, *details.changes)), _data_files(store, details.deleted)
    return Location(kind, store.shown, tuple(rows), tuple(deleted))


def _data_files(store: LogStore, directories: Collection[str]) -> Iterator[str]:
    for directory in directories:
        names = sorted(name for name in store.files(directory) if not name.startswith("_"))  # such as _SUCCESS
        if not names:  # each has a file, even without rows
            raise PgoutputError(
                f"{store.path_of(directory)}: no files here: the table was replaced meanwhile (read it again), or lost "
                "(write it from scratch: replicate --resync TABLE)"
            )
        yield from (f"{directory}/{name}" for name in names)


def _parquet_batches(store: LogStore, found: Location, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    deleted = _deleted_rows(store, found.deleted)
    for name in found.files:
        gone = deleted.get(PurePosixPath(name).name)
        with store.explained("cannot be read", name), store.open(name) as file:
            parquet = pq.ParquetFile(file, coerce_int96_timestamp_unit="us")
            present = {*parquet.schema_arrow.names}
            begin = 0
            for batch in parquet.iter_batches(columns=[each for each in schema.names if each in present]):
                end = begin + len(batch)
                yield _as_batch(batch if gone is None else batch.filter(_is_kept(gone, begin, end)), schema)
                begin = end


def _deleted_rows(store: LogStore, names: Collection[str]) -> dict[str, Any]:
    """Return the numbers of deleted rows, in order, by the names of their files."""
    parts = []
    for name in names:
        with store.explained("cannot be read", name), store.open(name) as file:
            parts.append(pq.read_table(file).select(_PLACES.names).cast(_PLACES))
    places = pa.concat_tables(parts).combine_chunks() if parts else _PLACES.empty_table()
    if not len(places):
        return {}
    files = places["file"].combine_chunks().dictionary_encode()
    rows, numbers = places["row"].to_numpy(), files.indices.to_numpy()
    order = np.lexsort((rows, numbers))
    ends = np.searchsorted(numbers[order], np.arange(len(files.dictionary) + 1))
    parts = np.split(rows[order], ends[1:-1])
    return dict(zip(files.dictionary.to_pylist(), parts, strict=True))


def _is_kept(gone: Any, begin: int, end: int) -> pa.Array:
    first, last = np.searchsorted(gone, [begin, end])
    kept = np.ones(end - begin, dtype=bool)
    kept[gone[first:last] - begin] = False
    return pa.array(kept)


def _as_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    present = {*batch.schema.names}
    columns = [
        batch.column(field.name).cast(field.type) if field.name in present else pa.nulls(len(batch), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _schema(note: _Note) -> pa.Schema:
    return pa.schema([(each.name, _arrow_type(each.type)) for each in note.details.schema.fields])


def _arrow_type(kind: Any) -> pa.DataType:
    """Return Arrow's type of one of Spark's, as the JSON of its schemas has it."""
    match kind:
        case {"type": "array", "elementType": element}:
            return pa.list_(_arrow_type(element))
        case {"type": "map", "keyType": key, "valueType": value}:
            return pa.map_(_arrow_type(key), _arrow_type(value))
        case {"type": "struct", "fields": fields}:
            return pa.struct(
                [(each.name, _arrow_type(each.type)) for each in from_json(tuple[_SparkField, ...], fields)]
            )
        case str() if decimal := _DECIMAL.fullmatch(kind):
            return pa.decimal128(int(decimal[1]), int(decimal[2]))
        case str() if kind in _TYPES:
            return _TYPES[kind]
    raise PgoutputError(f"a column has Spark's type {kind}, which is not known here: read it with read_current")


def _field(schema: pa.Schema, name: str) -> pa.Field:
    _check_column(schema.names, name)
    return schema.field(name)


def _iceberg_metadata(store: LogStore, directory: str) -> str:
    """Return the file of the present metadata of a table, in a catalog of files."""
    folder = f"{directory.replace('.', '/', 1) if '.' in directory else f'_/{directory}'}/metadata"
    names = {int(found[1]): name for name in store.files(folder) if (found := _METADATA.fullmatch(name))}
    if not names:
        catalog = _progress(store).catalog
        place = f"the table is in the catalog {catalog!r}: open it there" if catalog else "the table was lost"
        raise PgoutputError(f"{store.path_of(folder)}: no metadata of Iceberg: {place}")
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
    if columns is None:
        return tuple(names)
    for name in columns:
        _check_column(names, name)
    return tuple(columns)


def _check_column(names: Sequence[str], name: str) -> None:
    if name not in names:
        raise PgoutputError(f"no column {name!r}: the table has {', '.join(map(repr, names))}")


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
