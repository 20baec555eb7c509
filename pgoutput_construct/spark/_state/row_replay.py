"""Changes of a table in Arrow, replayed: ``intervals`` over columns, with values, texts and codes.

Rows are told apart by *codes*, numbers for their values: ``equality`` defines which of these are the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.columnar import UNTYPED
from pgoutput_construct.spark._log_view.change_columns import (
    CARRIED,
    CHANGED,
    DELETE,
    EPOCH,
    INSERT,
    POSITION,
    SHAPE,
    SIDE,
    TURN,
)
from pgoutput_construct.spark._log_view.replicated_tables import ChangePosition
from pgoutput_construct.spark._state.equality import codes_of, combined
from pgoutput_construct.spark._state.intervals import OPEN, Events, Intervals, RowMatching, find_intervals, truncate_of

BOTH, GOES, COMES, LOST = 0, 1, 2, 3
"""Which rows of a change an event has: both, or the old or the new one, if they are in different components.

LOST stands for an old row that was not sent, although rows are told apart by all their columns: a partition that is
published via a root with REPLICA IDENTITY FULL may itself have another one, and logs by that. It finds no row.
"""

_BEFORE: Final = "_before"


class _EventRows(NamedTuple):
    """The old or the new rows of changes, by column: values, and texts of what these cannot hold."""

    values: dict[str, pa.Array]
    texts: dict[str, pa.Array]


@dataclass(frozen=True)
class Replay:
    """How changes of a table are replayed while one identity tells its rows apart."""

    columns: tuple[str, ...]
    """The columns of the rows."""
    keys: tuple[str, ...] | None
    """The columns of the identity: () for none, None for the full row."""
    unsent: tuple[str, ...] = ()
    """Columns that some update did not send."""
    shapes: tuple[frozenset[str], ...] = ()
    """The different sets of columns that rows were described with; ``__shape`` is the index. Only for full rows."""
    truncates: tuple[ChangePosition, ...] = ()
    """The positions of truncates, in order."""

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that old rows have."""
        return self.columns if self.keys is None else self.keys

    @cached_property
    def open_columns(self) -> tuple[str, ...]:
        """Columns whose values may be in neither row of an update."""
        return tuple(name for name in self.unsent if name not in self.identity)

    @cached_property
    def matching(self) -> RowMatching:
        """How rows are told apart."""
        if self.keys is not None:
            return RowMatching.by_key(self.keys)
        own = frozenset(self.columns)
        return RowMatching.by_rows([shape & own for shape in self.shapes] or [own])

    def run(self, changes: pa.Table, is_end: bool = True) -> "ReplayResult":
        """Replay changes in their order, rows before them first; truncates are not among them.

        All changes of rows that may be the same must be there. Columns are those of changes, ``__turn``, ``__side`` and
        ``__shape``; without ``_before`` each change has one row, new or old, in its columns. A row before them may have
        any ``_op``, and has in ``_unchanged`` the columns whose values are unknown. Where more changes follow (not
        ``is_end``), truncates after the last of these are left for later.
        """
        changes = changes.combine_chunks()
        events, old, new, lost = self._events(changes)
        truncates = len(self.truncates) if is_end else int(events.epochs.max(initial=0))
        return ReplayResult(self, changes, old, new, events, find_intervals(events, self.matching, truncates), lost)

    def equal(self, rows: pa.Table) -> Numbers:
        """Return a number for each row, the same for rows that only their order tells apart."""
        texts = UntypedTexts(rows["_untyped"])
        parts = [_numbers(rows, SHAPE)]
        if EPOCH in rows.column_names:
            parts.append(np.asarray(rows[EPOCH].fill_null(0).to_numpy(), np.int64))
        for name in self.identity:
            parts += [codes_of(_array(rows[name])), codes_of(texts.column(name))]
        return combined(len(rows), parts)

    def _events(self, changes: pa.Table) -> tuple[Events, _EventRows, _EventRows, Flags]:
        """Return changes as events, their old and new rows, and which old rows were not sent."""
        op, turn, side = changes["_op"], _numbers(changes, TURN), _numbers(changes, SIDE)
        is_stored, has_before = turn < CHANGED, _BEFORE in changes.column_names
        has_old = _flags(changes[_BEFORE].is_valid()) if has_before else np.ones(len(changes), np.bool_)
        is_new = _flags(pc.equal(op, INSERT)) | is_stored
        comes = ~_flags(pc.equal(op, DELETE)) & (side != GOES) & (side != LOST)
        goes = ~is_new & (side != COMES)
        if self.keys == ():
            goes &= False
        lost = goes & ((side == LOST) | ~has_old) if self.keys is None and self.columns else goes & False
        new, old = self._sides(changes, has_old) if has_before else self._rows(changes)
        codes = self._codes(changes, old, new)
        of_old = codes[:, : len(changes)]
        if lost.any():  # no row is equal to one that is not known
            of_old = np.where(lost, codes.max() + 1 + np.arange(len(changes)), of_old)
        unsent = [comes & _names(changes, name) for name in self.open_columns]
        events = Events(
            goes,
            comes,
            of_old,
            codes[:, -len(changes) :] if len(changes) else codes,
            _numbers(changes, SHAPE) if self.keys is None else np.zeros(len(changes), np.int64),
            self._epochs(changes, is_stored),
            np.array(unsent, np.bool_).reshape(len(unsent), len(changes)),
        )
        return events, old, new, lost

    def _rows(self, changes: pa.Table) -> tuple[_EventRows, _EventRows]:
        """Return the rows of changes of which each has either: its new row, or its old one."""
        texts = UntypedTexts(changes["_untyped"])
        values = {name: _array(changes[name]) for name in self.columns}
        rows = _EventRows(values, {name: texts.column(name) for name in self.columns})
        return rows, rows

    def _sides(self, changes: pa.Table, has_old: Flags) -> tuple[_EventRows, _EventRows]:
        """Return the new rows and, of the old ones, the columns of the identity; an unsent one is the same in both."""
        texts, fields = UntypedTexts(changes["_untyped"]), changes.schema.field(_BEFORE).type
        before = changes[_BEFORE].combine_chunks()
        new, old = _EventRows({}, {}), _EventRows({}, {})
        for name in self.columns:
            value, text = _array(changes[name]), texts.column(name)
            if name in self.identity:
                was, was_text = pc.struct_field(before, [fields.get_field_index(name)]), texts.column(f"_before.{name}")
                if name in self.unsent:
                    is_before = pa.array(_names(changes, name) & has_old)
                    value, text = pc.if_else(is_before, was, value), pc.if_else(is_before, was_text, text)
                has = pa.array(has_old)
                old.values[name], old.texts[name] = pc.if_else(has, was, value), pc.if_else(has, was_text, text)
            new.values[name], new.texts[name] = value, text
        return new, old

    def _codes(self, changes: pa.Table, old: _EventRows, new: _EventRows) -> Numbers:
        """Return the codes of old rows and, after them, of new ones, for each comparison; once where they are one."""
        sides, found = [new] if old is new else [old, new], dict[str, list[Numbers]]()
        rows = len(sides) * len(changes)
        if self.keys == ():
            return np.arange(rows).reshape(1, rows)
        for name in self.identity:
            both = [pa.concat_arrays([side.values[name] for side in sides])]
            if sum(side.texts[name].null_count for side in sides) < rows:
                both.append(pa.concat_arrays([side.texts[name] for side in sides]))
            found[name] = [codes_of(each) for each in both]
        each_of = [
            [code for name in self.identity if name in names for code in found[name]] for names in self.matching[0]
        ]
        return np.array([combined(rows, codes) for codes in each_of], np.int64)

    def _epochs(self, changes: pa.Table, is_stored: Flags) -> Numbers:
        epochs = np.zeros(len(changes), np.int64)
        lsn, seq = (_numbers(changes, name) for name in POSITION)
        for at_lsn, at_seq in self.truncates:
            epochs += (lsn > at_lsn) | ((lsn == at_lsn) & (seq > at_seq))
        epochs = np.where(is_stored, 0, epochs)
        if EPOCH not in changes.column_names:
            return epochs
        known = changes[EPOCH]
        return np.where(_flags(known.is_valid()), known.fill_null(0).to_numpy(), epochs)


