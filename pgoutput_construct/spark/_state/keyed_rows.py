"""The rows of a table with a key, by Spark's own aggregation: net changes replace the rows before.

For each key the last change wins, and an unsent value is the last that was sent; neither needs an order of all changes.
What each change sent is paired with its position, and the greatest pair is the last. That is equal to the ordered
replay of ``intervals`` because a key has at most one row at a time, and rows under it come and go by turns: the number
of changes that found no row is the difference of both. Values that a row takes along from another key are put into the
changes first (``moved_values``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.spark._execution import as_leaf
from pgoutput_construct.spark._log_view.change_columns import (
    BEFORE,
    CHANGE,
    DELETE,
    INSERT,
    NEW,
    POSITION,
    ROOT,
    column,
    is_unsent,
    position,
    text_array,
    untyped_map,
)
from pgoutput_construct.spark._state.change_survey import ChangeSurvey, moves_key
from pgoutput_construct.spark._state.demands import Demand
from pgoutput_construct.spark._state.equality import exact_key, restored
from pgoutput_construct.spark._state.moved_values import leaves_open, with_moved_values
from pgoutput_construct.spark._state.row_replay import Replay


@dataclass(frozen=True)
class KeyedLayout:
    """The columns of frames of a table with a key: ``k0``, ``k1`` ... are the key, ``c0``, ``c1`` ... all columns.

    ``kt``, part of the key, has the texts of what the key's columns cannot hold; it exists only where some row has
    such.
    """

    names: tuple[str, ...]
    """The columns of the table."""
    keys: tuple[str, ...]
    """The columns of its key."""
    kinds: Mapping[str, T.DataType]
    """The types of its columns."""
    unsent: tuple[str, ...]
    """The columns, but those of the key, that some update did not send."""
    has_texts: bool
    """Whether ``_untyped`` is not null in some row."""
    has_unsent_keys: bool
    """Whether some update did not send a column of the key, which is in ``_before`` then."""

    @classmethod
    def from_changes(
        cls, changes: DataFrame, keys: Sequence[str], names: Sequence[str], found: ChangeSurvey
    ) -> "KeyedLayout":
        """Return the layout of a table that has the columns ``names`` now."""
        kinds = {field.name: field.dataType for field in changes.schema}
        unsent = tuple(name for name in names if name in found.unsent and name not in keys)
        return cls(tuple(names), tuple(keys), kinds, unsent, found.untyped, not found.unsent.isdisjoint(keys))

    @cached_property
    def key(self) -> tuple[str, ...]:
        """The columns of frames that make the key."""
        return (*(f"k{number}" for number in range(len(self.keys))), *(["kt"] if self.has_texts else []))

    @cached_property
    def sent(self) -> tuple[str, ...]:
        """The columns, but those of the key, that all changes sent."""
        return tuple(name for name in self.names if name not in self.keys and name not in self.unsent)

    def frame_name(self, name: str) -> str:
        """Return the name of a column in frames."""
        return f"c{self.names.index(name)}"

    def key_of(self, value: Callable[[str], Column], text: Callable[[str], Column]) -> list[Column]:
        """Return the key of a row, given functions that return its values, and its texts, by column."""
        parts = exact_key(value, {name: self.kinds[name] for name in self.keys})
        if self.has_texts:
            parts.append(self._texts(text, self.keys))
        return [part.alias(name) for part, name in zip(parts, self.key, strict=True)]

    @staticmethod
    def _texts(text: Callable[[str], Column], names: Sequence[str]) -> Column:
        return F.when(F.col("_untyped").isNotNull(), text_array([text(name) for name in names]))

    def key_values(self, prefix: str = "") -> dict[str, Column]:
        """Return the values of the key of a frame, or of a struct in it, by column."""
        found = zip(self.keys, self.key, strict=False)
        return {name: restored(F.col(prefix + key), self.kinds[name]) for name, key in found}

    def row_of(self) -> Column:
        """Return the values of the columns ``sent``, and their texts if there are any."""
        values = [NEW.value(name).alias(self.frame_name(name)) for name in self.sent]
        # Not as a map: Spark does not order maps.
        texts = [self._texts(NEW.text, self.sent).alias("_texts")] if self.has_texts else []
        return F.struct(*values, *texts, F.lit(True).alias("_is"))

    def pair_of(self, name: str) -> Column:
        """Return the position of a change, and a value and its text, which other rows may take."""
        text = NEW.text(name) if self.has_texts else F.lit(None).cast("string")
        return F.struct(*POSITION, NEW.value(name).alias("v"), text.alias("t"))

    def values(self) -> list[Column]:
        """Return the table's columns, from the key, ``_row`` and the pairs of ``unsent``."""
        return [self._value(name).alias(name) for name in self.names]

    def _value(self, name: str) -> Column:
        if name in self.keys:
            return self.key_values()[name]
        return F.col(f"{self.frame_name(name)}.v" if name in self.unsent else f"_row.{self.frame_name(name)}")

    def untyped(self) -> Column:
        """Return ``_untyped`` of these rows."""
        return untyped_map({name: self._value_text(name) for name in self.names} if self.has_texts else {})

    def _value_text(self, name: str) -> Column:
        if name in self.keys:
            return F.col("kt")[self.keys.index(name)]
        return (
            F.col(f"{self.frame_name(name)}.t") if name in self.unsent else F.col("_row._texts")[self.sent.index(name)]
        )


