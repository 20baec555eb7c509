"""The SQL that takes transactions back, executed on the server that they come from."""

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result

import pgoutput_construct as pgo
from pgoutput_construct.cli.group import cli
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.forensics import UndoScript, undo
from pgoutput_construct.postgres import create_slot, drop_slot
from tests.postgres.shop import Shop, is_active, wait_until

pytestmark = pytest.mark.server
SCHEMA = Path(__file__).parents[2] / "pgoutput_construct" / "demo" / "shop.sql"
LARGE = "repeat('0123456789abcdef', 500)"
RETAIL = ("customers", "orders", "order_lines", "carts")


def transaction(shop: Shop, *statements: str) -> int:
    """Execute a transaction; return its xid."""
    with shop.connect() as connection:
        connection.execute("BEGIN")
        for statement in statements:
            connection.execute(statement.encode())
        row = connection.execute("SELECT pg_current_xact_id()::text").fetchone()
        connection.execute("COMMIT")
    assert row is not None
    return int(row[0])


def captured(shop: Shop, *statements: str) -> int:
    """Execute a transaction, and capture it; return its xid."""
    xid = transaction(shop, *statements)
    shop.capture()
    return xid


def rows(shop: Shop, *tables: str) -> list[list[Any]]:
    """Return the rows of tables."""
    with shop.connect() as connection:
        queries = (f"SELECT t::text FROM {table} t ORDER BY 1" for table in tables)
        return [[row[0] for row in connection.execute(query.encode())] for query in queries]


def execute(shop: Shop, script: UndoScript, partial: bool = False) -> None:
    """Execute a script as a program does."""
    with shop.connect() as connection:
        try:
            connection.execute(script.text(partial).encode())
        finally:
            connection.execute("ROLLBACK")


def run(*arguments: object) -> Result:
    """Run the command."""
    return CliRunner().invoke(cli, ["undo", *map(str, arguments)])


@pytest.fixture
def retail(shop: Shop) -> Shop:
    """Return the shop of the demo, with rows: foreign keys that cascade, enums, domains, arrays, TOASTed text."""
    shop.execute(
        SCHEMA.read_text().partition("CREATE PUBLICATION")[0],
        "INSERT INTO customers (name, email, biography, tags, profile, rating) SELECT 'c' || g, g || '@x.org', "
        f"{LARGE} || g, ARRAY['a', NULL, g::text], jsonb_build_object('n', g), 'nan' FROM generate_series(1, 5) g",
        "INSERT INTO orders (customer_id, total, scores, details) SELECT 1 + g % 5, g, ARRAY[g], '{\"a\":1}' "
        "FROM generate_series(1, 20) g",
        "INSERT INTO order_lines SELECT 1 + g % 20, g, 'p' || g, g, g / 2.0, decode('00ff', 'hex') "
        "FROM generate_series(1, 40) g",
        "INSERT INTO carts VALUES (1, '{}')",
    )
    shop.capture(snapshot=True)
    return shop


@pytest.mark.parametrize(
    "statements",
    [
        ["DELETE FROM customers WHERE id = 2"],
        ["UPDATE customers SET id = id + 100"],
        ["UPDATE customers SET biography = 'short', balance = 5 WHERE id < 3", "DELETE FROM customers WHERE id = 1"],
        ["UPDATE customers SET name = 'x'", "UPDATE orders SET status = 'paid', details = '[1]', scores = NULL"],
        ["UPDATE orders SET id = -id", "DELETE FROM order_lines WHERE line % 2 = 0", "DELETE FROM customers"],
        ["INSERT INTO customers (name) VALUES ('n')", "UPDATE customers SET token = gen_random_uuid()"],
        ["TRUNCATE carts", "INSERT INTO carts VALUES (2)", "TRUNCATE carts", "INSERT INTO carts VALUES (1, '[]')"],
    ],
    ids=["delete cascades", "update cascades", "toast", "types", "keys", "insert", "truncate"],
)
def test_the_shop_of_the_demo(retail: Shop, statements: list[str]) -> None:
    """Whatever a transaction did, with what it cascaded to, is taken back."""
    before = rows(retail, *RETAIL)
    xid = captured(retail, *statements)
    after = rows(retail, *RETAIL)
    assert after != before
    script = undo(retail.directory, xid=xid)
    assert script.obstacles == () and script.notes == ()
    execute(retail, script)
    assert rows(retail, *RETAIL) == before
    with pytest.raises(psycopg.Error):
        execute(retail, script)
    assert rows(retail, *RETAIL) == before
    retail.capture()
    latest = max(row["commit_lsn"] for row in retail.log().transactions().to_pylist())
    execute(retail, undo(retail.directory, lsn=pgo.Lsn(latest)))
    assert rows(retail, *RETAIL) == after


