"""Extras: what the package says of them is what pyproject.toml installs."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgoutput_construct.extras import EXTRAS

ROOT = Path(__file__).parents[1]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]


def _modules(extra: str) -> Iterator[str]:
    """Yield the modules of an extra, those of the extras that it includes among them."""
    for requirement in DECLARED[extra]:
        if included := re.fullmatch(r"pgoutput-construct\[(.*)\]", requirement):
            for each in included[1].split(","):
                yield from _modules(each)
        else:
            yield re.match(r"[\w-]+", requirement)[0].replace("-", "_")  # type: ignore[index]


@pytest.mark.parametrize("extra", EXTRAS)
def test_modules_of_an_extra(extra: str) -> None:
    """Each extra brings the modules that pyproject.toml installs for it."""
    assert set(EXTRAS[extra]) == set(_modules(extra))


def test_every_extra_of_users_is_known() -> None:
    """Only the extras for maintainers have no modules named."""
    assert set(DECLARED) - set(EXTRAS) == {"docs", "fuzz", "maintain", "release", "test"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "extra", "hidden"),
    [
        ("import pgoutput_construct.postgres", "postgres", "psycopg"),
        ("import pgoutput_construct.postgres", "postgres", "pyarrow"),
        ("import pgoutput_construct.changelog", "changelog", "pyarrow"),
        ("import pgoutput_construct.changelog", "changelog", "numba"),
        ("from pgoutput_construct.testing import streams", "testing", "hypothesis"),
        ("from pgoutput_construct.testing import publisher", "publisher", "numba"),
        ("import pgoutput_construct.spark", "spark", "pyspark"),
        ("import pgoutput_construct.spark", "spark", "pyarrow"),
        ("import pgoutput_construct.columnar", "columnar", "pyarrow"),
        ("from pgoutput_construct.columnar import BatchDecoder", "columnar", "numba"),
    ],
)
def test_rooms_without_their_extra(code: str, extra: str, hidden: str) -> None:
    """A room that lacks a module names it and its extra; the error is this package's, and one of import."""
    code = (
        f"import sys; sys.modules.update({hidden}=None)\nfrom pgoutput_construct import PgoutputError\n"
        f"try:\n    {code}\nexcept ImportError as error:\n    print(isinstance(error, PgoutputError), error)"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    said = f"True not installed: {hidden}; run: pip install 'pgoutput_construct[{extra}]'"
    assert result.stdout.startswith(said)


def test_a_clone_that_is_not_installed(tmp_path: Path) -> None:
    """pip finds its extras by its path; only an installed package has them by name."""
    shutil.copytree(ROOT / "pgoutput_construct", tmp_path / "a clone" / "pgoutput_construct")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'a clone')!r})\n"
        "from pgoutput_construct.extras import installation; print(installation('cli', 'spark'))"
    )
    result = subprocess.run([sys.executable, "-ISc", code], check=True, capture_output=True, text=True)
    assert result.stdout == f"run: pip install '{tmp_path}/a clone[cli,spark]'\n"


@pytest.mark.parametrize("tool", ["tools.generate", "tools.protocol_docs"])
def test_tools_without_their_extra(tool: str) -> None:
    """A tool that lacks modules names all of them, and the command that installs them."""
    code = (
        "import runpy, sys; sys.modules.update(yaml=None, jsonschema=None)\n"
        f"runpy.run_module({tool!r}, run_name='__main__')"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr == "Error: not installed: jsonschema, yaml; run: pip install '.[maintain]'\n"


USED = ("columnar", "postgres", "cli")
"""Extras that need kernels, a library of C, and neither."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "extra", [pytest.param(each, marks=() if each in USED else pytest.mark.long) for each in (*EXTRAS, "docs")]
)
def test_each_extra_alone(extra: str) -> None:
    """With the modules of one extra alone, and what these need, works what the documentation says of it."""
    script = [sys.executable, "-P", str(ROOT / "tests" / "alone.py"), extra]  # not tests/typing as typing
    done = subprocess.run(
        script, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_import_of_the_core() -> None:
    """It imports construct, the definitions and the room of streams when they are used first, and nothing else."""
    code = (
        "import sys; before = {*sys.modules}\nimport pgoutput_construct as pgo\n"
        "others = {name.partition('.')[0] for name in {*sys.modules} - before} - {*sys.stdlib_module_names}\n"
        "print(sorted(others), 'pgoutput_construct.stream' in sys.modules)\n"
        "pgo.Session\n"
        "assert pgo.definitions.Insert and {*dir(pgo)} >= {'Session', 'definitions', 'parse'}\n"
        "print('construct' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert result.stdout.splitlines() == ["['pgoutput_construct'] False", "True"]
