"""The documentation's recipes for clusters, on a master and two workers."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.lake._notes import Warehouse
from pgoutput_construct.spark._log_view.log_tables import LogTables
from tests.spark.cluster import BIN, ENVIRONMENT, cluster
from tests.spark.logs import write_orders
from tests.spark.test_phases import BY_CODE, BY_ID, BY_ROW, FIRST, written

pytestmark = pytest.mark.spark

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "how-to" / "clusters.md").read_text("utf-8")
[PROGRAM] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
LACKING: Final = """#!/bin/sh
case $PWD in {work}/*) PYTHONPATH=$(echo "$PYTHONPATH" | sed 's|{root}||'); set -- -S "$@" ;; esac
exec "{python}" "$@"
"""
"""A Python that has no packages where executors work."""
LOSS: Final = """
import os, signal, sys
from pathlib import Path
from pgoutput_construct.spark import open_log, spark_session

spark = spark_session(sys.argv[1], {"spark.sql.shuffle.partitions": "2"})
state = open_log(spark, sys.argv[2]).state("public.t")
executor = {b"org.apache.spark.executor.CoarseGrainedExecutorBackend", spark.sparkContext.applicationId.encode()}
killed = 0
for command in Path("/proc").glob("[0-9]*/cmdline"):
    if executor <= {*command.read_bytes().split(b"\\0")}:
        os.kill(int(command.parent.name), signal.SIGKILL)
        killed += 1
print(killed > 0, sorted(tuple(row)[:-1] for row in state.collect()))
spark.stop()
"""
"""Makes a state in several steps, kills all executors that have something of them, and reads it."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log in it."""
    path = tmp_path_factory.mktemp("folder")
    write_orders(path / "changelog", range(2))
    return path


@pytest.fixture(scope="module")
def master(folder: Path) -> Iterator[str]:
    """A cluster's address."""
    with cluster(folder) as address:
        yield address


def run(line: str, folder: Path, master: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of the page in a folder, where its paths are relative ones."""
    words = shlex.split(line.replace("/shared/", "").replace("spark://host:7077", master))
    command = {
        "pgoutput": [sys.executable, "-m", "pgoutput_construct.cli"],
        "spark-submit": [str(BIN / "spark-submit")],
    }[words[0]]
    return subprocess.run(
        [*command, *words[1:]],
        cwd=folder,
        env={**ENVIRONMENT, **environment},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )


def lines(name: str) -> list[str]:
    """Return the commands of the page that begin with some words."""
    return re.findall(rf"^    ({name}.*)$", PAGE, re.MULTILINE)


@pytest.mark.long
def test_recipes(folder: Path, master: str) -> None:
    """A program, ``tables`` and ``replicate`` do there what they do elsewhere; executors work in other directories."""
    submitted, tables, replicated = (lines(each)[0] for each in ("spark-submit", "pgoutput tables", "pgoutput repl"))
    (folder / "orders.py").write_text(PROGRAM.replace("/shared/", ""))
    done = run(submitted, folder, master)
    assert done.returncode == 0 and "|10002| 2.50|" in done.stdout, done.stderr[-4000:]
    write_orders(folder / "changelog", range(2, 5))
    log = LogTables.from_log(ChangeLog(folder / "changelog"))
    done = run(replicated, folder, master)
    progress = Warehouse(folder / "lake").progress()
    assert done.returncode == 0 and progress is not None, done.stderr[-4000:]
    assert (progress.format, progress.batch, progress.applied, progress.done) == ("parquet", 2, log.as_of, True)
    done = run(tables, folder, master)
    assert done.returncode == 0, done.stderr[-4000:]
    assert re.search(r"public.orders: .*50 inserts, 14 updates, 9 deletes", done.stdout)


@pytest.mark.long
def test_executors_that_are_lost(folder: Path, master: str) -> None:
    """What an executor had of a state that is made in steps is made again."""
    written(folder / "phases", FIRST, BY_CODE, BY_ROW, BY_ID)
    done = subprocess.run(
        [sys.executable, "-c", LOSS, master, str(folder / "phases")],
        env=ENVIRONMENT,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout == "True [('5', 'z', 'A')]\n", done.stderr[-4000:]


@pytest.mark.long
def test_a_worker_that_lacks_the_package(folder: Path, master: str) -> None:
    """The error says which module, and where it is to be installed."""
    python = folder / "python"
    python.write_text(LACKING.format(work=folder / "work", root=ROOT, python=sys.executable))
    python.chmod(0o755)
    line = f"{lines('pgoutput tables')[0]} --overwrite"
    done = run(line, folder, master, PYSPARK_PYTHON=str(python))
    said = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and re.fullmatch(
        r"Error: Spark: an executor's Python has no module \w+: install this package .* PYSPARK_PYTHON to it", said
    )
