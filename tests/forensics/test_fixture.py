"""Streams that are cut, masked and shrunk for tests, and what plays them."""

import json
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.changelog import SegmentLimits
from pgoutput_construct.changelog.reader import EmptyLogError
from pgoutput_construct.cli.group import cli
from pgoutput_construct.columnar import BatchDecoder
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.forensics import Fixture, command_fails, fixture
from tests.postgres.shop import Shop, wait_until
from tests.publisher.subscriber import Subscriber, database
from tools.faults.generated_types import USER_TYPES, kinds_for, literal

server = pytest.mark.server


def run(*arguments: object) -> Result:
    """Run the command."""
    return CliRunner().invoke(cli, ["fixture", *map(str, arguments)])


def kinds(found: Fixture) -> list[str]:
    """Return the classes of the messages, but for descriptions."""
    return [type(each).__name__ for _, each in found.messages() if not isinstance(each, pgo.Relation | pgo.Type)]


def values(found: Fixture) -> list[Any]:
    """Return the new rows, or else the old ones."""
    changes = (each for _, each in found.messages() if isinstance(each, pgo.Insert | pgo.Update | pgo.Delete))
    return [each.old if isinstance(each, pgo.Delete) else each.new for each in changes]


def _rows_of(shop: Shop) -> int:
    """Return how many rows the log has, as far as there is one."""
    try:
        return sum(shop.log().index.counts["rows"].to_pylist())
    except EmptyLogError:
        return 0


@pytest.fixture
def busy(shop: Shop) -> Shop:
    """Return a database with transactions of every form, in two tables, one of which was altered."""
    shop.execute("CREATE TABLE other (id int PRIMARY KEY, v text)", "INSERT INTO item VALUES (1, 'first'), (2, 'two')")
    with shop.capturing(limits=SegmentLimits(seconds=0.1)), shop.connect() as one, shop.connect() as two:
        one.execute("BEGIN; INSERT INTO other SELECT g, repeat('x', 300) FROM generate_series(1, 600) g")
        two.execute("BEGIN; INSERT INTO item SELECT g, repeat('y', 300) FROM generate_series(100, 700) g")
        one.execute("SAVEPOINT s; INSERT INTO item SELECT g, repeat('z', 300) FROM generate_series(900, 1500) g")
        wait_until(lambda: _rows_of(shop) > 1500)  # what is rolled back before it is decoded is never sent
        one.execute("ROLLBACK TO s; INSERT INTO other SELECT g, repeat('x', 300) FROM generate_series(1000, 1600) g")
        one.execute("UPDATE item SET name = 'in a stream' WHERE id = 1; COMMIT")
        two.execute("DELETE FROM item WHERE id = 100; PREPARE TRANSACTION 'of Alice'")
        two.execute("COMMIT PREPARED 'of Alice'")
        one.execute("BEGIN; UPDATE item SET id = 3 WHERE id = 2; PREPARE TRANSACTION 'of Bob'")
        one.execute("ROLLBACK PREPARED 'of Bob'")
        one.execute("BEGIN; UPDATE item SET id = 4 WHERE id = 2; PREPARE TRANSACTION 'of Carol'")
        one.execute("COMMIT PREPARED 'of Carol'")
        wait_until(lambda: len(shop.log().transactions()) == 5)  # else they come again, without what was rolled back
    shop.execute(
        "ALTER TABLE item ADD COLUMN n int DEFAULT 7",
        "UPDATE item SET n = 8 WHERE id = 4",
        "SELECT pg_logical_emit_message(true, 'note', 'to Dave')",
        "TRUNCATE item, other",
    )
    shop.capture()
    return shop


