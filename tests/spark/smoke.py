"""A program that runs with any supported version of PySpark: LOG and DIR are its arguments, what it read its output.

It imports nothing of the tests, so that an environment needs no more than a user's.
"""

import json
import sys
import warnings
from typing import Any

from pgoutput_construct.spark import decode, read_current, register, replicate, spark_session

NAME = "public.orders"


def main(log: str, folder: str) -> dict[str, Any]:
    """Read a log as a batch, as a stream, and as messages; keep its table in Parquet."""
    warnings.simplefilter("ignore")
    with spark_session("local[2]", {"spark.sql.shuffle.partitions": "2"}) as spark:
        register(spark)
        batch = spark.read.format("pgoutput").options(path=log, table=NAME).load()
        stream = spark.readStream.format("pgoutput").options(path=log, table=NAME, maxTransactionsPerTrigger=2).load()
        writer = stream.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
        writer.trigger(availableNow=True).start(f"{folder}/stream").awaitTermination()
        messages = spark.read.format("pgoutput").options(path=log, view="messages").load()
        replicate(spark, log, f"{folder}/tables")
        current = read_current(spark, f"{folder}/tables", NAME)
        return {
            "version": spark.version,
            "batch": changes(batch.where("_commit_lsn > 1000")),
            "stream": changes(spark.read.parquet(f"{folder}/stream")),
            "decoded": decode(messages, NAME).count(),
            "current": {row.id: row.total and str(row.total) for row in current.collect()},
        }


def changes(frame: Any) -> list[Any]:
    """Return changes in order, as JSON has them."""
    rows = frame.selectExpr("_commit_lsn", "_seq", "_op", "id", "CAST(total AS string)", "_before.id").collect()
    return sorted(list(row) for row in rows)


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
