"""What the catalog says of tables and publications: all that the stream does not say of them, in one reading."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgoutput_construct.changelog.copies import Snapshot
from pgoutput_construct.postgres.membership import column_list, is_published, published_tables
from pgoutput_construct.postgres.queries import Connection, fetch, fetch_row, run
from pgoutput_construct.wire import Lsn

__all__ = ["CATALOG_SINCE", "CatalogReading", "catalog_digest", "locked_tables", "read_catalog"]

Facts = dict[str, Any]

CATALOG_SINCE = 120000
"""The first server whose catalog is read: the columns of pg_attribute are as they are now."""

# A row of the catalog that is changed gets another xmin, one that is removed changes the sum, too. pg_class has the
# tables that are created or dropped, of which a publication may be FOR ALL TABLES, and composite types.
_DIGEST = """WITH tables AS (SELECT oid, xmin FROM pg_class
        WHERE relkind IN ('r', 'p', 'c') AND relpersistence <> 't' AND oid >= 16384)
    SELECT concat_ws(' ',
        (SELECT concat(count(*), ':', sum(hashtext(concat(oid, ' ', xmin)))) FROM tables),
        (SELECT sum(hashtext(concat(attrelid, ' ', attnum, ' ', xmin))) FROM pg_attribute
         WHERE attnum > 0 AND attrelid IN (SELECT oid FROM tables)),
        (SELECT sum(hashtext(concat(inhrelid, ' ', inhparent, ' ', xmin))) FROM pg_inherits),
        (SELECT sum(hashtext(concat(oid, ' ', xmin))) FROM pg_namespace),
        (SELECT sum(hashtext(concat(pubname, ' ', xmin))) FROM pg_publication){more})"""
_MORE = ",\n        (SELECT sum(hashtext(concat(oid, ' ', xmin))) FROM {table})"
_MORE_CATALOGS = {"pg_enum": 0, "pg_publication_rel": 0, "pg_publication_namespace": 150000}
"""Catalogs of which each row counts, by the server that first has them."""

_LOCKED = """SELECT DISTINCT relation::bigint FROM pg_locks
    WHERE locktype = 'relation' AND granted AND mode = 'AccessExclusiveLock'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""

# The list of columns and the filter (PostgreSQL 15) are those of the table that is published itself; a filter is told
# from others by its checksum, since what writes it as SQL locks the table.
_PUBLICATIONS = """WITH RECURSIVE {published}
    SELECT p.pubname, array_remove(ARRAY[
        CASE WHEN pubinsert THEN 'insert' END, CASE WHEN pubupdate THEN 'update' END,
        CASE WHEN pubdelete THEN 'delete' END, CASE WHEN pubtruncate THEN 'truncate' END], NULL),
    via_root, puballtables, with_generated,
    (SELECT json_agg(json_build_object('oid', c.oid::bigint, 'schema', n.nspname, 'name', c.relname,
        'member', m.member::bigint, 'joined', m.joined, 'filter', {filter}, 'columns', to_jsonb({columns}), 'ancestors',
        (SELECT json_agg(relid::oid::bigint) FROM pg_partition_ancestors(c.oid) WHERE relid <> c.oid), 'published',
        (SELECT json_agg(attnum ORDER BY attnum) FROM pg_attribute WHERE attrelid = c.oid AND {is_published}))
        ORDER BY c.oid)
     FROM published m JOIN pg_class c ON c.oid = m.oid JOIN pg_namespace n ON n.oid = c.relnamespace
     LEFT JOIN pg_publication_rel r ON r.prpubid = p.oid AND r.prrelid = c.oid AND NOT m.as_it_is
     WHERE m.publication = p.oid),
    (SELECT json_agg(json_build_object('oid', c.oid::bigint, 'schema', n.nspname, 'name', c.relname,
        'root', u.root::bigint, 'foreign', u.relkind = 'f') ORDER BY c.oid)
     FROM unsent u JOIN pg_class c ON c.oid = u.oid JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE u.publication = p.oid),
    (SELECT json_agg(oid::bigint ORDER BY oid) FROM listed e WHERE e.publication = p.oid AND e.excluded)
    FROM wanted p ORDER BY p.pubname"""
