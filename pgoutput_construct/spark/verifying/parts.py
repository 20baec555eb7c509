"""Parts of a table in Spark, as the server divides it: their checksums, and the rows of those that differ."""

import math
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.columnar.row_checksums import ByHash, ByKey, Checksum, Division
from pgoutput_construct.spark.change_frames import column
from pgoutput_construct.spark.verifying.texts import TEXTS, bucket, canonical, checksum, digest

__all__ = ["checksums", "digests", "names_of", "rows_of", "within"]


def names_of(rows: DataFrame) -> list[str]:
    """Return the columns that are compared: all but what says of them what they do not hold."""
    return [name for name in rows.columns if name != TEXTS]


def checksums(rows: DataFrame, division: Division) -> dict[int, Checksum]:
    """Return the checksum of each part that has rows, by its number."""
    part, of = _number(rows, division).alias("part"), digest(rows, names_of(rows)).alias("digest")
    hashed = within(rows, division).select(part, of)
    found = hashed.groupBy("part").agg(*checksum(F.col("digest"))).collect()
    return {row[0]: Checksum(*(int(number) for number in row[1:])) for row in found}


def digests(rows: DataFrame, division: Division, number: int, keys: Sequence[str]) -> DataFrame:
    """Return the canonical texts of the key of each row in a part, ``key``, and the row's ``digest``."""
    texts = F.array(*(canonical(rows, name) for name in keys)).cast("array<string>")
    part = within(rows, division).where(_number(rows, division) == number)
    return part.select(texts.alias("key"), digest(rows, names_of(rows)).alias("digest"))


def within(rows: DataFrame, division: Division) -> DataFrame:
    """Return the rows that are in any part."""
    if isinstance(division, ByHash):
        return rows
    key, bounds = column(division.column), list[Column]()
    if division.after is not None:
        bounds.append(key > _key(rows, division, division.after))
    if not division.to_the_end:
        bounds.append(key <= _key(rows, division, division.bounds[-1]))
    return rows.where(reduce(lambda one, other: one & other, bounds)) if bounds else rows


def rows_of(rows: DataFrame, wanted: Sequence[str]) -> DataFrame:
    """Return the canonical texts, ``row``, of rows with some digests."""
    texts = F.array(*(canonical(rows, name) for name in names_of(rows))).cast("array<string>")
    return rows.where(digest(rows, names_of(rows)).isin(list(wanted))).select(texts.alias("row"))


def _number(rows: DataFrame, division: Division) -> Column:
    if isinstance(division, ByHash):
        return bucket(digest(rows, division.columns), division.buckets)
    # In two steps: of a thousand ranges some sixty are looked at for each row.
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
