"""The function ``fetch_table``: a table as the server has it now, in Arrow, to compare with one rebuilt from a log."""

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

_QUERY_SECONDS = 3600.0  # until the first row
_REMEDIES: Final = {
    "42P01": "it was dropped or renamed since the log was read; open the log again once its capture has recorded that: "
    "then OpenLog.table(name).dropped is true, or it has its new name",
    "3F000": "its schema was dropped or renamed since the log was read; open the log again",
    "42703": "it was altered since the log was read; open the log again",
}


def fetch_table(dsn: str, namespace: str, name: str, columns: pa.Schema) -> pa.Table:
    """Fetch all rows of a table into memory.

    Args:
        dsn: The connection string, as libpq reads it.
        namespace: The schema of the table.
        name: The name of the table.
        columns: The columns to fetch, with the Arrow types that rows decoded from a log have.

    Returns:
        The rows, with an additional column ``_untyped``: the texts of values that their Arrow type cannot hold, by
        column.

    Raises:
        ReplicationError: The server cannot be reached, the table or a column does not exist, or the query fails.
    """
    listed = sql.SQL(", ").join(map(sql.Identifier, columns.names))
    query = sql.SQL("SELECT {} FROM {}").format(listed, sql.Identifier(namespace or "pg_catalog", name))
    with connect(dsn, replication=False, patience=Patience(_QUERY_SECONDS)) as connection:
        try:
            result = connection.execute(query.as_string(None).encode()).pgresult
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
