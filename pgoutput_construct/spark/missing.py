"""Rows that are older than a column get what PostgreSQL gives them: the default that the column was added with."""

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.columnar.types import UNTYPED
from pgoutput_construct.columnar.values import CannotHold, ColumnReader
from pgoutput_construct.spark.replicated_tables import Missing
from pgoutput_construct.stream.rows import OPERATIONS, SNAPSHOT
from pgoutput_construct.wire.messages import Delete, Truncate

__all__ = ["default_row", "with_missing"]

_WITHOUT_ROW: Final = pa.array([OPERATIONS[Delete], OPERATIONS[Truncate]])


def with_missing(batch: pa.RecordBatch, missing: Mapping[str, Missing]) -> pa.RecordBatch:
    """Put the values that are ``missing`` into the new rows of a batch, by column; they are null there.

    PostgreSQL keeps such a value in pg_attribute.attmissingval, and rewrites no row for it.
    """
    if not missing:
        return batch
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    has_row = pc.invert(pc.is_in(batch.column("_op"), _WITHOUT_ROW))
    texts: dict[str, str] = {}
    for name, given in missing.items():
        kind = batch.schema.field(name).type
        reader = ColumnReader(given.column, given.types, kind)
        try:
            value = pa.scalar(reader.load(given.text.encode()), kind)
            columns[name] = pc.if_else(has_row, value, pa.scalar(None, kind))
        except CannotHold:
            texts[name] = reader.text(given.text.encode())
    if texts:
        columns["_untyped"] = _with_texts(columns["_untyped"], texts, has_row.to_pylist())
    return pa.RecordBatch.from_arrays([columns[name] for name in batch.schema.names], schema=batch.schema)


def default_row(columns: pa.Schema, missing: Mapping[str, Missing]) -> pa.RecordBatch | None:
    """Return one row of the columns that are ``missing``, and ``_untyped``; None where there are none."""
    if not missing:
        return None
    schema = pa.schema([*(columns.field(name) for name in missing), ("_op", pa.string()), ("_untyped", UNTYPED)])
    nothing = pa.RecordBatch.from_pylist([{"_op": SNAPSHOT}], schema)
    return with_missing(nothing, missing).drop_columns("_op")


def _with_texts(untyped: pa.Array, texts: Mapping[str, str], chosen: Sequence[bool]) -> pa.Array:
    rows = zip(untyped.to_pylist(), chosen, strict=True)
    return pa.array([[*(row or ()), *texts.items()] if more else row for row, more in rows], untyped.type)
