"""Publications: made, checked, and read for what they do to the tables that they publish."""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import sql

from pgoutput_construct.catalog_queries import PUBLICATION_NAMES, PUBLICATIONS, PUBLISHED_TABLES, for_release
from pgoutput_construct.errors import PgoutputError, ReplicationError
from pgoutput_construct.postgres.connection import Connection, ask, current_lsn, fetch, run
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
    """Its name."""
    operations: tuple[str, ...]
    """Which of insert, update, delete and truncate it publishes."""
    without_identity: tuple[str, ...]
    """Its tables without a replica identity, qualified: the server refuses updates and deletes that it publishes."""

    unsent: tuple[str, ...] = ()
    """Partitions of its tables, qualified, of which the server sends nothing: foreign tables, and unlogged ones."""

    with_sequences: bool = False
    """It publishes all sequences (PostgreSQL 19), of which the stream has nothing."""

    without_tables: bool = False
    """It publishes no table, and none that is created later."""

    @property
    def has_sequences_alone(self) -> bool:
        """Whether it is FOR ALL SEQUENCES and nothing else."""
        return self.with_sequences and self.without_tables

    def warnings(self) -> list[str]:
        """Say what is probably not meant, each with its remedy."""
        found = []
        if left := [name for name in _OPERATIONS if name not in self.operations]:
            found.append(
                f"publication {self.name!r} publishes {', '.join(self.operations) or 'nothing'}, but no "
                f"{' and no '.join(left)}: the log will not have those (ALTER PUBLICATION ... SET (publish = ...))"
            )
        if self.without_identity and {"update", "delete"} & set(self.operations):
            found.append(
                f"publication {self.name!r} has tables without a replica identity, on which the server refuses UPDATE "
                f"and DELETE: {', '.join(self.without_identity)}; give each a primary key, or run ALTER TABLE ... "
                "REPLICA IDENTITY FULL, or take it out of the publication"
            )
        if self.unsent:
            found.append(
                f"publication {self.name!r} has partitions of which the server sends nothing, since they are foreign "
                f"or unlogged: {', '.join(self.unsent)}; the log will lack their rows: capture a foreign table where "
                "its rows are, and run ALTER TABLE ... SET LOGGED on an unlogged one"
            )
        if self.with_sequences:
            found.append(
                f"publication {self.name!r} publishes sequences: subscriptions copy their values, but the stream has "
                "nothing of them, and neither will the log"
            )
        return found


def missing_publications(connection: Connection, publications: Iterable[str]) -> list[str]:
    """Return those of ``publications`` that the database of ``connection`` does not have."""
    names = list(publications)
    known = {row["name"] for row in ask(connection, PUBLICATION_NAMES, publications=names)}
    return [name for name in names if name not in known]


def check_publications(connection: Connection, publications: Iterable[str]) -> None:
    """Raise ReplicationError for the first of ``publications`` that the database of ``connection`` does not have."""
    for name in missing_publications(connection, publications):
        create = sql.SQL("CREATE PUBLICATION {} FOR TABLE ...").format(sql.Identifier(name))
        raise ReplicationError(
            f"there is no publication {name!r} in database {connection.info.dbname!r}; run "
            f"{create.as_string(connection)} (naming the tables: each needs a primary key or another replica "
            "identity), and only then create the slot: decoding sees the catalog as it was when each change was made"
        )


def check_tables(publications: Sequence[PublicationFacts]) -> None:
    """Raise ReplicationError where all ``publications`` publish sequences alone: nothing of them is streamed."""
    if publications and all(facts.has_sequences_alone for facts in publications):
        names = " and ".join(repr(facts.name) for facts in publications)
        raise ReplicationError(
            f"nothing would ever come from publication {names}, which publishes sequences alone (FOR ALL SEQUENCES): "
            "subscriptions copy their values, the stream has nothing of them; name a publication of tables, or publish "
            "these, too (ALTER PUBLICATION ... SET ALL TABLES, ALL SEQUENCES)"
        )


def read_publications(connection: Connection, publications: Sequence[str]) -> list[PublicationFacts]:
    """Read what ``publications`` publish; those that there are not are left out."""
    return [
        PublicationFacts(
            row["name"],
            tuple(row["operations"]),
            tuple(row["without_identity"]),
            tuple(row["unsent"]),
            row["with_sequences"],
            row["without_tables"],
        )
        for row in ask(connection, PUBLICATIONS, publications=list(publications))
    ]


