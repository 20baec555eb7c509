"""The names of the directories of a warehouse: each dataset has one, by default named after its table."""

import re
from hashlib import sha256
from typing import Final
from urllib.parse import unquote

from pgoutput_construct.errors import PgoutputError

__all__ = [
    "HISTORY_SUFFIX",
    "SCHEMA",
    "SHARED",
    "STAGED",
    "TABLE",
    "directory_name",
    "encoded_name",
    "table_of_directory",
]

HISTORY_SUFFIX: Final = ".history"
"""The suffix of the directory of a history, after that of its table: no other directory has two dots."""
SHARED: Final = "@"
"""What comes between the directory of a table that schemas share, and a schema: in no name of a directory."""
STAGED: Final = "_staged"
"""The directory of staged changes: no table's, and no schema's, whose directories have no underscore first."""
SCHEMA: Final = "{schema}"
TABLE: Final = "{table}"
_LONGEST: Final = 255  # bytes: NAME_MAX of Linux, and the limit of HDFS
_DIGITS: Final = 32


def directory_name(namespace: str, name: str) -> str:
    """Return ``schema.table`` as the name of a directory: letters, digits, ``-`` and ``_`` are themselves.

    Everything else is percent-encoded bytes (UTF-8, or as received where they are not), as is a leading underscore,
    since Spark ignores such files. A name longer than 255 bytes, the limit of file systems, is cut, and ends in a ``~``
    and a digest: find its table by comparing with ``Table.directory`` of all tables in the log.
    """
    parts = (encoded_name(namespace or "pg_catalog"), encoded_name(name))
    return _shortened(re.sub("^_", "%5F", ".".join(parts)))


def table_of_directory(directory: str) -> tuple[str, str]:
    """Return schema and table of a name by ``directory_name``; raise PgoutputError for one that was cut."""
    if "~" in directory:
        raise PgoutputError(
            f"{directory}: the name was too long for a directory; compare it with OpenLog.table(name).directory"
        )
    namespace, name = directory.split(".")
    return unquote(namespace, errors="surrogateescape"), unquote(name, errors="surrogateescape")


def encoded_name(part: str) -> str:
    """Return a name as a part of ``directory_name``: without a dot, or any other character that is not of a word."""
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
