"""An archive of Spark's classes: a JVM that maps it needs neither to read, nor to parse, nor to verify them again.

A JVM takes some 10,000 classes from 300 jars before Spark runs its first job, and a run of the tests starts dozens of
JVMs. The archive lies in the environment whose jars it is of: Java compares their paths, sizes and times, and takes the
classes from them if one differs (Java's documentation: "Class Data Sharing").
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tools.cache import fetching
from tools.few_rows import FEW_ROWS

__all__ = ["ARCHIVE", "java_options", "main"]

ARCHIVE: Final = Path(sys.prefix) / "spark-classes.jsa"
"""Where it is."""

_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
"""For processes that live for minutes, on few cores: compiling what they run often costs more than it gains there."""


def java_options() -> str:
    """Return the options of a JVM that runs Spark for few rows, and maps the archive if there is one.

    One of another PySpark does without it, and says nothing of that.
    """
    return f"{_OPTIONS} -XX:SharedArchiveFile={ARCHIVE} -Xlog:cds*=off" if ARCHIVE.exists() else _OPTIONS


def main() -> int:
    """Make the archive unless it is there; return 1 if that fails."""
    with fetching("class-archive"):
        if ARCHIVE.exists():
            return 0
        made = ARCHIVE.with_suffix(".part")
        made.unlink(missing_ok=True)
        environment = {**os.environ, "SPARK_SUBMIT_OPTS": f"{_OPTIONS} -XX:ArchiveClassesAtExit={made}"}
        command = [sys.executable, "-c", f"from {__spec__.name} import run_spark; run_spark()"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode or not made.exists():
            print(f"no archive of Spark's classes: {done.stderr[-600:]}", file=sys.stderr)
            return 1
        made.replace(ARCHIVE)
    return 0


def run_spark() -> None:
    """Run what loads the classes that most tests need: tables are written, read, joined, and mapped by Python."""
    from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

    from pgoutput_construct.spark import spark_session

    with tempfile.TemporaryDirectory() as folder, spark_session("local[2]", FEW_ROWS, "classes") as spark:
        rows = spark.createDataFrame([(1, "a", [1]), (2, None, [2, 3])], "id bigint, v string, list array<int>")
        rows.write.partitionBy("v").parquet(f"{folder}/t")
        table = spark.read.parquet(f"{folder}/t").withColumn("day", F.lit("2026-01-01").cast("date"))
        table.createOrReplaceTempView("t")
        found = (
            spark.sql(
                "WITH latest AS (SELECT *, row_number() OVER (PARTITION BY id ORDER BY day DESC) AS n FROM t)"
                "SELECT a.id, explode(a.list) AS element, coalesce(b.v, '') AS v, sum(b.id) OVER (PARTITION BY a.v) s"
                " FROM latest a LEFT JOIN t b ON a.id = b.id AND b.day <= current_date() WHERE a.n = 1 AND a.id <> 9"
            )
            .groupBy("v")
            .agg(F.max("element"), F.min_by("id", "s"), F.collect_list("id"), F.to_json(F.struct("v")))
        )
        found.collect()
        table.mapInArrow(lambda batches: batches, table.schema).toArrow()
        table.where("id = 1").unionByName(table.where("id = 2")).distinct().repartition(2, "id").persist().count()


if __name__ == "__main__":
    sys.exit(main())
