"""The demo end to end, as a user runs it: with processes, a server and a Spark of its own."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.postgres import ChangeLog
from pgoutput_construct.wire.messages import StreamAbort, StreamCommit, Update

pytestmark = [pytest.mark.server, pytest.mark.spark]


def run(command: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command in a folder."""
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)


def pgoutput(*arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Run the command line in a folder."""
    return run([sys.executable, "-m", "pgoutput_construct.cli", *arguments], cwd)


BRIEF = """
from pgoutput_construct.cli.__main__ import main
from pgoutput_construct.demo import pipeline

for name, seconds in {"_WORK": 3.0, "_PAUSE": 1.0}.items():
    assert isinstance(getattr(pipeline, name), float), name
    setattr(pipeline, name, seconds)
main()
"""
"""The command line; its demo writes for six seconds instead of forty, which is for somebody who looks on."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Run the demo once; return its folder and what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    arguments = ("demo", "--output", "out", "--scale", "0.2", "--master", "local[2]")
    done = run([sys.executable, "-c", BRIEF, *arguments], folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "out", done.stdout


def test_every_table_equals_its_source(demo: tuple[Path, str]) -> None:
    """The final table has four tables, all equal, with changes and rows, and how old changes were."""
    rows = dict(re.findall(r"│ (public\.\w+)\s*│(.*)│", demo[1]))
    assert set(rows) == {"public.carts", "public.customers", "public.orders", "public.order_lines"}
    assert all(row.rstrip().endswith("yes") for row in rows.values())
    changed, left, lag, _ = (cell.strip().replace(",", "") for cell in rows["public.orders"].split("│"))
    assert int(changed) > int(left) > 0 and float(lag.removesuffix(" s")) > 0


def test_the_picture_shows_events(demo: tuple[Path, str]) -> None:
    """It is a picture of each table, and of each crash."""
    drawn = ElementTree.parse(demo[0] / "freshness.svg")
    texts = [element.text or "" for element in drawn.iter() if element.tag.endswith("text")]
    assert {*texts} >= {"public.orders", "in the log", "in the tables"}
    assert {text.split(": ")[1] for text in texts if ": " in text} == {
        "capture killed",
        "Spark killed",
        "server killed",
    }


def test_the_workload_has_every_kind_of_transaction(demo: tuple[Path, str]) -> None:
    """Streams, some of them rolled back; subtransactions rolled back; key changes; unchanged TOASTed values."""
    from pgoutput_construct.wire.engine import parse

    log = ChangeLog(demo[0] / "changelog")
    given = log.options.proto_version, log.options.streaming
    messages = [parse(entry.payload, *given, entry.in_stream) for entry in log]
    assert any(isinstance(message, StreamCommit) for message in messages)
    aborts = [message for message in messages if isinstance(message, StreamAbort)]
    assert any(abort.xid == abort.subxid for abort in aborts)
    assert any(abort.xid != abort.subxid for abort in aborts)
    updates = [message for message in messages if isinstance(message, Update)]
    assert any(message.old_kind == "K" for message in updates)
    assert any(pgo.UNCHANGED in message.new for message in updates)


def test_tables_are_typed(demo: tuple[Path, str]) -> None:
    """The tables have the columns' types, and where their rows are from."""
    latest = max((demo[0] / "tables" / "public.orders").rglob("*.parquet"), key=lambda path: path.stat().st_mtime)
    kinds = {field.name: str(field.type) for field in pq.read_schema(latest)}
    assert kinds["id"] == "int64"
    assert kinds["total"] == "decimal128(12, 2)"
    assert kinds["ship_on"] == "date32[day]"
    assert kinds["scores"].startswith("list<")
    assert {"_commit_lsn", "_seq", "_untyped"} <= set(kinds)


def test_output_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    """Nothing is overwritten."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    done = pgoutput("demo", "--output", "out", cwd=tmp_path)
    assert done.returncode == 1
    assert "out is not empty" in done.stderr
