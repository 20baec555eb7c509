"""Tables, columns and rows as of an LSN, where what the catalog says later stands in the log before it.

For each kind of DDL there is a table (``DDL``), and all are altered between two LSNs. What the server has at each LSN
is read from it. A log that is read as of the LSN has the same, or says of the table what it does not know.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct import lake
from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog._facts.completeness import lacks_of
from pgoutput_construct.changelog.timeline import point_at
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.forensics import blame, fixture, fork
from pgoutput_construct.postgres import current_lsn
from pgoutput_construct.spark import open_log, replicate
from pgoutput_construct.spark._log_view.log_tables import LogTables
from tests.postgres.shop import PUBLICATION, Shop, counted_polls, wait_until
from tests.publisher.subscriber import database

if TYPE_CHECKING:
    import psycopg

pytestmark = pytest.mark.server


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
    "unpublished": Alteration(
        ("ALTER PUBLICATION {publication} DROP TABLE alone.{t}",),
        ("INSERT INTO alone.{t} VALUES (3, 'c')",),
        (
            "CREATE SCHEMA alone CREATE TABLE {t} (id int PRIMARY KEY, v text)",
            "ALTER PUBLICATION {publication} ADD TABLE alone.{t}",
        ),
        "INSERT INTO alone.{t} VALUES ({n}, 'a')",
    ),
}
NAMES: Mapping[str, str] = {**{name: f"public.{name}" for name in DDL}, "unpublished": "alone.unpublished"}
"""How the tables are called before the DDL."""
_TYPES = ("CREATE TYPE mood AS ENUM ('a', 'c')", "CREATE TYPE pair AS (p text, q text)", "CREATE SCHEMA other")
_PUBLICATION = '"{}"'.format(PUBLICATION.replace('"', '""'))
_PUBLISHED = f"CREATE PUBLICATION {_PUBLICATION} FOR TABLES IN SCHEMA public, other WITH (publish_via_partition_root)"
_TABLES = """SELECT n.nspname || '.' || c.relname, array_agg(a.attname::text ORDER BY a.attnum)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE relkind IN ('r', 'p') AND NOT relispartition AND nspname IN ('public', 'other', 'alone')
    AND attnum > 0 AND NOT attisdropped AND relname <> 'item' GROUP BY 1"""

Columns = Mapping[str, Sequence[str]]
Rows = Mapping[str, list[tuple[str | None, ...]]]


@dataclass(frozen=True)
class Moment:
    """What the server had at an LSN."""

    lsn: pgo.Lsn
    time: pgo.Timestamp
    columns: Columns
    """The columns of each table, by name."""
    rows: Rows
    """Its rows, as text."""


def rows_of(connection: "psycopg.Connection[Any]", tables: Columns) -> Rows:
    """Read some columns of tables."""
    found = {}
    for name, columns in tables.items():
        texts = ", ".join(f"{column}::text" for column in columns)
        found[name] = connection.execute(f"SELECT {texts} FROM {name} ORDER BY 1".encode()).fetchall()
    return found


class Source:
    """A database in which everything is altered, and its log."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.moments: dict[str, Moment] = {}
        """Before the DDL, after it, and after rows that were written then."""

    @property
    def log(self) -> ChangeLog:
        """The log."""
        return self.shop.log()

    def run(self, part: str, number: int = 0) -> None:
        """Run a part of each alteration: ``setup``, ``before``, ``ddl`` or ``rows``."""
        with self.shop.connect() as connection:
            for name, each in DDL.items():
                statements = getattr(each, part)
                for statement in (statements,) if isinstance(statements, str) else statements:
                    words = {"t": name, "n": number, "publication": _PUBLICATION}
                    connection.execute(statement.format(**words).encode())

    def note(self, name: str) -> None:
        """Note what the server has."""
        with self.shop.connect() as connection:
            time.sleep(0.002)
            (now,) = connection.execute("SELECT clock_timestamp()").fetchone() or (None,)
            tables = dict(connection.execute(_TABLES).fetchall())
            moment = current_lsn(connection), pgo.Timestamp.from_datetime(now), tables, rows_of(connection, tables)
            self.moments[name] = Moment(*moment)
            time.sleep(0.002)

    def make(self, mode: str) -> None:
        """Alter all tables while a capture runs, while none runs, or after one was killed."""
        self.shop.execute(*_TYPES, f"DROP PUBLICATION {_PUBLICATION}", _PUBLISHED)
        self.run("setup")
        self.run("before", 1)
        self.shop.capture(snapshot=True)
        if mode == "running":
            with counted_polls() as polls, self.shop.capturing(status_interval=0.2):
                self._alter(lambda: self._wait(polls))
        elif mode == "killed":
            with self.shop.capturing_process():
                self.shop.execute("INSERT INTO item VALUES (1, 'captured')")
                self._wait()
            self._alter(lambda: None)
        else:
            self._alter(lambda: None)
        self.shop.capture()

    def _wait(self, polls: list[None] | None = None) -> None:
        """Wait until the log has all, and a look at the catalog has begun since."""
        end = self.shop.execute()
        wait_until(lambda: self.log.complete_lsn >= end)
        if polls is None:  # another process looks each second
            time.sleep(2)
        else:
            polls.clear()
            wait_until(lambda: len(polls) > 1)

    def _alter(self, wait: Callable[[], None]) -> None:
        self.run("before", 2)
        wait()
        self.note("before")
        self.run("ddl")
        wait()
        self.note("after")
        self.run("rows")
        self.note("written")


WHILE_RUNNING = pytest.mark.parametrize(
    "source", ["running", *(pytest.param(mode, marks=pytest.mark.long) for mode in ("down", "killed"))], indirect=True
)
"""For tests of what is made of the catalog's facts: how these come into the log another test compares."""


