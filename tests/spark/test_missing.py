"""Changes of rows that must be there and are not, in the log of a slot that is younger than the rows."""

from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

import pgoutput_construct as pgo
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import capture, create_slot, current_lsn
from pgoutput_construct.spark import OpenLog, open_log, plain_errors

pytestmark = [pytest.mark.server, pytest.mark.spark]

BEFORE = """
CREATE TABLE letter (id int PRIMARY KEY, note text, body text STORAGE EXTERNAL);
CREATE TABLE loose (code text, body text STORAGE EXTERNAL);
ALTER TABLE loose REPLICA IDENTITY FULL;
INSERT INTO letter SELECT i, 'old', repeat('b', 3000) FROM generate_series(1, 4) i;
INSERT INTO loose VALUES ('a', 'old'), ('b', 'old');
CREATE TABLE turned (id int PRIMARY KEY, code text NOT NULL UNIQUE, note text);
ALTER TABLE turned REPLICA IDENTITY USING INDEX turned_code_key;
CREATE PUBLICATION missing FOR TABLE letter, loose, turned;
"""
CHANGES = """
UPDATE letter SET note = 'new' WHERE id = 1;
UPDATE letter SET note = 'new', body = 'sent' WHERE id = 2;
DELETE FROM letter WHERE id = 3;
INSERT INTO letter VALUES (3, 'back', 'short');
UPDATE letter SET note = 'again' WHERE id = 3;
DELETE FROM loose WHERE code = 'a';
INSERT INTO loose VALUES ('a', 'old');
INSERT INTO turned VALUES (1, 'one', ''), (2, 'two', ''), (3, 'three', '');
DELETE FROM turned WHERE id = 1;
ALTER TABLE turned REPLICA IDENTITY FULL;
UPDATE turned SET note = 'full' WHERE id = 2;
ALTER TABLE turned REPLICA IDENTITY DEFAULT;
UPDATE turned SET note = 'key' WHERE id = 3;
"""


@pytest.fixture(scope="module")
def log(spark: Any, server18: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> OpenLog:
    """The changes alone, captured."""
    dbname, path = "missing_rows", tmp_path_factory.mktemp("missing") / "log"
    with server18.connect() as admin:
        admin.execute(f"CREATE DATABASE {dbname}".encode())
    with server18.connect(dbname=dbname) as connection:
        connection.execute(BEFORE.encode())
        create_slot(connection, dbname)
        for change in CHANGES.split(";\n"):
            connection.execute(change.encode())
        capture(
            make_conninfo(server18.dsn, dbname=dbname),
            dbname,
            ["missing"],
            path,
            until_lsn=current_lsn(connection),
            new_log=True,
        )
        connection.execute("SELECT pg_drop_replication_slot(%s)", [dbname])
    return open_log(spark, path)


def test_a_value_that_no_row_has_is_an_error(log: OpenLog) -> None:
    """It names the change, the row and the column; other words than error and report are refused."""
    with (
        pytest.raises(pgo.ChangeLogError, match=r'seq \d+ in it: row {"id":1}: .* .body.'),
        plain_errors(),
    ):
        log.state("public.letter").collect()
    with pytest.raises(pgo.PgoutputError, match="on_missing is 'ignore': it is one of error, report"):
        log.state("public.letter", on_missing="ignore")  # type: ignore[arg-type]


def test_a_report_instead(log: OpenLog, tmp_path: Path) -> None:
    """The state has null for the value, and the report every change of a row that was not there; from Parquet, too."""
    log.changes("public.letter").write.parquet(str(tmp_path / "letter"))
    for changes in (None, log.spark.read.parquet(str(tmp_path / "letter"))):
        state = log.state("public.letter", changes, on_missing="report")
        rows = sorted(tuple(row)[:3] for row in state.collect())
        assert rows == [(1, "new", None), (2, "new", "sent"), (3, "again", "short")]
        missing = log.missing_rows("public.letter", changes).orderBy("_commit_lsn", "_seq").collect()
        found = [(row._op, row._row, row._unchanged) for row in missing]
        assert found == [("update", {"id": "1"}, ["body"]), ("update", {"id": "2"}, []), ("delete", {"id": "3"}, [])]


@pytest.mark.long
def test_rows_that_went_have_no_key(log: OpenLog) -> None:
    """A row that was deleted while another column was its identity is not asked for the key of later changes."""
    assert log.missing_rows("public.turned").collect() == []
    assert sorted(tuple(row)[:3] for row in log.state("public.turned").collect()) == [
        (2, "two", "full"),
        (3, "three", "key"),
    ]


def test_whole_rows(log: OpenLog) -> None:
    """A delete of a row that never came takes no later one away: the state is right, the report has the delete."""
    assert [tuple(row)[:2] for row in log.state("public.loose").collect()] == [("a", "old")]
    (missing,) = log.missing_rows("public.loose").collect()
    assert (missing._op, missing._row) == ("delete", {"code": "a", "body": "old"})