_LISTS_SINCE = 150000

# ctid's row of pg_attribute is written with the table, and never again. A partitioned table has no rows of its own,
# and so no missing values: its leaves have. reltuples is -1 until somebody looked at a file that is new.
_TABLES = """WITH RECURSIVE tree AS (
        SELECT oid AS root, oid, NULL::xid AS attached, '' AS joined FROM unnest(%s::oid[]) AS wanted (oid)
        UNION ALL SELECT tree.root, i.inhrelid, i.xmin,
            concat(joined, CASE WHEN i.xmin <> a.xmin THEN i.xmin || ' ' END)
        FROM tree JOIN pg_inherits i ON i.inhparent = tree.oid
        JOIN pg_class k ON k.oid = i.inhrelid AND k.relispartition
        JOIN pg_attribute a ON a.attrelid = i.inhrelid AND a.attnum = -1),
    leaves AS (SELECT root, json_agg(json_build_array(oid::bigint, relfilenode::bigint) ORDER BY oid) AS filenodes,
        json_agg(oid::bigint ORDER BY oid) FILTER (WHERE tree.attached <> a.xmin) AS attached,
        json_agg(json_build_array(oid::bigint, joined) ORDER BY oid) FILTER (WHERE joined <> '') AS joined,
        json_agg(oid::bigint ORDER BY oid) FILTER (WHERE reltuples < 0) AS truncated
        FROM tree JOIN pg_class c USING (oid)
        JOIN pg_attribute a ON attrelid = c.oid AND attnum = -1 WHERE relkind <> 'p' GROUP BY root)
    SELECT c.oid::bigint, n.nspname, c.relname, c.relreplident,
    (SELECT xmin::text::bigint FROM pg_attribute WHERE attrelid = c.oid AND attnum = -1),
    coalesce(leaves.filenodes, '[]'), coalesce(leaves.attached, '[]'), coalesce(leaves.joined, '[]'),
    coalesce(leaves.truncated, '[]'),
    (SELECT json_agg(json_build_object('number', attnum, 'name', attname, 'type', atttypid::bigint,
        'modifier', atttypmod, 'xmin', a.xmin::text::bigint, 'dropped', attisdropped,
        'generated', nullif(attgenerated, ''),
        'default', atthasdef AND NOT atthasmissing, 'missing', CASE WHEN c.relkind = 'p' THEN
            (SELECT (l.attmissingval::text::text[])[1] FROM tree JOIN pg_attribute l ON l.attrelid = tree.oid
             WHERE tree.root = c.oid AND l.attname = a.attname AND l.atthasmissing ORDER BY tree.oid LIMIT 1)
            WHEN atthasmissing THEN (attmissingval::text::text[])[1] END,
        'recent', coalesce(age(a.xmin) <= (SELECT age(catalog_xmin) FROM pg_replication_slots WHERE slot_name = %s),
            true)) ORDER BY attnum)
     FROM pg_attribute a WHERE attrelid = c.oid AND attnum > 0)
    FROM unnest(%s::oid[]) AS wanted (oid) JOIN pg_class c USING (oid) JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN leaves ON leaves.root = c.oid"""

# The types of columns, and what their values contain, as far as users created it; the enums and composites among them.
_TYPES = """WITH RECURSIVE used AS (
        SELECT attrelid, attnum, atttypid AS type FROM pg_attribute
        WHERE attrelid = ANY(%s::oid[]) AND attnum > 0 AND atttypid >= 16384
        UNION SELECT attrelid, attnum, part FROM used JOIN pg_type t ON t.oid = type CROSS JOIN LATERAL (
            SELECT unnest(ARRAY[typelem, typbasetype]) AS part
            UNION ALL SELECT rngsubtype FROM pg_range WHERE rngtypid = t.oid{multirange}
            UNION ALL SELECT atttypid FROM pg_attribute WHERE attrelid = typrelid AND attnum > 0) parts
        WHERE part >= 16384),
    found AS (SELECT attrelid, type, json_agg(attnum ORDER BY attnum) AS columns FROM used GROUP BY attrelid, type)
    SELECT attrelid::bigint, json_agg(json_build_object('type', type::bigint, 'columns', columns, 'labels',
        (SELECT json_agg(json_build_array(e.oid::bigint, enumlabel) ORDER BY e.oid) FROM pg_enum e
         WHERE enumtypid = type), 'attributes',
        (SELECT json_agg(json_build_array(attnum, atttypid::bigint) ORDER BY attnum) FROM pg_attribute a
         WHERE a.attrelid = typrelid AND attnum > 0 AND NOT attisdropped)) ORDER BY type)
    FROM found JOIN pg_type t ON t.oid = type WHERE typtype IN ('c', 'e') GROUP BY attrelid"""
