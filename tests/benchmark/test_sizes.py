"""Peak memory and scaling, on sizes so small that only the way is tested."""

import pytest

from tools.benchmark import scaling
from tools.benchmark.batch import Batch
from tools.benchmark.memory import as_json, measure_memory
from tools.benchmark.progress import Progress
from tools.benchmark.report import Report

pytestmark = pytest.mark.server


@pytest.mark.parametrize("engine", [pytest.param("index", marks=pytest.mark.long), "rows"])
def test_peak_memory_of_a_process(recorded: dict[str, Batch], engine: str) -> None:
    """Another process decodes a batch of the requested size, and reports its peak memory."""
    found = measure_memory(engine, recorded["ten"], 1 << 20)
    assert found.batch_bytes == 1 << 20
    assert found.peak >= found.before > found.batch_bytes
    assert as_json(found)["multiple"] == found.peak / found.batch_bytes
    assert engine in Report({"cpu": "", "cpus": 1, "system": "", "python": "", "load": 0, "libraries": {}}, "",
                            memory=[found]).text()  # fmt: skip


def test_scaling(recorded: dict[str, Batch], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each engine at each size; sizes beyond the limit are left out, and those that do not fit are named."""
    monkeypatch.setattr(scaling, "MESSAGE_COUNTS", (100, 3000, 10_000))
    monkeypatch.setattr(scaling, "COLUMN_COUNTS", (1, 7))
    points = list(scaling.scale(recorded["ten"], 3000, 1, Progress(quiet=True)))
    codec = [(point.per, point.size) for point in points if point.engine == "codec"]
    assert codec == [("message", 100), ("message", 3000), ("column", 1), ("column", 7)]
    assert all(point.ns is not None and point.ns > 0 for point in points)
    monkeypatch.setattr(scaling, "_free_memory", lambda: 0)
    points = list(scaling.scale(recorded["ten"], 100, 1, Progress(quiet=True)))
    assert {point.ns for point in points} == {None}
