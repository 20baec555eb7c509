"""What a change of a table is in Spark: its columns, where it stands, its rows, and what is known of many."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.columnar import UNTYPED, rows_schema
from pgoutput_construct.spark.equality import exact
from pgoutput_construct.spark.execution import plain_errors
from pgoutput_construct.spark.replicated_tables import Place
from pgoutput_construct.stream.rows import OPERATIONS
from pgoutput_construct.wire.messages import Delete, Insert, Truncate

__all__ = [
    "BEFORE",
    "BEFORE_ALL",
    "CAME",
    "CARRIED",
    "CHANGE",
    "CHANGED",
    "COMPONENT",
    "EMPTIED",
    "EPOCH",
    "GONE",
    "LINK",
    "NEW",
    "ORIGIN",
    "PLACE",
    "ROOT",
    "SENT",
    "SHAPE",
    "SIDE",
    "STORED",
    "TAKEN",
    "TURN",
    "WORK",
    "Seen",
    "Side",
    "Survey",
    "Texts",
    "after",
    "at_place",
    "changes_schema",
    "column",
    "is_unsent",
    "joined_texts",
    "moves",
    "place",
    "quoted",
    "survey",
    "texts",
    "texts_within",
    "untyped_array",
    "untyped_of",
]

CHANGE: Final = (
    *("_op", "_commit_lsn", "_seq", "_commit_time", "_xid", "_before", "_unchanged", "_untyped", "_relation_oid"),
)
"""The columns that a change has besides the table's own."""
SHAPE: Final = "__shape"
"""The column that says which columns a change was described with."""
TURN, SIDE, EPOCH, COMPONENT = "__turn", "__side", "__epoch", "__component"
"""Columns of changes that are replayed: when, one of STORED and so on; which of a change's rows; how many truncates
come before; and what all changes of rows that may be the same have in common."""
LINK, ORIGIN, ROOT = "__link", "__origin", "__root"
"""Columns of changes that keys change by: which of those that leave values out one is; by which of these the row came
that stands under the key; and under which key the row that has them stood before all changes."""
TAKEN, SENT = "__taken", "__sent"
"""What such a change takes along from the row that it finds, and which of its columns get their values from there."""
STORED, CARRIED, CHANGED = 0, 1, 2
"""Rows before all changes, rows that an earlier part of these changes made, and changes."""
WORK: Final = (SHAPE, TURN, SIDE, EPOCH, COMPONENT, LINK, ORIGIN, ROOT, TAKEN, SENT, "__left", "__given")
"""Columns that stand next to the table's own while a state is rebuilt."""
CAME, GONE, EMPTIED = (OPERATIONS[cls] for cls in (Insert, Delete, Truncate))

PLACE: Final = ("_commit_lsn", "_seq")
"""The columns that say where a change stands."""
BEFORE_ALL: Final = -1
"""The ``_commit_lsn`` of rows of a copy: they stand before all changes that count."""
_BITS: Final = 62
"""Columns that one number says something of."""
_FEW: Final = 200_000
"""Changes whose keys are sent to all executors."""


def quoted(name: str) -> str:
    """Return a name as Spark's SQL has it: dots and backticks mean themselves."""
    return "`" + name.replace("`", "``") + "`"


def column(*path: str) -> Column:
    """Return a column (or a field of a struct) by its name as it is."""
    return F.col(".".join(map(quoted, path)))


def changes_schema(columns: pa.Schema) -> pa.Schema:
    """Return the schema of a table's changes: its columns, then those of ``CHANGE``.

    ``_op`` is one of OPS, such as insert; ``_commit_lsn``, ``_seq`` and ``_xid`` are bigint; ``_commit_time``
    is null outside the years 1 to 9999; ``_untyped`` is what the columns' types cannot hold (pgtypes/arrow_types.py);
    ``_relation_oid`` (bigint) is the table of the change, among those that had its name.
    """
    rows = {field.name: field for field in rows_schema(columns)}
    places = {name: pa.field(name, pa.int64()) for name in ("_commit_lsn", "_seq", "_xid", "_relation_oid")}
    places["_commit_time"] = pa.field("_commit_time", pa.timestamp("us", tz="UTC"))
    return pa.schema([*columns, *((rows | places)[name] for name in CHANGE if name in rows | places)])


