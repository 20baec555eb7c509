"""Names of tables: parsed by SQL's rules, and printed so that they can be pasted into a command or an SQL statement."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Protocol

from pgoutput_construct.errors import PgoutputError

__all__ = [
    "DEFAULT_SCHEMA",
    "KEYWORDS",
    "full_name",
    "normal_name",
    "qualified_name",
    "quote_identifier",
    "split_column",
    "split_list",
    "split_name",
    "split_pattern",
]

DEFAULT_SCHEMA: Final = "public"
"""The schema of unqualified names; the server's search_path is not consulted."""

_WORDS: Final = """
all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both case
cast char character check coalesce collate collation column concurrently constraint create cross current_catalog
current_date current_role current_schema current_time current_timestamp current_user dec decimal default
deferrable desc distinct do else end except exists extract false fetch float for foreign freeze from full grant
greatest group grouping having ilike in initially inner inout int integer intersect interval into is isnull join
json json_array json_arrayagg json_exists json_object json_objectagg json_query json_scalar json_serialize
json_table json_value lateral leading least left like limit localtime localtimestamp merge_action national
natural nchar none normalize not notnull null nullif numeric offset on only or order out outer overlaps overlay
placing position precision primary real references returning right row select session_user setof similar
smallint some substring symmetric system_user table tablesample then time timestamp to trailing treat trim true
union unique user using values varchar variadic verbose when where window with xmlattributes xmlconcat
xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable
"""
KEYWORDS: Final = frozenset(_WORDS.split())
"""The keywords that quote_ident() quotes: all of pg_get_keywords() except the unreserved ones (catcode U).

The union over all tested servers: a name that only a later server must quote is quoted for earlier ones, too.
"""

# quote_identifier() in ruleutils.c quotes more than scan.l requires: dollar signs and non-ASCII letters are permitted.
_SAFE: Final = re.compile(r"[a-z_][a-z0-9_]*")
_QUOTED: Final = r'"(?:[^"\0]|"")+"'
_PART: Final = re.compile(rf"{_QUOTED}|[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*")
_WHOLE_SCHEMA: Final = re.compile(r"(.*)\.\s*\*\s*", re.DOTALL)
_SPACE: Final = re.compile(r"[ \t\n\r\f\v]*")  # scanner_isspace()
_ITEM: Final = re.compile(r'(?:"(?:[^"]|"")*"|[^",])*')
_FOLDED: Final = str.maketrans({chr(code): chr(code + 32) for code in range(ord("A"), ord("Z") + 1)})
_PARTS: Final = 2


def quote_identifier(name: str) -> str:
    """Return a name as quote_ident() writes it: in double quotes unless SQL reads it back unchanged without them."""
    return name if _SAFE.fullmatch(name) and name not in KEYWORDS else '"' + name.replace('"', '""') + '"'


@lru_cache(maxsize=4096)
def qualified_name(namespace: str, name: str) -> str:
    """Return ``schema.table``, quoted as needed; ``split_name`` parses it.

    Args:
        namespace: The schema; empty for pg_catalog, as on the wire.
        name: The table.
    """
    return f"{quote_identifier(namespace or 'pg_catalog')}.{quote_identifier(name)}"


class _NamedTable(Protocol):
    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...


def full_name(named: _NamedTable) -> str:
    """Return the ``qualified_name`` of an object with a namespace and a name, such as a Relation or a Type."""
    return qualified_name(named.namespace, named.name)


def split_name(text: str) -> tuple[str, str]:
    """Return the schema and table of a name as written in SQL; raise PgoutputError if it is not one.

    The rules are those of parse_ident(): unquoted parts are folded to lower case (A to Z alone, as in a UTF-8
    database), and may be keywords. An unqualified table is in ``DEFAULT_SCHEMA``.
    """
    parts = tuple(_parts(text))
    if len(parts) > _PARTS:
        raise _no_name(text)
    namespace, name = (DEFAULT_SCHEMA, *parts)[-_PARTS:]
    return namespace, name


def split_pattern(text: str) -> tuple[str, str | None]:
    """Return the result of ``split_name``, or (schema, None) for ``schema.*``; raise PgoutputError for other text."""
    named = _WHOLE_SCHEMA.fullmatch(text)
    if named is None:
        return split_name(text)
    (schema, *rest) = _parts(named[1])
    if rest:
        raise _no_name(text)
    return schema, None


def normal_name(text: str) -> str:
    """Parse a name as ``split_name`` does, and return its ``qualified_name``; raise PgoutputError."""
    return qualified_name(*split_name(text))


def split_column(text: str) -> tuple[str, str]:
    """Return the ``qualified_name`` of a table and the name of its column, of ``schema.table.column``.

    The rules are those of ``split_name``; a table without a schema is in ``DEFAULT_SCHEMA``. Raises PgoutputError for
    other text, which the error does not repeat: it may continue with what must stay secret.
    """
    try:
        *parts, column = _parts(text)
        namespace, name = (DEFAULT_SCHEMA, *parts)[-_PARTS:]
    except (PgoutputError, ValueError):
        parts = []
    if not 1 <= len(parts) <= _PARTS:
        raise PgoutputError(
            "a column is named schema.table.column as in SQL: put names with capitals, dots or other characters than "
            "letters, digits and underscores in double quotes"
        )
    return qualified_name(namespace, name), column


def split_list(text: str) -> list[str]:
    """Split a list of names at commas outside of double quotes; raise PgoutputError for an empty or unclosed name."""
    names, at = [], 0
    while True:
        item = _ITEM.match(text, at)
        assert item is not None  # it matches nothing, too
        at = item.end()
        if not item[0].strip() or text[at : at + 1] not in ("", ","):
            raise PgoutputError(f"{text!r} is not a list of names: separate them by commas, and close double quotes")
        names.append(item[0].strip())
        if at == len(text):
            return names
        at += 1


def _parts(text: str) -> Iterator[str]:
    at = _after_space(text, 0)
    while True:
        part = _PART.match(text, at)
        if part is None:
            raise _no_name(text)
        yield part[0][1:-1].replace('""', '"') if part[0].startswith('"') else part[0].translate(_FOLDED)
        at = _after_space(text, part.end())
        if at == len(text):
            return
        if text[at] != ".":
            raise _no_name(text)
        at = _after_space(text, at + 1)


def _after_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    assert space is not None  # it matches nothing, too
    return space.end()


def _no_name(text: str) -> PgoutputError:
    return PgoutputError(
        f"{text!r} does not name a table: write schema.table as in SQL; put names with capitals, dots or other "
        "characters than letters, digits and underscores in double quotes"
    )
