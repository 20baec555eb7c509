"""The rows that a pipeline has made of the changes, in one form, and what differs from the rows of the server."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["COLUMNS", "difference", "latest_rows", "rows_of_lists", "typed_rows"]

COLUMNS: Final = pa.schema(
    {
        "id": pa.int64(),
        "name": pa.string(),
        "created": pa.timestamp("us", "UTC"),
        "score": pa.float64(),
        "active": pa.bool_(),
        "price": pa.decimal128(12, 2),
        "quantity": pa.int32(),
        "note": pa.string(),
        "day": pa.date32(),
        "state": pa.string(),
    }
)
"""The columns of the table, with the types that its values are compared in."""


def typed_rows(table: pa.Table) -> pa.Table:
    """Return the rows of a table with COLUMNS alone, in the order of the key.

    Args:
        table: The rows as a pipeline has them; its types are cast.
    """
    return table.select(COLUMNS.names).cast(COLUMNS).sort_by("id").combine_chunks()


def rows_of_lists(rows: Iterable[Sequence[Any]], types: pa.Schema = COLUMNS) -> pa.Table:
    """Return rows given as sequences of values.

    Args:
        rows: Each has the values of COLUMNS, in their order.
        types: The types of these values, if they are not those of COLUMNS.
    """
    columns: list[Sequence[Any]] = [*zip(*rows, strict=True)] or [()] * len(types)
    arrays = [pa.array(values, kind) for values, kind in zip(columns, types.types, strict=True)]
    return typed_rows(pa.Table.from_arrays(arrays, schema=types))


def latest_rows(changes: pa.Table, deleted: str) -> pa.Table:
    """Return the rows that remain of changes: for each key the one with the largest ``lsn``, unless it is deleted.

    Args:
        changes: COLUMNS, the LSN of each change, and a column that is NULL unless the change is a DELETE.
        deleted: The name of that column.
    """
    ordered = changes.sort_by([("id", "ascending"), ("lsn", "ascending")]).combine_chunks()
    keys = ordered.column("id").to_numpy()
    last = np.append(keys[1:] != keys[:-1], True)[: len(keys)]
    return typed_rows(ordered.filter(pc.and_(pa.array(last), pc.is_null(ordered.column(deleted)))))


def difference(expected: pa.Table, found: pa.Table) -> str:
    """Return what differs in some rows from those that are expected; empty if they are equal.

    Args:
        expected: The rows of the server.
        found: Those of a pipeline.
    """
    if len(found) != len(expected):
        return f"{len(found):,} rows instead of {len(expected):,}"
    for name in COLUMNS.names:
        columns = expected.column(name), found.column(name)
        if not columns[0].equals(columns[1]):
            return f"other values in column {name}"
    return ""