def test_rows_that_were_changed_since(retail: Shop) -> None:
    """Nothing is changed; the script and the log say of which row."""
    xid = transaction(retail, "UPDATE customers SET balance = 1")
    captured(retail, "UPDATE customers SET balance = 2 WHERE id = 3")
    before = rows(retail, *RETAIL)
    script = undo(retail.directory, xid=xid)
    [note] = script.notes
    assert "update of public.customers (id='3'): this row was changed later" in note
    with pytest.raises(
        psycopg.errors.RaiseException, match=r"public.customers \(id='3'\): the row is not as this change"
    ):
        execute(retail, script)
    assert rows(retail, *RETAIL) == before
    execute(retail, undo(retail.directory, since=_lsn(retail, xid)))
    assert {row.split(",")[3] for row in rows(retail, "customers")[0]} == {"0.00"}


def _lsn(shop: Shop, xid: int) -> pgo.Lsn:
    [found] = [row for row in shop.log().transactions().to_pylist() if row["xid"] == xid]
    return pgo.Lsn(found["commit_lsn"])


def test_foreign_keys_are_checked(retail: Shop) -> None:
    """What later rows depend on stays, and so does what would depend on rows that are gone."""
    xid = transaction(retail, "INSERT INTO customers (id, name) VALUES (50, 'new')")
    deleted = transaction(retail, "DELETE FROM orders WHERE id = 1")
    captured(retail, "INSERT INTO orders (customer_id) VALUES (50)", "DELETE FROM customers WHERE id = 2")
    for number in (xid, deleted):
        with pytest.raises(
            psycopg.errors.ForeignKeyViolation, match="would violate the foreign key orders_customer_id"
        ):
            execute(retail, undo(retail.directory, xid=number))


def test_with_triggers(retail: Shop) -> None:
    """Triggers fire, and the role needs no more than the rights on the tables."""
    retail.execute(
        "CREATE TABLE audit (n int)",
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql "
        "AS 'BEGIN INSERT INTO audit VALUES (1); RETURN NULL; END'",
        "CREATE TRIGGER note AFTER UPDATE ON carts FOR EACH ROW EXECUTE FUNCTION note()",
        "CREATE ROLE clerk; GRANT ALL ON carts, audit, customers, orders, order_lines TO clerk",
    )
    try:
        xid = transaction(retail, "UPDATE carts SET content = '[]'")
        cascading = captured(retail, "DELETE FROM customers WHERE id = 1")
        with retail.connect() as connection:
            connection.execute("SET ROLE clerk")
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="session_replication_role"):
                connection.execute(undo(retail.directory, xid=xid, tables=["carts"]).text().encode())
            connection.execute("ROLLBACK")
            connection.execute(undo(retail.directory, xid=xid, tables=["carts"], with_triggers=True).text().encode())
            with pytest.raises(psycopg.errors.ForeignKeyViolation):
                connection.execute(undo(retail.directory, xid=cascading, with_triggers=True).text().encode())
            connection.execute("ROLLBACK")
        assert rows(retail, "carts", "audit") == [["(1,{})"], ["(1)", "(1)"]]
        execute(retail, undo(retail.directory, xid=xid, tables=["audit"]), partial=True)
    finally:
        retail.execute("DROP OWNED BY clerk; DROP ROLE clerk")


def test_what_the_log_does_not_have(shop: Shop) -> None:
    """Old values that nobody sent, truncated rows, sequences: each is named, and no SQL is printed."""
    shop.execute(
        "ALTER TABLE item ADD COLUMN n serial",
        "CREATE TABLE whole (a int, b text)",
        "ALTER TABLE whole REPLICA IDENTITY FULL",
        "INSERT INTO item VALUES (1, 'one'), (2, 'two'), (3, 'three')",
        "INSERT INTO whole VALUES (1, 'x')",
    )
    with shop.connect() as connection:
        connection.execute("SELECT pg_drop_replication_slot(%s)", [shop.slot])
    shop.capture(create_slot=True, on_lost_slot="snapshot", new_log=False)
    xid = captured(
        shop,
        "UPDATE item SET name = 'new' WHERE id = 1",
        "DELETE FROM item WHERE id = 2",
        "UPDATE whole SET b = 'y'",
        "TRUNCATE item RESTART IDENTITY",
    )
    script = undo(shop.directory, xid=xid)
    assert [each.partition(": ")[2] for each in script.obstacles] == [
        "truncate of public.item: it restarted the sequences of the table (RESTART IDENTITY)",
        "truncate of public.item: the log does not have all rows that the table had: it needs a table copy before",
        "delete of public.item (id='2'): the log does not have the old values of name, n",
        "update of public.item (id='1'): a later change of this row is not taken back",
    ]
    done = run(shop.directory, "--xid", xid)
    assert done.exit_code == 1 and "4 changes cannot be taken back: see --partial" in done.stderr
    assert all(line.startswith("-- ") for line in done.stdout.splitlines())
    assert done.stderr.count("not taken back: seq ") == 4
    partly = run(shop.directory, "--xid", xid, "--partial")
    assert partly.exit_code == 0 and "NOT taken back" in partly.stdout
    with shop.connect() as connection:
        connection.execute(partly.stdout.encode())
    assert rows(shop, "item", "whole") == [[], ["(1,x)"]]
    single = captured(shop, "INSERT INTO item VALUES (9)", "UPDATE item SET name = 'a'")
    assert undo(shop.directory, xid=single).obstacles == ()


