"""Tables of few rows, and their histories, brought up to date in Arrow: a job of Spark for each would cost many times
what it does."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog.block import Numbers
from pgoutput_construct.columnar import UNTYPED
from pgoutput_construct.spark.changed import BOTH, Replay, Replayed
from pgoutput_construct.spark.counting import counted_rows, placed_rows, unplaced_rows
from pgoutput_construct.spark.replicated_tables import Base
from pgoutput_construct.spark.schemas import CHANGED, SHAPE, SIDE, STORED, TURN
from pgoutput_construct.spark.survey import BEFORE_ALL, CAME, EMPTIED
from pgoutput_construct.stream.rows import SNAPSHOT

__all__ = ["Rule", "advanced_rows", "history_schema", "recorded_rows", "rows_schema"]


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


def history_schema(columns: pa.Schema) -> pa.Schema:
    """Return the schema of a history: the columns, and those of HISTORY."""
    time, text, place = pa.timestamp("us", "UTC"), pa.string(), pa.int64()
    began = [("_untyped", UNTYPED), ("_op", text), ("_commit_lsn", place), ("_seq", place)]
    ended = [("_unchanged", pa.list_(text)), ("_valid_from", time), ("_valid_to", time), ("_ended_by", text)]
    return pa.schema([*columns, *began, *ended])


def advanced_rows(before: pa.Table | None, changes: pa.Table, rule: Rule) -> pa.Table | None:
    """Return the rows of a table after changes (``rows_schema``), given those before, None for no row.

    None where it is not for this way to say what becomes of a change: its row is not there, or it leaves a value open.
    """
    schema = rows_schema(rule.columns)
    counted = counted_rows(changes, rule.base, rule.reach, with_copy=before is None)
    stored = schema.empty_table() if before is None else unplaced_rows(before.select(schema.names), rule.base)
    done, _ = _replayed(stored.cast(schema), counted, rule)
    found = _rows(done, done.open, rule)
    return None if found is None else placed_rows(pa.table(found).select(schema.names).cast(schema), rule.base)


def recorded_rows(before: pa.Table | None, changes: pa.Table, rule: Rule) -> pa.Table | None:
    """Return the history of a table after changes (``history_schema``), given that before, None for none.

    The rows of a copy are wanted where there is none before. None as of ``advanced_rows``.
    """
    schema = history_schema(rule.columns)
    counted = counted_rows(changes, rule.base, rule.reach, with_copy=before is None)
    there = schema.empty_table() if before is None else before.select(schema.names)
    is_open = pc.is_null(there["_ended_by"])
    stored = unplaced_rows(there.filter(is_open).drop_columns(["_valid_to", "_ended_by"]), rule.base)
    done, truncates = _replayed(stored.rename_columns({"_valid_from": "_commit_time"}), counted, rule)
    chosen = np.flatnonzero(done.events.comes)
    found = _rows(done, chosen, rule)
    if found is None:
        return None
    is_copied = pc.equal(found["_commit_lsn"], BEFORE_ALL)
    found["_op"] = pc.if_else(is_copied, SNAPSHOT, done.taken("_op", chosen))
    found["_valid_from"] = done.taken("_commit_time", chosen)
    times, emptied = truncates["_commit_time"].combine_chunks(), truncates["_op"].combine_chunks()
    found |= {"_valid_to": done.ends("_commit_time", chosen, times), "_ended_by": done.ends("_op", chosen, emptied)}
    rows = placed_rows(pa.table(found).select(schema.names).cast(schema), rule.base)
    return pa.concat_tables([there.filter(pc.invert(is_open)), rows])


def _replayed(stored: pa.Table, counted: pa.Table, rule: Rule) -> tuple[Replayed, pa.Table]:
    """Return changes that count, replayed after the rows before them, and the truncates among them, in order."""
    is_truncate = pc.equal(counted["_op"], EMPTIED)
    truncates = counted.filter(is_truncate).sort_by([("_commit_lsn", "ascending"), ("_seq", "ascending")])
    places = zip(truncates["_commit_lsn"].to_pylist(), truncates["_seq"].to_pylist(), strict=True)
    events = _ordered(stored, counted.filter(pc.invert(is_truncate)))
    return Replay(tuple(rule.columns.names), rule.keys, rule.unsent, truncates=tuple(places)).run(events), truncates


def _rows(done: Replayed, chosen: Numbers, rule: Rule) -> dict[str, pa.Array] | None:
    """Return the rows that came by events, and where; None where a change is not for this way."""
    found = done.rows(chosen, rule.columns.names)
    lacks_key = any(_lacks(done.changes, name) for name in rule.keys or ())
    if lacks_key or found["_unchanged"].null_count < len(chosen) or (len(done.missing) and not rule.lacks_rows):
        return None
    return found | {name: done.taken(name, chosen) for name in ("_commit_lsn", "_seq")}


def _ordered(stored: pa.Table, changes: pa.Table) -> pa.Table:
    """Return rows before and changes as they are replayed.

    What a batch that is done again brings stands where the row that it brought does: that one is whole, and comes last.
    """
    made: dict[str, str | list[str]] = {"_op": CAME, "_unchanged": []}
    known = {*stored.column_names}
    for field in changes.schema:
        if field.name not in known:
            stored = stored.append_column(field, pa.array([made.get(field.name)] * len(stored), field.type))
    said = pc.coalesce(stored["_unchanged"], pa.scalar([], pa.list_(pa.string())))
    stored = stored.set_column(stored.schema.get_field_index("_unchanged"), "_unchanged", said)
    both = pa.concat_tables([stored.select(changes.column_names).cast(changes.schema), changes])
    is_stored = np.arange(len(both)) < len(stored)
    work = {TURN: np.where(is_stored, STORED, CHANGED), SIDE: np.full(len(both), BOTH), SHAPE: np.zeros(len(both), int)}
    for name, values in work.items():
        both = both.append_column(name, pa.array(values))
    order = np.lexsort((is_stored, both["_seq"].to_numpy(), both["_commit_lsn"].to_numpy()))
    return both.take(pa.array(order))


def _lacks(events: pa.Table, name: str) -> bool:
    """Return whether an old row that was sent has no value of a column of its key: PostgreSQL sends none such."""
    before = events["_before"].combine_chunks()
    value = pc.struct_field(before, [before.type.get_field_index(name)])
    text = pc.map_lookup(events["_untyped"], f"_before.{name}", "first")
    said = pc.or_(value.is_valid(), text.combine_chunks().is_valid())
    return bool(pc.any(pc.and_(before.is_valid(), pc.invert(said))).as_py())
