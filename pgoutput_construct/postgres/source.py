"""A table as the server has it now, in Arrow: what a table that was rebuilt from a change log is compared with."""

from collections.abc import Sequence
from typing import Any, Final

import psycopg
import pyarrow as pa
from psycopg import sql

from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.pgtypes.arrow_types import UNTYPED
from pgoutput_construct.pgtypes.column_reader import ColumnReader
from pgoutput_construct.pgtypes.family import CannotHold
from pgoutput_construct.postgres._patience import Patience
from pgoutput_construct.postgres.connection import connect, describe_error
from pgoutput_construct.stream.identifiers import qualified_name
from pgoutput_construct.wire.messages import RelationColumn

__all__ = ["fetch_table"]

_QUERY_SECONDS = 3600.0  # until a first row comes
_REMEDIES: Final = {
    "42P01": "it was dropped or renamed since the log was read; open the log again when its capture has noticed: a "
    "dropped table says so (OpenLog.table(name).dropped), a renamed one has its new name",
    "3F000": "its schema was dropped or renamed since the log was read; open the log again",
    "42703": "it was altered since the log was read; open the log again",
}


def fetch_table(dsn: str, namespace: str, name: str, columns: pa.Schema) -> pa.Table:
    """Fetch all rows of the table ``name`` in the schema ``namespace`` over ``dsn``; they pass through this process.

    ``columns`` names the columns wanted, and gives them the Arrow types of rows decoded from a log. The table that is
    returned has the column ``_untyped`` too: the texts of values that their column's type cannot hold, by column.
    Raises ReplicationError when the server cannot be reached, has no such table or column, or the query fails.
    """
    listed = sql.SQL(", ").join(map(sql.Identifier, columns.names))
    query = sql.SQL("SELECT {} FROM {}").format(listed, sql.Identifier(namespace or "pg_catalog", name))
    with connect(dsn, replication=False, patience=Patience(_QUERY_SECONDS)) as connection:
        try:
            result = connection.execute(query).pgresult
        except psycopg.Error as error:
            raise _cannot_be_read(error, qualified_name(namespace, name)) from error
        assert result is not None
        readers = [
            ColumnReader(RelationColumn(0, field.name, result.ftype(index), -1), {}, field.type)
            for index, field in enumerate(columns)
        ]
        rows = [_row(readers, [result.get_value(row, i) for i in range(len(readers))]) for row in range(result.ntuples)]
    return pa.Table.from_pylist(rows, schema=columns.append(pa.field("_untyped", UNTYPED)))


def _cannot_be_read(error: psycopg.Error, title: str) -> ReplicationError:
    found = describe_error(error, f"{title} cannot be read")
    if error.sqlstate not in _REMEDIES:
        return found
    return ReplicationError(f"{found}: {_REMEDIES[error.sqlstate]}", sqlstate=error.sqlstate)


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
