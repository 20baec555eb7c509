"""Replay of a change log into a PostgreSQL server, by that server's own subscription to a publisher of the log.

Tables that the server does not have are created out of what the log says of them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from secrets import token_urlsafe
from typing import Any, Final, NamedTuple

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

from pgoutput_construct.changelog._facts.catalog_readings import CatalogColumn, TableReading, table_readings
from pgoutput_construct.changelog._facts.lineage import Lineage, lineage_of
from pgoutput_construct.changelog._facts.numbering import ColumnId, column_ids
from pgoutput_construct.changelog._index.log_index import LogPoint
from pgoutput_construct.changelog._index.planning import last_commit
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.changelog.timeline import point_at
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.pgtypes.builtin_types import FIRST_USER_OID
from pgoutput_construct.publisher._server.service import Settings
from pgoutput_construct.publisher.log_feed import LogFeed
from pgoutput_construct.publisher.published_tables import ListedTable, PublishedScope
from pgoutput_construct.publisher.server import ThreadedPublisher
from pgoutput_construct.stream.identifiers import full_name, quote_identifier
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.stream.transaction_reader import EndedTransaction
from pgoutput_construct.wire.messages import RelationColumn
from pgoutput_construct.wire.protocol import RelationColumnFlags, RelationReplicaIdentity
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["SUBSCRIPTION", "ReplayError", "TargetTable", "compare_tables", "connected", "replay", "target_tables"]


_SECONDS: Final = 0.2
_SUBSCRIBED: Final = """
    SELECT n.nspname, c.relname FROM pg_subscription s JOIN pg_subscription_rel r ON r.srsubid = s.oid
        JOIN pg_class c ON c.oid = r.srrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE s.subname = %s"""


@dataclass(frozen=True)
class TargetTable:
    """A table as its latest name has it, with all columns that it had."""

    relation_oid: int
    namespace: str
    name: str
    columns: Mapping[str, tuple[RelationColumn, Description]]
    """Each column as it was described last, and by what."""
    key: tuple[str, ...]
    """The columns of its replica identity; none: the whole row."""
    current: tuple[str, ...] = ()
    """The columns that it had in the end."""
    older: Mapping[str, str] = field(default_factory=dict)
    """What rows have, as text, that are older than a column: changes of that time do not say it."""
    called: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """What the columns of each description are called here, by its seq."""
    dropped: bool = False
    """Whether it was dropped in the end."""

    @property
    def identifier(self) -> Composable:
        """Its name in SQL."""
        return Identifier(self.namespace, self.name)

    @property
    def qualified(self) -> str:
        """Its name as it is printed."""
        return full_name(self)


@dataclass(frozen=True)
class _Replayed:
    """What was applied to a server."""

    lsn: Lsn
    """The LSN at which the last transaction ends."""
    transactions: int
    """Transactions, and copies of tables."""
    created: tuple[str, ...]
    """The tables that were created."""
    tables: Mapping[str, int]
    """The rows that each table has now, by its name in SQL."""
    targets: tuple[TargetTable, ...]
    """What the log says of them, for ``compare_tables``."""
    lacks: tuple[str, ...] = ()
    """What the log lacks of its tables, so that they are not what the source has."""


class _ReplayFeed(LogFeed):
    """A log whose tables and columns have one name for all of its time: the last one."""

    def __init__(self, address: Address, point: LogPoint, *, has_dropped: bool) -> None:
        self._has_dropped, self._last_of_point = has_dropped, point.seq
        super().__init__(address, point)

    def _open(self, log: ChangeLog) -> None:
        super()._open(log)
        self.binary = log.options.binary
        # A copy that was made by the point may have become complete later.
        last_seq = max([self._last_of_point, *(copy.seq for copy in self._timeline.copies)])
        described = (each for each in self.history.descriptions if each.seq <= last_seq)
        tables = target_tables(described, self._index)
        self.targets = [table for table in tables if self._has_dropped or not table.dropped]
        self._names = {table.relation_oid: table for table in self.targets}
        # Another table has the name of these now.
        self._superfluous |= {copy.seq for copy in self._timeline.copies if copy.relation_oid not in self._names}

    def description(self, relation_oid: int, seq: int, stream_xid: int | None) -> Description:
        found, table = super().description(relation_oid, seq, stream_xid), self._names[relation_oid]
        names = table.called.get(found.seq) or tuple(column.name for column in found.relation.columns)
        named = zip(names, found.relation.columns, strict=True)
        columns = tuple(replace(column, name=name) for name, column in named)
        relation = replace(found.relation, namespace=table.namespace, name=table.name, columns=columns)
        return replace(found, relation=relation)

    def published(self, publications: Collection[str]) -> Sequence[ListedTable]:
        return [
            ListedTable(name, table.relation_oid, table.namespace, table.name, tuple(_columns(table)), "")
            for table in self.targets
            for name in publications
        ]

    def scope(self, publications: Collection[str]) -> PublishedScope | None:
        return None  # all that the log has is brought back

    def is_copied(
        self, relation_oid: int, ended: EndedTransaction, two_phase_at: int | None, without: Collection[int] = ()
    ) -> bool:
        # Another table has the name now.
        return relation_oid not in self._names or super().is_copied(relation_oid, ended, two_phase_at, without)


def _columns(table: TargetTable) -> Iterator[CatalogColumn]:
    for number, (name, (column, _)) in enumerate(table.columns.items(), 1):
        yield CatalogColumn(number, name, column.type_oid, column.type_modifier)


def replay(
    log: Address,
    into: str,
    until: Lsn | Timestamp | LogPoint | None = None,
    *,
    host: str = "127.0.0.1",
    replace_rows: bool = False,
    has_dropped: bool = True,
    on_progress: Callable[[Lsn, Lsn], None] | None = None,
) -> _Replayed:
    """Apply a change log to a PostgreSQL server, by a subscription there; return what was applied.

    Tables that do not exist are created as the log describes them, with all columns that they had; those that exist
    must be empty.

    Args:
        log: The log's address.
        into: The server: a connection string of libpq. Its user may create subscriptions.
        until: The LSN, or the time, up to which commits are applied, or the point of the log; None: up to the end of
            the log.
        host: The address of this machine as the server sees it: it connects to a port that is opened here.
        replace_rows: Whether a later copy of a table replaces its rows also where what was published of it has no
            deletes or no truncates; otherwise it is not served, and ``Replayed.lacks`` names it.
        has_dropped: Whether tables that were dropped are retained.
        on_progress: Called with the LSN that the server has reached, and the last one.

    Raises:
        ReplayError: A table has rows, or lacks columns; the server cannot be reached, cannot apply a change, or is too
            old; the log has no commit up to ``until``.
        PgoutputError: The log cannot be read.
    """
    opened = ChangeLog(log)
    at = LogPoint(opened.index.last_seq) if until is None else until
    point = at if isinstance(at, LogPoint) else point_at(opened.index, at)
    if until is not None and last_commit(opened.index, point.seq) is None:
        raise ReplayError(f"{opened.store}: the log has no commit at or before {until}: choose a later LSN or time")
    feed = _ReplayFeed(log, point, has_dropped=has_dropped)
    with connected(into) as connection:
        _check_target(connection, feed.targets)
        created = _create_tables(connection, feed.targets)
        password, name = token_urlsafe(), SUBSCRIPTION
        settings = Settings(host=host, method="scram-sha-256", user=name, password=password, wal_sender_timeout=0)
        settings = replace(settings, replaces_rows=replace_rows)
        end = feed.order().end
        publications = feed.about.publications or (name,)
        with (
            ThreadedPublisher(feed, settings) as running,
            _subscription(connection, make_conninfo(running.dsn, password=password), publications, feed.binary),
        ):
            _check_subscribed(connection, feed.targets)
            while not _is_there(running, end):
                _check_errors(connection, running.publisher.refused)
                if on_progress is not None:
                    on_progress(_reached(running), Lsn(end))
        tables = {table.qualified: _count(connection, table) for table in feed.targets}
    lacks = (*feed.lacks(), *running.publisher.withheld)
    return _Replayed(Lsn(end), len(feed.order()), tuple(created), tables, tuple(feed.targets), lacks)


@contextmanager
def _subscription(
    connection: psycopg.Connection[Any], dsn: str, publications: Sequence[str], binary: bool
) -> Iterator[None]:
    """Subscribe, in the format of the log: some values have no other."""
    create = SQL("CREATE SUBSCRIPTION {} CONNECTION {} PUBLICATION {} WITH (copy_data = false, binary = {})")
    names = SQL(", ").join(map(Identifier, publications))
    connection.execute(create.format(Identifier(SUBSCRIPTION), Literal(dsn), names, binary))
    try:
        yield
    finally:
        connection.execute(SQL("DROP SUBSCRIPTION {}").format(Identifier(SUBSCRIPTION)))


def _check_subscribed(connection: psycopg.Connection[Any], targets: Sequence[TargetTable]) -> None:
    """Check that the subscription has all tables: it ignores the rows of others without an error."""
    subscribed = set(connection.execute(_SUBSCRIBED, (SUBSCRIPTION,)).fetchall())
    if ignored := [table.qualified for table in targets if (table.namespace, table.name) not in subscribed]:
        raise ReplayError(
            f"the server's subscription would ignore {', '.join(ignored)}: this release of PostgreSQL queries the "
            "tables of a publication in a way that is not supported; replay into another release"
        )


def _is_there(running: ThreadedPublisher, end: int) -> bool:
    if not end:
        return True
    try:
        running.until_served(_SECONDS)
    except TimeoutError:
        return False
    return True


def _reached(running: ThreadedPublisher) -> Lsn:
    slot = running.publisher.slots.get(SUBSCRIPTION)
    return Lsn(slot.confirmed if slot else 0)


def _check_errors(connection: psycopg.Connection[Any], refused: str | None) -> None:
    if refused is not None:
        raise ReplayError(f"the subscription requested something unsupported: {refused}")
    query = "SELECT apply_error_count FROM pg_stat_subscription_stats WHERE subname = %s"
    row = connection.execute(query, (SUBSCRIPTION,)).fetchone()
    if row and row[0]:
        raise ReplayError("the server could not apply a change: its log says which, and why")


def _count(connection: psycopg.Connection[Any], table: TargetTable) -> int:
    row = connection.execute(SQL("SELECT count(*) FROM {}").format(table.identifier)).fetchone()
    return int(row[0]) if row else 0


class _Compared(NamedTuple):
    """One table in both servers."""

    table: str
    """Its name in SQL."""
    rows: int
    """How many rows it has here."""
    source_rows: int
    equal: bool
    """Whether the rows are the same, in any order."""


def compare_tables(here: str, source: str, tables: Iterable[TargetTable]) -> Iterator[_Compared]:
    """Yield how each table compares, in the columns that it had in the end.

    Args:
        here: A server: a connection string of libpq.
        source: The other one.
        tables: The tables, which both have.

    Raises ReplayError for a server that cannot be reached, or has no such table.
    """
    with connected(here) as one, connected(source) as other:
        for connection in (one, other):
            connection.execute("SET datestyle = ISO; SET timezone = 'UTC'; SET extra_float_digits = 3")
        for table in tables:
            mine, theirs = _checksum(one, table), _checksum(other, table)
            yield _Compared(table.qualified, mine[0], theirs[0], mine == theirs)


def _checksum(connection: psycopg.Connection[Any], table: TargetTable) -> tuple[int, int]:
    """Return the number of rows, and the sum of their hashes, which no order changes.

    Hashes are of bytes: those of UTF-8 say the same characters, whatever the encodings of the two databases.
    """
    hashed = "hashtextextended(encode(sha256(convert_to(ROW({})::text, 'UTF8')), 'hex'), 0)"
    query = SQL(f"SELECT count(*), coalesce(sum({hashed}::numeric), 0) FROM {{}}")
    columns = SQL(", ").join(map(Identifier, table.current))
    row = connection.execute(query.format(columns, table.identifier)).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


SUBSCRIPTION: Final = "pgoutput_replay"
"""The name of the subscription, and of its slot."""
_OLDEST: Final = 150000
_TABLES: Final = ("r", "p")
_FOUND: Final = """SELECT c.relkind, ARRAY(SELECT attname::text FROM pg_catalog.pg_attribute
    WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped)
    FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass(%s)"""
# What a role has for its own sessions, such as lock_timeout, must not end a replay, which waits for a subscription.
_NO_TIMEOUTS: Final = """SELECT pg_catalog.set_config(name, '0', false) FROM pg_catalog.pg_settings
    WHERE name ~ '^(statement|lock|transaction|idle_session|idle_in_transaction_session)_timeout$'"""
_LEFT: Final = """SELECT FROM pg_catalog.pg_subscription s JOIN pg_catalog.pg_database d ON d.oid = s.subdbid
    WHERE s.subname = %s AND d.datname = pg_catalog.current_database()"""


class ReplayError(PgoutputError):
    """A log could not be brought into a server; the text says what to do."""


@contextmanager
def connected(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """Yield a connection; what psycopg raises in the block is raised as ReplayError, and shows no password."""
    try:
        # Names and rows of any encoding: the server converts, or says what it cannot.
        with psycopg.connect(dsn, autocommit=True, client_encoding="UTF8") as connection:
            connection.execute(_NO_TIMEOUTS)
            yield connection
    except psycopg.ProgrammingError as error:
        if error.diag.message_primary is None:  # its text has a part of the connection string
            raise ReplayError("the connection string cannot be read: write it as libpq takes it") from None
        raise ReplayError(_told(error)) from error
    except psycopg.Error as error:
        raise ReplayError(_told(error)) from error


def _check_target(connection: psycopg.Connection[Any], tables: Iterable[TargetTable]) -> None:
    """Check the server, and those of the tables that it has; raise ReplayError."""
    if connection.info.server_version < _OLDEST:
        raise ReplayError(
            "replay needs PostgreSQL 15 or newer as its target: older servers do not report errors of subscriptions"
        )
    if connection.execute(_LEFT, (SUBSCRIPTION,)).fetchone() is not None:
        alter = f"ALTER SUBSCRIPTION {SUBSCRIPTION}"
        raise ReplayError(
            "a replay is running, or an interrupted one left its subscription behind; then drop it, empty the tables, "
            f"and start again: {alter} DISABLE; {alter} SET (slot_name = NONE); DROP SUBSCRIPTION {SUBSCRIPTION}"
        )
    for table in tables:
        found = connection.execute(_FOUND, (table.qualified,)).fetchone()
        if found is not None:
            _check(connection, table, *found)


def _check(connection: psycopg.Connection[Any], table: TargetTable, kind: str, columns: list[str]) -> None:
    name = table.qualified
    if kind not in _TABLES:
        raise ReplayError(f"{name} is not a table: rename or drop it, and replay creates the table")
    if missing := [column for column in table.columns if column not in columns]:
        named = ", ".join(map(quote_identifier, missing))
        raise ReplayError(
            f"{name} is missing columns that the log has: add {named}, or drop the table, and replay creates it"
        )
    if connection.execute(SQL("SELECT FROM {} LIMIT 1").format(table.identifier)).fetchone() is not None:
        raise ReplayError(f"{name} has rows: replay into an empty table, or drop it, and replay creates it")


def _told(error: psycopg.Error) -> str:
    text = error.diag.message_primary or str(error).strip()
    return f"{text} Hint: {error.diag.message_hint}" if error.diag.message_hint else text


def target_tables(descriptions: Iterable[Description], index: SegmentIndex) -> list[TargetTable]:
    """Return the tables that the descriptions of a log, in their order, are about; ``index`` is the log's.

    Of tables that had the same name the one that exists has it, else the last one: the others were dropped, or renamed
    unseen. A column that was renamed has its last name from the beginning, where the log knows that it is the same one;
    one that was dropped, and whose name another one has, is called ``name_dropped_number``.
    """
    by_oid: dict[int, list[Description]] = {}
    for description in descriptions:
        by_oid.setdefault(description.relation.relation_oid, []).append(description)
    readings = {oid: several[-1] for oid, several in table_readings(index).items()}
    lineage = lineage_of(index)
    existing = {(each.namespace, each.name) for oid, each in readings.items() if not each.gone and oid not in by_oid}
    used = {oid: [*filter(lineage.has_rows, several)] or several for oid, several in by_oid.items()}
    tables = [_table(several, lineage, readings.get(oid)) for oid, several in used.items()]
    tables.sort(key=lambda table: (not table.dropped, used[table.relation_oid][-1].seq))
    by_name = {(table.namespace, table.name): table for table in tables}
    return [table for name, table in by_name.items() if not (table.dropped and name in existing)]


def _table(descriptions: Sequence[Description], lineage: Lineage, reading: TableReading | None) -> TargetTable:
    latest, numbers = descriptions[-1].relation, [lineage.numbers(each) for each in descriptions]
    newer = reading if reading and not reading.gone and lineage.follows(reading, descriptions[-1]) else None
    described = ([column.name for column in each.relation.columns] for each in descriptions)
    ids = column_ids(zip(described, numbers, strict=True))
    called = _called(descriptions, ids, {c.number: c.name for c in newer.columns if not c.dropped} if newer else {})
    columns = {
        name: (column, each)
        for each, names in zip(descriptions, called, strict=True)
        for name, column in zip(names, each.relation.columns, strict=True)
    }
    if newer:
        sent = {number for own in numbers for number in own or ()}
        added = {
            each.name: each
            for each in newer.columns
            if each.published and not each.dropped and each.number not in sent and each.name not in columns
        }
        columns |= {
            name: (RelationColumn(0, name, each.type, each.modifier), descriptions[-1]) for name, each in added.items()
        }
    is_full = latest.replica_identity == RelationReplicaIdentity.FULL
    named = zip(called[-1], latest.columns, strict=True)
    key = () if is_full else tuple(name for name, column in named if column.flags & RelationColumnFlags.KEY)
    read = reading.columns if reading else ()
    older = {column.name: column.missing for column in read if column.missing is not None}
    for names, own in zip(called, numbers, strict=True):
        values = (
            (name, lineage.missing(latest.relation_oid, number)) for name, number in zip(names, own or (), strict=False)
        )
        older |= {name: value for name, value in values if value is not None}
    name = (newer.namespace, newer.name) if newer else (latest.namespace or "pg_catalog", latest.name)
    by_seq = {each.seq: names for each, names in zip(descriptions, called, strict=True)}
    current = called[-1]
    if newer and numbers[-1] is not None:
        is_there = {column.number for column in newer.columns if not column.dropped}
        current = tuple(name for name, number in zip(current, numbers[-1], strict=True) if number in is_there)
        current += tuple(added)
    dropped = reading is not None and reading.gone
    return TargetTable(latest.relation_oid, *name, columns, key, current, older, by_seq, dropped)


def _called(
    descriptions: Sequence[Description], ids: Sequence[tuple[ColumnId, ...]], newest: Mapping[int, str]
) -> list[tuple[str, ...]]:
    """Return what the columns of each description are called: as the last one that has them calls them.

    ``newest`` has the names, by number, that columns got after the last description.
    """
    names, latest = dict[ColumnId, str](newest.items()), descriptions[-1]
    taken = {*newest.values()} or {column.name for column in latest.relation.columns}
    for description, own in zip(reversed(descriptions), reversed(ids), strict=True):
        for one, column in zip(own, description.relation.columns, strict=True):
            if one not in names:
                is_other = isinstance(one, int) and column.name in taken and (description is not latest or bool(newest))
                names[one] = f"{column.name}_dropped_{one}" if is_other else column.name
                taken.add(names[one])
    return [tuple(names[one] for one in own) for own in ids]


def _create_tables(connection: psycopg.Connection[Any], tables: Iterable[TargetTable]) -> list[str]:
    """Create the tables that are not there, and their schemas; return the names of those that were created.

    Raises PgoutputError for a column whose type the server does not have, and for a name that is not UTF-8.
    """
    created = []
    for table in tables:
        name = table.qualified
        for each in (name, *table.columns):
            try:
                each.encode()
            except UnicodeEncodeError:
                raise PgoutputError(
                    f"{name!r}: the name {each!r} is not UTF-8: a table with such a name cannot be created elsewhere"
                ) from None
        if connection.execute("SELECT to_regclass(%s)", (name,)).fetchone() == (None,):
            for statement in _statements(connection, table):
                connection.execute(statement)
            created.append(name)
    return created


def _statements(connection: psycopg.Connection[Any], table: TargetTable) -> Iterator[Composed]:
    columns: list[Composable] = []
    for name, described in table.columns.items():
        default = SQL(" DEFAULT {}").format(Literal(table.older[name])) if name in table.older else SQL("")
        columns.append(SQL("{} {}{}").format(Identifier(name), SQL(_type(connection, table, *described)), default))
    if table.key:
        columns.append(SQL("PRIMARY KEY ({})").format(SQL(", ").join(map(Identifier, table.key))))
    yield SQL("CREATE SCHEMA IF NOT EXISTS {}").format(Identifier(table.namespace))
    yield SQL("CREATE TABLE {} ({})").format(table.identifier, SQL(", ").join(columns))
    if not table.key:
        yield SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(table.identifier)


def _type(
    connection: psycopg.Connection[Any], table: TargetTable, column: RelationColumn, description: Description
) -> str:
    """Return the SQL name of a column's type."""
    if column.type_oid < FIRST_USER_OID:
        query = "SELECT pg_catalog.format_type(%s, %s)"
        row = connection.execute(query, (column.type_oid, column.type_modifier)).fetchone()
        return str(row[0]) if row else ""
    known = description.types.get(column.type_oid)
    name = full_name(known) if known else ""
    if not known or connection.execute("SELECT to_regtype(%s)", (name,)).fetchone() == (None,):
        told = name or f"of OID {column.type_oid}"
        title = f"{table.qualified}.{quote_identifier(column.name)}"
        raise PgoutputError(f"{title}: the server has no type {told}: create it, or the table, and begin again")
    return name
