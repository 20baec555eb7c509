"""Each command of README works alone in a fresh clone, with an environment of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.suite import MARK

ROOT = Path(__file__).parents[1]
SECONDS = 3600
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
COMMANDS = {
    "tools/demo": ("--scale", "0.1"),
    "tools/docs": (),
    "tools/test": ("--quick",),
    "tools/release": ("--trial", "--pythons", PYTHON),  # a release is tried on each
}


def test_commands_are_those_of_the_readme() -> None:
    """It names each."""
    text = (ROOT / "README.md").read_text("utf-8")
    assert all(command in text for command in COMMANDS)


@pytest.mark.long
@pytest.mark.first
@pytest.mark.parametrize("command", COMMANDS)
def test_works_alone(command: str, tmp_path: Path) -> None:
    """It installs what it needs, and nothing that another command has installed."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
    environment = {
        key: value
        for key, value in os.environ.items()
        if key == MARK or not key.startswith(("PYTEST", "PYTHON", "PGOUTPUT"))
    }
    python = Path(sys.base_prefix, "bin", f"python{PYTHON}")
    done = subprocess.run(
        [clone / command, *COMMANDS[command]],
        cwd=tmp_path,
        env={**environment, "PYTHON": str(python)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    if command == "tools/release":
        assert sorted(path.suffix for path in (clone / "dist").iterdir()) == [".gz", ".whl"]
