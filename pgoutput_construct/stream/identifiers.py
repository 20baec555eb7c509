"""Names of tables: read by SQL's rules, and printed in the one form that can be pasted back into a command or SQL."""

import re
from collections.abc import Iterator
from typing import Final, Protocol

from pgoutput_construct.errors import PgoutputError

__all__ = [
    "DEFAULT_SCHEMA",
    "KEYWORDS",
    "full_name",
    "normal_name",
    "qualified_name",
    "quote_identifier",
    "split_list",
    "split_name",
    "split_pattern",
]

DEFAULT_SCHEMA: Final = "public"
"""The schema of a table that is named without one, whatever the search_path of a role is."""

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
"""The keywords that quote_ident() quotes: all of pg_get_keywords() but the unreserved ones (catcode U).

Those of every tested server together: a name that only a later one has to quote is quoted for the earlier ones, too.
"""

# quote_identifier() in ruleutils.c; an identifier of scan.l may have dollar signs and letters of any language, too.
_SAFE: Final = re.compile(r"[a-z_][a-z0-9_]*")
_QUOTED: Final = r'"(?:[^"\0]|"")+"'
_PART: Final = re.compile(rf"{_QUOTED}|[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*")
_WHOLE_SCHEMA: Final = re.compile(r"(.*)\.\s*\*\s*", re.DOTALL)
_SPACE: Final = re.compile(r"[ \t\n\r\f\v]*")  # scanner_isspace()
_ITEM: Final = re.compile(r'(?:"(?:[^"]|"")*"|[^",])*')
_FOLDED: Final = str.maketrans({chr(code): chr(code + 32) for code in range(ord("A"), ord("Z") + 1)})
_PARTS: Final = 2


def quote_identifier(name: str) -> str:
    """Return a name as quote_ident() writes it: in double quotes unless SQL reads it as it is."""
    return name if _SAFE.fullmatch(name) and name not in KEYWORDS else '"' + name.replace('"', '""') + '"'


def qualified_name(namespace: str, name: str) -> str:
    """Return ``schema.table`` in the form that everything here prints, and that ``split_name`` reads.

    Args:
        namespace: The schema; empty for pg_catalog, as on the wire.
        name: The table.
    """
    return f"{quote_identifier(namespace or 'pg_catalog')}.{quote_identifier(name)}"


class _Named(Protocol):
    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...


def full_name(named: _Named) -> str:
    """Return ``qualified_name`` of what has both parts: a Relation, a Type, a copy of a table."""
    return qualified_name(named.namespace, named.name)


def split_name(text: str) -> tuple[str, str]:
    """Return schema and table of a name that is written as in SQL; raise PgoutputError for what is no such name.

    As parse_ident() reads it: what is not in double quotes is folded to lower case (A to Z, as in a UTF-8 database),
    and may be a keyword. A table without a schema is one of ``DEFAULT_SCHEMA``.
    """
    parts = tuple(_parts(text))
    if len(parts) > _PARTS:
        raise _no_name(text)
    namespace, name = (DEFAULT_SCHEMA, *parts)[-_PARTS:]
    return namespace, name


def split_pattern(text: str) -> tuple[str, str | None]:
    """Return what ``split_name`` does, or for ``schema.*`` the schema and None; raises as that."""
    named = _WHOLE_SCHEMA.fullmatch(text)
    if named is None:
        return split_name(text)
    (schema, *rest) = _parts(named[1])
    if rest:
        raise _no_name(text)
    return schema, None


def normal_name(text: str) -> str:
    """Return a name that is written as in SQL in the form of ``qualified_name``; raises as ``split_name``."""
    return qualified_name(*split_name(text))


def split_list(text: str) -> list[str]:
    """Split names that are separated by commas, which may also be in double quotes; raise PgoutputError for others."""
    names, at = [], 0
    while True:
        item = _ITEM.match(text, at)
        assert item is not None  # it matches nothing, too
        at = item.end()
        if not item[0].strip() or text[at : at + 1] not in ("", ","):
            raise PgoutputError(f"{text!r} are no names: separate them by single commas, and close each double quote")
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
        f"{text!r} does not name a table: write schema.table as in SQL, in double quotes what has capitals, dots or "
        "other characters than letters, digits and underscores"
    )
