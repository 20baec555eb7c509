"""The new or the old tuples of a block of rows: a walk over their values, and the Arrow arrays of their columns.

A walk decodes fixed-width values and texts on its way, by the plan of the columns (``pgtypes.kernels.row_plan``), and
notes offset, length and tag of the values that it leaves. These are decoded afterwards, a column at a time by the casts
of their types, and finally one by one through psycopg.
"""

from collections.abc import Sequence
from functools import cached_property, partial
from itertools import compress
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pgoutput_construct.columnar import kernels
from pgoutput_construct.columnar.batch_arrays import mean_size, present, scatter
from pgoutput_construct.columnar.decode_plan import SENT, UNSENT, DecodePlan, PlannedColumn
from pgoutput_construct.columnar.index import BatchIndex
from pgoutput_construct.compiled.memory import LINE, bitmap, room
from pgoutput_construct.pgtypes.family import CannotHold
from pgoutput_construct.pgtypes.kernels.cast import ColumnValues
from pgoutput_construct.pgtypes.kernels.row_plan import READ, Plan, lay_out, learn, read_array
from pgoutput_construct.pgtypes.loader import FORMATS
from pgoutput_construct.wire.messages import VALUE_TAGS, VALUES

__all__ = ["RowImages"]

Numbers = NDArray[np.int64]


