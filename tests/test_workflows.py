"""The workflows of .github: what GitHub runs is what the repository has, with no more rights than it needs."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pgoutput_construct import __version__
from pgoutput_construct.cli.command_table import COMMANDS

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
FILES = sorted((GITHUB / "workflows").iterdir())
WORKFLOWS: dict[str, dict[Any, Any]] = {path.name: yaml.safe_load(path.read_text("utf-8")) for path in FILES}
JOBS = {f"{name}:{job}": content for name, workflow in WORKFLOWS.items() for job, content in workflow["jobs"].items()}
FORMS = sorted({*(GITHUB / "ISSUE_TEMPLATE").iterdir()} - {GITHUB / "ISSUE_TEMPLATE" / "config.yml"})
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PYTHONS = [
    version[1]
    for each in PROJECT["classifiers"]
    if (version := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", each))
]
"""The versions of Python that the package says it supports."""

PINNED = re.compile(r"(?:- )?uses: ([\w.-]+/[\w./-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)")
PATH = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
"""Programs of the environment that tests run in come first, whether it is activated or not."""


def _steps() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, job in JOBS.items():
        for step in job["steps"]:
            yield f"{name}: {step['name']}", step


def _runs() -> dict[str, str]:
    return {name: step["run"] for name, step in _steps() if "run" in step}


def _of(action: str) -> dict[str, dict[str, Any]]:
    """Return what each step with an action gives to it."""
    return {name: step.get("with", {}) for name, step in _steps() if step.get("uses", "").startswith(f"{action}@")}


def test_workflows_are_known() -> None:
    """Each is a mapping with a name, events and jobs; none has another suffix, with which GitHub might not run it."""
    assert {*WORKFLOWS} == {"docs.yml", "nightly.yml", "release.yml", "tests.yml"}
    for workflow in WORKFLOWS.values():
        assert {"name", True, "jobs"} <= {*workflow}  # YAML 1.1 reads "on" as true


def test_events() -> None:
    """Changes are tested and their documentation built; only a tag makes a release; no event gives a fork rights."""
    events = {name: workflow[True] for name, workflow in WORKFLOWS.items()}
    assert {*events["tests.yml"]} == {*events["docs.yml"]} == {"push", "pull_request"}
    assert events["release.yml"] == {"push": {"tags": ["v*"]}}
    assert {*events["nightly.yml"]} == {"schedule", "workflow_dispatch"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_actions_are_pinned(path: Path) -> None:
    """Each action is a commit, with its version for the reader: a tag can be moved."""
    lines = [line.strip() for line in path.read_text("utf-8").splitlines() if re.search(r"\buses:", line)]
    assert lines
    assert [line for line in lines if not PINNED.fullmatch(line)] == []


def test_an_action_has_one_version() -> None:
    """All workflows have the same commit and version of an action."""
    versions = defaultdict(set)
    for path in FILES:
        for action, commit, version in PINNED.findall(path.read_text("utf-8")):
            versions[action].add((commit, version))
    assert {action: found for action, found in versions.items() if len(found) > 1} == {}


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_has_no_permissions(name: str) -> None:
    """A workflow gives none to all of its jobs, and limits what runs at the same time."""
    assert WORKFLOWS[name]["permissions"] == {}
    assert {*WORKFLOWS[name]["concurrency"]} == {"group", "cancel-in-progress"}


@pytest.mark.parametrize("name", JOBS)
def test_jobs_are_limited(name: str) -> None:
    """Each job says what it may do, runs on a named release, and ends before GitHub ends it after six hours.

    Its steps have names of their own, by which these tests find them.
    """
    job = JOBS[name]
    assert isinstance(job["permissions"], dict)
    assert job["runs-on"] == "ubuntu-24.04"
    assert 0 < job["timeout-minutes"] < 360
    names = [step["name"] for step in job["steps"]]
    assert sorted({*names}) == sorted(names)


def test_rights_to_write() -> None:
    """Only deploying and releasing write; who publishes does not run what was checked out."""
    writes = {
        name: {scope for scope, right in job["permissions"].items() if right != "read"}
        for name, job in JOBS.items()
        if {*job["permissions"].values()} - {"read"}
    }
    assert writes == {
        "docs.yml:deploy": {"pages", "id-token"},
        "release.yml:attest": {"attestations", "id-token"},
        "release.yml:publish": {"id-token"},
        "release.yml:github-release": {"contents"},
    }
    assert not [name for name in _of("actions/checkout") if name.startswith(tuple(f"{each}:" for each in writes))]
    assert JOBS["release.yml:publish"]["environment"] == "release"


def test_checkouts_keep_no_credentials() -> None:
    """The token is not left in the clone, where everything that runs could read it."""
    assert _of("actions/checkout")
    assert {
        name for name, given in _of("actions/checkout").items() if given.get("persist-credentials") is not False
    } == set()


def test_scripts_have_no_expressions() -> None:
    """Values come by variables: what GitHub writes into a script could be a command."""
    assert {name for name, script in _runs().items() if "${{" in script} == set()


def test_matrix_is_what_is_supported() -> None:
    """The tests run on each Python that pyproject.toml names, though one fails; a release is tried on each."""
    strategy = JOBS["tests.yml:tests"]["strategy"]
    assert strategy["matrix"] == {"python": PYTHONS}
    assert strategy["fail-fast"] is False
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    [tried] = [given["python-version"] for name, given in _of("actions/setup-python").items() if "release.yml" in name]
    assert sorted(tried.split()) == sorted(PYTHONS)


def test_tools_exist() -> None:
    """Each command of tools/ that is called is there and can be run."""
    scripts = "\n".join(_runs().values())
    commands = {*re.findall(r"(?<![\w./])tools/[\w/]+", scripts)}
    assert {"tools/test", "tools/docs", "tools/release", "tools/soak"} <= commands
    assert {name for name in commands if not os.access(ROOT / name, os.X_OK)} == set()
    modules = {name.replace(".", "/") for name in re.findall(r"-m (tools\.[\w.]+)", scripts)}
    assert {name for name in modules if not ((ROOT / f"{name}.py").exists() or (ROOT / name).is_dir())} == set()


def test_tools_use_the_python_that_was_set_up() -> None:
    """Each names it: tools/python would take the oldest that it finds."""
    steps = [step for _, step in _steps() if re.match(r"tools/", step.get("run", ""))]
    assert {step.get("env", {}).get("PYTHON") for step in steps} == {"${{ steps.python.outputs.python-path }}"}
    for job in JOBS.values():
        if any(step in job["steps"] for step in steps):
            [setup] = [step for step in job["steps"] if step.get("id") == "python"]
            assert setup["uses"].startswith("actions/setup-python@")


def _run_step(name: str, folder: Path, tag: str) -> subprocess.CompletedProcess[str]:
    """Run the script of a step of the release's first job, as GitHub does."""
    environment = {**os.environ, "TAG": tag, "RUNNER_TEMP": str(folder)}
    command = ["bash", "-e", "-c", _runs()[f"release.yml:build: {name}"]]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("tag", "right"), [(f"v{__version__}", True), (f"v{__version__}0", False), ("v", False)])
