"""Publications: creating and checking them, and warnings about what they will not publish."""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import sql

from pgoutput_construct.catalog_queries import PUBLICATION_NAMES, PUBLICATIONS, PUBLISHED_TABLES, for_release
from pgoutput_construct.errors import PgoutputError, ReplicationError
from pgoutput_construct.postgres.connection import Connection, current_lsn, fetch, fetch_named, reading_answer, run
from pgoutput_construct.stream.identifiers import qualified_name, quote_identifier, split_name, split_pattern

__all__ = [
    "LostPublicationError",
    "NewPublication",
    "Notices",
    "PublicationFacts",
    "check_publications",
    "check_tables",
    "ensure_publication",
    "find_table",
    "missing_publications",
    "read_publications",
    "read_published",
]


_OPERATIONS: Final = ("insert", "update", "delete", "truncate")

_SCHEMAS_SINCE: Final = 150000


@dataclass(frozen=True)
class PublicationFacts:
    """What a publication publishes."""

    name: str
    """The name."""
    operations: tuple[str, ...]
    """The operations that it publishes, of insert, update, delete and truncate."""
    without_identity: tuple[str, ...]
    """Qualified names of its tables without a replica identity: the server refuses their updates and deletes."""

    unsent: tuple[str, ...] = ()
    """Qualified names of foreign and unlogged partitions of its tables, which are never replicated."""

    with_sequences: bool = False
    """Whether it publishes all sequences (PostgreSQL 19), which the stream does not contain."""

    without_tables: bool = False
    """Whether it publishes no table, and none that is created later."""

    other_identity: tuple[str, ...] = ()
    """Qualified names of partitions that are published via a root with another replica identity. The stream describes
    their rows by the root's (``logicalrep_write_rel``), and has of an old row what the partition's own logs
    (``ExtractReplicaIdentity``)."""

    detach_pending: tuple[str, ...] = ()
    """Qualified names of partitions whose DETACH CONCURRENTLY is pending: it waits, or was cancelled while it did."""

    @property
    def has_sequences_alone(self) -> bool:
        """Whether it is FOR ALL SEQUENCES and nothing else."""
        return self.with_sequences and self.without_tables

    def warnings(self) -> list[str]:
        """Return warnings about what is probably a mistake, each with a remedy."""
        found = []
        if left := [name for name in _OPERATIONS if name not in self.operations]:
            found.append(
                f"publication {self.name!r} publishes {', '.join(self.operations) or 'nothing'}, but no "
                f"{' and no '.join(left)}: the log will lack these (ALTER PUBLICATION ... SET (publish = ...))"
            )
        if self.without_identity and {"update", "delete"} & set(self.operations):
            found.append(
                f"publication {self.name!r} has tables without a replica identity, on which the server refuses UPDATE "
                f"and DELETE: {', '.join(self.without_identity)}; give each a primary key, or run ALTER TABLE ... "
                "REPLICA IDENTITY FULL, or take it out of the publication"
            )
        if self.unsent:
            found.append(
                f"publication {self.name!r} has foreign or unlogged partitions, which are never replicated: "
                f"{', '.join(self.unsent)}; the log will lack their rows: capture a foreign table on its own server, "
                "and run ALTER TABLE ... SET LOGGED on an unlogged one"
            )
        if self.other_identity:
            found.append(
                f"publication {self.name!r} publishes partitions via a root that has another replica identity: "
                f"{', '.join(self.other_identity)}; updates and deletes of their rows cannot be applied: run ALTER "
                "TABLE ... REPLICA IDENTITY on each, to have the root's, then pgoutput snapshot"
            )
        if self.detach_pending:
            found.append(
                f"publication {self.name!r} has partitions whose DETACH CONCURRENTLY is pending: "
                f"{', '.join(self.detach_pending)}; the server no longer shows and publishes their rows as those of "
                "the partitioned table: run ALTER TABLE ... DETACH PARTITION ... FINALIZE, before anything is written "
                "to them: for a publication FOR ALL TABLES the server can crash when it decodes such a change"
            )
        if self.with_sequences:
            found.append(
                f"publication {self.name!r} publishes sequences: subscriptions copy their values, but they are not in "
                "the stream, so they will not be in the log"
            )
        return found


