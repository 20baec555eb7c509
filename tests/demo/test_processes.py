"""Child processes: their output, their ends, and that none is left."""

import os
import subprocess
from pathlib import Path

import pytest

from pgoutput_construct.demo.processes import Supervised, completed, printed, running
from pgoutput_construct.errors import PgoutputError
from tests.postgres.shop import wait_until

PARENT = """import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
child.wait()"""


def _runs(pid: int) -> bool:
    """Return whether there is a process that is more than what nobody has waited for."""
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_children_are_killed_too() -> None:
    """When the block ends, whatever ends it."""
    with pytest.raises(ZeroDivisionError), running("-c", PARENT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert _runs(pid)
        raise ZeroDivisionError
    assert process.returncode == -9
    wait_until(lambda: not _runs(pid))


def test_output_of_a_child_process() -> None:
    """A failure is an error with the last words; modules and variables are those of this process, and what is added."""
    environment = {"FOUND": "here"}
    found = "import os, pgoutput_construct as p; print(p.__file__, os.environ['FOUND'])"
    import pgoutput_construct

    assert printed("-c", found, env=environment).split() == [str(pgoutput_construct.__file__), "here"]
    assert "FOUND" not in os.environ
    done = completed("-c", "import sys; print('out'); sys.exit('wrong')")
    assert (done.returncode, done.stdout, done.stderr) == (1, "out\n", "wrong\n")
    with pytest.raises(PgoutputError, match=r"status 1: wrong$"):
        printed("-c", "raise SystemExit('wrong')")


@pytest.mark.slow
def test_a_command_that_is_supervised(tmp_path: Path) -> None:
    """It is started again when it has ended; how it ended is noted, but not of one that was killed."""
    (tmp_path / "said.txt").touch()
    ending = Supervised(["no", "such", "command"], tmp_path / "said.txt")
    assert not ending.kill() and ending.ended == []
    ending.ensure()
    first = ending.pid
    wait_until(lambda: not ending.runs)
    ending.ensure()
    assert ending.pid != first and len(ending.ended) == 1
    assert ending.ended[0].startswith("status 2; last line of ") and "no" in ending.ended[0]
    assert ending.kill() and len(ending.ended) == 1 and not ending.runs
    with pytest.raises(PgoutputError, match=r"^no ended with status 2; last line of .*said\.txt"):
        ending.finish([], 300)


def test_a_command_that_times_out(tmp_path: Path) -> None:
    """It is killed, and that is an error."""
    going = Supervised(["wait"], tmp_path / "said.txt", "tests.demo.waiting")
    with pytest.raises(PgoutputError, match=r"^wait is still running after 0 s; last line of .*: \(none\)"):
        going.finish([], 0.01)