@dataclass(frozen=True)
class ReplayResult:
    """Changes, and the intervals that their replay found."""

    rule: Replay
    changes: pa.Table
    old: _EventRows
    new: _EventRows
    events: Events
    intervals: Intervals
    lost: Flags
    """The events whose old rows were not sent (see LOST)."""

    @cached_property
    def open(self) -> Numbers:
        """The events whose rows exist in the end."""
        return np.flatnonzero(self.events.comes & (self.intervals.ended == OPEN))

    @cached_property
    def missing(self) -> Numbers:
        """The events that should have found a row and found none."""
        return np.flatnonzero(self.events.goes & (self.intervals.found < 0))

    def old_rows(self, chosen: Numbers) -> dict[str, pa.Array]:
        """Return the rows that events remove: columns of the identity, and ``_untyped``."""
        indexes, names = pa.array(chosen), self.rule.identity
        texts = {name: self.old.texts[name].take(indexes) for name in names}
        found = {name: self.old.values[name].take(indexes) for name in names}
        return {**found, "_untyped": untyped_array(texts, len(chosen))}

    def sources(self, name: str, chosen: Numbers) -> Numbers:
        """Return the events that sent the values of a column that rows have; -1 for unknown values."""
        names = self.rule.open_columns
        return self.intervals.sources[names.index(name)][chosen] if name in names else chosen

    def rows(self, chosen: Numbers, columns: Sequence[str]) -> dict[str, pa.Array]:
        """Return the rows that events made: columns, ``_untyped``, and ``_unchanged``, null for none."""
        found, texts, left = dict[str, pa.Array](), dict[str, pa.Array](), dict[str, Flags]()
        for name in columns:
            sources = self.sources(name, chosen)
            indexes = pa.array(sources, mask=sources < 0)
            found[name] = self.new.values[name].take(indexes)
            if self.new.texts[name].null_count < len(self.changes):
                texts[name] = self.new.texts[name].take(indexes)
            if name in self.rule.open_columns:
                left[name] = sources < 0
        found["_untyped"], found["_unchanged"] = untyped_array(texts, len(chosen)), _lists_of(left, len(chosen))
        return found

    def carried(self) -> pa.Table:
        """Return the open rows as rows before later changes, with the columns of changes."""
        chosen, names = self.open, self.changes.schema.names
        found = self.rows(chosen, self.rule.columns)
        found[TURN] = pa.array(np.minimum(_numbers(self.changes, TURN)[chosen], CARRIED))
        found[SIDE] = pa.array(np.full(len(chosen), BOTH))
        found[EPOCH] = pa.array(self.events.epochs[chosen])
        arrays = [found[name] if name in found else self.change_column(name, chosen) for name in names]
        kept = [array.cast(field.type) for array, field in zip(arrays, self.changes.schema, strict=True)]
        return pa.Table.from_arrays(kept, schema=self.changes.schema)

    def change_column(self, name: str, chosen: Numbers) -> pa.Array:
        """Return a column of some of the changes."""
        return _array(self.changes[name]).take(pa.array(chosen))

    def ends(self, name: str, chosen: Numbers, of_truncates: pa.Array) -> pa.Array:
        """Return a column of the changes that ended rows, null for open ones; ``of_truncates`` has it for truncates."""
        ended = self.intervals.ended[chosen]
        number = truncate_of(ended)
        indexes = np.where(ended >= 0, ended, len(self.changes) + number)
        both = pa.concat_arrays([_array(self.changes[name]), of_truncates.cast(self.changes[name].type)])
        return both.take(pa.array(indexes, mask=ended == OPEN))