def test_values_in_binary_format(shop: Shop) -> None:
    """Bytes whose text only the server knows are no text in another encoding: their row is found by its key."""
    shop.execute("CREATE TABLE t (id int PRIMARY KEY, v money)", "INSERT INTO t VALUES (1, -1)")
    shop.capture(binary=True)
    inserted = transaction(shop, "INSERT INTO t VALUES (2, -2)")
    shop.capture(binary=True)
    execute(shop, undo(shop.directory, xid=inserted))
    assert rows(shop, "t") == [["(1,-$1.00)"]]
    updated = transaction(shop, "UPDATE t SET v = -3 WHERE id = 1")
    shop.capture(binary=True)
    (obstacle,) = undo(shop.directory, xid=updated).obstacles
    assert "only the server has the text of v, which was captured in binary format" in obstacle


def test_tables_that_are_different_now(shop: Shop) -> None:
    """Names are those of now; what was added gets its default, what was dropped is left out, with notes."""
    shop.execute("ALTER TABLE item ADD COLUMN gone int DEFAULT 1", "INSERT INTO item VALUES (1, 'a', 2), (2, 'b', 3)")
    deleted = transaction(shop, "DELETE FROM item WHERE id = 1")
    updated = transaction(shop, "UPDATE item SET name = 'c', gone = 4")
    for statement in (
        'ALTER TABLE item RENAME TO "It\'s ""odd"""',
        'ALTER TABLE "It\'s ""odd""" RENAME name TO "undo_rows"',
        'ALTER TABLE "It\'s ""odd""" DROP COLUMN gone, ADD COLUMN "new one" text DEFAULT \'d\'',
    ):
        shop.capture()
        shop.execute(statement)
    shop.capture()
    script = undo(shop.directory, xid=updated)
    assert script.tables == ('public."It\'s ""odd"""',) and "columns were dropped since: gone" in script.notes[0]
    execute(shop, script)
    script = undo(shop.directory, xid=deleted)
    assert 'the defaults of columns that were added since: "new one"' in script.notes[0]
    execute(shop, script)
    assert rows(shop, script.tables[0]) == [["(1,a,d)", "(2,b,d)"]]
    dropped = captured(shop, f"DELETE FROM {script.tables[0]}")
    shop.execute(
        f"DROP TABLE {script.tables[0]}", "CREATE TABLE item (id int PRIMARY KEY)", "INSERT INTO item VALUES (1)"
    )
    shop.capture()
    assert all("the table was dropped since" in each for each in undo(shop.directory, xid=dropped).obstacles)


def test_a_transaction_with_ddl(shop: Shop) -> None:
    """What it altered cannot be taken back, which is said."""
    xid = captured(
        shop,
        "INSERT INTO item VALUES (1, 'a')",
        "ALTER TABLE item ADD COLUMN n int DEFAULT 5",
        "UPDATE item SET n = 6",
    )
    [obstacle] = undo(shop.directory, xid=xid).obstacles
    assert obstacle == f"xid {xid}: it altered public.item: DDL is not in the stream"


def test_columns_that_the_server_fills(shop: Shop) -> None:
    """Generated columns are computed again; identity columns get their values back."""
    shop.execute(
        "CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a int, "
        "twice int GENERATED ALWAYS AS (a * 2) STORED)",
        "INSERT INTO t (a) VALUES (1), (2), (3)",
    )
    before = rows(shop, "t")
    execute(shop, undo(shop.directory, xid=captured(shop, "DELETE FROM t WHERE a = 1", "UPDATE t SET a = a + 5")))
    assert rows(shop, "t") == before


