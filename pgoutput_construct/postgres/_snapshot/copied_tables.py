"""What a server publishes of each table, and how the stream describes it, by the same rules as pgoutput."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pgoutput_construct.catalog_queries import for_release
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.pgtypes.builtin_types import FIRST_USER_OID
from pgoutput_construct.postgres._catalog.catalog_state import RelationShape
from pgoutput_construct.postgres.connection import Connection, fetch, reading_answer
from pgoutput_construct.stream.identifiers import full_name, qualified_name
from pgoutput_construct.wire import Relation, Type, build
from pgoutput_construct.wire.messages import PgoutputMessage, RelationColumn
from pgoutput_construct.wire.options import STATE_PARAMETERS
from pgoutput_construct.wire.protocol import RelationColumnFlags, RelationReplicaIdentity

__all__ = ["Column", "Leaf", "PublishedTable", "read_tables"]

# pg_get_expr() and pg_relation_size() open the table, and so wait for its locks: locked tables are excluded.
_PUBLISHED: Final = """WITH RECURSIVE {published}
    SELECT c.oid::bigint, n.nspname, c.relname, c.relreplident::text,
        ARRAY(SELECT attnum FROM pg_attribute WHERE attrelid = c.oid AND {is_published}), {filter}
    FROM published m JOIN wanted w ON w.oid = m.publication
    JOIN pg_class c ON c.oid = m.oid JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_publication_rel r ON r.prpubid = m.publication AND r.prrelid = c.oid AND NOT m.as_it_is
    WHERE c.oid = ANY(%(oids)s) AND c.oid <> ALL(%(locked)s) AND {as_itself} ORDER BY c.oid"""

# INCLUDE columns of the index are no key columns (RelationGetIdentityKeyBitmap).
_COLUMNS: Final = """WITH RECURSIVE bases AS (
        SELECT oid, oid AS base FROM pg_type WHERE oid IN (SELECT atttypid FROM pg_attribute WHERE attrelid = ANY(%s))
        UNION ALL SELECT b.oid, t.typbasetype FROM bases b JOIN pg_type t ON t.oid = b.base WHERE t.typtype = 'd')
    SELECT a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, y.typsend <> 0,
        b.base, nullif(n.nspname, 'pg_catalog'), t.typname, c.relreplident = 'f' OR EXISTS (
            SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisvalid AND i.indimmediate
            AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident END
            AND a.attnum = ANY((i.indkey::int2[])[0:i.indnkeyatts-1]))
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type y ON y.oid = a.atttypid
    JOIN bases b ON b.oid = a.atttypid JOIN pg_type t ON t.oid = b.base AND t.typtype <> 'd'
    JOIN pg_namespace n ON n.oid = t.typnamespace
    WHERE a.attrelid = ANY(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum"""

_LEAVES: Final = """WITH RECURSIVE tree AS (SELECT oid AS root, oid FROM unnest(%s::oid[]) AS wanted (oid)
        UNION ALL SELECT tree.root, i.inhrelid FROM tree JOIN pg_inherits i ON i.inhparent = tree.oid
        AND {is_attached} JOIN pg_class k ON k.oid = i.inhrelid AND k.relispartition)
    SELECT tree.root, c.oid, n.nspname, c.relname, CASE WHEN c.oid <> ALL(%s) THEN
            coalesce(pg_relation_size(c.oid), 0) / current_setting('block_size')::int END,
        (SELECT jsonb_object_agg(attname, attnum) FROM pg_attribute
         WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped)
    FROM tree JOIN pg_class c USING (oid) JOIN pg_namespace n ON n.oid = c.relnamespace
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
    is_key: bool
    """Whether it is part of the replica identity."""
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

    def __str__(self) -> str:
        return full_name(self)

    @property
    def shape(self) -> RelationShape:
        """The table's columns, as its Relation describes them."""
        columns = tuple((column.name, column.type_oid, column.modifier) for column in self.columns)
        return RelationShape(self.namespace, self.name, columns)

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
                flags=RelationColumnFlags.KEY if column.is_key else 0,
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
    found = [named[0] for named, _, _ in published]
    columns = _read_columns(connection, found)
    leaves = _read_leaves(connection, found, list(locked))
    tables = []
    for named, numbers, condition in published:
        rows = leaves[named[0]]
        if any(pages is None for _, _, _, pages, _ in rows):  # it, or a partition, is locked
            continue
        chosen = tuple(column for column in columns[named[0]] if column.number in numbers)
        parts = tuple(
            Leaf(oid, namespace, name, pages, tuple((own or {}).get(column.name, 0) for column in chosen))
            for oid, namespace, name, pages, own in rows
        )
        tables.append(PublishedTable(*named, chosen, condition, parts))
    return tables


def _read_published(
    connection: Connection, publications: Sequence[str], oids: list[int], locked: list[int]
) -> Iterator[tuple[_Named, frozenset[int], str | None]]:
    """Yield each table with its published columns by number, and its filter."""
    query = for_release(_PUBLISHED, connection.info.server_version)
    arguments = {"publications": list(publications), "oids": oids, "locked": locked}
    rows = fetch(connection, query, arguments, doing="the publications cannot be read")
    found = defaultdict[_Named, list[tuple[Any, ...]]](list)
    for oid, namespace, name, identity, numbers, condition in rows:
        found[oid, namespace, name, identity].append((frozenset(numbers), condition))
    for named, said in found.items():
        lists, conditions = {numbers for numbers, _ in said}, [condition for _, condition in said]
        if len(lists) > 1:
            raise ReplicationError(
                f"cannot use different column lists for table {qualified_name(*named[1:3])} in different "
                "publications: the server refuses to decode changes of it; give it the same column list in all of them "
                "(ALTER PUBLICATION)"
            )
        # A publication without a row filter publishes all rows, whatever the others filter (fetch_remote_table_info).
        condition = None if None in conditions else " OR ".join(f"({one})" for one in sorted(set(conditions)))
        yield named, lists.pop(), condition


def _read_columns(connection: Connection, oids: list[int]) -> dict[int, list[Column]]:
    found = defaultdict[int, list[Column]](list)
    for row in fetch(connection, _COLUMNS, [oids, oids], doing="the columns cannot be read"):
        oid, number, name, type_oid, modifier, has_send, base_oid, namespace, base, is_key = row
        column = Column(number, name, type_oid, modifier, is_key, has_send, base_oid, namespace or "", base)
        found[oid].append(column)
    return found


def _read_leaves(connection: Connection, oids: list[int], locked: list[int]) -> dict[int, list[tuple[Any, ...]]]:
    found = defaultdict[int, list[tuple[Any, ...]]](list)
    query = for_release(_LEAVES, connection.info.server_version)
    for root, *leaf in fetch(connection, query, [oids, locked], doing="the partitions cannot be read"):
        found[root].append(tuple(leaf))
    return found
