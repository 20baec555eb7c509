"""The rows of a table with a key: what changes come to is put in the place of the rows that were there before."""

from functools import reduce
from operator import and_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.spark.change_frames import CAME, CHANGE, NEW, Survey, column
from pgoutput_construct.spark.changed import Replay
from pgoutput_construct.spark.execution import Demand, as_leaf
from pgoutput_construct.spark.layout import Layout
from pgoutput_construct.spark.moved_values import with_moved_values
from pgoutput_construct.spark.netting import net_of, touching

__all__ = ["advanced", "net_rows", "netted"]

_META: Final = ("_untyped", "_commit_lsn", "_seq")


def netted(changes: DataFrame, layout: Layout, found: Survey) -> DataFrame:
    """Return what changes come to, key by key, as ``net_of`` does."""
    if found.chained and layout.unsent:
        replay = Replay(layout.names, layout.keys, tuple(name for name in layout.names if name in found.unsent))
        changes = with_moved_values(None, changes, replay, found, layout.key_of)
    return net_of(touching(changes, layout, found), layout)


def net_rows(net: DataFrame, layout: Layout) -> DataFrame:
    """Return net changes under the columns' own names, as ``net_changes`` has them."""
    key = [value.alias(name) for name, value in layout.key_values("_was.").items()]
    texts = F.col("_was.kt") if layout.has_texts else F.lit(None).cast("array<string>")
    is_there = (F.size("_open") > 0) & ~F.col("_lost")
    return net.select(
        *_values(layout),
        F.when(is_there, F.struct(*key, texts.alias("_texts"))).alias("_key"),
        F.when(F.col("_row").isNull(), "delete").otherwise("upsert").alias("_op"),
        F.col("_open").alias("_unchanged"),
        "_missing",
    )


def advanced(
    before: DataFrame | None, changes: DataFrame, layout: Layout, found: Survey, demand: Demand, is_small: bool
) -> DataFrame:
    """Return the rows after changes: the columns, ``_untyped``, ``_commit_lsn`` and ``_seq``, as ``before`` has them.

    Of ``before`` only rows that are touched are joined; if it ``is_small``, it goes the way of the changes. What is
    demanded and is not so makes an action fail.
    """
    if before is None or is_small:
        all_changes = changes if before is None else changes.unionByName(_as_inserts(before, changes))
        return _rows(netted(all_changes, layout, found), layout, demand)
    net = as_leaf(netted(changes, layout, found))  # it is joined with the rows before from several sides
    stored = before.select(
        F.struct(*map(column, layout.names), *_META).alias("_stored"), *layout.key_of(NEW.value, NEW.text)
    )
    kept = stored.join(found.few(_keys(net, layout, "")), _same(layout, ""), "left_anti")
    if demand.rows:
        there = stored.join(found.few(_keys(net.where("_missing > 0"), layout, "")), _same(layout, ""), "left_semi")
        net = _found(net, there, layout)
    if layout.unsent:
        needed = stored.join(
            found.few(_keys(net.where(F.size("_open") > 0), layout, "_was.")), _same(layout, ""), "left_semi"
        )
        net = _filled(net, needed, layout)
    return kept.select("_stored.*").unionAll(_rows(net, layout, demand))


def _as_inserts(rows: DataFrame, changes: DataFrame) -> DataFrame:
    """Return rows as the changes by which they came, which have all the columns of others."""
    given = {"_op": F.lit(CAME), **{name: F.col(name) for name in rows.columns if name in CHANGE}}
    names = [name for name in changes.columns if name not in rows.columns or name in CHANGE]
    kinds = {field.name: field.dataType for field in changes.schema}
    more = [given.get(name, F.lit(None)).cast(kinds[name]).alias(name) for name in names]
    return rows.select(*(column(name) for name in rows.columns if name not in CHANGE), *more)


def _keys(rows: DataFrame, layout: Layout, prefix: str, *others: str | Column) -> DataFrame:
    """Return keys under names of their own, and other columns."""
    return rows.select(*(F.col(prefix + name).alias(f"net_{name}") for name in layout.key), *others)


def _same(layout: Layout, prefix: str) -> Column:
    """Return whether a key is one of ``_keys``. It is null only where a text says more."""
    pairs = [(F.col(prefix + name), F.col(f"net_{name}")) for name in layout.key]
    return reduce(and_, (a.eqNullSafe(b) if layout.has_texts else a == b for a, b in pairs))


def _rows(net: DataFrame, layout: Layout, demand: Demand) -> DataFrame:
    key, is_row = _shown_key(layout), F.col("_row").isNotNull()
    if demand.rows:
        is_row = F.when(F.col("_missing") > 0, demand.refuse_row(F.col("_place"), key)).otherwise(is_row)
    if demand.values and layout.unsent:
        refused = demand.refuse_value(F.col("_place"), key, F.col("_open")[0])
        is_row = F.when(F.col("_row").isNotNull() & (F.size("_open") > 0), refused).otherwise(is_row)
    return net.where(is_row).select(*_values(layout))


def _values(layout: Layout) -> list[Column]:
    return [*layout.values(), layout.untyped().alias("_untyped"), F.col("_place._commit_lsn"), F.col("_place._seq")]


def _filled(net: DataFrame, needed: DataFrame, layout: Layout) -> DataFrame:
    """Put into net changes what is open in them, from the rows that they are of."""
    joined = net.join(_keys(needed, layout, "", "_stored"), _same(layout, "_was."), "left")
    is_found, filled = F.col("_stored").isNotNull(), dict[str, Column]()
    for name in layout.unsent:
        text = F.col("_stored._untyped")[F.lit(name)] if layout.has_texts else F.lit(None).cast("string")
        value = F.struct(column("_stored", name).alias("v"), text.alias("t"))
        is_open = F.array_contains("_open", name) & is_found
        filled[layout.place(name)] = F.when(is_open, value).otherwise(F.col(layout.place(name)))
    still = F.when(is_found, F.array().cast("array<string>")).otherwise(F.col("_open"))
    return joined.withColumns({**filled, "_open": still})


def _found(net: DataFrame, there: DataFrame, layout: Layout) -> DataFrame:
    """Take it from what is missing of net changes where the row was there before."""
    keys = _keys(there, layout, "", F.lit(1).alias("_there"))
    joined = net.join(keys, _same(layout, ""), "left")
    found = joined.withColumn("_missing", F.col("_missing") - F.coalesce("_there", F.lit(0)))
    return found.select(*net.columns)


def _shown_key(layout: Layout) -> Column:
    return F.to_json(F.struct(*(value.alias(name) for name, value in layout.key_values().items())))
