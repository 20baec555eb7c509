"""The rows of one table from an index, in blocks: typed columns, old rows, and the names of columns not sent."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import compress
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pgoutput_construct.columnar import kernels
from pgoutput_construct.columnar.batch_arrays import WordTable, mean_size, present, scatter, word_table, words
from pgoutput_construct.columnar.decode_plan import SENT, UNSENT, DecodePlan, PlannedColumn
from pgoutput_construct.columnar.index import BatchIndex
from pgoutput_construct.columnar.row_schema import DecodedBlock, RowError
from pgoutput_construct.columnar.threads import in_order
from pgoutput_construct.compiled.memory import LINE, bitmap, room
from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.pgtypes.arrow_types import UNTYPED
from pgoutput_construct.pgtypes.family import CannotHold
from pgoutput_construct.pgtypes.kernels.cast import ColumnValues
from pgoutput_construct.pgtypes.kernels.row_plan import READ, Plan, lay_out, learn, read_array
from pgoutput_construct.pgtypes.loader import FORMATS
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.rows import OPERATIONS, SNAPSHOT
from pgoutput_construct.wire.messages import BY_TAG, VALUE_TAGS, VALUES, Insert
from pgoutput_construct.wire.protocol import UpdateOldKind
from pgoutput_construct.wire.reference import LARGEST

__all__ = ["BLOCK_ROWS", "table_rows"]

Numbers = NDArray[np.int64]

BLOCK_ROWS: Final = 66_000
"""Rows per block: bounds memory, and amortises Python's work per block. A batch of 65,536 rows is one block."""

WIDE_ROWS: Final = 4068
BLOCK_VALUES: Final = 1 << 21
"""A block has at most BLOCK_VALUES values, so wide tables have fewer rows per block, but at least WIDE_ROWS."""

LEAST_ROWS: Final = 16_384
"""The fewest rows for which another thread is worth waking up."""

BLOCK_BYTES: Final = 1 << 28
"""Bytes of payloads per block: Arrow's string offsets end at 2 GiB, and one message is smaller than LARGEST."""

_OP_WORDS: Final = word_table({cls.TAG[0]: op for cls, op in OPERATIONS.items()})
_COPIED_WORDS: Final = word_table({Insert.TAG[0]: SNAPSHOT})


def table_rows(
    index: BatchIndex,
    rows: Numbers,
    reading: DecodePlan,
    threads: int = 1,
    copied: bool = False,
) -> Iterator[DecodedBlock]:
    """Yield the Insert, Update, Delete and Truncate messages of one table as rows, in blocks of bounded memory.

    Columns hold the new row; they are null in deletes and truncates, and for TOASTed values that were not sent, whose
    columns ``_unchanged`` names. ``_before`` holds the old row or its key. Other messages, and rows that do not fit the
    Relation, are in ``errors``.

    Args:
        index: The index of the batch.
        rows: The indexes of the table's payloads, all under the same Relation.
        reading: The plan for that Relation, with the requested columns.
        threads: The number of threads that decode blocks in parallel; the order of blocks stays.
        copied: Whether these are rows of a table copy: ``_op`` is then ``snapshot``.
    """
    table = _Table(index, reading, _COPIED_WORDS if copied else _OP_WORDS)
    return in_order(table.decode, _blocks(index, rows, _step(len(rows), reading.width, threads)), threads)


