"""The data source through Spark Connect; ``spark/test_cluster.py`` has executors that are processes of their own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.spark._log_view.log_tables import LogTables
from tests.live.recording import Recording
from tests.spark.logs import write_recording

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[3]
ITEM = "public.item"
CONNECT = f"""
from pathlib import Path
from pyspark.sql import SparkSession
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark import open_log, register, replicate, write_tables

path = str(Path("log").absolute())  # the server's directory is another one
spark = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
assert "connect" in type(spark).__module__
register(spark)
rows = spark.read.format("pgoutput").option("path", path).option("table", "{ITEM}").load()
log = open_log(spark, "log")
print("FOUND", rows.count(), log.changes("{ITEM}").count(), log.state("{ITEM}").count())
stream = spark.readStream.format("pgoutput").option("path", path).option("table", "{ITEM}").load()
query = stream.writeStream.format("memory").queryName("q").trigger(availableNow=True).start()
query.awaitTermination()
print("FOUND", spark.table("q").count())
for refused in (lambda: replicate(spark, "log", "lake"), lambda: write_tables(log, "tables")):
    try:
        refused()
    except PgoutputError as error:
        print("FOUND", int("does not work through Spark Connect" in str(error)))
spark.stop()
"""


@pytest.fixture(scope="module")
def folder(recordings: dict[str, Recording], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log in it."""
    path = tmp_path_factory.mktemp("folder")
    write_recording(path / "log", recordings["18-v4-text"])
    return path


def found(script: str, folder: Path) -> list[int]:
    """Run a script in a folder, and return the numbers that it prints."""
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, "\n".join(line for line in done.stderr.splitlines() if "\tat " not in line)[-4000:]
    return [int(number) for line in re.findall(r"FOUND (.*)", done.stdout) for number in line.split()]


@pytest.mark.long
def test_spark_connect(folder: Path) -> None:
    """Batches, state and streams need no more of a session than Spark Connect has; tables that are written do."""
    rows = LogTables.from_log(ChangeLog(folder / "log")).table(ITEM).rows
    source, log, state, stream, *refused = found(CONNECT, folder)
    assert (source, log, stream) == (rows, rows, rows) and 0 < state < rows
    assert refused == [1, 1]


def test_no_context_and_no_broadcast() -> None:
    """Spark Connect has neither a context nor broadcasts of objects; hints of joins are something else.

    Four files need the driver: one asks whether it exists, the others are for sessions of our own, which have it.
    """
    spark = ROOT / "pgoutput_construct" / "spark"
    need_driver = ("_deferred_session.py", "_heap.py", "_own_session.py", "_table_formats/iceberg_files.py")
    for path in {*spark.rglob("*.py")} - {spark / name for name in need_driver}:
        assert not re.search(r"sparkContext|(?<!F)\.broadcast\(|\.rdd\b|_jvm\b", path.read_text("utf-8")), path
