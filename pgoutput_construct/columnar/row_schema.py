"""What the rows of one table are: their schema, and what is returned of a block of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.errors import PgoutputError, ProtocolError
from pgoutput_construct.pgtypes.arrow_types import AS_USUAL, UNTYPED, Choices, arrow_type
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.relations import Description

__all__ = ["META", "DecodedBlock", "Payloads", "RowError", "States", "check_names", "columns_schema", "rows_schema"]

Payloads: TypeAlias = pa.Array | pa.ChunkedArray | Sequence[bytes]
"""Payloads: a binary or large binary array, sliced or chunked or not, or a sequence of bytes."""
States: TypeAlias = pa.Array | pa.ChunkedArray | Sequence[bool] | NDArray[np.bool_] | None
"""Whether each payload stands in a state, such as a stream; None for none of them."""


class RowError(PgoutputError):
    """A payload of a batch that cannot be decoded; the text is the error's own, with the field's path."""

    def __init__(self, row: int, error: PgoutputError | Callable[[], PgoutputError]) -> None:
        super().__init__(row, error)
        self.row = row
        """Its index in the batch."""

    @cached_property
    def error(self) -> PgoutputError:
        """What is wrong with it: a DecodeError or a ProtocolError. Explained when asked for: that takes a while."""
        error = self.args[1]
        return error if isinstance(error, PgoutputError) else error()

    def __str__(self) -> str:
        return str(self.error)

    def __repr__(self) -> str:
        return f"RowError({self.row}, {str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return RowError, (self.row, self.error)


@dataclass(frozen=True)
class DecodedBlock:
    """A block of rows, and the payloads among them that are none."""

    rows: NDArray[np.int64]
    """The index of each row's payload in the batch that was given."""
    batch: pa.RecordBatch | None
    """The rows, of ``rows_schema``; None where no payload of a block is a row."""
    errors: tuple[RowError, ...] = field(default=())
    """The malformed payloads, explained by the definitions; they stop nothing."""


META: Final = ("_op", "_before", "_unchanged", "_untyped")
"""The columns that stand beside those of the table."""


def columns_schema(description: Description, choices: Choices = AS_USUAL) -> pa.Schema:
    """Return the columns of a table with the Arrow types that the Relation and Types of ``description`` ask for.

    ``choices`` are the types that a reader wants to have otherwise.

    Raises ProtocolError for a name that is not UTF-8, which Arrow cannot hold.
    """
    columns, types = description.relation.columns, description.types
    try:
        return pa.schema([pa.field(column.name, arrow_type(column, types, choices)) for column in columns])
    except UnicodeEncodeError as error:
        name = full_name(description.relation)
        raise ProtocolError(f"the columns of {name!r} have a name that is not UTF-8: {error.object!r}") from error


def check_names(columns: pa.Schema) -> None:
    """Raise ProtocolError where a table's column has the name of another, or of one of META."""
    names = columns.names
    for name in names:
        if name in META or names.count(name) > 1:
            remedy = "rename it, or publish the table with a column list that leaves it out"
            raise ProtocolError(f"the column {name!r} has the name of another column of the rows: {remedy}")


def rows_schema(columns: pa.Schema) -> pa.Schema:
    """Return the schema of decoded rows for a table with these columns.

    ``_before`` is left out for a table without columns: Parquet and Spark know no struct without fields.
    """
    before = [pa.field("_before", pa.struct(list(columns)))] if len(columns) else []
    unchanged = pa.field("_unchanged", pa.list_(pa.string()))
    return pa.schema([*columns, pa.field("_op", pa.string()), *before, unchanged, pa.field("_untyped", UNTYPED)])
