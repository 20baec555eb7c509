"""A streaming query that writes the changes of a table, read from a slot, to files, until it is killed."""

import sys

from pgoutput_construct.spark import register, spark_session

__all__ = ["main"]


def main(dsn: str, slot: str, table: str, directory: str, *more: str) -> int:
    """Write into ``changes`` of a directory, and end where the slot is at its end if there are ``more`` arguments."""
    with spark_session("local[2]", {"spark.sql.shuffle.partitions": "2"}) as spark:
        register(spark)
        changes = spark.readStream.format("pgoutput").options(dsn=dsn, slot=slot, table=table).load()
        writer = changes.writeStream.format("parquet").option("path", f"file://{directory}/changes")
        writer = writer.option("checkpointLocation", f"file://{directory}/checkpoint")
        writer = writer.trigger(availableNow=True) if more else writer.trigger(processingTime="1 second")
        writer.start().awaitTermination()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
