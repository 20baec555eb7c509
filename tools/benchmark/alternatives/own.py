"""This project: a capture into a change log, and from there tables of Parquet or Iceberg."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

import pgoutput_construct as pgo
from pgoutput_construct import lake
from tools.benchmark.alternatives.change_source import PUBLICATION, TABLE, ChangeSource
from tools.benchmark.alternatives.pipeline import HEAP, MeasuredPipeline, PipelineResult
from tools.benchmark.alternatives.process_usage import ProcessUsage, measure_program
from tools.benchmark.alternatives.table_rows import typed_rows
from tools.environments import READERS, missing_environment, python_with
from tools.jars import missing_jars

__all__ = ["OwnCapture", "OwnTables"]

_ROOT: Final = Path(__file__).parents[3]
_COMMAND: Final = (sys.executable, "-m", "pgoutput_construct.cli")
# Modules are compiled once, as those of an installed package are.
_ENVIRONMENT: Final = {"PYTHONPATH": str(_ROOT), "PYTHONDONTWRITEBYTECODE": ""}
_CHILD: Final = Path(__file__).with_name("table_child.py")
_CHANGES: Final = (pgo.Insert, pgo.Update, pgo.Delete)


class OwnCapture(MeasuredPipeline):
    """``pgoutput capture`` alone."""

    name = "capture"
    title = "pgoutput capture: changes in a change log"

    def prepare(self) -> str:
        """Nothing is needed."""
        return ""

    def run(self, source: ChangeSource, folder: Path) -> ProcessUsage:
        """Capture up to the end."""
        with source.slot() as slot:
            options = ["--slot", slot, "--publication", PUBLICATION, "--new-log", "--until-lsn", source.end()]
            return measure_program([*_COMMAND, "capture", source.dsn, "log", *options], folder, _ENVIRONMENT)

    def result(self, folder: Path) -> PipelineResult:
        """Count the changes of the log by the tags of its messages."""
        tags = pa.array([ord(message.TAG) for message in _CHANGES], pa.uint8())
        segments = (pq.read_table(file, columns=["tag"]) for file in (folder / "log").glob("*.parquet"))
        return PipelineResult(sum(len(pa.compute.index_in(each["tag"], tags).drop_null()) for each in segments), None)


class OwnTables(MeasuredPipeline):
    """``pgoutput capture``, and then ``pgoutput replicate`` into tables of a format."""

    def __init__(self, into: str) -> None:
        """Say what is written.

        Args:
            into: The format, ``parquet`` or ``iceberg``.
        """
        self.name = into
        self.title = f"pgoutput capture, then replicate: the table in {into.capitalize()}"
        self._into = into
        self._capture = OwnCapture()

    def prepare(self) -> str:
        """Return which jars are missing."""
        return "" if self._into == "parquet" else missing_jars()

    def run(self, source: ChangeSource, folder: Path) -> ProcessUsage:
        """Capture, and replicate once."""
        captured = self._capture.run(source, folder)
        goal = ["--into", self._into, "--warehouse", "lake", "--once", "--conf", f"spark.driver.memory={HEAP}"]
        return captured.followed_by(measure_program([*_COMMAND, "replicate", "log", *goal], folder, _ENVIRONMENT))

    def result(self, folder: Path) -> PipelineResult:
        """Read the table; of Iceberg in the environment of other readers, where that is there."""
        table = f"public.{TABLE}"
        if self._into == "parquet":
            return PipelineResult(None, typed_rows(lake.read(folder / "lake", table)))
        if missing_environment(READERS):
            return PipelineResult(None, None)
        command = (python_with(READERS), _CHILD, "lake", folder / "lake", table, folder / "rows.parquet")
        subprocess.run(list(map(str, command)), check=True, env={**os.environ, **_ENVIRONMENT}, cwd=folder)
        return PipelineResult(None, typed_rows(pq.read_table(folder / "rows.parquet")))
