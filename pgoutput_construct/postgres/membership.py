"""Which tables publications publish, out of the catalog's rows alone.

The view pg_publication_tables opens each table (pg_get_publication_tables() since PostgreSQL 15), and so waits for who
alters one: nothing that is asked beside a stream may wait for that.
"""

from collections.abc import Sequence

from pgoutput_construct.postgres.queries import Connection, fetch

__all__ = ["AS_ITSELF", "column_list", "is_published", "published_tables", "read_members", "read_published"]

# As GetAllTablesPublicationRelations(), GetPublicationRelations() and GetAllSchemaPublicationRelations() find them: a
# partitioned table stands for its leaves, or (publish_via_partition_root) for itself, unless one that it is a
# partition of is published, too. OIDs below 16384 are those of the system (FirstNormalObjectId). FOR ALL TABLES EXCEPT
# (PostgreSQL 19) lists the tables that it does not publish, which are no partitions: theirs are not published either.
_PUBLISHED = """wanted AS (SELECT p.*, {via_root} AS via_root,
        coalesce(to_jsonb(p) ->> 'pubgencols' = 's', false) AS with_generated,
        coalesce((to_jsonb(p) ->> 'puballsequences')::boolean, false) AS with_sequences
        FROM pg_publication p WHERE pubname = ANY(%s)),
    listed AS (
        SELECT r.prpubid AS publication, r.prrelid AS oid, r.oid AS member, {excluded} AS excluded
        FROM wanted p JOIN pg_publication_rel r ON r.prpubid = p.oid),
    members AS (
        SELECT publication, oid, member FROM listed WHERE NOT excluded
        UNION ALL SELECT p.oid, c.oid, NULL FROM wanted p JOIN pg_class c ON p.puballtables AND NOT c.relispartition
        AND c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND c.oid >= 16384
        AND NOT EXISTS (SELECT FROM listed e WHERE e.excluded AND (e.publication, e.oid) = (p.oid, c.oid)){schemas}),
    branches AS (
        SELECT publication, oid, member, oid AS top, '' AS joined FROM members
        UNION ALL SELECT b.publication, i.inhrelid, b.member, b.top, concat_ws(' ', b.joined, i.xmin) FROM branches b
        JOIN pg_inherits i ON i.inhparent = b.oid JOIN pg_class k ON k.oid = i.inhrelid AND k.relispartition),
    published AS (
        SELECT b.publication, b.oid, min(b.member) AS member, bool_or(b.member IS NULL AND b.oid = b.top) AS as_it_is,
            CASE WHEN bool_and(b.member IS NOT NULL) THEN min(b.joined) END AS joined
        FROM branches b JOIN wanted p ON p.oid = b.publication JOIN pg_class c ON c.oid = b.oid
        WHERE c.relkind = 'p' OR (c.relkind = 'r' AND c.relpersistence = 'p')
        GROUP BY b.publication, b.oid, p.via_root, c.relkind
        HAVING CASE WHEN p.via_root THEN bool_and(b.oid = b.top) ELSE c.relkind = 'r' END),
    unsent AS (
        SELECT DISTINCT b.publication, b.oid, CASE WHEN p.via_root THEN b.top ELSE b.oid END AS root, c.relkind
        FROM branches b JOIN wanted p ON p.oid = b.publication JOIN pg_class c ON c.oid = b.oid
        WHERE (c.relkind = 'f' OR (c.relkind = 'r' AND c.relpersistence <> 'p'))
        AND CASE WHEN p.via_root THEN EXISTS (SELECT FROM published m WHERE (m.publication, m.oid) = (p.oid, b.top))
            ELSE b.member IS NOT NULL END)"""
_SCHEMAS = """
        UNION ALL SELECT p.oid, c.oid, NULL FROM wanted p JOIN pg_publication_namespace s ON s.pnpubid = p.oid
        JOIN pg_class c ON c.relnamespace = s.pnnspid AND c.relkind IN ('r', 'p') AND c.relpersistence = 'p'"""
_LISTS_SINCE = 150000

AS_ITSELF = """NOT EXISTS (SELECT FROM branches b JOIN published q ON (q.publication, q.oid) = (b.publication, b.top)
    WHERE b.oid = m.oid AND b.top <> m.oid)"""
"""Of a row ``m`` of ``published``: the stream names it; a partition whose ancestor is published, too, it names as that
one (get_rel_sync_entry)."""


def published_tables(connection: Connection) -> str:
    """Return what follows WITH RECURSIVE, with a list of publications as its argument.

    It has the tables ``wanted`` (rows of pg_publication), ``listed`` (those of pg_publication_rel, also what a
    publication of all tables has ``excluded``) and ``published`` (the OIDs of a publication and of a table,
    and ``member``: the OID of its, or its partitioned table's, row in pg_publication_rel, null where it has none;
    ``as_it_is``: it is published with its schema, or all tables, without a filter or a list of columns; ``joined``: the
    transactions that made it a partition of what is listed there, null where its schema, or all tables, are), and
    ``unsent``: partitions that a publication takes without a word, though nothing of them is ever sent, since they are
    foreign tables (``relkind``) or unlogged; ``root`` is the table that is published with them.
    """
    version = connection.info.server_version
    return _PUBLISHED.format(
        via_root="p.pubviaroot" if version >= 130000 else "false",
        schemas=_SCHEMAS if version >= 150000 else "",
        excluded="r.prexcept" if version >= 190000 else "false",
    )


def column_list(connection: Connection) -> str:
    """Return what is the list of columns in a row ``r`` of pg_publication_rel, as SQL: NULL for all of them."""
    return "r.prattrs::int2[]" if connection.info.server_version >= _LISTS_SINCE else "NULL::int2[]"


def is_published(connection: Connection) -> str:
    """Return the condition on a row of pg_attribute under which a row of ``wanted``, joined with ``r``, publishes it.

    Without a list generated columns are published where the publication says so (PostgreSQL 18), and stored ones only.
    """
    columns = column_list(connection)
    return f"""attnum > 0 AND NOT attisdropped AND CASE WHEN {columns} IS NULL
        THEN attgenerated = '' OR (with_generated AND attgenerated = 's') ELSE attnum = ANY({columns}) END"""


def read_published(connection: Connection, publications: Sequence[str]) -> dict[int, tuple[str, str]]:
    """Return the schema and the name of each table that is published, by the OID that the stream names it by."""
    query = f"""WITH RECURSIVE {published_tables(connection)}
        SELECT DISTINCT c.oid::bigint, n.nspname, c.relname FROM published m JOIN pg_class c ON c.oid = m.oid
        JOIN pg_namespace n ON n.oid = c.relnamespace WHERE {AS_ITSELF} ORDER BY 1"""
    rows = fetch(connection, query, [list(publications)], doing="the publications cannot be read")
    return {oid: (namespace, name) for oid, namespace, name in rows}


def read_members(connection: Connection, publications: Sequence[str]) -> set[tuple[str, str]]:
    """Return the schemas and the names of all tables that publications have: partitioned ones, and their partitions."""
    query = f"""WITH RECURSIVE {published_tables(connection)}
        SELECT DISTINCT n.nspname, c.relname FROM branches b JOIN pg_class c ON c.oid = b.oid
        JOIN pg_namespace n ON n.oid = c.relnamespace"""
    return set(fetch(connection, query, [list(publications)], doing="the publications cannot be read"))
