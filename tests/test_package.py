"""The package as it is installed: what is in the wheel, and what it needs."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Build the wheel from the files that git tracks; return the names in it."""
    folder = tmp_path_factory.mktemp("wheel")
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
    for name in filter(None, map(bytes.decode, files)):
        if (ROOT / name).is_file():
            (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "source" / name).write_bytes((ROOT / name).read_bytes())
    code = f"import setuptools.build_meta as b; b.build_wheel({str(folder)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=folder / "source", check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built).namelist()


@pytest.mark.parametrize("name", ["py.typed", "demo/shop.sql", "spark/log4j2.properties", "wire/codec.py"])
def test_wheel_has_what_is_no_python(wheel: list[str], name: str) -> None:
    """Files that the package opens while it runs are in the wheel."""
    assert f"pgoutput_construct/{name}" in wheel


def test_wheel_has_nothing_else(wheel: list[str]) -> None:
    """Neither tools nor tests are shipped."""
    assert {name.split("/")[0] for name in wheel} <= {
        "pgoutput_construct",
        *{n.split("/")[0] for n in wheel if "dist-info" in n},
    }
    assert not [name for name in wheel if name.startswith(("tests/", "tools/", "spec/"))]


def test_every_file_that_is_no_python_is_in_the_wheel(wheel: list[str]) -> None:
    """What lies in the package's folders is shipped."""
    package = ROOT / "pgoutput_construct"
    there = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {f"pgoutput_construct/{path.relative_to(package).as_posix()}" for path in there} <= set(wheel)
