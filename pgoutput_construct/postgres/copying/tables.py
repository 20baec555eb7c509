"""What a server publishes of each table, and how the stream describes it: read as pgoutput decides it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.known import Shape
from pgoutput_construct.postgres.queries import Connection, fetch
from pgoutput_construct.stream.builtin_types import FIRST_USER_OID
from pgoutput_construct.wire import Relation, Type, build
from pgoutput_construct.wire.messages import PgoutputMessage, RelationColumn
from pgoutput_construct.wire.options import STATE_PARAMETERS
from pgoutput_construct.wire.protocol import RelationColumnFlags, RelationReplicaIdentity

__all__ = ["Column", "Leaf", "PublishedTable", "qualified", "read_published", "read_tables"]

_COLUMN_LISTS_SINCE: Final = 150000
_GENERATED_SINCE: Final = 180000
_OLDEST: Final = 130000

_PUBLISHED: Final = """WITH published AS (
        SELECT c.oid, n.nspname, c.relname, c.relreplident::text AS identity, {own}
        FROM pg_publication_tables t JOIN pg_namespace n ON n.nspname = t.schemaname
        JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
        WHERE t.pubname = ANY(%s))
    SELECT * FROM published p WHERE NOT EXISTS (
        SELECT FROM pg_partition_ancestors(p.oid) a JOIN published q ON q.oid = a.relid WHERE a.relid <> p.oid)
    ORDER BY oid"""
"""A partition whose ancestor is published, too, is published as that one (get_rel_sync_entry)."""

_COLUMNS: Final = """WITH RECURSIVE bases AS (
        SELECT oid, oid AS base FROM pg_type WHERE oid IN (SELECT atttypid FROM pg_attribute WHERE attrelid = ANY(%s))
        UNION ALL SELECT b.oid, t.typbasetype FROM bases b JOIN pg_type t ON t.oid = b.base WHERE t.typtype = 'd')
    SELECT a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, a.attgenerated <> '', y.typsend <> 0,
        b.base, nullif(n.nspname, 'pg_catalog'), t.typname, c.relreplident = 'f' OR EXISTS (
            SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisvalid AND i.indimmediate
            AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident END
            AND a.attnum = ANY((i.indkey::int2[])[0:{keys}-1]))
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type y ON y.oid = a.atttypid
    JOIN bases b ON b.oid = a.atttypid JOIN pg_type t ON t.oid = b.base AND t.typtype <> 'd'
    JOIN pg_namespace n ON n.oid = t.typnamespace
    WHERE a.attrelid = ANY(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum"""

_LEAVES: Final = """SELECT r.oid, c.oid, n.nspname, c.relname,
        pg_relation_size(c.oid) / current_setting('block_size')::int,
        (SELECT jsonb_object_agg(attname, attnum) FROM pg_attribute
         WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped)
    FROM unnest(%s::oid[]) r(oid) CROSS JOIN LATERAL (
        SELECT relid FROM pg_partition_tree(r.oid) WHERE isleaf UNION SELECT r.oid) l
    JOIN pg_class c ON c.oid = l.relid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND c.relpersistence = 'p' ORDER BY r.oid, c.oid"""
"""The tables that hold the rows: a partitioned one holds none; what is unlogged or foreign is not published."""


@dataclass(frozen=True)
class Column:
    """A column that is published."""

    number: int
    """Its attribute number."""
    name: str
    """Its name."""
    type_oid: int
    """Its type."""
    modifier: int
    """Its type's modifier, -1 for none."""
    is_key: bool
    """It is part of the replica identity."""
    has_send: bool
    """Its type has a binary form."""
    base_oid: int
    """Its type; of a domain the type below it."""
    base_namespace: str
    """The schema of that type, empty for pg_catalog."""
    base_name: str
    """The name of that type."""


@dataclass(frozen=True)
class Leaf:
    """A table that holds rows: the published one itself, or a partition of it."""

    oid: int
    namespace: str
    name: str
    pages: int
    """How many pages it had when it was looked at."""
    numbers: tuple[int, ...]
    """The attribute numbers of the published columns here."""


@dataclass(frozen=True)
class PublishedTable:
    """A table as the stream shows it."""

    oid: int
    namespace: str
    name: str
    replica_identity: str
    columns: tuple[Column, ...]
    filter: str | None
    """What its rows must fulfil, as SQL; None where all are published."""
    leaves: tuple[Leaf, ...]

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"

    @property
    def shape(self) -> Shape:
        """Its columns as a Relation has them."""
        return tuple((column.name, column.type_oid, column.modifier) for column in self.columns)

    @property
    def pages(self) -> int:
        """How many pages its rows are on."""
        return sum(leaf.pages for leaf in self.leaves)

    def descriptions(self, layout: Mapping[str, Any]) -> list[bytes]:
        """Return the messages that the server sends before its first row, under options (``StreamOptions.layout``)."""
        # A Type for each column whose type is not built in, also again (maybe_send_schema).
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


@dataclass(frozen=True)
class _Published:
    """What the publications say of one table together."""

    oid: int
    namespace: str
    name: str
    identity: str
    columns: frozenset[str] | None
    """The names of its columns; None for all."""
    filter: str | None


def qualified(namespace: str, name: str) -> str:
    """Return a table's name as SQL writes it."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in (namespace, name))


def read_published(connection: Connection, publications: Sequence[str]) -> dict[int, tuple[str, str]]:
    """Return the schema and the name of each table that is published, by the OID that the stream names it by."""
    return {table.oid: (table.namespace, table.name) for table in _read_published(connection, publications)}


def read_tables(connection: Connection, publications: Sequence[str], oids: Iterable[int]) -> list[PublishedTable]:
    """Describe those of some tables that are published, as the snapshot of ``connection`` has them.

    Raises ReplicationError where publications contradict each other, as the server does.
    """
    wanted = set(oids)
    published = [table for table in _read_published(connection, publications) if table.oid in wanted]
    found = [table.oid for table in published]
    columns = _read_columns(connection, found)
    leaves = _read_leaves(connection, found)
    return [_described(connection, table, columns[table.oid], leaves[table.oid]) for table in published]


def _read_published(connection: Connection, publications: Sequence[str]) -> Iterator[_Published]:
    version = connection.info.server_version
    if version < _OLDEST:
        raise ReplicationError(f"copies of tables need PostgreSQL {_OLDEST // 10000}, the server is {version // 10000}")
    own = "t.attnames, t.rowfilter" if version >= _COLUMN_LISTS_SINCE else "NULL::name[], NULL::text"
    rows = fetch(connection, _PUBLISHED.format(own=own), [list(publications)], doing="the publications cannot be read")
    found = defaultdict[tuple[Any, ...], list[tuple[Any, ...]]](list)
    for *table, names, condition in rows:
        found[tuple(table)].append((None if names is None else frozenset(names), condition))
    for (oid, namespace, name, identity), said in found.items():
        lists, conditions = {names for names, _ in said}, [condition for _, condition in said]
        if len(lists) > 1:
            raise ReplicationError(
                f"cannot use different column lists for table {namespace}.{name} in different publications, which the "
                "server refuses as soon as it is changed: give it one list in all of them (ALTER PUBLICATION)"
            )
        # Whoever publishes all of its rows decides (fetch_remote_table_info).
        condition = None if None in conditions else " OR ".join(f"({one})" for one in sorted(set(conditions)))
        yield _Published(oid, namespace, name, identity, lists.pop(), condition)


def _read_columns(connection: Connection, oids: list[int]) -> dict[int, list[tuple[bool, Column]]]:
    # RelationGetIdentityKeyBitmap takes the columns that an index only includes, too; before 14 there was another one.
    keys = "i.indnatts" if connection.info.server_version >= 140000 else "i.indnkeyatts"
    found = defaultdict[int, list[tuple[bool, Column]]](list)
    for row in fetch(connection, _COLUMNS.format(keys=keys), [oids, oids], doing="the columns cannot be read"):
        oid, number, name, type_oid, modifier, generated, has_send, base_oid, namespace, base, is_key = row
        column = Column(number, name, type_oid, modifier, is_key, has_send, base_oid, namespace or "", base)
        found[oid].append((generated, column))
    return found


def _read_leaves(connection: Connection, oids: list[int]) -> dict[int, list[tuple[Any, ...]]]:
    found = defaultdict[int, list[tuple[Any, ...]]](list)
    for root, *leaf in fetch(connection, _LEAVES, [oids], doing="the partitions cannot be read"):
        found[root].append(tuple(leaf))
    return found


def _described(
    connection: Connection, table: _Published, columns: list[tuple[bool, Column]], leaves: list[tuple[Any, ...]]
) -> PublishedTable:
    """Return a table with its published columns; before 18 no generated one is published, though 15 lists them."""
    with_generated = connection.info.server_version >= _GENERATED_SINCE
    chosen = tuple(
        column
        for generated, column in columns
        if (not generated or with_generated) and (table.columns is None or column.name in table.columns)
    )
    return PublishedTable(
        table.oid,
        table.namespace,
        table.name,
        table.identity,
        chosen,
        table.filter,
        tuple(
            Leaf(oid, namespace, name, pages, tuple((numbers or {}).get(column.name, 0) for column in chosen))
            for oid, namespace, name, pages, numbers in leaves
        ),
    )
