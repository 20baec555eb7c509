"""Type hints of the message constructors: calls that a type checker accepts do not fail."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RIGHT = """\
import pgoutput_construct as pgo
pgo.Insert(None, 7, (b"1",))
pgo.Insert(7, relation_oid=7, new=())
pgo.Insert(relation_oid=7, new=(None, pgo.UNCHANGED, pgo.Binary(b"")))
pgo.Update(None, 7, "K", (b"1",), (b"2",))
pgo.Update(None, 7, new=())
pgo.Update(None, 7, "O", old=(), new=())
pgo.Update(relation_oid=7, new=())
pgo.StreamAbort(1, 2)
pgo.StreamAbort(1, 2, pgo.Lsn(3), abort_time=pgo.Timestamp(4))
pgo.Message(flags=0, lsn=pgo.Lsn(1), prefix="", content=b"")
pgo.Relation(None, 7, "public", "t", "d", ())
"""
WRONG = (
    "pgo.Insert(new=())",
    "pgo.Insert()",
    "pgo.Insert(None, 7)",
    "pgo.Update(None, 7)",
    "pgo.Relation(relation_oid=7)",
    "pgo.Insert(None, 7, (1,))",
    "pgo.Insert(None, 7, ('1',))",
    "pgo.Insert(None, 7, (), xids=1)",
    "pgo.Begin(pgo.Lsn(1))",
    "pgo.Truncate(None, 0)",
)


def checked(path: Path) -> list[str]:
    """Return mypy's output."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={path.parent}", str(path)]
    done = subprocess.run([*command, "--follow-imports=silent"], cwd=ROOT, capture_output=True, text=True, check=False)
    return [line for line in done.stdout.splitlines() if f"{path.name}:" in line and ": error:" in line]


@pytest.mark.slow
def test_what_is_accepted_runs(tmp_path: Path) -> None:
    """Calls that type-check make messages; calls that fail do not type-check, each at its line."""
    path = tmp_path / "calls.py"
    path.write_text(RIGHT + "".join(f"{call}\n" for call in WRONG), "utf-8")
    exec(compile(RIGHT, "calls", "exec"), {})
    first = RIGHT.count("\n") + 1
    lines = {int(line.split(":")[1]) for line in checked(path)}
    assert lines == set(range(first, first + len(WRONG)))


@pytest.mark.parametrize("call", [call for call in WRONG if "1" not in call.partition("(None")[2]])
def test_what_is_refused_fails(call: str) -> None:
    """A field that is missing is a TypeError, as for any function."""
    import pgoutput_construct as pgo

    with pytest.raises(TypeError, match="missing"):
        eval(call, {"pgo": pgo})
