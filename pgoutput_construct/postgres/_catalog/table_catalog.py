"""Readings of the catalog: the facts of tables and publications that the stream does not contain."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgoutput_construct.catalog_queries import (
    COMMENTS,
    CURRENT_SNAPSHOT,
    DIGEST,
    INSERTED_LSN,
    LOCKED_TABLES,
    PUBLICATION_FACTS,
    TABLE_FACTS,
    TYPE_FACTS,
)
from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.postgres.connection import Connection, fetch_named, fetch_value, reading_answer, run
from pgoutput_construct.wire import Lsn

__all__ = [
    "CATALOG_SINCE",
    "CatalogReading",
    "catalog_digest",
    "locked_tables",
    "read_catalog",
]

Facts = dict[str, Any]

CATALOG_SINCE = 120000
"""The first ``server_version_num`` whose catalog is read: from there on pg_attribute has the columns used here."""


@dataclass(frozen=True)
class CatalogReading:
    """The catalog at one time; facts have the form of the details of events."""

    snapshot: Snapshot
    """The transactions that had ended after the reading; its LSN was read last."""
    tables: Mapping[int, Facts]
    """The requested tables that exist, by OID."""
    publications: Mapping[str, Facts]
    """The publications that exist, by name."""


def catalog_digest(connection: Connection) -> str:
    """Return a text that changes whenever the facts may have changed; much cheaper than a reading."""
    return str(fetch_value(connection, DIGEST))


def locked_tables(connection: Connection) -> frozenset[int]:
    """Return the OIDs of tables that are being altered."""
    return frozenset(row["oid"] for row in fetch_named(connection, LOCKED_TABLES))


@reading_answer(DIGEST.purpose)
def read_catalog(
    connection: Connection, publications: Sequence[str], slot: str, known: Collection[int] = ()
) -> CatalogReading:
    """Read the facts of publications and of tables.

    Several queries, and the syscache functions in them, do not share a snapshot: the catalog is read until two
    consecutive readings agree.

    Args:
        connection: The connection to read with.
        publications: The names of the publications; the tables that they publish are read too.
        slot: The name of the slot, whose catalog_xmin shows which columns are recent.
        known: The OIDs of other tables to read.

    Raises:
        ReplicationError: A query fails.
    """
    run(connection, "SET jit = off")  # compiling takes longer than the queries
    reading = _read(connection, publications, slot, known)
    while True:
        again = _read(connection, publications, slot, known)
        if (again.tables, again.publications) == (reading.tables, reading.publications):
            return again
        reading = again


def _read(connection: Connection, publications: Sequence[str], slot: str, known: Iterable[int]) -> CatalogReading:
    published = _read_publications(connection, publications)
    numbers: dict[int, set[int]] = {oid: set() for oid in known}
    for facts in published.values():
        for table in facts["tables"]:
            numbers.setdefault(table["oid"], set()).update(table.pop("published") or ())
    tables = _read_tables(connection, slot, numbers)
    # Read last: whatever sees all transactions of this snapshot sees what was read, too.
    text = str(fetch_value(connection, CURRENT_SNAPSHOT))
    position = Lsn(int(fetch_value(connection, INSERTED_LSN)))
    return CatalogReading(Snapshot.parse(text, position), tables, published)


def _read_publications(connection: Connection, publications: Sequence[str]) -> dict[str, Facts]:
    found = fetch_named(connection, PUBLICATION_FACTS, publications=list(publications))
    for each in found:
        each |= {"tables": each["tables"] or [], "unsent": each["unsent"] or []}
        for name in ("excluded", "written"):  # absent in the facts of servers before 19, and of publishers
            if each[name] is None:
                del each[name]
    return {each["publication"]: each for each in found}


def _read_tables(connection: Connection, slot: str, numbers: Mapping[int, set[int]]) -> dict[int, Facts]:
    wanted = sorted(numbers)
    found = {row["oid"]: row for row in fetch_named(connection, TABLE_FACTS, oids=wanted, slot=slot)}
    for oid, facts in found.items():
        facts["identity"] = facts["identity"] or []
        facts["columns"] = [_column(column, numbers[oid]) for column in facts["columns"] or ()]
    for row in fetch_named(connection, TYPE_FACTS, oids=wanted):
        if row["oid"] in found:
            types = [{name: value for name, value in each.items() if value} for each in row["types"]]
            found[row["oid"]]["types"] = types
    for row in fetch_named(connection, COMMENTS, oids=wanted):
        if row["oid"] in found:
            found[row["oid"]]["comments"] = row["comments"]
    return found


def _column(column: Facts, published: Collection[int]) -> Facts:
    """Return the facts of a column, without those that have their usual value."""
    if column["dropped"]:
        column = {name: column[name] for name in ("number", "xmin", "dropped", "recent")}
    column["published"] = column["number"] in published
    return {name: value for name, value in column.items() if value not in (None, False)}
