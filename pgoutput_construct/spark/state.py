"""A table's current rows, rebuilt in Spark from its changes alone."""

from collections.abc import Callable, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.spark.components import connect
from pgoutput_construct.spark.counted import CountedRows
from pgoutput_construct.spark.keyed import KeyedRows
from pgoutput_construct.spark.replay import replayed
from pgoutput_construct.spark.schemas import CHANGE, column
from pgoutput_construct.stream.rows import OPERATIONS
from pgoutput_construct.wire.messages import Delete, Insert
from pgoutput_construct.wire.protocol import RelationReplicaIdentity

__all__ = ["current_state", "rebuilt"]

_CAME, _GONE = OPERATIONS[Insert], OPERATIONS[Delete]
_WHERE: Final = ("_op", "_commit_lsn", "_seq", "_shape")


def current_state(
    changes: DataFrame, key_columns: Sequence[str], replica_identity: str, columns: Sequence[str] | None = None
) -> DataFrame:
    """Return the rows that a table has after all changes: its columns, and ``_untyped`` as in the changes.

    ``changes`` is as ``OpenLog.changes`` gives it (or read back from Parquet: it is read more than once).
    ``key_columns`` are the columns of the replica identity, ``replica_identity`` is as relreplident in pg_class;
    ``columns`` are the columns that the table has now, None for all.

    With a key, each row is followed from key to key, and a TOASTed value that was not sent is the one the row had.
    With the full row as identity rows are counted: equal rows may be there several times. Without any there are
    inserts alone. Every change counts, and the changes must hold the table from its first row: a delete of a row that
    never came does nothing, an update of one makes an action fail when it leaves a value open. ``OpenLog.state``
    knows more: copies of the table, changes of its columns and of its replica identity.
    """
    own = [name for name in changes.columns if name not in CHANGE]
    names = own if columns is None else columns
    events = changes.withColumn("_shape", F.lit(0))
    return rebuilt(events, key_columns, replica_identity, names, [frozenset(own)]).drop("_shape")


def rebuilt(
    events: DataFrame,
    key_columns: Sequence[str],
    replica_identity: str,
    columns: Sequence[str],
    shapes: Sequence[frozenset[str]],
) -> DataFrame:
    """Return the rows that are left of changes, as ``current_state`` does, and of each its ``_shape``.

    That of an event says which of ``shapes``, columns by name, it was described with.
    """
    events, names = _after_truncate(events), list(columns)
    if replica_identity == RelationReplicaIdentity.FULL:
        rows = _counted(events, names, shapes)
    elif key_columns:
        rows = _followed(events, names, list(key_columns))
    else:
        rows = events.select(*(_pair(name).alias(f"c{index}") for index, name in enumerate(names)), "_shape")
    return _unpacked(rows, names)


def _after_truncate(changes: DataFrame) -> DataFrame:
    """Leave out what precedes the last truncate, and truncates."""
    place = F.struct("_commit_lsn", "_seq")
    last = changes.where(F.col("_op") == "truncate").agg(F.max(place).alias("_last"))
    others = changes.where(F.col("_op") != "truncate").crossJoin(F.broadcast(last))
    return others.where(F.col("_last").isNull() | (place > F.col("_last"))).drop("_last")


def _pair(name: str, prefix: tuple[str, ...] = ()) -> Column:
    """A value and its text in ``_untyped``: together they say what it is, whatever its type can hold."""
    text = F.col("_untyped")[F.lit(".".join((*prefix, name)))]
    return F.struct(column(*prefix, name).alias("v"), text.alias("t"))


def _new(name: str) -> Column:
    """The new row's value; from the old row when it was not sent but the old row was (keys, full rows)."""
    return F.when(_is_unchanged(name) & F.col("_before").isNotNull(), _pair(name, ("_before",))).otherwise(_pair(name))


def _is_unchanged(name: str) -> Column:
    return F.array_contains("_unchanged", name)


def _followed(events: DataFrame, names: list[str], keys: list[str]) -> DataFrame:
    """Return the rows that are left where each has a key."""
    places = {name: index for index, name in enumerate(names)}
    return replayed(_keyed(events, names, keys), _places(names), lambda: KeyedRows(places))


def _places(names: Sequence[str]) -> list[str]:
    return [f"c{index}" for index in range(len(names))]