def place() -> Column:
    """Return where a change stands, for comparisons."""
    return F.struct(*PLACE)


def at_place(found: Place) -> Column:
    """Return a place that ``place()`` can be compared with."""
    commit_lsn, seq = (F.lit(number).cast("bigint") for number in found)
    return F.struct(commit_lsn.alias("_commit_lsn"), seq.alias("_seq"))


@dataclass(frozen=True)
class Side:
    """The new row of a change, or the one in ``_before``."""

    prefix: tuple[str, ...] = ()

    def value(self, name: str) -> Column:
        """Return a column of the row, as its type holds it."""
        return column(*self.prefix, name)

    def text(self, name: str) -> Column:
        """Return the text of what the column's type cannot hold, null where it can."""
        return F.col("_untyped")[F.lit(".".join((*self.prefix, name)))]


NEW: Final = Side()
BEFORE: Final = Side(("_before",))


def is_unsent(name: str) -> Column:
    """Return whether an update left a column out."""
    return F.coalesce(F.array_contains("_unchanged", name), F.lit(False))


def moves(changes: DataFrame, key_columns: Sequence[str]) -> Column:
    """Return whether a change gave its row another key, as an update may; one that was left out is the same."""
    same = F.lit(True)
    for name in key_columns:
        kind = changes.schema[name].dataType
        old, new = (exact(side.value(name), kind) for side in (BEFORE, NEW))
        same &= is_unsent(name) | (old.eqNullSafe(new) & BEFORE.text(name).eqNullSafe(NEW.text(name)))
    has_new = ~F.col("_op").isin(GONE, EMPTIED)
    return has_new & F.col("_before").isNotNull() & ~same


def texts(parts: Sequence[Column]) -> Column:
    """Return texts as an array, null where all of them are."""
    found = F.array(*parts).cast("array<string>")
    return F.when(F.exists(found, lambda text: text.isNotNull()), found)


def untyped_of(found: Mapping[str, Column]) -> Column:
    """Return the map of the texts that are not null, by column; null for none."""
    if not found:
        return F.lit(None).cast("map<string,string>")
    entries = [part for name, text in found.items() for part in (F.lit(name), text)]
    untyped = F.map_filter(F.create_map(*entries).cast("map<string,string>"), lambda _, text: text.isNotNull())
    return F.when(F.coalesce(*found.values()).isNotNull(), untyped)


def joined_texts(*maps: Column) -> Column:
    """Return maps such as ``_untyped``, of which any may be null, as one; null for none."""
    nothing = F.create_map().cast("map<string,string>")
    both = F.map_concat(*(F.coalesce(each, nothing) for each in maps))
    return F.when(F.size(both) > 0, both)


def texts_within(names: Collection[str], untyped: Column | None = None) -> Column:
    """Return of ``_untyped`` the texts of some columns; null for none."""
    given = F.col("_untyped") if untyped is None else untyped
    return joined_texts(F.map_filter(given, lambda name, _: name.isin(list(names))))


class Texts:
    """``_untyped`` of rows in Arrow."""

    def __init__(self, untyped: pa.ChunkedArray) -> None:
        self._untyped = untyped.combine_chunks()

    @cached_property
    def names(self) -> frozenset[str]:
        """All names that some row may have."""
        return frozenset(pc.unique(self._untyped.keys).to_pylist())

    def of(self, name: str) -> pa.Array:
        """Return the text of each row, null where it has none."""
        if name not in self.names:
            return pa.nulls(len(self._untyped), pa.string())
        return pc.map_lookup(self._untyped, name, "first")


def untyped_array(texts: Mapping[str, pa.Array], rows: int) -> pa.Array:
    """Return the map of the texts that are not null, by column; null for none."""
    if not texts:
        return pa.nulls(rows, UNTYPED)
    has = np.stack([text.is_valid().to_numpy(zero_copy_only=False) for text in texts.values()], axis=1)
    row, column = np.nonzero(has)
    names = pa.array(texts, pa.string()).take(pa.array(column))
    values = pa.concat_arrays([text.cast(pa.string()) for text in texts.values()]).take(pa.array(column * rows + row))
    counts = has.sum(axis=1)
    offsets = np.append(0, np.cumsum(counts)).astype(np.int32)
    # A null among the offsets is a null among the maps.
    starts = pa.array(offsets, mask=np.append(counts == 0, False))
    return pa.MapArray.from_arrays(starts, names, values)


