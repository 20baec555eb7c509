"""DDL that changes rows without messages: the log records it, and the tables are copied again."""

import logging
import re
import time
from dataclasses import dataclass

import pytest

from pgoutput_construct.changelog._facts.completeness import lacks_of
from pgoutput_construct.changelog._facts.copies import copies_of
from pgoutput_construct.postgres import ReplicationError
from pgoutput_construct.postgres._catalog.table_catalog import catalog_digest
from tests.postgres.copying.conftest import Source
from tests.postgres.shop import wait_until

pytestmark = pytest.mark.server


@dataclass(frozen=True)
class Case:
    """A table ``t`` with a column ``v``, and what is done to the type of that; ``t`` and ``k`` stand for its names."""

    setup: tuple[str, ...]
    value: str
    change: tuple[str, ...]
    stale: str | None = None
    """Words of the reason; None: no row changes."""


ENUM = "CREATE TYPE k AS ENUM ('a', 'b')"
PAIR = "CREATE TYPE k AS (x int, y int)"
TABLE = "CREATE TABLE t (id int PRIMARY KEY, v {})"
RENAMED = "ALTER TYPE k RENAME VALUE 'a' TO 'c'"
ADDED = "ALTER TYPE k ADD ATTRIBUTE z int"
ALTERED = "has values of an altered type in v (ALTER TYPE: labels, or attributes)"
CASES = {
    "a label": Case((ENUM, TABLE.format("k")), "'a'", (RENAMED,), ALTERED),
    "labels exchanged": Case(
        (ENUM, TABLE.format("k")),
        "'a'",
        (RENAMED, "ALTER TYPE k RENAME VALUE 'b' TO 'a'", "ALTER TYPE k RENAME VALUE 'c' TO 'b'"),
        ALTERED,
    ),
    "a label, and another one of its name": Case(
        (ENUM, TABLE.format("k")), "'a'", (RENAMED, "ALTER TYPE k ADD VALUE 'a'"), ALTERED
    ),
    "a label in a domain of a domain": Case(
        (ENUM, "CREATE DOMAIN k_d AS k", "CREATE DOMAIN k_e AS k_d NOT NULL", TABLE.format("k_e")),
        "'a'",
        (RENAMED,),
        ALTERED,
    ),
    "a label in an array": Case((ENUM, TABLE.format("k[]")), "'{a,b}'", (RENAMED,), ALTERED),
    "a label in a range": Case(
        (ENUM, "CREATE TYPE k_r AS RANGE (SUBTYPE = k)", TABLE.format("k_r")), "'[a,b]'", (RENAMED,), ALTERED
    ),
    "a label in a composite of arrays": Case(
        (ENUM, "CREATE TYPE k_c AS (w int, e k[])", TABLE.format("k_c")), "ROW(1, '{a}')", (RENAMED,), ALTERED
    ),
    "a label in the row of another table": Case(
        (ENUM, "CREATE TABLE k_c (w int, e k)", TABLE.format("k_c[]")),
        "ARRAY[ROW(1, 'a')::k_c]",
        (RENAMED,),
        ALTERED,
    ),
    "a label in a partitioned table": Case(
        (
            ENUM,
            "CREATE TABLE t (id int PRIMARY KEY, v k) PARTITION BY RANGE (id)",
            "CREATE TABLE t_1 PARTITION OF t DEFAULT",
        ),
        "'a'",
        (RENAMED,),
        ALTERED,
    ),
    "an attribute": Case((PAIR, TABLE.format("k")), "ROW(1, 2)", (ADDED,), ALTERED),
    "an attribute dropped": Case((PAIR, TABLE.format("k")), "ROW(1, 2)", ("ALTER TYPE k DROP ATTRIBUTE x",), ALTERED),
    "an attribute in a domain in an array": Case(
        (PAIR, "CREATE DOMAIN k_d AS k", TABLE.format("k_d[]")), "ARRAY[ROW(1, 2)::k_d]", (ADDED,), ALTERED
    ),
    "an attribute of the row of another table": Case(
        ("CREATE TABLE k (x int, y int)", TABLE.format("k")), "ROW(1, 2)", ("ALTER TABLE k ADD z int",), ALTERED
    ),
    "a value added": Case((ENUM, TABLE.format("k")), "'a'", ("ALTER TYPE k ADD VALUE 'd'",)),
    "values added between": Case(
        (ENUM, TABLE.format("k")), "'a'", (*(f"ALTER TYPE k ADD VALUE 'd{n}' BEFORE 'b'" for n in range(40)),)
    ),
    "names of attributes and of the type": Case(
        (PAIR, TABLE.format("k")),
        "ROW(1, 2)",
        ("ALTER TYPE k RENAME ATTRIBUTE x TO z", "ALTER TYPE k RENAME TO k_renamed"),
    ),
    "an expression": Case(
        ("CREATE TABLE t (id int PRIMARY KEY, w int DEFAULT 7, v int GENERATED ALWAYS AS (id * 2) STORED)",),
        "DEFAULT",
        ("ALTER TABLE t ALTER v DROP EXPRESSION",),
        "has values in v that were never published (generated columns, as of DROP EXPRESSION)",
    ),
}


