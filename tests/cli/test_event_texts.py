"""Events of a log as sentences, which a person reads without knowing the format of the log."""

from typing import Any

import pytest

from pgoutput_construct.cli.commands._event_texts import EventTexts
from tests.cli.conftest import Run
from tests.postgres.shop import PUBLICATION, Shop


@pytest.mark.server
def test_events_of_a_capture(run: Run, shop: Shop) -> None:
    """What happened, to which table; a new connection repeats nothing; --all and --json have all details."""
    shop.execute("CREATE TABLE orders (id int PRIMARY KEY, total int, code varchar(5), old int)")
    shop.execute("INSERT INTO orders VALUES (1)")
    shop.capture(snapshot=True)
    shop.capture(until=shop.execute("INSERT INTO orders VALUES (2)"))
    shop.execute(
        "ALTER TABLE orders RENAME total TO amount; ALTER TABLE orders DROP old; ALTER TABLE orders ADD note text;"
        "ALTER TABLE orders ALTER code TYPE varchar(9); ALTER TABLE orders REPLICA IDENTITY FULL",
        "INSERT INTO orders VALUES (3)",
        "CREATE TABLE later (id int PRIMARY KEY)",
    )
    shop.capture()
    shop.execute("INSERT INTO item VALUES (1)", "DROP TABLE later")
    shop.capture()
    lines = run("tail", shop.directory).stdout.splitlines()
    said = [line.partition("  log: ")[2].partition("at ")[2].partition(": ")[2] for line in lines if "  log: " in line]
    publication = f"publication {PUBLICATION}"
    operations = "insert, update, delete, truncate"
    assert [text for text in said if text and not text.startswith("connected")] == [
        f"{publication}: all tables, 2 tables; {operations}",
        "table public.item: 2 columns, replica identity is its primary key",
        "table public.orders: 4 columns, replica identity is its primary key",
        "copied table public.item: 0 rows",
        "copied table public.orders: 1 row",
        f"{publication}: added public.later: all tables, 3 tables; {operations}",
        "table public.orders: renamed column total to amount, altered the type of column code, added column note, "
        "dropped column old: 4 columns, replica identity is FULL",
        "table public.later: 1 column, replica identity is its primary key",
        f"{publication}: removed public.later: all tables, 2 tables; {operations}",
        "table public.later: was dropped",
    ]
    major, minor = divmod(shop.log().options.server_version, 10000)
    assert lines[0].endswith(f"connected to PostgreSQL {major}.{minor}, slot {shop.slot}, timeline 1")
    assert "copied table public.orders: 1 row" in run("log", shop.directory).stdout
    full = run("tail", shop.directory, "--all").stdout
    assert full.count("table: oid=") > 4 and "renamed column" not in full
    assert '"event": "table"' in run("tail", shop.directory, "--json").stdout


@pytest.mark.parametrize(
    ("name", "details", "said"),
    [
        ("created slot", {"slot": "s", "snapshot": None}, "created slot s"),
        ("table", {"oid": 1, "schema": "s", "name": "n"}, "table s.n: 0 columns, replica identity is unknown"),
        ("options", {"slot": ["a", "b"], "publications": [["p"], ["p", "q"]]}, "slot a -> b, publications p -> p, q"),
        (
            "begun anew",
            {"reason": "the slot was lost", "void_after": 16, "snapshot": [1, 1, []]},
            "changes were lost (the slot was lost); what ended after 0/10 before this line is void: tables are",
        ),
        ("from a later version", {"a": 1}, "from a later version: a=1"),
        (
            "publication",
            {"publication": "p", "tables": [], "unsent": [{"schema": "public", "name": "f"}], "via_root": True},
            "p: 0 tables; no operations; partitions as their root; without the foreign or unlogged public.f",
        ),
        ("publication", {"publication": "p", "captured": False}, "publication p: is not captured any more"),
    ],
)
def test_an_event(name: str, details: dict[str, Any], said: str) -> None:
    """Also those that seldom happen."""
    assert said in (EventTexts().text(name, details) or "")
