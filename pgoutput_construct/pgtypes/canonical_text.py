"""The canonical text of a value, which PostgreSQL and Spark produce alike; checksums of rows are computed from it.

It is PostgreSQL's text, the result of the output function under ``SESSION_SETTINGS``, except for these columns, by
their Arrow type:

| Arrow | canonical text |
|---|---|
| float, double | the bits of the value as hexadecimal digits; ``NaN`` |
| decimal(p, s) | with ``s`` digits after the point, whatever the column's own modifier |
| binary, of a uuid | that of a bytea |

A value that the Arrow type cannot represent (``_untyped``) always has PostgreSQL's text.
"""

from typing import TYPE_CHECKING, Final

from pgoutput_construct.pgtypes.arrays import spark_array, spark_quoted, sql_array
from pgoutput_construct.pgtypes.numbers import float_texts, spark_floats
from pgoutput_construct.pgtypes.type_registry import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import Column
    from pyspark.sql import types as T  # noqa: N812 - as Spark's documentation has it

    from pgoutput_construct.pgtypes.family import SqlText

__all__ = ["canonical_sql", "output_text"]

_PLAIN_SQL: Final = "CASE WHEN num_nulls({value}) = 0 THEN concat({value}) END"
"""The output function's text, by concat(): a cast to text differs (bool, inet, char).

num_nulls() and not IS NULL, which is true for a composite whose fields are all NULL.
"""
_SPARK_TEXTS: Final = {name: text for family in FAMILIES.values() for name, text in family.spark.items()}


def canonical_sql(type_name: str, element_name: str | None, arrow: "pa.DataType") -> str:
    """Return an SQL expression for the canonical text of ``{value}``, NULL for NULL.

    Args:
        type_name: The name of the type (pg_type.typname); for a domain, of its base type.
        element_name: For an array, the name of its element type.
        arrow: The Arrow type of the column.
    """
    import pyarrow as pa

    if pa.types.is_list(arrow):
        element = _special(element_name or "", arrow.value_type)
        return _PLAIN_SQL if element is None else sql_array(element, _PLAIN_SQL)
    special = _special(type_name, arrow)
    # NULL::numeric <> 'NaN' is not true, so NULL must be tested first.
    return _PLAIN_SQL if special is None else f"CASE WHEN {{value}} IS NOT NULL THEN {special.text} END"


def _special(type_name: str, arrow: "pa.DataType") -> "SqlText | None":
    return next(filter(None, (family.sql(type_name, arrow) for family in FAMILIES.values())), None)


def output_text(
    value: "Column", kind: "T.DataType", floats: "Callable[[pa.Array], pa.Array]" = float_texts
) -> "Column":
    """Return PostgreSQL's text of a value in Spark; null for NULL.

    It does not depend on the session's settings, such as its time zone and ANSI mode.

    Args:
        value: The value.
        kind: Its Spark type.
        floats: The texts of floating-point numbers: ``float_bits`` makes the result canonical.
    """
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql import types as T  # noqa: N812

    if isinstance(kind, T.ArrayType):
        element = kind.elementType
        if isinstance(element, T.FloatType | T.DoubleType):
            return spark_array(spark_floats(floats, value, kind))
        return spark_array(F.transform(value, lambda item: spark_quoted(output_text(item, element), element)))
    if isinstance(kind, T.FloatType | T.DoubleType):
        return spark_floats(floats, value, kind)
    text = _SPARK_TEXTS.get(type(kind).__name__)
    return value.cast("string") if text is None else text(value, kind)
