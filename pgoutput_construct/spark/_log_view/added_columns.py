"""The columns that are added to a table's own, whose prefix a reader may choose; and how names are kept apart.

A table may have any column: ``_op``, ``_seq``, ``_before.id``. While changes are replayed, the added columns have the
names of CHANGE, and a column of the table that begins with ``_`` or MARK is *escaped* by MARK: these are the names of
replays. For readers a table's columns have their own names, and the added ones begin with the reader's prefix.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.spark._log_view.change_columns import CHANGE, column
from pgoutput_construct.spark._log_view.replicated_tables import Table

PREFIX: Final = "_"
"""The prefix of added columns, unless a reader chooses another one."""
MARK: Final = "~"
"""What escapes the name of a column."""
_BEFORE: Final = "_before"
_LONG: Final = 1 << 20
_PREFIX: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,40}")


def check_prefix(prefix: str) -> str:
    """Return a prefix; raise PgoutputError for an invalid one."""
    if not _PREFIX.fullmatch(prefix):
        raise PgoutputError(
            f"invalid column prefix {prefix!r}: use letters, digits and underscores, not beginning with a digit, such "
            "as pg_"
        )
    return prefix


def escaped(name: str) -> str:
    """Return the name of a column of a table in replays."""
    return MARK + name if name.startswith((PREFIX, MARK)) else name


def escaped_table(table: Table) -> Table:
    """Return a table whose columns have their names of replays."""
    if not any(name.startswith((PREFIX, MARK)) for name in table.columns.names):
        return table
    return table.renamed(escaped)


@dataclass(frozen=True)
class Prefix:
    """The prefix of added columns for a reader."""

    prefix: str = PREFIX

    @property
    def is_default(self) -> bool:
        """Whether names for the reader are those of replays."""
        return self.prefix == PREFIX

    def added_name(self, name: str) -> str:
        """Return the name of an added column."""
        return self.prefix + name.removeprefix(PREFIX)

    def reader_name(self, name: str) -> str:
        """Return the name of a column, of the table or added."""
        return self.added_name(name) if name.startswith(PREFIX) else name.removeprefix(MARK)

    def replay_table(self, table: Table) -> Table:
        """Return a table under the names of replays."""
        return table if self.is_default else escaped_table(table)

    def replay_columns(self, columns: pa.Schema) -> pa.Schema:
        """Return columns of a table under the names of replays."""
        return pa.schema([each.with_name(self.replay_name(each.name)) for each in columns])

    def replay_name(self, name: str) -> str:
        """Return the name of a column of the table in replays."""
        return name if self.is_default else escaped(name)

    def check(self, table: str, names: Sequence[str], case_sensitive: bool, added: Collection[str] = CHANGE) -> None:
        """Raise ChangeLogError when a column's name collides with another one in a DataFrame of changes.

        Args:
            table: The table, for the message.
            names: Its columns, under their own names.
            case_sensitive: Whether Spark tells names apart by their case.
            added: The added columns of the DataFrame.
        """
        ours, start = {self.added_name(name) for name in added}, f"{self.added_name(_BEFORE)}."
        folded = set() if case_sensitive else {name.lower() for name in ours}
        for name in names:
            if name in ours or name.lower() in folded or name.startswith(start):
                raise ChangeLogError(
                    f"{table}: the column {name!r} has the name of an added column: choose another prefix than "
                    f"{self.prefix!r} for added columns, such as --metadata-prefix pg_ (metadata_prefix= in "
                    "Python, the option metadataPrefix of the data source)"
                )
        if not case_sensitive and len({name.lower() for name in names}) < len(names):
            raise ChangeLogError(
                f"{table}: columns whose names differ only in case; set spark.sql.caseSensitive to true"
            )

    def reader_schema(self, inner: pa.Schema) -> pa.Schema:
        """Return the schema of changes for the reader."""
        return inner if self.is_default else pa.schema([self._field(field) for field in inner])

    def replay_schema(self, schema: pa.Schema, added: Collection[str] = CHANGE) -> pa.Schema:
        """Return the schema of changes in replays, given that for the reader, and the columns that it adds."""
        if self.is_default:
            return schema
        ours = {self.added_name(name): name for name in added}
        return pa.schema([_inner(field, ours.get(field.name, escaped(field.name))) for field in schema])

    def _field(self, field: pa.Field) -> pa.Field:
        if field.name == _BEFORE:
            field = field.with_type(pa.struct([each.with_name(self.reader_name(each.name)) for each in field.type]))
        return field.with_name(self.reader_name(field.name))

    def reader_batch(self, inner: pa.RecordBatch) -> pa.RecordBatch:
        """Return changes for the reader."""
        if self.is_default:
            return inner
        schema = self.reader_schema(inner.schema)
        arrays = zip(inner.schema.names, inner.columns, schema.types, strict=True)
        return pa.RecordBatch.from_arrays([self._array(*each) for each in arrays], schema=schema)

    def _array(self, name: str, array: pa.Array, kind: pa.DataType) -> pa.Array:
        if name == _BEFORE:  # a cast would match fields by their names
            return pa.StructArray.from_arrays(array.flatten(), fields=list(kind), mask=array.is_null())
        return _NAMING_COLUMNS[name](array, self.reference) if name in _NAMING_COLUMNS else array

    def reference(self, name: str) -> str:
        """Return the name of a column as ``_untyped`` and ``_unchanged`` have it; one of the old row has a prefix."""
        start = f"{_BEFORE}."
        if name.startswith(start):
            return f"{self.added_name(_BEFORE)}.{name.removeprefix(start).removeprefix(MARK)}"
        return name.removeprefix(MARK)

    def for_replay(self, rows: DataFrame) -> DataFrame:
        """Return changes, or rows, of a reader under the names of replays."""
        if self.is_default:
            return rows
        ours = {self.added_name(name): name for name in CHANGE}
        found = rename_columns(rows, {name: ours.get(name, escaped(name)) for name in rows.columns})
        if _BEFORE in found.columns:
            fields = [T.StructField(escaped(each.name), each.dataType) for each in _fields(found, _BEFORE)]
            found = found.withColumn(_BEFORE, F.col(_BEFORE).cast(T.StructType(fields)))
        return rename_references(
            found, self._replay_reference, *(name for name in _NAMING_COLUMNS if name in found.columns)
        )

    def _replay_reference(self, name: Column) -> Column:
        """Return the inverse of ``reference``."""
        outer, marked = f"{self.added_name(_BEFORE)}.", rf"^([{MARK}{PREFIX}])"
        of_before = F.concat(
            F.lit(f"{_BEFORE}."), F.regexp_replace(name.substr(len(outer) + 1, _LONG), marked, f"{MARK}$1")
        )
        return F.when(name.startswith(outer), of_before).otherwise(F.regexp_replace(name, marked, f"{MARK}$1"))

    def for_reader(self, rows: DataFrame, *naming: str) -> DataFrame:
        """Return replayed rows for the reader; ``naming`` are the added columns that name others."""
        if self.is_default:
            return rows
        rows = rename_references(rows, lambda name: F.regexp_replace(name, f"^{MARK}", ""), *naming)
        return rename_columns(rows, {name: self.reader_name(name) for name in rows.columns})


DEFAULT_PREFIX: Final = Prefix()
"""The prefix of readers who choose none."""


def rename_columns(rows: DataFrame, names: Mapping[str, str]) -> DataFrame:
    """Return rows with all of their columns under other names."""
    if all(name == other for name, other in names.items()):
        return rows
    return rows.select(*(column(name).alias(other) for name, other in names.items()))


def rename_references(rows: DataFrame, changed: Callable[[Column], Column], *columns: str) -> DataFrame:
    """Map the names of columns that are the keys of a map, or the elements of an array."""
    for name in columns:
        if isinstance(rows.schema[name].dataType, T.MapType):
            rows = rows.withColumn(name, F.transform_keys(name, lambda each, _: changed(each)))
        else:
            rows = rows.withColumn(name, F.transform(name, changed))
    return rows


def _inner(field: pa.Field, name: str) -> pa.Field:
    if name == _BEFORE:
        field = field.with_type(pa.struct([each.with_name(escaped(each.name)) for each in field.type]))
    return field.with_name(name)


def _fields(rows: DataFrame, name: str) -> list[T.StructField]:
    kind = rows.schema[name].dataType
    assert isinstance(kind, T.StructType)
    return kind.fields


def _keyed(array: pa.MapArray, changed: Callable[[str], str]) -> pa.Array:
    return pa.MapArray.from_arrays(_offsets(array), _map_names(array.keys, changed), array.items)


def _listed(array: pa.ListArray, changed: Callable[[str], str]) -> pa.Array:
    return pa.ListArray.from_arrays(_offsets(array), _map_names(array.values, changed))


def _offsets(array: pa.Array) -> pa.Array:
    """Return where the entries begin; a null among the offsets is a null among the entries."""
    mask = np.append(array.is_null().to_numpy(zero_copy_only=False), False)
    return pa.array(array.offsets.to_numpy(), pa.int32(), mask=mask)


def _map_names(names: pa.Array, changed: Callable[[str], str]) -> pa.Array:
    coded = pc.dictionary_encode(names)
    others = pa.array([changed(name) for name in coded.dictionary.to_pylist()], pa.string())
    return others.take(coded.indices)


_NAMING_COLUMNS: Final[Mapping[str, Callable[[Any, Callable[[str], str]], pa.Array]]] = {
    "_untyped": _keyed,
    "_unchanged": _listed,
}
"""The added columns in which others are named."""
