"""The histories of tables: what a batch adds to them, written by any format."""

from pyspark.sql import DataFrame, SparkSession

from pgoutput_construct.spark.counting import counting
from pgoutput_construct.spark.job import OpenLog
from pgoutput_construct.spark.schemas import column
from pgoutput_construct.spark.warehouse.history import history
from pgoutput_construct.spark.warehouse.notes import Dataset
from pgoutput_construct.spark.warehouse.sink import MergingSink, Sink
from pgoutput_construct.spark.warehouse.staging import Changes
from pgoutput_construct.spark.warehouse.steps import Step

__all__ = ["record_history"]


def record_history(log: OpenLog, spark: SparkSession, sink: Sink, step: Step, changes: Changes) -> Dataset:
    """Bring the history of a table up to where a log is: what came is added, what ended is said of what was there.

    ``changes`` are those that the step needs. What a copy of the table supersedes has ended when it is seen; of the
    changes before it only those are recorded that a batch has seen before.
    """
    table, before = log.table(step.table), step.before
    counted = counting(changes.rows, table.base, log.reach(table))
    there = None if before is None else sink.replayed(spark, before)
    rows = history(there, counted, table, step.has_new_copy, changes.seen).persist()
    try:
        return _written(spark, sink, step, there, rows)
    finally:
        rows.unpersist()


def _written(spark: SparkSession, sink: Sink, step: Step, there: DataFrame | None, rows: DataFrame) -> Dataset:
    if there is None or step.before is None:
        return sink.replace(spark, step.dataset, sink.naming.stored(rows), step.replaced)
    is_same = all(field in rows.schema.fields for field in there.schema if field.name in rows.columns)
    is_here, has_room = step.before.directory == step.dataset.directory, set(rows.columns) <= set(there.columns)
    if isinstance(sink, MergingSink) and is_same and is_here and (sink.alters or has_room):
        return sink.record(spark, step.dataset, sink.naming.stored(rows))
    return sink.replace(spark, step.dataset, sink.naming.stored(_together(there, rows)), step.replaced)


def _together(there: DataFrame, rows: DataFrame) -> DataFrame:
    """Return a history with rows put into it; columns that went stay, and have the types of now."""
    places = rows.select("_commit_lsn", "_seq")
    kinds = {field.name: field.dataType for field in rows.schema}
    kept = there.select(*(column(name).cast(kinds[name]) if name in kinds else column(name) for name in there.columns))
    return kept.join(places, ["_commit_lsn", "_seq"], "left_anti").unionByName(rows, allowMissingColumns=True)
