"""Transactions that begin and end in new ways, and renamed fields of those that are known: all readers follow."""

import json
from pathlib import Path

import pytest

from tests.growth.project import Project, grow

pytestmark = pytest.mark.long  # test_growth.py has a change of each kind
SCRIPT = Path(__file__).with_name("bounded.py")


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a copy of the project with the change, and a log in it."""
    project = grow(tmp_path_factory.mktemp("bounded"), "transactions", "types")
    done = project.run(SCRIPT)
    assert done.returncode == 0, done.stderr
    return project


def test_log_and_tail_have_all_rows(bounded: Project) -> None:
    """What the log counts, its tail shows."""
    log = json.loads(bounded.pgoutput("log", "log", "--json"))
    assert log["tables"][0]["rows"]["insert"] == 8, (
        log
    )  # some are of a subtransaction, and of transactions, that were rolled back
    assert log["transactions"] == {"committed": 3, "aborted": 2}, log
    lines = [json.loads(line) for line in bounded.pgoutput("tail", "log", "--json", "--from-lsn", "0/0").splitlines()]
    assert [line["new"]["id"] for line in lines] == [1, 2, 3, 4, 6], lines
    assert [(line["new"]["gauge"], line["new"]["dial"]) for line in lines[:2]] == [(-1, 1), (-2, 2)]


@pytest.mark.spark
def test_spark_has_all_rows(bounded: Project) -> None:
    """So does Spark."""
    done = bounded.run(SCRIPT, "--spark", environment={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [1, 2, 3, 4, 6]


def test_what_is_no_longer_said(tmp_path: Path) -> None:
    """A capture and its log need no position of a Begin, and no name has one type in all messages."""
    project = grow(tmp_path, "unsaid")
    done = project.run(SCRIPT.with_name("unsaid.py"))
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in project.pgoutput("tail", "log", "--json", "--from-lsn", "0/0").splitlines()]
    assert [line["new"]["id"] for line in lines if "new" in line] == [*range(1, 11)], lines


def test_kinds_that_hold_nothing(tmp_path: Path) -> None:
    """Streams are drawn with them; a publisher that cannot make a message of the new version refuses at the start."""
    done = grow(tmp_path, "kinds").run(SCRIPT.with_name("kinds.py"))
    assert done.returncode == 0, done.stderr
