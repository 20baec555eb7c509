"""Rows of one table: a batch of payloads in, Arrow batches of typed columns out.

The kernels walk the batch once; then each column is copied together and cast by Arrow. Nothing here loops over rows,
except over those that no cast can take.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.columnar.types import UNTYPED, arrow_type
from pgoutput_construct.errors import PgoutputError, ProtocolError
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.wire.protocol import Streaming

__all__ = [
    "META",
    "Decoded",
    "RowError",
    "check_names",
    "columns_schema",
    "decode_blocks",
    "decode_rows",
    "rows_schema",
]

Payloads: TypeAlias = pa.Array | pa.ChunkedArray | Sequence[bytes]
"""Payloads: a binary or large binary array, sliced or chunked or not, or a sequence of bytes."""
Streams: TypeAlias = pa.Array | pa.ChunkedArray | Sequence[bool] | NDArray[np.bool_] | None
"""Whether each payload stands inside a stream; None for none of them."""


class RowError(PgoutputError):
    """A payload of a batch that cannot be decoded; the text is the error's own, with the field's path."""

    def __init__(self, row: int, error: PgoutputError) -> None:
        super().__init__(str(error))
        self.row = row
        """Its index in the batch."""
        self.error = error
        """What is wrong with it: a DecodeError or a ProtocolError."""

    def __reduce__(self) -> tuple[Any, ...]:
        return RowError, (self.row, self.error)


@dataclass(frozen=True)
class Decoded:
    """What ``decode_blocks`` yields: some rows, and the payloads among them that are none."""

    rows: NDArray[np.int64]
    """The index of each row's payload in the batch that was given."""
    batch: pa.RecordBatch | None
    """The rows, of ``rows_schema``; None where all payloads of a block are malformed."""
    errors: tuple[RowError, ...] = field(default=())
    """The malformed payloads, explained by the definitions; they stop nothing."""


META: Final = ("_op", "_before", "_unchanged", "_untyped")
"""The columns that stand beside those of the table."""


def columns_schema(description: Description) -> pa.Schema:
    """Return the columns of a table with the Arrow types that its Relation and Type messages ask for.

    Raises ProtocolError for a name that is not UTF-8, which Arrow cannot hold.
    """
    columns = description.relation.columns
    try:
        return pa.schema([pa.field(column.name, arrow_type(column, description.types)) for column in columns])
    except UnicodeEncodeError as error:
        name = f"{description.relation.namespace}.{description.relation.name}"
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


def decode_blocks(
    payloads: Payloads,
    in_stream: Streams,
    description: Description,
    columns: pa.Schema,
    *,
    proto_version: int,
    streaming: Streaming,
) -> Iterator[Decoded]:
    """Decode Insert, Update, Delete and Truncate messages of one table, in blocks that keep memory flat.

    ``payloads`` and ``in_stream`` have one entry a row; ``description`` describes all of them. ``columns`` are the
    columns wanted, by name, of types that hold the table's (``columns_schema``, or wider): columns that this
    Relation does not have become null. The table's own columns hold the new row (null in deletes and truncates, and
    where a TOASTed value was not sent: then ``_unchanged`` names the column); ``_before`` holds the old row or its
    key. Payloads that are no such message, or do not fit the description, are handed out apart.
    Raises ProtocolError for columns whose names cannot stand beside each other (check_names).
    """
    from pgoutput_construct.columnar.index import index_batch
    from pgoutput_construct.columnar.table import table_rows

    check_names(columns)
    index = index_batch(payloads, in_stream, proto_version=proto_version, streaming=streaming)
    yield from table_rows(index, np.arange(len(index)), description, columns, rows_schema(columns))


def decode_rows(
    payloads: Payloads,
    in_stream: Streams,
    description: Description,
    columns: pa.Schema,
    *,
    proto_version: int,
    streaming: Streaming,
) -> pa.Table:
    """Decode the rows of one table into a table of ``rows_schema(columns)``, one chunk a block; see decode_blocks.

    Raises RowError for the first payload that is no such message or does not fit the description.
    """
    batches = []
    options: dict[str, Any] = {"proto_version": proto_version, "streaming": streaming}
    for block in decode_blocks(payloads, in_stream, description, columns, **options):
        if block.errors:
            raise block.errors[0]
        batches.append(block.batch)
    return pa.Table.from_batches(batches, schema=rows_schema(columns))
