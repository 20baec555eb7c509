"""Columns that are excluded or masked: what a warehouse has of them, and that it has nothing else of them anywhere."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.spark._replicate import read_current, read_history, read_missing, replicate
from pgoutput_construct.spark._replicate.warehouse_notes import Warehouse
from tests.postgres.shop import Shop
from tests.table_formats import SHORT_IN_PARQUET

pytestmark = [pytest.mark.server, pytest.mark.spark]

SALT = "S4LT-of-this-test"
SECRET = "PLAIN"
"""What each value begins with that no file may have."""
EXCLUDED = ("public.person.password", "public.visit.note")
MASKS = {
    "public.person.email": f"sha256({SALT})",
    "public.person.phone": "null",
    "public.person.bio": "sha256($PGOUTPUT_TEST_SALT)",
    "public.person.born": "text(***)",
    "public.visit.email": f"sha256({SALT})",
    "public.place.name": f"sha256({SALT})",
    "public.place.since": f"sha256({SALT})",
}
RULES: Mapping[str, Any] = {"exclude_columns": EXCLUDED, "masks": MASKS}
SCRIPTS: Sequence[Sequence[str]] = (
    (
        "CREATE TABLE person (id int PRIMARY KEY, email text, phone numeric(9, 2), bio text, born date, password text, "
        "plain text)",
        "ALTER TABLE person ALTER bio SET STORAGE EXTERNAL, ALTER password SET STORAGE EXTERNAL",
        "CREATE TABLE visit (email text, note text, n int)",
        "ALTER TABLE visit REPLICA IDENTITY FULL",
        "CREATE TABLE place (name text, since timestamptz, n int, notes text, PRIMARY KEY (name, since))",
        "ALTER TABLE place ALTER notes SET STORAGE EXTERNAL",
        "INSERT INTO person SELECT i, 'PLAIN' || i, i + 0.25, repeat('PLAIN' || i, 700), date '2001-01-01' + i, "
        "repeat('PLAIN' || i, 800), 'seen' || i FROM generate_series(1, 9) i",
        "INSERT INTO person (id) VALUES (100)",
        "INSERT INTO visit SELECT 'PLAIN' || i % 3, 'PLAIN' || i, i % 2 FROM generate_series(1, 12) i",
        "INSERT INTO place SELECT 'PLAIN' || i, timestamptz '2020-02-02 UTC' + i * interval '1 day', i, "
        "repeat('n' || i, 2000) FROM generate_series(1, 9) i",
        "INSERT INTO place VALUES ('PLAIN', 'infinity', 0, 'x')",
    ),
    (
        "UPDATE person SET plain = 'changed' WHERE id < 4",
        "UPDATE person SET email = 'PLAINnew', bio = 'PLAINshort' WHERE id = 4",
        "UPDATE person SET id = id + 10 WHERE id IN (5, 6)",
        "DELETE FROM person WHERE id = 7",
        "INSERT INTO person VALUES (7, 'PLAINagain', 1, NULL, 'infinity', 'PLAINp', 'back')",
        "UPDATE visit SET note = 'PLAINother' WHERE n = 0",
        "UPDATE visit SET n = 5 WHERE email = 'PLAIN1'",
        "DELETE FROM visit WHERE ctid IN (SELECT ctid FROM visit LIMIT 2)",
        "UPDATE place SET n = n + 100 WHERE n < 4",
        "UPDATE place SET name = 'PLAINmoved' WHERE n = 5",
        "UPDATE place SET since = since + interval '1 hour', name = 'PLAIN2' WHERE n = 6",
        "DELETE FROM place WHERE n = 7",
    ),
    (
        "ALTER TABLE person ADD given text DEFAULT 'PLAINgiven', ADD open text DEFAULT 'opengiven'",
        "INSERT INTO person (id, email) VALUES (20, 'PLAIN20')",
        "ALTER TABLE person RENAME email TO mail",
        "ALTER TABLE person RENAME password TO word",
        "UPDATE person SET mail = 'PLAINmail', word = 'PLAINword' WHERE id < 3",
        "ALTER TABLE visit RENAME TO visited",
        "INSERT INTO visited VALUES ('PLAINlast', 'PLAINnote', 9)",
        "TRUNCATE place",
        "INSERT INTO place VALUES ('PLAINafter', '2024-01-01 UTC', 1, 'y')",
    ),
)
"""What happens before each batch."""
_HASH = "encode(sha256(convert_to('{salt}' || {value}, 'UTF8')), 'hex')"
_QUERIES = (
    {
        "person": ("id", "@email", "NULL", "@bio", "CASE WHEN born IS NOT NULL THEN '***' END", "plain"),
        "visit": ("@email", "n"),
        "place": ("@name", "@since", "n", "notes"),
    },
    {
        "person": (*("id", "@mail", "NULL", "@bio", "CASE WHEN born IS NOT NULL THEN '***' END", "plain"), "open"),
        "visited": ("@email", "n"),
        "place": ("@name", "@since", "n", "notes"),
    },
)
GIVEN = {"exclude_columns": ("public.person.given",)}


@pytest.fixture(params=SHORT_IN_PARQUET)
def into(request: pytest.FixtureRequest, lake: Any) -> str:
    """Each format in turn."""
    return str(request.param)


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path, into: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A database of its own; a salt is in the environment."""
    monkeypatch.setenv("PGOUTPUT_TEST_SALT", SALT)
    with Shop.create(server18, f"rules_{into}", tmp_path / "log") as shop:
        yield shop


