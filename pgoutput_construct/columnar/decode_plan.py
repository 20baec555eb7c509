"""How the columns of one table are decoded: the kernel or reader of each, and the plan for the walk over its rows."""

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
"""The tags of values with content: text and binary format."""
UNSENT: Final = [code for name, code in VALUE_TAGS.items() if isinstance(VALUES[name], Marker)]
"""The tags of values that were not sent but are not null, such as unchanged TOASTed values ('u')."""

_ALL_SENT: Final = ""
"""The key of the empty lists among the shared nulls; no column has this name."""


@dataclass(frozen=True)
class PlannedColumn:
    """How one column is decoded."""

    name: str
    target: pa.DataType
    casts: Mapping[str, Cast | None]
    """The kernel for each format of SENT, None if its values are loaded one by one."""
    reader: ColumnReader


def _column(column: RelationColumn, types: Mapping[int, Type], target: pa.DataType) -> PlannedColumn:
    oid = base_oid(column.type_oid, types)
    casts = {name: find_cast(code, oid, target) for name, code in SENT.items()}
    return PlannedColumn(column.name, target, casts, ColumnReader(column, types, target))


class DecodePlan:
    """How the rows of one table under one Relation are decoded; threads may share a plan."""

    def __init__(self, description: Description, columns: pa.Schema) -> None:
        """Plan the decoding of rows that ``description`` describes.

        Args:
            description: The Relation, and the types of its columns.
            columns: The requested columns, with the types of ``columns_schema`` or wider ones. Columns that the
                Relation does not have are null.

        Raises:
            PgoutputError: An Arrow type that no value is read into.
        """
        self.relation = description.relation
        self.columns = columns
        self.schema = rows_schema(columns)
        self.width = len(self.relation.columns)
        """The number of values of a row."""
        key = RelationColumnFlags.KEY
        self.others = [i for i, column in enumerate(self.relation.columns) if not column.flags & key]
        """The columns that are not part of the key, and therefore null in old rows that are keys."""
        requested = {field.name: field.type for field in columns}
        self.readers = {
            position: _column(column, description.types, requested[column.name])
            for position, column in enumerate(self.relation.columns)
            if column.name in requested
        }
        """The requested columns, by their position in the Relation."""
        self.plan = np.zeros((self.width, ENTRIES), np.int64)
        """The entries by which the walk over the rows decodes columns on its way (``pgtypes.kernels.row_plan``)."""
        for position, column in self.readers.items():
            self.plan[position] = plan_of(column.target, {SENT[name]: cast for name, cast in column.casts.items()})
        self._expected: dict[str, Numbers] = {}
        self._without = self._rows_without(0)

    def expected(self, side: str, mean: Callable[[], float]) -> Numbers:
        """Return the expected bytes of text in each column of a row; ``row_plan.learn`` updates the array in place.

        An estimate that is too low costs time only: values without room in the buffer are decoded in a second pass.

        Args:
            side: ``new`` or ``old``.
            mean: Returns the average size of a payload, for the first estimate.
        """
        known = self._expected.get(side)
        if known is None:
            known = self._expected[side] = np.full(self.width, int(2 * mean() / max(self.width, 1)) + 1)
        return known

    def nulls(self, name: str, count: int) -> pa.Array:
        """Return ``count`` nulls of a column, in memory that all blocks share, for new and old rows alike."""
        return self._shared(count)[name].slice(0, count)

    def all_sent(self, count: int) -> pa.Array:
        """Return ``count`` empty lists: the ``_unchanged`` of rows of which every value was sent."""
        return self._shared(count)[_ALL_SENT].slice(0, count)

    def _shared(self, count: int) -> Mapping[str, pa.Array]:
        without = self._without
        if len(without[_ALL_SENT]) < count:
            # The next block may have a few more rows.
            self._without = without = self._rows_without(count + count // 8)
        return without

    def _rows_without(self, count: int) -> Mapping[str, pa.Array]:
        nulls = pa.nulls(count, pa.struct(self.schema)).flatten()
        all_sent = pa.ListArray.from_arrays(pa.array(np.zeros(count + 1, np.int32)), pa.array([], pa.string()))
        return {**dict(zip(self.schema.names, nulls, strict=True)), _ALL_SENT: all_sent}
