"""The table of built-in types against PostgreSQL's catalog and against psycopg's registry."""

import pytest
from psycopg.postgres import types as psycopg_types

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES, TYPE_NAMES

CATALOG = """
    SELECT t.oid, t.typname, t.typarray, t.typlen, coalesce(e.oid, 0)::oid, coalesce(r.rngsubtype, m.rngtypid, 0)::oid,
           e.typdelim, t.typtype IN ('b', 'r', 'm') AND t.typcategory <> 'Z'
    FROM pg_type t LEFT JOIN pg_type e ON e.typarray = t.oid
         LEFT JOIN pg_range r ON r.rngtypid = t.oid LEFT JOIN pg_range m ON m.rngmultitypid = t.oid
    WHERE t.oid < 10000
"""
"""Types with their elements and subtypes, the elements' delimiter, and whether columns can have the type.

Of category Z are types internal to the server's statistics.
"""


SINCE_19 = {"oid8", "_oid8", "regdatabase", "_regdatabase"}


@pytest.mark.differs_by_version
def test_table_is_what_the_catalog_says(server: EmbeddedServer) -> None:
    """OID, name, array, size, elements and subtypes are those of a real server, and no type of a column is missing."""
    with server.connect() as connection:
        catalog = {row[0]: row for row in connection.execute(CATALOG).fetchall()}
    later = SINCE_19 if server.version < 19 else set()
    assert {row.name for oid, row in BUILTIN_TYPES.items() if oid not in catalog} == later
    for oid, row in ((oid, BUILTIN_TYPES[oid]) for oid in BUILTIN_TYPES.keys() & catalog.keys()):
        assert (oid, row.name, row.array_oid, row.size, row.element_oid, row.subtype_oid) == catalog[oid][:6]
        assert (row.arrow == "list") == (catalog[oid][6] == ",")
    missing = {name for oid, name, *_, is_column in catalog.values() if is_column and oid not in BUILTIN_TYPES}
    assert missing == {"_cstring", "_pg_attribute", "_pg_class", "_pg_proc", "_pg_type"}


def test_table_has_what_psycopg_knows() -> None:
    """Every type of psycopg's registry exists, with the same OIDs."""
    for info in psycopg_types:
        row = TYPE_NAMES[info.name.strip('"')]
        assert (row.oid, row.array_oid) == (info.oid, info.array_oid)
        assert BUILTIN_TYPES[info.oid] is row


def test_names_and_oids_give_the_same_rows() -> None:
    """Both mappings hold every row once."""
    assert len(TYPE_NAMES) == len(BUILTIN_TYPES)
    assert set(TYPE_NAMES.values()) == set(BUILTIN_TYPES.values())