class Survey(NamedTuple):
    """What changes have in them; of those before the last truncate too, except for their number."""

    changes: int
    """How many there are."""
    truncated: Place | None
    """Where the last truncate stands: whatever was there before is gone."""
    unsent: frozenset[str]
    """Columns that some update left out, as TOASTed values that it did not change."""
    moved: bool
    """Whether some row's key changed."""
    chained: bool
    """Whether one of these updates left values out, too: they are to be found under the key before it."""
    untyped: bool
    """Whether ``_untyped`` has anything."""

    def few(self, touched: DataFrame) -> DataFrame:
        """Return what the changes touch as rows before are joined with it: sent to all executors where it is small.

        The rows before stay where they are then. Spark does not know how large a leaf of a plan is.
        """
        return F.broadcast(touched) if self.changes <= _FEW else touched


class Seen(NamedTuple):
    """What changes have in them at most, told by who has read them: of some of them no more need be true."""

    changes: int
    """How many there are."""
    truncates: bool
    """Whether a truncate is among them."""
    unsent: frozenset[str]
    """Columns that some update left out."""
    moved: bool
    """Whether some update has an old row, or key."""
    chained: bool
    """Whether one of these left values out, too."""
    untyped: bool
    """Whether ``_untyped`` has anything."""


def survey(
    changes: DataFrame, key_columns: Sequence[str] = (), columns: Sequence[str] = (), seen: Seen | None = None
) -> Survey:
    """Find what decides how ``changes`` of a table with a key are applied, and to its ``columns``.

    What was ``seen`` of them is enough unless there is a truncate; else few of their columns are read, once. Without
    a key it is whether there is a truncate.
    """
    if seen is not None and not seen.truncates:
        return Survey(seen.changes, None, *seen[2:])
    return _read(changes, key_columns, columns)


def _read(changes: DataFrame, key_columns: Sequence[str], columns: Sequence[str]) -> Survey:
    others = F.array(*(F.lit(name) for name in columns if name not in key_columns)).cast("array<string>")
    left_out, own = F.size("_unchanged") > 0, [name for name in changes.columns if name not in (*CHANGE, SHAPE)]
    parts = [own[begin : begin + _BITS] for begin in range(0, len(own), _BITS)]
    moved = moves(changes, key_columns) if key_columns else F.lit(False)
    with plain_errors():
        (row,) = changes.agg(
            F.count("*").alias("changes"),
            F.max(F.when(F.col("_op") == EMPTIED, place())).alias("truncated"),
            *(F.bit_or(F.when(left_out, _bits(part))).alias(f"unsent{place}") for place, part in enumerate(parts)),
            F.max(moved).alias("moved"),
            F.max(moved & left_out & F.arrays_overlap("_unchanged", others)).alias("chained"),
            F.max(F.size("_untyped") > 0).alias("untyped"),
        ).collect()
    truncated = None if row["truncated"] is None else (row["truncated"][0], row["truncated"][1])
    said = [row[f"unsent{place}"] or 0 for place in range(len(parts))]
    found = frozenset(own[place] for place in range(len(own)) if said[place // _BITS] >> place % _BITS & 1)
    return Survey(row["changes"], truncated, found, *(bool(row[name]) for name in ("moved", "chained", "untyped")))


def _bits(names: Sequence[str]) -> Column:
    """Return which columns a change left out, one bit each: unlike sets of names, Spark generates code for these."""
    is_out = (F.array_contains("_unchanged", name) for name in names)
    bits = (F.when(each, F.lit(1 << place).cast("bigint")).otherwise(0) for place, each in enumerate(is_out))
    return reduce(add, bits)


def after(changes: DataFrame, truncated: Place | None) -> DataFrame:
    """Leave out what precedes the last truncate, and truncates."""
    return changes if truncated is None else changes.where(place() > at_place(truncated))
