"""The rows of one table out of an index: typed columns, old rows, and what was not sent."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from threading import local
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pgoutput_construct.columnar import kernels
from pgoutput_construct.columnar.gather import present, scatter, word_table, words
from pgoutput_construct.columnar.index import BatchIndex
from pgoutput_construct.columnar.rows import Decoded, RowError
from pgoutput_construct.columnar.threads import in_order
from pgoutput_construct.columnar.typed.column import Cast, Values
from pgoutput_construct.columnar.typed.fixed import ENTRIES, READ, Number, lay_out
from pgoutput_construct.columnar.typed.registry import find_cast
from pgoutput_construct.columnar.types import UNTYPED
from pgoutput_construct.columnar.values import CannotHold, ColumnReader
from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.stream.rows import OPERATIONS
from pgoutput_construct.stream.values import base_oid
from pgoutput_construct.wire.messages import BY_TAG, VALUES, RelationColumn, Type
from pgoutput_construct.wire.protocol import RelationColumnFlags, UpdateOldKind
from pgoutput_construct.wire.reference import LARGEST
from pgoutput_construct.wire.types import Marker

__all__ = ["BLOCK_ROWS", "table_rows"]

Numbers = NDArray[np.int64]

BLOCK_ROWS: Final = 16_264
"""Rows per block: buffers stay in the processor's cache, memory stays flat, and Python has little to do for each row.

Not a power of two: all columns would then compete for the same lines of the cache.
"""

WIDE_ROWS: Final = 4068
BLOCK_VALUES: Final = 1 << 21
"""Where a block would have more values than these, it has fewer rows, but not fewer than those of wide tables."""

THREAD_ROWS: Final = 1 << 15
THREAD_VALUES: Final = 1 << 19
"""Rows, and their values, that each of several threads decodes in one block."""

BLOCK_BYTES: Final = 1 << 28
"""Bytes of payloads per block: Arrow's strings end at 2 GiB, and one message is below LARGEST."""

SENT: Final = {name: code for name, code in kernels.VALUE_TAGS.items() if isinstance(VALUES[name], type)}
"""The tags of values that are there: text and binary format."""
UNSENT: Final = [code for name, code in kernels.VALUE_TAGS.items() if isinstance(VALUES[name], Marker)]
"""The tags of values that are not sent, and are not null either."""
OPS: Final = {cls.TAG[0]: op for cls, op in OPERATIONS.items()}
_OP_WORDS: Final = word_table(OPS)


def table_rows(
    index: BatchIndex, rows: Numbers, description: Description, columns: pa.Schema, schema: pa.Schema, threads: int = 1
) -> Iterator[Decoded]:
    """Yield Insert, Update, Delete and Truncate messages of one table as rows, in blocks that keep memory flat.

    ``rows`` are indexes of payloads; ``description`` describes all of them. ``columns`` are the columns wanted, by
    name, of types that hold the table's (``columns_schema``, or wider): columns that this Relation does not have become
    null; ``schema`` is ``rows_schema(columns)``. The table's own columns hold the new row (null in deletes and
    truncates, and where a TOASTed value was not sent: then ``_unchanged`` names the column); ``_before`` holds the old
    row or its key. Payloads that are no such message, or do not fit the description, are returned in ``errors``.
    ``threads`` decode blocks at the same time; the order stays.
    """
    step = _step(len(rows), len(description.relation.columns), threads)
    table = _Table(index, description, columns, schema, min(step, len(rows)))
    return in_order(table.decode, _blocks(index, rows, step), threads)