def _step(rows: int, columns: int, threads: int) -> int:
    """Return the most rows of a block; the blocks divide evenly among the threads."""
    most = min(BLOCK_ROWS, max(WIDE_ROWS, BLOCK_VALUES // max(columns, 1)))
    blocks = -(-rows // (most * threads)) * threads
    return most if threads == 1 else min(most, max(LEAST_ROWS, -(-rows // max(blocks, 1))))


def _blocks(index: BatchIndex, rows: Numbers, step: int) -> Iterator[Numbers]:
    """Yield the rows in blocks of at most ``step`` rows and BLOCK_BYTES bytes."""
    small = len(index.data) <= BLOCK_BYTES
    while len(rows):
        some = rows[:step]
        if not small:
            sizes = np.cumsum(index.ends[some] - index.starts[some])
            some = some[: max(1, int(np.searchsorted(sizes, BLOCK_BYTES, "right")))]
        yield some
        rows = rows[len(some) :]


_MANY: Final = 1 << 26
"""Bytes that are allocated for texts without comparing the estimate with the size of the payloads."""
_TAGS: Final = 256


class RowImages:
    """The new tuples of some payloads, or their old ones: a walk over their values, and the arrays of their columns.

    The walk decodes fixed-width values and texts on its way, by the plan of the columns (``pgtypes.kernels.row_plan``),
    and notes offset, length and tag of the values that it leaves. These are decoded afterwards, a column at a time by
    the casts of their types, and finally one by one through psycopg.

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


class _Table:
    """Decodes the blocks of one table in one batch."""

    def __init__(self, index: BatchIndex, reading: DecodePlan, ops: WordTable) -> None:
        self.index = index
        self.reading = reading
        self.ops = ops
        """The values of ``_op``, by tag."""

    def decode(self, rows: Numbers) -> DecodedBlock:
        """Decode one block."""
        errors = self.faults(rows)
        good = _without(rows, errors)
        new, old = self._side(good, "new"), self._side(good, "old")
        if not (new.fits and old.fits):
            errors += self.misfits(good, new, old)
            good = _without(rows, errors)
            new, old = self._side(good, "new"), self._side(good, "old")
        batch = self.batch(good, new, old) if len(good) else None
        return DecodedBlock(good, batch, tuple(sorted(errors, key=lambda error: error.row)))

    def _side(self, rows: Numbers, side: str) -> RowImages:
        return RowImages(self.index, self.reading, rows, side)

    def faults(self, rows: Numbers) -> list[RowError]:
        """Return the errors of the payloads that are not valid rows."""
        index, found = self.index, []
        for row in index.others(rows).tolist():
            name = BY_TAG.get(bytes([index.tags[row]]), type(None)).__name__
            other = ProtocolError(f"{name} among the rows of {self.name}")
            found.append(RowError(row, other) if index.valid[row] else index.row_error(row))
        first = int(rows[0])  # a payload of more than BLOCK_BYTES has a block of its own
        if index.valid[first] and index.ends[first] - index.starts[first] >= LARGEST:
            found.append(RowError(first, ProtocolError("a message of 1 GiB or more, which PostgreSQL does not send")))
        return found

    def misfits(self, rows: Numbers, *sides: RowImages) -> list[RowError]:
        """Return the errors of the rows whose number of values is not that of the Relation's columns."""
        wrong: dict[int, int] = {}
        for side in sides:
            at = np.flatnonzero(side.counts != self.reading.width)
            at = at[side.present[side.rows][at]]
            wrong |= dict(zip(rows[side.rows][at].tolist(), side.counts[at].tolist(), strict=True))
        return [RowError(row, self._width_error(count)) for row, count in wrong.items()]

    def _width_error(self, count: int) -> ProtocolError:
        return ProtocolError(
            f"a row of {self.name} has {count} values, but its Relation has {self.reading.width} columns: "
            "a newer Relation is missing from the stream"
        )

    @property
    def name(self) -> str:
        relation = self.reading.relation
        return full_name(relation)

    def batch(self, rows: Numbers, new: RowImages, old: RowImages) -> pa.RecordBatch:
        """Return the rows as a record batch."""
        reading, schema = self.reading, self.reading.schema
        new.read((), 0)
        old.read(reading.others, ord(UpdateOldKind.KEY))
        arrays: dict[str, pa.Array] = {field.name: new.column(field.name, field.type) for field in reading.columns}
        arrays["_op"] = words(self.index.tags, rows, self.ops)
        arrays["_unchanged"] = new.unchanged()
        if "_before" in schema.names:
            arrays["_before"] = old.struct(schema.field("_before").type)
        refused = {**new.untyped(""), **old.untyped("_before.")}
        arrays["_untyped"] = _untyped(len(rows), refused) if refused else reading.nulls("_untyped", len(rows))
        return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


def _without(rows: Numbers, errors: list[RowError]) -> Numbers:
    return rows[~np.isin(rows, [error.row for error in errors])] if errors else rows


def _untyped(count: int, texts: Mapping[str, Mapping[int, str]]) -> pa.Array:
    by_row: dict[int, list[tuple[str, str]]] = {}
    for name, values in texts.items():
        for row, text in values.items():
            by_row.setdefault(row, []).append((name, text))
    return pa.array([by_row.get(row) for row in range(count)], UNTYPED)
