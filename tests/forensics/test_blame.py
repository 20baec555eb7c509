"""Every transaction that touched a row."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import pgoutput_construct as pgo
from pgoutput_construct.changelog import SegmentLimits
from pgoutput_construct.changelog._facts.visibility import Visibility
from pgoutput_construct.changelog.compact import CompactionLimits, compact
from pgoutput_construct.cli.group import cli
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.forensics import RowTouch, blame
from tests.postgres.shop import Shop
from tests.publisher.logs import WrittenLog, insert, relation

server = pytest.mark.server
LARGE = "repeat('0123456789abcdef', 500)"


def ops(touches: list[RowTouch]) -> list[str]:
    """Return the operations."""
    return [touch.op for touch in touches]


def run(*arguments: object) -> Result:
    """Run the command."""
    return CliRunner().invoke(cli, ["blame", *map(str, arguments)])


@server
def test_a_row_and_all_that_happens_to_it(shop: Shop) -> None:
    """Keys change, tables and columns are renamed, values are not sent, savepoints are rolled back."""
    shop.execute(
        "ALTER TABLE item ADD COLUMN big text",
        "ALTER TABLE item ALTER big SET STORAGE EXTERNAL",
        f"INSERT INTO item VALUES (1, 'one', {LARGE}), (2, 'two', NULL)",
        "UPDATE item SET name = NULL WHERE id = 1",
        "UPDATE item SET id = 42 WHERE id = 1",
        "ALTER TABLE item RENAME TO thing; ALTER TABLE thing RENAME name TO title",
        "BEGIN; UPDATE thing SET id = 43 WHERE id = 42; SAVEPOINT s; DELETE FROM thing; ROLLBACK TO s;"
        " UPDATE thing SET title = 'z'; COMMIT",
        "TRUNCATE thing",
        "INSERT INTO thing VALUES (42, 'new')",
        "DELETE FROM thing WHERE id = 42",
        "INSERT INTO thing VALUES (1, 'another')",
    )
    shop.capture()
    found = blame(shop.directory, "thing", 42)
    assert ops(found) == ["insert", "update", "update", "update", "update", "truncate", "insert", "delete"]
    large = b"0123456789abcdef" * 500
    inserted, nulled, moved, away, titled, emptied, again, gone = found
    assert inserted.old is None and inserted.new == {"id": b"1", "name": b"one", "big": large}
    assert nulled.old == inserted.new and nulled.new == {"id": b"1", "name": None, "big": large}
    assert nulled.changed == ("name",) and nulled.unchanged == ("big",)
    assert (moved.changed, moved.key) == (("id",), {"id": b"42"})
    assert moved.old == nulled.new and moved.new == {"id": b"42", "name": None, "big": large}
    assert away.xid == titled.xid and titled.new == {"id": b"43", "title": b"z", "big": large}
    assert emptied.old == titled.new and emptied.new is None
    assert again.old is None and again.new == gone.old == {"id": b"42", "title": b"new", "big": None}
    assert [touch.table for touch in found[2:5]] == ["public.item", "public.thing", "public.thing"]
    assert blame(shop.log(), "public.thing", {"id": "43"}) == found[:6]
    assert [touch.new for touch in blame(shop.directory, "thing", 1)][-1] == {
        "id": b"1",
        "title": b"another",
        "big": None,
    }
    assert moved.relation is not None
    sent = pgo.Update(None, moved.relation.relation_oid, "K", (b"1", None, None), (b"42", None, pgo.UNCHANGED))
    assert pgo.parse(moved.payload, **moved.options) == sent
    row = (shop.directory, "--table", "public.thing", "--key", "43")
    assert [large.decode() in "".join(run(*row, *option).stdout.split()) for option in ([], ["--all"])] == [False, True]


@server
def test_where_a_change_comes_from(shop: Shop) -> None:
    """Each has its transaction: times, LSNs, origin, the identifier of a prepared one; streamed ones, too."""
    with shop.connect() as connection:
        connection.execute("SELECT pg_replication_origin_create('elsewhere')")
        connection.execute("SELECT pg_replication_origin_session_setup('elsewhere')")
        connection.execute("INSERT INTO item VALUES (1, 'from elsewhere')")
        connection.execute("SELECT pg_replication_origin_session_reset()")
        connection.execute("BEGIN; UPDATE item SET name = 'prepared' WHERE id = 1; PREPARE TRANSACTION 'p'")
        connection.execute("COMMIT PREPARED 'p'")
        connection.execute("BEGIN; UPDATE item SET name = 'streamed' WHERE id = 1")
        connection.execute("INSERT INTO item SELECT g, repeat('x', 300) FROM generate_series(10, 1000) g")
        connection.execute("SAVEPOINT s; UPDATE item SET name = 'undone' WHERE id = 1; ROLLBACK TO s")
        connection.execute("UPDATE item SET name = 'end' WHERE id = 1; COMMIT")
        connection.execute("SELECT pg_replication_origin_drop('elsewhere')")
    shop.capture()
    ended = {row["commit_lsn"]: row for row in shop.log().transactions().to_pylist()}
    found = blame(shop.directory, "item", 1)
    assert [(touch.origin, touch.gid) for touch in found] == [("elsewhere", None), (None, "p"), *[(None, None)] * 2]
    assert [(touch.new or {})["name"] for touch in found[1:]] == [b"prepared", b"streamed", b"end"]
    assert ended[found[-1].commit_lsn]["streamed"]
    for touch in found:
        transaction = ended[touch.commit_lsn]
        assert (touch.xid, touch.commit_time) == (transaction["xid"], transaction["commit_time"])
        assert 0 < touch.lsn <= touch.commit_lsn and shop.log().entry(touch.seq).payload == touch.payload
    time = found[1].commit_time
    assert blame(shop.directory, "item", 1, since=time, until=time) == found[1:2]
    assert blame(shop.directory, "item", 1, since=found[1].commit_lsn, until=time) == found[1:2]
    assert blame(shop.directory, "item", 1, since=pgo.Timestamp(found[-1].commit_time + 1)) == []


@server
def test_one_column(shop: Shop) -> None:
    """Only what changes the column, or may, and where the row begins and ends."""
    shop.execute(
        "INSERT INTO item VALUES (1, 'a')",
        "UPDATE item SET name = 'b'",
        "UPDATE item SET name = name",
        "UPDATE item SET id = 2",
        "DELETE FROM item",
    )
    shop.capture()
    assert ops(blame(shop.directory, "item", 1, column="name")) == ["insert", "update", "delete"]
    assert ops(blame(shop.directory, "item", 1, column="id")) == ["insert", "update", "delete"]
    assert len(blame(shop.directory, "item", 1)) == 5
    with pytest.raises(ChangeLogError, match="has no column other: it has id, name"):
        blame(shop.directory, "item", 1, column="other")


@server
def test_rows_that_were_there_before(shop: Shop) -> None:
    """A copy of the table says what a row was; without one old values are unknown."""
    shop.execute("INSERT INTO item VALUES (1, 'before'), (2, 'before')")
    shop.capture()  # the slot began earlier: these two are in the log
    shop.execute("UPDATE item SET name = 'after' WHERE id = 1")
    shop.capture(snapshot=True)
    shop.execute("DELETE FROM item WHERE id = 1")
    shop.capture(snapshot=True)
    found = blame(shop.directory, "item", 1)
    assert ops(found) == ["insert", "update", "snapshot", "delete"]
    copied = found[2]
    assert copied.old == copied.new == found[1].new and copied.xid is None and copied.lsn == 0
    assert copied.commit_time > found[1].commit_time and found[3].old == copied.new


def test_a_copy_without_the_row(tmp_path: Path) -> None:
    """What removed it is not in the log."""
    log = WrittenLog(tmp_path)
    log.commit(700, 1000, 1010, relation(1), insert(1, "a"), insert(1, "b"))
    log.publish()
    log.copy(1, 702, ["b"], 1020, visibility=Visibility.at(pgo.Lsn(1020)))
    log.commit(703, 1030, 1040, insert(1, "a"))
    log.publish()
    found = blame(log.directory, "public.t1", "a")
    assert ops(found) == ["insert", "missing", "insert"]
    assert found[1].old == {"id": b"a"} and found[1].new is None and found[1].payload == b""


def test_a_copy_among_commits(tmp_path: Path) -> None:
    """Transactions that a copy contains come before it, whatever their LSNs are; the log has them in another order."""
    log = WrittenLog(tmp_path)
    log.commit(700, 1000, 1010, relation(1), insert(1, "a"))
    log.commit(701, 1020, 1030, insert(1, "b"))
    log.commit(702, 1040, 1050, pgo.Delete(None, 1, "K", (b"a",)))
    visibility = Visibility(pgo.Lsn(1020), frozenset({702}), pgo.Lsn(1060))
    log.copy(1, 701, ["c"], 1045, visibility=visibility)
    log.publish()
    assert ops(blame(log.directory, "t1", "a")) == ["insert", "delete"]
    assert ops(blame(log.directory, "t1", "b")) == ["insert"]
    assert ops(blame(log.directory, "t1", "c")) == ["snapshot"]


@server
def test_keys(shop: Shop) -> None:
    """Of several columns by their order or names; of REPLICA IDENTITY FULL by any columns, which are named."""
    shop.execute(
        "CREATE TABLE pair (v text, b int, a text, PRIMARY KEY (a, b))",
        "INSERT INTO pair VALUES ('x', 1, 'one'), ('y', 2, 'one'), ('z', 1, 'two')",
        "UPDATE pair SET v = v || '!', a = a || 's' WHERE b = 1",
        "CREATE TABLE whole (a int, b text)",
        "ALTER TABLE whole REPLICA IDENTITY FULL",
        "INSERT INTO whole VALUES (1, 'x'), (1, 'x'), (2, 'x')",
        "UPDATE whole SET a = NULL WHERE a = 2",
        "UPDATE whole SET b = 'y' WHERE a IS NULL",
        "DELETE FROM whole WHERE a = 1",
    )
    shop.capture()
    assert [(touch.new or {})["v"] for touch in blame(shop.directory, "pair", (1, "one"))] == [b"x", b"x!"]
    assert blame(shop.directory, "pair", {"a": "one", "b": 1}) == blame(shop.directory, "pair", ["1", "one"])
    assert len(blame(shop.directory, "pair", (1, "ones"))) == 2 and len(blame(shop.directory, "pair", (2, "one"))) == 1
    found = blame(shop.directory, "whole", {"a": 2})
    assert [touch.new for touch in found] == [{"a": b"2", "b": b"x"}, {"a": None, "b": b"x"}, {"a": None, "b": b"y"}]
    assert ops(blame(shop.directory, "whole", {"a": 1, "b": "x"})) == ["insert", "insert", "delete", "delete"]
    assert blame(shop.directory, "whole", {"a": 3}) == []
    for key, problem in (
        (1, r"the key \(b, a\) has 2 columns, not 1"),
        ({"a": "one"}, "rows are told apart by b, a: give these columns"),
        ({"a": "one", "c": 1}, "has no column c: it has v, b, a"),
    ):
        with pytest.raises(PgoutputError, match=problem):
            blame(shop.directory, "pair", key)
    with pytest.raises(PgoutputError, match="has REPLICA IDENTITY FULL: name the columns"):
        blame(shop.directory, "whole", (1, "x"))
    with pytest.raises(ChangeLogError, match=r"no table public\.pairs: the log has .*public\.pair, public\.whole"):
        blame(shop.directory, "pairs", 1)


@server
def test_another_identity(shop: Shop) -> None:
    """A row is followed while it is told apart by other columns, in messages that do not have its key."""
    shop.execute(
        "CREATE TABLE t (id int PRIMARY KEY, code text NOT NULL UNIQUE, v int)",
        "INSERT INTO t VALUES (1, 'a', 0), (2, 'b', 0)",
        "ALTER TABLE t REPLICA IDENTITY USING INDEX t_code_key",
        "UPDATE t SET code = 'c' WHERE id = 1",
        "DELETE FROM t WHERE code = 'c'",
        "ALTER TABLE t REPLICA IDENTITY DEFAULT",
        "INSERT INTO t VALUES (3, 'a', 3)",
    )
    shop.capture()
    found = blame(shop.directory, "t", 1)
    assert ops(found) == ["insert", "update", "delete"]
    assert found[-1].old == {"id": b"1", "code": b"c", "v": b"0"}


@server
def test_values_in_binary_format(shop: Shop) -> None:
    """Keys and values are text, whatever was captured; what has no text here stays binary."""
    shop.execute(
        "CREATE TABLE t (id numeric(8, 2), day date, price money, PRIMARY KEY (id, day))",
        "INSERT INTO t VALUES (1, '2026-01-31', 5), (2, '2026-01-31', 6)",
        "UPDATE t SET id = 1.5, price = 7 WHERE id = 1",
    )
    shop.capture(binary=True)
    shop.execute("UPDATE t SET day = '2026-02-01' WHERE id = 1.5")
    shop.capture(binary=False)
    found = blame(shop.directory, "t", ("1.00", "2026-01-31"))
    assert [touch.changed for touch in found] == [("id", "day", "price"), ("id", "price"), ("day", "price")]
    assert found[-1].new == {"id": b"1.50", "day": b"2026-02-01", "price": b"$7.00"}
    assert found[0].new is not None and isinstance(found[0].new["price"], pgo.Binary)


@server
def test_a_key_without_text(shop: Shop) -> None:
    """A key in binary format whose text only the server knows is refused as text, and found as bytes."""
    shop.execute(
        "CREATE TABLE kinds (kind regtype PRIMARY KEY, name text)",
        "INSERT INTO kinds VALUES ('integer', 'a'), ('text', 'b')",
        "UPDATE kinds SET name = 'c' WHERE kind = 'integer'::regtype",
    )
    shop.capture(binary=True)
    for key in ("integer", "23"):
        with pytest.raises(pgo.PgoutputError, match=r"public.kinds: values of kind are in binary.* a Binary"):
            blame(shop.directory, "kinds", key)
    found = blame(shop.directory, "kinds", pgo.Binary((23).to_bytes(4)))
    assert [(touch.op, (touch.new or {})["name"]) for touch in found] == [("insert", b"a"), ("update", b"c")]
    assert blame(shop.directory, "kinds", {"kind": pgo.Binary(bytes(4))}) == []
    shop.execute("UPDATE kinds SET name = 'd' WHERE kind = 'integer'::regtype")
    shop.capture(binary=False)
    with pytest.raises(pgo.PgoutputError, match=r"values of kind are text in the log, and one in binary format"):
        blame(shop.directory, "kinds", pgo.Binary((23).to_bytes(4)))


@server
def test_keys_that_change_in_many_segments(shop: Shop) -> None:
    """One key leads to the next and to the one before, whichever is asked for; a compaction changes nothing."""
    shop.execute("INSERT INTO item SELECT g, 'other' FROM generate_series(1000, 1120) g")
    for number in range(1, 20):
        shop.execute(
            f"INSERT INTO item VALUES ({number}, 'moves')"
            if number == 1
            else f"UPDATE item SET id = {number} WHERE id = {number - 1}",
            "UPDATE item SET name = name || '!' WHERE id >= 1000",
        )
    shop.capture(limits=SegmentLimits(rows=100))
    assert len(shop.log().segments) > 20
    found = blame(shop.directory, "item", 10)
    assert [(touch.new or {})["id"] for touch in found] == [str(number).encode() for number in range(1, 20)]
    for key in (1, 19):
        assert blame(shop.directory, "item", key) == found
    compact(shop.directory, CompactionLimits(grace=0))
    assert [touch.payload for touch in blame(shop.directory, "item", 10)] == [touch.payload for touch in found]


@server
def test_segments_without_the_table_are_not_read(shop: Shop) -> None:
    """What is damaged in a segment of other tables keeps nobody from reading this one."""
    shop.execute("CREATE TABLE other (id int PRIMARY KEY)")
    shop.capture(until=shop.execute("INSERT INTO item VALUES (1, 'a')"))
    shop.capture(until=shop.execute("INSERT INTO other VALUES (2)"))
    first = next(segment.name for segment in shop.log().segments if segment.rows > segment.events)
    file = shop.directory / first
    content = file.read_bytes()
    footer = len(content) - 8 - pq.read_metadata(file).serialized_size
    file.write_bytes(content[:4] + bytes(footer - 4) + content[footer:])
    assert ops(blame(shop.directory, "other", 2)) == ["insert"]
    with pytest.raises(ChangeLogError, match=first):
        blame(shop.directory, "item", 1)


@server
def test_tables_of_one_name(shop: Shop) -> None:
    """A table that was created again is another one, and both are shown; one that was renamed has its new name."""
    shop.execute(
        "INSERT INTO item VALUES (1, 'first')",
        "DROP TABLE item; CREATE TABLE item (name text, id int PRIMARY KEY)",
        "INSERT INTO item VALUES ('second', 1)",
        "ALTER TABLE item RENAME TO old; CREATE TABLE item (id int PRIMARY KEY)",
        "INSERT INTO item VALUES (1)",
    )
    shop.capture()
    assert [touch.new for touch in blame(shop.directory, "item", 1)] == [{"id": b"1", "name": b"first"}, {"id": b"1"}]
    assert [touch.new for touch in blame(shop.directory, "old", 1)] == [{"id": b"1", "name": b"second"}]


@server
def test_the_command(shop: Shop) -> None:
    """For people, for programs, and with the bytes."""
    shop.execute(
        "ALTER TABLE item ADD COLUMN big text",
        "ALTER TABLE item ALTER big SET STORAGE EXTERNAL",
        f"INSERT INTO item VALUES (1, E'it''s\\x1b[1m', {LARGE})",
        "UPDATE item SET name = 'new', id = 2",
        "TRUNCATE item",
    )
    shop.capture()
    shown = run(shop.directory, "--table", "item", "--key", 2)
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert [line.split("  ")[1].split()[0] for line in lines[::2]] == ["commit"] * 3
    assert lines[1].startswith("  insert public.item (id=1, name='it''s\\x1b[1m', big='0123456789abcdef")
    assert "  update public.item (id=1 -> 2, name='it''s\\x1b[1m' -> 'new', big=(unchanged) '0123" in lines[3]
    told = [
        json.loads(line)
        for line in run(shop.directory, "--table", "item", "--key", 1, "--json", "--raw").stdout.splitlines()
    ]
    assert [line["op"] for line in told] == ["insert", "update", "truncate"]
    assert told[1]["old"]["id"] == 1 and told[1]["new"]["id"] == 2 and told[1]["unchanged"] == ["big"]
    assert bytes.fromhex(told[1]["payload"]) == shop.log().entry(told[1]["seq"]).payload
    annotated = run(shop.directory, "--table", "item", "--key", "id=2", "--raw").stdout
    assert "columns[0] (id)" in annotated and "relation_oid (public.item)" in annotated
    missing = run(shop.directory, "--table", "item", "--key", 3)
    assert missing.exit_code == 1 and "no change of a row of public.item with the key 3" in missing.output
    assert run(shop.directory, "--table", "item", "--key", 1, "--since", "9999-01-01").output == ""


@server
def test_a_value_with_an_equals_sign(shop: Shop) -> None:
    """It names a column only if the table has that."""
    shop.execute("CREATE TABLE t (k text PRIMARY KEY)", "INSERT INTO t VALUES ('a=b')")
    shop.capture()
    assert "insert" in run(shop.directory, "--table", "t", "--key", "a=b").stdout
    assert "insert" in run(shop.directory, "--table", "t", "--key", "k=a=b").stdout