def _array(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    return values.chunk(0) if values.num_chunks == 1 else pa.concat_arrays(values.chunks or [pa.array([], values.type)])


def _flags(values: pa.ChunkedArray) -> Flags:
    return np.asarray(values.to_numpy(), np.bool_)


def _numbers(changes: pa.Table, name: str) -> Numbers:
    return np.asarray(changes[name].to_numpy(), np.int64)


def _names(changes: pa.Table, name: str) -> Flags:
    """Return which changes did not send a column."""
    lists = _array(changes["_unchanged"])
    found = np.zeros(len(changes), np.bool_)
    found[pc.list_parent_indices(lists).filter(pc.equal(pc.list_flatten(lists), name)).to_numpy()] = True
    return found


def _lists_of(flags: Mapping[str, Flags], rows: int) -> pa.Array:
    """Return lists of the columns with unknown values, by row; null for none."""
    has = np.stack(list(flags.values()), axis=1) if flags else np.zeros((rows, 0), np.bool_)
    counts = has.sum(axis=1)
    names = pa.array(flags, pa.string()).take(pa.array(np.nonzero(has)[1]))
    starts = pa.array(np.append(0, np.cumsum(counts)).astype(np.int32), mask=np.append(counts == 0, False))
    return pa.ListArray.from_arrays(starts, names)


class UntypedTexts:
    """``_untyped`` of rows in Arrow."""

    def __init__(self, untyped: pa.ChunkedArray) -> None:
        self._untyped = untyped.combine_chunks()

    @cached_property
    def names(self) -> frozenset[str]:
        """All names that some row has."""
        return frozenset(pc.unique(self._untyped.keys).to_pylist())

    def column(self, name: str) -> pa.Array:
        """Return the text of a column in each row, null where there is none."""
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