def missing_publications(connection: Connection, publications: Iterable[str]) -> list[str]:
    """Return those of ``publications`` that the database of ``connection`` does not have."""
    names = list(publications)
    known = {row["name"] for row in fetch_named(connection, PUBLICATION_NAMES, publications=names)}
    return [name for name in names if name not in known]


def check_publications(connection: Connection, publications: Iterable[str]) -> None:
    """Raise ReplicationError for the first of ``publications`` that the database of ``connection`` does not have."""
    for name in missing_publications(connection, publications):
        create = sql.SQL("CREATE PUBLICATION {} FOR TABLE ...").format(sql.Identifier(name))
        raise ReplicationError(
            f"publication {name!r} does not exist in database {connection.info.dbname!r}; run "
            f"{create.as_string(None)} (naming the tables: each needs a primary key or another replica "
            "identity), and create the slot after that: decoding sees the catalog as it was when each change was made"
        )


def check_tables(publications: Sequence[PublicationFacts]) -> None:
    """Raise ReplicationError if all ``publications`` publish only sequences, which are never streamed."""
    if publications and all(facts.has_sequences_alone for facts in publications):
        names = " and ".join(repr(facts.name) for facts in publications)
        raise ReplicationError(
            f"publication {names} publishes only sequences (FOR ALL SEQUENCES), which are never in the stream: "
            "subscriptions copy their values; name a publication of tables, or let it publish tables too "
            "(ALTER PUBLICATION ... SET ALL TABLES, ALL SEQUENCES)"
        )


def read_publications(connection: Connection, publications: Sequence[str]) -> list[PublicationFacts]:
    """Read what ``publications`` publish; those that do not exist are skipped."""
    rows = fetch_named(connection, PUBLICATIONS, publications=list(publications))
    with reading_answer(PUBLICATIONS.purpose):
        return [
            PublicationFacts(
                row["name"],
                tuple(row["operations"]),
                tuple(row["without_identity"]),
                tuple(row["unsent"]),
                row["with_sequences"],
                row["without_tables"],
                tuple(row["other_identity"]),
                tuple(row["detach_pending"]),
            )
            for row in rows
        ]


@dataclass(frozen=True)
class NewPublication:
    """The tables and operations of a publication to create."""

    tables: tuple[tuple[str, str], ...]
    """The tables, by schema and name."""
    schemas: tuple[str, ...] = ()
    """Schemas all of whose tables it publishes, including those that are created later."""
    operations: tuple[str, ...] = ()
    """The operations that it publishes; empty for the server's default, which is all of them."""

    @classmethod
    def parse(cls, names: Iterable[str], operations: Iterable[str] = ()) -> "NewPublication":
        """Parse table names as in SQL, and ``schema.*`` for a whole schema.

        Raises PgoutputError for invalid names and unknown operations.
        """
        found = [split_pattern(name) for name in names]
        given = tuple(dict.fromkeys(operations))
        if unknown := sorted({*given} - {*_OPERATIONS}):
            raise PgoutputError(f"unknown operation {unknown[0]!r} of a publication: {', '.join(_OPERATIONS)}")
        tables = tuple(dict.fromkeys((schema, name) for schema, name in found if name is not None))
        return cls(tables, tuple(dict.fromkeys(schema for schema, name in found if name is None)), given)


def ensure_publication(connection: Connection, name: str, requested: NewPublication) -> bool:
    """Create a publication if it does not exist; return whether it was created.

    Args:
        connection: A connection whose role may create it.
        name: The name of the publication.
        requested: Its tables, schemas and operations.

    Raises:
        ReplicationError: A table or schema does not exist; a table has no replica identity although updates or deletes
            are published, which the server would then refuse; or the publication exists without one of the tables,
            schemas or operations.
    """
    if not requested.tables and not requested.schemas:
        raise ReplicationError(f"name the tables of the publication {name!r}")
    for table in requested.tables:
        check_table(connection, table)
    _check_schemas(connection, requested.schemas)
    if missing_publications(connection, [name]):
        _create(connection, name, requested)
        return True
    _check_existing(connection, name, requested)
    return False


def find_table(connection: Connection, table: str) -> tuple[str, str]:
    """Return the schema and name of a table whose name is written as in SQL, by default in the schema ``public``.

    Raises ReplicationError if it does not exist, and PgoutputError for an invalid name.
    """
    names = split_name(table)
    check_table(connection, names)
    return names


