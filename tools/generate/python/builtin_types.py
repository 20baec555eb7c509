"""Emits the table of PostgreSQL's built-in types."""

from collections.abc import Iterator, Mapping

from tools.generate.text import python_module
from tools.language.builtin_types import BuiltinType, TypeTable

__all__ = ["emit_builtin_types"]

CLASS = '''
from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["BUILTIN_TYPES", "FIRST_USER_OID", "TYPE_NAMES", "BuiltinType"]

class BuiltinType(NamedTuple):
    """One built-in type, as pg_type has it."""

    name: str
    """typname; that of an array type is the name of its elements after an underscore."""
    oid: int
    """Its OID, the same on every server."""
    array_oid: int
    """OID of the array type, 0 where there is none."""
    size: int
    """Size in bytes (typlen), -1 if it varies."""
    arrow: str
    """Name of the Arrow type of its columns; ``list`` for arrays, ``string`` for types kept as PostgreSQL's text."""
    element_oid: int = 0
    """OID of the elements of an array type, 0 for others."""
    subtype_oid: int = 0
    """The OID of a range's subtype, or of a multirange's range; 0 for other types."""
    delimiter: str = ","
    """For an array type, the delimiter of its elements in text."""
    sends_text: str = ""
    """Which text its send function converts to client_encoding: ``plain`` (all bytes, as textsend()), ``versioned``
    (all after a byte with a version, as jsonb_send()), ``xml`` (xml_send(), which declares the encoding), ``lexemes``
    (tsvectorsend()), ``operands`` (tsquerysend()); empty for none."""
    text_like: int = 0
    """OID of the type whose text format its values have, 0 for its own."""
    binary_like: int = 0
    """OID of the type whose binary format its values have, 0 for its own."""
'''

TABLES = '''
FIRST_USER_OID: Final = 16384
"""FirstNormalObjectId (access/transam.h): what users create has OIDs from here on."""

BUILTIN_TYPES: Final[Mapping[int, BuiltinType]] = {row.oid: row for row in _ROWS}
"""The built-in types and their array types, by OID."""

TYPE_NAMES: Final[Mapping[str, BuiltinType]] = {row.name: row for row in _ROWS}
"""The same by name."""
'''


def emit_builtin_types(table: TypeTable) -> str:
    """Return the module with the table."""
    oids = {row.name: row.oid for row in table.types}
    arrays = {row.name: row.array_oid for row in table.types}
    rows = "".join(f"{line},\n" for row in table.types for line in _rows(row, oids, arrays))
    about = "PostgreSQL's built-in types: OIDs, sizes and Arrow types, by OID and by name."
    return python_module(table, [about], CLASS, f"_ROWS: Final = (\n{rows})", TABLES)


def _rows(row: BuiltinType, oids: Mapping[str, int], arrays: Mapping[str, int]) -> Iterator[str]:
    """Return the constructor calls of a type and its array type."""
    subtype = f", subtype_oid={oids[row.subtype]}" if row.subtype else ""
    sends = f', sends_text="{row.sends_text}"' if row.sends_text else ""
    more = f"{subtype}{sends}{_like(row, oids)}"
    yield f'BuiltinType("{row.name}", {row.oid}, {row.array_oid}, {row.size}, "{row.arrow}"{more})'
    if row.array_oid:
        # Only arrays with a comma as delimiter are lists; those of box stay PostgreSQL's text.
        arrow = "list" if row.delimiter == "," else "string"
        delimiter = "" if row.delimiter == "," else f', delimiter="{row.delimiter}"'
        more = f"{delimiter}{_like(row, arrays)}"
        yield f'BuiltinType("_{row.name}", {row.array_oid}, 0, -1, "{arrow}", element_oid={row.oid}{more})'


def _like(row: BuiltinType, oids: Mapping[str, int]) -> str:
    text = f", text_like={oids[row.text_like]}" if row.text_like and oids[row.text_like] else ""
    return text + (f", binary_like={oids[row.like]}" if row.like and oids[row.like] else "")