def net_by_key(changes: DataFrame, layout: KeyedLayout, found: ChangeSurvey) -> DataFrame:
    """Return the net changes of each key, as ``last_by_key`` does."""
    if found.chained and layout.unsent:
        replay = Replay(layout.names, layout.keys, tuple(name for name in layout.names if name in found.unsent))
        changes = with_moved_values(None, changes, replay, found, layout.key_of)
    return last_by_key(changes_by_key(changes, layout, found), layout)


def net_rows(net: DataFrame, layout: KeyedLayout) -> DataFrame:
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


def advance_keyed(
    before: DataFrame | None,
    changes: DataFrame,
    layout: KeyedLayout,
    found: ChangeSurvey,
    demand: Demand,
    is_small: bool,
) -> DataFrame:
    """Return the rows after changes: the columns, ``_untyped``, ``_commit_lsn`` and ``_seq``.

    Args:
        before: The rows before, with the same columns; None for none. Only those that changes touch are joined.
        changes: The changes.
        layout: The columns.
        found: What the changes contain.
        demand: What must be true; where it is not, an action fails.
        is_small: Whether ``before`` is so small that it is shuffled together with the changes.
    """
    if before is None or is_small:
        all_changes = changes if before is None else changes.unionByName(_as_inserts(before, changes))
        return _rows(net_by_key(all_changes, layout, found), layout, demand)
    net = as_leaf(net_by_key(changes, layout, found))  # it is joined with the rows before several times
    stored = before.select(
        F.struct(*map(column, layout.names), "_untyped", *POSITION).alias("_stored"),
        *layout.key_of(NEW.value, NEW.text),
    )
    untouched = stored.join(found.broadcast_if_few(_keys(net, layout, "")), _same(layout, ""), "left_anti")
    if demand.rows:
        there = stored.join(
            found.broadcast_if_few(_keys(net.where("_missing > 0"), layout, "")), _same(layout, ""), "left_semi"
        )
        net = _without_existing(net, there, layout)
    if layout.unsent:
        needed = stored.join(
            found.broadcast_if_few(_keys(net.where((F.size("_open") > 0) & ~F.col("_lost")), layout, "_was.")),
            _same(layout, ""),
            "left_semi",
        )
        net = _filled(net, needed, layout)
    return untouched.select("_stored.*").unionAll(_rows(net, layout, demand))


def _as_inserts(rows: DataFrame, changes: DataFrame) -> DataFrame:
    """Return rows as the inserts that created them, with all the columns of changes."""
    given = {"_op": F.lit(INSERT), **{name: F.col(name) for name in rows.columns if name in CHANGE}}
    names = [name for name in changes.columns if name not in rows.columns or name in CHANGE]
    kinds = {field.name: field.dataType for field in changes.schema}
    more = [given.get(name, F.lit(None)).cast(kinds[name]).alias(name) for name in names]
    return rows.select(*(column(name) for name in rows.columns if name not in CHANGE), *more)


