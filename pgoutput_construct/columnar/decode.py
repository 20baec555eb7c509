"""Rows of one table: a batch of payloads in, an Arrow batch of typed columns out.

``decode_rows`` is the only function between bytes and columns. It asks the construct engine for each message and
psycopg for each value; an engine that works on whole columns can take its place behind the same signature.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pgoutput_construct.columnar.types import UNTYPED, arrow_type
from pgoutput_construct.columnar.values import CannotHold, ColumnReader
from pgoutput_construct.errors import PgoutputError, ProtocolError
from pgoutput_construct.stream.timeline import Description
from pgoutput_construct.wire.engine import parse
from pgoutput_construct.wire.messages import (
    UNCHANGED,
    Delete,
    Insert,
    PgoutputMessage,
    Relation,
    Truncate,
    TupleData,
    Unchanged,
    Update,
)

__all__ = ["RowError", "columns_schema", "decode_rows", "rows_schema"]


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


def columns_schema(description: Description) -> pa.Schema:
    """Return the columns of a table with the Arrow types that its Relation and Type messages ask for."""
    columns = description.relation.columns
    return pa.schema([pa.field(column.name, arrow_type(column, description.types)) for column in columns])


def rows_schema(columns: pa.Schema) -> pa.Schema:
    """Return the schema of ``decode_rows`` for a table with these columns.

    ``_before`` is left out for a table without columns: Parquet and Spark know no struct without fields.
    """
    before = [pa.field("_before", pa.struct(list(columns)))] if len(columns) else []
    unchanged = pa.field("_unchanged", pa.list_(pa.string()))
    return pa.schema([*columns, pa.field("_op", pa.string()), *before, unchanged, pa.field("_untyped", UNTYPED)])


def decode_rows(
    payloads: Sequence[bytes],
    in_stream: Sequence[bool],
    description: Description,
    columns: pa.Schema,
    *,
    proto_version: int,
    streaming: str,
) -> pa.RecordBatch:
    """Decode Insert, Update, Delete and Truncate messages of one table into a batch of ``rows_schema(columns)``.

    ``payloads`` and ``in_stream`` have one entry a row; ``description`` describes all of them. ``columns`` are the
    columns wanted, by name, of types that hold the table's (``columns_schema``, or wider): columns that this
    Relation does not have become null. The table's own columns hold the new row (null in deletes and truncates, and
    where a TOASTed value was not sent: then ``_unchanged`` names the column); ``_before`` holds the old row or its
    key. Raises RowError for the first payload that is not such a message or does not fit the description.
    """
    rows = _Rows(description, columns)
    for row, (payload, inside) in enumerate(zip(payloads, in_stream, strict=True)):
        try:
            rows.add(parse(payload, proto_version, streaming, inside))
        except PgoutputError as error:
            raise RowError(row, error) from error
    return rows.batch()


class _Rows:
    """Collects the rows of a batch."""

    def __init__(self, description: Description, columns: pa.Schema) -> None:
        self._relation = description.relation
        self._schema = rows_schema(columns)
        wanted = {field.name: field.type for field in columns}
        self._readers = [
            ColumnReader(column, description.types, wanted[column.name]) if column.name in wanted else None
            for column in self._relation.columns
        ]
        self._all = [True] * len(self._readers)
        self._keys = [column.flags & 1 == 1 for column in self._relation.columns]
        self._rows: list[dict[str, Any]] = []

    def add(self, message: PgoutputMessage) -> None:
        untyped: dict[str, str] = {}
        row: dict[str, Any] = {}
        match message:
            case Insert() | Update():
                row = self._row(message.new, self._all, untyped, "")
            case Delete() | Truncate():
                pass
            case _:
                raise ProtocolError(f"{type(message).__name__} among the rows of {_name(self._relation)}")
        row["_unchanged"] = [name for name, value in row.items() if value is UNCHANGED]
        row |= dict.fromkeys(row["_unchanged"])
        row["_op"] = type(message).__name__.lower()
        if isinstance(message, Update | Delete) and message.old is not None:
            sent = self._keys if message.old_kind == "K" else self._all
            row["_before"] = self._row(message.old, sent, untyped, "_before.")
        row["_untyped"] = untyped or None
        self._rows.append(row)

    def batch(self) -> pa.RecordBatch:
        arrays = [pa.array([row.get(field.name) for row in self._rows], field.type) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _row(self, values: TupleData, sent: list[bool], untyped: dict[str, str], prefix: str) -> dict[str, Any]:
        if len(values) != len(self._readers):
            raise ProtocolError(
                f"a row of {_name(self._relation)} has {len(values)} values, but its Relation has "
                f"{len(self._readers)} columns: a Relation between them is missing"
            )
        row: dict[str, Any] = {}
        for reader, value, is_sent in zip(self._readers, values, sent, strict=True):
            if reader is not None and is_sent:
                row[reader.name] = self._value(reader, value, untyped, prefix)
        return row

    def _value(
        self, reader: ColumnReader, value: bytes | Unchanged | None, untyped: dict[str, str], prefix: str
    ) -> Any:
        if not isinstance(value, bytes):
            return value
        try:
            return reader.load(value)
        except CannotHold:
            untyped[prefix + reader.name] = reader.text(value)
            return None


def _name(relation: Relation) -> str:
    return f"{relation.namespace or 'pg_catalog'}.{relation.name}"