@pytest.fixture(scope="module", params=["running", "down", pytest.param("killed", marks=pytest.mark.long)])
def source(
    request: pytest.FixtureRequest, server18: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Source]:
    """Yield a database, which was altered while a capture ran, while none did, or after it was killed."""
    name = f"as_of_{request.param}"
    with Shop.create(server18, name, tmp_path_factory.mktemp(name) / "log") as shop:
        source = Source(shop)
        source.make(request.param)
        yield source


def check(moment: Moment, found: Mapping[str, Any], expected: Mapping[str, Any], lacks: Sequence[str]) -> None:
    """Check tables: each is as on the server, or it is in what the log lacks, by its name or a former one.

    A log has no table that nobody has written to; of a partition that was not published by itself it has the name.
    """
    unseen = {name for name, rows in moment.rows.items() if not rows} - found.keys()
    unseen |= {name for name, rows in found.items() if not rows} - expected.keys()
    differing = {name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name)} - unseen
    silent = {
        name: (found.get(name), expected.get(name))
        for name in differing
        if not any(each.startswith(f"{name}:") or f" was renamed to {name} " in each for each in lacks)
    }
    assert not silent


@pytest.mark.parametrize("at", ["before", "after", "written"])
def test_tables_and_columns(source: Source, at: str) -> None:
    """They are those of then, by LSN and time; before the DDL all are, and while a capture runs, none is in doubt."""
    log, moment = source.log, source.moments[at]
    for each in (moment.lsn, moment.time):
        opened = LogTables.from_log(log, point_at(log.index, each))
        tables = [table for table in opened.tables.values() if not table.dropped and table.name != "item"]
        found = {table.qualified: list(table.current) for table in tables}
        lacks = [f"{lack.name}: {lack}" for lack in lacks_of(opened.index)]
        check(moment, found, moment.columns, lacks)
        if at == "before":
            assert found == moment.columns
        if source.shop.dbname.endswith("running"):  # its last look was after the last commit, not after the LSN
            assert isinstance(each, pgo.Lsn) or not [lack for lack in lacks if "does not say" in lack]
        elif at == "before":
            assert {name for name in DDL if any(lack.startswith(f"{NAMES[name]}: ") for lack in lacks)} == {
                *DDL.keys() - {"unaltered"}
            }


@WHILE_RUNNING
@pytest.mark.parametrize("at", ["before", pytest.param("after", marks=pytest.mark.long), "written"])
def test_a_fork_into_a_server(source: Source, server18: EmbeddedServer, at: str) -> None:
    """It has the rows of then; a table that was dropped since has its own, not those of its successor."""
    moment = source.moments[at]
    with database(server18, "as_of_forked") as target:
        for name in ("label", "attribute", "retyped"):  # of types that the server, or a value, does not have
            target.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)".encode())
        done = fork(source.shop.directory, moment.lsn, target.info.dsn)
        held = dict(target.execute(_TABLES).fetchall())
        tables = {
            name: [each for each in moment.columns.get(name, ["id"]) if each in held[name]]
            for name in done.rows
            if name != "public.item"
        }
        check(moment, rows_of(target, tables), moment.rows, done.lacks)
        if at == "before":
            assert rows_of(target, moment.columns) == moment.rows


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("at", ["before", "after", "written"])
def test_a_lake_and_tables_of_the_log(spark: Any, source: Source, tmp_path: Path, at: str) -> None:
    """Both have the rows of then."""
    moment = source.moments[at]
    batch = replicate(spark, source.shop.directory, tmp_path, as_of=moment.lsn)
    assert batch is not None
    opened = open_log(spark, source.shop.directory, point_at(source.log.index, moment.lsn))
    # Those of a batch are of its tables: it does not have a partition that was detached, and has no rows yet.
    lacks = [f"{lack.name}: {lack}" for lack in (*batch.lacks, *opened.lacks)]
    for read in (lambda name: lake.read(str(tmp_path), name).to_pylist(), lambda name: _collected(opened, name)):
        found = {}
        for name in {*moment.rows, *opened.tables} - {"public.item"}:
            try:
                rows = [{column: _text(value) for column, value in row.items()} for row in read(name)]
            except PgoutputError as error:
                assert "no table" in str(error)
                continue
            columns = moment.columns.get(name, ["id"])
            found[name] = sorted(tuple(row.get(column) for column in columns) for row in rows)
        check(moment, found, moment.rows, lacks)


def _collected(opened: Any, name: str) -> list[dict[str, Any]]:
    if opened.table(name).dropped:
        raise PgoutputError("no table any more")
    return [row.asDict() for row in opened.state(name, on_missing="report").collect()]


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


@WHILE_RUNNING
def test_blame_and_fixture(source: Source) -> None:
    """A row has its history under each name of its table, and a fixture the changes of then."""
    names = {name: [each] for name, each in NAMES.items()}
    names |= {name: [f"public.{name}", f"public.{name}_now"] for name in ("renamed", "renamed_unseen")}
    names |= {"moved": ["public.moved", "other.moved"], "replaced": ["public.replaced_old"]}
    moment, log = source.moments["before"], source.log
    for several in names.values():
        for name in several:
            touches = blame(log, name, 1)
            assert [touch.op for touch in touches if touch.commit_lsn <= moment.lsn] == ["insert", "snapshot"], name
            cut = fixture(log, tables=[name], until=moment.lsn)
            assert [message.new[0] for _, message in cut.messages() if isinstance(message, pgo.Insert)] == [
                b"1",
                b"2",
            ], name
    assert not blame(log, "public.replaced", 1)
