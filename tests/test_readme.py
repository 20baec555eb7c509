"""What the README says is so."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def test_library_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The first example runs as it stands, and prints what its comment says."""
    code = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    assert len(code.splitlines()) <= 11
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out.strip()
    assert printed == "Insert.new.columns[2] 15"
    assert f"# {printed}" in code


def test_compatibility_table_names_tests_that_exist() -> None:
    """Each cell of the table is a mode that is recorded from that server."""
    from tests.live.capture import MODES

    named = set(re.findall(r"\[(pg\d+-[\w-]+)\]", README))
    assert named == {f"pg{version}-{mode.name}" for version in (16, 18) for mode in MODES}


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)]+)\)", README))
def test_links_lead_somewhere(target: str) -> None:
    """Each relative link is a file of the project."""
    assert (ROOT / target).exists()


@pytest.mark.parametrize("folder", re.findall(r"^\| `([\w/]+/)` \|", README, re.MULTILINE))
def test_folders_exist(folder: str) -> None:
    """Each folder of the table is there."""
    assert (ROOT / folder).is_dir()


def test_commands_exist() -> None:
    """Each command of the table is one."""
    from pgoutput_construct.cli.commands import COMMANDS

    assert set(re.findall(r"^\| `pgoutput (\w+)", README, re.MULTILINE)) <= set(COMMANDS)
