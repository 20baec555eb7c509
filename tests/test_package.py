"""The package as it is installed: what is in the wheel."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def tracked() -> list[str]:
    """Return the files that git tracks and that are there."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
    return [name for name in map(bytes.decode, files) if name and (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Build the wheel from the files that git tracks; return the names in it."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in tracked():
        (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "source" / name).write_bytes((ROOT / name).read_bytes())
    code = f"import hatchling.build as b; b.build_wheel({str(folder)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=folder / "source", check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built).namelist()


@pytest.mark.slow
def test_wheel_has_the_whole_package(wheel: list[str]) -> None:
    """What lies in the package's folders is shipped, also what is no Python."""
    package = {name for name in tracked() if name.startswith("pgoutput_construct/")}
    assert package <= set(wheel)
    assert "pgoutput_construct/demo/shop.sql" in wheel


def test_wheel_has_nothing_else(wheel: list[str]) -> None:
    """Neither tools nor tests are shipped."""
    assert not [name for name in wheel if name.startswith(("tests/", "tools/", "spec/"))]