def _keys(rows: DataFrame, layout: KeyedLayout, prefix: str, *others: str | Column) -> DataFrame:
    """Return keys under names of their own, and other columns."""
    return rows.select(*(F.col(prefix + name).alias(f"net_{name}") for name in layout.key), *others)


def _same(layout: KeyedLayout, prefix: str) -> Column:
    """Return whether a key equals one of ``_keys``."""
    pairs = [(F.col(prefix + name), F.col(f"net_{name}")) for name in layout.key]
    return reduce(and_, (a.eqNullSafe(b) if layout.has_texts else a == b for a, b in pairs))


def _rows(net: DataFrame, layout: KeyedLayout, demand: Demand) -> DataFrame:
    key, is_row = _shown_key(layout), F.col("_row").isNotNull()
    if demand.rows:
        is_row = F.when(F.col("_missing") > 0, demand.refuse_row(F.col("_position"), key)).otherwise(is_row)
    if demand.values and layout.unsent:
        refused = demand.refuse_value(F.col("_position"), key, F.col("_open")[0])
        is_row = F.when(F.col("_row").isNotNull() & (F.size("_open") > 0), refused).otherwise(is_row)
    return net.where(is_row).select(*_values(layout))


def _values(layout: KeyedLayout) -> list[Column]:
    return [*layout.values(), layout.untyped().alias("_untyped"), *(F.col(f"_position.{part}") for part in POSITION)]


def _filled(net: DataFrame, needed: DataFrame, layout: KeyedLayout) -> DataFrame:
    """Fill the open values of net changes from the rows that they are of."""
    joined = net.join(_keys(needed, layout, "", "_stored"), _same(layout, "_was."), "left")
    is_found, filled = F.col("_stored").isNotNull() & ~F.col("_lost"), dict[str, Column]()
    for name in layout.unsent:
        text = F.col("_stored._untyped")[F.lit(name)] if layout.has_texts else F.lit(None).cast("string")
        value = F.struct(column("_stored", name).alias("v"), text.alias("t"))
        is_open = F.array_contains("_open", name) & is_found
        filled[layout.frame_name(name)] = F.when(is_open, value).otherwise(F.col(layout.frame_name(name)))
    still = F.when(is_found, F.array().cast("array<string>")).otherwise(F.col("_open"))
    return joined.withColumns({**filled, "_open": still})


def _without_existing(net: DataFrame, there: DataFrame, layout: KeyedLayout) -> DataFrame:
    """Decrement ``_missing`` where the row already existed."""
    keys = _keys(there, layout, "", F.lit(1).alias("_there"))
    joined = net.join(keys, _same(layout, ""), "left")
    found = joined.withColumn("_missing", F.col("_missing") - F.coalesce("_there", F.lit(0)))
    return found.select(*net.columns)


def _shown_key(layout: KeyedLayout) -> Column:
    return F.to_json(F.struct(*(value.alias(name) for name, value in layout.key_values().items())))


def changes_by_key(changes: DataFrame, layout: KeyedLayout, found: ChangeSurvey) -> DataFrame:
    """Return changes by the key that they touch: the key, ``_now``, ``_since`` and pairs.

    Each of the last begins with the position of the change, so that the greatest is the last. ``_now`` has the
    ``_row``, null for a delete; ``_since`` is null for all but a delete; a pair is null unless the change sent the
    value. An update of the key occurs twice, once as the delete of the old key. ``_step`` is 1 where a row comes under
    its key, -1 where it goes. An update that ``with_moved_values`` could not fill has a ``_since``, too, with its
    ``__root``.
    """
    moved, left = F.lit(False), F.lit(False)
    changes = _narrowed(changes, layout)
    if found.moved:
        moved, left = moves_key(changes, layout.keys), F.col("__left")
        once, twice = F.array(F.lit(False)), F.array(F.lit(False), F.lit(True))
        changes = changes.withColumn("__left", F.explode(F.when(moved, twice).otherwise(once)))
    is_delete = (F.col("_op") == DELETE) | left
    return changes.select(
        *_key(layout, is_delete),
        F.struct(*POSITION, F.when(~is_delete, layout.row_of()).alias("_row")).alias("_now"),
        *(
            F.when(~is_delete & ~is_unsent(name), layout.pair_of(name)).alias(layout.frame_name(name))
            for name in layout.unsent
        ),
        _since(changes, layout, is_delete, moved).alias("_since"),
        F.when(is_delete, -1).when((F.col("_op") == INSERT) | moved, 1).otherwise(0).alias("_step"),
    )