@dataclass(frozen=True)
class NewPublication:
    """What a publication is created for where it does not exist."""

    tables: tuple[tuple[str, str], ...]
    """Its tables, each by schema and name."""
    schemas: tuple[str, ...] = ()
    """Schemas whose tables it publishes, those that are created later included."""
    operations: tuple[str, ...] = ()
    """What it publishes, of OPERATIONS; nothing for what the server does by itself, which is all of them."""

    @classmethod
    def parse(cls, names: Iterable[str], operations: Iterable[str] = ()) -> "NewPublication":
        """Read names as SQL has them, and ``schema.*`` for a whole schema.

        Raises PgoutputError for what is no name, and for operations that a publication does not have.
        """
        found = [split_pattern(name) for name in names]
        given = tuple(dict.fromkeys(operations))
        if unknown := sorted({*given} - {*_OPERATIONS}):
            raise PgoutputError(f"a publication does not publish {unknown[0]!r}, but {', '.join(_OPERATIONS)}")
        tables = tuple(dict.fromkeys((schema, name) for schema, name in found if name is not None))
        return cls(tables, tuple(dict.fromkeys(schema for schema, name in found if name is None)), given)


def ensure_publication(connection: Connection, name: str, wanted: NewPublication) -> bool:
    """Create the publication ``name`` where it does not exist; return whether it was created.

    Raises ReplicationError for a table or schema that does not exist; for tables without a replica identity, unless
    neither updates nor deletes are published (the server refuses those of such a table once it is published); and when
    the publication exists without one of the tables, schemas or operations.
    """
    if not wanted.tables and not wanted.schemas:
        raise ReplicationError(f"name the tables of the publication {name!r}")
    for table in wanted.tables:
        check_table(connection, table)
    _check_schemas(connection, wanted.schemas)
    if missing_publications(connection, [name]):
        _create(connection, name, wanted)
        return True
    _check_existing(connection, name, wanted)
    return False


def find_table(connection: Connection, table: str) -> tuple[str, str]:
    """Return schema and name of a table that is written as in SQL, ``public`` where no schema is named.

    Raises ReplicationError where it does not exist, and PgoutputError for what is no name of a table.
    """
    names = split_name(table)
    check_table(connection, names)
    return names


def check_table(connection: Connection, names: tuple[str, str]) -> None:
    """Raise ReplicationError unless a table of this schema and name exists."""
    query = """SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p')"""
    if not fetch(connection, query, names, doing="the table cannot be looked up"):
        raise ReplicationError(f"there is no table {qualified_name(*names)} in database {connection.info.dbname!r}")


def _check_schemas(connection: Connection, schemas: Sequence[str]) -> None:
    if schemas and connection.info.server_version < _SCHEMAS_SINCE:
        raise ReplicationError("publications of whole schemas need PostgreSQL 15: name the tables")
    query = "SELECT nspname FROM pg_namespace WHERE nspname = ANY(%s)"
    known = {schema for (schema,) in fetch(connection, query, [list(schemas)])} if schemas else set()
    for schema in schemas:
        if schema not in known:
            raise ReplicationError(
                f"there is no schema {quote_identifier(schema)} in database {connection.info.dbname!r}"
            )


def _create(connection: Connection, name: str, wanted: NewPublication) -> None:
    """Create a publication, unless that would have the server refuse updates and deletes of its tables."""
    objects = [sql.SQL("TABLE {}").format(sql.Identifier(*names)) for names in wanted.tables]
    objects += [sql.SQL("TABLES IN SCHEMA {}").format(sql.Identifier(schema)) for schema in wanted.schemas]
    create = sql.SQL("CREATE PUBLICATION {} FOR {}").format(sql.Identifier(name), sql.SQL(", ").join(objects))
    if wanted.operations:
        create += sql.SQL(" WITH (publish = {})").format(sql.Literal(", ".join(wanted.operations)))
    # In a transaction that nobody else sees: only the publication itself says which leaves its tables have.
    with connection.transaction():
        run(connection, create.as_string(connection), doing=f"publication {name!r} cannot be created")
        (facts,) = read_publications(connection, [name])
        if facts.without_identity and {"update", "delete"} & {*facts.operations}:
            raise ReplicationError(
                f"{', '.join(facts.without_identity)} without a replica identity: once it is published the server "
                "refuses UPDATE and DELETE on such a table; give it a primary key, or run ALTER TABLE ... REPLICA "
                "IDENTITY FULL, before it is published; or, where rows are only inserted, publish neither of both "
                "(--publish insert,truncate, publish=('insert', 'truncate'))"
            )


def _check_existing(connection: Connection, name: str, wanted: NewPublication) -> None:
    """Raise ReplicationError where a publication that exists lacks something of what is asked for."""
    if missing := {*wanted.tables} - _read_members(connection, [name]):
        lacked = ", ".join(sorted(qualified_name(*names) for names in missing))
        raise ReplicationError(
            f"publication {name!r} exists without {lacked}; run ALTER PUBLICATION ... ADD TABLE ... (SET ALL TABLES, "
            "where it leaves them out by EXCEPT), or choose another name"
        )
    query = """SELECT s FROM unnest(%s::text[]) s WHERE NOT EXISTS (SELECT FROM pg_publication p
        LEFT JOIN pg_publication_namespace m ON m.pnpubid = p.oid LEFT JOIN pg_namespace n ON n.oid = m.pnnspid
        WHERE p.pubname = %s AND (n.nspname = s OR (p.puballtables AND NOT EXISTS (
            SELECT FROM pg_publication_rel e JOIN pg_class c ON c.oid = e.prrelid
            WHERE e.prpubid = p.oid AND c.relnamespace = to_regnamespace(quote_ident(s)))))) ORDER BY 1"""
    unpublished = fetch(connection, query, [list(wanted.schemas), name]) if wanted.schemas else []
    if unpublished:
        raise ReplicationError(
            f"publication {name!r} exists without the schema {quote_identifier(unpublished[0][0])}; run ALTER "
            "PUBLICATION ... ADD TABLES IN SCHEMA ... (SET ALL TABLES, where it leaves tables of it out by EXCEPT), or "
            "choose another name"
        )
    for facts in read_publications(connection, [name]) if wanted.operations else ():
        if {*facts.operations} != {*wanted.operations}:
            raise ReplicationError(
                f"publication {name!r} exists, and publishes {', '.join(facts.operations) or 'nothing'}, not "
                f"{', '.join(wanted.operations)}; run ALTER PUBLICATION ... SET (publish = ...), or choose another name"
            )


