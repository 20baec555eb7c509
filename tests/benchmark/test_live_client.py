"""The live client and psycopg2 with a parser by hand, on few changes: they agree, and both are measured."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from tests.publisher.subscriber import database
from tools.benchmark import live_client
from tools.benchmark.consumers import CONSUMERS, ConsumerRun, code_lines
from tools.benchmark.errors import BenchmarkError
from tools.benchmark.live_client import FOLLOWED, ConsumerComparison, check_equal, compare
from tools.benchmark.progress import Progress

EVERY_KIND = 12
"""The changes that precede those of the workload, in nine transactions."""
SMALL, LARGE = FOLLOWED


@pytest.fixture
def dsn(server18: EmbeddedServer) -> Iterator[str]:
    """The connection string of a database of its own."""
    with database(server18, "followed"):
        yield psycopg.conninfo.make_conninfo(server18.dsn, dbname="followed")


@pytest.mark.server
def test_both_clients_deliver_the_same(dsn: str) -> None:
    """Every change, as values of the same types; what was made for it is removed."""
    found = compare(dsn, SMALL, 300, 1, Progress(quiet=True))
    assert set(found.runs) == {consumer.name for consumer in CONSUMERS}
    for (run,) in found.runs.values():
        assert run.changes == 300 + EVERY_KIND
        assert run.transactions == 30 + 9
        assert min(run.seconds, run.cpu, run.start, run.peak) > 0
    with psycopg.connect(dsn) as connection:
        query = "SELECT slot_name FROM pg_replication_slots WHERE slot_name LIKE 'followed%'"
        assert connection.execute(query).fetchall() == []
        assert connection.execute("SELECT FROM pg_publication").fetchall() == []


@pytest.mark.server
def test_a_client_that_differs_ends_the_run(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The measurements would mean nothing: the first change that differs is named."""

    def write(*given: object) -> None:
        if isinstance(file := given[-1], Path):
            file.write_text(f"1\n{file.name}\n", "utf-8")

    monkeypatch.setattr(live_client, "_child", write)
    with pytest.raises(BenchmarkError, match="differ in change 2:\n  stream: stream\n  psycopg2: psycopg2"):
        compare(dsn, SMALL, 10, 1, Progress(quiet=True))


@pytest.mark.server
@pytest.mark.long
def test_the_command(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table for people, and every measurement as JSON."""
    monkeypatch.setattr(live_client, "EmbeddedServer", lambda *_: nullcontext(SimpleNamespace(dsn=dsn)))
    file = tmp_path / "r.json"
    given = ["--workload", "large", "--changes", "300", "--repeat", "1", "--quiet", "--json", str(file)]
    assert live_client.main(given) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert f"large: {LARGE.title}: 312 changes in 12 transactions" in said.out
    assert "times the changes/s of psycopg2" in said.out
    (result,) = json.loads(file.read_text("utf-8"))["results"]
    assert result["workload"] == "large"
    assert result["ratio"] > 0


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (["--workload", "none"], "small, large"),
        (["--changes", "0"], "must be at least 1"),
        (["--json", "no/such/folder/r.json"], "no/such/folder"),
    ],
)
def test_wrong_arguments_of_the_client(wrong: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    """They are refused before anything is started."""
    with pytest.raises(SystemExit) as ended:
        live_client.main(wrong)
    assert ended.value.code == 2
    assert named in capsys.readouterr().err.replace("'", "")


def test_no_psycopg2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says what to install."""
    monkeypatch.setattr(live_client, "find_spec", lambda _: None)
    assert live_client.main(["--quiet"]) == 2
    assert "psycopg2 is not installed" in capsys.readouterr().err


def test_files_are_compared_by_line(tmp_path: Path) -> None:
    """Equal ones pass; one that ends early, or no change at all, does not."""
    files = [tmp_path / "one", tmp_path / "two"]
    for file in files:
        file.write_text("a\nb\n", "utf-8")
    check_equal(*files)
    files[1].write_text("a\n", "utf-8")
    with pytest.raises(BenchmarkError, match="change 2:\n  one: b\n  two: nothing"):
        check_equal(*files)
    for file in files:
        file.write_text("", "utf-8")
    with pytest.raises(BenchmarkError, match="no changes"):
        check_equal(*files)


def test_the_best_runs_are_compared() -> None:
    """A run in which the machine was busy with something else does not change the ratio."""
    runs = {
        name: [ConsumerRun(100, 10, 0.1, seconds, 0.1, 1 << 20) for seconds in given]
        for name, given in {"stream": (1.0, 9.0), "psycopg2": (8.0, 2.0)}.items()
    }
    found = ConsumerComparison("small", runs)
    assert found.ratio == 2
    assert "the live client has 2.00 times the changes/s of psycopg2; goal >= 1: reached" in found.text()


def test_lines_of_code(tmp_path: Path) -> None:
    """Neither empty lines, nor comments, nor docstrings count."""
    file = tmp_path / "program.py"
    file.write_text(
        '"""Doc.\n\nMore.\n"""\n\n# A comment\nx = [\n    1,  # one\n\n]\n\n\ndef f():\n    """Doc."""\n', "utf-8"
    )
    assert code_lines(file) == 4
    assert code_lines(CONSUMERS[0].path) < 15 < code_lines(CONSUMERS[1].path) < 130
