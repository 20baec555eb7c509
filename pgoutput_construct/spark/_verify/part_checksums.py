"""Digests and checksums of a table's rows in Spark, by parts: those of the server (``columnar/row_checksums.py``)."""

import math
from collections.abc import Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.columnar.row_checksums import BUCKET_DIGITS, DIGITS, ByHash, ByKey, Checksum, Division
from pgoutput_construct.pgtypes.arrays import spark_array, spark_quoted
from pgoutput_construct.pgtypes.canonical_text import output_text
from pgoutput_construct.pgtypes.numbers import float_bits
from pgoutput_construct.spark._log_view.change_columns import column


def names_of(rows: DataFrame) -> list[str]:
    """Return the compared columns: all but TEXTS."""
    return [name for name in rows.columns if name != TEXTS]


def checksums(rows: DataFrame, division: Division) -> dict[int, Checksum]:
    """Return the checksum of each part that has rows, by its number."""
    part, of = _number(rows, division).alias("part"), digest(rows, names_of(rows)).alias("digest")
    hashed = within(rows, division).select(part, of)
    found = hashed.groupBy("part").agg(*checksum(F.col("digest"))).collect()
    return {row[0]: Checksum(*(int(number) for number in row[1:])) for row in found}


def digests(rows: DataFrame, division: Division, number: int, keys: Sequence[str]) -> DataFrame:
    """Return the canonical texts of the key of each row in a part, ``key``, and the ``digest`` of the row."""
    texts = F.array(*(canonical(rows, name) for name in keys)).cast("array<string>")
    part = within(rows, division).where(_number(rows, division) == number)
    return part.select(texts.alias("key"), digest(rows, names_of(rows)).alias("digest"))


def within(rows: DataFrame, division: Division) -> DataFrame:
    """Return the rows that are in some part."""
    if isinstance(division, ByHash):
        return rows
    key, bounds = column(division.column), list[Column]()
    if division.after is not None:
        bounds.append(key > _key(rows, division, division.after))
    if not division.to_the_end:
        bounds.append(key <= _key(rows, division, division.bounds[-1]))
    return rows.where(reduce(lambda one, other: one & other, bounds)) if bounds else rows


def rows_of(rows: DataFrame, requested: Sequence[str]) -> DataFrame:
    """Return the canonical texts, ``row``, of rows with some digests."""
    texts = F.array(*(canonical(rows, name) for name in names_of(rows))).cast("array<string>")
    return rows.where(digest(rows, names_of(rows)).isin(list(requested))).select(texts.alias("row"))


def _number(rows: DataFrame, division: Division) -> Column:
    if isinstance(division, ByHash):
        return bucket(digest(rows, division.columns), division.buckets)
    # In two steps: of a thousand bounds some sixty are compared with each row.
    bounds, step = [_key(rows, division, bound) for bound in division.bounds], math.isqrt(len(division.bounds)) + 1
    groups = [F.array(*bounds[first : first + step]) for first in range(0, len(bounds), step)]
    if not groups:
        return F.lit(0)
    kind = rows.schema[division.column].dataType
    whole = _below(F.array(*bounds[step - 1 :: step]).cast(T.ArrayType(kind)), division.column)
    part = F.element_at(F.array(*groups, F.array().cast(T.ArrayType(kind))), whole + 1)
    return whole * step + _below(part, division.column)


def _below(bounds: Column, key: str) -> Column:
    """Return how many of the bounds are below a row's key."""
    return F.size(F.filter(bounds, lambda bound: bound < column(key)))


def _key(rows: DataFrame, division: ByKey, text: str) -> Column:
    return F.lit(text).cast(rows.schema[division.column].dataType)


TEXTS: Final = "the texts of what the types of columns cannot hold, as the column _untyped of tables has them"
"""A column of compared rows, whose name is longer than that of any column of PostgreSQL: the texts of ``_untyped``."""


def canonical(rows: DataFrame, name: str) -> Column:
    """Return the canonical text of a column of rows that have TEXTS."""
    return F.coalesce(output_text(column(name), rows.schema[name].dataType, float_bits), F.col(TEXTS)[F.lit(name)])


def digest(rows: DataFrame, names: Sequence[str]) -> Column:
    """Return the MD5 digest, in hexadecimal digits, of the canonical text of rows: their columns of these names."""
    elements = [_element(rows, name) for name in names]
    return F.md5(F.encode(spark_array(F.array(*elements).cast("array<string>")), "UTF-8"))


def checksum(of: Column) -> tuple[Column, Column, Column]:
    """Return the three numbers of a Checksum as aggregates over digests."""
    first, second = (F.substring(of, 1 + index * DIGITS, DIGITS) for index in (0, 1))
    numbers = [F.sum(F.conv(digits, 16, 10).cast("decimal(20,0)")) for digits in (first, second)]
    return F.count(F.lit(1)), *(F.coalesce(number, F.lit(0)) for number in numbers)


def bucket(of: Column, count: int) -> Column:
    """Return the bucket of each row by its digest."""
    return F.conv(F.substring(of, 32 - BUCKET_DIGITS + 1, BUCKET_DIGITS), 16, 10).cast("int") % count


def _element(rows: DataFrame, name: str) -> Column:
    kind, untyped = rows.schema[name].dataType, spark_quoted(F.col(TEXTS)[F.lit(name)])
    return F.coalesce(spark_quoted(output_text(column(name), kind, float_bits), kind), untyped)
