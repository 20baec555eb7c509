"""Rows in shapes that nothing reads are refused by readers of tables; a publisher serves what it received."""

from pathlib import Path

import pytest

from tests.growth.project import Project, grow

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def unread(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a copy of the project with both changes, and logs of such messages."""
    project = grow(tmp_path_factory.mktemp("unread"), "unread", "received")
    done = project.run(HERE / "unread.py", environment={"NUMBA_OPT": "0"})
    assert done.returncode == 0, done.stderr
    return project


@pytest.mark.slow
def test_rows_that_nothing_reads_are_refused(unread: Project) -> None:
    """Also by a command, with the seq of the message; what the specification says to ignore is ignored."""
    done = unread.run("-m", "pgoutput_construct.cli", "tail", "many", "--from-lsn", "0/0")
    assert done.returncode == 1 and "seq 3" in done.stderr, (done.stdout, done.stderr)
    assert "InsertMany may change rows in a way that no reader of tables knows" in done.stderr
    assert "insert" in unread.pgoutput("tail", "digest", "--from-lsn", "0/0")
    assert len(unread.pgoutput("decode", "many").splitlines()) == 5
