"""The rows of a table whose identity is the full row: equal ones are counted, in the order of the changes."""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.spark.alike import AlikeRows
from pgoutput_construct.spark.demands import Demand
from pgoutput_construct.spark.replay import replayed
from pgoutput_construct.spark.rowwise import ORDER, Counted, component, events_of
from pgoutput_construct.spark.schemas import column
from pgoutput_construct.spark.values import restored, untyped_of, written

__all__ = ["counted", "unfound_rows"]

_SAID: Final = pa.schema([("_unfound", pa.bool_())])


def counted(before: DataFrame | None, changes: DataFrame, table: Counted, demand: Demand) -> DataFrame:
    """Return the rows after changes: the columns, ``_untyped``, ``_commit_lsn`` and ``_seq``, as ``before`` has them.

    Both have ``__shape``. A delete takes the oldest of the rows that are equal in the columns which it and they were
    described with, of rows that have more of them than others; or none. Rows before that no change takes away are
    left as they are. A delete of none is an error where it is demanded that rows are there.
    """
    events, untouched = events_of(before, changes, table)
    single, mixed = _by_shape(events, table)
    rows = _folded(single, table, demand)
    if mixed is not None:
        rows = rows.unionAll(_unpacked(_found(_replayed(mixed, table), table, demand), table))
    if untouched is not None:
        rows = rows.unionAll(untouched.select(*map(column, table.names), "_untyped", "_commit_lsn", "_seq"))
    return rows


def unfound_rows(before: DataFrame | None, changes: DataFrame, table: Counted) -> DataFrame:
    """Return the events (``events_of``) that were to take rows away that were not there."""
    single, mixed = _by_shape(events_of(before, changes, table)[0], table)
    equal = Window.partitionBy(*_group(table)).orderBy(*ORDER)
    total = F.sum(F.when(F.col("_came"), 1).otherwise(-1)).over(equal)
    least = F.min("_total").over(equal.rowsBetween(Window.unboundedPreceding, -1))
    totals = single.withColumn("_total", total).withColumn("_least", F.least(least, F.lit(0)))
    found = totals.where("NOT _came AND _total < coalesce(_least, 0)").drop("_total", "_least")
    if mixed is None:
        return found
    return found.unionByName(_replayed(mixed, table).where("_unfound").select(*found.columns))


def _by_shape(events: DataFrame, table: Counted) -> tuple[DataFrame, DataFrame | None]:
    """Return events among which equal ones have one shape, and those that may be equal to some of another shape."""
    if len(table.shapes) == 1:
        return events, None
    alike, of_one = events.withColumn("_component", component(table)), Window.partitionBy("_component")
    alike = alike.withColumn("_mixed", F.min("_shape").over(of_one) != F.max("_shape").over(of_one))
    return alike.where("NOT _mixed").drop("_component", "_mixed"), alike.where("_mixed").drop("_mixed")


def _group(table: Counted) -> list[Column]:
    """Return what equal rows of one shape have in common."""
    described = F.array(*(table.has(name) for name in table.own)).cast("array<boolean>")
    texts = F.zip_with("_texts", described, lambda text, has: F.when(has, text))
    values = [table.compared(name).alias(f"g{number}") for number, name in enumerate(table.own)]
    return [*values, (texts if len(table.shapes) > 1 else F.col("_texts")).alias("_known"), F.col("_shape")]


