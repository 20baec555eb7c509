"""Values in Spark, in other types than they had."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from pgoutput_construct.columnar import UNTYPED
from pgoutput_construct.spark._state.schema_evolution import cast_columns

pytestmark = pytest.mark.spark

MOMENT = datetime(2024, 5, 1, 12, 0, 0, 1)
CASES: list[tuple[pa.DataType, Any, T.DataType, Any, str | None]] = [
    (pa.string(), "12", T.IntegerType(), 12, None),
    (pa.string(), "x", T.IntegerType(), None, "x"),
    (pa.string(), "012", T.IntegerType(), None, "012"),
    (pa.string(), None, T.IntegerType(), None, None),
    (pa.int64(), 2**40, T.IntegerType(), None, str(2**40)),
    (pa.int64(), 7, T.IntegerType(), 7, None),
    (pa.int32(), 7, T.StringType(), "7", None),
    (pa.decimal128(5, 2), Decimal("1.50"), T.IntegerType(), None, "1.50"),
    (pa.decimal128(5, 2), Decimal("1.50"), T.DecimalType(9, 4), Decimal("1.5000"), None),
    (pa.bool_(), True, T.IntegerType(), None, "t"),
    (pa.binary(), b"\x01a", T.StringType(), "\\x0161", None),
    (pa.list_(pa.int32()), [1, None], T.StringType(), "{1,NULL}", None),
    (pa.date32(), date(2024, 5, 1), T.TimestampNTZType(), datetime(2024, 5, 1), None),
    (pa.timestamp("us"), MOMENT, T.TimestampType(), None, "2024-05-01 12:00:00.000001"),
    (pa.timestamp("us", "UTC"), MOMENT.replace(tzinfo=UTC), T.StringType(), "2024-05-01 12:00:00.000001+00", None),
    (pa.float64(), -0.0, T.LongType(), None, "-0"),
    (pa.float64(), 2.0, T.LongType(), 2, None),
    (pa.list_(pa.float64()), [2.0, -0.0], T.ArrayType(T.LongType()), None, "{2,-0}"),
]
"""A type and a value of it, another type, and what stands there then, with its text."""


def test_other_types(spark: Any) -> None:
    """A value is cast where that can be undone; what the type of before did not hold keeps its text, or is one now."""
    names = [f"c{number}" for number in range(len(CASES))]
    schema = pa.schema([*((name, case[0]) for name, case in zip(names, CASES, strict=True)), ("_untyped", UNTYPED)])
    first = {name: case[1] for name, case in zip(names, CASES, strict=True)}
    endless = {**dict.fromkeys(names), "_untyped": [("c12", "infinity"), ("c6", "odd")]}
    table = pa.Table.from_pylist([{**first, "_untyped": None}, endless], schema=schema)
    rows = spark.createDataFrame(table, from_arrow_schema(schema, prefer_timestamp_ntz=True))
    found = cast_columns(rows, {name: case[2] for name, case in zip(names, CASES, strict=True)}).collect()
    (one,) = (row.asDict() for row in found if row["c0"] is not None)
    (other,) = (row.asDict() for row in found if row["c0"] is None)
    assert [one[name] for name in names] == [case[3] for case in CASES]
    assert one["_untyped"] == {name: case[4] for name, case in zip(names, CASES, strict=True) if case[4] is not None}
    assert {name: value for name, value in other.items() if value is not None} == {
        "c6": "odd",
        "_untyped": {"c12": "infinity"},
    }
