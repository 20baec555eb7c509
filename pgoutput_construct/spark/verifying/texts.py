"""The canonical text of values in Spark (pgtypes/canonical_text); digests and checksums of it."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.columnar.row_checksums import BUCKET_DIGITS, DIGITS
from pgoutput_construct.pgtypes.arrays import spark_array, spark_quoted
from pgoutput_construct.pgtypes.canonical_text import output_text
from pgoutput_construct.pgtypes.numbers import FLOAT_BITS
from pgoutput_construct.spark.change_frames import column

__all__ = ["TEXTS", "bucket", "canonical", "checksum", "digest"]


TEXTS: Final = "the texts of what the types of columns cannot hold, as the column _untyped of tables has them"
"""A column of rows that are compared: its name is longer than that of any column of PostgreSQL."""


def canonical(rows: DataFrame, name: str) -> Column:
    """Return the canonical text of a column of rows that have TEXTS."""
    return F.coalesce(output_text(column(name), rows.schema[name].dataType, FLOAT_BITS), F.col(TEXTS)[F.lit(name)])


def digest(rows: DataFrame, names: Sequence[str]) -> Column:
    """Return the MD5 digest, as hexadecimal digits, of the text of rows: their columns of these names."""
    elements = [_element(rows, name) for name in names]
    return F.md5(F.encode(spark_array(F.array(*elements).cast("array<string>")), "UTF-8"))


def checksum(of: Column) -> tuple[Column, Column, Column]:
    """Return the three numbers of a Checksum as aggregates over digests."""
    first, second = (F.substring(of, 1 + place * DIGITS, DIGITS) for place in (0, 1))
    numbers = [F.sum(F.conv(digits, 16, 10).cast("decimal(20,0)")) for digits in (first, second)]
    return F.count(F.lit(1)), *(F.coalesce(number, F.lit(0)) for number in numbers)


def bucket(of: Column, count: int) -> Column:
    """Return the bucket of each row by its digest."""
    return F.conv(F.substring(of, 32 - BUCKET_DIGITS + 1, BUCKET_DIGITS), 16, 10).cast("int") % count


def _element(rows: DataFrame, name: str) -> Column:
    kind, untyped = rows.schema[name].dataType, spark_quoted(F.col(TEXTS)[F.lit(name)])
    return F.coalesce(spark_quoted(output_text(column(name), kind, FLOAT_BITS), kind), untyped)
