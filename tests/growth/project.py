"""A copy of the project with changes of its specification, applied by YAML alone."""

import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.protocol_docs.pages import spec_until
from tools.language import SPEC

__all__ = ["CHANGES", "VERSION_5", "Project", "edit", "grow"]

CHANGES = Path(__file__).parent / "changes"
"""The changes: of each file of the specification, which rows are added where."""

VERSION_5 = {"version": 5, "server": 20, "brings": "changes that nobody prepared for"}


class Project:
    """A copy of the package and its tools, as the specifications until PostgreSQL 19 give them."""

    def __init__(self, folder: Path) -> None:
        """Copy into a folder that is empty, or is made."""
        folder.mkdir(exist_ok=True)
        self.folder = folder
        for name in ("pgoutput_construct", "tools"):
            shutil.copytree(SPEC.parent / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        self.spec = spec_until(19, folder / "spec")

    def edit(self, name: str, steps: Iterable[Mapping[str, Any]]) -> None:
        """Change one file of the specification."""
        edit(self.spec / name, steps)

    def generate(self) -> None:
        """Generate everything."""
        done = self.run("-m", "tools.generate")
        assert done.returncode == 0, done.stderr

    def run(
        self, *arguments: object, stdin: str = "", environment: Mapping[str, str] = {}
    ) -> "subprocess.CompletedProcess[str]":
        """Run Python in the copy, whose modules come first."""
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=self.folder,
            env={"PYTHONPATH": str(self.folder), "PATH": "", **environment},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )

    def pgoutput(self, *arguments: object, stdin: str = "") -> str:
        """Run the command line; return its output."""
        done = self.run("-m", "pgoutput_construct.cli", *arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout


def edit(path: Path, steps: Iterable[Mapping[str, Any]]) -> None:
    """Change a specification."""
    data = yaml.safe_load(path.read_text("utf-8"))
    for step in steps:
        _apply(data, step)
    path.write_text(yaml.safe_dump(data, sort_keys=False), "utf-8")


def grow(folder: Path, *changes: str) -> Project:
    """Return a copy of the project in which some changes are made, as version 5 of the protocol."""
    project = Project(folder)
    project.edit("pgoutput.yaml", [{"at": "versions", "add": [VERSION_5]}])
    for change in changes:
        for name, steps in yaml.safe_load((CHANGES / f"{change}.yaml").read_text("utf-8")).items():
            project.edit(name, steps)
    project.generate()
    return project


def _apply(data: Any, step: Mapping[str, Any]) -> None:
    *parents, last = step["at"].split("/")
    for key in parents:
        data = data[_place(data, key)]
    if "add" in step and isinstance(data, dict):
        data.setdefault(last, [])
    target = data[_place(data, last)]
    if "set" in step:
        target |= step["set"]
        return
    at = len(target)
    if "before" in step:
        at = _place(target, step["before"])
    if "after" in step:
        at = _place(target, step["after"]) + 1
    target[at:at] = step["add"]


def _place(data: Any, key: str) -> Any:
    """Return where something is: a key, a row's index, or the row with a name."""
    if isinstance(data, dict):
        return key
    return int(key) if key.isdigit() else [row.get("name") for row in data].index(key)
