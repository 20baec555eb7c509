"""The catalog queries of a capture, by name: ``postgres`` runs them, ``publisher`` answers them.

Each query is written once, with the columns of its result. ``_PARTS`` has what differs between releases of PostgreSQL,
by the first release that has it; ``CatalogQuery.sql`` inserts these parts, and a publisher recognises a query by the
resulting text.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = [
    "BLOCKING_WRITER",
    "COMMENTS",
    "CURRENT_SNAPSHOT",
    "DIGEST",
    "FLUSHED_LSN",
    "INSERTED_LSN",
    "IS_STANDBY",
    "LOCKED_TABLES",
    "PUBLICATIONS",
    "PUBLICATION_FACTS",
    "PUBLICATION_NAMES",
    "PUBLISHED_TABLES",
    "SENDER_STATE",
    "SENDER_TIMEOUT",
    "SLOTS",
    "TABLE_FACTS",
    "TYPE_FACTS",
    "WORKING_PROCESS",
    "CatalogQuery",
    "for_release",
]


@dataclass(frozen=True, eq=False)
class CatalogQuery:
    """One query, for all releases."""

    text: str
    """The SQL, with the parts of ``for_release`` in braces, and parameters as psycopg has them: ``%(slot)s``."""
    columns: Mapping[str, str]
    """The columns of the result in order: our names, each with the name of its type in pg_type."""
    purpose: str
    """The error message if the query fails."""

    def sql(self, server_version: int) -> str:
        """Return the SQL for a ``server_version_num``."""
        return for_release(self.text, server_version)


# As GetAllTablesPublicationRelations(), GetPublicationRelations() and GetAllSchemaPublicationRelations() find them: a
# partitioned table is replaced by its leaves, or with publish_via_partition_root published itself, unless one of its
# ancestors is published too. OIDs below 16384 belong to the system (FirstNormalObjectId). FOR ALL TABLES EXCEPT
# (PostgreSQL 19) lists the tables that are not published; these are no partitions, and theirs are excluded with them.
_PUBLISHED: Final = """wanted AS (SELECT p.*, p.xmin AS written, {via_root} AS via_root,
        coalesce(to_jsonb(p) ->> 'pubgencols' = 's', false) AS with_generated,
        coalesce((to_jsonb(p) ->> 'puballsequences')::boolean, false) AS with_sequences
        FROM pg_publication p WHERE pubname = ANY(%(publications)s)),
    listed AS (
        SELECT r.prpubid AS publication, r.prrelid AS oid, r.oid AS member, {excluded} AS excluded
        FROM wanted p JOIN pg_publication_rel r ON r.prpubid = p.oid),
    members AS (
        SELECT publication, oid, member, NULL AS within FROM listed WHERE NOT excluded
        UNION ALL SELECT p.oid, c.oid, NULL, NULL
        FROM wanted p JOIN pg_class c ON p.puballtables AND {is_top}
        AND c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND c.oid >= 16384
        AND NOT EXISTS (SELECT FROM listed e WHERE e.excluded AND (e.publication, e.oid) = (p.oid, c.oid)){schemas}),
    branches AS (
        SELECT publication, oid, member, within, oid AS top, '' AS joined FROM members
        UNION ALL SELECT b.publication, i.inhrelid, b.member, b.within, b.top, concat_ws(' ', b.joined, i.xmin)
        FROM branches b JOIN pg_inherits i ON i.inhparent = b.oid AND {is_attached}
        JOIN pg_class k ON k.oid = i.inhrelid AND k.relispartition),
    published AS (
        SELECT b.publication, b.oid, min(b.member) AS member, bool_or(b.member IS NULL AND b.oid = b.top) AS as_it_is,
            CASE WHEN bool_and(b.member IS NOT NULL) THEN min(b.joined) END AS joined,
            array_agg(DISTINCT concat_ws(' ', b.within, b.joined)) FILTER (WHERE b.within IS NOT NULL) AS within
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
# The row of pg_depend for a table's schema is updated by SET SCHEMA alone (changeDependencyFor()).
_SCHEMAS: Final = """
        UNION ALL SELECT p.oid, c.oid, NULL, concat_ws(' ', s.oid, (SELECT d.xmin FROM pg_depend d
            WHERE (d.classid, d.objid, d.objsubid) = ('pg_class'::regclass, c.oid, 0)
            AND (d.refclassid, d.refobjid) = ('pg_namespace'::regclass, c.relnamespace) LIMIT 1))
        FROM wanted p JOIN pg_publication_namespace s ON s.pnpubid = p.oid
        JOIN pg_class c ON c.relnamespace = s.pnnspid AND c.relkind IN ('r', 'p') AND c.relpersistence = 'p'"""

# Without a column list, stored generated columns are published if the publication has publish_generated_columns
# (PostgreSQL 18), virtual ones never.
_IS_PUBLISHED: Final = """attnum > 0 AND NOT attisdropped AND CASE WHEN {column_list} IS NULL
        THEN attgenerated = '' OR (with_generated AND attgenerated = 's') ELSE attnum = ANY({column_list}) END"""

_AS_ITSELF: Final = """NOT EXISTS (SELECT FROM branches b JOIN published q
    ON (q.publication, q.oid) = (b.publication, b.top) WHERE b.oid = m.oid AND b.top <> m.oid)"""

_IS_AT_WORK: Final = """coalesce(a.state = 'active'
    AND coalesce(a.wait_event_type, '') NOT IN ('Activity', 'Client'), false)"""

_OPERATIONS: Final = """array_remove(ARRAY[
        CASE WHEN pubinsert THEN 'insert' END, CASE WHEN pubupdate THEN 'update' END,
        CASE WHEN pubdelete THEN 'delete' END, CASE WHEN pubtruncate THEN 'truncate' END], NULL)"""

_IS_TOP: Final = """NOT (c.relispartition
        AND EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid AND {is_attached}))"""

_ALL_ROWS: Final = ",\n        (SELECT sum(hashtext(concat(oid, ' ', xmin))) FROM "

_PARTS: Final[Mapping[str, Mapping[int, str]]] = {
    "published": {0: _PUBLISHED},
    "is_published": {0: _IS_PUBLISHED},
    "as_itself": {0: _AS_ITSELF},
    "is_at_work": {0: _IS_AT_WORK},
    "is_attached": {0: "true", 14: "NOT i.inhdetachpending"},
    "is_top": {0: _IS_TOP},
    "operations": {0: _OPERATIONS},
    "via_root": {0: "false", 13: "p.pubviaroot"},
    "schemas": {0: "", 15: _SCHEMAS},
    "excluded": {0: "false", 19: "r.prexcept"},
    "column_list": {0: "NULL::int2[]", 15: "r.prattrs::int2[]"},
    "has_filter": {0: "NULL", 15: "md5(r.prqual::text)"},
    "filter": {0: "NULL", 15: "pg_get_expr(r.prqual, r.prrelid)"},
    "published_schemas": {0: "", 15: _ALL_ROWS + "pg_publication_namespace)"},
    "of_multirange": {0: "", 14: " OR rngmultitypid = t.oid"},
    "current_snapshot": {0: "txid_current_snapshot", 13: "pg_current_snapshot"},
}
"""The parts in braces, by the first release for which each form is valid; parts may contain parts.

``published`` follows WITH RECURSIVE, and defines

- ``wanted``: the rows of pg_publication; ``written`` is the xid of the CREATE or ALTER PUBLICATION that wrote the row
  (SET, OWNER TO, RENAME; what adds or drops tables does not);
- ``listed``: their rows of pg_publication_rel, including those that FOR ALL TABLES EXCEPT has ``excluded``;
- ``published``: the OIDs of a publication and a table. ``member`` is the OID of the row of pg_publication_rel for the
  table or its partitioned ancestor, null if there is none; ``as_it_is`` is true if the table is published with its
  schema, or with all tables, so without a row filter or column list; ``joined`` has the xids of the transactions that
  attached it below the listed table, null if it is published with its schema or all tables; ``within`` has for each
  schema that it is published with the OID of the row of pg_publication_namespace, and the xids of the transactions that
  last moved the table into the schema and attached it;
- ``unsent``: partitions that a publication accepts although they are never replicated, because they are foreign tables
  (``relkind``) or unlogged; ``root`` is the published table that they belong to.

``column_list`` is the column list of a row ``r`` of pg_publication_rel, NULL for all columns. ``is_published`` is the
condition under which a row of ``wanted``, joined with ``r``, publishes a row of pg_attribute. ``as_itself`` is the
condition under which the stream names a row ``m`` of ``published`` itself: a partition with a published ancestor is
named as the ancestor (get_rel_sync_entry). ``is_attached`` is true of a row ``i`` of pg_inherits unless its DETACH
CONCURRENTLY is pending: from its first transaction on, which is committed also if the second is cancelled, the parent
shows no rows of the partition, and the stream names it as a table without ancestors (get_partition_ancestors).
``is_top`` is true of a row ``c`` of pg_class without ancestors in this sense. ``is_at_work`` is true of a process ``a``
of pg_stat_activity that is not waiting for its client or for WAL, where it could answer; any other wait, and none,
counts as work. Processes of other roles show no state.
"""
_BRACES: Final = re.compile(r"\{(\w+)\}")


def for_release(text: str, server_version: int) -> str:
    """Return a query text with the parts in braces replaced by their form for a ``server_version_num``."""
    release = server_version // 10000

    def part(match: re.Match[str]) -> str:
        forms = _PARTS[match[1]]
        return forms[max(since for since in forms if since <= release)]

    while _BRACES.search(text):
        text = _BRACES.sub(part, text)
    return text


SENDER_TIMEOUT: Final = CatalogQuery(
    "SELECT extract(epoch FROM current_setting('wal_sender_timeout')::interval)::float8",
    {"seconds": "float8"},
    "wal_sender_timeout cannot be read",
)
"""Seconds for which a walsender waits for its client; 0 for no limit."""

SENDER_STATE: Final = CatalogQuery(
    """SELECT coalesce(r.sync_state IN ('sync', 'quorum'), false), {is_at_work}
    FROM pg_stat_activity a LEFT JOIN pg_stat_replication r USING (pid) WHERE a.pid = %(pid)s""",
    {"is_synchronous": "bool", "is_at_work": "bool"},
    "the state of the stream's sender cannot be read",
)

WORKING_PROCESS: Final = CatalogQuery(
    "SELECT {is_at_work} FROM pg_stat_activity a WHERE a.pid = %(pid)s",
    {"is_at_work": "bool"},
    "the state of the stream's sender cannot be read",
)

IS_STANDBY: Final = CatalogQuery(
    "SELECT pg_is_in_recovery()", {"is_standby": "bool"}, "whether the server is a standby cannot be read"
)

FLUSHED_LSN: Final = CatalogQuery(
    """SELECT CASE WHEN pg_is_in_recovery()
    THEN coalesce(greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), '0/0')
    ELSE pg_current_wal_flush_lsn() END - '0/0'::pg_lsn""",
    {"lsn": "numeric"},
    "the end of the WAL cannot be read",
)
"""After a restart a standby reports as received the beginning of the WAL file that it requests from its primary, and
NULL without a primary, for example if it restores from an archive. Its replay LSN is then ahead."""

INSERTED_LSN: Final = CatalogQuery(
    """SELECT CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_replay_lsn(), '0/0')
    ELSE pg_current_wal_insert_lsn() END - '0/0'::pg_lsn""",
    {"lsn": "numeric"},
    "the end of the WAL cannot be read",
)

CURRENT_SNAPSHOT: Final = CatalogQuery(
    "SELECT {current_snapshot}()::text", {"snapshot": "text"}, "the snapshot of the connection cannot be read"
)
"""``xmin:xmax:xip``, where ``xip`` is a list of xids separated by commas."""

SLOTS: Final = CatalogQuery(
    """SELECT to_jsonb(s), greatest(age(s.xmin), age(s.catalog_xmin)),
    concat_ws(', ', 'user ' || a.usename, 'application ' || nullif(a.application_name, ''), 'host ' || a.client_addr)
    FROM pg_replication_slots s LEFT JOIN pg_stat_activity a ON a.pid = s.active_pid
    WHERE %(slot)s::text IS NULL OR s.slot_name = %(slot)s ORDER BY s.slot_name""",
    {"slot": "jsonb", "xmin_age": "int4", "reader": "text"},
    "the slots cannot be read",
)

BLOCKING_WRITER: Final = CatalogQuery(
    """SELECT 'transaction ' || xid || ' of ' || who || coalesce(', open since ' || since, '') FROM (
    SELECT backend_xid AS xid, concat_ws(', ', 'pid ' || pid, 'user ' || usename) AS who, xact_start AS since
    FROM pg_stat_activity WHERE backend_xid IS NOT NULL
    UNION ALL SELECT transaction, format('the prepared transaction %%L of %%s', gid, owner), prepared
    FROM pg_prepared_xacts) w ORDER BY age(xid) DESC LIMIT 1""",
    {"writer": "text"},
    "the open transactions cannot be read",
)
"""The oldest transaction with an xid: no slot's restart_lsn can advance past its beginning."""

PUBLICATION_NAMES: Final = CatalogQuery(
    "SELECT pubname FROM pg_publication WHERE pubname = ANY(%(publications)s)",
    {"name": "name"},
    "the publications cannot be read",
)

PUBLICATIONS: Final = CatalogQuery(
    """WITH RECURSIVE {published}
    SELECT p.pubname, {operations},
    ARRAY(SELECT format('%%I.%%I', n.nspname, c.relname) FROM published m JOIN pg_class c ON c.oid = m.oid
          JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE m.publication = p.oid AND c.relreplident <> 'f' AND NOT EXISTS (
              SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisvalid
              AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident ELSE false END)
          ORDER BY 1),
    ARRAY(SELECT format('%%I.%%I', n.nspname, c.relname) FROM unsent u JOIN pg_class c ON c.oid = u.oid
          JOIN pg_namespace n ON n.oid = c.relnamespace WHERE u.publication = p.oid ORDER BY 1),
    with_sequences, NOT puballtables AND NOT EXISTS (SELECT FROM members m WHERE m.publication = p.oid),
    ARRAY(SELECT format('%%I.%%I', n.nspname, c.relname) FROM branches b JOIN pg_class t ON t.oid = b.top
          JOIN pg_class c ON c.oid = b.oid JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE p.via_root AND b.publication = p.oid AND c.relkind = 'r' AND c.relreplident NOT IN ('f', t.relreplident)
          AND EXISTS (SELECT FROM published m WHERE (m.publication, m.oid) = (p.oid, b.top)) ORDER BY 1),
    ARRAY(SELECT DISTINCT format('%%I.%%I', n.nspname, c.relname) FROM branches b
          JOIN pg_inherits i ON i.inhparent = b.oid AND NOT {is_attached} JOIN pg_class c ON c.oid = i.inhrelid
          JOIN pg_namespace n ON n.oid = c.relnamespace WHERE b.publication = p.oid ORDER BY 1)
    FROM wanted p ORDER BY pubname""",
    {
        "name": "name",
        "operations": "_text",
        "without_identity": "_text",
        "unsent": "_text",
        "with_sequences": "bool",
        "without_tables": "bool",
        "other_identity": "_text",
        "detach_pending": "_text",
    },
    "the publications cannot be read",
)
"""What publications publish, for the checks before a capture begins."""

# Column list and row filter (PostgreSQL 15) are those of the table that is published itself. A filter is represented by
# its checksum, since pg_get_expr() would lock the table.
PUBLICATION_FACTS: Final = CatalogQuery(
    """WITH RECURSIVE {published}
    SELECT p.pubname, {operations}, via_root, puballtables, with_generated, written::text::bigint,
    (SELECT json_agg(json_build_object('oid', c.oid::bigint, 'schema', n.nspname, 'name', c.relname,
        'member', m.member::bigint, 'joined', m.joined, 'within', m.within, 'filter', {has_filter},
        'columns', to_jsonb({column_list}), 'ancestors',
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
    FROM wanted p ORDER BY p.pubname""",
    {
        "publication": "name",
        "operations": "_text",
        "via_root": "bool",
        "all_tables": "bool",
        "generated": "bool",
        "written": "int8",
        "tables": "json",
        "unsent": "json",
        "excluded": "json",
    },
    "the publications cannot be read",
)
"""What publications publish, as the log records it."""

PUBLISHED_TABLES: Final = CatalogQuery(
    """WITH RECURSIVE {published}
    SELECT DISTINCT c.oid::bigint, n.nspname, c.relname FROM published m JOIN pg_class c ON c.oid = m.oid
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE {as_itself} ORDER BY 1""",
    {"oid": "int8", "schema": "name", "name": "name"},
    "the publications cannot be read",
)

# The row of pg_attribute for ctid (attnum -1) is written when the table is created, and never updated: its xmin is the
# creating transaction. A partitioned table has no rows, so its leaves have the missing values. reltuples is -1 until
# VACUUM or ANALYZE has processed a new file. A table is created with a relfilenode equal to its OID; TRUNCATE assigns
# new ones to the table, its TOAST table and its indexes, and updates their rows of pg_class, which ANALYZE and VACUUM
# overwrite in place. GRANT and most forms of ALTER TABLE update the table's row only, so the oldest xmin among these
# rows is that of the TRUNCATE.
# If one transaction creates a table and attaches it, xmin does not show that rows may precede ATTACH, but cmin does:
# ATTACH updates the rows of all columns (MergeAttributesIntoExisting()), in the command that inserts the row of
# pg_inherits; CREATE TABLE ... PARTITION OF inserts the rows of columns in earlier commands, and updates those with a
# default or a constraint only. So a partition with a column from before the row of pg_inherits was created as one. If
# all its columns were altered since, that is unknown, and it counts as attached. A deletion that is rolled back
# overwrites cmin and leaves an xmax (t_cid). ``made`` has the xids of such transactions, since the leaves below what
# they attached may have been created before that, too.
# attmissingval is an array of one element, whose delimiter is that of the element's type, not always a comma.
TABLE_FACTS: Final = CatalogQuery(
    """WITH RECURSIVE tree AS (
        SELECT oid AS root, oid, NULL::xid AS attached, '' AS joined, '{}'::xid[] AS made
        FROM unnest(%(oids)s::oid[]) AS wanted (oid)
        UNION ALL SELECT tree.root, i.inhrelid, i.xmin,
            concat(joined, CASE WHEN i.xmin <> a.xmin THEN i.xmin || ' ' END),
            CASE WHEN EXISTS (SELECT FROM pg_attribute o
                WHERE o.attrelid = i.inhrelid AND o.attnum > 0 AND NOT o.attisdropped AND o.xmin = i.xmin
                AND o.xmax = '0'::xid AND i.xmax = '0'::xid AND o.cmin::text::bigint < i.cmin::text::bigint)
            THEN made ELSE made || i.xmin END
        FROM tree JOIN pg_inherits i ON i.inhparent = tree.oid AND {is_attached}
        JOIN pg_class k ON k.oid = i.inhrelid AND k.relispartition
        JOIN pg_attribute a ON a.attrelid = i.inhrelid AND a.attnum = -1),
    leaves AS (SELECT root, json_agg(json_build_array(oid::bigint, relfilenode::bigint) ORDER BY oid) AS filenodes,
        json_agg(oid::bigint ORDER BY oid) FILTER (WHERE tree.attached <> a.xmin OR a.xmin = ANY(made))
            AS attached,
        json_agg(json_build_array(oid::bigint, joined) ORDER BY oid) FILTER (WHERE joined <> '') AS joined,
        json_agg(oid::bigint ORDER BY oid) FILTER (WHERE reltuples < 0) AS truncated,
        json_agg(json_build_array(oid::bigint, (SELECT o.xmin::text::bigint FROM (SELECT c.oid
            UNION ALL SELECT c.reltoastrelid UNION ALL SELECT indexrelid FROM pg_index
            WHERE indrelid = c.oid AND indislive) own (oid)
            JOIN pg_class o ON o.oid = own.oid ORDER BY age(o.xmin) DESC LIMIT 1)) ORDER BY oid)
            FILTER (WHERE relfilenode NOT IN (0, oid) AND oid <> root) AS rewritten
        FROM tree JOIN pg_class c USING (oid)
        JOIN pg_attribute a ON attrelid = c.oid AND attnum = -1 WHERE relkind <> 'p' GROUP BY root)
    SELECT c.oid::bigint, n.nspname, c.relname, c.relreplident,
    (SELECT json_agg(key.number ORDER BY key.number)
     FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS key (number, ordinality)
     WHERE i.indrelid = c.oid AND i.indisvalid AND key.ordinality <= i.indnkeyatts
     AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident END),
    (SELECT xmin::text::bigint FROM pg_attribute WHERE attrelid = c.oid AND attnum = -1),
    coalesce(leaves.filenodes, '[]'), coalesce(leaves.attached, '[]'), coalesce(leaves.joined, '[]'),
    coalesce(leaves.truncated, '[]'), coalesce(leaves.rewritten, '[]'),
    (SELECT json_agg(json_build_object('number', attnum, 'name', attname, 'type', atttypid::bigint,
        'modifier', atttypmod, 'xmin', a.xmin::text::bigint, 'dropped', attisdropped,
        'generated', nullif(attgenerated, ''),
        'default', atthasdef AND NOT atthasmissing, 'missing', CASE WHEN c.relkind = 'p' THEN
            (SELECT array_to_string(l.attmissingval, '') FROM tree JOIN pg_attribute l ON l.attrelid = tree.oid
             WHERE tree.root = c.oid AND l.attname = a.attname AND l.atthasmissing ORDER BY tree.oid LIMIT 1)
            WHEN atthasmissing THEN array_to_string(attmissingval, '') END,
        'recent', coalesce(age(a.xmin) <= (SELECT age(catalog_xmin) FROM pg_replication_slots
            WHERE slot_name = %(slot)s), true)) ORDER BY attnum)
     FROM pg_attribute a WHERE attrelid = c.oid AND attnum > 0)
    FROM unnest(%(oids)s::oid[]) AS wanted (oid) JOIN pg_class c USING (oid)
    JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN leaves ON leaves.root = c.oid""",
    {
        "oid": "int8",
        "schema": "name",
        "name": "name",
        "replica_identity": "char",
        "identity": "json",
        "created": "int8",
        "filenodes": "json",
        "attached": "json",
        "joined": "json",
        "truncated": "json",
        "rewritten": "json",
        "columns": "json",
    },
    "the tables cannot be read in the catalog",
)

TYPE_FACTS: Final = CatalogQuery(
    """WITH RECURSIVE used AS (
        SELECT attrelid, attnum, atttypid AS type FROM pg_attribute
        WHERE attrelid = ANY(%(oids)s::oid[]) AND attnum > 0 AND atttypid >= 16384
        UNION SELECT attrelid, attnum, part FROM used JOIN pg_type t ON t.oid = type CROSS JOIN LATERAL (
            SELECT unnest(ARRAY[typelem, typbasetype]) AS part
            UNION ALL SELECT rngsubtype FROM pg_range WHERE rngtypid = t.oid{of_multirange}
            UNION ALL SELECT atttypid FROM pg_attribute WHERE attrelid = typrelid AND attnum > 0) parts
        WHERE part >= 16384),
    found AS (SELECT attrelid, type, json_agg(attnum ORDER BY attnum) AS columns FROM used GROUP BY attrelid, type)
    SELECT attrelid::bigint, json_agg(json_build_object('type', type::bigint, 'columns', columns, 'labels',
        (SELECT json_agg(json_build_array(e.oid::bigint, enumlabel) ORDER BY e.oid) FROM pg_enum e
         WHERE enumtypid = type), 'attributes',
        (SELECT json_agg(json_build_array(attnum, atttypid::bigint) ORDER BY attnum) FROM pg_attribute a
         WHERE a.attrelid = typrelid AND attnum > 0 AND NOT attisdropped)) ORDER BY type)
    FROM found JOIN pg_type t ON t.oid = type WHERE typtype IN ('c', 'e') GROUP BY attrelid""",
    {"oid": "int8", "types": "json"},
    "the types of columns cannot be read in the catalog",
)
"""The user-defined enums and composites that the columns of tables have, directly or inside other types."""

COMMENTS: Final = CatalogQuery(
    """SELECT objoid::bigint, json_agg(json_build_array(objsubid, description) ORDER BY objsubid)
    FROM pg_description WHERE classoid = 'pg_class'::regclass AND objoid = ANY(%(oids)s::oid[]) GROUP BY objoid""",
    {"oid": "int8", "comments": "json"},
    "the comments on tables cannot be read in the catalog",
)
"""The comments on tables (as column 0), and on their columns by number."""

# An updated catalog row has another xmin, and a deleted one changes the sum. pg_class is included for tables that are
# created or dropped, which a publication FOR ALL TABLES publishes, and for composite types.
DIGEST: Final = CatalogQuery(
    f"""WITH tables AS (SELECT oid, xmin FROM pg_class
        WHERE relkind IN ('r', 'p', 'c') AND relpersistence <> 't' AND oid >= 16384)
    SELECT concat_ws(' ',
        (SELECT concat(count(*), ':', sum(hashtext(concat(oid, ' ', xmin)))) FROM tables),
        (SELECT sum(hashtext(concat(attrelid, ' ', attnum, ' ', xmin))) FROM pg_attribute
         WHERE attnum > 0 AND attrelid IN (SELECT oid FROM tables)),
        (SELECT sum(hashtext(concat(inhrelid, ' ', inhparent, ' ', xmin))) FROM pg_inherits),
        (SELECT sum(hashtext(concat(indexrelid, ' ', xmin))) FROM pg_index
         WHERE (indisprimary OR indisreplident) AND indrelid IN (SELECT oid FROM tables)),
        (SELECT sum(hashtext(concat(oid, ' ', xmin))) FROM pg_namespace),
        (SELECT sum(hashtext(concat(objoid, ' ', objsubid, ' ', xmin))) FROM pg_description
         WHERE objoid >= 16384 AND classoid = 'pg_class'::regclass),
        (SELECT sum(hashtext(concat(pubname, ' ', xmin))) FROM pg_publication){_ALL_ROWS}pg_enum){_ALL_ROWS}"""
    "pg_publication_rel){published_schemas})",
    {"digest": "text"},
    "the catalog cannot be read",
)
"""A text that changes whenever the facts of tables or publications may have changed; cheap."""

# ALTER TABLE holds its lock until its commit is visible: that is after the commit record is in the WAL and perhaps
# already in the stream, and after waiting for a synchronous standby, which may be this capture.
LOCKED_TABLES: Final = CatalogQuery(
    """SELECT DISTINCT relation::bigint FROM pg_locks
    WHERE locktype = 'relation' AND granted AND mode = 'AccessExclusiveLock'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())""",
    {"oid": "int8"},
    "the locks cannot be read",
)
"""The tables that are locked by ALTER TABLE and the like (ACCESS EXCLUSIVE)."""
