"""The rows of a small table after changes: ``keyed.advanced`` in Arrow."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog.block import Flags, Numbers
from pgoutput_construct.columnar import UNTYPED
from pgoutput_construct.spark.counting import counted_rows, placed_rows, unplaced_rows
from pgoutput_construct.spark.small.events import Events, events_of
from pgoutput_construct.spark.small.rule import Rule
from pgoutput_construct.spark.texts import Texts, untyped_of

__all__ = ["advanced_rows", "rows_schema"]


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
    events = events_of(stored, counted, rule.keys)
    if events is None:
        return None
    found = _chosen(events, rule, {name: _left_out(counted, name, len(stored)) for name in rule.unsent})
    if found is None:
        return None
    both = pa.concat_tables([stored.cast(schema), counted.select(schema.names).cast(schema)])
    return placed_rows(_taken(both, *found), rule.base)


def _chosen(events: Events, rule: Rule, left_out: dict[str, Flags]) -> tuple[Numbers, dict[str, Numbers]] | None:
    """Return the rows that are there in the end, and from which rows they have what was left out of them."""
    places = np.arange(len(events.key))
    begins = np.append(True, events.key[1:] != events.key[:-1])[: len(places)]
    is_gone = events.row < 0
    is_free = np.where(begins, ~events.is_stored, np.append(True, is_gone[:-1])[: len(places)])
    if (events.needs_row & is_free).any() and not rule.lacks_rows:
        return None
    last = np.flatnonzero(np.append(begins[1:], True)[: len(places)] & ~is_gone)
    last = last[np.argsort(events.row[last])]
    first, died = _latest(begins)[last], _latest(is_gone)[last]
    sources = {}
    for name, flags in left_out.items():
        sent = _latest(~is_gone & ~flags[events.row])[last]
        if (sent < np.maximum(first, died)).any():
            return None
        sources[name] = events.row[sent]
    return events.row[last], sources


def _latest(flags: Flags) -> Numbers:
    """Return for each place the last one up to it that has the flag; -1 for none."""
    return np.maximum.accumulate(np.where(flags, np.arange(len(flags)), -1))


def _left_out(changes: pa.Table, name: str, before: int) -> Flags:
    """Tell of the rows before, and of those of changes, whether a column was left out."""
    names = changes["_unchanged"].combine_chunks()
    found = np.zeros(before + len(changes), np.bool_)
    mine = pc.list_parent_indices(names).filter(pc.equal(pc.list_flatten(names), name))
    found[before + mine.to_numpy()] = True
    return found


def _taken(rows: pa.Table, chosen: Numbers, sources: dict[str, Numbers]) -> pa.Table:
    places = {name: pa.array(sources.get(name, chosen)) for name in rows.schema.names}
    columns = {name: rows[name].take(places[name]) for name in rows.schema.names}
    texts = Texts(rows["_untyped"])
    said = {name: texts.of(name).take(places[name]) for name in rows.schema.names if name in texts.names}
    columns["_untyped"] = untyped_of(said, len(chosen))
    return pa.Table.from_arrays([columns[name] for name in rows.schema.names], schema=rows.schema)
