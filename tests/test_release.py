"""``tools/release``: what it refuses, and what it says of itself."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pgoutput_construct import __version__
from tools import release
from tools.release import Release, ReleaseError, main, sbom


def test_sbom() -> None:
    """CycloneDX names the package, its version and licence; the same commit gives the same text."""
    time = datetime(2026, 11, 26, tzinfo=UTC)
    found = json.loads(sbom(time))
    component = found["metadata"]["component"]
    assert (found["bomFormat"], found["metadata"]["timestamp"][:10]) == ("CycloneDX", "2026-11-26")
    assert (component["name"], component["version"]) == ("pgoutput-construct", __version__)
    assert component["licenses"] == [{"expression": "Apache-2.0"}] and "components" not in found
    assert sbom(time) == sbom(time)


class Unequal(Release):
    """A release whose second build has another byte."""

    def build(self, source: Path, number: str) -> Path:
        """Write a file instead of a wheel."""
        assert (source / "pyproject.toml").is_file() and not (source / ".git").exists()
        built = self.folder / number
        built.mkdir()
        (built / "x.whl").write_text(number)
        return built


@pytest.mark.slow
def test_builds_that_differ(tmp_path: Path) -> None:
    """They are no release, and what was there stays."""
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "pgoutput_construct-0.1.whl").touch()
    (tmp_path / "work").mkdir()
    with pytest.raises(ReleaseError, match=r"two builds of x\.whl differ"):
        Unequal(tmp_path / "work", tmp_path / "dist", trial=True).run([], [], examples=False)
    assert [path.name for path in (tmp_path / "dist").iterdir()] == ["pgoutput_construct-0.1.whl"]


@pytest.mark.slow
def test_a_changelog_without_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is refused before anything is built, unless it is a trial."""
    monkeypatch.setattr(release, "__version__", "9.9.9")
    assert main(["--output", str(tmp_path / "dist"), "--pythons"]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        "release: CHANGELOG.md has no section 9.9.9; to build all the same: --trial"
    )
    assert not (tmp_path / "dist").exists()