def check_table(connection: Connection, names: tuple[str, str]) -> None:
    """Raise ReplicationError unless a table with this schema and name exists."""
    query = """SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p')"""
    if not fetch(connection, query, names, doing="the table cannot be looked up"):
        raise ReplicationError(f"table {qualified_name(*names)} does not exist in database {connection.info.dbname!r}")


def _check_schemas(connection: Connection, schemas: Sequence[str]) -> None:
    if schemas and connection.info.server_version < _SCHEMAS_SINCE:
        raise ReplicationError("publications of whole schemas need PostgreSQL 15: name the tables instead")
    query = "SELECT nspname FROM pg_namespace WHERE nspname = ANY(%s)"
    known = {schema for (schema,) in fetch(connection, query, [list(schemas)])} if schemas else set()
    for schema in schemas:
        if schema not in known:
            raise ReplicationError(
                f"schema {quote_identifier(schema)} does not exist in database {connection.info.dbname!r}"
            )


def _create(connection: Connection, name: str, requested: NewPublication) -> None:
    """Create a publication, unless the server would then refuse updates and deletes of its tables."""
    objects = [sql.SQL("TABLE {}").format(sql.Identifier(*names)) for names in requested.tables]
    objects += [sql.SQL("TABLES IN SCHEMA {}").format(sql.Identifier(schema)) for schema in requested.schemas]
    create = sql.SQL("CREATE PUBLICATION {} FOR {}").format(sql.Identifier(name), sql.SQL(", ").join(objects))
    if requested.operations:
        create += sql.SQL(" WITH (publish = {})").format(sql.Literal(", ".join(requested.operations)))
    # In one transaction, so that nobody sees it before the check: the leaves of its tables are known only afterwards.
    with connection.transaction():
        run(connection, create.as_string(None), doing=f"publication {name!r} cannot be created")
        (facts,) = read_publications(connection, [name])
        if facts.without_identity and {"update", "delete"} & {*facts.operations}:
            raise ReplicationError(
                f"{', '.join(facts.without_identity)} without a replica identity: once such a table is published, the "
                "server refuses UPDATE and DELETE on it; first give it a primary key, or run ALTER TABLE ... REPLICA "
                "IDENTITY FULL; or, if rows are only inserted, publish neither updates nor deletes "
                "(--publish insert,truncate, publish=('insert', 'truncate'))"
            )


def _check_existing(connection: Connection, name: str, requested: NewPublication) -> None:
    """Raise ReplicationError if an existing publication lacks one of the tables, schemas or operations."""
    if missing := {*requested.tables} - _read_members(connection, [name]):
        lacked = ", ".join(sorted(qualified_name(*names) for names in missing))
        raise ReplicationError(
            f"publication {name!r} exists without {lacked}; run ALTER PUBLICATION ... ADD TABLE ... (SET ALL TABLES, "
            "if it excludes them by EXCEPT), or choose another name"
        )
    query = """SELECT s FROM unnest(%s::text[]) s WHERE NOT EXISTS (SELECT FROM pg_publication p
        LEFT JOIN pg_publication_namespace m ON m.pnpubid = p.oid LEFT JOIN pg_namespace n ON n.oid = m.pnnspid
        WHERE p.pubname = %s AND (n.nspname = s OR (p.puballtables AND NOT EXISTS (
            SELECT FROM pg_publication_rel e JOIN pg_class c ON c.oid = e.prrelid
            WHERE e.prpubid = p.oid AND c.relnamespace = to_regnamespace(quote_ident(s)))))) ORDER BY 1"""
    unpublished = fetch(connection, query, [list(requested.schemas), name]) if requested.schemas else []
    if unpublished:
        raise ReplicationError(
            f"publication {name!r} exists without the schema {quote_identifier(unpublished[0][0])}; run ALTER "
            "PUBLICATION ... ADD TABLES IN SCHEMA ... (SET ALL TABLES, if it excludes tables of it by EXCEPT), or "
            "choose another name"
        )
    for facts in read_publications(connection, [name]) if requested.operations else ():
        if {*facts.operations} != {*requested.operations}:
            raise ReplicationError(
                f"publication {name!r} exists and publishes {', '.join(facts.operations) or 'nothing'}, not "
                f"{', '.join(requested.operations)}; run ALTER PUBLICATION ... SET (publish = ...), or choose another "
                "name"
            )


