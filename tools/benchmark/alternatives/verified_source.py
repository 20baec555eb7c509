"""dlt with its verified source ``pg_replication``, which is not in the package index: who has it names its folder."""

from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from tools.benchmark.alternatives.change_source import PUBLICATION, TABLE, ChangeSource
from tools.benchmark.alternatives.pipeline import MeasuredPipeline, PipelineResult
from tools.benchmark.alternatives.process_usage import ProcessUsage, measure_program
from tools.benchmark.alternatives.table_rows import latest_rows
from tools.environments import DLT, make_environment, python_with

__all__ = ["DltRun"]

_CHILD: Final = Path(__file__).with_name("dlt_child.py")
_BATCH: Final = 50_000
"""Changes of a batch. Each reads the slot again from its beginning: the default of 1,000 would be far slower."""


class DltRun(MeasuredPipeline):
    """A run of a pipeline."""

    name = "dlt"
    title = "dlt 1.31, pg_replication: changes in Parquet"

    def __init__(self, folder: Path | None) -> None:
        """Name the source.

        Args:
            folder: The folder ``pg_replication``, as ``dlt init pg_replication filesystem`` makes it.
        """
        self._source = folder

    def prepare(self) -> str:
        """Make its environment."""
        if self._source is None:
            return (
                "its source pg_replication is in no package: run 'dlt init pg_replication filesystem', "
                "and give the folder pg_replication by --dlt-source"
            )
        if not (self._source / "__init__.py").exists():
            return f"{self._source} is not its source pg_replication"
        try:
            make_environment(DLT)
        except SystemExit as error:
            return str(error)
        return ""

    def run(self, source: ChangeSource, folder: Path) -> ProcessUsage:
        """Load the changes."""
        assert self._source is not None
        with source.slot() as slot:
            command = [str(python_with(DLT)), str(_CHILD), str(self._source.resolve().parent), source.dsn, slot]
            environment = {"RUNTIME__DLTHUB_TELEMETRY": "false", "DO_NOT_TRACK": "1", "PYTHONPATH": ""}
            return measure_program([*command, PUBLICATION, str(folder), str(_BATCH)], folder, environment)

    def result(self, folder: Path) -> PipelineResult:
        """Read the files of changes."""
        changes = pq.read_table(folder / "files" / "lake" / TABLE)
        return PipelineResult(len(changes), latest_rows(changes, "deleted_ts"))
