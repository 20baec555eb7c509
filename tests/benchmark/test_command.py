"""The command as a whole, on few messages; no test looks at a time."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tools.benchmark import __main__ as command
from tools.benchmark.batch import Batch
from tools.benchmark.cases import CASES
from tools.benchmark.measure import measure
from tools.benchmark.progress import Progress


@pytest.fixture
def run(recorded: dict[str, Batch], benchmark_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the command on the captures that are there, without binding the tests' process to one CPU."""
    monkeypatch.setattr(command, "pin", lambda: "not bound")

    def run(*arguments: str) -> int:
        fixed = ["--messages", "2000", "--repeat", "1", "--quiet", "--directory", str(benchmark_directory)]
        return command.main([*fixed, *arguments])

    return run


@pytest.mark.server
@pytest.mark.long
def test_a_small_run(run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every engine of ours and every limit, in every case: a table, JSON and a picture."""
    files = tmp_path / "r.json", tmp_path / "r.svg"
    chosen = "--engine", "ours", "--engine", "limits", "--no-memory"
    assert run(*chosen, "--json", str(files[0]), "--plot", str(files[1])) == 0
    text = capsys.readouterr().out
    report = json.loads(files[0].read_text("utf-8"))
    assert [case["name"] for case in report["cases"]] == [case.name for case in CASES]
    measured = {(result["case"], result["engine"]) for result in report["results"]}
    skipped = {(entry["case"], entry["engine"]) for entry in report["skipped"]}
    asked = {result["engine"] for result in report["results"]} | {entry["engine"] for entry in report["skipped"]}
    assert {"construct", "codec", "session", "codec-build", "index", "messages", "rows", "memcpy", "cast"} <= asked
    assert measured | skipped == {(case.name, engine) for case in CASES for engine in asked}
    assert all(len(result["samples"]) == 1 and result["ns"] > 0 for result in report["results"])
    assert all(case.title in text for case in CASES)
    assert len(ET.parse(files[1]).getroot().findall(".//{*}text[@class='title']")) == len(CASES)


@pytest.mark.server
def test_one_case_and_one_engine(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the requested engines are measured, and the goals say so."""
    assert run("--case", "narrow", "--engine", "codec", "--no-memory") == 0
    text = capsys.readouterr().out
    assert "narrow" in text
    assert "not measured (pypgoutput: not asked for; codec: not asked for)" in text


@pytest.mark.server
def test_an_interrupted_run_reports_what_it_has(
    run: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C in the second case leaves the first one's numbers."""

    def interrupted(batch: Batch, *arguments: Any) -> None:
        if batch.case == CASES[1]:
            raise KeyboardInterrupt
        measure(batch, *arguments)

    monkeypatch.setattr(command, "measure", interrupted)
    assert run("--engine", "codec") == 130
    assert "pgo.parse" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (["--case", "none"], "--case"),
        (["--engine", "none"], "pg-walstream"),
        (["--messages", "0"], "must be at least 1"),
        (["--repeat", "x"], "--repeat"),
        (["--json", "no/such/folder/r.json"], "no/such/folder"),
    ],
)
def test_wrong_arguments(wrong: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    """They are refused before anything is started, and the text says what is wrong."""
    with pytest.raises(SystemExit) as ended:
        command.main(wrong)
    assert ended.value.code == 2
    assert named in capsys.readouterr().err


def test_progress_in_a_file_is_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """No control characters if standard error is not a terminal."""
    progress = Progress()
    progress.step("one")
    progress.detail("two")
    progress.clear()
    assert capsys.readouterr().err == "one\n"
