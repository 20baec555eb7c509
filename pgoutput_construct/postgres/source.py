"""A table as the server has it now, in Arrow: what a table that was rebuilt from a change log is compared with."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from psycopg import sql

from pgoutput_construct.columnar.types import UNTYPED
from pgoutput_construct.columnar.values import CannotHold, ColumnReader
from pgoutput_construct.postgres.connection import connect
from pgoutput_construct.postgres.waiting import Patience
from pgoutput_construct.wire.messages import RelationColumn

__all__ = ["fetch_table"]

_QUERY_SECONDS = 3600.0  # until a first row comes


def fetch_table(dsn: str, namespace: str, name: str, columns: pa.Schema) -> pa.Table:
    """Fetch all rows of the table ``name`` in the schema ``namespace`` over ``dsn``; they pass through this process.

    ``columns`` names the columns wanted, and gives them the Arrow types of rows decoded from a log. The table that is
    returned has the column ``_untyped`` too: the texts of values that their column's type cannot hold, by column.
    Raises ReplicationError when the server cannot be reached, psycopg's errors when the query fails.
    """
    listed = sql.SQL(", ").join(map(sql.Identifier, columns.names))
    query = sql.SQL("SELECT {} FROM {}").format(listed, sql.Identifier(namespace or "pg_catalog", name))
    with connect(dsn, replication=False, patience=Patience(_QUERY_SECONDS)) as connection:
        result = connection.execute(query).pgresult
        assert result is not None
        readers = [
            ColumnReader(RelationColumn(0, field.name, result.ftype(index), -1), {}, field.type)
            for index, field in enumerate(columns)
        ]
        rows = [_row(readers, [result.get_value(row, i) for i in range(len(readers))]) for row in range(result.ntuples)]
    return pa.Table.from_pylist(rows, schema=columns.append(pa.field("_untyped", UNTYPED)))


def _row(readers: Sequence[ColumnReader], values: Sequence[bytes | None]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    untyped: dict[str, str] = {}
    for reader, value in zip(readers, values, strict=True):
        try:
            row[reader.name] = None if value is None else reader.load(value)
        except CannotHold:
            assert value is not None
            row[reader.name], untyped[reader.name] = None, reader.text(value)
    return {**row, "_untyped": untyped or None}
