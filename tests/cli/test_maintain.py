"""``pgoutput maintain``: what it prints; tests/spark/replicate has what it does."""

import json
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

import pytest

from pgoutput_construct.spark import MaintenanceReport
from tests.cli.conftest import Run

REPORTS = (
    MaintenanceReport("public.t", False, {"files removed": 1200, "files added": 0}, 1.25),
    MaintenanceReport("public.t", True),
    MaintenanceReport("public.u", False, {"files added": 1}, 0.5, "no space left"),
)


@pytest.fixture(autouse=True)
def maintained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have three datasets be maintained, of which the last one fails."""
    monkeypatch.setattr("pgoutput_construct.spark.spark_session", lambda *_, **__: nullcontext())
    monkeypatch.setattr("pgoutput_construct.spark._verify.format_of", lambda _: "parquet")
    monkeypatch.setattr("pgoutput_construct.spark.maintain", lambda *_: iter(REPORTS))


def test_lines(run: Run, tmp_path: Path) -> None:
    """A line for each; one that failed is an error in the end."""
    done = run("maintain", tmp_path)
    assert done.stdout.splitlines() == [
        "public.t: files removed: 1,200, in 1.2 s",
        "public.t (history): nothing to do, in 0.0 s",
        "public.u: files added: 1; not maintained: no space left",
    ]
    assert done.exit_code == 1 and "1 could not be maintained" in done.stderr


def test_json(run: Run, tmp_path: Path) -> None:
    """All that a report has."""
    done = run("maintain", tmp_path, "--json")
    first, *_, last = map(json.loads, done.stdout.splitlines())
    assert first == asdict(REPORTS[0])
    assert last["error"] == "no space left" and done.exit_code == 1