def _execute(shop: Shop, statements: Sequence[str]) -> None:
    shop.execute(*statements)
    shop.capture(snapshot=True)


def expected(shop: Shop, name: str, values: Sequence[str]) -> list[tuple[str | None, ...]]:
    """Return the rows of a table of the server, with masks; as texts."""
    columns = (_HASH.format(salt=SALT, value=f"({each[1:]}::text)") if each[0] == "@" else each for each in values)
    with shop.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        rows = connection.execute(f"SELECT {', '.join(f'({each})::text' for each in columns)} FROM {name}").fetchall()
    return sorted(rows, key=str)


def stored(rows: Any) -> list[tuple[str | None, ...]]:
    """Return the rows of a table of a warehouse, without added columns; as texts."""
    own = [f"cast(`{name}` AS string)" for name in rows.columns if not name.startswith("_")]
    return sorted((tuple(row) for row in rows.selectExpr(*own).collect()), key=str)


def check(spark: Any, shop: Shop, warehouse: Path, queries: Mapping[str, Sequence[str]]) -> None:
    """Compare the tables of a warehouse with those of the server."""
    for name, values in queries.items():
        found, wanted = stored(read_current(spark, warehouse, f"public.{name}")), expected(shop, name, values)
        assert found == wanted, name
        history = read_history(spark, warehouse, f"public.{name}").where("_ended_by IS NULL")
        columns = read_current(spark, warehouse, f"public.{name}").columns
        assert stored(history.select(*(each for each in columns if not each.startswith("_")))) == wanted, name


def secrets_in(*places: Path) -> list[str]:
    """Return the files that have a secret or a salt, in their bytes or in the values of their rows."""
    found = []
    for path in (path for place in places for path in place.rglob("*") if path.is_file()):
        content = path.read_bytes()
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            content += str(pq.read_table(path).to_pylist()).encode()
        if SECRET.encode() in content or SALT.encode() in content:
            found.append(str(path))
    return found


def test_nothing_else_is_stored(
    lake: Any, shop: Shop, into: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Batch by batch, with histories: also of defaults, renamed columns and tables, and what is stored for a while."""
    warehouse, staged = tmp_path / "wh", tmp_path / "staged"

    def keep_staged(_: object) -> None:
        if (warehouse / "staged").exists():
            shutil.copytree(warehouse / "staged", staged, dirs_exist_ok=True)

    for number, (script, options) in enumerate(zip(SCRIPTS, (RULES, {}, GIVEN), strict=True)):
        _execute(shop, script)
        if number == 1:  # the salt is not stored
            with pytest.raises(
                pgo.PgoutputError, match=r"public\.person\.email is masked by sha256 there, whose salt is"
            ):
                replicate(lake, shop.directory, warehouse, into, history=True)
            options = RULES
        if number == 2:
            options = {**GIVEN, "masks": {name: mask for name, mask in MASKS.items() if SALT in mask}}
        done = replicate(lake, shop.directory, warehouse, into, history=True, on_progress=keep_staged, **options)
        assert done is not None and not done.troubled
        check(lake, shop, warehouse, _QUERIES[number // 2])
    assert staged.exists() and not secrets_in(warehouse, staged)
    assert SECRET not in caplog.text and SALT not in caplog.text
