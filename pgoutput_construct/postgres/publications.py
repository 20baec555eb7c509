"""Publications: made, checked, and read for what they do to the tables that they publish."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from psycopg import sql

from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.membership import published_tables, read_members
from pgoutput_construct.postgres.queries import Connection, fetch, run

__all__ = [
    "PublicationFacts",
    "check_publications",
    "ensure_publication",
    "find_table",
    "missing_publications",
    "read_publications",
]

OPERATIONS = ("insert", "update", "delete", "truncate")

_WITHOUT_IDENTITY = """c.relreplident <> 'f' AND NOT EXISTS (
    SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisvalid
    AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident ELSE false END)"""


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

    def warnings(self) -> list[str]:
        """Say what is probably not meant, each with its remedy."""
        found = []
        if left := [name for name in OPERATIONS if name not in self.operations]:
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
        return found


def missing_publications(connection: Connection, publications: Iterable[str]) -> list[str]:
    """Return those of ``publications`` that the database of ``connection`` does not have."""
    known = {row[0] for row in fetch(connection, "SELECT pubname FROM pg_publication")}
    return [name for name in publications if name not in known]


def check_publications(connection: Connection, publications: Iterable[str]) -> None:
    """Raise ReplicationError for the first of ``publications`` that the database of ``connection`` does not have."""
    for name in missing_publications(connection, publications):
        create = sql.SQL("CREATE PUBLICATION {} FOR TABLE ...").format(sql.Identifier(name))
        raise ReplicationError(
            f"there is no publication {name!r} in database {connection.info.dbname!r}; run "
            f"{create.as_string(connection)} (naming the tables: each needs a primary key or another replica "
            "identity), and only then create the slot: decoding sees the catalog as it was when each change was made"
        )


def read_publications(connection: Connection, publications: Sequence[str]) -> list[PublicationFacts]:
    """Read what ``publications`` publish; those that there are not are left out."""
    query = f"""WITH RECURSIVE {published_tables(connection)} SELECT p.pubname, array_remove(ARRAY[
            CASE WHEN pubinsert THEN 'insert' END, CASE WHEN pubupdate THEN 'update' END,
            CASE WHEN pubdelete THEN 'delete' END, CASE WHEN pubtruncate THEN 'truncate' END], NULL),
        ARRAY(SELECT format('%%I.%%I', n.nspname, c.relname) FROM published m JOIN pg_class c ON c.oid = m.oid
              JOIN pg_namespace n ON n.oid = c.relnamespace
              WHERE m.publication = p.oid AND {_WITHOUT_IDENTITY} ORDER BY 1),
        ARRAY(SELECT format('%%I.%%I', n.nspname, c.relname) FROM unsent u JOIN pg_class c ON c.oid = u.oid
              JOIN pg_namespace n ON n.oid = c.relnamespace WHERE u.publication = p.oid ORDER BY 1)
        FROM wanted p ORDER BY pubname"""
    rows = fetch(connection, query, [list(publications)], doing="the publications cannot be read")
    return [PublicationFacts(row[0], *map(tuple, row[1:])) for row in rows]


def ensure_publication(connection: Connection, name: str, tables: Sequence[str]) -> bool:
    """Create the publication ``name`` for ``tables`` where there is none; return whether it was created.

    Tables are written as in SQL, ``public`` where no schema is named. Raises ReplicationError for a table that there
    is not or that has no replica identity (its updates would fail from then on), and when the publication exists
    without one of the tables.
    """
    if not tables:
        raise ReplicationError(f"name the tables of the publication {name!r}")
    found = [find_table(connection, table) for table in tables]
    for table, names in zip(tables, found, strict=True):
        _check_identity(connection, table, names)
    if missing_publications(connection, [name]):
        _create(connection, name, found)
        return True
    if missing := set(found) - read_members(connection, [name]):
        raise ReplicationError(
            f"publication {name!r} exists without {', '.join(sorted('.'.join(names) for names in missing))}; run ALTER "
            "PUBLICATION ... ADD TABLE ..., or choose another name"
        )
    return False


def find_table(connection: Connection, table: str) -> tuple[str, str]:
    """Return schema and name of a table that is written as in SQL, ``public`` where no schema is named.

    Raises ReplicationError where there is none.
    """
    query = """WITH parts AS (SELECT parse_ident(%s) AS name)
        SELECT n.nspname, c.relname FROM parts
        JOIN pg_class c ON c.relname = name[array_upper(name, 1)] AND c.relkind IN ('r', 'p')
        JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = CASE array_length(name, 1) WHEN 1 THEN 'public' ELSE name[1] END"""
    rows = fetch(connection, query, [table], doing=f"{table!r} is not the name of a table")
    if not rows:
        raise ReplicationError(f"there is no table {table!r} in database {connection.info.dbname!r}")
    namespace, name = rows[0]
    return str(namespace), str(name)


def _check_identity(connection: Connection, table: str, names: tuple[str, str]) -> None:
    query = f"""SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = %s AND c.relname = %s AND {_WITHOUT_IDENTITY}"""
    if fetch(connection, query, names):
        raise ReplicationError(
            f"table {table!r} has no replica identity: once it is published the server refuses UPDATE and DELETE on "
            "it; give it a primary key, or run ALTER TABLE ... REPLICA IDENTITY FULL, before it is published"
        )


def _create(connection: Connection, name: str, tables: Sequence[tuple[str, str]]) -> None:
    listed = sql.SQL(", ").join(sql.Identifier(*names) for names in tables)
    create = sql.SQL("CREATE PUBLICATION {} FOR TABLE {}").format(sql.Identifier(name), listed)
    run(connection, create.as_string(connection), doing=f"publication {name!r} cannot be created")
