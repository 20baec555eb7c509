"""Protocol changes that nobody prepared for, each by YAML alone: everything follows, and old programs run."""

import json
from pathlib import Path

import pytest

from tests.growth.project import CHANGES, Project, grow
from tests.growth.recorded import digest_of
from tests.live.recording import STORE, Recording
from tests.spark.logs import write_recording

HERE = Path(__file__).parent
ALL = tuple(sorted(path.stem for path in CHANGES.glob("*.yaml")))
CHECKS = (
    "messages",
    "old_messages",
    "options",
    "session",
    "index",
    "tables",
    "reader",
    "relations",
    "frames",
    "log",
    "old_log",
    "strategies",
    "streams",
    "recordings",
)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a copy of the project with all changes, beside what the project of today made of its recordings."""
    project = grow(tmp_path_factory.mktemp("grown"), *ALL)
    digests = {path.stem: digest_of(path) for path in sorted(STORE.glob("*.txt"))}
    (project.folder / "digests.json").write_text(json.dumps(digests), "utf-8")
    write_recording(project.folder / "old-log", Recording.load(STORE / "18-v4-text.txt"), 1000)
    return project


def failures(project: Project, *checks: str) -> dict[str, str]:
    """Run checks in the copy; return the tracebacks of those that failed."""
    names = [f"check_{check}" for check in checks]
    done = project.run(HERE / "everything.py", STORE, *names, environment={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def failed(grown: Project) -> dict[str, str]:
    """Run all checks but Spark's in one process: what is compiled is compiled once."""
    return failures(grown, *CHECKS)


@pytest.mark.parametrize("check", CHECKS)
def test_follows(failed: dict[str, str], check: str) -> None:
    """What everything.py checks, with all changes at once."""
    assert f"check_{check}" not in failed, failed[f"check_{check}"]


@pytest.mark.spark
def test_spark(grown: Project) -> None:
    """Changes and state of a table whose log has the new messages; and a log of before."""
    assert failures(grown, "old_log", "spark") == {}


@pytest.mark.parametrize("change", ALL)
def test_alone(tmp_path: Path, change: str) -> None:
    """Each change generates by itself, and the engines agree."""
    project = grow(tmp_path, change)
    done = project.run(HERE / "alone.py")
    assert done.returncode == 0, done.stderr
