"""Every row that a table ever had, with the times between which it was so: slowly changing dimensions of type 2."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.spark.schemas import column
from pgoutput_construct.spark.survey import BEFORE_ALL, Seen, survey
from pgoutput_construct.spark.tables import Table
from pgoutput_construct.spark.values import BEFORE, NEW, Side
from pgoutput_construct.stream.rows import OPERATIONS, SNAPSHOT
from pgoutput_construct.wire.messages import Delete, Insert, Truncate, Update
from pgoutput_construct.wire.protocol import RelationReplicaIdentity

__all__ = ["HISTORY", "history"]

HISTORY: Final = ("_untyped", "_op", "_commit_lsn", "_seq", "_unchanged", "_valid_from", "_valid_to", "_ended_by")
"""The columns of a history besides the table's own.

``_op`` made the row, at ``_commit_lsn`` and ``_seq``; ``_valid_from`` is the time of that commit, null for rows that
were copied. ``_valid_to`` is the time of the commit that ended it, ``_ended_by`` what did: update, delete, truncate, or
snapshot (the table was copied again, and changed behind the log's back); both are null while it is so. ``_unchanged``
are columns whose value nobody said: of a row whose key changed, TOASTed values that the update did not send; null for
none.
"""

_WITH_ROW: Final = (OPERATIONS[Insert], OPERATIONS[Update])
_PLACE: Final = ("_commit_lsn", "_seq")
_ORDER: Final = ("_step", *_PLACE)


def history(
    before: DataFrame | None, changes: DataFrame, table: Table, begins: bool, seen: Seen | None = None
) -> DataFrame:
    """Return the rows that are new in a table's history, and those of before that have ended since: of HISTORY.

    ``before`` is the history, None for none. ``changes`` are those since that count, copied rows as inserts before all.
    ``begins`` says that the table begins anew with them: all rows of before have ended. ``seen`` is what is known of
    the changes already. A row is known by its ``_commit_lsn`` and ``_seq``.
    """
    found = survey(changes, seen=seen)
    entries = _came(changes, table).unionByName(_gone(changes, table), allowMissingColumns=True)
    if before is not None:
        entries = entries.unionByName(_open(before, table), allowMissingColumns=True)
    ended = _ended(_counted(entries, table), _truncates(changes) if found.truncated else [], begins)
    rows = _filled(ended, [name for name in table.current if name in found.unsent]).where("_is_row")
    new = rows.where(~F.col("_is_open") | F.col("_ended_by").isNotNull())
    return new.select(*map(column, table.current), *HISTORY)


def _came(changes: DataFrame, table: Table) -> DataFrame:
    """Return the new rows of changes."""
    is_copied, lsn = F.col("_commit_lsn") == BEFORE_ALL, F.col("_commit_lsn")
    snapshot = F.lit(int(table.base.copy.snapshot.lsn) if table.base else 0).cast("bigint")
    keys, rows = _keys(table), changes.where(F.col("_op").isin(*_WITH_ROW))
    texts = F.map_filter("_untyped", lambda name, _: ~name.startswith("_before."))
    return rows.select(
        *(_new(name)["v"].alias(name) for name in table.current),
        F.when(F.size(texts) > 0, texts).alias("_untyped"),
        F.when(is_copied, F.lit(SNAPSHOT)).otherwise(F.col("_op")).alias("_op"),
        F.when(is_copied, snapshot).otherwise(lsn).alias("_commit_lsn"),
        "_seq",
        F.array_except(_names("_unchanged"), F.array(*map(F.lit, keys)).cast("array<string>")).alias("_unchanged"),
        F.col("_commit_time").alias("_valid_from"),
        _key([_new(name) for name in keys]).alias("_k"),
        *_kind(row=True, opened=False),
        (~is_copied).cast("int").alias("_step"),
    )


def _gone(changes: DataFrame, table: Table) -> DataFrame:
    """Return the old rows of changes that left no row, or one with another key."""
    keys = _keys(table)
    old, new = _key([_pair(BEFORE, name) for name in keys]), _key([_new(name) for name in keys])
    rows = changes.where(F.col("_before").isNotNull() & ((F.col("_op") == OPERATIONS[Delete]) | (old != new)))
    time, step = F.col("_commit_time").alias("_valid_from"), F.lit(1).alias("_step")
    return rows.select("_op", "_commit_lsn", "_seq", time, old.alias("_k"), *_kind(row=False, opened=False), step)


def _open(before: DataFrame, table: Table) -> DataFrame:
    """Return the rows of a history that had not ended; columns that came since are null in them."""
    rows = before.where(F.col("_ended_by").isNull())
    for name in table.current:
        if name not in before.columns:
            rows = rows.withColumn(name, F.lit(None))
    return rows.select(
        *map(column, table.current),
        *("_untyped", "_op", "_commit_lsn", "_seq", "_valid_from"),
        _names("_unchanged").alias("_unchanged"),
        _key([_pair(NEW, name) for name in _keys(table)]).alias("_k"),
        *_kind(row=True, opened=True),
        F.lit(-1).alias("_step"),
    )


def _counted(entries: DataFrame, table: Table) -> DataFrame:
    """Tell equal rows apart where the full row is the key: the first that goes is the first that came."""
    if table.replica_identity != RelationReplicaIdentity.FULL:
        return entries
    order = Window.partitionBy("_k", "_is_row").orderBy(*_ORDER)
    return entries.withColumn("_k", F.to_json(F.struct("_k", F.row_number().over(order).alias("n"))))


def _ended(entries: DataFrame, truncates: Sequence[Row], begins: bool) -> DataFrame:
    """Add ``_valid_to`` and ``_ended_by``, by what came next under the same key, or emptied the table."""
    here = F.struct("_step", "_commit_lsn", "_seq")
    this = F.struct("_step", "_commit_lsn", "_seq", F.col("_valid_from").alias("time"), F.col("_op").alias("by"))
    following = F.lead(this).over(Window.partitionBy("_k").orderBy(*_ORDER))
    for row in truncates:
        place = [F.lit(1).alias("_step"), *(F.lit(row[name]).cast("bigint").alias(name) for name in _PLACE)]
        emptied = F.struct(*place, F.lit(row["_commit_time"]).alias("time"), F.lit(row["_op"]).alias("by"))
        following = F.when(here < F.struct(*place), F.least(following, emptied)).otherwise(following)
    found = entries.withColumn("_next", following)
    anew = F.col("_is_open") & F.lit(begins)
    return found.withColumns(
        {
            "_valid_to": F.when(~anew, F.col("_next.time")),
            "_ended_by": F.when(anew, F.lit(SNAPSHOT)).otherwise(F.col("_next.by")),
        }
    )


def _truncates(changes: DataFrame) -> list[Row]:
    """Return where tables were emptied; few."""
    rows = changes.where(F.col("_op") == OPERATIONS[Truncate]).select("_op", *_PLACE, "_commit_time")
    return sorted(rows.collect(), key=lambda row: (row["_commit_lsn"], row["_seq"]))


def _filled(entries: DataFrame, unsent: Sequence[str]) -> DataFrame:
    """Put in the values that updates did not send: those of the row before under the same key."""
    left = F.col("_unchanged")
    if unsent:
        run = F.count(F.when(~F.col("_is_row"), 1)).over(Window.partitionBy("_k").orderBy(*_ORDER))
        order = Window.partitionBy("_k", "_run").orderBy(*_ORDER)
        known = [F.last(_said(name), ignorenulls=True).over(order) for name in unsent]
        entries = entries.withColumn("_run", run)
        entries = entries.select("*", *(pair.alias(f"_p{number}") for number, pair in enumerate(known)))
        found = [F.when(F.col(f"_p{number}").isNotNull(), F.lit(name)) for number, name in enumerate(unsent)]
        left = F.array_except(left, F.array_compact(F.array(*found)))
        entries = _with_values(entries, unsent)
    return entries.withColumn("_unchanged", F.when(F.size(left) > 0, left))


def _said(name: str) -> Column:
    """Return a value of a row, with its text; null where nobody said it."""
    return F.when(F.col("_is_row") & ~F.array_contains("_unchanged", name), _pair(NEW, name))


def _with_values(entries: DataFrame, unsent: Sequence[str]) -> DataFrame:
    texts = [part for number, name in enumerate(unsent) for part in (F.lit(name), F.col(f"_p{number}.t"))]
    nothing = F.create_map().cast("map<string,string>")
    sent = F.map_filter(F.coalesce("_untyped", nothing), lambda name, _: ~name.isin(list(unsent)))
    both = F.map_concat(
        sent, F.map_filter(F.create_map(*texts).cast("map<string,string>"), lambda _, text: text.isNotNull())
    )
    values = {name: F.col(f"_p{number}.v") for number, name in enumerate(unsent)}
    return entries.withColumns({**values, "_untyped": F.when(F.size(both) > 0, both)})


def _keys(table: Table) -> tuple[str, ...]:
    return table.current if table.replica_identity == RelationReplicaIdentity.FULL else table.key_columns


def _pair(side: Side, name: str) -> Column:
    return F.struct(side.value(name).alias("v"), side.text(name).alias("t"))


def _new(name: str) -> Column:
    """Return a value of the new row, with its text; one that was not sent may be in the old one."""
    is_before = F.coalesce(F.array_contains("_unchanged", name), F.lit(False)) & F.col("_before").isNotNull()
    return F.when(is_before, _pair(BEFORE, name)).otherwise(_pair(NEW, name))


def _key(pairs: Sequence[Column]) -> Column:
    """Return what tells rows apart, as text; without a key, where they stand."""
    parts = [part for pair in pairs for part in (pair["v"], pair["t"])] or [F.col(name) for name in _PLACE]
    return F.to_json(F.struct(*(part.alias(f"c{number}") for number, part in enumerate(parts))))


def _kind(row: bool, opened: bool) -> tuple[Column, Column]:
    return F.lit(row).alias("_is_row"), F.lit(opened).alias("_is_open")


def _names(name: str) -> Column:
    return F.coalesce(F.col(name), F.array().cast("array<string>"))