def test_columns_that_are_not_published(shop: Shop) -> None:
    """A row that was deleted cannot come back without their values."""
    shop.execute(
        "CREATE TABLE t (id int PRIMARY KEY, a int, secret int)",
        "INSERT INTO t VALUES (1, 1, 1)",
        "CREATE PUBLICATION partly FOR TABLE t (id, a)",
    )
    part = replace(shop, slot=f"{shop.slot}_partly")
    with part.connect() as connection:
        create_slot(connection, part.slot, two_phase=True)
        try:
            part.capture(publications=["partly"], snapshot=True)
            updated = transaction(part, "UPDATE t SET a = 2")
            deleted = transaction(part, "DELETE FROM t")
            part.capture(publications=["partly"])
        finally:
            wait_until(lambda: not is_active(part))
            drop_slot(connection, part.slot)
    [obstacle] = undo(part.directory, xid=deleted).obstacles
    assert obstacle.endswith("the stream does not have the values of columns that are not published: secret")
    shop.execute("INSERT INTO t VALUES (1, 2, 7)")
    execute(shop, undo(shop.directory, xid=updated))
    assert rows(shop, "t") == [["(1,1,7)"]]


@pytest.mark.parametrize("text", ["$undo$", "it's \\ -- \n; COMMIT; $undo$ $undo1$", "é\U0001f418\t", "", "NULL"])
def test_values_that_need_quotes(shop: Shop, text: str) -> None:
    """Whatever a value is, it ends nothing."""
    with shop.connect() as connection:
        connection.execute("CREATE TABLE t (k text PRIMARY KEY, v json, w text, x text[])")
        connection.execute("INSERT INTO t VALUES (%s, to_json(%s::text), %s, ARRAY[%s])", [text] * 4)
    before = rows(shop, "t")
    execute(shop, undo(shop.directory, xid=captured(shop, "UPDATE t SET k = k || 'x', v = NULL, w = NULL, x = NULL")))
    assert rows(shop, "t") == before
    execute(shop, undo(shop.directory, xid=captured(shop, "DELETE FROM t")))
    assert rows(shop, "t") == before


def test_by_psql(shop: Shop) -> None:
    """The script is for psql, too, which ends with an error where nothing was changed."""
    shop.execute("INSERT INTO item VALUES (1, 'é')")
    xid = captured(shop, "DELETE FROM item")
    script = run(shop.directory, "--xid", xid).stdout
    psql = [str(shop.server.bin_path / "psql"), "-X", "-q", "-d", shop.dsn, "-v", "ON_ERROR_STOP=1"]
    for status in (0, 3):
        assert subprocess.run(psql, input=script.encode(), check=False, stderr=subprocess.PIPE).returncode == status
    assert rows(shop, "item") == [["(1,é)"]]


def test_which_transactions(shop: Shop) -> None:
    """By xid, LSN or time; of some tables."""
    shop.execute("CREATE TABLE other (id int PRIMARY KEY)")
    first = transaction(shop, "INSERT INTO item VALUES (1)", "INSERT INTO other VALUES (1)")
    second = transaction(shop, "INSERT INTO item VALUES (2)")
    third = captured(shop, "INSERT INTO item VALUES (3)")
    known = {row["xid"]: row for row in shop.log().transactions().to_pylist()}
    lsns = [pgo.Lsn(known[xid]["commit_lsn"]) for xid in (first, second, third)]
    times = [pgo.Timestamp(known[xid]["commit_time"]) for xid in (first, second, third)]

    def xids(script: UndoScript) -> Sequence[int]:
        return [each.xid for each in script.transactions]

    assert xids(undo(shop.directory, lsn=lsns[1])) == [second]
    assert xids(undo(shop.log(), since=lsns[1])) == xids(undo(shop.log(), since=times[1])) == [second, third]
    assert xids(undo(shop.log(), since=times[0], until=lsns[1])) == [first, second]
    assert undo(shop.log(), xid=first, tables=["other"]).tables == ("public.other",)
    assert len(undo(shop.log(), since=lsns[0]).statements) == 4
    assert undo(shop.log(), since=pgo.Timestamp(times[2] + 1)).statements == ()
    with pytest.raises(ChangeLogError, match="no committed transaction has xid 5"):
        undo(shop.log(), xid=5)
    with pytest.raises(ChangeLogError, match="no committed transaction has a commit at 0/5"):
        undo(shop.log(), lsn=pgo.Lsn(5))
    with pytest.raises(ChangeLogError, match=r"no table public\.missing"):
        undo(shop.log(), xid=first, tables=["missing"])
    for wrong in ({}, {"xid": 1, "lsn": pgo.Lsn(1)}, {"xid": 1, "until": pgo.Lsn(1)}):
        with pytest.raises(PgoutputError, match=r"give one of|until needs since"):
            undo(shop.log(), **wrong)
    assert run(shop.directory).exit_code == run(shop.directory, "--xid", 1, "--until", "0/1").exit_code == 2
