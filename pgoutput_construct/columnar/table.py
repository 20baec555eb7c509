"""The rows of one table out of an index: typed columns, old rows, and what was not sent."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pgoutput_construct.columnar import kernels
from pgoutput_construct.columnar.casts import Values, find_cast
from pgoutput_construct.columnar.decode import Decoded, RowError
from pgoutput_construct.columnar.gather import empty_lists, nulls, scatter
from pgoutput_construct.columnar.index import IS_ROW, BatchIndex
from pgoutput_construct.columnar.types import UNTYPED
from pgoutput_construct.columnar.values import CannotHold, ColumnReader
from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.stream.values import base_oid
from pgoutput_construct.wire.messages import BY_TAG, VALUES
from pgoutput_construct.wire.protocol import CHANGES, RelationColumnFlags, UpdateOldKind
from pgoutput_construct.wire.reference import LARGEST

__all__ = ["BLOCK_VALUES", "table_rows"]

Numbers = NDArray[np.int64]

BLOCK_ROWS: Final = 4096
"""Rows that are in work at a time, at least: below that, what a column costs once outweighs what its values cost."""
BLOCK_VALUES: Final = 1 << 19
"""Values that are in work at a time: the index of them stays in the processor's cache, and memory stays flat."""

BLOCK_BYTES: Final = 1 << 28
"""Bytes of payloads that are in work at a time: Arrow's strings end at 2 GiB, and one message is below LARGEST."""

IS_SENT: Final = np.zeros(256, np.bool_)
IS_SENT[[code for name, code in kernels.VALUE_TAGS.items() if isinstance(VALUES[name], type)]] = True
OPS: Final = {cls.TAG[0]: cls.__name__.lower() for cls in CHANGES}


