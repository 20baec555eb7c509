"""Rows of a batch as Python values, a column at a time: what ``RowReader`` reads one by one, many times as fast.

Psycopg's loaders take less time than everything around them, so everything else is done once for many rows: a kernel
locates the values, Arrow cuts a column into bytes, and a loader is mapped over it. Rows with a value that was not sent,
or in binary format, are left to ``RowReader``, as are rows that do not fit their Relation: they are few, and what
becomes of them is decided there alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.columnar import kernels
from pgoutput_construct.columnar.batch_arrays import strings
from pgoutput_construct.columnar.index import BatchIndex
from pgoutput_construct.compiled.memory import room
from pgoutput_construct.pgtypes.kernels.cast import ColumnValues
from pgoutput_construct.pgtypes.kernels.row_plan import ENTRIES
from pgoutput_construct.pgtypes.loader import ValueLoader
from pgoutput_construct.stream.rows import OPERATIONS
from pgoutput_construct.wire.messages import VALUE_TAGS, Relation
from pgoutput_construct.wire.protocol import RelationColumnFlags, UpdateOldKind

__all__ = ["LoadedRows", "load_rows"]

Numbers = NDArray[np.int64]
Row = dict[str, Any]

_TEXT: Final = VALUE_TAGS["text"]
_NULL: Final = VALUE_TAGS["null"]
_OPS: Final = {cls.TAG[0]: op for cls, op in OPERATIONS.items()}
_KEY: Final = ord(UpdateOldKind.KEY)
_TAGS: Final = 256


class LoadedRows(NamedTuple):
    """Some rows of one table; the lists have an entry for each."""

    ops: list[str]
    """Their operations, of OPERATIONS."""
    new: list[Row | None]
    """The new rows; None for a delete."""
    old: list[Row | None]
    """The old rows, or only their keys; None if they were not sent."""
    left: Numbers
    """The indexes of the rows that were not read: their entries are to be replaced by what ``RowReader`` says."""


def load_rows(index: BatchIndex, rows: Numbers, relation: Relation, loader: ValueLoader | None) -> LoadedRows:
    """Read the Insert, Update and Delete messages of one table.

    Args:
        index: The index of the batch.
        rows: The indexes of valid messages with tuples, all described by ``relation``.
        relation: Their Relation.
        loader: Loads the values; None leaves them as they were sent.
    """
    ops = [_OPS[tag] for tag in index.tags[rows].tolist()]
    names = [column.name for column in relation.columns]
    new, left = _side(_Side(index, rows, "new", relation, loader), [*range(len(names))])
    old_kinds, keys = (
        index.rows["old_kind"][rows],
        [number for number, column in enumerate(relation.columns) if column.flags & RelationColumnFlags.KEY],
    )
    is_key = old_kinds == _KEY
    old: list[Row | None] = [None] * len(rows)
    for chosen, columns in ((np.flatnonzero(is_key), keys), (np.flatnonzero(~is_key), [*range(len(names))])):
        if len(chosen):
            found, others = _side(_Side(index, rows[chosen], "old", relation, loader), columns)
            for number, row in zip(chosen.tolist(), found, strict=True):
                old[number] = row
            left = np.append(left, chosen[others])
    if len({*names}) < len(names):
        left = np.arange(len(rows))
    return LoadedRows(ops, new, old, np.unique(left))


@dataclass(frozen=True)
class _Side:
    """The new or the old tuples of some messages."""

    index: BatchIndex
    rows: Numbers
    side: str
    relation: Relation
    loader: ValueLoader | None

    def column(self, number: int, values: ColumnValues) -> Sequence[Any]:
        """Return the values of one column, None for NULL."""
        raw: list[bytes | None] = strings(values, pa.binary()).to_pylist()
        if self.loader is None:
            return raw
        oid = self.relation.columns[number].type_oid
        load = self.loader.text_loader(oid)
        try:
            if values.count == len(raw):
                return list(map(load, raw))  # type: ignore[arg-type]
            return [None if value is None else load(value) for value in raw]
        except MemoryError:
            raise
        except Exception:  # a value that Python cannot represent: find out which
            return [self.loader.load(value, oid) for value in raw]


def _side(given: _Side, columns: Sequence[int]) -> tuple[list[Row | None], Numbers]:
    """Return a row of some columns for each message, None for those without a tuple; and the indexes of those left."""
    index, width = given.index, len(given.relation.columns)
    offsets = index.rows[given.side][given.rows]
    found: list[Row | None] = [None] * len(offsets)
    here = np.flatnonzero(offsets >= 0)
    if not len(here):
        return found, here
    count = len(here)
    starts, lengths = room(width * count, np.int64).reshape(width, count), room(width * count, np.int32)
    lengths, tags = lengths.reshape(width, count), room(width * count).reshape(width, count)
    seen, sizes = np.zeros((width, _TAGS), np.int64), np.zeros(width, np.int64)
    (find,) = kernels.TUPLES.values()
    located = find(
        *index.given_rows(given.rows[here], offsets[here]),
        width,
        np.zeros((width, ENTRIES), np.int64),  # no column is decoded on the way
        np.zeros(1, np.uint8),
        np.zeros(count, np.int32),
        tags,
        starts,
        lengths,
        seen,
        sizes,
    )
    if not located:
        return found, here
    texts = seen[:, _TEXT].tolist()
    left = np.zeros(0, np.int64)
    if sum(texts) + int(seen[:, _NULL].sum()) < width * count:
        left = here[((tags != _TEXT) & (tags != _NULL)).any(axis=0)]
    loaded = [
        given.column(
            number,
            ColumnValues(
                index.data, starts[number], lengths[number], tags[number], _TEXT, texts[number], int(sizes[number])
            ),
        )
        for number in columns
    ]
    names = [given.relation.columns[number].name for number in columns]
    rows: list[Row] = list(map(dict, map(zip, repeat(names), zip(*loaded, strict=True))))
    if not columns:
        rows = [Row() for _ in range(count)]
    if count == len(found):
        return list(rows), left
    for number, row in zip(here.tolist(), rows, strict=True):
        found[number] = row
    return found, left
