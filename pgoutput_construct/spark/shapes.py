"""Which columns a table's changes, and the rows that they find, were described with."""

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.spark.columns import Missing
from pgoutput_construct.spark.missing import default_row
from pgoutput_construct.spark.schemas import SHAPE, column
from pgoutput_construct.spark.survey import BEFORE_ALL, at_place, place
from pgoutput_construct.spark.tables import Table

__all__ = ["shapes_of", "stored_rows", "with_shapes"]


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


def stored_rows(before: DataFrame, table: Table, changes: DataFrame) -> DataFrame:
    """Return rows of an earlier state with all columns of the table, in the types of its changes, and ``__shape``.

    Columns that came since have the default that they were added with.
    """
    rows = with_shapes(_unplaced(before, table), table, before)
    given, texts = dict[str, Column](), F.col("_untyped")
    defaults = default_row(table.columns, _added(table, before))
    if defaults is not None:
        row = before.sparkSession.createDataFrame(pa.Table.from_batches([defaults])).select(
            F.struct("*").alias("__given")
        )
        rows = rows.crossJoin(F.broadcast(row))
        given = {name: column("__given", name) for name in defaults.schema.names if name not in before.columns}
        more = F.coalesce(F.col("__given._untyped"), F.create_map().cast("map<string,string>"))
        texts = F.when(
            F.size(more) > 0, F.map_concat(F.coalesce(texts, F.create_map().cast("map<string,string>")), more)
        ).otherwise(texts)
    values = []
    for name in table.columns.names:
        value = column(name) if name in before.columns else given.get(name, F.lit(None))
        values.append(value.cast(changes.schema[name].dataType).alias(name))
    return rows.select(*values, texts.alias("_untyped"), "_commit_lsn", "_seq", SHAPE)


def _added(table: Table, before: DataFrame) -> dict[str, Missing]:
    """Return what rows have in columns that came since."""
    found = {name: given for of_one in table.missing.values() for name, given in of_one.items()}
    return {name: given for name, given in found.items() if name not in before.columns}


def _unplaced(rows: DataFrame, table: Table) -> DataFrame:
    """Put rows of the copy before all changes: the LSN of its snapshot says nothing of their order."""
    if table.base is None:
        return rows
    copy, lsn, seq = table.base.copy, F.col("_commit_lsn"), F.col("_seq")
    copied = (lsn == int(copy.snapshot.lsn)) & (seq > table.base.after_seq) & (seq < copy.seq)
    return rows.withColumn("_commit_lsn", F.when(copied, F.lit(BEFORE_ALL).cast("bigint")).otherwise(lsn))
