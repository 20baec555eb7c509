"""What the catalog says of tables and publications: all that the stream does not say of them, in one reading."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgoutput_construct.catalog_queries import (
    CURRENT_SNAPSHOT,
    DIGEST,
    INSERTED_LSN,
    LOCKED_TABLES,
    PUBLICATION_FACTS,
    TABLE_FACTS,
    TYPE_FACTS,
)
from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.postgres.connection import Connection, ask, ask_one, run
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
"""The first server whose catalog is read: the columns of pg_attribute are as they are now."""


@dataclass(frozen=True)
class CatalogReading:
    """The catalog at one moment; facts are the details of the events that say them."""

    snapshot: Snapshot
    """Which transactions had ended when all was read; its position was read last."""
    tables: Mapping[int, Facts]
    """The tables that were asked for and are there, by OID."""
    publications: Mapping[str, Facts]
    """The publications that are there, by name."""


def catalog_digest(connection: Connection) -> str:
    """Return what is another text when the catalog may say something else; it costs little."""
    return str(ask_one(connection, DIGEST))


def locked_tables(connection: Connection) -> frozenset[int]:
    """Return the OIDs of tables that are being altered."""
    return frozenset(row["oid"] for row in ask(connection, LOCKED_TABLES))


def read_catalog(
    connection: Connection, publications: Sequence[str], slot: str, known: Collection[int] = ()
) -> CatalogReading:
    """Read what the publications publish, and the facts of their tables and of those that are ``known``, by OID.

    Row by row it is of one moment: what changes while it is read is read again. Raises ReplicationError.
    """
    run(connection, "SET jit = off")  # compiling takes longer than the queries do
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
    # Afterwards: who sees all that this snapshot does sees what was read, too.
    xmin, xmax, xip = str(ask_one(connection, CURRENT_SNAPSHOT)).split(":")
    position = Lsn(int(ask_one(connection, INSERTED_LSN)))
    snapshot = Snapshot(int(xmin), int(xmax), tuple(int(xid) for xid in xip.split(",") if xid), position)
    return CatalogReading(snapshot, tables, published)


def _read_publications(connection: Connection, publications: Sequence[str]) -> dict[str, Facts]:
    found = ask(connection, PUBLICATION_FACTS, publications=list(publications))
    for each in found:
        each |= {"tables": each["tables"] or [], "unsent": each["unsent"] or []}
        if each["excluded"] is None:  # as in the facts of all servers before 19
            del each["excluded"]
    return {each["publication"]: each for each in found}


def _read_tables(connection: Connection, slot: str, numbers: Mapping[int, set[int]]) -> dict[int, Facts]:
    wanted = sorted(numbers)
    found = {row["oid"]: row for row in ask(connection, TABLE_FACTS, oids=wanted, slot=slot)}
    for oid, facts in found.items():
        facts["identity"] = facts["identity"] or []
        facts["columns"] = [_column(column, numbers[oid]) for column in facts["columns"] or ()]
    for row in ask(connection, TYPE_FACTS, oids=wanted):
        if row["oid"] in found:
            types = [{name: value for name, value in each.items() if value} for each in row["types"]]
            found[row["oid"]]["types"] = types
    return found


def _column(column: Facts, published: Collection[int]) -> Facts:
    """Return the facts of a column, without those that are as they mostly are."""
    if column["dropped"]:
        column = {name: column[name] for name in ("number", "xmin", "dropped", "recent")}
    column["published"] = column["number"] in published
    return {name: value for name, value in column.items() if value not in (None, False)}