def table_rows(
    index: BatchIndex, rows: Numbers, description: Description, columns: pa.Schema, schema: pa.Schema
) -> Iterator[Decoded]:
    """Yield the rows of one table in blocks; ``rows`` are indexes of payloads, ``schema`` those of ``columns``."""
    table = _Table(index, description, columns, schema)
    step = max(BLOCK_ROWS, BLOCK_VALUES // max(1, len(description.relation.columns)))
    for some in _blocks(index, rows, step):
        errors = table.faults(some)
        good = _without(some, errors)
        batch = table.batch(good)
        if batch is None:
            errors += table.misfits(good)
            good = _without(some, errors)
            batch = table.batch(good)
        yield Decoded(good, batch, tuple(sorted(errors, key=lambda error: error.row)))


def _blocks(index: BatchIndex, rows: Numbers, step: int) -> Iterator[Numbers]:
    """Yield the rows in blocks of so many at most, and of so many bytes that a column's offsets need 32 bits."""
    while len(rows):
        some = rows[:step]
        sizes = np.cumsum(index.ends[some] - index.starts[some])
        some = some[: max(1, int(np.searchsorted(sizes, BLOCK_BYTES, "right")))]
        yield some
        rows = rows[len(some) :]


class _Table:
    """What is the same for all blocks of one table."""

    def __init__(self, index: BatchIndex, description: Description, columns: pa.Schema, schema: pa.Schema) -> None:
        self.index = index
        self.relation = description.relation
        self.schema = schema
        self.columns = columns
        self.width = len(self.relation.columns)
        wanted = {field.name: field.type for field in columns}
        self.readers = {
            position: _Column(column.name, wanted[column.name], base_oid(column.type_oid, description.types),
                              ColumnReader(column, description.types, wanted[column.name]))
            for position, column in enumerate(self.relation.columns) if column.name in wanted
        }  # fmt: skip
        self.keys = frozenset(
            i for i, column in enumerate(self.relation.columns) if column.flags & RelationColumnFlags.KEY
        )

    def faults(self, rows: Numbers) -> list[RowError]:
        """Find the payloads that are no rows."""
        index = self.index
        valid = index.valid[rows]
        found = [] if valid.all() else [RowError(row, index.error(row)) for row in rows[~valid].tolist()]
        sizes = index.ends[rows] - index.starts[rows]
        for row in rows[valid & (sizes >= LARGEST)].tolist():
            found.append(RowError(row, ProtocolError("a message of 1 GiB or more, which PostgreSQL does not send")))
        others = valid & ~IS_ROW[index.tags[rows]]
        for row in rows[others].tolist() if others.any() else ():
            kind = BY_TAG[bytes([index.tags[row]])].__name__
            found.append(RowError(row, ProtocolError(f"{kind} among the rows of {self.name}")))
        return found

    def misfits(self, rows: Numbers) -> list[RowError]:
        """Find the rows that have another number of values than the Relation has columns."""
        wrong = self._widths("old", rows) | self._widths("new", rows)
        return [RowError(row, self._width_error(count)) for row, count in wrong.items()]

    def _widths(self, side: str, rows: Numbers) -> dict[int, int]:
        """Return the rows that have another number of values than the Relation has columns, and how many."""
        places = self.index.rows[side][rows]
        rows, places = rows[places >= 0], places[places >= 0]
        counts = self.index.data[places].astype(np.int64) << 8 | self.index.data[places + 1]
        wrong = counts != self.width
        return dict(zip(rows[wrong].tolist(), counts[wrong].tolist(), strict=True))

    def _width_error(self, count: int) -> ProtocolError:
        return ProtocolError(
            f"a row of {self.name} has {count} values, but its Relation has {self.width} columns: "
            "a Relation between them is missing"
        )

    @property
    def name(self) -> str:
        return f"{self.relation.namespace or 'pg_catalog'}.{self.relation.name}"

    def batch(self, rows: Numbers) -> pa.RecordBatch | None:
        """Return the rows as a batch; None when one of them has another number of values than there are columns."""
        new, old = _Side(self, rows, "new"), _Side(self, rows, "old")
        if new.misfit or old.misfit:
            return None
        whole = self.index.rows["old_kind"][rows] != ord(UpdateOldKind.KEY)
        new.read(lambda position: None)
        old.read(lambda position: None if position in self.keys else whole)
        arrays: dict[str, pa.Array] = {field.name: new.column(field.name, field.type) for field in self.columns}
        arrays["_op"] = _ops(self.index.tags[rows])
        arrays["_unchanged"] = new.unchanged()
        if "_before" in self.schema.names:
            arrays["_before"] = old.struct(self.schema.field("_before").type)
        arrays["_untyped"] = _untyped(len(rows), {**new.untyped(""), **old.untyped("_before.")})
        return pa.RecordBatch.from_arrays([arrays[name] for name in self.schema.names], schema=self.schema)


@dataclass(frozen=True)
class _Column:
    """How one column is read."""

    name: str
    target: pa.DataType
    type_oid: int
    reader: ColumnReader


class _Side:
    """The new rows of some payloads, or their old ones.

    Where most payloads have this side, the columns are read over all of them, and are null in the others; where few
    have it, such as the old rows of inserts, over those few, and then spread out.
    """

    def __init__(self, table: _Table, rows: Numbers, side: str) -> None:
        self.table = table
        self.count = len(rows)
        places = table.index.rows[side][rows]
        self.present = places >= 0
        """Which of the rows have this side."""
        have = int(np.count_nonzero(self.present))
        self.sparse: Numbers | None = np.flatnonzero(self.present) if 2 * have < self.count else None
        """The rows that have this side, where these are few."""
        places = places if self.sparse is None else places[self.sparse]
        shape = (table.width, len(places))
        self.tags, self.lengths = np.zeros(shape, np.uint8), np.zeros(shape, np.int32)
        self.starts = np.zeros(shape, np.int64)
        (find,) = kernels.TUPLES.values()
        self.misfit = find(table.index.data, places, table.width, self.tags, self.starts, self.lengths) >= 0
        """Whether a row has another number of values than there are columns."""
        self.refused: dict[str, dict[int, str]] = {}
        """PostgreSQL's text of values that their column cannot hold, by column and row."""
        self.arrays: dict[str, pa.Array] = {}

    def read(self, sent: Callable[[int], NDArray[np.bool_] | None]) -> None:
        """Read all columns; ``sent`` tells which rows hold more than nulls in a column, None for all of them."""
        if self.present.any():
            self.arrays = {column.name: self._read(i, column, sent(i)) for i, column in self.table.readers.items()}

    def column(self, name: str, kind: pa.DataType) -> pa.Array:
        """Return a column over all rows, null where they do not have this side."""
        array = self.arrays.get(name)
        if array is None:
            return nulls(self.count, kind)
        return array if self.sparse is None else scatter([(self.sparse, array)], self.count, kind)

    def struct(self, kind: pa.DataType) -> pa.Array:
        """Return all columns as one of structs, null where the rows do not have this side."""
        if not self.present.any():
            return nulls(self.count, kind)
        if self.sparse is None:
            children = [self.column(field.name, field.type) for field in kind]
            return pa.StructArray.from_arrays(children, fields=list(kind), mask=pa.array(~self.present))
        few = [self.arrays.get(field.name, nulls(len(self.sparse), field.type)) for field in kind]
        return scatter([(self.sparse, pa.StructArray.from_arrays(few, fields=list(kind)))], self.count, kind)

    def unchanged(self) -> pa.Array:
        """Return the names of the columns that were not sent, row by row; empty lists where the side is missing."""
        code = kernels.VALUE_TAGS["unchanged"]
        positions = sorted(self.table.readers)
        if not (self.tags == code).any():
            return empty_lists(self.count)
        flags = self.tags[positions] == code if positions else np.zeros((0, self.tags.shape[1]), np.bool_)
        counts = np.zeros(self.count + 1, np.int32)
        counts[1:][slice(None) if self.sparse is None else self.sparse] = flags.sum(axis=0)
        _, which = np.nonzero(flags.T)
        names = pa.array([self.table.readers[position].name for position in positions], pa.string())
        values = names.take(pa.array(which, pa.int64()))
        return pa.ListArray.from_arrays(pa.array(np.cumsum(counts, dtype=np.int32)), values)

    def untyped(self, prefix: str) -> dict[str, dict[int, str]]:
        """Return what the columns cannot hold, by name and row."""
        return {prefix + name: texts for name, texts in self.refused.items() if texts}

    def _read(self, position: int, column: _Column, sent: NDArray[np.bool_] | None) -> pa.Array:
        tags = self.tags[position]
        if sent is not None and not sent.all():
            tags = np.where(sent if self.sparse is None else sent[self.sparse], tags, kernels.VALUE_TAGS["null"])
        pieces: list[tuple[Numbers, pa.Array]] = []
        for name, code in kernels.VALUE_TAGS.items():
            if isinstance(VALUES[name], type):
                chosen = tags == code
                if chosen.all() or (chosen.any() and not IS_SENT[tags[~chosen]].any()):
                    return self._cast(position, column, name, chosen)
                if chosen.any():
                    pieces.append((np.flatnonzero(chosen), self._cast(position, column, name, chosen).filter(chosen)))
        return scatter(pieces, len(tags), column.target)

    def _cast(self, position: int, column: _Column, kind: str, chosen: NDArray[np.bool_]) -> pa.Array:
        """Cast the values of one kind as a whole, and what is left one by one; the others are null."""
        cast = find_cast(kernels.VALUE_TAGS[kind], column.type_oid, column.target)
        if cast is None:
            return self._one_by_one(position, column, kind, chosen)
        starts, lengths = self.starts[position], self.lengths[position]
        values = Values(self.table.index.data, starts, lengths, None if chosen.all() else ~chosen)
        try:
            array, fits = cast(values, column.target)
        except ValueError:  # Arrow's own, or the text of its error is not UTF-8
            return self._one_by_one(position, column, kind, chosen)
        if fits.all():
            return array
        rest = self._one_by_one(position, column, kind, ~fits)
        return pc.if_else(pa.array(fits), array, rest)

    def _one_by_one(self, position: int, column: _Column, kind: str, chosen: NDArray[np.bool_]) -> pa.Array:
        """Load the chosen values through psycopg; the others are null, as are those that the type cannot hold."""
        cls: Any = VALUES[kind]
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


def _without(rows: Numbers, errors: list[RowError]) -> Numbers:
    return rows[~np.isin(rows, [error.row for error in errors])] if errors else rows


def _ops(tags: NDArray[np.uint8]) -> pa.Array:
    names = pa.array(list(OPS.values()), pa.string())
    codes = np.zeros(256, np.int8)
    codes[list(OPS)] = range(len(OPS))
    return names.take(pa.array(codes[tags]))


def _untyped(count: int, texts: Mapping[str, Mapping[int, str]]) -> pa.Array:
    if not texts:
        return nulls(count, UNTYPED)
    by_row: dict[int, list[tuple[str, str]]] = {}
    for name, values in texts.items():
        for row, text in values.items():
            by_row.setdefault(row, []).append((name, text))
    return pa.array([by_row.get(row) for row in range(count)], UNTYPED)
