"""Which tables publications publish, by the same rules as PostgreSQL, without waiting for locks."""

from pathlib import Path

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import connect, read_publications
from pgoutput_construct.postgres._catalog.table_catalog import catalog_digest, locked_tables, read_catalog
from pgoutput_construct.postgres._snapshot.copied_tables import read_tables
from tests.postgres.shop import Shop, leave_detach_pending

pytestmark = pytest.mark.server

TABLES = """
    CREATE SCHEMA zoo; CREATE TABLE plain (a int PRIMARY KEY, b text, c int GENERATED ALWAYS AS (a + 1) STORED);
    CREATE UNLOGGED TABLE unlogged (a int); CREATE TABLE zoo.other (a int, gone int); ALTER TABLE zoo.other DROP gone;
    CREATE TABLE root (a int, b text) PARTITION BY RANGE (a);
    CREATE TABLE leaf PARTITION OF root FOR VALUES FROM (0) TO (10);
    CREATE TABLE zoo.middle PARTITION OF root FOR VALUES FROM (10) TO (20) PARTITION BY RANGE (a);
    CREATE TABLE deep PARTITION OF zoo.middle FOR VALUES FROM (10) TO (15)
"""
PUBLICATIONS = {
    "everything": "FOR ALL TABLES",
    "everything_as_roots": "FOR ALL TABLES WITH (publish_via_partition_root)",
    "schema": "FOR TABLES IN SCHEMA zoo",
    "schema_as_roots": "FOR TABLES IN SCHEMA zoo WITH (publish_via_partition_root)",
    "mixed": "FOR TABLE plain WHERE (a > 1), TABLES IN SCHEMA public WITH (publish = 'insert')",
    "parts": "FOR TABLE root, zoo.middle, plain (b, a) WHERE (a > 1)",
    "parts_as_roots": "FOR TABLE root (a) WHERE (a > 1), zoo.middle, deep WITH (publish_via_partition_root)",
    "a_part": "FOR TABLE zoo.middle, leaf WHERE (a > 1) WITH (publish_via_partition_root)",
    "nothing": "",
}
SINCE_19 = {
    "excepted": "FOR ALL TABLES EXCEPT (TABLE plain, root)",
    "excepted_as_roots": "FOR ALL TABLES EXCEPT (TABLE root), ALL SEQUENCES WITH (publish_via_partition_root)",
    "sequences": "FOR ALL SEQUENCES",
}
VIEW = """SELECT schemaname || '.' || tablename, attnames::text[], rowfilter IS NOT NULL
    FROM pg_publication_tables WHERE pubname = %s ORDER BY 1"""


@pytest.mark.differs_by_version
def test_published_tables_equal_the_view(server: EmbeddedServer) -> None:
    """Tables, columns and filters of every kind of publication; then all again while the tables are locked."""
    with server.connect() as admin:
        admin.execute("DROP DATABASE IF EXISTS membership")
        admin.execute("CREATE DATABASE membership")
    with server.connect(dbname="membership") as source:
        source.execute(TABLES)
        dsn = f"{server.dsn}".replace("/postgres?", "/membership?")
        publications = PUBLICATIONS | (SINCE_19 if server.version >= 19 else {})
        for name, what in publications.items():
            source.execute(f"CREATE PUBLICATION {name} {what}".encode())
        with connect(dsn, replication=False) as connection:
            found = read_catalog(connection, [*publications], "none")
            for name in publications:
                expected = source.execute(VIEW, [name]).fetchall()
                names = {
                    table["oid"]: f"{table['schema']}.{table['name']}" for table in found.publications[name]["tables"]
                }
                filters = {table["oid"]: table["filter"] is not None for table in found.publications[name]["tables"]}
                assert sorted((names[oid], filters[oid]) for oid in names) == [(row[0], row[2]) for row in expected]
            one = read_catalog(connection, ["parts_as_roots"], "none")
            published = {
                facts["name"]: [column["name"] for column in facts["columns"] if column.get("published")]
                for facts in one.tables.values()
            }
            assert published == {row[0].partition(".")[2]: row[1] for row in source.execute(VIEW, ["parts_as_roots"])}
            before = catalog_digest(connection)
            with source.transaction():
                source.execute("LOCK TABLE plain, root, leaf, zoo.other IN ACCESS EXCLUSIVE MODE")
                assert len(locked_tables(connection)) == 6  # a partitioned table is locked with its partitions
                again = read_catalog(connection, [*publications], "none")
                assert (again.tables, again.publications) == (found.tables, found.publications)
                assert len(read_publications(connection, [*publications])) == len(publications)
                assert catalog_digest(connection) == before
            source.execute("ALTER TABLE plain RENAME b TO label")
            assert catalog_digest(connection) != before
    with server.connect() as admin:
        admin.execute("DROP DATABASE membership")


def test_a_partition_whose_detachment_is_pending(server: EmbeddedServer, tmp_path: Path) -> None:
    """The server shows and publishes it as a table of its own: facts and copies are of the same tables."""
    with Shop.create(server, "pending", tmp_path / "log", two_phase=False) as shop:
        publications = PUBLICATIONS | (SINCE_19 if server.version >= 19 else {})
        shop.execute(TABLES, *(f"CREATE PUBLICATION {name} {what}" for name, what in publications.items()))
        leave_detach_pending(shop.connect, "root", "zoo.middle")
        with shop.connect() as source, connect(shop.dsn, replication=False) as connection:
            found = read_catalog(connection, [*publications], "none")
            for name, facts in found.publications.items():
                expected = [row[0] for row in source.execute(VIEW, [name]).fetchall()]
                # The view lacks what is sent as zoo.middle (get_rel_sync_entry).
                expected += ["zoo.middle"] * (name in ("everything_as_roots", "excepted_as_roots"))
                assert sorted(f"{table['schema']}.{table['name']}" for table in facts["tables"]) == sorted(expected)
            filenodes = {oid: facts["filenodes"] for oid, facts in found.tables.items()}
            oids = {facts["name"]: oid for oid, facts in found.tables.items()}
            for table, leaf in (("root", "leaf"), ("middle", "deep")):
                assert [oid for oid, _ in filenodes[oids[table]]] == [oids[leaf]]
            copied = read_tables(connection, ["parts_as_roots", "schema_as_roots"], oids.values())
            names = [(table.name, *(leaf.name for leaf in table.leaves)) for table in copied]
            assert {("root", "leaf"), ("middle", "deep")} <= {*names}
            (told,) = read_publications(connection, ["parts"])
            assert told.detach_pending == ("zoo.middle",) and "FINALIZE" in told.warnings()[-1]
            source.execute("ALTER TABLE root DETACH PARTITION zoo.middle FINALIZE")
            again = read_catalog(connection, [*publications], "none")
            assert {oid: facts["filenodes"] for oid, facts in again.tables.items()} == filenodes
            assert again.publications == found.publications
            assert read_publications(connection, ["parts"])[0].detach_pending == ()
