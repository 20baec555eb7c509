"""Rows and changes as events, each of one key: ``netting.touching`` in Arrow."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog.block import Flags, Numbers
from pgoutput_construct.spark.small.keys import numbered
from pgoutput_construct.spark.texts import Texts
from pgoutput_construct.spark.survey import CAME, GONE

__all__ = ["Events", "events_of", "flags_of"]


class Events(NamedTuple):
    """Events in the order of their keys, and of time; what is said of each."""

    key: Numbers
    row: Numbers
    """Which of the rows it brings, those before and those of the changes; -1 where the row is gone."""
    needs_row: Flags
    """Whether the row must have been there."""
    is_stored: Flags
    """Whether its key is among those before."""


class _Keys(NamedTuple):
    stored: Numbers
    new: Numbers
    old: Numbers


def events_of(before: pa.Table, changes: pa.Table, keys: tuple[str, ...]) -> Events | None:
    """Return rows before and changes as events: a change of the key is two, the row with the old one is gone.

    None where a row has no key: that is not as PostgreSQL sends rows.
    """
    is_gone, came = flags_of(pc.equal(changes["_op"], GONE)), flags_of(pc.equal(changes["_op"], CAME))
    has_old, has_new = flags_of(changes["_before"].is_valid()), ~is_gone
    found = _keys(before, changes, keys, has_old, has_new)
    if found is None or (is_gone & ~has_old).any():
        return None
    moved = has_old & has_new & (found.old != found.new)
    left, start = np.flatnonzero(moved), len(before)
    rows = np.where(is_gone, -1, np.arange(len(changes)) + start)
    places = [_appended(before[name], changes[name], left) for name in ("_seq", "_commit_lsn")]
    key = np.concatenate([found.stored, np.where(is_gone, found.old, found.new), found.old[left]])
    row = np.concatenate([np.arange(start), rows, np.full(len(left), -1)])
    needs_row = np.concatenate([np.zeros(start, np.bool_), ~came & ~(moved & has_new), np.ones(len(left), np.bool_)])
    # What a batch that is done again brings stands where the row that it brought does: that one is whole.
    order = np.lexsort((np.arange(len(key)) < start, *places, key))
    is_stored = np.isin(key, found.stored)
    return Events(key[order], row[order], needs_row[order], is_stored[order])


def flags_of(values: pa.ChunkedArray) -> Flags:
    """Return flags for numpy."""
    return np.asarray(values.to_numpy(), np.bool_)


def _keys(before: pa.Table, changes: pa.Table, keys: tuple[str, ...], has_old: Flags, has_new: Flags) -> _Keys | None:
    """Return the numbers of the keys of rows before, and of the new and the old rows of changes."""
    columns, texts = list[pa.ChunkedArray](), (Texts(before["_untyped"]), Texts(changes["_untyped"]))
    needed = np.concatenate([np.ones(len(before), np.bool_), has_new, has_old])
    for name in keys:
        old = changes["_before"].type.get_field_index(name)
        values = _joined(before[name], changes[name], pc.struct_field(changes["_before"], [old]))
        said = _joined(texts[0].of(name), texts[1].of(name), texts[1].of(f"_before.{name}"))
        if (needed & ~flags_of(pc.or_(values.is_valid(), said.is_valid()))).any():
            return None
        columns += [values, said] if said.null_count < len(said) else [values]
    return _Keys(*np.split(numbered(columns), [len(before), len(before) + len(changes)]))


def _joined(*parts: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray:
    chunks = [chunk for part in parts for chunk in (part.chunks if isinstance(part, pa.ChunkedArray) else [part])]
    return pa.chunked_array(chunks, parts[0].type)


def _appended(before: pa.ChunkedArray, changes: pa.ChunkedArray, left: Numbers) -> Numbers:
    mine = changes.to_numpy()
    return np.concatenate([before.to_numpy(), mine, mine[left]])
