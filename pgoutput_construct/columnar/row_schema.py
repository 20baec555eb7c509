"""The schema of decoded rows, and the records that decoding returns."""

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
"""Payloads: a binary or large binary array, which may be sliced or chunked, or a sequence of bytes."""
States: TypeAlias = pa.Array | pa.ChunkedArray | Sequence[bool] | NDArray[np.bool_] | None
"""Whether each payload is in a state, such as in a stream; None: not passed."""


class RowError(PgoutputError):
    """The error of one payload of a batch; its text is that of ``error``, with the field's path."""

    def __init__(self, row: int, error: PgoutputError | Callable[[], PgoutputError]) -> None:
        super().__init__(row, error)
        self.row = row
        """The index of the payload in the batch."""

    @cached_property
    def error(self) -> PgoutputError:
        """A DecodeError or a ProtocolError; computed on first access, because the definitions are slow."""
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
    """A block of decoded rows, and the errors of the payloads that could not be decoded."""

    rows: NDArray[np.int64]
    """The index of each row's payload in the batch."""
    batch: pa.RecordBatch | None
    """The rows, of ``rows_schema``; None if the block has no valid row."""
    errors: tuple[RowError, ...] = field(default=())
    """The malformed payloads; the others are decoded nevertheless."""


META: Final = ("_op", "_before", "_unchanged", "_untyped")
"""The columns that are added to those of the table."""


def columns_schema(description: Description, choices: Choices = AS_USUAL) -> pa.Schema:
    """Return the columns of a table with their Arrow types (``pgtypes.arrow_types``).

    Args:
        description: The Relation, and the types of its columns.
        choices: The Arrow types that a reader requests instead of the default ones.

    Raises:
        ProtocolError: A name that is not UTF-8, which Arrow cannot represent.
    """
    columns, types = description.relation.columns, description.types
    try:
        return pa.schema([pa.field(column.name, arrow_type(column, types, choices)) for column in columns])
    except UnicodeEncodeError as error:
        name = full_name(description.relation)
        raise ProtocolError(f"{name} has a column whose name is not UTF-8: {error.object!r}") from error


def check_names(columns: pa.Schema) -> None:
    """Raise ProtocolError if a table's column has the name of another column, or one of META."""
    names = columns.names
    for name in names:
        if name in META or names.count(name) > 1:
            remedy = "rename it, or publish the table with a column list without it"
            raise ProtocolError(f"the column {name!r} has the name of another column of the rows: {remedy}")


def rows_schema(columns: pa.Schema) -> pa.Schema:
    """Return the schema of decoded rows of a table with these columns.

    A table without columns has no ``_before``: Parquet and Spark support no struct without fields.
    """
    before = [pa.field("_before", pa.struct(list(columns)))] if len(columns) else []
    unchanged = pa.field("_unchanged", pa.list_(pa.string()))
    return pa.schema([*columns, pa.field("_op", pa.string()), *before, unchanged, pa.field("_untyped", UNTYPED)])
