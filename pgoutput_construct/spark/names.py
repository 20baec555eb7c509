"""Names of tables: as SQL writes them, and as directories that any file system and Spark take."""

import re
from hashlib import sha256
from urllib.parse import unquote

from pgoutput_construct.errors import PgoutputError

__all__ = ["directory_name", "plain_path", "table_of_directory"]

_LONGEST = 255  # bytes: NAME_MAX of Linux, and the limit of HDFS
_DIGITS = 32


def directory_name(namespace: str, name: str) -> str:
    """Return ``schema.table`` as the name of a directory: letters, digits, ``-`` and ``_`` are themselves.

    Everything else is percent-encoded bytes (UTF-8, or as they came where they are not), as is an underscore that
    comes first: Spark does not see such files. What is longer than 255 bytes, the most that file systems take, is
    cut, and a ``~`` and digits that are its own stand for the rest: which table that is, ``Table.directory`` of all
    tables in the log tells.
    """
    parts = (_encoded(namespace or "pg_catalog"), _encoded(name))
    return _shortened(re.sub("^_", "%5F", ".".join(parts)))


def table_of_directory(directory: str) -> tuple[str, str]:
    """Return schema and table of what ``directory_name`` gave; raise PgoutputError for a name that it has cut."""
    if "~" in directory:
        raise PgoutputError(
            f"{directory}: the name was too long for a directory; compare it with OpenLog.table(name).directory"
        )
    namespace, name = directory.split(".")
    return unquote(namespace, errors="surrogateescape"), unquote(name, errors="surrogateescape")


def plain_path(path: object) -> str:
    """Return a path that Spark takes as a name, and not as a pattern."""
    return re.sub(r"[][{}*?\\]", r"\\\g<0>", str(path))


def _encoded(part: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "".join(f"%{b:02X}" for b in _bytes(c)) for c in part)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _shortened(directory: str) -> str:
    whole = _bytes(directory)
    if len(whole) <= _LONGEST:
        return directory
    mark = f"~{sha256(whole).hexdigest()[:_DIGITS]}"
    start = whole[: _LONGEST - len(mark)].decode("utf-8", "ignore")
    return re.sub("%.?$", "", start) + mark