@server
def test_the_form_of_transactions(busy: Shop, tmp_path: Path) -> None:
    """All of it has what the log has, byte for byte but for descriptions that are sent again and its masks."""
    found = fixture(busy.directory, masks=[("*", "plain")])
    log = busy.log()
    sent = [pgo.parse(entry.payload, **{**log.options.layout(), **entry.states}) for entry in log]
    expected = [each for each in sent if not isinstance(each, pgo.Relation | pgo.Type)]
    described = [each for _, each in found.messages() if not isinstance(each, pgo.Relation | pgo.Type)]
    assert described == expected
    assert {"StreamStart", "StreamAbort", "StreamPrepare", "Prepare", "RollbackPrepared", "Message"} <= {*kinds(found)}
    path = tmp_path / "case.jsonl"
    found.save(path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == [json.loads(line) for line in found.lines()] and len(lines) == len([*found.messages()])


@server
def test_some_of_a_stream(busy: Shop) -> None:
    """A table, transactions, a row, values and times are what is left; what became empty is left out."""
    item = fixture(busy.directory, tables=["item"], masks=[("*", "plain")])
    assert {each.name for _, each in item.messages() if isinstance(each, pgo.Relation)} == {"item"}
    truncates = [each for _, each in item.messages() if isinstance(each, pgo.Truncate)]
    assert [len(each.relation_oids) for each in truncates] == [1]
    starts = [each for _, each in item.messages() if isinstance(each, pgo.StreamStart)]
    assert Counter(each.xid for each in starts if each.first_segment) == {each.xid: 1 for each in starts}
    assert kinds(item).count("StreamAbort") == 1
    assert "Message" not in kinds(item)
    other = fixture(busy.directory, tables=["other"], masks=[("*", "plain")])
    assert "StreamAbort" not in kinds(other) and kinds(other).count("StreamCommit") == 1
    assert len(kinds(item)) + len(kinds(other)) > len(kinds(fixture(busy.directory)))
    row = fixture(busy.directory, tables=["item"], key=2, masks=[("*", "plain")])
    assert kinds(row) == [
        *("Begin", "Insert", "Commit", "BeginPrepare", "Update", "Prepare", "CommitPrepared"),
        *("Begin", "Update", "Commit", "Begin", "Truncate", "Commit"),
    ]
    assert [each.columns[-1].name for _, each in row.messages() if isinstance(each, pgo.Relation)] == ["name", "n"]
    [xid] = {each.xid for _, each in row.messages() if isinstance(each, pgo.CommitPrepared)}
    assert kinds(fixture(busy.directory, xids=[xid])) == ["BeginPrepare", "Update", "Prepare", "CommitPrepared"]
    named = fixture(busy.directory, where={"name": "in a stream"}, masks=[("*", "plain")])
    assert values(named) == [(b"1", b"in a stream")] and kinds(named)[0] == "StreamStart"
    last = max(row["commit_lsn"] for row in busy.log().transactions().to_pylist())
    assert kinds(fixture(busy.directory, since=pgo.Lsn(last))) == ["Begin", "Truncate", "Commit"]
    assert fixture(busy.directory, until=pgo.Timestamp(0)).transactions == 0
    with pytest.raises(ChangeLogError, match="no transaction has xid 5"):
        fixture(busy.directory, xids=[5])
    with pytest.raises(PgoutputError, match="a key is that of one table"):
        fixture(busy.directory, key=1)


@server
@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
@pytest.mark.parametrize("types", [10, pytest.param(20, marks=pytest.mark.long)])
def test_masks_say_nothing_of_values(shop: Shop, binary: bool, types: int) -> None:
    """Of any type: other values that are equal to each other in the same places become the same, byte for byte.

    They are values of the type, too.
    """
    shop.execute("CREATE SCHEMA other", *USER_TYPES)
    compared = random.sample([kind for kind in kinds_for(18) if len(kind.values) > 1], types)
    for number, kind in enumerate(compared):
        one, two = kind.values[0], kind.values[-1]
        for name, order in (("a", (one, two, one, "NULL")), ("b", (two, one, two, "NULL"))):
            rows = ", ".join(f"({7001 + place}, {value})" for place, value in enumerate(order))
            shop.execute(
                f"CREATE TABLE {name}{number} (id int PRIMARY KEY, v {kind.name})",
                f"ALTER TABLE {name}{number} REPLICA IDENTITY FULL",
                f"INSERT INTO {name}{number} VALUES {rows}",
                f"DELETE FROM {name}{number} WHERE id < 7003",
            )
    shop.capture(binary=binary)
    log = shop.log()
    different = 0
    for number, kind in enumerate(compared):
        masked = [values(fixture(log, tables=[f"{name}{number}"])) for name in "ab"]
        assert masked[0] == masked[1], kind.name
        plain = [values(fixture(log, tables=[f"{name}{number}"], masks=[("*", "plain")])) for name in "ab"]
        different += plain[0] != plain[1]
        with shop.connect() as connection:
            texts = [value for _, value in masked[0] if value is not None and not isinstance(value, pgo.Binary)]
            for text in texts if kind.name != "dear" else ():  # whose check the log does not have
                connection.execute(f"SELECT %s::{kind.name}", [text.decode()])
    assert different > len(compared) - 3  # some have one value in two forms


@server
@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_masked_values_are_of_their_types(shop: Shop, binary: bool) -> None:
    """Of every type: PostgreSQL's input function takes what a mask makes of a value, and so does our decoder."""
    compared = [kind for kind in kinds_for(18) if kind.name != "dear"]  # its check is not in the log
    shop.execute("CREATE SCHEMA other", *USER_TYPES)
    columns = ", ".join(f"v{number} {kind.name}" for number, kind in enumerate(compared))
    shop.execute(
        f"CREATE TABLE every ({columns})",
        "ALTER TABLE every REPLICA IDENTITY FULL",
        *(
            f"INSERT INTO every VALUES ({', '.join(kind.values[place % len(kind.values)] for kind in compared)})"
            for place in range(3)
        ),
        "DELETE FROM every",
    )
    shop.capture(binary=binary)
    found = fixture(shop.directory, tables=["every"])
    rows = values(found)
    assert len(rows) == 6
    for kind, *masked in zip(compared, *rows, strict=True):
        for value in dict.fromkeys(masked):
            assert isinstance(value, bytes) and not isinstance(value, pgo.Binary), kind.name
            shop.execute(f"SELECT {literal(value.decode())}::{kind.name}")
    session = pgo.Session(**found.options)
    decoded = BatchDecoder(**found.options).decode([session.build(message) for _, message in found.messages()])
    assert not decoded.errors and sum(table.batch.num_rows for table in decoded.tables) == 6
    assert not any(table.batch["_untyped"].null_count < table.batch.num_rows for table in decoded.tables)


@server
def test_masks_leave_nothing_plain(shop: Shop, tmp_path: Path) -> None:
    """No value, no name of a prepared transaction or origin, no content of a message is in the file."""
    with shop.connect() as connection:
        connection.execute("ALTER TABLE item ADD COLUMN day date, ADD COLUMN tags text[], ADD COLUMN doc jsonb")
        connection.execute("SELECT pg_replication_origin_create('secret origin')")
        connection.execute("SELECT pg_replication_origin_session_setup('secret origin')")
        connection.execute(
            "BEGIN; INSERT INTO item VALUES (9876543, 'secret text', '1987-06-05', '{secret}', '{\"secret\": 1}')"
        )
        connection.execute("PREPARE TRANSACTION 'secret gid'")
        connection.execute("COMMIT PREPARED 'secret gid'")
        connection.execute("UPDATE item SET id = 9876544, name = 'secret too'")
        connection.execute("SELECT pg_logical_emit_message(true, 'note', 'secret content')")
        connection.execute("SELECT pg_replication_origin_session_reset()")
        connection.execute("SELECT pg_replication_origin_drop('secret origin')")
    shop.capture()
    path, secrets = tmp_path / "case.jsonl", ("secret", b"secret".hex(), "987654", "1987")
    fixture(shop.directory).save(path)
    assert not any(secret in path.read_text() for secret in secrets)
    fixture(shop.directory, masks=[("*", "plain")]).save(path)
    left = [
        secret
        for secret in (*secrets, "secret gid", b"secret content".hex(), "secret origin")
        if secret not in path.read_text()
    ]
    assert left == []


@server
def test_masked_values_are_consistent(shop: Shop) -> None:
    """Equal values become equal tokens, in keys and old rows, and in what refers to them."""
    shop.execute(
        "CREATE TABLE parent (id int PRIMARY KEY, code varchar(3))",
        "CREATE TABLE child (id bigint PRIMARY KEY, parent int REFERENCES parent ON UPDATE CASCADE, note text)",
        "INSERT INTO parent VALUES (500, 'abc'), (600, 'def')",
        "INSERT INTO child VALUES (700, 500, 'abc'), (800, 600, NULL)",
        "UPDATE parent SET id = 501 WHERE id = 500",
        "DELETE FROM child WHERE id = 700",
    )
    shop.capture()
    found = fixture(shop.directory, masks=[("public.child.note", "text(***)"), ("parent.code", "token")])
    assert values(found) == [
        (b"1", b"001"),
        (b"2", b"002"),
        (b"3", b"1", b"***"),
        (b"4", b"2", None),
        (b"5", b"001"),
        (b"3", b"5", b"***"),
        (b"3", None, None),
    ]
    [moved] = [each for _, each in found.messages() if isinstance(each, pgo.Update) and each.old is not None]
    assert moved.old == (b"1", None) and fixture(shop.directory).options == shop.log().options.layout()
    plain = fixture(shop.directory, masks=[("*", "null"), ("child.*", "plain")])
    assert values(plain)[2] == (b"700", b"500", b"abc") and values(plain)[0] == (None, None)
    for wrong in (("note", "null"), ("child.note", "sha256"), ("a.b.c.d", "null")):
        with pytest.raises(PgoutputError, match=r"is not a mask|a column is named"):
            fixture(shop.directory, masks=[wrong])


@server
def test_a_subscription_is_played_to(busy: Shop, server18: EmbeddedServer, tmp_path: Path) -> None:
    """PostgreSQL's own subscription applies a masked fixture; the publisher of tests goes on after it."""
    busy.execute("INSERT INTO other VALUES (5, 'five')", "INSERT INTO item VALUES (6, 'six', 6)")
    busy.capture()
    path = tmp_path / "case.jsonl"
    assert run(busy.directory, "--table", "other", "-o", path).exit_code == 0
    with testing.publisher() as served, database(server18, "fixture") as connection:
        end = served.play(path)
        connection.execute("CREATE TABLE other (id int PRIMARY KEY, v text)")
        subscriber = Subscriber(server18, connection, served.dsn, "played")
        subscriber.subscribe()
        try:
            served.wait_confirmed("played", end)
            assert subscriber.rows("other") == [(5, "text2")]
        finally:
            subscriber.unsubscribe()
        table = served.table("more", {"id": "int4"}, key=["id"])
        assert served.commit([table.insert({"id": 1})]) > end


@server
def test_shrinking(busy: Shop, tmp_path: Path) -> None:
    """What does not matter is left out: transactions, changes, columns; a failure and a hang are both failures."""
    path, check = tmp_path / "case.jsonl", tmp_path / "check.sh"
    check.write_text("""! { grep -q 'in a stream' "$1" && grep -q '"message": "Delete"' "$1"; }""")
    done = run(
        *(busy.directory, "--mask", "*=plain", "-o", path),
        *("--shrink", f"sh {check} {{file}}"),
    )
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    changes = [line for line in lines if line["message"] in ("Insert", "Update", "Delete")]
    assert [line["message"] for line in changes] == ["Update", "Delete"] and "2 transactions, 2 changes" in done.output
    assert [len(line["columns"]) for line in lines if line["message"] == "Relation"] == [2, 2]
    whole = fixture(busy.directory, tables=["other"])
    small = whole.shrunk(lambda trial: "TRUNCATE" in "".join(kinds(trial)).upper() or len(values(trial)) > 3)
    assert kinds(small) == ["Begin", "Truncate", "Commit"] and small.transactions == small.changes == 1
    hanging = command_fails("sleep 60; true", timeout=0.5)
    assert hanging(small) and not command_fails("true", 60.0)(small) and command_fails("exit 3", 60.0)(small)
    with pytest.raises(PgoutputError, match="nothing fails, so there is nothing to shrink"):
        whole.shrunk(lambda trial: False)
    with pytest.raises(PgoutputError, match="cannot be executed: the shell ends with status 127"):
        whole.shrunk(command_fails("no_such_command {file}", 60.0))


@server
def test_columns_are_left_out(busy: Shop) -> None:
    """Columns that do not matter are in neither descriptions nor rows; those of keys stay."""
    found = fixture(busy.directory, tables=["item"], masks=[("*", "plain")])
    small = found.shrunk(lambda trial: any(row[-1] == b"8" for row in values(trial)))
    [described] = [each for _, each in small.messages() if isinstance(each, pgo.Relation)]
    assert [column.name for column in described.columns] == ["id", "n"] and values(small) == [(b"4", b"8")]


@server
def test_a_client_of_a_publisher(busy: Shop, tmp_path: Path) -> None:
    """The command gets the connection string of what serves the fixture."""
    small = fixture(busy.directory, tables=["item"], key=2)
    program = (
        "import sys; from pgoutput_construct import postgres\n"
        "with postgres.stream(sys.argv[1], 'mine', ['p'], create_slot=True) as transactions:\n"
        "    for transaction in transactions:\n"
        "        for change in transaction: sys.exit(change.op == 'insert')\n"
    )
    (tmp_path / "client.py").write_text(program)
    assert command_fails(f"{sys.executable} {tmp_path}/client.py '{{dsn}}'", 60.0)(small)


@server
def test_arguments(busy: Shop, tmp_path: Path) -> None:
    """A key needs a table; a log without such changes makes an empty file."""
    assert run(busy.directory, "-o", tmp_path / "x", "--key", 1).exit_code == 2
    done = run(busy.directory, "-o", tmp_path / "x", "--since", "FFFFFFF/0")
    assert done.exit_code == 0 and (tmp_path / "x").read_bytes() == b"" and "0 transactions, 0 changes" in done.output
