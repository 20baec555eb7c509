"""The histories of tables: what a batch adds to them, written by any format."""

from pyspark.sql import DataFrame, SparkSession

from pgoutput_construct.spark.counting import counting
from pgoutput_construct.spark.log_view import OpenLog
from pgoutput_construct.spark.metadata import escaped
from pgoutput_construct.spark.replicated_tables import Table
from pgoutput_construct.spark.schema_evolution import retyped, with_defaults
from pgoutput_construct.spark.warehouse.history import HISTORY, KNOWN_BY, history
from pgoutput_construct.spark.warehouse.naming import renamed
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
    table, before, naming = log.table(step.table), step.before, sink.naming_of(step.dataset)
    counted = counting(changes.rows, table, log.reach(table))
    names = {escaped(name): escaped(other) for name, other in step.renamed.items()}
    there = None if before is None else renamed(sink.replayed(spark, before), names)
    rows = history(there, counted, table, step.has_new_copy, changes.seen)
    if there is None or step.before is None:
        return sink.replace(spark, step.dataset, naming.dataset(rows), step.replaced)
    rows.persist()  # they are read more than once
    try:
        return _put(spark, sink, step, step.before, there, rows, table)
    finally:
        rows.unpersist()


def _put(
    spark: SparkSession, sink: Sink, step: Step, before: Dataset, there: DataFrame, rows: DataFrame, table: Table
) -> Dataset:
    """Put rows into a history that is there."""
    is_same = all(field in rows.schema.fields for field in there.schema if field.name in rows.columns)
    is_here, has_room = before.directory == step.dataset.directory, set(rows.columns) <= set(there.columns)
    naming = sink.naming_of(step.dataset)
    can_record = is_same and is_here and not step.has_defaults and not step.renamed and naming == sink.naming_of(before)
    if isinstance(sink, MergingSink) and can_record and (sink.alters or has_room):
        return sink.record(spark, step.dataset, naming.dataset(rows))
    together = _together(with_defaults(there, table), rows)
    return sink.replace(spark, step.dataset, naming.dataset(together), step.replaced)


def _together(there: DataFrame, rows: DataFrame) -> DataFrame:
    """Return a history with rows put into it; columns that went stay, and have the types of now."""
    places = rows.select(*KNOWN_BY)
    kinds = {field.name: field.dataType for field in rows.schema if field.name in there.columns}
    kept = retyped(there, {name: kind for name, kind in kinds.items() if name not in HISTORY})
    return kept.join(places, [*KNOWN_BY], "left_anti").unionByName(rows, allowMissingColumns=True)
