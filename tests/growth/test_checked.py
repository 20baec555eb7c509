"""What checks the project checks a grown copy of it: the linter, the type checker, and fuzzing of the engines."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.growth.project import Project, grow
from tools.language import SPEC

TOP = SPEC.parent


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a copy of the project with an option, states, and names that are unusual."""
    project = grow(tmp_path_factory.mktemp("checked"), "states", "odd")
    (project.folder / "pyproject.toml").write_bytes((TOP / "pyproject.toml").read_bytes())
    return project


@pytest.mark.slow
@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=" ".join)
def test_lint(checked: Project, command: list[str]) -> None:
    """Generated code has nothing that the linter objects to, and is formatted."""
    ruff = Path(sys.executable).with_name("ruff")
    if not ruff.is_file():
        pytest.skip("no ruff next to this Python")
    done = subprocess.run(
        [ruff, *command, "--no-cache", "pgoutput_construct", "tools"],
        cwd=checked.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.long
def test_types(checked: Project) -> None:
    """A new option, or a state, is no error of type in the package or in the tools."""
    done = checked.run(
        "-m", "mypy", "--no-incremental", "pgoutput_construct", "tools", environment={"HOME": "/nowhere"}
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.long
def test_fuzz(checked: Project) -> None:
    """The fuzzing of messages draws the new options and states, and the engines agree."""
    bulk = ["bulk", "--payloads", "20000", "--seed", "7", "--jobs", "1"]
    done = checked.run("-m", "tools.fuzz", *bulk, environment={"NUMBA_OPT": "0"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 disagreements" in done.stdout
