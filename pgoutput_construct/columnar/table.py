"""The rows of one table out of an index: typed columns, old rows, and what was not sent."""

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
"""Rows per block: memory stays flat, and Python has little to do for each row. 65,536 rows are one block a thread."""

WIDE_ROWS: Final = 4068
BLOCK_VALUES: Final = 1 << 21
"""Where a block would have more values than these, it has fewer rows, but not fewer than those of wide tables."""

LEAST_ROWS: Final = 16_384
"""Rows for which another thread is worth waking up, at least."""

BLOCK_BYTES: Final = 1 << 28
"""Bytes of payloads per block: Arrow's strings end at 2 GiB, and one message is below LARGEST."""

_OP_WORDS: Final = word_table({cls.TAG[0]: op for cls, op in OPERATIONS.items()})
_COPIED_WORDS: Final = word_table({Insert.TAG[0]: SNAPSHOT})


def table_rows(
    index: BatchIndex,
    rows: Numbers,
    reading: DecodePlan,
    threads: int = 1,
    copied: bool = False,
) -> Iterator[DecodedBlock]:
    """Yield Insert, Update, Delete and Truncate messages of one table as rows, in blocks that keep memory flat.

    ``rows`` are indexes of payloads; ``reading`` says what describes all of them, and which columns are wanted. These
    hold the new row (null in deletes and truncates, and where a TOASTed value was not sent: then ``_unchanged`` names
    the column); ``_before`` holds the old row or its key. Payloads that are no such message, or do not fit the
    description, are returned in ``errors``. ``threads`` decode blocks at the same time; the order stays. Rows that were
    ``copied`` say so in ``_op``.
    """
    table = _Table(index, reading, _COPIED_WORDS if copied else _OP_WORDS)
    return in_order(table.decode, _blocks(index, rows, _step(len(rows), reading.width, threads)), threads)


def _step(rows: int, columns: int, threads: int) -> int:
    """Return how many rows a block has at most; each thread has as many blocks."""
    most = min(BLOCK_ROWS, max(WIDE_ROWS, BLOCK_VALUES // max(columns, 1)))
    blocks = -(-rows // (most * threads)) * threads
    return most if threads == 1 else min(most, max(LEAST_ROWS, -(-rows // max(blocks, 1))))


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
    """What is the same for all blocks of one table in one batch."""

    def __init__(self, index: BatchIndex, reading: DecodePlan, ops: WordTable) -> None:
        self.index = index
        self.reading = reading
        self.ops = ops
        """The words of ``_op``."""

    def decode(self, rows: Numbers) -> DecodedBlock:
        """Return the rows of one block."""
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
        """Find the payloads that are no rows."""
        index, found = self.index, []
        for row in index.others(rows).tolist():
            name = BY_TAG.get(bytes([index.tags[row]]), type(None)).__name__
            among = ProtocolError(f"{name} among the rows of {self.name}")
            found.append(RowError(row, among) if index.valid[row] else index.row_error(row))
        first = int(rows[0])  # one of more than BLOCK_BYTES has a block of its own
        if index.valid[first] and index.ends[first] - index.starts[first] >= LARGEST:
            found.append(RowError(first, ProtocolError("a message of 1 GiB or more, which PostgreSQL does not send")))
        return found

    def misfits(self, rows: Numbers, *sides: RowImages) -> list[RowError]:
        """Find the rows that have another number of values than the Relation has columns."""
        wrong: dict[int, int] = {}
        for side in sides:
            at = np.flatnonzero(side.counts != self.reading.width)
            at = at[side.present[side.rows][at]]
            wrong |= dict(zip(rows[side.rows][at].tolist(), side.counts[at].tolist(), strict=True))
        return [RowError(row, self._width_error(count)) for row, count in wrong.items()]

    def _width_error(self, count: int) -> ProtocolError:
        return ProtocolError(
            f"a row of {self.name} has {count} values, but its Relation has {self.reading.width} columns: "
            "a Relation between them is missing"
        )

    @property
    def name(self) -> str:
        relation = self.reading.relation
        return full_name(relation)

    def batch(self, rows: Numbers, new: RowImages, old: RowImages) -> pa.RecordBatch:
        """Return the rows as a batch."""
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