def _keyed(events: DataFrame, names: list[str], keys: list[str]) -> DataFrame:
    """Return events with ``_old`` and ``_new`` keys, columns as pairs, and ``_component``: rows that share keys."""
    kinds = {field.name: field.dataType for field in events.schema}
    old = _key([_pair(name, ("_before",)) for name in keys], [kinds[name] for name in keys])
    new = _key([_new(name) for name in keys], [kinds[name] for name in keys])
    new = F.when(F.col("_op") != "delete", new)
    columns = [_new(name) if name in keys else _pair(name) for name in names]
    keyed = events.select(
        *_WHERE,
        F.coalesce(F.when(F.col("_before").isNotNull(), old), new).alias("_old"),
        new.alias("_new"),
        F.array_except("_unchanged", F.array(*map(F.lit, keys))).alias("_unchanged"),
        *(pair.alias(f"c{index}") for index, pair in enumerate(columns)),
    )
    labels = connect(keyed.where("_old != _new").select("_old", "_new"))
    joined = keyed.join(labels, keyed["_old"] == labels["_key"], "left")
    return joined.withColumn("_component", F.coalesce("_label", "_old")).drop("_key", "_label")


def _key(pairs: list[Column], kinds: list[T.DataType]) -> Column:
    """Return a key as an array of texts: it can be compared and hashed, whatever its types."""
    parts = [part for pair, kind in zip(pairs, kinds, strict=True) for part in (_text(pair["v"], kind), pair["t"])]
    return F.array(*parts).cast("array<string>")


def _text(value: Column, kind: T.DataType) -> Column:
    if isinstance(kind, T.ArrayType):
        return F.to_json(F.transform(value, lambda item: _text(item, kind.elementType)))
    return _TEXTS.get(type(kind), _cast)(value)


def _cast(value: Column) -> Column:
    return value.cast("string")


_TEXTS: Final[dict[type[T.DataType], Callable[[Column], Column]]] = {
    T.BinaryType: F.hex,
    # As a number: the session's time zone may write two moments of an autumn night alike.
    T.TimestampType: lambda value: _cast(F.unix_micros(value)),
}
"""Texts that tell any two values apart, where a cast to string would not."""


def _counted(events: DataFrame, names: list[str], shapes: Sequence[frozenset[str]]) -> DataFrame:
    """Return the rows that are left where equal ones are counted: an update takes one away, and adds another."""
    own = [field.name for field in events.schema if field.name not in (*CHANGE, "_shape")]
    new = _new if own else _pair
    came = events.where(~F.col("_op").isin(_GONE))
    gone = events.where("_before IS NOT NULL" if own else F.col("_op") != _CAME)
    parts = _counting(came, own, names, shapes, new, _CAME).unionAll(
        _counting(gone, own, names, shapes, lambda name: _pair(name, ("_before",)), _GONE)
    )
    positions = [frozenset(place for place, name in enumerate(own) if name in shape) for shape in shapes]
    return replayed(parts, _places(names), lambda: CountedRows(positions))


def _counting(
    events: DataFrame,
    own: list[str],
    names: list[str],
    shapes: Sequence[frozenset[str]],
    value: Callable[[str], Column],
    op: str,
) -> DataFrame:
    """Return one side of changes: the rows that came, or those that went."""
    kinds = {field.name: field.dataType for field in events.schema}
    row = _key([value(name) for name in own], [kinds[name] for name in own])
    shared = [name for name in own if all(name in shape for shape in shapes)]
    component = _key([value(name) for name in shared], [kinds[name] for name in shared])
    nothing = F.lit(None).cast("array<string>")
    sides = {"_old": nothing, "_new": row} if op == _CAME else {"_old": row, "_new": nothing}
    return events.select(
        F.lit(op).alias("_op"),
        *_WHERE[1:],
        component.alias("_component"),
        *(side.alias(name) for name, side in sides.items()),
        nothing.alias("_unchanged"),
        *(value(name).alias(place) for name, place in zip(names, _places(names), strict=True)),
    )


def _unpacked(rows: DataFrame, names: list[str]) -> DataFrame:
    """Take the pairs apart: typed columns, and the map of what they cannot hold."""
    texts = [part for index, name in enumerate(names) for part in (F.lit(name), F.col(f"c{index}.t"))]
    untyped = F.map_filter(F.create_map(*texts).cast("map<string,string>"), lambda _, text: text.isNotNull())
    columns = [F.col(f"c{index}.v").alias(name) for index, name in enumerate(names)]
    return rows.select(*columns, F.when(F.size(untyped) > 0, untyped).alias("_untyped"), "_shape")