class RowImages:
    """The new tuples of some payloads, or their old ones.

    If most payloads have one, the columns are decoded over all payloads, with nulls for those without. If few have one,
    as with the old tuples of mostly inserts, the columns are decoded over those few, and then spread out.
    """

    def __init__(self, index: BatchIndex, columns: DecodePlan, rows: Numbers, side: str) -> None:
        self.index = index
        self.columns = columns
        self.side = side
        """``new`` or ``old``."""
        self.chosen = rows
        """The indexes of the payloads."""
        self.count = len(rows)
        self.offsets, self.have = present(index.rows[side], rows)
        """The offset of each tuple, -1 for none; and the number of rows that have one."""
        self.sparse: Numbers | None = np.flatnonzero(self.present) if 2 * self.have < self.count else None
        """The rows that have a tuple, if these are few."""
        self.rows = slice(None) if self.sparse is None else self.sparse
        """The rows that are walked."""
        offsets = self.offsets[self.rows]
        self.counts = np.zeros(len(offsets), np.int32)
        self.fits = self._walk(columns.plan)
        """Whether the number of values of each row is that of the columns."""
        self.refused: dict[str, dict[int, str]] = {}
        """PostgreSQL's text of values that their Arrow type cannot represent, by column and row."""
        self.arrays: dict[str, pa.Array] = {}

    def _walk(self, lines: Plan) -> bool:
        """Walk over the rows, and decode the columns for which the plan has a line."""
        index, columns, chosen, rows = self.index, self.columns, self.chosen[self.rows], len(self.counts)
        self.seen, self.sizes = _counters(columns.width)
        """How often each tag occurs in a column, and the total bytes of the values that the walk left."""
        if not self.have:
            return True
        self.starts, self.lengths, self.tags = _value_arrays(columns.width, rows)
        expected = columns.expected(self.side, self._mean_size)
        self.plan, self.content = lay_out(lines, rows, self._with_limit(expected))
        given = index.given_rows(chosen, self.offsets[self.rows])
        found = self.counts, self.tags, self.starts, self.lengths, self.seen, self.sizes
        (find,) = kernels.TUPLES.values()
        fits = find(*given, columns.width, self.plan, np.frombuffer(self.content, np.uint8), *found)
        self.seen[:, READ] = self.have - self.seen.sum(axis=1)
        learn(self.plan, self.sizes, rows, expected)
        return bool(fits)

    def _mean_size(self) -> float:
        """Return the average size of a payload in bytes."""
        return mean_size(self.index.starts, self.index.ends, self.chosen[self.rows])

    def _with_limit(self, expected: Numbers) -> Numbers:
        """Return the expected bytes of a row; if the buffer would be large, at most twice the average payload."""
        total = int(expected.sum())
        if total * len(self.counts) < _MANY:
            return expected
        return (expected * min(1.0, 2 * self._mean_size() / total)).astype(np.int64)

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        """Which of the rows have a tuple."""
        return self.offsets >= 0

    @cached_property
    def validity(self) -> pa.Buffer | None:
        """The validity bitmap of the rows that are walked; None if all of them have a tuple."""
        return None if self.have == len(self.counts) else bitmap(self.present[self.rows])

    def _blank(self, positions: Sequence[int], kind: int) -> None:
        """Set some columns to null in rows of one kind. PostgreSQL sends them as null anyway; then nothing is done."""
        null = VALUE_TAGS["null"]
        for position in positions:
            if self.seen[position, null] < self.have:
                self.tags[position, self.index.rows["old_kind"][self.chosen[self.rows]] == kind] = null
                self.seen[position] = np.bincount(self.tags[position], minlength=_TAGS)
                self.seen[position, READ] -= len(self.counts) - self.have

    def read(self, others: Sequence[int], key: int) -> None:
        """Decode all columns that have values; ``others`` are null in rows whose kind is ``key``."""
        lines = self.columns.plan.copy()
        while self.have and (wrong := self._read(others, key)):
            lines[wrong] = 0  # the walk leaves them; they are decoded one by one
            self._walk(lines)

    def _read(self, others: Sequence[int], key: int) -> list[int]:
        """Decode all columns; return those in which the walk has copied texts that are not UTF-8."""
        self.refused.clear()
        self._blank(others, key)
        seen, plan, wrong = self.seen[:, [READ, *SENT.values()]].tolist(), self.plan.tolist(), []
        for position, column in self.columns.readers.items():
            read, *sent = seen[position]
            try:
                pieces = [self._walked(position, column, plan[position], read)] if read else []
            except pa.ArrowInvalid:
                wrong.append(position)
                continue
            pieces += [self._cast(position, column, name) for name in compress(SENT, sent)]
            if pieces:
                self.arrays[column.name] = pieces[0] if len(pieces) == 1 else pc.coalesce(*pieces)
        return wrong

    def column(self, name: str, target: pa.DataType) -> pa.Array:
        """Return a column over all rows, null where they do not have this side."""
        array = self.arrays.get(name)
        if array is None:
            return self.columns.nulls(name, self.count)
        return array if self.sparse is None else scatter([(self.sparse, array)], self.count, target)

    def struct(self, target: pa.DataType) -> pa.Array:
        """Return all columns as one of structs, null where the rows do not have this side."""
        if not self.have:
            return self.columns.nulls("_before", self.count)
        children = [self.column(field.name, field.type) for field in target]
        return pa.Array.from_buffers(target, self.count, [bitmap(self.present)], children=children)

    def unchanged(self) -> pa.Array:
        """Return the names of the columns that were not sent ('u'), for each row; an empty list without a tuple."""
        if not self.seen[:, UNSENT].any():
            return self.columns.all_sent(self.count)
        positions = sorted(self.columns.readers)
        flags = np.isin(self.tags[positions], UNSENT) if positions else np.zeros((0, self.tags.shape[1]), np.bool_)
        counts = np.zeros(self.count + 1, np.int32)
        counts[1:][slice(None) if self.sparse is None else self.sparse] = flags.sum(axis=0)
        _, which = np.nonzero(flags.T)
        names = pa.array([self.columns.readers[position].name for position in positions], pa.string())
        values = names.take(pa.array(which, pa.int64()))
        return pa.ListArray.from_arrays(pa.array(np.cumsum(counts, dtype=np.int32)), values)

    def untyped(self, prefix: str) -> dict[str, dict[int, str]]:
        """Return the texts of values that the columns' types cannot represent, by name and row."""
        return {prefix + name: texts for name, texts in self.refused.items() if texts}

    def _walked(self, position: int, column: PlannedColumn, entries: Sequence[int], count: int) -> pa.Array:
        """Return the values that the walk has decoded."""
        validity = (
            self.validity if count == self.have else bitmap((self.tags[position] == READ) & self.present[self.rows])
        )
        return read_array(column.target, entries, self.content, len(self.counts), validity)

    def _cast(self, position: int, column: PlannedColumn, name: str) -> pa.Array:
        """Return the values of one format, decoded by the kernel of their type, or one by one if it leaves them."""
        code, tags, cast = SENT[name], self.tags[position], column.casts[name]
        if cast is None:
            return self._one_by_one(position, column, name, tags == code)
        given = self.index.data, self.starts[position], self.lengths[position], tags, code
        values = ColumnValues(*given, int(self.seen[position, code]), int(self.sizes[position]))
        try:
            array, left = cast(values, column.target)
        except ValueError:  # ArrowInvalid: a text is not UTF-8, or not a number
            return self._one_by_one(position, column, name, tags == code)
        if left is None:
            return array
        return pc.if_else(pa.array(left), self._one_by_one(position, column, name, left), array)

    def _one_by_one(self, position: int, column: PlannedColumn, name: str, chosen: NDArray[np.bool_]) -> pa.Array:
        """Load the chosen values through psycopg; others are null, and so are values that the type cannot represent."""
        known: Any = VALUES[name]
        # Without the further fields of a FieldedBytes class: loaders use the bytes alone.
        make: Any = FORMATS.get(known, partial(bytes.__new__, known))
        refused = self.refused.setdefault(column.name, {})
        loaded: list[Any] = [None] * len(chosen)
        for row in np.flatnonzero(chosen).tolist():
            start = self.starts[position, row]
            value = make(self.index.data[start : start + self.lengths[position, row]].tobytes())
            try:
                loaded[row] = column.reader.load(value)
            except CannotHold:
                refused[row if self.sparse is None else int(self.sparse[row])] = column.reader.text(value)
        return pa.array(loaded, column.target)


_MANY: Final = 1 << 26
"""Bytes that are allocated for texts without comparing the estimate with the size of the payloads."""
_TAGS: Final = 256


def _counters(columns: int) -> tuple[Numbers, Numbers]:
    """Return counters for each column: one for each tag, and one for bytes.

    They share no cache line with another thread's: false sharing would cost a wait at every value.
    """
    zeros = np.zeros((_TAGS + LINE // 8) * columns, np.int64)
    tags = _TAGS * columns
    return zeros[:tags].reshape(columns, _TAGS), zeros[tags : tags + columns]


def _value_arrays(columns: int, rows: int) -> Any:
    """Return arrays for the offset, length and tag of each value; tags are preset to READ, decoded by the walk."""
    views = room(columns * rows, np.int64), room(columns * rows, np.int32), room(columns * rows)
    views[2].fill(READ)
    return tuple(view.reshape(columns, rows) for view in views)
