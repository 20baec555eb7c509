"""``tools/demo``: --help installs nothing."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pgoutput_construct.cli.commands.demo_command import demo_command

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--scale", "2", "--help"]])
def test_help_installs_nothing(arguments: list[str], tmp_path: Path) -> None:
    """In a clone without .venv the help names every option of ``pgoutput demo``, and makes nothing."""
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "demo", tmp_path / "tools")
    result = subprocess.run([tmp_path / "tools/demo", *arguments], check=True, capture_output=True, text=True)
    named = set(re.findall(r"^  (?:-h, )?(--[\w-]+)", result.stdout, re.MULTILINE))
    assert named == {option for parameter in demo_command.params for option in parameter.opts} | {"--help"}
    assert [path.name for path in tmp_path.iterdir()] == ["tools"]
