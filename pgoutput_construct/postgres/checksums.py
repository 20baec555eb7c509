"""Tables of a server under one snapshot: checksums of their parts, and the rows of parts that differ."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import psycopg
import pyarrow as pa
from psycopg import sql

from pgoutput_construct.changelog._facts.visibility import Snapshot
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
from pgoutput_construct.postgres._snapshot.snapshots import read_snapshot
from pgoutput_construct.postgres._waiting import Asked, Patience
from pgoutput_construct.postgres.connection import (
    Connection,
    connect,
    describe_error,
    fetch,
    fetch_row,
    is_standby,
    run,
)
from pgoutput_construct.stream.identifiers import qualified_name
from pgoutput_construct.wire import Lsn

__all__ = ["HeldSnapshot", "SourceColumn", "SourceServer", "SourceTable", "canonical"]

_QUERY_SECONDS: Final = 24 * 3600.0
"""How long one checksum may take: the server says nothing before its last row was read."""

_ORDERED: Final = frozenset({"int2", "int4", "int8", "oid", "uuid"})
"""Types whose values, or their texts, any program orders as PostgreSQL does: without a collation."""

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
"""What regproc prints of no function: values of such a type come as text, also among binary ones."""


class SourceColumn(NamedTuple):
    """A column of a table on the server."""

    name: str
    type_name: str
    """pg_type.typname; of a domain that of its base type."""
    element_name: str | None
    """That of the elements of an array."""
    arrow: pa.DataType
    """Its type in Arrow: what the log's reader makes of its values."""
    send: str | None = None
    """The function that makes the bytes of its values, of which the log's reader knows no text; None for others."""


_BYTES: Final = sql.SQL("'\\x' || encode({send}({value}), 'hex')")


def canonical(column: SourceColumn) -> sql.Composable:
    """Return an expression for the canonical text of a column, NULL for NULL."""
    value = sql.Identifier(column.name)
    if column.send is not None:
        return _BYTES.format(value=value, send=sql.Identifier("pg_catalog", column.send))
    return sql.SQL(canonical_sql(column.type_name, column.element_name, column.arrow)).format(value=value)


