"""What went wrong in an executor, without the stack traces of two languages around it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pgoutput_construct import errors
from pgoutput_construct.changelog.store import MissingFileError
from pgoutput_construct.errors import PgoutputError

__all__ = ["plain_errors", "reason_of"]

_OURS = re.compile(r"pgoutput_construct\.[\w.]*?(\w+Error): (.+)")
_KNOWN = {**vars(errors), MissingFileError.__name__: MissingFileError}
_RAISED: Final = re.compile(r"^(?!py4j\.|pyspark\.)[A-Za-z_][\w.]*(?:Error|Exception): .+$", re.MULTILINE)
"""How a traceback of Python ends."""
_CALLED: Final = "An error occurred while calling"
"""How Py4J begins what Java raised."""
_LONGEST: Final = 500


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise an error of this package that Spark brings from an executor as what it was there.

    For use around any action (``count``, ``collect``, ``write``) on the DataFrames of this package; without it Spark
    raises its PythonException, with the same text deep inside.
    """
    try:
        yield
    except PgoutputError:
        raise
    except Exception as error:
        found = _OURS.findall(str(error))
        if not found:
            raise
        # The last one printed is the outermost of a chain: it names segment and seq.
        name, text = found[-1]
        raise _KNOWN.get(name, PgoutputError)(text) from error


def reason_of(error: Exception) -> str:
    """Return an error as text for people: that of this package as it is, of any other the line that says most."""
    text = str(error)
    if isinstance(error, PgoutputError):
        return text
    raised = _RAISED.findall(text.partition("JVM stacktrace")[0]) if "Traceback (most recent call last)" in text else []
    lines = (line.strip(" :") for line in text.splitlines() if not line.startswith(_CALLED))
    line = raised[-1] if raised else next(filter(None, lines), "")
    return f"{type(error).__name__}: {line[:_LONGEST]}"
