"""``pgoutput tables``: datasets, and Spark's errors as one line."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pgoutput_construct.cli.group import spark_reason
from tests.cli.conftest import Run

COMMAND = [sys.executable, "-m", "pgoutput_construct.cli", "tables"]


def _tables(*arguments: object, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, **environment})


def _last_line(result: "subprocess.CompletedProcess[str]") -> str:
    assert result.returncode == 1 and "Traceback" not in result.stderr
    return result.stderr.splitlines()[-1]


@pytest.mark.spark
@pytest.mark.long
def test_existing_datasets_need_overwrite(change_log: Path, tmp_path: Path) -> None:
    """The directory's name is no pattern; existing datasets are replaced only if requested."""
    arguments = (change_log, "-o", tmp_path / "d [1]", "--table", "public.item", "--master", "local[1]")
    first = _tables(*arguments)
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("public.item: ") and "d [1]/public.item" in first.stdout
    said = _last_line(_tables(*arguments))
    assert said.startswith("Error: Spark: Path file:") and "give --overwrite to replace" in said


@pytest.mark.spark
@pytest.mark.long
def test_a_flipped_byte_in_the_log_is_an_error_with_its_location(change_log: Path, tmp_path: Path) -> None:
    """One flipped byte makes the job fail; the error names segment, seq and field."""
    segment = max(change_log.glob("*.parquet"), key=lambda path: path.stat().st_size)
    rows = pq.ParquetFile(segment).metadata.row_group(0)
    column = max(
        (rows.column(number) for number in range(rows.num_columns)), key=lambda each: each.total_compressed_size
    )
    data = bytearray(segment.read_bytes())
    data[column.data_page_offset + column.total_compressed_size // 2] ^= 0x20
    segment.write_bytes(data)
    said = _last_line(_tables(change_log, "--output", tmp_path / "tables", "--master", "local[2]"))
    assert re.search(rf"segment .*{segment.name}, seq \d+ to \d+, field \w+", said)


@pytest.mark.slow
def test_a_table_that_the_log_lacks(run: Run, change_log: Path, tmp_path: Path) -> None:
    """It is detected before a session is started, and so are invalid types."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pgoutput_construct.spark.spark_session", None)
        found = run("tables", change_log, "-o", tmp_path / "out", "--table", "public.nothing")
        assert found.exit_code == 1 and "the log has no table public.nothing: it has " in found.output
        found = run("tables", change_log, "-o", tmp_path / "out", "--types", "uuid=decimal(3,1)")
        assert found.exit_code == 1 and "write numeric=decimal(38,10)" in found.output


@pytest.mark.spark
def test_without_java(change_log: Path, tmp_path: Path) -> None:
    """Without Java it is said what is needed, and what installs it."""
    empty = str(tmp_path)
    said = _last_line(_tables(change_log, "-o", tmp_path / "out", JAVA_HOME=empty, SPARK_LOCAL_IP="127.0.0.1"))
    assert "Java 17 or newer" in said and "apt install default-jre-headless" in said


@pytest.mark.spark
@pytest.mark.parametrize("master", ["nonsense", "local[", "local[x]", "http://host:1", ""])
def test_an_invalid_master(run: Run, change_log: Path, tmp_path: Path, master: str) -> None:
    """A wrong master is one line, before Spark starts."""
    result = run("tables", change_log, "--output", tmp_path / "out", "--master", master)
    assert result.exit_code == 1 and "invalid Spark master" in result.output
    assert result.output.count("\n") == 1


def _exception(module: str, text: str) -> Any:
    return type("Raised", (Exception,), {"__module__": module})(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[X.Y_1] Something is so. SQLSTATE: 42K04", "Spark: Something is so."),
        ("[PATH_ALREADY_EXISTS] It is there. SQLSTATE: 42K04", "Spark: It is there: choose another --output, or"),
        (
            "An error occurred while calling None.org.apache.X.\n: org.apache.spark.SparkException: It broke.\n\tat x",
            "Spark: It broke.",
        ),
        (
            "Cannot call methods on a stopped SparkContext.\n",
            "Spark: Cannot call methods on a stopped SparkContext: the m",
        ),
        ("", "Spark: Raised"),
    ],
)
def test_one_line(text: str, said: str) -> None:
    """The line that says something, without classes, codes and stack."""
    for module in ("pyspark.errors.exceptions.base", "py4j.protocol"):
        reason = spark_reason(_exception(module, text))
        assert reason is not None and reason.startswith(said) and "\n" not in reason


WORKER = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/opt/spark/python/lib/pyspark.zip/pyspark/worker.py", line 1, in main
    return cloudpickle.loads(obj)
{raised}

JVM stacktrace:
org.apache.spark.SparkException: Job aborted
\tat org.apache.spark.X
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            WORKER.format(raised="ModuleNotFoundError: No module named 'pgoutput_construct'"),
            r"no module pgoutput_construct",
        ),
        (
            WORKER.format(raised="OSError: [Errno 28] No space left on device"),
            "in an executor: OSError: .*No space left",
        ),
        (
            "Error from python worker:\n  /usr/bin/python3: No module named pyspark\nPYTHONPATH was:",
            "no module pyspark: ",
        ),
    ],
)
def test_errors_of_executors(text: str, said: str) -> None:
    """The cause is said, not that there was one; a package that a worker lacks, with what to do."""
    reason = spark_reason(_exception("pyspark.errors.exceptions.captured", text))
    assert reason is not None and re.match(rf"Spark: .*{said}", reason) and "\n" not in reason


def test_other_exceptions() -> None:
    """An error of the program itself keeps its traceback."""
    assert spark_reason(_exception("pysparkling", "x")) is None
    assert spark_reason(ValueError("[PATH_ALREADY_EXISTS]")) is None