_MULTIRANGES_SINCE = 140000

_POSITION = """SELECT CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_replay_lsn(), '0/0')
    ELSE pg_current_wal_insert_lsn() END - '0/0'::pg_lsn"""


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
    version = connection.info.server_version
    more = "".join(_MORE.format(table=table) for table, since in _MORE_CATALOGS.items() if version >= since)
    return str(fetch_row(connection, _DIGEST.format(more=more), doing="the catalog cannot be read")[0])


def locked_tables(connection: Connection) -> frozenset[int]:
    """Return the OIDs of tables that are being altered.

    Who alters a table holds its lock until all see what was done: after the position of the commit is in the WAL, and
    perhaps in the stream, and also where it waits for a synchronous standby, which may be this capture.
    """
    return frozenset(row[0] for row in fetch(connection, _LOCKED, doing="the locks cannot be read"))


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
    current = "pg_current_snapshot" if connection.info.server_version >= 130000 else "txid_current_snapshot"
    xmin, xmax, xip = str(fetch_row(connection, f"SELECT {current}()::text")[0]).split(":")
    position = Lsn(int(fetch_row(connection, _POSITION)[0]))
    snapshot = Snapshot(int(xmin), int(xmax), tuple(int(xid) for xid in xip.split(",") if xid), position)
    return CatalogReading(snapshot, tables, published)


def _read_publications(connection: Connection, publications: Sequence[str]) -> dict[str, Facts]:
    has_lists = connection.info.server_version >= _LISTS_SINCE
    query = _PUBLICATIONS.format(
        published=published_tables(connection),
        filter="md5(r.prqual::text)" if has_lists else "NULL",
        columns=column_list(connection),
        is_published=is_published(connection),
    )
    rows = fetch(connection, query, [list(publications)], doing="the publications cannot be read")
    names = "publication", "operations", "via_root", "all_tables", "generated", "tables", "unsent", "excluded"
    found = [dict(zip(names, row, strict=True)) for row in rows]
    for each in found:
        each |= {"tables": each["tables"] or [], "unsent": each["unsent"] or []}
        if each["excluded"] is None:  # as in the facts of all servers before 19
            del each["excluded"]
    return {each["publication"]: each for each in found}


def _read_tables(connection: Connection, slot: str, numbers: Mapping[int, set[int]]) -> dict[int, Facts]:
    wanted = sorted(numbers)
    names = (
        "oid",
        "schema",
        "name",
        "replica_identity",
        "created",
        "filenodes",
        "attached",
        "joined",
        "truncated",
        "columns",
    )
    rows = fetch(connection, _TABLES, [wanted, slot, wanted], doing="the tables cannot be read in the catalog")
    found = {row[0]: dict(zip(names, row, strict=True)) for row in rows}
    for oid, facts in found.items():
        facts["columns"] = [_column(column, numbers[oid]) for column in facts["columns"] or ()]
    multirange = " OR rngmultitypid = t.oid" if connection.info.server_version >= _MULTIRANGES_SINCE else ""
    query = _TYPES.format(multirange=multirange)
    for oid, types in fetch(connection, query, [wanted], doing="the types of columns cannot be read in the catalog"):
        if oid in found:
            found[oid]["types"] = [{name: value for name, value in each.items() if value} for each in types]
    return found


def _column(column: Facts, published: Collection[int]) -> Facts:
    """Return the facts of a column, without those that are as they mostly are."""
    if column["dropped"]:
        column = {name: column[name] for name in ("number", "xmin", "dropped", "recent")}
    column["published"] = column["number"] in published
    return {name: value for name, value in column.items() if value not in (None, False)}
