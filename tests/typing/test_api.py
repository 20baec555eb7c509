"""mypy and pyright accept a program that uses the public names, and refuse one that misuses them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("api.py")
WRONG = """
import pgoutput_construct as pgo
from pgoutput_construct import postgres

number: int = pgo.build(pgo.parse(b""))
pgo.parse(b"", proto_version="4")
pgo.Session(streaming="sometimes")
for transaction in postgres.stream("", "mine", ["shop"]):
    for change in transaction:
        change.rows
"""
"""Four mistakes: each checker must find them, which it could not if it knew nothing of the package."""

CHECKERS = {
    "mypy": [sys.executable, "-m", "mypy", "--strict"],
    "pyright": [sys.executable, "-m", "pyright", "--pythonpath", sys.executable],
}


def check(checker: str, file: Path) -> "subprocess.CompletedProcess[str]":
    """Check a file; skip where pyright, which its package fetches, cannot be had."""
    if checker == "pyright" and not _starts_pyright():
        pytest.skip("pyright cannot be fetched")
    return subprocess.run([*CHECKERS[checker], str(file)], cwd=ROOT, capture_output=True, text=True, check=False)


def _starts_pyright() -> bool:
    command = [*CHECKERS["pyright"][:3], "--version"]
    return bool(shutil.which("node")) and not subprocess.run(command, capture_output=True, check=False).returncode


@pytest.mark.parametrize("checker", CHECKERS)
def test_the_public_surface(checker: str) -> None:
    """Each name has the type that the program says."""
    done = check(checker, PROGRAM)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("checker", CHECKERS)
def test_mistakes(checker: str, tmp_path: Path) -> None:
    """What is wrong is found, each in its line."""
    (tmp_path / "wrong.py").write_text(WRONG)
    done = check(checker, tmp_path / "wrong.py")
    lines = {int(line.split(":")[1]) for line in done.stdout.splitlines() if "error" in line and "wrong.py:" in line}
    assert done.returncode == 1 and lines == {5, 6, 7, 10}, done.stdout + done.stderr
