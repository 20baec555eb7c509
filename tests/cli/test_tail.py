"""``pgoutput tail``: committed transactions of a log and of a server, for people and for programs."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from pgoutput_construct import Lsn
from pgoutput_construct.postgres import slot_health
from pgoutput_construct.spark._log_view.log_tables import LogTables
from tests.cli.conftest import Run
from tests.postgres.shop import PUBLICATION, Shop, wait_until

PROGRAM = [sys.executable, "-m", "pgoutput_construct.cli", "tail"]


def _changes(text: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, text.splitlines()) if "event" not in line]


@pytest.mark.server
def test_a_log_for_people(run: Run, shop: Shop) -> None:
    """Inserts, keys that change, deletes, messages; nothing of what was rolled back; old -> new where it is known."""
    shop.execute(
        "ALTER TABLE item REPLICA IDENTITY FULL",
        "INSERT INTO item VALUES (1, 'it''s'), (2, NULL)",
        "BEGIN; SAVEPOINT s; INSERT INTO item VALUES (3, 'gone'); ROLLBACK TO s; UPDATE item SET name = E'\\x1b[1m'"
        " WHERE id = 2; SELECT pg_logical_emit_message(true, 'note', 'in it'); COMMIT",
        "BEGIN; INSERT INTO item VALUES (4, 'gone'); ROLLBACK",
        "SELECT pg_logical_emit_message(false, 'note', 'outside')",
        "DELETE FROM item WHERE id = 1",
        "TRUNCATE item",
    )
    shop.capture()
    shown = run("tail", shop.directory).stdout
    events = (" commit ", "  log: ")
    lines = [line.strip() for line in shown.splitlines() if not any(word in line for word in events)]
    assert lines[:4] == [
        "insert public.item (id=1, name='it''s')",
        "insert public.item (id=2, name=NULL)",
        "update public.item (id=2, name=NULL -> '\\x1b[1m')",
        "message 'note' 'in it'",
    ]
    assert lines[4].endswith("message 'note' 'outside'")
    assert lines[5:] == ["delete public.item (id=1, name='it''s')", "truncate public.item"]
    assert shown.count(" commit ") == 4 and "gone" not in shown


@pytest.mark.server
def test_streamed_and_prepared_transactions(run: Run, shop: Shop) -> None:
    """Each transaction comes at its commit, whole, however the server sent it; its subtransactions' aborts count."""
    with shop.connect() as one, shop.connect() as two:
        one.execute("BEGIN; SAVEPOINT s")
        one.execute("INSERT INTO item SELECT g, repeat('x', 300) FROM generate_series(1, 1000) g")
        one.execute("ROLLBACK TO s; SAVEPOINT t")
        one.execute("INSERT INTO item SELECT g, repeat('x', 300) FROM generate_series(2001, 3000) g")
        two.execute("INSERT INTO item VALUES (5000, 'between')")
        one.execute("PREPARE TRANSACTION 'large'")
        two.execute("INSERT INTO item VALUES (5001, 'before its commit')")
        two.execute("COMMIT PREPARED 'large'")
    shop.capture()
    changes = _changes(run("tail", shop.directory, "--json").stdout)
    assert [line["new"]["id"] for line in changes] == [5000, 5001, *range(2001, 3001)]
    assert len({line["commit_lsn"] for line in changes}) == 3
    assert {line["table"] for line in changes} == {"public.item"}


@pytest.mark.server
def test_what_is_wanted(run: Run, shop: Shop) -> None:
    """A table, a beginning and a number of transactions choose."""
    shop.execute("CREATE TABLE other (id int PRIMARY KEY, at numeric(6, 2), ok bool, x float8, b bytea)")
    for number in range(3):
        shop.execute(
            f"INSERT INTO item VALUES ({number}, 'a'); INSERT INTO other VALUES ({number}, 1.50, true, 'nan', 'b')"
        )
    shop.capture()
    changes = _changes(run("tail", shop.directory, "--json", "--table", "public.other").stdout)
    assert [line["new"] for line in changes] == [
        {"id": number, "at": "1.50", "ok": True, "x": "NaN", "b": "\\x62"} for number in range(3)
    ]
    start = changes[1]["commit_lsn"]
    some = _changes(
        run("tail", shop.directory, "--json", "--from-lsn", start, "--limit", 1, "--table", "public.item").stdout
    )
    assert [line["new"]["id"] for line in some] == [1]
    unknown = run("tail", shop.directory, "--table", "public.others")
    assert unknown.exit_code == 1 and "the log has public.item, public.other" in unknown.output


@pytest.mark.server
def test_segments_without_the_table_are_not_read(run: Run, shop: Shop) -> None:
    """What is damaged in a segment of other tables keeps nobody from reading this one."""
    shop.execute("CREATE TABLE other (id int PRIMARY KEY)")
    shop.capture(until=shop.execute("INSERT INTO item VALUES (1, 'a')"))
    shop.capture(until=shop.execute("INSERT INTO other VALUES (2)"))
    first = next(segment.name for segment in shop.log().segments if segment.rows > segment.events)
    file = shop.directory / first
    content = file.read_bytes()
    footer = len(content) - 8 - pq.read_metadata(file).serialized_size
    file.write_bytes(content[:4] + bytes(footer - 4) + content[footer:])
    changes = _changes(run("tail", shop.directory, "--json", "--table", "public.other").stdout)
    assert [line["new"] for line in changes] == [{"id": 2}]
    damaged = run("tail", shop.directory, "--table", "public.item")
    assert damaged.exit_code == 1 and first in damaged.output


