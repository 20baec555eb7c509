"""What every pipeline that is measured has to do."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from tools.benchmark.alternatives.change_source import ChangeSource
from tools.benchmark.alternatives.process_usage import ProcessUsage

__all__ = ["HEAP", "MeasuredPipeline", "PipelineResult"]

HEAP: Final = "1g"
"""The heap of every JVM: the default of Spark's driver."""


class PipelineResult(NamedTuple):
    """What a pipeline has written."""

    changes: int | None
    """The number of changes; None if it has only the rows that remain."""
    rows: pa.Table | None
    """The rows that remain, as ``typed_rows`` has them; None if this cannot be seen here, or is not made."""


class MeasuredPipeline(ABC):
    """A pipeline from a slot into files."""

    name: str
    """Its name for the command."""
    title: str
    """What it is, and what it writes."""

    @abstractmethod
    def prepare(self) -> str:
        """Fetch what it needs, unless that is there; return why it cannot be had, empty if it can."""

    def begin(self, source: ChangeSource, folder: Path) -> None:
        """Create its directory, and do what it has to do once, while the table is empty; that is not measured.

        Args:
            source: The server.
            folder: The directory, which remains until the last run.
        """
        folder.mkdir()

    @abstractmethod
    def run(self, source: ChangeSource, folder: Path) -> ProcessUsage:
        """Read all changes from a slot of its own, and return what that needed.

        Args:
            source: The server.
            folder: An empty directory: everything that it writes goes there.

        Raises:
            BenchmarkError: A program failed.
        """

    @abstractmethod
    def result(self, folder: Path) -> PipelineResult:
        """Return what it has written.

        Args:
            folder: The directory of the run.
        """
