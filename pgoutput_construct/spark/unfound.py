"""Changes of rows that must be there and are not: a report, beside a state that goes on without them."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.spark.counted import unfound_rows
from pgoutput_construct.spark.keyed import without_keys
from pgoutput_construct.spark.netting import touching
from pgoutput_construct.spark.steps import Step
from pgoutput_construct.spark.survey import CAME

__all__ = ["unfound"]


def unfound(step: Step) -> DataFrame:
    """Return the updates and deletes of a step whose rows are not there: ``_commit_lsn, _seq, _op, _row, _unchanged``.

    ``_row`` is the key, or the row, that was to be found: texts by column.
    """
    if step.is_full:
        return _of_rows(step)
    return _of_keys(step) if step.key_columns else _of_nothing(step)


def _of_rows(step: Step) -> DataFrame:
    table = step.by_rows()
    kinds = {name: table.kinds[name] for name in table.own}
    row = _texts({name: F.col(table.place(name)) for name in table.own}, kinds, F.col("_texts"))
    return _reported(unfound_rows(step.stored, step.counted, table), row, F.array().cast("array<string>"))


def _of_keys(step: Step) -> DataFrame:
    """Return changes without a row under their key: the change before it left none, or it is the first."""
    layout = step.by_keys()
    touched = touching(step.counted, layout, step.survey)
    in_order = Window.partitionBy(*layout.key).orderBy("_commit_lsn", "_seq")
    seen = touched.withColumn("_was_gone", F.lag("_gone").over(in_order))
    needs_row = (F.col("_op") != CAME) & (F.col("_gone") | ~F.col("_moved"))
    lacking = seen.where(needs_row & F.coalesce("_was_gone", F.lit(True)))
    if step.stored is not None:
        first = F.col("_was_gone").isNull()
        lacking = without_keys(lacking, step.stored, layout, first)
    unsent = F.array_intersect("_unchanged", F.array(*map(F.lit, layout.unsent)).cast("array<string>"))
    kinds = {name: layout.kinds[name] for name in layout.keys}
    row = _texts(layout.key_values(), kinds, F.col("kt") if layout.has_texts else None)
    return _reported(lacking, row, F.coalesce(unsent, F.array().cast("array<string>")))


def _of_nothing(step: Step) -> DataFrame:
    row = F.create_map().cast("map<string,string>")
    return _reported(step.counted.where("false"), row, F.array().cast("array<string>"))


def _reported(changes: DataFrame, row: Column, unchanged: Column) -> DataFrame:
    return changes.select("_commit_lsn", "_seq", "_op", row.alias("_row"), unchanged.alias("_unchanged"))


def _texts(values: Mapping[str, Column], kinds: Mapping[str, T.DataType], texts: Column | None) -> Column:
    parts = []
    for number, (name, value) in enumerate(values.items()):
        text = F.hex(value) if isinstance(kinds[name], T.BinaryType) else value.cast("string")
        parts += [F.lit(name), text if texts is None else F.coalesce(texts[number], text)]
    return F.create_map(*parts).cast("map<string,string>")
