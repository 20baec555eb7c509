"""What columns are called: a table's own and ours, in the warehouse and while changes are brought into it.

A table may have any column: ``_op``, ``_seq``, two whose names differ in case. While changes are replayed, ours have
the names of CHANGE and HISTORY, and a table's column that begins as they do is escaped by MARK. In the datasets the
table's columns have their names, and ours begin with the prefix of the warehouse instead of an underscore.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark.job import OpenLog
from pgoutput_construct.spark.schemas import column
from pgoutput_construct.spark.tables import Table
from pgoutput_construct.spark.warehouse.history import HISTORY

__all__ = ["MARK", "PREFIX", "Naming", "escaped", "escaped_log", "renamed", "unescaped"]

PREFIX: Final = "_"
"""How the names of our columns begin, unless the warehouse has another prefix."""
MARK: Final = "~"
"""How the name of a table's column begins that is escaped."""
_STATE: Final = ("_untyped", "_commit_lsn", "_seq")
_NAMING: Final = ("_untyped", "_unchanged")
"""Those of our columns in which others are named."""


def escaped(name: str) -> str:
    """Return what a table's column is called while changes are replayed."""
    return MARK + name if name.startswith((PREFIX, MARK)) else name


def unescaped(rows: DataFrame, *columns: str) -> DataFrame:
    """Return rows with the names of a table's columns, as they are, in columns that name some."""
    return _naming(rows, lambda name: F.regexp_replace(name, f"^{MARK}", ""), *columns)


def renamed(rows: DataFrame, names: Mapping[str, str]) -> DataFrame:
    """Return rows whose columns have other names, also in the columns that name some."""
    if not names:
        return rows
    others = F.create_map(*(F.lit(part) for pair in names.items() for part in pair))
    found = _renamed(rows, {name: names.get(name, name) for name in rows.columns})
    naming = (name for name in _NAMING if name in rows.columns)
    return _naming(found, lambda name: F.coalesce(others[name], name), *naming)


def escaped_log(log: OpenLog) -> OpenLog:
    """Return a log whose tables have escaped names of columns."""
    found = copy(log)  # with what is known of it already
    tables = {name: _escaped_table(table) for name, table in log.opened.tables.items()}
    found.opened = replace(log.opened, tables=tables)
    return found


@dataclass(frozen=True)
class Naming:
    """The names of our columns in a warehouse."""

    prefix: str = PREFIX
    """How they begin."""

    def ours(self, name: str) -> str:
        """Return what one of our columns is called in the datasets."""
        return self.prefix + name.removeprefix(PREFIX)

    def outer(self, name: str) -> str:
        """Return what a column, of the table or ours, is called in the datasets."""
        return self.ours(name) if name.startswith(PREFIX) else name.removeprefix(MARK)

    def check(self, table: Table, is_history: bool) -> None:
        """Raise ChangeLogError where a column of a table, not escaped, has the name of one of ours in its dataset."""
        ours = {self.ours(name).lower() for name in _ours(is_history)}
        for name in table.current:
            if name.lower() in ours:
                raise ChangeLogError(
                    f"{table.qualified}: the column {name!r} has the name of a column that replicate adds: replicate "
                    "into another warehouse with --metadata-prefix PREFIX (metadata_prefix=), which ours begin with "
                    f"then instead of {self.prefix!r}; or rename the column"
                )

    def stored(self, rows: DataFrame) -> DataFrame:
        """Return rows under the names that the datasets have."""
        names = {name: self.outer(name) for name in rows.columns}
        return _renamed(self.said(rows), names)

    def said(self, rows: DataFrame) -> DataFrame:
        """Return rows whose ``_untyped`` and ``_unchanged`` name columns as the datasets do."""
        if not any(name.startswith(MARK) for name in rows.columns):
            return rows
        return unescaped(rows, *(name for name in _NAMING if name in rows.columns))

    def unprefixed(self, rows: DataFrame, is_history: bool) -> DataFrame:
        """Return rows of a dataset with our columns as those of a change; the table's have their own names."""
        ours = {self.ours(name): name for name in _ours(is_history)}
        return _renamed(rows, {name: ours.get(name, name) for name in rows.columns})

    def replayed(self, rows: DataFrame, is_history: bool) -> DataFrame:
        """Return rows of a dataset under the names that they have while changes are replayed."""
        ours = {self.ours(name): name for name in _ours(is_history)}
        found = _renamed(rows, {name: ours.get(name, escaped(name)) for name in rows.columns})
        if not any(name.startswith(MARK) for name in found.columns):
            return found
        marked = f"^([{MARK}{PREFIX}])"
        naming = (name for name in _NAMING if name in _ours(is_history))
        return _naming(found, lambda name: F.regexp_replace(name, marked, f"{MARK}$1"), *naming)

    def arrow(self, schema: pa.Schema) -> pa.Schema:
        """Return a schema under the names that the datasets have."""
        return pa.schema([field.with_name(self.outer(field.name)) for field in schema])


def _ours(is_history: bool) -> tuple[str, ...]:
    return HISTORY if is_history else _STATE


def _renamed(rows: DataFrame, names: Mapping[str, str]) -> DataFrame:
    if all(name == other for name, other in names.items()):
        return rows
    return rows.select(*(column(name).alias(other) for name, other in names.items()))


def _naming(rows: DataFrame, changed: Callable[[Column], Column], *columns: str) -> DataFrame:
    """Change the names of columns that are the keys of a map, or the elements of an array."""
    for name in columns:
        if isinstance(rows.schema[name].dataType, T.MapType):
            rows = rows.withColumn(name, F.transform_keys(name, lambda each, _: changed(each)))
        else:
            rows = rows.withColumn(name, F.transform(name, changed))
    return rows


def _escaped_table(table: Table) -> Table:
    if not any(name.startswith((PREFIX, MARK)) for name in table.columns.names):
        return table
    base = table.base
    return replace(
        table,
        columns=pa.schema([field.with_name(escaped(field.name)) for field in table.columns]),
        current=_all(table.current),
        key_columns=_all(table.key_columns),
        identities=tuple(each._replace(key_columns=_all(each.key_columns)) for each in table.identities),
        shapes=tuple((first, frozenset(map(escaped, names))) for first, names in table.shapes),
        base=base and base._replace(columns=frozenset(map(escaped, base.columns))),
        names={index: _all(names) for index, names in table.names.items()},
        missing={index: _keys(values) for index, values in table.missing.items()},
        defaults=_keys(table.defaults),
        numbers=_keys(table.numbers),
    )


def _all(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(escaped, names))


def _keys(values: Mapping[str, Any]) -> dict[str, Any]:
    return {escaped(name): value for name, value in values.items()}
