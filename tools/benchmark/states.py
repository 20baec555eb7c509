"""A table's state out of its changes, against Spark's own max_by of each key over the same changes."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.spark import current_state

__all__ = ["Round", "measure_states", "write_changes"]

KEYS: Final = 4
"""Each key has so many changes, on average."""


class Round(NamedTuple):
    """Seconds of one round."""

    max_by: float
    """Of Spark's max_by: only the last change of each key, without values that were not sent."""
    state: float
    """Of the state."""


def measure_states(spark: SparkSession, directory: Path, rounds: int) -> Iterator[Round]:
    """Yield the times of both over the changes in ``directory`` (``write_changes``), in alternation."""
    changes = spark.read.parquet(str(directory))
    for _ in range(rounds):
        yield Round(_seconds(lambda: _last(changes)), _seconds(lambda: current_state(changes, ("id",), "d")))


def write_changes(spark: SparkSession, directory: Path, count: int, moved: int = 0, unsent: int = 0) -> None:
    """Write changes of one table as ``write_tables`` does.

    Of its updates so many per cent change the key (``moved``), and leave a long value out (``unsent``).
    """
    i, keys = F.col("i"), count // KEYS
    op = F.when(i < keys, "insert").when(_chance(1) < 90, "update").otherwise("delete")
    key = F.when(i < keys, i).otherwise(F.pmod(F.xxhash64(i), F.lit(keys)))
    rows = spark.range(count).select(F.col("id").alias("i")).select("i", op.alias("_op"), key.alias("key"))
    is_moved = (F.col("_op") == "update") & (_chance(2) < moved)
    is_unsent = (F.col("_op") == "update") & ~is_moved & (_chance(3) < unsent)
    values = {
        "id": F.when(is_moved, i + count).otherwise(F.col("key")),
        "quantity": (i % 1000).cast("int"),
        "kind": (i % 77).cast("smallint"),
        "name": F.concat(F.lit("customer name "), i % 5000),
        "mail": F.concat(F.lit("mail"), i, F.lit("@example.org")),
        "price": (i / 100).cast("decimal(12,2)"),
        "moment": F.timestamp_micros(i * 1_000_000),
        "valid": i % 2 == 0,
        "weight": i * 1.5,
        "document": F.when(~is_unsent, F.repeat(F.concat(F.lit("x"), i), 8)),
    }
    kinds = {field.name: field.dataType for field in rows.select(*_named(values)).schema}
    nothing = {name: F.lit(None).cast(kind) for name, kind in kinds.items()}
    is_deleted = F.col("_op") == "delete"
    written = rows.select(
        *(F.when(~is_deleted, value).alias(name) for name, value in values.items()),
        "_op",
        (i / 8).cast("bigint").alias("_commit_lsn"),
        (i % 8).alias("_seq"),
        F.timestamp_micros(i * 1_000_000).alias("_commit_time"),
        (i / 8 + 1000).cast("bigint").alias("_xid"),
        F.when(is_moved | is_deleted, F.struct(*_named({**nothing, "id": F.col("key")}))).alias("_before"),
        F.when(is_unsent, F.array(F.lit("document"))).otherwise(F.array().cast("array<string>")).alias("_unchanged"),
        F.lit(None).cast("map<string,string>").alias("_untyped"),
    )
    written.write.mode("overwrite").parquet(str(directory))


def _last(changes: DataFrame) -> DataFrame:
    own = [name for name in changes.columns if not name.startswith("_")]
    last = F.max_by(F.struct(*own, "_op"), F.struct("_commit_lsn", "_seq")).alias("last")
    by_key = changes.withColumn("key", F.coalesce("id", "_before.id")).groupBy("key").agg(last)
    return by_key.where("last._op != 'delete'").select("last.*")


def _seconds(make: Callable[[], DataFrame]) -> float:
    begin = time.monotonic()
    make().write.format("noop").mode("overwrite").save()
    return time.monotonic() - begin


def _named(values: dict[str, Column]) -> list[Column]:
    return [value.alias(name) for name, value in values.items()]


def _chance(seed: int) -> Any:
    return F.pmod(F.xxhash64(F.col("i"), F.lit(seed)), F.lit(100))
