"""The directories of a table of Parquet, as its note names them, and their rows in Arrow.

``spark/_table_formats/parquet_sink`` has the theory: rows are in a base and in parts of changes, without those whose
positions are listed as deleted.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pgoutput_construct.changelog._store.json_notes import from_json
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._notes import Dataset, note_name

__all__ = ["Parts", "data_files", "deleted_rows", "row_batches", "stored_schema"]

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

_POSITIONS: Final = ("file", "row")
"""The columns of deleted positions: the names of files, which no two have, and the numbers of rows in them, from 0."""


_Details = TypeVar("_Details")


@dataclass(frozen=True)
class _SparkField:
    name: str
    type: Any


@dataclass(frozen=True)
class _SparkStruct:
    fields: tuple[_SparkField, ...]


@dataclass(frozen=True)
class _Stored:
    schema: _SparkStruct


@dataclass(frozen=True)
class Parts:
    """The directories of a table."""

    path: str
    """That of the base, by the name that notes have for it."""
    rows: int | None = None
    """The number of rows of the base, None where it was not counted yet."""
    changes: Mapping[str, int] = field(default_factory=dict)
    """Those of the parts of changes in their order, and the bytes of each."""
    deleted: Mapping[str, int] = field(default_factory=dict)
    """Those of deleted positions, and the number of these in each."""

    @classmethod
    def of(cls, dataset: Dataset) -> Self:
        """Return the directories that a note has; raise PgoutputError if it lacks them."""
        return _details(cls, dataset)

    @property
    def paths(self) -> tuple[str, ...]:
        """The directories of rows."""
        return (self.path, *self.changes)

    @property
    def deleted_positions(self) -> int:
        """The number of deleted positions."""
        return sum(self.deleted.values())

    @property
    def directories(self) -> frozenset[str]:
        """All of them."""
        return frozenset((*self.paths, *self.deleted))


def stored_schema(dataset: Dataset) -> pa.Schema:
    """Return the columns of a dataset; raise PgoutputError for a type that Spark alone has."""
    return pa.schema([(each.name, _arrow_type(each.type)) for each in _details(_Stored, dataset).schema.fields])


def data_files(store: LogStore, directories: Collection[str]) -> Iterator[str]:
    """Yield the files of directories; raise PgoutputError for one that has none."""
    for directory in directories:
        names = sorted(name for name in store.files(directory) if not name.startswith("_"))  # such as _SUCCESS
        if not names:  # each has a file, even without rows
            raise PgoutputError(
                f"{store.path_of(directory)}: no files here: the table was replaced meanwhile (read it again), or lost "
                "(write it from scratch: replicate --resync TABLE)"
            )
        yield from (f"{directory}/{name}" for name in names)


def row_batches(
    store: LogStore, files: Collection[str], deleted: Collection[str], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files, without those at deleted positions.

    Args:
        store: The store of the warehouse.
        files: The files of rows.
        deleted: Those of deleted positions.
        schema: The columns to read; one that a file lacks is null.
    """
    rows = deleted_rows(store, deleted, _POSITIONS)
    for name in files:
        gone = rows.get(PurePosixPath(name).name)
        with store.explained("cannot be read", name), store.open(name) as file:
            parquet = pq.ParquetFile(file)
            present = {*parquet.schema_arrow.names}
            begin = 0
            for batch in parquet.iter_batches(columns=[each for each in schema.names if each in present]):
                end = begin + len(batch)
                yield _as_batch(batch if gone is None else batch.filter(_is_kept(gone, begin, end)), schema)
                begin = end


def deleted_rows(store: LogStore, names: Collection[str], columns: Sequence[str]) -> dict[str, Any]:
    """Return the numbers of deleted rows, in order, each once, by the files that they are of.

    Args:
        store: The store of the warehouse.
        names: The files of deleted positions.
        columns: Their columns: what names a file, perhaps in parts that ``/`` separates, and the number of a row in it.
    """
    *named, index = columns
    files, rows = [pa.array([], pa.string())], [np.zeros(0, np.int64)]
    for name in names:
        with store.explained("cannot be read", name), store.open(name) as file:
            found = pq.read_table(file, columns=list(columns))
        files += pc.binary_join_element_wise(*(found[each].cast(pa.string()) for each in named), "/").chunks
        rows.append(found[index].cast(pa.int64()).to_numpy())
    return _by_file(pa.concat_arrays(files).dictionary_encode(), np.concatenate(rows))


def _by_file(files: pa.DictionaryArray, rows: Any) -> dict[str, Any]:
    """Return numbers of rows by their files, in order, each once."""
    numbers = files.indices.to_numpy()
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(len(files.dictionary) + 1))
    parts = np.split(rows[order], ends[1:-1])
    return dict(zip(files.dictionary.to_pylist(), map(np.unique, parts), strict=True)) if len(rows) else {}


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


def _details(kind: type[_Details], dataset: Dataset) -> _Details:
    """Return what a note stores for the format."""
    try:
        return from_json(kind, dataset.details)
    except ValueError as error:
        raise PgoutputError(
            f"{note_name(dataset.directory)}: the note of {dataset.version.table} is damaged: details: {error}; write "
            "the table from scratch: replicate --resync TABLE (resync=)"
        ) from None