def _since(changes: DataFrame, layout: KeyedLayout, is_delete: Column, moved: Column) -> Column:
    """Return from which position on a key has none of the values that it had before."""
    if ROOT not in changes.columns:
        return F.when(is_delete, position())
    nothing = F.lit(None).cast(changes.schema[ROOT].dataType).alias(ROOT)
    came = F.when(moved & leaves_open(layout.unsent), F.struct(*POSITION, ROOT))
    return F.when(is_delete, F.struct(*POSITION, nothing)).otherwise(came)


def _narrowed(changes: DataFrame, layout: KeyedLayout) -> DataFrame:
    """Reduce ``_before`` to the key: Parquet then reads no other column of it."""
    old = F.struct(*(BEFORE.value(name).alias(name) for name in layout.keys))
    return changes.withColumn("_before", F.when(F.col("_before").isNotNull(), old))


def _key(layout: KeyedLayout, is_delete: Column) -> list[Column]:
    """Return the key that a change touches; an unsent column of it is in ``_before``."""

    def of_side(name: str, value: Column, before: Column) -> Column:
        is_before = (
            is_delete | (is_unsent(name) & F.col("_before").isNotNull()) if layout.has_unsent_keys else is_delete
        )
        return F.when(is_before, before).otherwise(value)

    return layout.key_of(
        lambda name: of_side(name, NEW.value(name), BEFORE.value(name)),
        lambda name: of_side(name, NEW.text(name), BEFORE.text(name)),
    )


def last_by_key(touched: DataFrame, layout: KeyedLayout) -> DataFrame:
    """Return one row a key: its ``_row``, null after a delete, pairs, and the position of its last change.

    ``_open`` are the columns that no change has sent, of the row under the key ``_was``: the key in the table before
    the changes. With ``_lost`` no row can have had it. ``_missing`` is how many changes found no row under their key;
    the first of them may have found one in the table before.
    """
    pairs, has_root = [layout.frame_name(name) for name in layout.unsent], ROOT in touched.select("_since.*").columns
    root, is_since = F.col(f"_since.{ROOT}"), F.col("_since").isNotNull() if pairs else F.lit(False)
    key = F.struct(*layout.key)
    last = touched.groupBy(*layout.key).agg(
        F.max("_now").alias("_last"),
        *(F.max(pair).alias(pair) for pair in pairs),
        *([F.max("_since").alias("_since")] if pairs else []),
        F.sum("_step").alias("_steps"),
    )
    return last.select(
        *layout.key,
        "_last._row",
        F.struct(*(f"_last.{part}" for part in POSITION)).alias("_position"),
        # What was sent before the row came under this key is another row's value.
        *(F.when(~_is_open(pair), F.struct(f"{pair}.v", f"{pair}.t")).alias(pair) for pair in pairs),
        _open(layout).alias("_open"),
        (F.coalesce(root, key) if has_root else key).alias("_was"),
        (is_since & root.isNull() if has_root else is_since).alias("_lost"),
        _missing().alias("_missing"),
    )


def _missing() -> Column:
    # Rows come and go by turns: where more went than came, some did not exist.
    return F.when(F.col("_last._row").isNotNull(), 1).otherwise(0) - F.col("_steps")


def _open(layout: KeyedLayout) -> Column:
    found = []
    for name in layout.unsent:
        is_open = _is_open(layout.frame_name(name))
        found.append(F.when(is_open & F.col("_last._row").isNotNull(), F.lit(name)))
    return F.filter(F.array(*found), lambda name: name.isNotNull()).cast("array<string>")


def _is_open(pair: str) -> Column:
    """Return whether no change has sent the value of ``pair`` since the row came under its key."""
    sent, since = (F.struct(*(f"{name}.{part}" for part in POSITION)) for name in (pair, "_since"))
    return F.col(pair).isNull() | F.coalesce(sent < since, F.lit(False))