@pytest.mark.server
def test_binary_values(run: Run, shop: Shop) -> None:
    """Values in binary format are shown as those in text."""
    shop.execute("INSERT INTO item VALUES (1, 'a')")
    shop.capture(binary=True)
    assert _changes(run("tail", shop.directory, "--json").stdout)[0]["new"] == {"id": 1, "name": "a"}


@pytest.mark.server
@pytest.mark.parametrize("live", [False, True], ids=["log", "server"])
def test_what_commits_meanwhile(shop: Shop, live: bool) -> None:
    """A log that grows, and a server, are followed; a server's temporary slot is gone afterwards."""
    shop.capture(messages=None, until=shop.execute("INSERT INTO item VALUES (1, 'a')"))
    source = [shop.dsn, "--publication", PUBLICATION] if live else [str(shop.directory), "--follow"]
    command = [*PROGRAM, *source, "--json", "--limit", "1" if live else "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        if live:
            wait_until(lambda: _temporary_slots(shop) == 1)
        shop.execute("INSERT INTO item VALUES (2, 'b')")
        if not live:
            shop.capture(messages=None)
        output, errors = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    assert [line["new"]["name"] for line in _changes(output)] == (["b"] if live else ["a", "b"])
    assert _temporary_slots(shop) == 0


@pytest.mark.server
def test_a_quiet_publication_holds_no_wal(shop: Shop) -> None:
    """What other tables write moves the slot of a tail on, though nothing of it is sent."""
    shop.execute("CREATE TABLE busy (a int)", "CREATE PUBLICATION quiet FOR TABLE item")
    process = subprocess.Popen([*PROGRAM, shop.dsn, "--publication", "quiet"], stdout=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: _temporary_slots(shop) == 1)
        end = shop.execute("INSERT INTO busy SELECT generate_series(1, 1000)")
        wait_until(lambda: _confirmed_by_tail(shop) >= end)
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


def _confirmed_by_tail(shop: Shop) -> Lsn:
    own = [slot for slot in slot_health(shop.dsn) if slot.temporary and slot.database == shop.dbname]
    return max((slot.confirmed_lsn or Lsn(0) for slot in own), default=Lsn(0))


def _temporary_slots(shop: Shop) -> int:
    with shop.connect() as connection:
        query = "SELECT count(*) FROM pg_replication_slots WHERE temporary AND active AND database = %s"
        row = connection.execute(query, [shop.dbname]).fetchone()
        return row[0] if row else 0


def test_sources_that_do_not_fit(run: Run, tmp_path: Path) -> None:
    """A server needs a publication, which a log has none of; a directory without a log is named."""
    assert run("tail", "dbname=x").exit_code == 2
    assert run("tail", "dbname=x", "--publication", "p", "--from-lsn", "0/1").exit_code == 2
    assert run("tail", tmp_path, "--publication", "p").exit_code == 2
    result = run("tail", tmp_path)
    assert result.exit_code == 1 and "no change log here" in result.output


@pytest.mark.server
def test_names_are_read_and_printed_in_one_form(run: Run, shop: Shop) -> None:
    """Every way in which SQL names a table chooses it; what is printed is one form, and can be pasted."""
    shop.execute(
        'CREATE TABLE "Odd.name" (id int PRIMARY KEY)',
        'CREATE TABLE "select" (id int PRIMARY KEY)',
        'CREATE TABLE "1st" (id int PRIMARY KEY)',
    )
    shop.capture(until=shop.execute('INSERT INTO "Odd.name" VALUES (1); INSERT INTO "select" VALUES (2)'))
    shop.capture(until=shop.execute('INSERT INTO item VALUES (3, NULL); INSERT INTO "1st" VALUES (4)'))
    written = {
        'public."Odd.name"': ['"Odd.name"', 'PUBLIC."Odd.name"', '"public" . "Odd.name"'],
        'public."select"': ["select", "public.select", "Public.SELECT", '"select"', 'public."select"'],
        "public.item": ["item", "ITEM", "public.item", '"public"."item"'],
        'public."1st"': ['"1st"', 'public."1st"'],
    }
    known = LogTables.from_log(shop.log())
    for printed, names in written.items():
        for name in (printed, *names):
            (line,) = _changes(run("tail", shop.directory, "--json", "--table", name).stdout)
            assert line["table"] == printed == known.table(name).qualified
        assert f"insert {printed} (" in run("tail", shop.directory, "--table", printed).stdout
    described = json.loads(run("log", shop.directory, "--json").stdout)
    assert {table["table"] for table in described["tables"]} == {*written}
    lacks = "\n".join(lack["text"] for lack in described["lacks"])
    assert """public."Odd.name": pgoutput snapshot DSN LOG --table 'public."Odd.name"'""" in lacks
    for wrong in ("public.", "a.b.c", '"item', "1st", "it em"):
        refused = run("tail", shop.directory, "--table", wrong)
        assert refused.exit_code == 2 and "does not name a table" in refused.output


def test_a_log_that_is_not_there_yet(
    run: Run, change_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --follow it is waited for, which is said once; without, that is an error."""
    refused = run("tail", tmp_path / "later")
    assert refused.exit_code == 1 and "no change log here" in refused.output
    waited = list[float]()

    def arrives(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            shutil.copytree(change_log, tmp_path / "later", dirs_exist_ok=True)

    # The clock of this module alone: other threads of the process sleep, too.
    clock = SimpleNamespace(sleep=arrives, monotonic=time.monotonic)
    monkeypatch.setattr("pgoutput_construct.cli.commands.tail_command.time", clock)
    shown = run("tail", tmp_path / "later", "--follow", "--limit", "1")
    assert shown.exit_code == 0 and len(waited) == 3 and shown.stderr.count("waiting for the capture's first") == 1
    assert shown.stdout == run("tail", change_log, "--limit", "1").stdout
