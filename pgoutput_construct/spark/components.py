"""Numbers that updates connect, as components of a graph: in the driver while they are few, else by joins in Spark."""

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.spark.execution import as_leaf

__all__ = ["FEW", "connect"]

FEW: Final = 200_000
"""The most links that the driver takes; in Spark each of them costs less, and the first one some seconds."""


def connect(links: DataFrame, few: int = FEW) -> DataFrame:
    """Return ``_key, _label`` for every number in ``links`` (``_old, _new``): connected ones have one label in common.

    Where there are more than ``few`` it runs jobs until nothing changes: each round takes the smallest label among
    the neighbours, gives it to the old label too, and follows labels one step further, so that long chains take few
    rounds.
    """
    links = links.where("_old != _new").distinct()
    pairs = links.limit(few + 1).toArrow()
    if pairs.num_rows <= few:
        labels = _united(zip(pairs["_old"].to_pylist(), pairs["_new"].to_pylist(), strict=True))
        columns = {"_key": pa.array(labels.keys(), pa.int64()), "_label": pa.array(labels.values(), pa.int64())}
        return links.sparkSession.createDataFrame(pa.table(columns))
    links = as_leaf(links)
    back = links.select(F.col("_new").alias("_old"), F.col("_old").alias("_new"))
    both = links.unionAll(back).distinct()
    labels = as_leaf(both.select(F.col("_old").alias("_key"), F.col("_old").alias("_label")).distinct())
    while True:
        better = as_leaf(_round(both, labels))
        if better.join(labels, ["_key", "_label"], "left_anti").isEmpty():
            return better
        labels = better


def _united(links: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Return the label of each number."""
    above: dict[int, int] = {}

    def top(number: int) -> int:
        while above.setdefault(number, number) != number:
            above[number] = above[above[number]]
            number = above[number]
        return number

    for one, other in links:
        above[top(one)] = top(other)
    return {number: top(number) for number in list(above)}


def _round(both: DataFrame, labels: DataFrame) -> DataFrame:
    neighbours = both.join(labels, both["_new"] == labels["_key"]).select(F.col("_old").alias("_key"), "_label")
    smallest = labels.unionAll(neighbours).groupBy("_key").agg(F.min("_label").alias("_least"))
    # The key that gave its name to a label gets the smallest label that anyone of that label has found.
    found = labels.join(smallest, "_key")
    roots = found.select(F.col("_label").alias("_key"), "_least")
    hooked = smallest.unionAll(roots).groupBy("_key").agg(F.min("_least").alias("_label"))
    ahead = hooked.select(F.col("_key").alias("_step"), F.col("_label").alias("_next"))
    jumped = hooked.join(ahead, F.col("_label") == F.col("_step"))
    return jumped.select("_key", F.least("_label", "_next").alias("_label"))
