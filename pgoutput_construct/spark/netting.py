"""What changes come to, key by key: the last one wins, and a value that it did not send is the last that was sent."""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.spark.change_frames import (
    BEFORE,
    CAME,
    GONE,
    NEW,
    PLACE,
    ROOT,
    Survey,
    is_unsent,
    moves,
    place,
)
from pgoutput_construct.spark.layout import Layout
from pgoutput_construct.spark.moved_values import leaves_open

__all__ = ["net_of", "touching"]


def touching(changes: DataFrame, layout: Layout, found: Survey) -> DataFrame:
    """Return changes by the key that they touch: key, ``_now``, ``_since`` and pairs.

    Each of these begins with the place of the change, so that the greatest of them is the last: ``_now`` has ``_row``,
    null where it is gone, ``_since`` is null unless it is, and a pair unless the change sent it. A change of the key is
    there twice: the row with the old one is gone. ``_step`` is 1 where a row comes under its key, -1 where it goes.
    Changes of ``with_moved_values`` have a ``_since``, too, where they leave values out: with their ``__root``.
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
        F.struct(*PLACE, F.when(~gone, layout.row_of()).alias("_row")).alias("_now"),
        *(F.when(~gone & ~is_unsent(name), _sent(layout, name)).alias(layout.place(name)) for name in layout.unsent),
        _since(changes, layout, gone, moved).alias("_since"),
        F.when(gone, -1).when((F.col("_op") == CAME) | moved, 1).otherwise(0).alias("_step"),
    )


def _since(changes: DataFrame, layout: Layout, gone: Column, moved: Column) -> Column:
    """Return from where on a key has none of the values that it had before."""
    if ROOT not in changes.columns:
        return F.when(gone, place())
    nothing = F.lit(None).cast(changes.schema[ROOT].dataType).alias(ROOT)
    came = F.when(moved & leaves_open(layout.unsent), F.struct(*PLACE, ROOT))
    return F.when(gone, F.struct(*PLACE, nothing)).otherwise(came)


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
    under their key: the first may have found one that was there before.
    """
    pairs, has_root = [layout.place(name) for name in layout.unsent], ROOT in touched.select("_since.*").columns
    root, is_since = F.col(f"_since.{ROOT}"), F.col("_since").isNotNull() if pairs else F.lit(False)
    last = touched.groupBy(*layout.key).agg(
        F.max("_now").alias("_last"),
        *(F.max(pair).alias(pair) for pair in pairs),
        *([F.max("_since").alias("_since")] if pairs else []),
        F.sum("_step").alias("_steps"),
    )
    return last.select(
        *layout.key,
        "_last._row",
        F.struct(*(f"_last.{part}" for part in PLACE)).alias("_place"),
        *(F.when(F.col(pair).isNotNull(), F.struct(f"{pair}.v", f"{pair}.t")).alias(pair) for pair in pairs),
        _open(layout).alias("_open"),
        (F.coalesce(root, layout.key_struct()) if has_root else layout.key_struct()).alias("_was"),
        (is_since & root.isNull() if has_root else is_since).alias("_lost"),
        _missing().alias("_missing"),
    )


def _missing() -> Column:
    # Rows come and go by turns: where more have gone than came, some were not there.
    return F.when(F.col("_last._row").isNotNull(), 1).otherwise(0) - F.col("_steps")


def _sent(layout: Layout, name: str) -> Column:
    return F.struct(*PLACE, *layout.pair_of(name))


def _open(layout: Layout) -> Column:
    found, since = [], F.struct(*(f"_since.{part}" for part in PLACE))
    for name in layout.unsent:
        pair = layout.place(name)
        sent = F.struct(*(f"{pair}.{part}" for part in PLACE))
        is_open = F.col(pair).isNull() | F.coalesce(sent < since, F.lit(False))
        found.append(F.when(is_open & F.col("_last._row").isNotNull(), F.lit(name)))
    return F.filter(F.array(*found), lambda name: name.isNotNull()).cast("array<string>")
