"""An archive of Spark's classes: a JVM that maps it does not read, parse and verify them again.

A JVM takes some 10,000 classes from 300 jars before Spark runs its first job, and a run of the tests starts dozens of
JVMs. The archive is of one Java and of the jars of one environment, in which it lies: Java compares their paths, sizes
and times, and reads the classes from the jars if one differs (Java's documentation: "Class Data Sharing").
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tools.cache import fetching
from tools.few_rows import FEW_ROWS

__all__ = ["archive", "java_options", "main", "run_spark"]

_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
"""For processes that live for minutes, on few cores: compiling what they run often costs more than it gains there."""
_NAME: Final = "spark-classes-{}.jsa"
_SECONDS: Final = 600


def archive() -> Path | None:
    """Return where the archive of this environment and of the present Java is, or is to be.

    None without a Java or PySpark, and where the path has a blank, which options of Java cannot have.
    """
    command, pyspark = shutil.which("java"), find_spec("pyspark")
    home = os.environ.get("JAVA_HOME") or (command and Path(command).resolve().parents[1])
    if not home or pyspark is None or pyspark.origin is None:
        return None
    release = Path(home, "release").resolve()
    if not release.is_file():
        return None
    jars = sorted(Path(pyspark.origin).with_name("jars").glob("spark-*.jar"))
    times = [f"{jar} {jar.stat().st_mtime_ns}" for jar in jars]
    of = hashlib.sha256("\n".join([str(release), release.read_text("utf-8"), *times]).encode()).hexdigest()
    path = Path(sys.prefix).resolve() / _NAME.format(of[:16])
    return None if " " in str(path) else path


def java_options() -> str:
    """Return the options of a JVM that runs Spark for few rows, and maps the archive if it exists.

    A JVM with other jars, such as those of another PySpark, ignores it silently.
    """
    made = archive()
    return _OPTIONS if made is None or not made.exists() else f"{_OPTIONS} -XX:SharedArchiveFile={made} -Xlog:cds*=off"


def main() -> int:
    """Make the archive unless it exists, and remove former ones; return 1 if that fails."""
    with fetching("class-archive"):
        path = archive()
        if path is None or path.exists():
            return 0
        print("making an archive of Spark's classes", file=sys.stderr)
        made = path.with_suffix(f".{os.getpid()}")
        environment = {**os.environ, "SPARK_SUBMIT_OPTS": f"{_OPTIONS} -XX:ArchiveClassesAtExit={made}"}
        command = [sys.executable, "-c", f"from {__spec__.name} import run_spark; run_spark()"]
        try:
            # It returns when the JVM has ended, too, which has its standard error: then the archive is whole.
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
            if done.returncode:
                raise OSError(done.stderr[-600:])
            for former in path.parent.glob(_NAME.format("*")):
                former.unlink()
            made.replace(path)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"no archive of Spark's classes: {error}", file=sys.stderr)
            return 1
        finally:
            with suppress(OSError):
                made.unlink()
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
