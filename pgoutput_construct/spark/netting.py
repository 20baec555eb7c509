"""What changes come to, key by key: the last one wins, and a value that it did not send is the last that was sent."""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.spark.layout import Layout
from pgoutput_construct.spark.partitions import component_of
from pgoutput_construct.spark.schemas import COMPONENT
from pgoutput_construct.spark.survey import CAME, GONE, Survey, is_unsent, moves, place
from pgoutput_construct.spark.values import BEFORE, NEW

__all__ = ["net_of", "touching"]


def touching(changes: DataFrame, layout: Layout, found: Survey) -> DataFrame:
    """Return changes by the key that they touch: key, ``_gone``, ``_row`` and pairs, ``_unchanged``, place.

    A change of the key is there twice: the row with the old one is gone. ``_step`` is 1 where a row comes under its
    key, -1 where it goes. Where changes are chained it has ``__component``, as events have it.
    """
    moved, left = F.lit(False), F.lit(False)
    changes = _narrowed(changes, layout)
    if found.moved:
        moved, left = moves(changes, layout.keys), F.col("__left")
        once, twice = F.array(F.lit(False)), F.array(F.lit(False), F.lit(True))
        changes = changes.withColumn("__left", F.explode(F.when(moved, twice).otherwise(once)))
    gone = (F.col("_op") == GONE) | left
    return changes.select(
        *_key(layout, gone),
        F.when(~gone, layout.row_of()).alias("_row"),
        *(F.when(~gone, F.struct(*layout.pair_of(name))).alias(layout.place(name)) for name in layout.unsent),
        gone.alias("_gone"),
        F.when(gone, -1).when((F.col("_op") == CAME) | moved, 1).otherwise(0).alias("_step"),
        "_unchanged",
        "_commit_lsn",
        "_seq",
        *([component_of(_sides(layout, gone)[0], layout.key_kinds).alias(COMPONENT)] if found.chained else []),
    )


def _narrowed(changes: DataFrame, layout: Layout) -> DataFrame:
    """Leave out of ``_before`` all but the key: Parquet then reads no other column of it."""
    old = F.struct(*(BEFORE.value(name).alias(name) for name in layout.keys))
    return changes.withColumn("_before", F.when(F.col("_before").isNotNull(), old))


def _key(layout: Layout, gone: Column) -> list[Column]:
    """Return the key that is touched; one that was left out is in ``_before``."""
    return layout.key_of(*_sides(layout, gone))


def _sides(layout: Layout, gone: Column) -> tuple[Callable[[str], Column], Callable[[str], Column]]:
    """Return what gives values, and texts, of the row with the key that is touched."""

    def of_side(name: str, value: Column, before: Column) -> Column:
        is_before = gone | (is_unsent(name) & F.col("_before").isNotNull()) if layout.has_unsent_keys else gone
        return F.when(is_before, before).otherwise(value)

    return (
        lambda name: of_side(name, NEW.value(name), BEFORE.value(name)),
        lambda name: of_side(name, NEW.text(name), BEFORE.text(name)),
    )


def net_of(touched: DataFrame, layout: Layout) -> DataFrame:
    """Return one row a key: its ``_row``, null where it is gone, pairs, and where the last change of it stands.

    ``_open`` are the columns that no change has sent, of the row under the key ``_was``. It is that in the table
    before the changes, unless ``_lost``: then no row can have been there. ``_missing`` is how many changes found no row
    under their key: the first may have found one that was there before. ``_at`` is where the last of them stands, or a
    later change.
    """
    pairs = {name: layout.place(name) for name in layout.unsent}
    last = touched.groupBy(*layout.key).agg(
        F.max_by(F.struct("_row", place().alias("_place")), place()).alias("_last"),
        *(F.max_by(F.struct(pair, place().alias("place")), _sent(name)).alias(pair) for name, pair in pairs.items()),
        *([F.max(F.when(F.col("_gone"), place())).alias("_died")] if pairs else []),
        F.sum("_step").alias("_steps"),
        F.min(F.struct("_commit_lsn", "_seq", "_step")).alias("_first"),
    )
    return last.select(
        *layout.key,
        "_last.*",
        *(F.col(f"{pair}.{pair}").alias(pair) for pair in pairs.values()),
        _open(layout).alias("_open"),
        layout.key_struct().alias("_was"),
        (F.col("_died").isNotNull() if pairs else F.lit(False)).alias("_lost"),
        _missing().alias("_missing"),
        _at().alias("_at"),
    )


def _missing() -> Column:
    # Rows come and go by turns: where more have gone than came, some were not there.
    return F.when(F.col("_last._row").isNotNull(), 1).otherwise(0) - F.col("_steps")


def _at() -> Column:
    is_first = (F.col("_first._step") < 1) & (_missing() == 1)
    first = F.struct("_first._commit_lsn", "_first._seq")
    return F.when(is_first, first).otherwise(F.col("_last._place"))


def _sent(name: str) -> Column:
    """Return the place of a change that sent a column, null for others."""
    return F.when(~F.col("_gone") & ~is_unsent(name), place())


def _open(layout: Layout) -> Column:
    found = []
    for name in layout.unsent:
        sent = F.col(f"{layout.place(name)}.place")
        is_open = sent.isNull() | F.coalesce(sent < F.col("_died"), F.lit(False))
        found.append(F.when(is_open & F.col("_last._row").isNotNull(), F.lit(name)))
    return F.filter(F.array(*found), lambda name: name.isNotNull()).cast("array<string>")