def named(case: str, *statements: str) -> list[str]:
    """Return statements about the table and the types of a case."""
    place = [*CASES].index(case)
    return [re.sub(r"\b([tk])(?=\b|_)", rf"\g<1>{place}", statement) for statement in statements]


def insert(case: str, number: int) -> str:
    """Return what inserts one row."""
    return named(case, f"INSERT INTO t (id, v) VALUES ({number}, {CASES[case].value})")[0]


def copies(source: Source) -> dict[str, int]:
    """Return how often each table was copied."""
    names = [copy.name for copy in copies_of(source.log().index)]
    return {name: names.count(name) for name in names}


@pytest.mark.parametrize(
    ("runs", "binary"),
    [
        pytest.param(True, False, id="noticed-text"),
        pytest.param(True, True, id="noticed-binary", marks=pytest.mark.long),
        pytest.param(False, False, id="late-text", marks=pytest.mark.long),
        pytest.param(False, True, id="late-binary"),
    ],
)
def test_rows_that_change_without_messages(
    source: Source, runs: bool, binary: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Tables whose rows changed are copied again, others are not; what the log has is what the server has."""
    caplog.set_level(logging.WARNING)
    for name, case in CASES.items():
        source.execute(*named(name, *case.setup, "ALTER PUBLICATION p ADD TABLE t"), insert(name, 1))
    given = {"binary": binary, "streaming": "off"}
    source.capture(**given)
    source.execute(*(insert(name, 2) for name in CASES))
    source.capture(**given)
    caplog.clear()
    changes = [statement for name, case in CASES.items() for statement in named(name, *case.change)]
    expected = {named(name, "t")[0]: 2 if case.stale else 1 for name, case in CASES.items()}
    if runs:
        # A copy waits until WAL before it is flushed: the heartbeat does that on a server that is idle.
        with source.capturing(**given, heartbeat=0.2):
            wait_until(source.is_read)
            source.execute(*changes)
            wait_until(lambda: copies(source) == expected)
    else:
        source.execute(*changes)
    source.capture(**given)
    assert copies(source) == expected
    for name, case in CASES.items():
        (table,) = named(name, "t")
        said = [text for text in caplog.messages if text.startswith(f"public.{table} ")]
        assert (
            any(f"public.{table} {case.stale}, for which the server" in text for text in said)
            if case.stale
            else not said
        )
    assert lacks_of(source.log().index) == []
    if not binary:
        source.check({named(case, "t")[0]: "id v" for case in CASES})


def test_transactions_that_write_during_an_alteration(source: Source) -> None:
    """ALTER TYPE waits for nobody: the copy that counts is one that sees all who may have sent rows as they were."""
    source.execute(ENUM, TABLE.format("k"), "INSERT INTO t VALUES (1, 'a')", "ALTER PUBLICATION p SET TABLE t")
    source.capture()
    with source.connect() as writer:
        writer.autocommit = False
        with source.capturing():
            wait_until(source.is_read)
            writer.execute("INSERT INTO t VALUES (2, 'a')")
            source.execute("INSERT INTO t VALUES (3, 'a')", RENAMED, "INSERT INTO t VALUES (4, 'c')")
            wait_until(lambda: [lack.reason for lack in lacks_of(source.log().index)] == [f"public.t {ALTERED}"])
            time.sleep(1)
            assert copies(source) == {"t": 1}
            writer.execute("INSERT INTO t VALUES (5, 'c')")
            writer.commit()
            wait_until(lambda: copies(source) == {"t": 2})
    source.capture()
    assert lacks_of(source.log().index) == []
    source.check({"t": "id v"})


def test_on_rewrite_stop_ends_the_capture(source: Source) -> None:
    """With on_rewrite stop the capture ends with the reason and the remedy, and the log names the table."""
    source.execute(PAIR, TABLE.format("k"), "INSERT INTO t VALUES (1, (1, 2))", "ALTER PUBLICATION p SET TABLE t")
    source.capture(on_rewrite="stop")
    source.execute(ADDED)
    words = f"public.t {ALTERED}: copy it again: pgoutput snapshot DSN LOG --table public.t"
    with pytest.raises(ReplicationError, match=re.escape(words)):
        source.capture(on_rewrite="stop")
    (lack,) = lacks_of(source.log().index)
    assert str(lack) == words and lack.stale_since is not None


def test_each_change_is_detected(source: Source) -> None:
    """The digest of the catalog, which is polled every second, changes with each single statement."""
    for name, case in CASES.items():
        source.execute(*named(name, *case.setup))
    with source.connect() as connection:
        for name, case in CASES.items():
            for statement in named(name, *case.change):
                before = catalog_digest(connection)
                assert catalog_digest(connection) == before
                source.execute(statement)
                if "RENAME TO" not in statement and "RENAME ATTRIBUTE" not in statement:
                    assert catalog_digest(connection) != before, statement
