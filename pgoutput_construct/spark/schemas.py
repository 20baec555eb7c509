"""Arrow schemas as Spark schemas, and names of columns as Spark reads them."""

from typing import Final

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.errors import PgoutputError

__all__ = ["CHANGE", "arrow_schema", "column", "spark_schema"]

CHANGE: Final = (
    "_op",
    "_commit_lsn",
    "_seq",
    "_commit_time",
    "_xid",
    "_before",
    "_unchanged",
    "_untyped",
)
"""The columns that a change has besides the table's own."""

_PLAIN: Final[dict[pa.DataType, T.DataType]] = {
    pa.bool_(): T.BooleanType(),
    pa.int16(): T.ShortType(),
    pa.int32(): T.IntegerType(),
    pa.int64(): T.LongType(),
    pa.float32(): T.FloatType(),
    pa.float64(): T.DoubleType(),
    pa.string(): T.StringType(),
    pa.binary(): T.BinaryType(),
    pa.date32(): T.DateType(),
    pa.timestamp("us"): T.TimestampNTZType(),
    pa.timestamp("us", tz="UTC"): T.TimestampType(),
}


def spark_schema(schema: pa.Schema) -> T.StructType:
    """Return the same schema in Spark's types; raise PgoutputError for an Arrow type that ``columnar`` never makes."""
    return T.StructType([T.StructField(field.name, _spark_type(field.type)) for field in schema])


def _spark_type(kind: pa.DataType) -> T.DataType:
    if kind in _PLAIN:
        return _PLAIN[kind]
    if pa.types.is_decimal(kind):
        return T.DecimalType(kind.precision, kind.scale)
    if pa.types.is_list(kind):
        return T.ArrayType(_spark_type(kind.value_type))
    if pa.types.is_map(kind):
        return T.MapType(_spark_type(kind.key_type), _spark_type(kind.item_type))
    if pa.types.is_struct(kind):
        return spark_schema(pa.schema(list(kind)))
    raise PgoutputError(f"no Spark type is set for the Arrow type {kind}")


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """Return the same schema in Arrow's types, the inverse of ``spark_schema``."""
    return pa.schema([pa.field(field.name, _arrow_type(field.dataType)) for field in schema])


def _arrow_type(kind: T.DataType) -> pa.DataType:
    if isinstance(kind, T.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, T.ArrayType):
        return pa.list_(_arrow_type(kind.elementType))
    if isinstance(kind, T.MapType):
        return pa.map_(_arrow_type(kind.keyType), _arrow_type(kind.valueType))
    if isinstance(kind, T.StructType):
        return pa.struct(list(arrow_schema(kind)))
    return next(arrow for arrow, spark in _PLAIN.items() if spark == kind)


def column(*path: str) -> Column:
    """Return a column (or a field of a struct) by its name as it is: dots and backticks mean themselves."""
    return F.col(".".join("`" + name.replace("`", "``") + "`" for name in path))
