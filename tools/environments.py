"""Environments of tests and benchmarks, with other versions of PySpark or none: ``python -m tools.environments``.

It makes those of the tests; a benchmark makes its own when it needs them. Each has a gigabyte. With ``--test`` the
tests of the data source and of ``replicate`` into Parquet run in each of them.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tools.cache import FOLDER, fetching

__all__ = [
    "DLT",
    "INGESTR",
    "READERS",
    "VERSIONS",
    "make_environment",
    "missing_environment",
    "python_with",
]

VERSIONS: Final = ("4.2", "4.3")
"""The versions of PySpark that are supported beside the one that everything else is tested with."""
READERS: Final = "readers"
"""What reads tables without Spark; in the environment of the other tests its libraries of Arrow would be two."""
INGESTR: Final = "ingestr"
"""The ingestr that benchmarks compare with: its wheel has the program, which later ones download elsewhere."""
DLT: Final = "dlt"
"""The dlt that benchmarks compare with."""

_CLONE: Final = Path(__file__).parents[1]
_STAMP: Final = "installed.txt"
_OTHERS: Final[Mapping[str, tuple[str, ...]]] = {
    READERS: ("deltalake>=1.6,<2", "duckdb>=1.4", "polars>=2,<3", "pyiceberg[sql-sqlite]>=0.11"),
    INGESTR: ("ingestr==1.1.21", "duckdb>=1.4,<2"),
    DLT: ("dlt[filesystem,parquet,sql-database]==1.31.0", "psycopg2-binary>=2.9.9"),
}
"""What the environments without PySpark have."""
_TESTS: Final = ("tests/spark/source", "tests/spark/test_versions.py")


def python_with(version: str) -> Path:
    """Return the Python of an environment, whether it is there or not.

    Args:
        version: The version of PySpark, READERS, INGESTR or DLT.
    """
    return FOLDER / _name(version) / "bin" / "python"


def missing_environment(version: str) -> str:
    """Say what to do when an environment (``python_with``) is not there, or has not what it should; "" when it is."""
    stamp = python_with(version).parents[1] / _STAMP
    if stamp.exists() and stamp.read_text() == "\n".join(_requirements(version)):
        return ""
    return f"no environment {_name(version)}: make it: python -m tools.environments"


def main() -> None:
    """Make those that are not there; with ``--test`` run the tests in each."""
    for version in (*VERSIONS, READERS):
        make_environment(version)
    if "--test" in sys.argv[1:]:
        sys.exit(max(_test(version) for version in VERSIONS))


def make_environment(version: str) -> None:
    """Make an environment, unless it is there.

    Args:
        version: As for ``python_with``.

    Raises:
        SystemExit: It cannot be made; pip has said why on standard error.
    """
    with fetching(_name(version)):
        if missing_environment(version):
            _make(version)


def _make(version: str) -> None:
    print(f"making the environment {_name(version)}; this takes a minute or two", file=sys.stderr)
    python, wanted = python_with(version), _requirements(version)
    folder = python.parents[1]
    shutil.rmtree(folder, ignore_errors=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
    for command in ([sys.executable, "-m", "venv", str(folder)], install):
        if subprocess.run(command, check=False, stdout=sys.stderr).returncode:
            raise SystemExit(f"Error: no environment {_name(version)}, for the reason above")
    (folder / _STAMP).write_text("\n".join(wanted))


def _test(version: str) -> int:
    print(f"== PySpark {version}", flush=True)
    return subprocess.run([python_with(version), "-m", "pytest", "-q", *_TESTS], cwd=_CLONE, check=False).returncode


def _name(version: str) -> str:
    return version if version in _OTHERS else f"pyspark-{version}"


def _requirements(version: str) -> list[str]:
    """Return what is installed: what tests need, with this version of PySpark; or what one of the others has."""
    project = tomllib.loads((_CLONE / "pyproject.toml").read_text("utf-8"))["project"]
    if version == READERS:  # and what pgoutput_construct.lake needs
        return [*_OTHERS[READERS], *project["dependencies"], *project["optional-dependencies"]["changelog"]]
    if version in _OTHERS:
        return [*_OTHERS[version]]
    others = (each for each in _of_extra("test", project["optional-dependencies"]) if not each.startswith("pyspark"))
    return sorted({*project["dependencies"], *others, f"pyspark[connect]=={version}.*"})


def _of_extra(extra: str, extras: dict[str, list[str]]) -> Iterator[str]:
    for requirement in extras[extra]:
        included = re.fullmatch(r"pgoutput-construct\[(.*)\]", requirement)
        if included is None:
            yield requirement
        else:
            for each in included[1].split(","):
                yield from _of_extra(each, extras)


if __name__ == "__main__":
    main()