def _step(rows: int, columns: int, threads: int) -> int:
    """Return how many rows a block has at most; each thread has as many blocks.

    Between kernels threads wait for the interpreter's lock: in larger blocks they wait less often.
    """
    most = min(BLOCK_ROWS, max(WIDE_ROWS, BLOCK_VALUES // max(columns, 1)))
    if threads == 1 or rows <= most:
        return most
    blocks = -(-rows // max(most, min(THREAD_ROWS, THREAD_VALUES // max(columns, 1))))
    return -(-rows // (-(-blocks // threads) * threads))


def _blocks(index: BatchIndex, rows: Numbers, step: int) -> Iterator[Numbers]:
    """Yield the rows in blocks of so many at most, and of so many bytes that a column's offsets need 32 bits."""
    small = len(index.data) <= BLOCK_BYTES
    while len(rows):
        some = rows[:step]
        if not small:
            sizes = np.cumsum(index.ends[some] - index.starts[some])
            some = some[: max(1, int(np.searchsorted(sizes, BLOCK_BYTES, "right")))]
        yield some
        rows = rows[len(some) :]


class _Table:
    """What is the same for all blocks of one table."""

    def __init__(
        self, index: BatchIndex, description: Description, columns: pa.Schema, schema: pa.Schema, most: int
    ) -> None:
        """Prepare for blocks of so many rows at most."""
        self.index = index
        self.relation = description.relation
        self.schema = schema
        self.columns = columns
        self.width = len(self.relation.columns)
        wanted = {field.name: field.type for field in columns}
        self.readers = {
            position: _column(column, description.types, wanted[column.name])
            for position, column in enumerate(self.relation.columns)
            if column.name in wanted
        }
        self.plan = np.zeros((ENTRIES, self.width), np.int64)
        """How the walk over the rows reads those columns of numbers that it can."""
        for position, column in self.readers.items():
            if column.number is not None:
                self.plan[:, position] = column.number.entries(column.target, column.number_tag)
        key = RelationColumnFlags.KEY
        self.absent = pa.nulls(most, pa.struct(schema))
        """Nulls of every column, in memory that all blocks share; the columns of old rows have the types of the new."""
        self.nothing = pa.ListArray.from_arrays(pa.array(np.zeros(most + 1, np.int32)), pa.array([], pa.string()))
        """Rows of which everything was sent."""
        self.others = [i for i, column in enumerate(self.relation.columns) if not column.flags & key]
        """The columns that are no part of a key, and null in old rows that are one."""

    def decode(self, rows: Numbers) -> Decoded:
        """Return the rows of one block."""
        errors = self.faults(rows)
        good = _without(rows, errors)
        new, old = _Side(self, good, "new"), _Side(self, good, "old")
        if not (new.fits and old.fits):
            errors += self.misfits(good, new, old)
            good = _without(rows, errors)
            new, old = _Side(self, good, "new"), _Side(self, good, "old")
        batch = self.batch(good, new, old) if len(good) else None
        return Decoded(good, batch, tuple(sorted(errors, key=lambda error: error.row)))

    def faults(self, rows: Numbers) -> list[RowError]:
        """Find the payloads that are no rows."""
        index, found = self.index, []
        for row in index.others(rows).tolist():
            name = BY_TAG.get(bytes([index.tags[row]]), type(None)).__name__
            among = ProtocolError(f"{name} among the rows of {self.name}")
            found.append(RowError(row, among) if index.valid[row] else index.row_error(row))
        if len(index.data) >= LARGEST:
            sizes = index.ends[rows] - index.starts[rows]
            for row in rows[index.valid[rows] & (sizes >= LARGEST)].tolist():
                found.append(RowError(row, ProtocolError("a message of 1 GiB or more, which PostgreSQL does not send")))
        return found

    def misfits(self, rows: Numbers, *sides: "_Side") -> list[RowError]:
        """Find the rows that have another number of values than the Relation has columns."""
        wrong: dict[int, int] = {}
        for side in sides:
            at = np.flatnonzero(side.counts != self.width)
            at = at[side.present[side.rows][at]]
            wrong |= dict(zip(rows[side.rows][at].tolist(), side.counts[at].tolist(), strict=True))
        return [RowError(row, self._width_error(count)) for row, count in wrong.items()]

    def _width_error(self, count: int) -> ProtocolError:
        return ProtocolError(
            f"a row of {self.name} has {count} values, but its Relation has {self.width} columns: "
            "a Relation between them is missing"
        )

    @property
    def name(self) -> str:
        return f"{self.relation.namespace or 'pg_catalog'}.{self.relation.name}"

    def batch(self, rows: Numbers, new: "_Side", old: "_Side") -> pa.RecordBatch:
        """Return the rows as a batch."""
        if old.have and self.others:
            old.blank(self.others, self.index.rows["old_kind"][rows] == ord(UpdateOldKind.KEY))
        new.read()
        old.read()
        arrays: dict[str, pa.Array] = {field.name: new.column(field.name, field.type) for field in self.columns}
        arrays["_op"] = words(self.index.tags, rows, _OP_WORDS)
        arrays["_unchanged"] = new.unchanged()
        if "_before" in self.schema.names:
            arrays["_before"] = old.struct(self.schema.field("_before").type)
        refused = {**new.untyped(""), **old.untyped("_before.")}
        arrays["_untyped"] = _untyped(len(rows), refused) if refused else self.nulls("_untyped", len(rows))
        return pa.RecordBatch.from_arrays([arrays[name] for name in self.schema.names], schema=self.schema)

    def nulls(self, name: str, count: int) -> pa.Array:
        """Return so many nulls of a column."""
        return self.absent.field(name).slice(0, count)


@dataclass(frozen=True)
class _Column:
    """How one column is read."""

    name: str
    target: pa.DataType
    casts: Mapping[str, Cast | None]
    """The kernel for each of the formats of SENT, None where values go one by one."""
    reader: ColumnReader
    number: Number | None
    number_tag: int
    """The cast that the walk over the rows does, and the tag of its format."""


def _column(column: RelationColumn, types: Mapping[int, Type], target: pa.DataType) -> _Column:
    oid = base_oid(column.type_oid, types)
    casts = {name: find_cast(code, oid, target) for name, code in SENT.items()}
    numbers = ((cast, SENT[name]) for name, cast in casts.items() if isinstance(cast, Number))
    return _Column(column.name, target, casts, ColumnReader(column, types, target), *next(numbers, (None, 0)))


class _Side:
    """The new rows of some payloads, or their old ones.

    Where most payloads have this side, the columns are read over all of them, and are null in the others; where few
    have it, such as the old rows of inserts, over those few, and then spread out.
    """

    def __init__(self, table: _Table, rows: Numbers, side: str) -> None:
        self.table = table
        self.count = len(rows)
        self.places, self.have = present(table.index.rows[side], rows)
        """Where this side of each row begins, -1 for none; and how many rows have it."""
        self.sparse: Numbers | None = np.flatnonzero(self.present) if 2 * self.have < self.count else None
        """The rows that have this side, where these are few."""
        self.rows = slice(None) if self.sparse is None else self.sparse
        """Which of the rows are looked at."""
        places = self.places[self.rows]
        self.counts = np.zeros(len(places), np.int32)
        self.starts, self.lengths, self.tags = _places(side, table.width, len(places))
        self.seen, self.sizes = np.zeros((table.width, 256), np.int32), np.zeros(table.width, np.int64)
        """How often each tag stands in a column, and how many bytes its values have."""
        (find,) = kernels.TUPLES.values()
        given = table.index.given(rows[self.rows], places)
        self.plan, self.numbers = lay_out(table.plan, len(places))
        found = self.tags, self.starts, self.lengths, self.seen, self.sizes
        self.fits = find(*given, table.width, self.plan, self.numbers, self.counts, *found)
        """Whether all rows have as many values as there are columns."""
        self.refused: dict[str, dict[int, str]] = {}
        """PostgreSQL's text of values that their column cannot hold, by column and row."""
        self.arrays: dict[str, pa.Array] = {}

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which of the rows have this side."""
        return self.places >= 0

    def blank(self, positions: Sequence[int], rows: NDArray[np.bool_]) -> None:
        """Take columns of some rows for nulls. PostgreSQL sends them so: then there is nothing to do."""
        null = kernels.VALUE_TAGS["null"]
        for position in positions if rows.any() else ():
            if self.seen[position, null] < self.have:
                self.tags[position, rows[self.rows]] = null
                self.seen[position] = np.bincount(self.tags[position], minlength=256)

    def read(self) -> None:
        """Read all columns that have values."""
        seen = self.seen[:, [READ, *SENT.values()]].tolist() if self.have else []
        for position, column in self.table.readers.items() if self.have else ():
            read, *sent = seen[position]
            pieces = [(READ, self._numbers(position, column, read))] if read else []
            pieces += [(SENT[name], self._cast(position, column, name)) for name in compress(SENT, sent)]
            if pieces:
                self.arrays[column.name] = pieces[0][1] if len(pieces) == 1 else self._merged(position, column, pieces)

    def column(self, name: str, target: pa.DataType) -> pa.Array:
        """Return a column over all rows, null where they do not have this side."""
        array = self.arrays.get(name)
        if array is None:
            return self.table.nulls(name, self.count)
        return array if self.sparse is None else scatter([(self.sparse, array)], self.count, target)

    def struct(self, target: pa.DataType) -> pa.Array:
        """Return all columns as one of structs, null where the rows do not have this side."""
        if not self.have:
            return self.table.nulls("_before", self.count)
        children = [self.column(field.name, field.type) for field in target]
        validity = pa.py_buffer(np.packbits(self.present, bitorder="little"))
        return pa.Array.from_buffers(target, self.count, [validity], children=children)

    def unchanged(self) -> pa.Array:
        """Return the names of the columns that were not sent, row by row; empty lists where the side is missing."""
        if not self.seen[:, UNSENT].any():
            return self.table.nothing.slice(0, self.count)
        positions = sorted(self.table.readers)
        flags = np.isin(self.tags[positions], UNSENT) if positions else np.zeros((0, self.tags.shape[1]), np.bool_)
        counts = np.zeros(self.count + 1, np.int32)
        counts[1:][slice(None) if self.sparse is None else self.sparse] = flags.sum(axis=0)
        _, which = np.nonzero(flags.T)
        names = pa.array([self.table.readers[position].name for position in positions], pa.string())
        values = names.take(pa.array(which, pa.int64()))
        return pa.ListArray.from_arrays(pa.array(np.cumsum(counts, dtype=np.int32)), values)

    def untyped(self, prefix: str) -> dict[str, dict[int, str]]:
        """Return what the columns cannot hold, by name and row."""
        return {prefix + name: texts for name, texts in self.refused.items() if texts}

    def _merged(self, position: int, column: _Column, pieces: Sequence[tuple[int, pa.Array]]) -> pa.Array:
        """Return a column whose values came in several ways, each with a tag of its own."""
        own = [(self.tags[position] == tag, array) for tag, array in pieces]
        given = [(np.flatnonzero(mine), array.filter(mine)) for mine, array in own]
        return scatter(given, len(self.counts), column.target)

    def _numbers(self, position: int, column: _Column, count: int) -> pa.Array:
        """Return the values that the walk over the rows has read."""
        assert column.number is not None
        tags = None if count == len(self.counts) else self.tags[position]
        return column.number.array(column.target, self.plan[:, position], self.numbers, len(self.counts), tags)

    def _cast(self, position: int, column: _Column, name: str) -> pa.Array:
        """Return the values of one format, by the kernel of their type, and one by one where it leaves them."""
        code, tags, cast = SENT[name], self.tags[position], column.casts[name]
        if cast is None:
            return self._one_by_one(position, column, name, tags == code)
        given = self.table.index.data, self.starts[position], self.lengths[position], tags, code
        values = Values(*given, int(self.seen[position, code]), int(self.sizes[position]))
        try:
            array, left = cast(values, column.target)
        except ValueError:  # Arrow's own: a text is not UTF-8, or no number
            return self._one_by_one(position, column, name, tags == code)
        if left is None:
            return array
        return pc.if_else(pa.array(left), self._one_by_one(position, column, name, left), array)

    def _one_by_one(self, position: int, column: _Column, name: str, chosen: NDArray[np.bool_]) -> pa.Array:
        """Load the chosen values through psycopg; the others are null, as are those that the type cannot hold."""
        cls: Any = VALUES[name]
        refused = self.refused.setdefault(column.name, {})
        loaded: list[Any] = [None] * len(chosen)
        for row in np.flatnonzero(chosen).tolist():
            start = self.starts[position, row]
            value = cls(self.table.index.data[start : start + self.lengths[position, row]].tobytes())
            try:
                loaded[row] = column.reader.load(value)
            except CannotHold:
                refused[row if self.sparse is None else int(self.sparse[row])] = column.reader.text(value)
        return pa.array(loaded, column.target)


_MOST_KEPT: Final = 1 << 24
_PLACES: Final = local()
"""Room that a thread's last block has left, by side: new memory is taken from the kernel, page by page."""


def _places(side: str, columns: int, rows: int) -> Any:
    """Return room for where each value starts, its length and its tag, until the thread's next block."""
    size = columns * rows
    kept = getattr(_PLACES, side, None)
    if kept is None or len(kept) < 13 * size:
        kept = np.empty(13 * size, np.uint8)
        setattr(_PLACES, side, kept if 13 * size <= _MOST_KEPT else None)
    starts, lengths, tags = kept[: 8 * size], kept[8 * size : 12 * size], kept[12 * size : 13 * size]
    views = starts.view(np.int64), lengths.view(np.int32), tags
    return tuple(view.reshape(columns, rows) for view in views)


def _without(rows: Numbers, errors: list[RowError]) -> Numbers:
    return rows[~np.isin(rows, [error.row for error in errors])] if errors else rows


def _untyped(count: int, texts: Mapping[str, Mapping[int, str]]) -> pa.Array:
    by_row: dict[int, list[tuple[str, str]]] = {}
    for name, values in texts.items():
        for row, text in values.items():
            by_row.setdefault(row, []).append((name, text))
    return pa.array([by_row.get(row) for row in range(count)], UNTYPED)