_MEMBERS = """WITH RECURSIVE {published}
    SELECT DISTINCT n.nspname, c.relname FROM branches b JOIN pg_class c ON c.oid = b.oid
    JOIN pg_namespace n ON n.oid = c.relnamespace"""


def read_published(connection: Connection, publications: Sequence[str]) -> dict[int, tuple[str, str]]:
    """Return the schema and the name of each table that is published, by the OID that the stream names it by."""
    rows = ask(connection, PUBLISHED_TABLES, publications=list(publications))
    return {row["oid"]: (row["schema"], row["name"]) for row in rows}


def _read_members(connection: Connection, publications: Sequence[str]) -> set[tuple[str, str]]:
    """Return the schemas and the names of all tables that publications have: partitioned ones, and their partitions."""
    query, arguments = for_release(_MEMBERS, connection.info.server_version), {"publications": list(publications)}
    return set(fetch(connection, query, arguments, doing="the publications cannot be read"))


_SKIPPED = "55000"
_QUOTED = '["«»„“”「」] ?{} ?["«»„“”「」]'
"""A name in a message of the server, in whatever language (lc_messages)."""


class Notices:
    """Listens to the warnings of one replication connection.

    PostgreSQL 18 goes on without a publication that was dropped: it says ``WARNING: skipped loading publication``
    (pgoutput's LoadPublications), skips the changes, and moves past them. Versions before end with an error.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        """Listen to ``connection`` from now on."""
        self._skipped: str | None = None
        connection.add_notice_handler(self._note)

    def check(self) -> None:
        """Raise ReplicationError when the server skips changes; call it before what it sent is taken in."""
        if self._skipped is not None:
            raise LostPublicationError(self._skipped, sqlstate=_SKIPPED)

    def _note(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.sqlstate == _SKIPPED and self._skipped is None:
            self._skipped = notice.message_primary or "a publication is skipped"


class LostPublicationError(ReplicationError):
    """A publication is not among what the decoded changes know: it was dropped, or created after they were made."""

    def __init__(self, what: str, *, sqlstate: str | None = None) -> None:
        """Report that ``what`` happened."""
        super().__init__(
            f"{what}. It was dropped, or created too late: decoding sees the catalog as it was when each change was "
            "made, so creating it again brings back only what is changed afterwards. No change was skipped and then "
            "confirmed. Either capture with the publications that are left; or create it again, then a new slot, and "
            "begin a new log with an initial copy of the tables",
            sqlstate=sqlstate,
        )
        self.what = what
        """What the server said, or lacks."""

    def with_remedy(self, connection: Connection, asked: Iterable[str], logged: Iterable[str]) -> ReplicationError:
        """Return an error with the way past it where the publication exists by now; itself where it does not.

        All that was changed before the end of the WAL is captured with the publications from before: ``asked``
        without the late one, or else those that the log was ``logged`` with. The late one was created before that
        end, so it is known to what is decoded afterwards. (A transaction that had begun before it was created, and
        commits after that end, still does not know it: then this error comes again, with a later position.)
        """
        names = list(asked)
        missing = set(missing_publications(connection, [*names, *logged]))
        late = [name for name in names if re.search(_QUOTED.format(re.escape(name)), self.what)]
        before = [name for name in names if name not in late] or [name for name in logged if name not in late]
        if not late or not before or missing & {*late, *before}:
            return self
        until = current_lsn(connection)
        options = " ".join(f"--publication {shlex.quote(name)}" for name in before)
        return ReplicationError(
            f"{self.what}. The publication {', '.join(map(repr, late))} exists, but is younger than changes that the "
            "slot has yet to send: decoding sees the catalog as it was when each change was made. No change was "
            f"skipped and then confirmed. Capture first with the publications from before, with {options} --until-lsn "
            f"{until} (publications={before!r}, until_lsn=Lsn('{until}')), and then with those that you have named. "
            "What was changed up to that position in tables that the late one alone publishes is not in the log; "
            "--snapshot copies them, and so does pgoutput snapshot",
            sqlstate=self.sqlstate,
        )
