"""What a server publishes of each table, and how the stream describes it, by the same rules as pgoutput."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pgoutput_construct.catalog_queries import TYPE_FACTS, for_release
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.pgtypes.builtin_types import FIRST_USER_OID
from pgoutput_construct.postgres._catalog.catalog_state import RelationShape
from pgoutput_construct.postgres.connection import Connection, fetch, fetch_named, reading_answer
from pgoutput_construct.stream.identifiers import full_name, qualified_name
from pgoutput_construct.wire import Relation, Type, build
from pgoutput_construct.wire.messages import PgoutputMessage, RelationColumn
from pgoutput_construct.wire.options import STATE_PARAMETERS
from pgoutput_construct.wire.protocol import RelationColumnFlags, RelationReplicaIdentity

__all__ = ["Column", "Leaf", "PublishedTable", "read_tables"]

# pg_get_expr() and pg_relation_size() open the table, and so wait for its locks: locked tables are excluded.
_PUBLISHED: Final = """WITH RECURSIVE {published}
    SELECT c.oid::bigint, n.nspname, c.relname, c.relreplident::text,
        ARRAY(SELECT attnum FROM pg_attribute WHERE attrelid = c.oid AND {is_published}), {filter},
        concat_ws('/', w.oid, w.written, m.member, m.joined, m.within::text), w.pubupdate AND w.pubdelete,
        c.relnatts::int
    FROM published m JOIN wanted w ON w.oid = m.publication
    JOIN pg_class c ON c.oid = m.oid JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_publication_rel r ON r.prpubid = m.publication AND r.prrelid = c.oid AND NOT m.as_it_is
    WHERE c.oid = ANY(%(oids)s) AND c.oid <> ALL(%(locked)s) AND {as_itself} ORDER BY c.oid"""

# INCLUDE columns of the index are no key columns (RelationGetIdentityKeyBitmap).
_COLUMNS: Final = """WITH RECURSIVE bases AS (
        SELECT oid, oid AS base FROM pg_type WHERE oid IN (SELECT atttypid FROM pg_attribute WHERE attrelid = ANY(%s))
        UNION ALL SELECT b.oid, t.typbasetype FROM bases b JOIN pg_type t ON t.oid = b.base WHERE t.typtype = 'd')
    SELECT a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, y.typsend <> 0,
        b.base, nullif(n.nspname, 'pg_catalog'), t.typname, c.relreplident = 'f', EXISTS (
            SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisvalid AND i.indimmediate
            AND CASE c.relreplident WHEN 'i' THEN i.indisreplident WHEN 'n' THEN false ELSE i.indisprimary END
            AND a.attnum = ANY((i.indkey::int2[])[0:i.indnkeyatts-1]))
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type y ON y.oid = a.atttypid
    JOIN bases b ON b.oid = a.atttypid JOIN pg_type t ON t.oid = b.base AND t.typtype <> 'd'
    JOIN pg_namespace n ON n.oid = t.typnamespace
    WHERE a.attrelid = ANY(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum"""

_LEAVES: Final = """WITH RECURSIVE tree AS (
        SELECT oid AS root, oid, '' AS joined FROM unnest(%s::oid[]) AS wanted (oid)
        UNION ALL SELECT tree.root, i.inhrelid, concat_ws(' ', tree.joined, i.xmin)
        FROM tree JOIN pg_inherits i ON i.inhparent = tree.oid AND {is_attached}
        JOIN pg_class k ON k.oid = i.inhrelid AND k.relispartition)
    SELECT tree.root, c.oid, n.nspname, c.relname, CASE WHEN c.oid <> ALL(%s) THEN
            coalesce(pg_relation_size(c.oid), 0) / current_setting('block_size')::int END, c.relfilenode::bigint,
        tree.joined, coalesce(k.columns, ''),
        concat_ws('/', CASE WHEN c.oid <> tree.root THEN c.xmin END, c.relreplident, k.oid), (
            SELECT jsonb_object_agg(attname, attnum) FROM pg_attribute
            WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped)
    FROM tree JOIN pg_class c USING (oid) JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN LATERAL (
        SELECT x.indexrelid AS oid, (SELECT string_agg(attname, ',' ORDER BY attname COLLATE "C") FROM pg_attribute
            WHERE attrelid = x.indrelid AND attnum = ANY((x.indkey::int2[])[0:x.indnkeyatts-1])) AS columns
        FROM pg_index x WHERE x.indrelid = c.oid AND x.indisvalid AND x.indimmediate
        AND CASE c.relreplident WHEN 'i' THEN x.indisreplident WHEN 'n' THEN false ELSE x.indisprimary END) k ON true
    WHERE c.relkind = 'r' AND c.relpersistence = 'p' ORDER BY tree.root, c.oid"""
"""The tables that have the rows: a partitioned table has none; unlogged and foreign partitions are not replicated."""


@dataclass(frozen=True)
class Column:
    """A published column."""

    number: int
    """The attribute number."""
    name: str
    """The name."""
    type_oid: int
    """The OID of the type."""
    modifier: int
    """The type modifier, -1 for none."""
    is_identity: bool
    """Whether it is part of the replica identity."""
    is_key: bool
    """Whether it is part of the index of the replica identity; with FULL, of the primary key."""
    has_send: bool
    """Whether the type has a send function, for binary format."""
    base_oid: int
    """The OID of the type; of a domain, that of its base type."""
    base_namespace: str
    """The schema of the base type, empty for pg_catalog."""
    base_name: str
    """The name of the base type."""


@dataclass(frozen=True)
class Leaf:
    """A table that has rows: the published table itself, or a partition of it."""

    oid: int
    namespace: str
    name: str
    pages: int
    """The number of pages when it was measured."""
    filenode: int
    """Its file (``relfilenode``)."""
    joined: str
    """The xids of the transactions that attached it, and its ancestors, below the published table."""
    key: str
    """The columns of its key by name (``Column.is_key``), between commas; "" for none."""
    identity: str
    """Its replica identity, and the OID of the key's index: another one if there was no key for a time. Of a partition,
    whose Relation is not sent, also the xid that last wrote its row of pg_class, where the identity is set."""
    numbers: tuple[int, ...]
    """The attribute numbers of the published columns in this table."""


@dataclass(frozen=True)
class PublishedTable:
    """A published table, as the stream describes it."""

    oid: int
    namespace: str
    name: str
    replica_identity: str
    columns: tuple[Column, ...]
    filter: str | None
    """The row filter as SQL; None if all rows are published."""
    leaves: tuple[Leaf, ...]
    terms: str = ""
    """By which rows of the catalog it is published: other ones, if it was not for a time."""
    sends_changes: bool = True
    """Whether its updates and deletes are published."""
    last_column: int = 0
    """The highest attribute number, also of columns that were dropped, or are not published."""
    types: str = ""
    """The labels of enums, and the attributes of composite types, that its columns have."""

    def __str__(self) -> str:
        return full_name(self)

    @property
    def shape(self) -> RelationShape:
        """The table's columns, as its Relation describes them."""
        columns = tuple((column.name, column.type_oid, column.modifier) for column in self.columns)
        return RelationShape(self.namespace, self.name, columns)

    @property
    def key(self) -> tuple[Column, ...]:
        """The columns by which the stream tells rows apart, which are unique and not null; empty for no such key."""
        return tuple(column for column in self.columns if column.is_key)

    @property
    def pages(self) -> int:
        """The number of pages of all leaves."""
        return sum(leaf.pages for leaf in self.leaves)

    def descriptions(self, layout: Mapping[str, Any]) -> list[bytes]:
        """Return the messages that the server sends before the first row, under options (``StreamOptions.layout``)."""
        # A Type for each column whose type is not built in, also if it was sent before (maybe_send_schema).
        types: list[PgoutputMessage] = [
            Type(type_oid=column.type_oid, namespace=column.base_namespace, name=column.base_name)
            for column in self.columns
            if column.type_oid >= FIRST_USER_OID
        ]
        namespace = "" if self.namespace == "pg_catalog" else self.namespace
        columns = tuple(
            RelationColumn(
                flags=RelationColumnFlags.KEY if column.is_identity else 0,
                name=column.name,
                type_oid=column.type_oid,
                type_modifier=column.modifier,
            )
            for column in self.columns
        )
        relation = Relation(
            relation_oid=self.oid,
            namespace=namespace,
            name=self.name,
            replica_identity=RelationReplicaIdentity(self.replica_identity),
            columns=columns,
        )
        options = dict.fromkeys(STATE_PARAMETERS, False) | dict(layout)
        return [build(message, **options) for message in [*types, relation]]


_Named: TypeAlias = tuple[int, str, str, str]
"""A table: OID, schema, name, replica identity."""


@reading_answer("the tables to copy cannot be read in the catalog")
def read_tables(
    connection: Connection, publications: Sequence[str], oids: Iterable[int], locked: Collection[int] = ()
) -> list[PublishedTable]:
    """Return descriptions of the published tables among some, as the snapshot of ``connection`` has them.

    Args:
        connection: A connection in the transaction that has the snapshot.
        publications: The names of the publications.
        oids: The OIDs of the tables.
        locked: The OIDs of tables that are locked: they, and partitioned tables that have them, are skipped.

    Raises:
        ReplicationError: The publications have different column lists for a table, which the server refuses too.
    """
    published = list(_read_published(connection, publications, list(oids), list(locked)))
    found = [named[0] for named, *_ in published]
    columns = _read_columns(connection, found)
    leaves = _read_leaves(connection, found, list(locked))
    types = {row["oid"]: repr(row["types"]) for row in fetch_named(connection, TYPE_FACTS, oids=found)}
    tables = []
    for named, numbers, condition, terms in published:
        rows = leaves[named[0]]
        if any(pages is None for _, _, _, pages, *_ in rows):  # it, or a partition, is locked
            continue
        chosen = tuple(column for column in columns[named[0]] if column.number in numbers)
        parts = tuple(
            Leaf(oid, space, name, pages, node, joined, key, state, tuple((own or {}).get(e.name, 0) for e in chosen))
            for oid, space, name, pages, node, joined, key, state, own in rows
        )
        tables.append(PublishedTable(*named, chosen, condition, parts, *terms, types.get(named[0], "")))
    return tables


def _read_published(
    connection: Connection, publications: Sequence[str], oids: list[int], locked: list[int]
) -> Iterator[tuple[_Named, frozenset[int], str | None, tuple[str, bool, int]]]:
    """Yield each table with its published columns by number, its filter, and the terms that it is published by.

    These are ``PublishedTable.terms``, ``sends_changes`` and ``last_column``.
    """
    query = for_release(_PUBLISHED, connection.info.server_version)
    arguments = {"publications": list(publications), "oids": oids, "locked": locked}
    rows = fetch(connection, query, arguments, doing="the publications cannot be read")
    found = defaultdict[_Named, list[tuple[Any, ...]]](list)
    for oid, namespace, name, identity, numbers, *terms in rows:
        found[oid, namespace, name, identity].append((frozenset(numbers), *terms))
    for named, said in found.items():
        lists, conditions = {each[0] for each in said}, [each[1] for each in said]
        if len(lists) > 1:
            raise ReplicationError(
                f"cannot use different column lists for table {qualified_name(*named[1:3])} in different "
                "publications: the server refuses to decode changes of it; give it the same column list in all of them "
                "(ALTER PUBLICATION)"
            )
        # A publication without a row filter publishes all rows, whatever the others filter (fetch_remote_table_info).
        condition = None if None in conditions else " OR ".join(f"({one})" for one in sorted(set(conditions)))
        # What one publication publishes of other rows than another one is not all that is copied.
        is_sent = all(each[3] for each in said) or any(each[3] and each[1] is None for each in said)
        known = "; ".join(sorted(each[2] for each in said)), is_sent, said[0][4]
        yield named, lists.pop(), condition, known


def _read_columns(connection: Connection, oids: list[int]) -> dict[int, list[Column]]:
    found = defaultdict[int, list[Column]](list)
    for row in fetch(connection, _COLUMNS, [oids, oids], doing="the columns cannot be read"):
        oid, number, name, type_oid, modifier, has_send, base_oid, namespace, base, is_full, is_key = row
        has = is_full or is_key, is_key, has_send
        column = Column(number, name, type_oid, modifier, *has, base_oid, namespace or "", base)
        found[oid].append(column)
    return found


def _read_leaves(connection: Connection, oids: list[int], locked: list[int]) -> dict[int, list[tuple[Any, ...]]]:
    found = defaultdict[int, list[tuple[Any, ...]]](list)
    query = for_release(_LEAVES, connection.info.server_version)
    for root, *leaf in fetch(connection, query, [oids, locked], doing="the partitions cannot be read"):
        found[root].append(tuple(leaf))
    return found
