"""Which tables publications publish, out of the catalog's rows alone.

The view pg_publication_tables opens each table (pg_get_publication_tables() since PostgreSQL 15), and so waits for who
alters one: nothing that is asked beside a stream may wait for that.
"""

from pgoutput_construct.postgres.queries import Connection

__all__ = ["published_tables"]

# As GetAllTablesPublicationRelations(), GetPublicationRelations() and GetAllSchemaPublicationRelations() find them: a
# partitioned table stands for its leaves, or (publish_via_partition_root) for itself, unless one that it is a
# partition of is published, too. OIDs below 16384 are those of the system (FirstNormalObjectId).
_PUBLISHED = """wanted AS (SELECT p.*, {via_root} AS via_root,
        coalesce(to_jsonb(p) ->> 'pubgencols' = 's', false) AS with_generated
        FROM pg_publication p WHERE pubname = ANY(%s)),
    members AS (
        SELECT p.oid AS publication, r.prrelid AS oid, r.oid AS member
        FROM wanted p JOIN pg_publication_rel r ON r.prpubid = p.oid
        UNION ALL SELECT p.oid, c.oid, NULL FROM wanted p JOIN pg_class c ON p.puballtables AND NOT c.relispartition
        AND c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND c.oid >= 16384{schemas}),
    branches AS (
        SELECT publication, oid, member, oid AS top FROM members
        UNION ALL SELECT b.publication, i.inhrelid, b.member, b.top FROM branches b
        JOIN pg_inherits i ON i.inhparent = b.oid JOIN pg_class k ON k.oid = i.inhrelid AND k.relispartition),
    published AS (
        SELECT b.publication, b.oid, min(b.member) AS member, bool_or(b.member IS NULL AND b.oid = b.top) AS as_it_is
        FROM branches b JOIN wanted p ON p.oid = b.publication JOIN pg_class c ON c.oid = b.oid
        GROUP BY b.publication, b.oid, p.via_root, c.relkind
        HAVING CASE WHEN p.via_root THEN bool_and(b.oid = b.top) ELSE c.relkind = 'r' END)"""
_SCHEMAS = """
        UNION ALL SELECT p.oid, c.oid, NULL FROM wanted p JOIN pg_publication_namespace s ON s.pnpubid = p.oid
        JOIN pg_class c ON c.relnamespace = s.pnnspid AND c.relkind IN ('r', 'p') AND c.relpersistence = 'p'"""


def published_tables(connection: Connection) -> str:
    """Return what follows WITH RECURSIVE, with a list of publications as its argument.

    It has the tables ``wanted`` (rows of pg_publication) and ``published`` (the OIDs of a publication and of a table,
    and ``member``: the OID of its, or its partitioned table's, row in pg_publication_rel, null where it has none;
    ``as_it_is``: it is published with its schema, or all tables, without a filter or a list of columns).
    """
    version = connection.info.server_version
    return _PUBLISHED.format(
        via_root="p.pubviaroot" if version >= 130000 else "false", schemas=_SCHEMAS if version >= 150000 else ""
    )
