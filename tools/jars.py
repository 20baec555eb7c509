"""Fetches the jars of Delta Lake, Iceberg and S3, which tests write tables with: ``python -m tools.jars``.

Spark itself fetches them, from where it looks by default, and keeps them for all sessions of this user.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pyspark

from pgoutput_construct.spark.formats import FORMATS, STORES
from tools.cache import fetching

__all__ = ["LAKES", "WAREHOUSE", "missing_jars"]

LAKES: Final = tuple(name for name, each in FORMATS.items() if each.jars)
"""The formats that need jars."""

WAREHOUSE: Final = "s3://tests"
"""An address in the store that needs jars."""

_VERSION: Final = ".".join(pyspark.__version__.split(".")[:2])
_START: Final = (
    "from pgoutput_construct.spark import spark_session\n"
    f"spark_session('local[1]', into={LAKES!r}, warehouse={WAREHOUSE!r}).stop()"
)
_SECONDS: Final = 600


def missing_jars() -> str:
    """Say which jars are not there, and what to do; "" when all are."""
    kept = {path.name for path in Path.home().glob(".ivy2*/jars/*.jar")}
    tables = [*(each.jars for each in FORMATS.values() if each.jars), *(each.jars for each in STORES.values())]
    wanted = ",".join(jars.get(_VERSION, f"none for Spark {_VERSION}") for jars in tables).split(",")
    missing = [jar for jar in wanted if not any(name.endswith(_file(jar)) for name in kept)]
    return f"jars are missing: {', '.join(missing)}; fetch them: python -m tools.jars" if missing else ""


def main() -> None:
    """Fetch them, unless they are there."""
    with fetching("jars"):
        if missing_jars():
            _fetch()


def _fetch() -> None:
    print(f"fetching the jars of {', '.join((*LAKES, *STORES))}", file=sys.stderr)
    command = [sys.executable, "-c", _START]
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_SECONDS)
    if problem := missing_jars():
        raise SystemExit(f"{result.stderr}\nError: {problem} (it failed, for the reason above)")


def _file(jar: str) -> str:
    _, name, version = jar.split(":") if ":" in jar else ("", jar, "")
    return f"{name}-{version}.jar"


if __name__ == "__main__":
    main()