def test_tag_is_the_version(tmp_path: Path, tag: str, right: bool) -> None:
    """A tag that is not the package's version ends the release."""
    (tmp_path / "pgoutput_construct").mkdir()
    shutil.copy(ROOT / "pgoutput_construct" / "__init__.py", tmp_path / "pgoutput_construct")
    done = _run_step("Compare the tag with the version", tmp_path, tag)
    assert (done.returncode == 0) is right, done
    assert (done.stdout == "") is right


@pytest.mark.parametrize("heading", ["## 1.2.0", "## [1.2.0] - 2026-01-31", "## 1.2.0 (2026-01-31)"])
def test_notes_are_the_section_of_the_changelog(tmp_path: Path, heading: str) -> None:
    """A release's notes are what CHANGELOG.md has of its version, and nothing of others."""
    changes = (
        f"# Changelog\n\n## Unreleased\n\n- c\n\n{heading}\n\n### Fixed\n\n- b\n\n## 1.2.0rc1\n\n- a\n\n## 1.1.0\n\n"
    )
    (tmp_path / "CHANGELOG.md").write_text(changes)
    assert _run_step("Find the changelog's section", tmp_path, "v1.2.0").returncode == 0
    assert (tmp_path / "notes.md").read_text().strip() == "### Fixed\n\n- b"
    for lacking in ("v1.1.0", "v1.2", "v1.2.00"):
        done = _run_step("Find the changelog's section", tmp_path, lacking)
        assert done.returncode == 1
        assert f"no section {lacking[1:]}, or an empty one" in done.stdout


def test_dependabot_waits() -> None:
    """Each kind of dependency comes weekly, in one request, and not on the day of its release."""
    updates = yaml.safe_load((GITHUB / "dependabot.yml").read_text("utf-8"))["updates"]
    assert {each["package-ecosystem"] for each in updates} == {"github-actions", "pip"}
    for each in updates:
        assert each["schedule"] == {"interval": "weekly"}
        assert each["cooldown"]["default-days"] >= 7
        assert [group["patterns"] for group in each["groups"].values()] == [["*"]]


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_forms(path: Path) -> None:
    """A form has what GitHub needs to show it, and the commands that it names exist."""
    text = path.read_text("utf-8")
    form = yaml.safe_load(text)
    assert {"name", "description", "body"} <= {*form}
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert (
        len({field["id"] for field in fields}) == len({field["attributes"]["label"] for field in fields}) == len(fields)
    )
    assert any(field.get("validations", {}).get("required") for field in fields)
    assert {*re.findall(r"`pgoutput (\w+)", text)} <= {*COMMANDS}


def test_bug_report_asks_for_what_is_needed() -> None:
    """It asks for the versions, the command, the error and the bytes."""
    text = (GITHUB / "ISSUE_TEMPLATE" / "bug_report.yml").read_text("utf-8")
    for needed in ("pgoutput --version", "SELECT version()", "The command", "The error", "pgoutput inspect"):
        assert needed in text


@pytest.mark.parametrize(
    ("command", "install"),
    [
        ("actionlint -no-color", "go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"),
        (
            "zizmor --offline --no-progress --persona=auditor --strict-collection --collect=all .github",
            "pip install zizmor",
        ),
    ],
    ids=["actionlint", "zizmor"],
)
def test_linters_find_nothing(command: str, install: str) -> None:
    """What looks for mistakes in workflows, and for ways to abuse them, finds none."""
    name, *arguments = command.split()
    program = shutil.which(name, path=PATH)
    if program is None:
        pytest.skip(f"{name} is not installed: {install}")
    environment = {**os.environ, "PATH": PATH}  # actionlint runs shellcheck, if that is there
    done = subprocess.run([program, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