def _folded(events: DataFrame, table: Counted, demand: Demand) -> DataFrame:
    """Return the rows that are left where equal ones have one shape: they are groups, and their changes are counted."""
    others = [table.place(name) for name in table.names if name not in table.shared]
    changes = F.array_sort(F.collect_list(F.struct(*ORDER, *others, *(["_texts"] if others else []))))
    groups = events.groupBy(*_group(table)).agg(changes.alias("_changes"))
    came = F.filter("_changes", lambda change: change["_came"])
    groups = groups.withColumn("_count", F.aggregate("_changes", F.lit(0), _counted_on))
    is_left = F.col("_count") > 0
    if demand.rows:
        # One that found no row did not lower the count.
        is_wrong = F.col("_count") > 2 * F.size(came) - F.size("_changes")
        row = {name: restored(F.col(f"g{number}"), table.kinds[name]) for number, name in enumerate(table.own)}
        is_left = F.when(is_wrong, demand.refuse_row(_unfound_at(), _shown(row))).otherwise(is_left)
    groups = groups.where(is_left)
    last = F.slice(came, F.size(came) - F.col("_count") + 1, F.col("_count"))
    left = groups.withColumn("_one", F.explode(last))
    values, texts = dict[str, Column](), dict[str, Column]()
    for number, name in enumerate(table.own):
        if name in table.shared:
            values[name], texts[name] = restored(F.col(f"g{number}"), table.kinds[name]), F.col("_known")[number]
        elif name in table.names:
            values[name], texts[name] = F.col(f"_one.{table.place(name)}"), F.col("_one._texts")[number]
    return left.select(
        *(values[name].alias(name) for name in table.names),
        untyped_of({name: texts[name] for name in table.names}).alias("_untyped"),
        "_one._commit_lsn",
        "_one._seq",
    )


def _unfound_at() -> Column:
    """Return where the first change stands that was to take a row away and found none."""
    nothing = F.struct(F.lit(0).alias("count"), F.lit(None).cast("struct<_commit_lsn:bigint,_seq:bigint>").alias("at"))

    def go_on(found: Column, change: Column) -> Column:
        here = F.struct(change["_commit_lsn"].alias("_commit_lsn"), change["_seq"].alias("_seq"))
        is_it = found["at"].isNull() & ~change["_came"] & (found["count"] == 0)
        at = F.when(is_it, here).otherwise(found["at"])
        return F.struct(_counted_on(found["count"], change).alias("count"), at.alias("at"))

    return F.aggregate("_changes", nothing, go_on)["at"]


def _found(events: DataFrame, table: Counted, demand: Demand) -> DataFrame:
    """Leave out what found no row; refuse it where a row was to be there."""
    if not demand.rows:
        return events.where("NOT _unfound")
    row = _shown({name: F.col(table.place(name)) for name in table.own})
    refused = demand.refuse_row(F.struct("_commit_lsn", "_seq"), row)
    return events.where(F.when(F.col("_unfound"), refused).otherwise(F.lit(True)))


def _shown(row: Mapping[str, Column]) -> Column:
    return F.to_json(F.struct(*(value.alias(name) for name, value in row.items())))


def _counted_on(total: Column, change: Column) -> Column:
    return F.when(change["_came"], total + 1).otherwise(F.greatest(total - 1, F.lit(0)))


def _replayed(events: DataFrame, table: Counted) -> DataFrame:
    """Return the events whose rows are left, and, ``_unfound``, those of rows that were not there."""
    texts = (F.col("_texts")[number] for number in range(len(table.own)))
    values = (written(F.col(table.place(name)), table.kinds[name]) for name in table.own)
    nothing = F.lit(None).cast("array<string>")
    changes = events.withColumns(
        {
            "_key": F.array(*(part for pair in zip(values, texts, strict=True) for part in pair)).cast("array<string>"),
            "_former": nothing,
            "_unchanged": nothing,
            "_gone": ~F.col("_came"),
            "_needs": ~F.col("_came"),
        }
    )
    positions = [frozenset(place for place, name in enumerate(table.own) if name in shape) for shape in table.shapes]
    columns = [name for name in events.columns if name != "_component"]
    return replayed(changes, columns, ORDER, lambda: AlikeRows(positions), _SAID)


def _unpacked(events: DataFrame, table: Counted) -> DataFrame:
    texts = {name: F.col("_texts")[table.own.index(name)] for name in table.names}
    values = (F.col(table.place(name)).alias(name) for name in table.names)
    return events.select(*values, untyped_of(texts).alias("_untyped"), "_commit_lsn", "_seq")
