"""What is read of one table's columns: which kernel or reader for each, and what the walk over its rows is told."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.columnar.row_schema import rows_schema
from pgoutput_construct.pgtypes.column_reader import ColumnReader
from pgoutput_construct.pgtypes.kernels.cast import Cast
from pgoutput_construct.pgtypes.kernels.cast_table import find_cast
from pgoutput_construct.pgtypes.kernels.planned_casts import plan_of
from pgoutput_construct.pgtypes.kernels.row_plan import ENTRIES
from pgoutput_construct.pgtypes.loader import base_oid
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.wire.messages import VALUE_TAGS, VALUES, RelationColumn, Type
from pgoutput_construct.wire.protocol import RelationColumnFlags
from pgoutput_construct.wire.types import Marker

__all__ = ["SENT", "UNSENT", "DecodePlan", "PlannedColumn"]

Numbers = NDArray[np.int64]

SENT: Final = {name: code for name, code in VALUE_TAGS.items() if isinstance(VALUES[name], type)}
"""The tags of values that are there: text and binary format."""
UNSENT: Final = [code for name, code in VALUE_TAGS.items() if isinstance(VALUES[name], Marker)]
"""The tags of values that are not sent, and are not null either."""

_ALL_SENT: Final = ""
"""The name under which lists of nothing stand: that of no column."""


@dataclass(frozen=True)
class PlannedColumn:
    """How one column is read."""

    name: str
    target: pa.DataType
    casts: Mapping[str, Cast | None]
    """The kernel for each of the formats of SENT, None where values go one by one."""
    reader: ColumnReader


def _column(column: RelationColumn, types: Mapping[int, Type], target: pa.DataType) -> PlannedColumn:
    oid = base_oid(column.type_oid, types)
    casts = {name: find_cast(code, oid, target) for name, code in SENT.items()}
    return PlannedColumn(column.name, target, casts, ColumnReader(column, types, target))


class DecodePlan:
    """What is read of the columns of one table, the same for all of its rows; threads may share it."""

    def __init__(self, description: Description, columns: pa.Schema) -> None:
        """Prepare for rows that ``description`` describes.

        ``columns`` are the columns wanted, by name, of types that hold the table's (``columns_schema``, or wider);
        those that this Relation does not have are null. Raises PgoutputError for a type that no value is read into.
        """
        self.relation = description.relation
        self.columns = columns
        self.schema = rows_schema(columns)
        self.width = len(self.relation.columns)
        """How many values a row has."""
        key = RelationColumnFlags.KEY
        self.others = [i for i, column in enumerate(self.relation.columns) if not column.flags & key]
        """The columns that are no part of a key, and null in old rows that are one."""
        wanted = {field.name: field.type for field in columns}
        self.readers = {
            position: _column(column, description.types, wanted[column.name])
            for position, column in enumerate(self.relation.columns)
            if column.name in wanted
        }
        """The columns that are wanted, by their position in the Relation."""
        self.plan = np.zeros((self.width, ENTRIES), np.int64)
        """How the walk over the rows reads those columns that it can."""
        for position, column in self.readers.items():
            self.plan[position] = plan_of(column.target, {SENT[name]: cast for name, cast in column.casts.items()})
        self._expected: dict[str, Numbers] = {}
        self._without = self._rows_without(0)

    def expected(self, side: str, mean: Callable[[], float]) -> Numbers:
        """Return how many bytes of text to expect in each column of a row; whoever finds others writes them there.

        ``mean`` is asked for those of a payload the first time. What has no room is read later, where it stands.
        """
        known = self._expected.get(side)
        if known is None:
            known = self._expected[side] = np.full(self.width, int(2 * mean() / max(self.width, 1)) + 1)
        return known

    def nulls(self, name: str, count: int) -> pa.Array:
        """Return so many nulls of a column, in memory that all blocks share; old rows have the types of the new."""
        return self._shared(count)[name].slice(0, count)

    def all_sent(self, count: int) -> pa.Array:
        """Return the names of what was not sent for so many rows of which everything was: empty lists."""
        return self._shared(count)[_ALL_SENT].slice(0, count)

    def _shared(self, count: int) -> Mapping[str, pa.Array]:
        without = self._without
        if len(without[_ALL_SENT]) < count:
            # The next block may have a few rows more.
            self._without = without = self._rows_without(count + count // 8)
        return without

    def _rows_without(self, count: int) -> Mapping[str, pa.Array]:
        nulls = pa.nulls(count, pa.struct(self.schema)).flatten()
        all_sent = pa.ListArray.from_arrays(pa.array(np.zeros(count + 1, np.int32)), pa.array([], pa.string()))
        return {**dict(zip(self.schema.names, nulls, strict=True)), _ALL_SENT: all_sent}
