"""Tables, columns and rows as of an LSN, where what the catalog says later stands in the log before it.

For each kind of DDL there is a table (``DDL``), and all are altered between two LSNs. What the server had at each LSN is
read from it then. A log that is read as of the LSN has the same, or says of the table that it does not know.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import current_lsn
from tests.postgres.shop import Shop, wait_until


@dataclass(frozen=True)
class Alteration:
    """Statements about a table ``{t}``, and rows that are written afterwards."""

    ddl: tuple[str, ...]
    rows: tuple[str, ...] = ()
    setup: tuple[str, ...] = ("CREATE TABLE {t} (id int PRIMARY KEY, v text)",)
    before: str = "INSERT INTO {t} VALUES ({n}, 'a')"


_AGAIN = "CREATE TABLE {t} (id int PRIMARY KEY, v text)"
_THIRD = "INSERT INTO {t} VALUES (3, 'c')"
_PARTITIONS = tuple(f"CREATE TABLE {{t}}_{n} PARTITION OF {{t}} FOR VALUES FROM ({n}) TO ({n + 1})" for n in (1, 2, 3))
DDL: Mapping[str, Alteration] = {
    "unaltered": Alteration((), (_THIRD,)),
    "dropped": Alteration(("DROP TABLE {t}",)),
    "column_dropped": Alteration(("ALTER TABLE {t} DROP v",), ("INSERT INTO {t} VALUES (3)",)),
    "column_dropped_unseen": Alteration(("ALTER TABLE {t} DROP v",)),
    "column_added": Alteration(("ALTER TABLE {t} ADD w int DEFAULT 5",), ("INSERT INTO {t} VALUES (3, 'c', 6)",)),
    "column_renamed": Alteration(("ALTER TABLE {t} RENAME v TO w",), (_THIRD,)),
    "column_renamed_unseen": Alteration(("ALTER TABLE {t} RENAME v TO w",)),
    "renamed": Alteration(("ALTER TABLE {t} RENAME TO {t}_now",), ("INSERT INTO {t}_now VALUES (3, 'c')",)),
    "renamed_unseen": Alteration(("ALTER TABLE {t} RENAME TO {t}_now",)),
    "retyped": Alteration(("ALTER TABLE {t} ALTER v TYPE int USING length(v)",), ("INSERT INTO {t} VALUES (3, 7)",)),
    "again": Alteration(("DROP TABLE {t}", _AGAIN), (_THIRD,)),
    "again_empty": Alteration(("DROP TABLE {t}", _AGAIN)),
    "replaced": Alteration(("ALTER TABLE {t} RENAME TO {t}_old", _AGAIN), (_THIRD,)),
    "moved": Alteration(("ALTER TABLE {t} SET SCHEMA other",), ("INSERT INTO other.{t} VALUES (3, 'c')",)),
    "detached": Alteration(
        ("ALTER TABLE {t} DETACH PARTITION {t}_1",),
        (_THIRD,),
        ("CREATE TABLE {t} (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)", *_PARTITIONS),
    ),
    "label": Alteration(
        ("ALTER TYPE mood RENAME VALUE 'a' TO 'b'",),
        ("INSERT INTO {t} VALUES (3, 'c')",),
        ("CREATE TABLE {t} (id int PRIMARY KEY, v mood)",),
    ),
    "attribute": Alteration(
        ("ALTER TYPE pair ADD ATTRIBUTE r int",),
        ("INSERT INTO {t} VALUES (3, '(c,d,1)')",),
        ("CREATE TABLE {t} (id int PRIMARY KEY, v pair)",),
        "INSERT INTO {t} VALUES ({n}, '(a,b)')",
    ),
}
_TYPES = ("CREATE TYPE mood AS ENUM ('a', 'c')", "CREATE TYPE pair AS (p text, q text)", "CREATE SCHEMA other")
_TABLES = """SELECT n.nspname || '.' || c.relname, n.nspname, array_agg(a.attname::text ORDER BY a.attnum)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE relkind IN ('r', 'p') AND NOT relispartition AND nspname IN ('public', 'other')
    AND attnum > 0 AND NOT attisdropped AND relname <> 'item' GROUP BY 1, 2"""

Rows = dict[str, tuple[list[str], list[tuple[Any, ...]]]]
"""The columns and rows of each table, by name."""


def rows_of(connection: "psycopg.Connection[Any]", tables: Mapping[str, list[str]] | None = None) -> Rows:
    """Read all tables, or some columns of some."""
    if tables is None:
        tables = {name: columns for name, _, columns in connection.execute(_TABLES).fetchall()}
    found = {}
    for name, columns in tables.items():
        texts = ", ".join(f"{column}::text" for column in columns)
        rows = connection.execute(f"SELECT {texts} FROM {name} ORDER BY 1".encode()).fetchall()
        found[name] = columns, rows
    return found


@dataclass
class History:
    """A log, and what the server had at some LSNs."""

    log: ChangeLog
    truth: dict[str, tuple[pgo.Lsn, pgo.Timestamp, Rows]]
    """Before the DDL, after it, and after rows that were written then."""

    def differing(self, moment: str, found: Mapping[str, tuple[list[str], Any]], has_rows: bool) -> set[str]:
        """Return the tables that differ from those that the server had."""
        expected = self.truth[moment][2]
        return {
            name
            for name in expected.keys() | found.keys()
            if (found.get(name, ((), ()))[: 1 + has_rows] != expected.get(name, ((), ()))[: 1 + has_rows])
        }


def moment_of(connection: "psycopg.Connection[Any]") -> tuple[pgo.Lsn, pgo.Timestamp, Rows]:
    """Return the LSN, the time and the rows of a server between two changes."""
    time.sleep(0.002)
    (now,) = connection.execute("SELECT clock_timestamp()").fetchone() or (None,)
    found = current_lsn(connection), pgo.Timestamp.from_datetime(now), rows_of(connection)
    time.sleep(0.002)
    return found


class Source:
    """A database in which everything is altered."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.truth: dict[str, tuple[pgo.Lsn, pgo.Timestamp, Rows]] = {}

    def run(self, *parts: str, number: int = 0) -> None:
        """Run a part of each alteration: ``setup``, ``before``, ``ddl`` or ``rows``."""
        with self.shop.connect() as connection:
            for name, each in DDL.items():
                for part in parts:
                    statements = getattr(each, part)
                    for statement in (statements,) if isinstance(statements, str) else statements:
                        connection.execute(statement.format(t=name, n=number).encode())

    def note(self, moment: str) -> None:
        """Note what the server has."""
        with self.shop.connect() as connection:
            self.truth[moment] = moment_of(connection)


