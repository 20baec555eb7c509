"""Unsent TOASTed values of rows whose keys change: found before the replay, so that each key can be replayed by itself.

An update that does not change a TOASTed value does not send it (``logicalrep_write_tuple()`` writes ``u``). The value
is then that of the row that the update finds. If the update changes the key, that row is under another key: such an
update is a *link* from the old key to the new one. All keys that links connect would have to be replayed together:
after ``UPDATE t SET id = id + 1`` the whole table, in one task.

So the values of links are found first, and put into the links as if they had been sent; after that each key is by
itself. A replay key by key says which row each link takes, and what that row has. There are three cases for each value:

- A change of the same key sent it, or a row from before all changes has it: the link has its value.
- The row came by another link that did not send the value either. The value is that link's, by name (``_up``). Rounds
  follow these names: in each one, every link takes what the link above it has found, or that one's own ``_up``. So each
  round doubles the distance, and a value that passes through n keys without being sent takes log2(n) rounds.
- No row was found: nobody has the value, and it stays open.

Where the rows before are not known (net changes), a link is *assumed* to find one under its old key; what it still
leaves open names that key (``__root``) for a look-up when the rows are known.

The rounds are joins in Spark: what a task holds does not depend on the number of links. In their selects, no lambda
function may name a column that the same select makes again (Spark takes the new one, as a lateral column alias).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.spark._execution import as_leaf, plain_errors
from pgoutput_construct.spark._log_view.change_columns import (
    BEFORE,
    BEFORE_ALL,
    CHANGED,
    COMPONENT,
    DELETE,
    INSERT,
    LINK,
    ORIGIN,
    POSITION,
    ROOT,
    SENT,
    SIDE,
    STORED,
    TAKEN,
    TURN,
    column,
    merge_untyped,
    untyped_map,
)
from pgoutput_construct.spark._state.change_survey import ChangeSurvey, moves_key
from pgoutput_construct.spark._state.replay_tasks import component_of, replay_events, replay_rows
from pgoutput_construct.spark._state.row_replay import BOTH, COMES, GOES, Replay, ReplayResult

__all__ = ["leaves_open", "with_moved_values"]

KeyOf = Callable[[Callable[[str], Column], Callable[[str], Column]], list[Column]]
"""Gives the key of a row, from functions that give its values, and its texts, by column."""


def with_moved_values(
    before: DataFrame | None, changes: DataFrame, replay: Replay, found: ChangeSurvey, key_of: KeyOf | None = None
) -> DataFrame:
    """Return changes whose links have their unsent values, as far as a row has them; the rest is null.

    Args:
        before: The rows before, as ``replay_events`` takes them; None if they are not known: then a link has in
            ``__root`` the key under which a row had what it still leaves open, null where no row can have had it.
        changes: The changes.
        replay: How they are replayed.
        found: What they contain.
        key_of: Makes the key for ``__root``.
    """
    kinds = {name: changes.schema[name].dataType for name in replay.identity}
    link = F.struct(*POSITION, component_of(BEFORE.value, kinds).alias("_from"))
    is_link = F.coalesce(moves_key(changes, replay.identity) & leaves_open(replay.open_columns), F.lit(False))
    links = changes.where(is_link)
    taken = _follow_links(
        _taken(before, changes, links, link, replay, found, key_of), replay.open_columns, found.untyped
    )
    filled = _fill_links(links.withColumn(LINK, link), taken, changes.columns, replay.open_columns, key_of is not None)
    return changes.where(~is_link).unionByName(filled, allowMissingColumns=True)


def leaves_open(names: Sequence[str]) -> Column:
    """Return whether a change did not send some of these columns."""
    return F.coalesce(F.arrays_overlap("_unchanged", _names(names)), F.lit(False))


def _taken(
    before: DataFrame | None,
    changes: DataFrame,
    links: DataFrame,
    link: Column,
    replay: Replay,
    found: ChangeSurvey,
    key_of: KeyOf | None,
) -> DataFrame:
    """Return what links take along from the rows that they find, each of them by its ``__link``.

    ``v0``, ``v1`` and so on are the columns that may be left out, ``_texts`` what these do not hold, ``_open`` those
    which the link left out, and the row has not. ``_up`` says where that is to be found: by the link of this name; in
    the row before under the key ``_root``, if it has no ``_from``; nowhere, if it is null.
    """
    names = replay.open_columns
    narrow = replace(replay, columns=(*replay.identity, *names))
    stored = _assumed_rows(links, replay) if before is None else before
    events, _ = replay_events(stored, changes, narrow, found, apart=False)
    mine = links.select(link["_from"].alias(COMPONENT)).distinct()
    marked = _mark_links(events.join(mine, COMPONENT, "left_semi"), link, names, before is None)
    kinds = {field.name: field.dataType for field in marked.schema}
    texts, lists = T.MapType(T.StringType(), T.StringType()), T.ArrayType(T.StringType())
    own = {LINK: kinds[LINK], "_before": kinds["_before"], "_untyped": texts, "_left": lists}
    given = {"_texts": texts, "_open": lists, "_up": kinds[ORIGIN]}
    values = {f"v{number}": kinds[name] for number, name in enumerate(names)}
    schema = T.StructType([T.StructField(name, kind) for name, kind in {**own, **given, **values}.items()])

    def emit(done: ReplayResult, _is_end: bool) -> pa.Table:
        is_link = np.asarray(done.changes[LINK].is_valid().to_numpy(), np.bool_)
        chosen = np.flatnonzero(is_link & (done.intervals.found >= 0))
        rows = done.rows(done.intervals.found[chosen], (*names, ORIGIN))
        mine = [done.change_column(name, chosen) for name in (LINK, "_before", "_untyped", "_unchanged")]
        theirs = [rows[name] for name in ("_untyped", "_unchanged", ORIGIN, *names)]
        return pa.Table.from_arrays([*mine, *theirs], schema.names)

    tracked = replace(narrow, columns=(*narrow.columns, ORIGIN), unsent=(*narrow.unsent, ORIGIN))
    rows = replay_rows(marked, tracked, emit, schema)
    root = F.lit(None) if key_of is None else F.struct(*key_of(BEFORE.value, BEFORE.text))
    still = F.array_intersect(F.coalesce("_open", _names([])), "_left")
    return rows.select(LINK, "_texts", still.alias("_open"), "_up", root.alias("_root"), *values)


def _mark_links(events: DataFrame, link: Column, names: Sequence[str], is_assumed: bool) -> DataFrame:
    """Return events that name the link by which a row came, and the one that takes it."""
    kind = "struct<_commit_lsn:bigint,_seq:bigint,_from:bigint>"
    assumed = (F.col(TURN) == STORED) & F.lit(is_assumed)
    # The link by which a row came is one more of its values, which other updates leave as it is.
    others = (F.col(TURN) == CHANGED) & (F.col(SIDE) == BOTH) & ~F.col("_op").isin(INSERT, DELETE)
    origin = F.when(assumed, F.struct(*POSITION, F.lit(None).cast("bigint").alias("_from")))
    return events.withColumns(
        {
            LINK: F.when((F.col(SIDE) == GOES) & leaves_open(names), link).cast(kind),
            ORIGIN: origin.when(F.col(SIDE) == COMES, link).cast(kind),
            "_unchanged": F.when(others, F.array_append("_unchanged", ORIGIN)).otherwise(F.col("_unchanged")),
        }
    )


def _assumed_rows(links: DataFrame, replay: Replay) -> DataFrame:
    """Return rows with the old keys of links, as rows before all changes whose other columns are unknown."""
    texts = untyped_map({name: BEFORE.text(name) for name in replay.identity})
    return links.select(
        *(BEFORE.value(name).alias(name) for name in replay.identity),
        F.when(F.col("_untyped").isNotNull(), texts).alias("_untyped"),
        _names(replay.open_columns).alias("_unchanged"),
        F.lit(BEFORE_ALL).alias("_commit_lsn"),
        F.lit(0).alias("_seq"),
    )


def _follow_links(taken: DataFrame, names: Sequence[str], untyped: bool) -> DataFrame:
    """Return what links take, once each is followed to where the value was sent."""
    is_deeper = F.coalesce((F.size("_open") > 0) & F.col("_up._from").isNotNull(), F.lit(False))
    while True:
        taken = as_leaf(taken)
        deeper = taken.where(is_deeper)
        with plain_errors():
            if deeper.isEmpty():
                return taken
        taken = taken.where(~is_deeper).unionAll(_round(deeper, taken, names, untyped))


def _round(deeper: DataFrame, taken: DataFrame, names: Sequence[str], untyped: bool) -> DataFrame:
    """Return what links take, next to what the links that they name take."""
    above = taken.select(*(F.col(name).alias(f"above_{name}") for name in taken.columns))
    joined = deeper.withColumn("own_open", F.col("_open")).join(above, F.col("_up") == F.col(f"above_{LINK}"), "left")
    found = {
        f"v{number}": F.when(F.array_contains("_open", name), F.col(f"above_v{number}")).otherwise(F.col(f"v{number}"))
        for number, name in enumerate(names)
    }
    if untyped:
        found["_texts"] = _both_texts(F.col("_texts"), F.col("above__texts"), F.col("own_open"))
    # Where that link found no row, nobody has what it left out.
    found["_open"] = F.coalesce(F.array_intersect("_open", "above__open"), F.col("_open"))
    found |= {name: F.col(f"above_{name}") for name in ("_up", "_root")}
    return joined.select(*(found.get(name, F.col(name)).alias(name) for name in taken.columns))


def _fill_links(
    links: DataFrame, taken: DataFrame, columns: Sequence[str], names: Sequence[str], with_root: bool
) -> DataFrame:
    """Return links with the values that they take; a link that found no row gets none."""
    theirs = taken.select(F.col(LINK).alias(ORIGIN), F.struct(*taken.columns).alias(TAKEN))
    sent = F.array_except(F.array_intersect("_unchanged", _names(names)), column(TAKEN, "_open"))
    # A column of its own: Spark looks up a name in a lambda function among the new columns of the select, too, so that
    # ``_unchanged`` would be what is left of it.
    joined = links.join(theirs, F.col(LINK) == F.col(ORIGIN), "left").withColumn(SENT, F.coalesce(sent, _names([])))
    found = {
        name: F.when(F.array_contains(SENT, name), column(TAKEN, f"v{number}")).otherwise(column(name))
        for number, name in enumerate(names)
    }
    found["_unchanged"] = F.array_except("_unchanged", SENT)
    found["_untyped"] = _both_texts(F.col("_untyped"), column(TAKEN, "_texts"), F.col(SENT))
    root = [F.when(column(TAKEN, "_up").isNotNull(), column(TAKEN, "_root")).alias(ROOT)] if with_root else []
    return joined.select(*(found.get(name, column(name)).alias(name) for name in columns), *root)


def _both_texts(own: Column, others: Column, names: Column) -> Column:
    """Return a map of texts with those that another map has of some columns; null for none."""
    return merge_untyped(own, F.map_filter(others, lambda name, _: F.array_contains(names, name)))


def _names(names: Sequence[str]) -> Column:
    return F.array(*map(F.lit, names)).cast("array<string>")
