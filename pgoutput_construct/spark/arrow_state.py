"""Tables of few rows, brought up to date in Arrow: a job of Spark for each would cost many times what it does."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.columnar import UNTYPED
from pgoutput_construct.spark.changed import BOTH, Replay
from pgoutput_construct.spark.counting import counted_rows, placed_rows, unplaced_rows
from pgoutput_construct.spark.schemas import CHANGED, SHAPE, SIDE, STORED, TURN
from pgoutput_construct.spark.survey import CAME, EMPTIED
from pgoutput_construct.spark.tables import Base

__all__ = ["Rule", "advanced_rows", "rows_schema"]


@dataclass(frozen=True)
class Rule:
    """What must be known of a small table, for as long as nothing but its rows changes."""

    columns: pa.Schema
    """The columns that it has now, typed."""
    keys: tuple[str, ...] | None
    """Those that tell rows apart, None for the full row."""
    unsent: tuple[str, ...]
    """Those that some update left out."""
    base: Base | None
    """The copy that it begins with."""
    reach: tuple[int, int] | None
    """How far changes are from that, as ``near`` returns it."""
    lacks_rows: bool
    """Whether the log may have changes of rows that are older than it."""


def rows_schema(columns: pa.Schema) -> pa.Schema:
    """Return the schema of rows: the columns, ``_untyped``, ``_commit_lsn`` and ``_seq``."""
    return pa.schema([*columns, ("_untyped", UNTYPED), ("_commit_lsn", pa.int64()), ("_seq", pa.int64())])


def advanced_rows(before: pa.Table | None, changes: pa.Table, rule: Rule) -> pa.Table | None:
    """Return the rows of a table after changes (``rows_schema``), given those before, None for no row.

    None where it is not for this way to say what becomes of a change: its row is not there, or it leaves a value open.
    """
    schema = rows_schema(rule.columns)
    counted = counted_rows(changes, rule.base, rule.reach, with_copy=before is None)
    stored = schema.empty_table() if before is None else unplaced_rows(before.select(schema.names), rule.base)
    is_truncate = pc.equal(counted["_op"], EMPTIED)
    truncates = counted.filter(is_truncate).select(["_commit_lsn", "_seq"]).to_pylist()
    places = sorted((row["_commit_lsn"], row["_seq"]) for row in truncates)
    events = _ordered(stored.cast(schema), counted.filter(pc.invert(is_truncate)))
    done = Replay(tuple(rule.columns.names), rule.keys, rule.unsent, truncates=tuple(places)).run(events)
    found = done.rows(done.open, rule.columns.names)
    lacks_key = any(_lacks(events, name) for name in rule.keys or ())
    if lacks_key or found["_unchanged"].null_count < len(done.open) or (len(done.missing) and not rule.lacks_rows):
        return None
    found |= {name: done.taken(name, done.open) for name in ("_commit_lsn", "_seq")}
    return placed_rows(pa.table({name: found[name] for name in schema.names}).cast(schema), rule.base)


def _ordered(stored: pa.Table, changes: pa.Table) -> pa.Table:
    """Return rows before and changes as they are replayed.

    What a batch that is done again brings stands where the row that it brought does: that one is whole, and comes last.
    """
    made: dict[str, str | list[str]] = {"_op": CAME, "_unchanged": []}
    for field in changes.schema:
        if field.name not in stored.column_names:
            stored = stored.append_column(field, pa.array([made.get(field.name)] * len(stored), field.type))
    both = pa.concat_tables([stored.select(changes.column_names).cast(changes.schema), changes])
    is_stored = np.arange(len(both)) < len(stored)
    work = {TURN: np.where(is_stored, STORED, CHANGED), SIDE: np.full(len(both), BOTH), SHAPE: np.zeros(len(both), int)}
    for name, values in work.items():
        both = both.append_column(name, pa.array(values))
    order = np.lexsort((is_stored, both["_seq"].to_numpy(), both["_commit_lsn"].to_numpy()))
    return both.take(pa.array(order))


def _lacks(events: pa.Table, name: str) -> bool:
    """Tell whether an old row that was sent has no value of a column of its key: that is not as PostgreSQL sends it."""
    before = events["_before"].combine_chunks()
    value = pc.struct_field(before, [before.type.get_field_index(name)])
    text = pc.map_lookup(events["_untyped"], f"_before.{name}", "first")
    said = pc.or_(value.is_valid(), text.combine_chunks().is_valid())
    return bool(pc.any(pc.and_(before.is_valid(), pc.invert(said))).as_py())
