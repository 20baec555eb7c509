"""The columns of a stream's rows, whatever those of its table have become since the query began."""

from inspect import signature
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from pgoutput_construct.columnar import unify
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark.source.options import SourceOptions

__all__ = ["held_fields"]

# PySpark 4.2 asks for the time zone, which was UTC before.
_IN_UTC: Final[dict[str, Any]] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}


def held_fields(now: pa.Schema, schema: StructType, options: SourceOptions, name: str) -> pa.Schema:
    """Return the columns of a query, whatever those of its table ``name`` are ``now``.

    Raises ChangeLogError where rows have what they have no room for, unless that is to be ignored: then columns that
    came are left out, and values that do not fit stand in ``_untyped``.
    """
    columns = to_arrow_schema(schema, **_IN_UTC)
    for field in now if options.schemaChange == "fail" else ():
        if field.name not in columns.names and options.columns is None:
            raise _changed(name, f"the column {field.name!r} was added or renamed")
        if field.name in columns.names and not _holds(columns.field(field.name).type, field.type):
            raise _changed(name, f"the column {field.name!r} is {field.type} now")
    same = {field.name for field in from_arrow_schema(now, prefer_timestamp_ntz=True) if field in schema.fields}
    return pa.schema([now.field(each) if each in same else columns.field(each) for each in columns.names])


def _holds(column: pa.DataType, now: pa.DataType) -> bool:
    """Return whether a column of the query has room for a type."""
    if pa.types.is_struct(column):  # _before has the columns, which are looked at by themselves
        return True
    return bool(column == now or unify(column, now) == column)


def _changed(name: str, what: str) -> ChangeLogError:
    return ChangeLogError(
        f"{name}: {what}, since the query began: start it again, it resumes from its checkpoint with the columns "
        "of now; with the option schemaChange=ignore it would go on without"
    )
