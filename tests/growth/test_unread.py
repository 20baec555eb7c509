"""Rows in shapes that nothing reads: captured and shown, and refused by every reader of tables."""

from pathlib import Path

import pytest

from tests.growth.project import Project, grow

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def unread(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a copy of the project with the change, and logs of such messages."""
    project = grow(tmp_path_factory.mktemp("unread"), "unread")
    done = project.run(HERE / "unread.py", environment={"NUMBA_OPT": "0"})
    assert done.returncode == 0, done.stderr
    return project


@pytest.mark.slow
def test_rows_that_nothing_reads_are_refused(unread: Project) -> None:
    """Also by the commands, with the seq of the message; what the specification says to ignore is ignored."""
    for name in ("many", "some", "packed"):
        for command in (["tail", name, "--from-lsn", "0/0"], ["tables", name], ["blame", name, "public.t", "id=1"]):
            done = unread.run("-m", "pgoutput_construct.cli", *command)
            assert done.returncode == 1 and "seq 3" in done.stderr, (command, done.stdout, done.stderr)
            assert "may change rows in a way that no reader of tables knows" in done.stderr
        assert len(unread.pgoutput("decode", name).splitlines()) == 5
    assert "insert" in unread.pgoutput("tail", "digest", "--from-lsn", "0/0")
    assert "public.t" in unread.pgoutput("tables", "digest")
