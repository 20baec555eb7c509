"""Rows that are older than a column of their table, or than its type."""

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from pgoutput_construct.pgtypes.arrow_types import UNTYPED
from pgoutput_construct.pgtypes.canonical_text import output_text
from pgoutput_construct.pgtypes.column_reader import ColumnReader
from pgoutput_construct.pgtypes.family import CannotHold
from pgoutput_construct.spark.change_frames import BEFORE_ALL, SHAPE, at_place, column, joined_texts, place, untyped_of
from pgoutput_construct.spark.equality import exact
from pgoutput_construct.spark.replicated_tables import Missing, Table
from pgoutput_construct.stream.rows import OPERATIONS, SNAPSHOT
from pgoutput_construct.wire.messages import Delete, Truncate

__all__ = ["default_row", "retyped", "shapes_of", "stored_rows", "with_defaults", "with_missing", "with_shapes"]

_ALIKE: Final = ((T.NumericType,), (T.DateType, T.TimestampNTZType))
"""Types of which one may hold the values of another."""


def shapes_of(table: Table, before: DataFrame | None) -> list[frozenset[str]]:
    """Return the different shapes of a table: columns by name, those of rows in ``before`` too."""
    known = _known(table)
    if before is not None:
        known += [shape.intersection(before.columns) for shape in known]
    return list(dict.fromkeys(known))


def with_shapes(rows: DataFrame, table: Table, before: DataFrame | None = None) -> DataFrame:
    """Add ``__shape``, the index in ``shapes_of``, by the place of each change, or row of ``before``."""
    shapes, known = shapes_of(table, before), _known(table)
    numbers = [shapes.index(shape if before is None else shape.intersection(before.columns)) for shape in known]
    found = F.lit(numbers[min(1, len(table.shapes))])
    for (first, _), number in list(zip(table.shapes, numbers[1:], strict=True))[1:]:
        found = F.when(place() >= at_place(first), number).otherwise(found)
    return rows.withColumn(SHAPE, F.when(F.col("_commit_lsn") == BEFORE_ALL, numbers[0]).otherwise(found))


def _known(table: Table) -> list[frozenset[str]]:
    """Return the shape of rows of the copy, then those of changes."""
    first = table.base.columns if table.base else frozenset(table.columns.names)
    return [first, *(names for _, names in table.shapes)]


def stored_rows(before: DataFrame, table: Table, changes: DataFrame, others: Sequence[str] = ()) -> DataFrame:
    """Return rows of an earlier state with all columns of the table, in the types of its changes, and ``__shape``.

    Columns that came since have the default that they were added with; ``others`` are kept as they are.
    """
    rows = with_shapes(_unplaced(with_defaults(before, table), table), table, before)
    kinds = {name: changes.schema[name].dataType for name in table.columns.names}
    for name in kinds.keys() - {*rows.columns}:
        rows = rows.withColumn(name, F.lit(None).cast(kinds[name]))
    kept = (*kinds, "_untyped", "_commit_lsn", "_seq", *others, SHAPE)
    return retyped(rows, kinds).select(*map(column, kept))


def with_defaults(before: DataFrame, table: Table) -> DataFrame:
    """Add to rows the columns that came since with a default: PostgreSQL gives it to all rows that are older."""
    added = {name: given for name, given in table.defaults.items() if name not in before.columns}
    defaults = default_row(table.columns, added)
    if defaults is None:
        return before
    schema = from_arrow_schema(defaults.schema, prefer_timestamp_ntz=True)  # Spark takes all times for instants
    row = before.sparkSession.createDataFrame(pa.Table.from_batches([defaults]), schema)
    row = row.select(F.struct("*").alias("__given"))
    names = [name for name in defaults.schema.names if name != "_untyped"]
    values = [column("__given", name).alias(name) for name in names]
    kept = [column(name) for name in before.columns if name != "_untyped"]
    untyped = joined_texts(F.col("_untyped"), F.col("__given._untyped")).alias("_untyped")
    return before.crossJoin(F.broadcast(row)).select(*kept, *values, untyped)


