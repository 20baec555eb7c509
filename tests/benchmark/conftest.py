"""Small captures of every case, recorded once for all tests of the benchmark."""

from pathlib import Path

import pytest

from tools.benchmark.batch import Batch
from tools.benchmark.captures import captures
from tools.benchmark.cases import CASES
from tools.benchmark.progress import Progress

MESSAGES = 2000


@pytest.fixture(scope="session")
def benchmark_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the benchmark keeps what it makes."""
    return tmp_path_factory.mktemp("benchmark")


@pytest.fixture(scope="session")
def recorded(benchmark_directory: Path) -> dict[str, Batch]:
    """Every case, by name."""
    batches = captures(CASES, MESSAGES, benchmark_directory, False, Progress(quiet=True))
    return {batch.case.name: batch for batch in batches}
