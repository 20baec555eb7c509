"""The rows of one table from an index, in blocks: typed columns, old rows, and the names of columns not sent."""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.columnar.batch_arrays import WordTable, word_table, words
from pgoutput_construct.columnar.decode_plan import DecodePlan
from pgoutput_construct.columnar.index import BatchIndex
from pgoutput_construct.columnar.row_images import RowImages
from pgoutput_construct.columnar.row_schema import DecodedBlock, RowError
from pgoutput_construct.columnar.threads import in_order
from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.pgtypes.arrow_types import UNTYPED
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.rows import OPERATIONS, SNAPSHOT
from pgoutput_construct.wire.messages import BY_TAG, Insert
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
