"""Spark's exceptions as one line; known by the names of their classes, so that nothing needs to be imported."""

import re
from collections.abc import Mapping
from typing import Final

from pgoutput_construct.extras import JAVA

__all__ = ["spark_reason"]

_MODULES: Final = frozenset({"pyspark", "py4j"})
_KNOWN: Final[Mapping[str, str]] = {
    "PATH_ALREADY_EXISTS": "choose another --output, or give --overwrite to replace the existing one",
    "JAVA_GATEWAY_EXITED": JAVA,
    "on a stopped SparkContext": "the master given as --master cannot be reached, or has ended the application",
    "Could not parse Master URL": "--master is local, local[N], spark://HOST:PORT, yarn, or k8s://HOST:PORT",
}
"""What to do, by what Spark's text has in it."""

_NOISE: Final = re.compile(r"^(\[\w[\w.]*\]|An error occurred while calling .*|: |[\w.$]+(Exception|Error): |\s+)+")
_CODE: Final = re.compile(r"\s*SQLSTATE: \w+.*")
_RAISED: Final = re.compile(
    r"^(?!py4j\.|pyspark\.)[a-zA-Z_][\w.]*(?:Error|Exception|Interrupt|Exit)(?:: .*)?$", re.MULTILINE
)
"""How a traceback of Python ends."""
_LACKING: Final = re.compile(r"No module named '?([\w.]+)")


def spark_reason(error: BaseException) -> str | None:
    """Return what to tell the user about an exception of Spark; None for one that is not Spark's."""
    if not any(kind.__module__.partition(".")[0] in _MODULES for kind in type(error).__mro__):
        return None
    text = str(error)
    if (cause := _cause(text)) is not None:
        return cause
    remedy = next((remedy for mark, remedy in _KNOWN.items() if mark in text), None)
    line = _first_line(text) or type(error).__name__
    return f"Spark: {line}" if remedy is None else f"Spark: {line.rstrip('.')}: {remedy}"


def _cause(text: str) -> str | None:
    """Return what an executor's Python raised, which Spark puts after its own words; None for nothing."""
    raised = _RAISED.findall(text.partition("JVM stacktrace")[0]) if "Traceback (most recent call last)" in text else []
    lacking = _LACKING.search(raised[-1] if raised else text)
    if lacking is not None:
        return (
            f"Spark: an executor's Python has no module {lacking[1]}: install this package with its extra spark in the "
            "Python of all workers, and name that in PYSPARK_PYTHON"
        )
    return f"Spark: in an executor: {raised[-1]}" if raised else None


def _first_line(text: str) -> str:
    """Return the first line that says something, without the classes and codes around it."""
    return next((plain for line in text.splitlines() if (plain := _CODE.sub("", _NOISE.sub("", line)).strip())), "")