class SourceServer:
    """The server whose tables are verified."""

    def __init__(self, dsn: str, publications: Sequence[str], asked: Asked | None = None, binary: bool = False) -> None:
        """``publications`` are those that the log captures: what their filters leave out does not count.

        ``binary`` says that the log has values in binary format: of some types it then has bytes alone.
        """
        self._dsn, self._publications, self._asked, self._binary = dsn, tuple(publications), asked, binary

    @contextmanager
    def held(self) -> Iterator["HeldSnapshot"]:
        """Hold a snapshot while a block runs; raises ReplicationError."""
        with connect(self._dsn, replication=False, patience=Patience(_QUERY_SECONDS, self._asked)) as connection:
            if is_standby(connection):
                raise ReplicationError(
                    "the server is a standby, whose snapshots do not say which transactions they contain: verify "
                    "against its primary"
                )
            # An error where a policy would leave rows out; compiling takes longer than it saves.
            run(connection, "SET row_security = off")
            run(connection, "SET jit = off")
            run(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            snapshot = read_snapshot(connection, Lsn(0))
            # Afterwards: before this position are the commits of all transactions that the snapshot contains.
            lsn = Lsn(int(fetch_row(connection, "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")[0]))
            self._flush()
            taken = Snapshot(snapshot.xmin, snapshot.xmax, snapshot.xip, lsn)
            yield HeldSnapshot(connection, taken, self._publications, self._binary)

    def _flush(self) -> None:
        """Have the server write its WAL up to now, and the stream reach it, also where nobody writes."""
        with connect(self._dsn, replication=False, patience=Patience(asked=self._asked)) as connection:
            run(connection, "SELECT txid_current()")


@dataclass(frozen=True)
class HeldSnapshot:
    """A snapshot that a connection holds; see ``SourceServer.held``."""

    connection: Connection
    snapshot: Snapshot
    """Which transactions it contains; its position is behind the commits of all of them."""
    publications: Sequence[str]
    binary: bool = False
    """Whether the log has values in binary format."""

    def table(self, relation_oid: int, columns: pa.Schema) -> "SourceTable | str":
        """Return a table by its OID, given the Arrow types of the columns that are compared.

        Where it is not there with all of them, or is not published any more, return what happened to it.
        """
        rows = fetch(self.connection, _TABLE, [relation_oid], doing="the table cannot be read in the catalog")
        if not rows:
            return "the server has it no more: it was dropped"
        namespace, name, is_partitioned, known = rows[0]
        types = {column: kinds for column, *kinds in known or ()}
        if lacking := [name for name in columns.names if name not in types]:
            return f"on the server it has no column {', '.join(lacking)} any more: it was altered"
        published = self._filter(namespace, name)
        if published is None:
            return f"it is not published any more by {', '.join(self.publications)}"
        found = tuple(self._column(field, *types[field.name]) for field in columns)
        table = sql.SQL("{}{}").format(sql.SQL("" if is_partitioned else "ONLY "), sql.Identifier(namespace, name))
        return SourceTable(self.connection, qualified_name(namespace, name), table, found, published)

    def _column(self, field: pa.Field, name: str, element: str | None, oid: int, send: str) -> SourceColumn:
        has_text = not self.binary or oid not in BUILTIN_TYPES or name in TEXT_WRITERS or send == _NO_SEND
        return SourceColumn(field.name, name, element, field.type, None if has_text else send)

    def _filter(self, namespace: str, name: str) -> str | None:
        """Return the row filter of the publications: a row counts that any of them publishes. None for no table."""
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
    """Schema and name, as the server has them under the snapshot."""
    table: sql.Composed
    columns: Sequence[SourceColumn]
    where: str
    """What rows are published, as SQL."""

    @property
    def ordered(self) -> frozenset[str]:
        """The columns by which it can be divided into ranges: Spark orders their values alike."""
        return frozenset(column.name for column in self.columns if column.type_name in _ORDERED)

    def ranges(self, column: str, after: str | None, rows: int, most: int) -> ByKey:
        """Divide what comes after a key into ranges of so many rows, and at most so many ranges."""
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
        """Yield the checksum of each part by its number; of buckets, those that have rows."""
        if isinstance(division, ByKey):
            for number in range(len(division.bounds) + division.to_the_end):
                found = self._sums(self._part(division, number), sql.SQL("0"))
                yield number, Checksum._make(found[0][1:]) if found else NOTHING
        else:
            for number, *numbers in self._sums(sql.SQL("true"), self._bucket(division)):
                yield number, Checksum._make(numbers)

    def digests(self, division: Division, number: int, keys: Sequence[str]) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the canonical texts of the key of each row in a part (none for no key), and the row's digest."""
        query = sql.SQL("SELECT {keys}, {digest} FROM {table} WHERE {part}")
        texts = sql.SQL("ARRAY[{}]::text[]").format(self._texts(keys))
        for key, digest in self._fetch(query, keys=texts, digest=self._digest(), part=self._part(division, number)):
            yield tuple(key), str(digest)

    def rows(self, division: Division, number: int, wanted: Sequence[str]) -> list[list[str | None]]:
        """Return the canonical texts of the columns of those rows in a part that have some digests."""
        query = sql.SQL("SELECT {texts} FROM {table} WHERE {part} AND {digest} = ANY({wanted}::text[])")
        texts = sql.SQL("ARRAY[{}]::text[]").format(self._texts([column.name for column in self.columns]))
        parts = {"part": self._part(division, number), "wanted": sql.Literal(list(wanted))}
        return [row[0] for row in self._fetch(query, texts=texts, digest=self._digest(), **parts)]

    def _sums(self, part: sql.Composable, bucket: sql.Composable) -> list[tuple[Any, ...]]:
        """Return the number of each part that has rows, and the numbers of its checksum."""
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
        table = sql.SQL("(SELECT * FROM {} WHERE {}) published").format(self.table, sql.SQL(self.where))
        try:
            return self.connection.execute(query.format(table=table, **parts)).fetchall()
        except psycopg.Error as error:
            raise describe_error(error, f"{self.title} cannot be read") from error


def _sum(place: int) -> sql.Composable:
    digits = sql.SQL("('x0' || substr(digest, {}, {}))::bit(64)::bigint").format(1 + place * DIGITS, DIGITS)
    return sql.SQL("coalesce(sum({}), 0)").format(digits)
