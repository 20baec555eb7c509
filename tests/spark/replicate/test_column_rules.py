"""Columns that are excluded or masked: what a warehouse has of them, and that it has nothing else of them anywhere."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog.prune import prune
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.lake._directories import STAGED
from pgoutput_construct.postgres.checksums import SourceServer
from pgoutput_construct.spark import open_log
from pgoutput_construct.spark._log_view.added_columns import escaped_table
from pgoutput_construct.spark._replicate import read_current, read_history, read_missing, replicate
from pgoutput_construct.spark._replicate.column_rules import ColumnRules
from pgoutput_construct.spark._replicate.staging import masked_changes
from pgoutput_construct.spark._verify import TableVerdict, VerifyOptions, verify
from tests.crashes import Moment, killed
from tests.postgres.shop import Shop
from tests.spark.logs import log_options, write_log
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
LIFTED = {"public.person.email": "plain", "public.person.password": "plain"}
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
            content += str(pq.read_table(path).to_pylist()).encode()
        if SECRET.encode() in content or SALT.encode() in content:
            found.append(str(path))
    return found


@pytest.mark.parametrize(
    "names", [("person",), pytest.param((), marks=pytest.mark.long)], ids=["one table", "all tables"]
)
def test_nothing_else_is_stored(
    lake: Any, shop: Shop, into: str, names: Sequence[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Batch by batch, with histories: also of defaults, renamed columns and tables, and what is stored for a while."""
    warehouse, staged = tmp_path / "wh", tmp_path / "staged"
    tables = [f"public.{name}" for name in names] or None

    def keep_staged(_: object) -> None:
        with suppress(FileNotFoundError, shutil.Error):  # tables that are being written remove theirs
            shutil.copytree(warehouse / STAGED, staged, dirs_exist_ok=True)

    salted = {name: mask for name, mask in MASKS.items() if SALT in mask}
    given = (RULES, {"masks": salted}, {"masks": salted, **GIVEN})
    for number, (script, options) in enumerate(zip(SCRIPTS, given, strict=True)):
        _execute(shop, script)
        if number == 1:  # the salt is not stored
            with pytest.raises(
                pgo.PgoutputError, match=r"public\.person\.email is masked by sha256 there, whose salt is"
            ):
                replicate(lake, shop.directory, warehouse, into, tables, history=True)
        given_too = {"history": True, "on_progress": keep_staged, **options}
        done = replicate(lake, shop.directory, warehouse, into, tables, **given_too)
        assert done is not None and not done.troubled
        queries = _QUERIES[number // 2]
        check(lake, shop, warehouse, {name: queries[name] for name in names or queries})
    assert staged.exists() and not secrets_in(warehouse, staged)
    assert SECRET not in caplog.text and SALT not in caplog.text


@pytest.mark.parametrize("into", ["parquet"], indirect=True)
def test_refusals(spark: Any, shop: Shop, into: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Of columns that do not exist or that tell rows apart, and of other rules than a warehouse has."""
    _execute(shop, SCRIPTS[0])
    warehouse = tmp_path / "wh"

    def refused(problem: str, *excluded: str, **options: Any) -> None:
        masks = {name.replace("__", "."): mask for name, mask in options.pop("masks", {}).items()}
        with pytest.raises(pgo.PgoutputError, match=problem) as raised:
            replicate(spark, shop.directory, warehouse, exclude_columns=excluded, masks=masks, **options)
        assert SALT not in str(raised.value)

    refused(r"public\.person has no column nothing: it has id, email, phone, bio, born, password", "person.nothing")
    refused(r"public\.person: id is in the key .* cannot be excluded: mask it by sha256", "person.id")
    refused(r"public\.place: since is in the key .* cannot be masked by null", masks={"place.since": "null"})
    refused(r"public\.person\.email: a column has one rule", "person.email", masks={"public.person.email": "null"})
    another: Any = {"rename_columns": {"public.person.email": "mail"}}
    refused(r"public\.person\.email: a column has one rule", masks={"person.email": "null"}, **another)
    refused(r"person\.email: the name of a column is not empty", rename_columns={"person.email": ""})
    refused(r"the mask of public\.person\.email: it is no mask: write sha256", masks={"person.email": SALT})
    refused("a column is named schema.table.column", masks={f"email={SALT}": "null"})
    refused(r"no variable NO_SUCH", masks={"person.email": "sha256($NO_SUCH)"})
    assert not warehouse.exists()

    rules = {"exclude_columns": ["person.password", "later.secret"], "masks": {"person.email": f"sha256({SALT})"}}
    replicate(spark, shop.directory, warehouse, **rules)
    assert "the log has no table public.later yet, whose column secret has a rule" in caplog.text
    again = {"masks": rules["masks"]}
    other = r"public\.person\.email is masked with another salt: omit .*--resync public\.person"
    refused(other, masks={"person.email": "sha256(another)"})
    refused(r"public\.person\.email is masked by sha256 there, not masked by null: ", masks={"person.email": "null"})
    refused(r"public\.person\.plain is without a rule there, not excluded: omit", "person.plain", **again)
    mask = {"person.password": "plain", **again["masks"]}
    refused(r"public\.person\.password is excluded there, not without a rule: omit", masks=mask)
    shop.execute("CREATE TABLE later (id int PRIMARY KEY, secret text)", "INSERT INTO later VALUES (1, 'PLAIN')")
    shop.execute("UPDATE person SET email = 'PLAINx' WHERE id = 1")
    shop.capture(snapshot=True)
    done = replicate(spark, shop.directory, warehouse, **again)
    assert done is not None and done.tables == {"public.later": "written", "public.person": "changed"}
    assert read_current(spark, warehouse, "later").columns[0:2] == ["id", "_untyped"]
    assert "password" not in read_current(spark, warehouse, "person").columns


@pytest.mark.parametrize("into", SHORT_IN_PARQUET, indirect=True)
@pytest.mark.long
def test_other_rules(lake: Any, shop: Shop, into: str, tmp_path: Path) -> None:
    """With a resync of their table they may change: it and its history are written again, also after a kill."""
    warehouse = tmp_path / "wh"
    _execute(shop, SCRIPTS[0])
    replicate(lake, shop.directory, warehouse, into, history=True)
    _execute(shop, SCRIPTS[1])
    rules = {"exclude_columns": EXCLUDED, "masks": MASKS, "resync": ["person", "visit", "place"]}
    with killed(Moment.BEFORE_NOTE):
        replicate(lake, shop.directory, warehouse, into, history=True, **rules)
    done = replicate(lake, shop.directory, warehouse, into, history=True, masks=MASKS)
    assert done is not None and {*done.tables.values()} == {"written"} and not done.troubled
    check(lake, shop, warehouse, _QUERIES[0])
    for name in ("person", "visit", "place"):
        history = read_history(lake, warehouse, name)
        assert SECRET not in str(history.collect()) and history.where("_ended_by IS NOT NULL").count()
    replicate(lake, shop.directory, warehouse, into, history=True, masks={**MASKS, **LIFTED}, resync=["person"])
    rows = read_current(lake, warehouse, "person").where("id = 4").collect()
    assert rows[0]["email"] == "PLAINnew" and rows[0]["password"].startswith("PLAIN4") and rows[0]["phone"] is None


@pytest.mark.parametrize("into", SHORT_IN_PARQUET, indirect=True)
@pytest.mark.long
def test_killed_batches(lake: Any, shop: Shop, into: str, tmp_path: Path) -> None:
    """A batch that is interrupted after its data, and one before its end, is completed with the same masks."""
    warehouse = tmp_path / "wh"
    _execute(shop, SCRIPTS[0])
    replicate(lake, shop.directory, warehouse, into, history=True, **RULES)
    for number, (script, given) in enumerate(zip(SCRIPTS[1:], (RULES, {"masks": MASKS, **GIVEN}), strict=True)):
        _execute(shop, script)
        with killed(Moment.BEFORE_INTENT if number else Moment.BEFORE_NOTE):
            replicate(lake, shop.directory, warehouse, into, history=True, **given)
        replicate(lake, shop.directory, warehouse, into, history=True, **given)
        check(lake, shop, warehouse, _QUERIES[number])
    assert not secrets_in(warehouse)


@pytest.mark.parametrize("into", ["parquet"], indirect=True)
def test_renamed_before_the_catalog_is_read(
    spark: Any, shop: Shop, into: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column that is called otherwise may be the masked one: the table stays as it was until that is known."""
    warehouse = tmp_path / "wh"
    rules = {"masks": {"person.email": f"sha256({SALT})"}, "exclude_columns": ["person.password"]}
    _execute(shop, SCRIPTS[0])
    replicate(spark, shop.directory, warehouse, history=True, **rules)
    with monkeypatch.context() as patched:
        patched.setattr("pgoutput_construct.postgres._catalog.catalog_watch.CatalogWatch.poll", lambda *_: None)
        patched.setattr("pgoutput_construct.postgres._catalog.catalog_watch.CatalogWatch.is_settled", lambda *_: True)
        shop.execute(
            "BEGIN; ALTER TABLE person RENAME email TO mail; ALTER TABLE person RENAME plain TO email; COMMIT",
            "UPDATE person SET mail = 'PLAINmail' WHERE id = 1",
        )
        shop.capture()
    with pytest.raises(
        pgo.ChangeLogError, match=r"public\.person: the log does not say which column is 'email', 'pass"
    ):
        replicate(spark, shop.directory, warehouse, history=True, **rules)
    shop.execute("UPDATE person SET mail = 'PLAINmail' WHERE id = 2")
    shop.capture()
    replicate(spark, shop.directory, warehouse, history=True, **rules)
    assert not {"email", "mail"}.isdisjoint(read_current(spark, warehouse, "person").columns)
    rows = str(read_current(spark, warehouse, "person").select("email", "mail").collect())
    rows += str(read_history(spark, warehouse, "person").select("email", "mail").collect())
    assert SECRET not in rows and "seen" not in rows  # the one by its number, the other by its name


@pytest.mark.parametrize("into", ["parquet"], indirect=True)
@pytest.mark.long
def test_missing_rows(spark: Any, shop: Shop, into: str, tmp_path: Path) -> None:
    """Reports of changes whose rows do not exist have masked values, too; so have errors."""
    warehouse, rules = tmp_path / "wh", {"masks": MASKS, "exclude_columns": EXCLUDED}
    _execute(shop, SCRIPTS[0])
    replicate(spark, shop.directory, warehouse, **rules)
    rows = read_current(spark, warehouse, "place").where("n > 3").toArrow()
    (part,) = (warehouse / "public.place").glob("v*/*.parquet")
    pq.write_table(rows, part)
    _execute(shop, ("UPDATE place SET n = n + 1 WHERE n = 2", "DELETE FROM place WHERE n = 3"))
    with pytest.raises(pgo.ChangeLogError, match=r"UPDATE or DELETE of a row that does not exist") as raised:
        replicate(spark, shop.directory, warehouse, **rules)
    assert SECRET not in str(raised.value) and SALT not in str(raised.value)
    replicate(spark, shop.directory, warehouse, on_missing="report", **rules)
    assert read_missing(spark, warehouse, "place").count() == 2
    assert not secrets_in(warehouse)


@pytest.mark.parametrize("into", ["parquet"], indirect=True)
def test_plans(spark: Any, shop: Shop, into: str) -> None:
    """Plans, which Spark's pages and event log show, have no salt: tasks have it, in bytes that are not shown."""
    _execute(shop, SCRIPTS[0])
    ruled = ColumnRules.parse(EXCLUDED, MASKS.items()).applied_to(open_log(spark, shop.directory))
    table = escaped_table(ruled.log.table("public.person"))
    rows = masked_changes(ruled.log, table, -1, ruled.masks)
    shown = rows._jdf.queryExecution().toString() + repr(ruled.rules) + repr(ruled.masks)
    assert SALT not in shown and SALT.encode().hex() not in shown.lower()
    assert SECRET not in str(rows.collect())


@pytest.mark.parametrize("into", SHORT_IN_PARQUET, indirect=True)
@pytest.mark.parametrize("more", [False, True], ids=["known", "unknown"])
@pytest.mark.long
def test_verify(lake: Any, shop: Shop, into: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: bool) -> None:
    """Masks are applied to the rows of the server, and of what changed since; without salts the rest is compared."""
    warehouse, salted = tmp_path / "wh", {"public.place.since": f"sha256({SALT})"}
    _execute(shop, SCRIPTS[0])
    replicate(lake, shop.directory, warehouse, into, **RULES)
    _execute(shop, SCRIPTS[1])

    def verdicts(**options: Any) -> dict[str, TableVerdict]:
        source, pace = SourceServer(shop.dsn, shop.log().options.publications), VerifyOptions(60.0, 60)
        with shop.capturing():
            found = verify(lake, shop.directory, warehouse, source, options=pace, **options)
            return {each.table.removeprefix("public."): each for each in found}

    shop.execute(f"ALTER DATABASE {shop.dbname} SET log_statement = 'all'")
    found = verdicts(masks={name: mask for name, mask in MASKS.items() if SALT in mask})
    shop.execute(f"ALTER DATABASE {shop.dbname} RESET log_statement")
    assert "FROM pg_temp.pgoutput_salts" in shop.server.log and SALT not in shop.server.log
    assert {name: (each.equal, each.problem) for name, each in found.items()} == dict.fromkeys(found, (True, ""))
    assert found["person"].not_compared == {"password": "excluded"} and found["person"].rows == 10
    with pytest.raises(pgo.PgoutputError, match=r"public\.place\.since is masked with another salt"):
        verdicts(masks={"place.since": "sha256(other)"})
    if not more:
        return
    monkeypatch.delenv("PGOUTPUT_TEST_SALT")
    found = verdicts(masks=salted)
    assert found["person"].equal and {*found["person"].not_compared} == {"password", "email", "bio"}
    assert found["visit"].equal and {*found["visit"].not_compared} == {"email", "note"}
    assert "name is in its key, and masked with a salt that is not known here" in found["place"].problem
    if into != "parquet":
        return
    (part,) = (warehouse / "public.person").glob("v*/*.parquet")
    rows = pq.read_table(part)
    digests = ["0" * 64 if value else None for value in rows["email"].to_pylist()]
    pq.write_table(rows.set_column(1, rows.schema.field("email"), pa.array(digests)), part)
    found = verdicts(masks={name: mask for name, mask in MASKS.items() if name == "public.person.email"})
    assert not found["person"].equal and found["person"].different_rows == 2
    assert {each.columns for each in found["person"].examples} == {("email",)} and SECRET not in str(found)


@pytest.mark.parametrize("into", ["parquet"], indirect=True)
@pytest.mark.long
def test_pruned_log(spark: Any, shop: Shop, into: str, tmp_path: Path) -> None:
    """Columns and tables are known by their numbers where the log has their former names no more."""
    warehouse, rules = tmp_path / "wh", {"masks": {"person.email": f"sha256({SALT})", "visit.email": "null"}}
    _execute(shop, SCRIPTS[0])
    replicate(spark, shop.directory, warehouse, exclude_columns=["person.password"], **rules)
    renamed = ("ALTER TABLE person RENAME email TO mail", "ALTER TABLE person RENAME password TO word")
    _execute(shop, (*renamed, "ALTER TABLE visit RENAME TO visited", "UPDATE person SET plain = 'x' WHERE id = 1"))
    replicate(spark, shop.directory, warehouse, **rules)
    for number in range(3):
        _execute(shop, (f"UPDATE person SET mail = 'PLAIN{number}', word = 'PLAIN' WHERE id = {number + 2}",))
        replicate(spark, shop.directory, warehouse, **rules)
    assert prune(shop.directory, pgo.Lsn(2**63 - 1), states=False).segments
    statements = ("INSERT INTO visited VALUES ('PLAIN', 'seen', 0)", "UPDATE person SET mail = 'PLAIN9' WHERE id = 9")
    _execute(shop, statements)
    done = replicate(spark, shop.directory, warehouse, **rules)
    assert done is not None and set(done.tables.values()) == {"changed"}
    for name in ("person", "visited"):
        rows = read_current(spark, warehouse, name).select(*(["mail"] if name == "person" else ["email"]))
        assert SECRET not in str(rows.collect())
    assert {"word", "password"}.isdisjoint(read_current(spark, warehouse, "person").columns)
    # By its present name it is the same rule.
    mask = {"masks": {"person.mail": f"sha256({SALT})", **rules["masks"]}}
    assert replicate(spark, shop.directory, warehouse, **mask).tables == {}  # type: ignore[union-attr]
    with pytest.raises(pgo.PgoutputError, match=r"public\.person\.mail is .*, not masked by null: omit"):
        replicate(spark, shop.directory, warehouse, masks={"person.mail": "null", **rules["masks"]})


def _transaction(number: int, column: str, value: str) -> list[bytes]:
    lsn, time = pgo.Lsn(10 * number), pgo.Timestamp(number)
    columns = (pgo.RelationColumn(1, "id", 23, -1), pgo.RelationColumn(0, column, 25, -1))
    messages = (
        pgo.Begin(lsn, time, number),
        pgo.Relation(None, 1, "public", "t", "d", columns),
        pgo.Insert(None, 1, (b"%d" % number, value.encode())),
        pgo.Commit(lsn, pgo.Lsn(lsn + 1), time),
    )
    return [pgo.build(message) for message in messages]


@pytest.mark.parametrize("into", ["parquet"], indirect=True)
def test_log_without_facts_of_the_catalog(spark: Any, into: str, tmp_path: Path) -> None:
    """Columns are known by their names: of another name it has to be said what it is."""
    mask, payloads = (
        {"t.email": f"sha256({SALT})"},
        [*_transaction(1, "email", "PLAIN"), *_transaction(2, "mail", "PLAIN")],
    )
    for number in (1, 2):
        write_log(tmp_path / f"log{number}", payloads[: 4 * number], log_options())
    replicate(spark, tmp_path / "log1", tmp_path / "wh", masks=mask)
    with pytest.raises(
        pgo.ChangeLogError, match=r"does not say which column is 'email' now.*--mask public\.t\.mail=plain"
    ):
        replicate(spark, tmp_path / "log2", tmp_path / "other", masks=mask)
    both = {**mask, "t.mail": "null", "t.id": "plain"}
    replicate(spark, tmp_path / "log2", tmp_path / "other", masks=both)
    assert [row["mail"] for row in read_current(spark, tmp_path / "other", "t").collect()] == [None, None]
