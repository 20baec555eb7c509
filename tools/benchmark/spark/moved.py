"""Changes that the others have not: keys that change, and long values that are left out; written without a log."""

from pathlib import Path
from typing import Any, Final

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

__all__ = ["write_moved"]

_KEYS: Final = 4
"""Each key has so many changes, on average."""
_MOVED: Final = 5
_UNSENT: Final = 30
"""Of so many per cent of the updates."""


def write_moved(spark: SparkSession, directory: Path, count: int) -> None:
    """Write so many changes of one table, whose key is ``id``, as ``write_tables`` does."""
    i, keys = F.col("i"), count // _KEYS
    key = F.when(i < keys, i).otherwise(F.pmod(F.xxhash64(i), F.lit(keys)))
    stays = F.col("key") % 2 == 1  # what is left out, a row has that neither moved nor went
    op = F.when(i < keys, "insert").when(stays | (_chance(1) < 80), "update").otherwise("delete")
    rows = spark.range(count).select(F.col("id").alias("i")).select("i", key.alias("key"))
    rows = rows.select("i", "key", op.alias("_op"))
    is_moved = (F.col("_op") == "update") & ~stays & (_chance(2) < 2 * _MOVED)
    is_unsent = (F.col("_op") == "update") & stays & (_chance(3) < 2 * _UNSENT)
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


def _named(values: dict[str, Column]) -> list[Column]:
    return [value.alias(name) for name, value in values.items()]


def _chance(seed: int) -> Any:
    return F.pmod(F.xxhash64(F.col("i"), F.lit(seed)), F.lit(100))