_MEMBERS = """WITH RECURSIVE {published}
    SELECT DISTINCT n.nspname, c.relname FROM branches b JOIN pg_class c ON c.oid = b.oid
    JOIN pg_namespace n ON n.oid = c.relnamespace"""


def read_published(connection: Connection, publications: Sequence[str]) -> dict[int, tuple[str, str]]:
    """Return the schema and name of each published table, by the OID that the stream uses for it."""
    rows = fetch_named(connection, PUBLISHED_TABLES, publications=list(publications))
    return {row["oid"]: (row["schema"], row["name"]) for row in rows}


def _read_members(connection: Connection, publications: Sequence[str]) -> set[tuple[str, str]]:
    """Return the schemas and names of all tables of publications: partitioned tables and their partitions too."""
    query, arguments = for_release(_MEMBERS, connection.info.server_version), {"publications": list(publications)}
    return set(fetch(connection, query, arguments, doing="the publications cannot be read"))


_SKIPPED = "55000"
_QUOTED = '["«»„“”「」] ?{} ?["«»„“”「」]'
"""A quoted name in a message of the server, in any language (lc_messages)."""


class Notices:
    """Receives the warnings of one replication connection.

    If a publication was dropped, PostgreSQL 18 continues without it: it reports ``WARNING: skipped loading
    publication`` (pgoutput's LoadPublications) and skips its changes. Earlier versions end the stream with an error.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        """Register a notice handler with ``connection``."""
        self._skipped: str | None = None
        connection.add_notice_handler(self._note)

    def check(self) -> None:
        """Raise LostPublicationError if the server skips changes; call it before processing what it has sent."""
        if self._skipped is not None:
            raise LostPublicationError(self._skipped, sqlstate=_SKIPPED)

    def _note(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.sqlstate == _SKIPPED and self._skipped is None:
            self._skipped = notice.message_primary or "a publication is skipped"


class LostPublicationError(ReplicationError):
    """A publication does not exist in the catalog of a decoded change: it was dropped, or created after the change."""

    def __init__(self, what: str, *, sqlstate: str | None = None) -> None:
        """Describe the error; ``what`` is the server's message, or which publication is missing."""
        super().__init__(
            f"{what}. It was dropped, or created too late: decoding sees the catalog as it was when each change was "
            "made, so re-creating it publishes only later changes. No change was skipped and confirmed. Either capture "
            "with the remaining publications; or re-create it, then create a new slot, and start a new log with an "
            "initial copy of the tables",
            sqlstate=sqlstate,
        )
        self.what = what
        """The server's message, or which publication is missing."""

    def with_remedy(self, connection: Connection, requested: Iterable[str], logged: Iterable[str]) -> ReplicationError:
        """Return an error with a remedy if the publication exists by now; otherwise itself.

        Everything up to the current end of the WAL can be captured with the earlier publications: the requested ones
        without the late one, or those of the log. The late one was created before that LSN, so changes that are decoded
        afterwards find it. (A transaction that began before it was created and commits after that LSN still does not:
        then this error is raised again, with a later LSN.)

        Args:
            connection: A connection to the database.
            requested: The requested publications.
            logged: The publications of the last capture into the log.
        """
        names = list(requested)
        missing = set(missing_publications(connection, [*names, *logged]))
        late = [name for name in names if re.search(_QUOTED.format(re.escape(name)), self.what)]
        before = [name for name in names if name not in late] or [name for name in logged if name not in late]
        if not late or not before or missing & {*late, *before}:
            return self
        until = current_lsn(connection)
        options = " ".join(f"--publication {shlex.quote(name)}" for name in before)
        return ReplicationError(
            f"{self.what}. Publication {', '.join(map(repr, late))} exists, but was created after changes that the "
            "slot has yet to send: decoding sees the catalog as it was when each change was made. No change was "
            f"skipped and confirmed. First capture with the earlier publications: {options} --until-lsn "
            f"{until} (publications={before!r}, until_lsn=Lsn('{until}')), and then with the requested ones. "
            "Earlier changes of tables that only the late publication has are not in the log; "
            "--snapshot copies these tables, and so does pgoutput snapshot",
            sqlstate=self.sqlstate,
        )