def retyped(rows: DataFrame, kinds: Mapping[str, T.DataType]) -> DataFrame:
    """Return rows with other types: what these do not hold exactly is null, and has its text in ``_untyped``."""
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
        values[name] = _converted(value, was, kind)
        texts[name] = F.when(values[name].isNull(), written)
    if not values:
        return rows
    others = F.map_filter("_untyped", lambda name, _: ~name.isin(list(values)))
    values["_untyped"] = joined_texts(others, untyped_of(texts))
    return rows.select(*(values[name].alias(name) if name in values else column(name) for name in rows.columns))


def _converted(value: Column, was: T.DataType, kind: T.DataType) -> Column:
    """Return a value in another type, null where that does not give the same value back.

    A time without a zone is no moment: which zone PostgreSQL took, ALTER TABLE does not say.
    """
    if isinstance(was, T.ArrayType) and isinstance(kind, T.ArrayType):
        return _converted_array(value, was.elementType, kind.elementType)
    if any(isinstance(was, kinds) and isinstance(kind, kinds) for kinds in _ALIKE):
        found = value.try_cast(kind)
        return F.when(exact(found.try_cast(was), was).eqNullSafe(exact(value, was)), found)
    if isinstance(was, T.StringType) and isinstance(kind, T.AtomicType):
        found = value.try_cast(kind)
        return F.when(output_text(found, kind).eqNullSafe(value), found)
    return F.lit(None).cast(kind)


def _converted_array(value: Column, was: T.DataType, kind: T.DataType) -> Column:
    """Return an array in a type with other elements, null where one of them is lost."""
    if isinstance(was, T.StringType):  # a function that Spark calls for elements can ask for no text of a float
        return F.lit(None).cast(T.ArrayType(kind))
    lost = F.exists(value, lambda item: item.isNotNull() & _converted(item, was, kind).isNull())
    return F.when(~lost, F.transform(value, lambda item: _converted(item, was, kind)))


def _unplaced(rows: DataFrame, table: Table) -> DataFrame:
    """Put rows of the copy before all changes: the LSN of its snapshot says nothing of their order."""
    if table.base is None:
        return rows
    copy, lsn, seq = table.base.copy, F.col("_commit_lsn"), F.col("_seq")
    copied = (lsn == int(copy.snapshot.lsn)) & (seq > table.base.after_seq) & (seq < copy.seq)
    if "_op" in rows.columns:
        copied &= F.col("_op") == SNAPSHOT
    return rows.withColumn("_commit_lsn", F.when(copied, F.lit(BEFORE_ALL).cast("bigint")).otherwise(lsn))


_WITHOUT_ROW: Final = pa.array([OPERATIONS[Delete], OPERATIONS[Truncate]])


def with_missing(batch: pa.RecordBatch, missing: Mapping[str, Missing]) -> pa.RecordBatch:
    """Put the values that are ``missing`` into the new rows of a batch, by column; they are null there.

    PostgreSQL keeps such a value in pg_attribute.attmissingval, and rewrites no row for it.
    """
    if not missing:
        return batch
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    has_row = pc.invert(pc.is_in(batch.column("_op"), _WITHOUT_ROW))
    texts: dict[str, str] = {}
    for name, given in missing.items():
        kind = batch.schema.field(name).type
        reader = ColumnReader(given.column, given.types, kind)
        try:
            value = pa.scalar(reader.load(given.text.encode()), kind)
            columns[name] = pc.if_else(has_row, value, pa.scalar(None, kind))
        except CannotHold:
            texts[name] = reader.text(given.text.encode())
    if texts:
        columns["_untyped"] = _with_texts(columns["_untyped"], texts, has_row.to_pylist())
    return pa.RecordBatch.from_arrays([columns[name] for name in batch.schema.names], schema=batch.schema)


def default_row(columns: pa.Schema, missing: Mapping[str, Missing]) -> pa.RecordBatch | None:
    """Return one row of the columns that are ``missing``, and ``_untyped``; None where there are none."""
    if not missing:
        return None
    schema = pa.schema([*(columns.field(name) for name in missing), ("_op", pa.string()), ("_untyped", UNTYPED)])
    nothing = pa.RecordBatch.from_pylist([{"_op": SNAPSHOT}], schema)
    return with_missing(nothing, missing).drop_columns("_op")


def _with_texts(untyped: pa.Array, texts: Mapping[str, str], chosen: Sequence[bool]) -> pa.Array:
    rows = zip(untyped.to_pylist(), chosen, strict=True)
    return pa.array([[*(row or ()), *texts.items()] if more else row for row, more in rows], untyped.type)
