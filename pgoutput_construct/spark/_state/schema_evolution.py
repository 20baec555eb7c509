"""Rows that are older than a column of their table, or than its type; and which columns a row was described with."""

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from pgoutput_construct.pgtypes.canonical_text import output_text
from pgoutput_construct.spark._log_view.change_columns import (
    BEFORE_ALL,
    SHAPE,
    column,
    merge_untyped,
    position,
    position_at,
    untyped_map,
)
from pgoutput_construct.spark._log_view.replicated_tables import Table
from pgoutput_construct.spark._log_view.table_columns import default_row
from pgoutput_construct.spark._state.copy_visibility import move_copy_first
from pgoutput_construct.spark._state.equality import exact

__all__ = ["cast_columns", "shapes_of", "stored_rows", "with_defaults", "with_shapes"]

_ALIKE: Final = ((T.NumericType,), (T.DateType, T.TimestampNTZType))
"""Types of which one may hold the values of another."""


def shapes_of(table: Table, before: DataFrame | None) -> list[frozenset[str]]:
    """Return the different sets of columns of a table's changes, and of rows in ``before``."""
    known = _known(table)
    if before is not None:
        known += [shape.intersection(before.columns) for shape in known]
    return list(dict.fromkeys(known))


def with_shapes(rows: DataFrame, table: Table, before: DataFrame | None = None) -> DataFrame:
    """Add ``__shape``, the index in ``shapes_of``, by the position of each change, or row of ``before``."""
    shapes, known = shapes_of(table, before), _known(table)
    numbers = [shapes.index(shape if before is None else shape.intersection(before.columns)) for shape in known]
    found = F.lit(numbers[min(1, len(table.shapes))])
    for (first, _), number in list(zip(table.shapes, numbers[1:], strict=True))[1:]:
        found = F.when(position() >= position_at(first), number).otherwise(found)
    return rows.withColumn(SHAPE, F.when(F.col("_commit_lsn") == BEFORE_ALL, numbers[0]).otherwise(found))


def _known(table: Table) -> list[frozenset[str]]:
    """Return the columns of rows of the copy, then those of changes."""
    first = table.base.columns if table.base else frozenset(table.columns.names)
    return [first, *(names for _, names in table.shapes)]


def stored_rows(before: DataFrame, table: Table, changes: DataFrame, others: Sequence[str] = ()) -> DataFrame:
    """Return rows of an earlier state for a replay: all columns, in the types of the changes, and ``__shape``.

    Args:
        before: The rows.
        table: The table; columns that were added since have their default.
        changes: Its changes.
        others: Further columns to keep as they are.
    """
    rows = with_shapes(move_copy_first(with_defaults(before, table), table), table, before)
    kinds = {name: changes.schema[name].dataType for name in table.columns.names}
    for name in kinds.keys() - {*rows.columns}:
        rows = rows.withColumn(name, F.lit(None).cast(kinds[name]))
    kept = (*kinds, "_untyped", "_commit_lsn", "_seq", *others, SHAPE)
    return cast_columns(rows, kinds).select(*map(column, kept))


def with_defaults(before: DataFrame, table: Table) -> DataFrame:
    """Add the columns that were added since with a default, which PostgreSQL gives to all older rows."""
    added = {name: given for name, given in table.defaults.items() if name not in before.columns}
    defaults = default_row(table.columns, added)
    if defaults is None:
        return before
    schema = from_arrow_schema(defaults.schema, prefer_timestamp_ntz=True)  # else timestamps get a time zone
    row = before.sparkSession.createDataFrame(pa.Table.from_batches([defaults]), schema)
    row = row.select(F.struct("*").alias("__given"))
    names = [name for name in defaults.schema.names if name != "_untyped"]
    values = [column("__given", name).alias(name) for name in names]
    kept = [column(name) for name in before.columns if name != "_untyped"]
    untyped = merge_untyped(F.col("_untyped"), F.col("__given._untyped")).alias("_untyped")
    return before.crossJoin(F.broadcast(row)).select(*kept, *values, untyped)


def cast_columns(rows: DataFrame, kinds: Mapping[str, T.DataType]) -> DataFrame:
    """Cast columns: a value that the new type does not hold exactly becomes null, with its text in ``_untyped``."""
    texts, values = dict[str, Column](), dict[str, Column]()
    for name, kind in kinds.items():
        was = rows.schema[name].dataType
        if was == kind:
            continue
        value, text = column(name), F.col("_untyped")[F.lit(name)]
        written = F.coalesce(text, output_text(value, was))
        if isinstance(kind, T.StringType):
            values[name], texts[name] = written, F.lit(None).cast("string")
            continue
        values[name] = _cast_exactly(value, was, kind)
        texts[name] = F.when(values[name].isNull(), written)
    if not values:
        return rows
    others = F.map_filter("_untyped", lambda name, _: ~name.isin(list(values)))
    values["_untyped"] = merge_untyped(others, untyped_map(texts))
    return rows.select(*(values[name].alias(name) if name in values else column(name) for name in rows.columns))


def _cast_exactly(value: Column, was: T.DataType, kind: T.DataType) -> Column:
    """Return a value in another type, null where casting it back does not give the same value.

    A timestamp without time zone is not cast to one with: ALTER TABLE does not say which zone PostgreSQL used.
    """
    if isinstance(was, T.ArrayType) and isinstance(kind, T.ArrayType):
        return _cast_array(value, was.elementType, kind.elementType)
    if any(isinstance(was, kinds) and isinstance(kind, kinds) for kinds in _ALIKE):
        found = value.try_cast(kind)
        return F.when(exact(found.try_cast(was), was).eqNullSafe(exact(value, was)), found)
    if isinstance(was, T.StringType) and isinstance(kind, T.AtomicType):
        found = value.try_cast(kind)
        return F.when(output_text(found, kind).eqNullSafe(value), found)
    return F.lit(None).cast(kind)


def _cast_array(value: Column, was: T.DataType, kind: T.DataType) -> Column:
    """Return an array in a type with other elements, null if one of them cannot be cast exactly."""
    if isinstance(was, T.StringType):  # lambda functions of Spark cannot write the text of a float
        return F.lit(None).cast(T.ArrayType(kind))
    lost = F.exists(value, lambda item: item.isNotNull() & _cast_exactly(item, was, kind).isNull())
    return F.when(~lost, F.transform(value, lambda item: _cast_exactly(item, was, kind)))
