"""A streaming query whose micro-batches are ranges of a log: each is brought into the tables of a warehouse."""

import threading
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.spark.source.datasource import PgoutputSource, register

__all__ = ["follow"]

_NAME: Final = "pgoutput replicate"
_TICK: Final = 0.2
"""Seconds between two looks at whether it is time to stop."""


def follow(
    spark: SparkSession,
    log: Address,
    after: int,
    apply: Callable[[int], None],
    interval: float,
    stop: Callable[[], bool],
    between: Callable[[], None] = lambda: None,
) -> None:
    """Call ``apply`` with the seq where each micro-batch of a log ends, beginning after one, until ``stop``.

    ``between`` is called again and again while no ``apply`` is under way.

    The query has a checkpoint for this run alone: the position stands with the tables. A call that is under way when
    it is time to stop is completed. Raises what ``apply`` raises.
    """
    failures: list[BaseException] = []
    working = threading.Lock()

    def work(rows: DataFrame, _: int) -> None:
        with working:
            try:
                for row in rows.collect():
                    apply(row["seq"])
            except BaseException as error:
                failures.append(error)
                raise

    with TemporaryDirectory(prefix="pgoutput-") as checkpoint:
        query = _started(spark, log, after, work, interval, f"file://{checkpoint}")
        try:
            while query.isActive and not stop():
                query.awaitTermination(_TICK)
                if working.acquire(blocking=False):
                    try:
                        between()
                    finally:
                        working.release()
            with working:
                query.stop()
        except StreamingQueryException:
            if not failures:
                raise
        finally:
            query.stop()
    if failures:
        raise failures[0]


def _started(
    spark: SparkSession, log: Address, after: int, work: Callable[[DataFrame, int], None], interval: float, place: str
) -> Any:
    register(spark)
    options = {"path": open_store(log).address, "view": "batches", "fromSeq": str(after + 1)}
    batches = spark.readStream.format(PgoutputSource.name()).options(**options).load()
    writer = batches.writeStream.foreachBatch(work).queryName(_NAME).option("checkpointLocation", place)
    return writer.trigger(processingTime=f"{interval} seconds").start()