def history_of(shop: Shop, mode: str) -> History:
    """Alter all tables while a capture runs, while none runs, or after one was killed."""
    source = Source(shop)
    shop.execute(*_TYPES, 'ALTER PUBLICATION "the ""shop\'s"" \\ publication" SET (publish_via_partition_root)')
    source.run("setup")
    source.run("before", number=1)
    shop.capture(snapshot=True)
    alter = [
        lambda: source.run("before", number=2),
        lambda: source.note("before"),
        lambda: source.run("ddl"),
        lambda: source.note("after"),
        lambda: source.run("rows"),
        lambda: source.note("written"),
    ]
    if mode == "running":
        with shop.capturing():
            for step in alter:
                step()
                end = shop.execute()
                wait_until(lambda end=end: shop.log().complete_lsn >= end, 60)  # type: ignore[misc]
                time.sleep(2.5)
    else:
        if mode == "killed":
            with shop.capturing_process():
                end = shop.execute("INSERT INTO item VALUES (1, 'captured')")
                wait_until(lambda: shop.log().complete_lsn >= end, 60)
        for step in alter:
            step()
    shop.capture()
    return History(shop.log(), source.truth)


@pytest.fixture(scope="module", params=["running", "down", "killed"])
def history(
    request: pytest.FixtureRequest, server18: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, History]]:
    """Yield how the capture was, and what it captured."""
    with Shop.create(server18, f"as_of_{request.param}", tmp_path_factory.mktemp("as_of") / "log") as shop:
        yield request.param, history_of(shop, request.param)
