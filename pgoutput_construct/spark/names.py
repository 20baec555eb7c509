"""Names of tables: as SQL writes them, and as directories that any file system and Spark take."""

import re
from urllib.parse import unquote

__all__ = ["directory_name", "qualified_name", "table_of_directory"]

_PLAIN = re.compile(r"[a-z_][a-z0-9_$]*")


def qualified_name(namespace: str, name: str) -> str:
    """Return ``schema.table``, each part in double quotes where SQL needs them; an empty schema is pg_catalog."""
    return ".".join(_quoted(part) for part in (namespace or "pg_catalog", name))


def directory_name(namespace: str, name: str) -> str:
    """Return ``schema.table`` as the name of a directory: letters, digits, ``-`` and ``_`` are themselves.

    Everything else is percent-encoded UTF-8, as is an underscore that comes first: Spark does not see such files.
    """
    parts = (_encoded(namespace or "pg_catalog"), _encoded(name))
    return re.sub("^_", "%5F", ".".join(parts))


def table_of_directory(directory: str) -> tuple[str, str]:
    """Return schema and table of what ``directory_name`` gave."""
    namespace, name = directory.split(".")
    return unquote(namespace), unquote(name)


def _quoted(part: str) -> str:
    return part if _PLAIN.fullmatch(part) else '"' + part.replace('"', '""') + '"'


def _encoded(part: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "".join(f"%{b:02X}" for b in c.encode()) for c in part)
