"""Pipelines that a user could choose instead: what needs no network, and the others where they have been fetched."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from tests.publisher.subscriber import database
from tools.benchmark import __main__ as command
from tools.benchmark.alternatives import main as alternatives
from tools.benchmark.alternatives.change_source import ChangeSource, listening_server
from tools.benchmark.alternatives.debezium import JARS, DebeziumEngine, json_result
from tools.benchmark.alternatives.main import NAMES, PipelineRun, PipelineRuns, measured_run
from tools.benchmark.alternatives.own import OwnCapture, OwnTables
from tools.benchmark.alternatives.pipeline import MeasuredPipeline, PipelineResult
from tools.benchmark.alternatives.process_usage import ProcessUsage, measure_program
from tools.benchmark.alternatives.table_rows import COLUMNS, difference, latest_rows, rows_of_lists
from tools.benchmark.errors import BenchmarkError

ROW = (1, "n", None, 0.5, True, None, 7, None, None, "new")


@pytest.fixture
def source(server18: EmbeddedServer) -> Iterator[ChangeSource]:
    """The table with three transactions, in a database of its own."""
    with database(server18, "alternatives"):
        found = ChangeSource(psycopg.conninfo.make_conninfo(server18.dsn, dbname="alternatives"))
        found.write(300)
        yield found
        found.drop_slot("alternatives_kept")


class Wrong(MeasuredPipeline):
    """A pipeline that misses a change, and a row."""

    name = title = "wrong"

    def prepare(self) -> str:
        return ""

    def run(self, source: ChangeSource, folder: Path) -> ProcessUsage:
        (folder / "written").write_bytes(bytes(1000))
        return ProcessUsage(2.0, 1.0, 1)

    def result(self, folder: Path) -> PipelineResult:
        return PipelineResult(299, rows_of_lists([ROW]))


def test_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    """It names every pipeline."""
    with pytest.raises(SystemExit) as ended:
        command.main(["alternatives", "--help"])
    assert ended.value.code == 0
    assert ", ".join(NAMES) in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (["--only", "none"], "capture, parquet"),
        (["--changes", "100"], "multiple of 100"),
        (["--changes", "250"], "multiple of 100"),
        (["--repeat", "0"], "at least 1"),
        (["--json", "no/such/folder/r.json"], "no/such/folder"),
        (["--directory", "no/such/folder"], "no/such/folder"),
    ],
)
def test_wrong_arguments_of_alternatives(wrong: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    """They are refused before anything is fetched or started."""
    with pytest.raises(SystemExit) as ended:
        alternatives.main(wrong)
    assert ended.value.code == 2
    assert named in capsys.readouterr().err.replace("'", "")


@pytest.mark.parametrize(
    ("given", "reason"), [([], "give the folder pg_replication by --dlt-source"), (["--dlt-source", "."], "is not its")]
)
def test_what_cannot_be_had_is_said(given: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In one line; that is no error."""
    assert alternatives.main(["--only", "dlt", "--fetch", "--quiet", *given]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("dlt is left out: ") and reason in line


@pytest.mark.server
@pytest.mark.long
def test_the_command_with_a_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table for people, and every measurement as JSON; nothing is left."""
    file, folder = tmp_path / "r.json", tmp_path / "files"
    folder.mkdir()
    given = ["--only", "capture", "--changes", "300", "--repeat", "1", "--quiet", "--json", str(file)]
    assert alternatives.main([*given, "--directory", str(folder)]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "300 changes in transactions of 100; rounds: 1" in said.out
    (result,) = json.loads(file.read_text("utf-8"))["results"]
    assert result["start"]["changes"] == 100
    (found,) = result["rounds"]
    assert (found["changes"], found["compared"], found["differs"]) == (300, "changes", "")
    assert min(*found["usage"], found["written"]) > 0
    assert not list(folder.iterdir())


@pytest.mark.server
@pytest.mark.long
def test_all_slots_have_the_same_changes(source: ChangeSource, tmp_path: Path) -> None:
    """Inserts, updates and deletes; reading a copy leaves the slot as it was."""
    assert source.changes == 300
    assert len(source.rows()) == 100 + 2 * (70 - 10)
    for _ in range(2):
        found = measured_run(OwnCapture(), source, tmp_path)
        assert (found.changes, found.compared, found.differs) == (300, "changes", "")
    assert not list(tmp_path.iterdir())


@pytest.mark.server
def test_what_differs_from_the_server_is_reported(source: ChangeSource, tmp_path: Path) -> None:
    """In the report, and by the exit status."""
    found = measured_run(Wrong(), source, tmp_path)
    assert found.written == 1000
    assert found.differs == "299 changes instead of 300; 1 rows instead of 220"
    runs = PipelineRuns("wrong", "wrong", found, [found])
    assert runs.differs == found.differs
    assert f"NO: {found.differs}" in runs.cells()


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
def test_own_tables_have_the_rows_of_the_server(source: ChangeSource, tmp_path: Path) -> None:
    """The processes of Spark are measured, too."""
    found = measured_run(OwnTables("parquet"), source, tmp_path)
    assert (found.compared, found.differs) == ("rows", "")
    assert found.usage.peak > measured_run(OwnCapture(), source, tmp_path).usage.peak


@pytest.mark.server
@pytest.mark.long
def test_the_engine_of_debezium_has_all_changes(tmp_path: Path) -> None:
    """Where its jars have been fetched."""
    if not JARS.fetched:
        pytest.skip("no Debezium: fetch it: python -m tools.benchmark alternatives --fetch --only debezium")
    with listening_server(tmp_path) as dsn:
        source, engine = ChangeSource(dsn), DebeziumEngine()
        assert engine.prepare() == ""
        source.write(300)
        found = measured_run(engine, source, tmp_path)
        assert (found.compared, found.differs) == ("changes and rows", "")


def test_the_start_is_told_apart() -> None:
    """The best round counts, and of peaks the largest; where the start is nearly all, no rate after it is given."""
    usages = [ProcessUsage(6.0, 4.0, 10_000_000), ProcessUsage(9.0, 3.0, 20_000_000)]
    start = PipelineRun(100, ProcessUsage(2.0, 1.0, 1), 1, "rows", "")
    rounds = [PipelineRun(1100, usage, 3_000_000, "rows", "") for usage in usages]
    cells = PipelineRuns("one", "title", start, rounds).cells()
    assert cells[1:] == ("183", "2.0", "250", "2727.3", "1.0", "20", "3.0", "rows", "title")
    assert PipelineRuns("one", "title", start, [start]).cells()[3] == "-"


def test_rows_are_compared() -> None:
    """By the number of rows, and by the values of each column."""
    rows = rows_of_lists([ROW, (2, *ROW[1:])])
    assert rows.schema == COLUMNS
    assert difference(rows, rows_of_lists([(2, *ROW[1:]), ROW])) == ""
    assert difference(rows, rows_of_lists([ROW])) == "1 rows instead of 2"
    assert difference(rows, rows_of_lists([ROW, (2, "m", *ROW[2:])])) == "other values in column name"
    assert len(rows_of_lists([])) == 0


def test_the_latest_changes_remain() -> None:
    """In the order of their LSNs, whatever the order in the files; a key whose last change is a DELETE is absent."""
    rows = [(1, "late"), (1, "early"), (2, "kept"), (3, "gone"), (3, "gone")]
    changes = rows_of_lists((key, name, *ROW[2:]) for key, name in rows)
    names = changes["name"].to_pylist()
    lsns = [9 if name == "late" else place for place, name in enumerate(names)]
    deleted = [None, None, None, None, 1]
    changes = changes.append_column("lsn", pa.array(lsns)).append_column("gone", pa.array(deleted))
    found = latest_rows(changes, "gone")
    assert found.select(["id", "name"]).to_pylist() == [{"id": 1, "name": "late"}, {"id": 2, "name": "kept"}]
    assert len(latest_rows(changes.slice(0, 0), "gone")) == 0


def test_lines_of_debezium(tmp_path: Path) -> None:
    """A timestamp is text, a date is days, a decimal is text."""
    after = dict(zip(COLUMNS.names, ROW, strict=True)) | {"created": "2024-01-01T00:00:37.000123Z"}
    after |= {"price": "10.50", "day": 366}
    changes = [
        {"op": "c", "before": None, "after": after},
        {"op": "c", "before": None, "after": after | {"id": 2}},
        {"op": "u", "before": None, "after": after | {"name": "m"}},
        {"op": "d", "before": {"id": 2, "name": None}, "after": None},
    ]
    (tmp_path / "changes").write_text("".join(json.dumps(each) + "\n" for each in changes), "utf-8")
    count, rows = json_result(tmp_path / "changes")
    assert count == 4
    assert rows is not None
    (row,) = rows.to_pylist()
    shown = (row["id"], row["name"], str(row["created"]), str(row["price"]), str(row["day"]))
    assert shown == (1, "m", "2024-01-01 00:00:37.000123+00:00", "10.50", "1971-01-02")


@pytest.mark.slow
def test_a_program_is_measured_with_those_below_it(tmp_path: Path) -> None:
    """The memory and CPU of its children count."""
    child = "import time; held = bytearray(b'x' * 200_000_000); time.sleep(1); sum(range(3_000_000))"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    found = measure_program([sys.executable, "-c", parent], tmp_path)
    assert found.peak > 200_000_000
    assert found.seconds > 1
    assert found.cpu > 0
    assert found.followed_by(ProcessUsage(1.0, 2.0, 3)) == (found.seconds + 1, found.cpu + 2, found.peak)


def test_a_program_that_fails_is_an_error(tmp_path: Path) -> None:
    """With its last words."""
    with pytest.raises(BenchmarkError, match=r"status 3: it says why$"):
        measure_program([sys.executable, "-c", "print('it says why'); raise SystemExit(3)"], tmp_path)
