"""Checksums of a server's tables, part by part under one snapshot, and the rows of parts that differ.

``spark/_verify`` compares them with the tables of a warehouse. Both sides hash the canonical text of each row
(``pgtypes/canonical_text.py``), so that equal rows have equal checksums.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import psycopg
import pyarrow as pa
from psycopg import sql

from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.columnar.column_masks import Mask, MaskKind
from pgoutput_construct.columnar.row_checksums import (
    BUCKET_DIGITS,
    DIGITS,
    NOTHING,
    ByHash,
    ByKey,
    Checksum,
    Division,
)
from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES
from pgoutput_construct.pgtypes.canonical_text import canonical_sql
from pgoutput_construct.pgtypes.type_registry import TEXT_WRITERS
from pgoutput_construct.postgres._patience import Patience
from pgoutput_construct.postgres._snapshot.snapshots import read_snapshot
from pgoutput_construct.postgres.connection import (
    Connection,
    connect,
    describe_error,
    fetch,
    fetch_row,
    is_standby,
    reading_answer,
    run,
)
from pgoutput_construct.stream.identifiers import qualified_name
from pgoutput_construct.wire import Lsn

__all__ = ["HeldSnapshot", "SourceColumn", "SourceServer", "SourceTable", "canonical"]

_QUERY_SECONDS: Final = 24 * 3600.0
"""The seconds that one checksum may take: the server sends nothing before it has read the last row."""

_ORDERED: Final = frozenset({"int2", "int4", "int8", "oid", "uuid"})
"""Types that are ordered the same everywhere, because their order does not depend on a collation."""

_TABLE: Final = """SELECT n.nspname, c.relname, c.relkind = 'p',
    (SELECT json_agg(json_build_array(a.attname, t.typname, e.typname, t.oid::bigint, t.typsend::regproc::text))
     FROM pg_attribute a CROSS JOIN LATERAL (
         WITH RECURSIVE b AS (SELECT * FROM pg_type WHERE oid = a.atttypid
             UNION ALL SELECT d.* FROM b JOIN pg_type d ON d.oid = b.typbasetype)
         SELECT * FROM b WHERE typbasetype = 0) t LEFT JOIN pg_type e ON e.oid = t.typelem
     WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %s"""
_FILTERS: Final = """SELECT {filter} FROM pg_publication_tables p
    WHERE p.pubname = ANY(%s) AND p.schemaname = %s AND p.tablename = %s"""
_FILTERS_SINCE: Final = 150000
_NO_SEND: Final = "-"
"""How regproc prints OID 0, for a type without a send function: its values are text, also in binary format."""


class SourceColumn(NamedTuple):
    """A column of a table on the server."""

    name: str
    type_name: str
    """pg_type.typname; of a domain, that of its base type."""
    element_name: str | None
    """The typname of the elements of an array type."""
    arrow: pa.DataType
    """The Arrow type that the log's reader gives it."""
    send: str | None = None
    """The type's send function, if the log has binary values that its reader cannot convert to text; else None."""
    mask: Mask | None = None
    """What replaces the values in the warehouse."""
    salt: int = -1
    """The number of the mask's salt in the temporary table of salts."""
    source: str = ""
    """Its name on the server."""


_BYTES: Final = sql.SQL("'\\x' || encode({send}({value}), 'hex')")


_SALTS: Final = "pg_temp.pgoutput_salts"
_MASKS: Final[Mapping[MaskKind, sql.SQL]] = {
    MaskKind.NULL: sql.SQL("NULL::text"),
    MaskKind.TEXT: sql.SQL("CASE WHEN {text} IS NOT NULL THEN {constant} END"),
    MaskKind.SHA256: sql.SQL(
        f"encode(sha256((SELECT salt FROM {_SALTS} WHERE number = {{salt}}) || convert_to({{text}}, 'UTF8')), 'hex')"
    ),
}
"""What masks make of a text (``columnar.column_masks``)."""


def canonical(column: SourceColumn) -> sql.Composable:
    """Return an SQL expression for the canonical text of a column, NULL for NULL."""
    text, mask = _unmasked(column), column.mask
    if mask is None:
        return text
    return _MASKS[mask.kind].format(text=text, constant=sql.Literal(mask.constant), salt=sql.Literal(column.salt))


def _unmasked(column: SourceColumn) -> sql.Composable:
    value = sql.Identifier(column.name)
    if column.send is not None:
        return _BYTES.format(value=value, send=sql.Identifier("pg_catalog", column.send))
    return sql.SQL(canonical_sql(column.type_name, column.element_name, column.arrow)).format(value=value)


class SourceServer:
    """The server whose tables are verified."""

    def __init__(self, dsn: str, publications: Sequence[str], binary: bool = False) -> None:
        """Prepare; ``held`` connects.

        Args:
            dsn: The connection string, as libpq reads it.
            publications: The publications that the log captures: rows that their filters exclude are not compared.
            binary: Whether the log has values in binary format: of some types it then has only bytes.
        """
        self._dsn, self._publications, self._binary = dsn, tuple(publications), binary

    @contextmanager
    def held(self, salts: Sequence[bytes] = ()) -> Iterator["HeldSnapshot"]:
        """Hold a snapshot while a block runs; raises ReplicationError.

        ``salts`` are those of the masks of columns to compare.
        """
        with connect(self._dsn, replication=False, patience=Patience(_QUERY_SECONDS)) as connection:
            if is_standby(connection):
                raise ReplicationError(
                    "the server is a standby, whose snapshots do not list running transactions: verify "
                    "against its primary"
                )
            # Raise an error if a policy would hide rows. Compiling takes longer than it saves.
            run(connection, "SET row_security = off")
            run(connection, "SET jit = off")
            _store_salts(connection, salts)
            run(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            snapshot = read_snapshot(connection, Lsn(0))
            # Read after the snapshot: everything that it sees commits before this LSN.
            lsn = Lsn(int(fetch_row(connection, "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")[0]))
            self._flush()
            yield HeldSnapshot(connection, replace(snapshot, lsn=lsn), self._publications, self._binary, tuple(salts))

    def _flush(self) -> None:
        """Write a transaction, so that the server flushes its WAL and the stream passes the LSN, also if it is idle."""
        with connect(self._dsn, replication=False) as connection:
            run(connection, "SELECT txid_current()")


def _store_salts(connection: Connection, salts: Sequence[bytes]) -> None:
    """Store salts in a temporary table: neither statements nor their parameters, which servers may log, have them."""
    if not salts:
        return
    run(connection, f"CREATE TEMPORARY TABLE {_SALTS} (number int, salt bytea)")
    try:
        with connection.cursor().copy(f"COPY {_SALTS} FROM STDIN".encode()) as rows:
            for number, salt in enumerate(salts):
                rows.write_row((number, salt))
    except psycopg.Error as error:
        raise describe_error(error, "the salts of masks cannot be stored") from error


@dataclass(frozen=True)
class HeldSnapshot:
    """A snapshot that a connection holds; see ``SourceServer.held``."""

    connection: Connection
    snapshot: Snapshot
    """The transactions that it sees; its LSN is after all of their commits."""
    publications: Sequence[str]
    binary: bool = False
    """Whether the log has values in binary format."""
    salts: tuple[bytes, ...] = field(default=(), repr=False)
    """The salts that the server has."""

    def table(
        self,
        relation_oid: int,
        columns: pa.Schema,
        masks: Mapping[str, Mask] = MappingProxyType({}),
        sources: Mapping[str, str] = MappingProxyType({}),
    ) -> "SourceTable | str":
        """Return a table by its OID, or the reason why it cannot be compared.

        Args:
            relation_oid: The OID.
            columns: The columns to compare, with their Arrow types.
            masks: The masks of columns, whose salts are among those of ``held``.
            sources: The names on the server of columns that have another name here.
        """
        rows = fetch(self.connection, _TABLE, [relation_oid], doing="the table cannot be read in the catalog")
        if not rows:
            return "it was dropped on the server"
        with reading_answer("the table cannot be read in the catalog"):
            namespace, name, is_partitioned, known = rows[0]
            types = {column: (kind, element, oid, send) for column, kind, element, oid, send in known or ()}
        own = [sources.get(each, each) for each in columns.names]
        if lacking := [each for each in own if each not in types]:
            return f"it was altered on the server: it no longer has the columns {', '.join(lacking)}"
        published = self._filter(namespace, name)
        if published is None:
            return f"it is no longer published by {', '.join(self.publications)}"
        named = zip(columns, own, strict=True)
        found = tuple(self._column(field, source, masks.get(field.name), *types[source]) for field, source in named)
        table = sql.SQL("{}{}").format(sql.SQL("" if is_partitioned else "ONLY "), sql.Identifier(namespace, name))
        return SourceTable(self.connection, qualified_name(namespace, name), table, found, published)

    def _column(
        self, field: pa.Field, source: str, mask: Mask | None, name: str, element: str | None, oid: int, send: str
    ) -> SourceColumn:
        has_text = not self.binary or oid not in BUILTIN_TYPES or name in TEXT_WRITERS or send == _NO_SEND
        salt = -1 if mask is None or mask.salt is None else self.salts.index(mask.salt)
        return SourceColumn(field.name, name, element, field.type, None if has_text else send, mask, salt, source)

    def _filter(self, namespace: str, name: str) -> str | None:
        """Return the combined row filter: a row is published if any publication publishes it. None for no table."""
        column = "rowfilter" if self.connection.info.server_version >= _FILTERS_SINCE else "NULL"
        query, arguments = _FILTERS.format(filter=column), [list(self.publications), namespace, name]
        found = fetch(self.connection, query, arguments, doing="the publications cannot be read")
        filters = [row[0] for row in found]
        if None in filters:
            return "true"
        return " OR ".join(f"({each})" for each in filters) or None


@dataclass(frozen=True)
class SourceTable:
    """A table under a snapshot."""

    connection: Connection
    title: str
    """The qualified name under the snapshot."""
    table: sql.Composed
    columns: Sequence[SourceColumn]
    where: str
    """The condition for published rows, as SQL."""

    @property
    def ordered(self) -> frozenset[str]:
        """The columns by which it can be divided into ranges: Spark orders their values in the same way."""
        return frozenset(column.name for column in self.columns if column.type_name in _ORDERED and column.mask is None)

    def ranges(self, column: str, after: str | None, rows: int, most: int) -> ByKey:
        """Divide the rows after a key into ranges.

        Args:
            column: The column of the key, one of ``ordered``.
            after: The text of the key after which to begin; None for the first row.
            rows: The number of rows in a range.
            most: The maximum number of ranges; if rows remain, the division does not reach to the end.
        """
        bounds: list[str] = []
        while len(bounds) < most:
            begin = self._between(column, bounds[-1] if bounds else after, None)
            query = sql.SQL("SELECT concat({key}) FROM {table} WHERE {begin} ORDER BY {key} OFFSET {more} LIMIT 1")
            found = self._fetch(query, key=sql.Identifier(column), begin=begin, more=sql.Literal(rows - 1))
            if not found:
                return ByKey(column, tuple(bounds), after)
            bounds.append(str(found[0][0]))
        return ByKey(column, tuple(bounds), after, to_the_end=False)

    def checksums(self, division: Division) -> Iterator[tuple[int, Checksum]]:
        """Yield the number and the checksum of each part; empty buckets are skipped."""
        if isinstance(division, ByKey):
            for number in range(len(division.bounds) + division.to_the_end):
                found = self._sums(self._part(division, number), sql.SQL("0"))
                yield number, Checksum._make(found[0][1:]) if found else NOTHING
        else:
            for number, *numbers in self._sums(sql.SQL("true"), self._bucket(division)):
                yield number, Checksum._make(numbers)

    def digests(self, division: Division, number: int, keys: Sequence[str]) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield, for each row in a part, the canonical texts of its key columns and its digest.

        Args:
            division: How the table is divided.
            number: The number of the part.
            keys: The key columns; empty for a table without a key.
        """
        query = sql.SQL("SELECT {keys}, {digest} FROM {table} WHERE {part}")
        texts = sql.SQL("ARRAY[{}]::text[]").format(self._texts(keys))
        for key, digest in self._fetch(query, keys=texts, digest=self._digest(), part=self._part(division, number)):
            yield tuple(key), str(digest)

    def rows(self, division: Division, number: int, digests: Sequence[str]) -> list[list[str | None]]:
        """Return the canonical texts of all columns of the rows with some digests.

        Args:
            division: How the table is divided.
            number: The number of the part.
            digests: The digests of the rows.
        """
        query = sql.SQL("SELECT {texts} FROM {table} WHERE {part} AND {digest} = ANY({digests}::text[])")
        texts = sql.SQL("ARRAY[{}]::text[]").format(self._texts([column.name for column in self.columns]))
        parts = {"part": self._part(division, number), "digests": sql.Literal(list(digests))}
        return [row[0] for row in self._fetch(query, texts=texts, digest=self._digest(), **parts)]

    def _sums(self, part: sql.Composable, bucket: sql.Composable) -> list[tuple[Any, ...]]:
        """Return, for each part that has rows, its number and the numbers of its checksum."""
        query = sql.SQL(
            "SELECT part, count(*), {first}, {second} FROM (SELECT {bucket} AS part, {digest} AS digest FROM {table} "
            "WHERE {part}) digests GROUP BY part"
        )
        return self._fetch(query, first=_sum(0), second=_sum(1), bucket=bucket, digest=self._digest(), part=part)

    def _part(self, division: Division, number: int) -> sql.Composable:
        if isinstance(division, ByKey):
            return self._between(division.column, *division.ends(number))
        return sql.SQL("{} = {}").format(self._bucket(division), sql.Literal(number))

    def _between(self, column: str, after: str | None, upto: str | None) -> sql.Composable:
        key = sql.Identifier(column)
        bounds: list[sql.Composable] = [sql.SQL("true")]
        bounds += [] if after is None else [sql.SQL("{} > {}").format(key, sql.Literal(after))]
        bounds += [] if upto is None else [sql.SQL("{} <= {}").format(key, sql.Literal(upto))]
        return sql.SQL(" AND ").join(bounds)

    def _bucket(self, division: ByHash) -> sql.Composable:
        digits = sql.SQL("substr({}, {}, {})").format(
            self._digest(division.columns), sql.Literal(33 - BUCKET_DIGITS), sql.Literal(BUCKET_DIGITS)
        )
        bits = sql.SQL("lpad({}, 16, '0')").format(digits)
        return sql.SQL("(('x' || {})::bit(64)::bigint % {})::int").format(bits, sql.Literal(division.buckets))

    def _digest(self, names: Sequence[str] | None = None) -> sql.Composable:
        texts = self._texts([column.name for column in self.columns] if names is None else names)
        return sql.SQL("md5(convert_to(ARRAY[{}]::text[]::text, 'UTF8'))").format(texts)

    def _texts(self, names: Sequence[str]) -> sql.Composable:
        columns: Mapping[str, SourceColumn] = {column.name: column for column in self.columns}
        return sql.SQL(", ").join(canonical(columns[name]) for name in names)

    def _fetch(self, query: sql.SQL, **parts: sql.Composable) -> list[tuple[Any, ...]]:
        names = (map(sql.Identifier, (each.source, each.name)) for each in self.columns)
        columns = sql.SQL(", ").join(sql.SQL("{} AS {}").format(*pair) for pair in names)
        table = sql.SQL("(SELECT {} FROM {} WHERE {}) published").format(columns, self.table, sql.SQL(self.where))
        text = query.format(table=table, **parts).as_string(None)
        return fetch(self.connection, text, doing=f"{self.title} cannot be read")


def _sum(index: int) -> sql.Composable:
    digits = sql.SQL("('x0' || substr(digest, {}, {}))::bit(64)::bigint").format(1 + index * DIGITS, DIGITS)
    return sql.SQL("coalesce(sum({}), 0)").format(digits)
