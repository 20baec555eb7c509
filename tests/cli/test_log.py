"""``pgoutput log``: reports, verification, compaction, pruning, readers."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pyarrow.parquet as pq
import pytest

from pgoutput_construct.changelog._segment.segment_schema import SCHEMA
from pgoutput_construct.changelog.registry import forget, readers, register
from pgoutput_construct.cli._options import LSN_OR_TIME
from pgoutput_construct.wire import Lsn, Timestamp
from tests.cli.conftest import Run
from tests.postgres.shop import PUBLICATION, Shop
from tests.spark.copying import copy_table


@pytest.mark.server
def test_the_report_of_a_log(run: Run, shop: Shop) -> None:
    """Ranges, tables with their rows and descriptions over time, open transactions, events, lag."""
    shop.execute(
        "INSERT INTO item SELECT g, 'a' FROM generate_series(1, 10) g", "UPDATE item SET name = 'b' WHERE id < 3"
    )
    shop.capture()
    shop.execute("ALTER TABLE item ADD COLUMN note varchar", "ALTER TABLE item REPLICA IDENTITY FULL", "TRUNCATE item")
    shop.execute("BEGIN; INSERT INTO item VALUES (99, 'waits'); PREPARE TRANSACTION 'waiting'")
    shop.capture()
    end = shop.execute("COMMIT PREPARED 'waiting'")
    report = _report(run, shop.directory, "--dsn", shop.dsn)
    [table] = report["tables"]
    assert table["table"] == "public.item"
    assert table["rows"] == {"snapshot": 0, "insert": 11, "update": 2, "delete": 0, "truncate": 1}
    first, second = table["descriptions"]
    assert first["columns"] == ["id int8 key", "name text"] and first["replica_identity"] == "default"
    assert second["columns"][2] == "note varchar key" and second["seq"] > first["seq"]
    [waiting] = report["open_transactions"]
    assert waiting["gid"] == "waiting" and waiting["since_lsn"] < str(end)
    assert report["transactions"]["committed"] == 3 and report["lag_bytes"] > 0
    assert report["segments"][0]["first_seq"] == 0 and report["segments"][-1]["last_seq"] == report["last_seq"]
    assert sum(segment["bytes"] for segment in report["segments"]) == report["bytes"] > 0
    assert run("log", "readers", shop.directory, "--add", "warehouse", "--at", report["complete_lsn"]).exit_code == 0
    assert [reader.next_seq for reader in readers(shop.directory)] == [waiting["first_seq"]]
    shown = run("log", shop.directory).stdout
    assert "public.item" in shown and "'waiting'" not in shown and "waiting" in shown and "Segments" in shown


@pytest.mark.server
def test_a_log_in_an_object_store(run: Run, shop: Shop, s3_address: str) -> None:
    """Captured, described, shown and decoded by its address; what is secret in it is never shown."""
    end = shop.execute("INSERT INTO item VALUES (1, 'a')")
    names = ("--slot", shop.slot, "--publication", PUBLICATION)
    captured = run("capture", shop.dsn, s3_address, *names, "--until-lsn", end, "--new-log")
    assert captured.exit_code == 0 and "secret" not in captured.output, captured.output
    report = _report(run, s3_address)
    assert report["transactions"] == {"committed": 1} and "secret" not in report["address"]
    assert "insert public.item (id=1, name='a')" in run("tail", s3_address).stdout
    assert '"message": "Insert"' in run("decode", s3_address).stdout


@pytest.mark.slow
def test_a_log_without_a_server(run: Run, change_log: Path) -> None:
    """The last segments are shown, all of them if requested; an address without a log is a usage error."""
    segments = _report(run, change_log)["segments"]
    assert len(segments) == 3
    shown = run("log", change_log, "--all")
    assert shown.exit_code == 0 and shown.stdout.count("│") and str(segments[-1]["last_seq"]) in shown.stdout
    assert run("log", change_log / "nowhere").exit_code == 2
    assert run("log", "--help").exit_code == 0


def _report(run: Run, *arguments: object) -> dict[str, Any]:
    result = run("log", *arguments, "--json")
    assert result.exit_code == 0, result.output
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def test_a_damaged_log_is_named(run: Run, change_log: Path) -> None:
    """A whole log verifies; a flipped byte is found, and the file named, with exit status 1."""
    whole = run("log", change_log, "--verify")
    assert whole.exit_code == 0 and "no problems" in whole.stdout
    assert _report(run, change_log, "--verify")["verification"]["problems"] == []
    file = sorted(change_log.glob("segment-*"))[1]
    content = file.read_bytes()
    payloads = pq.read_metadata(file).row_group(0).column(SCHEMA.get_field_index("payload"))
    statistics = pq.read_metadata(file).row_group(0).column(SCHEMA.get_field_index("relation_oid")).statistics
    within = payloads.data_page_offset + payloads.total_compressed_size // 2
    largest = content.rindex(statistics.max.to_bytes(8, "little"))
    for place, said in (within, "damaged"), (largest, "its statistics do not match its rows: relation_oid"):
        flipped = bytearray(content)
        flipped[place] ^= 1
        file.write_bytes(flipped)
        damaged = run("log", change_log, "--verify")
        assert damaged.exit_code == 1 and file.name in damaged.stderr and "Traceback" not in damaged.output
        assert said in damaged.stderr.replace("\n", " ")


@pytest.mark.slow
def test_a_log_is_compacted(run: Run, change_log: Path) -> None:
    """A dry run says what would be done; then the older segments are one, and the messages are the same."""
    before = run("decode", change_log).stdout
    files = sorted(change_log.glob("segment-*"))
    arguments = ("log", "compact", change_log, "--least", 2, "--grace", 0)
    planned = run(*arguments, "--dry-run")
    assert planned.stdout.startswith("would be done: 2 of 3 segments merged into 1") and planned.exit_code == 0
    assert sorted(change_log.glob("segment-*")) == files
    done = run(*arguments)
    assert done.exit_code == 0 and done.stdout.startswith("2 of 3 segments merged into 1"), done.output
    assert len(sorted(change_log.glob("segment-*"))) == 2
    assert run("decode", change_log).stdout == before
    assert run("log", change_log, "--verify").exit_code == 0


@pytest.mark.slow
def test_a_log_is_pruned(run: Run, change_log: Path) -> None:
    """A dry run prints what would be removed; the rest of a pruned log is read as before."""
    lines = run("decode", change_log).stdout.splitlines()
    report = _report(run, change_log)
    register(change_log, "warehouse", 250)
    planned = run("log", "prune", change_log, "--before", "7FFFFFFF/0", "--without-states", "--dry-run")
    assert planned.exit_code == 0 and "would be removed: 1 of 3 segments, 200 rows" in planned.stdout, planned.output
    assert "'warehouse'" in planned.stdout and _report(run, change_log)["segments"] == report["segments"]
    forget(change_log, "warehouse")
    done = run("log", "prune", change_log, "--before", "7FFFFFFF/0", "--without-states", "--yes")
    kept = _report(run, change_log)
    assert done.exit_code == 0 and f"retained from seq {kept['first_seq']} on" in done.stdout
    assert kept["first_seq"] == 200 and "transaction" in done.stdout  # it began in the second segment
    assert run("decode", change_log).stdout.splitlines() == lines[kept["first_seq"] :]
    assert run("tail", change_log).exit_code == run("log", change_log, "--verify").exit_code == 0
    assert run("log", "prune", change_log, "--before", "yesterday").exit_code == 2
    nothing = run("log", "prune", change_log, "--before", "1999-12-31", "--without-states", "--yes").stdout
    assert nothing.startswith("removed: 0 of 2") and "which is after 1999-12-31T00:00:00+00:00" in nothing


@pytest.mark.server
def test_incomplete_tables_in_the_report(run: Run, shop: Shop) -> None:
    """Readers say which table the log does not hold from its first row, until it has a copy; that is shown, too."""
    shop.execute("INSERT INTO item VALUES (1, 'a')")
    shop.capture()
    text = "the log has no snapshot of public.item: pgoutput snapshot DSN LOG --table public.item"
    for command in (["tail", shop.directory], ["tail", shop.directory, "--table", "public.item", "--json"]):
        assert run(*command).stderr == f"warning: {text}\n"
    assert text in run("log", shop.directory).stdout
    assert [each["text"] for each in _report(run, shop.directory)["lacks"]] == [text]
    copy_table(shop.dsn, shop.directory, "item")
    report = _report(run, shop.directory)
    assert report["lacks"] == [] and run("tail", shop.directory).stderr == ""
    assert [(each["table"], each["rows"], each["chunks"]) for each in report["copies"]] == [("public.item", 1, 1)]
    assert "Table copies" in run("log", shop.directory).stdout
    assert report["tables"][0]["rows"] == {"snapshot": 1, "insert": 1, "update": 0, "delete": 0, "truncate": 0}


def test_readers_are_added_updated_and_removed(run: Run, change_log: Path) -> None:
    """One is added, moved on and removed; what cannot be is said, and changes nothing."""
    assert run("log", "readers", change_log).stdout == ""
    added = run("log", "readers", change_log, "--add", "warehouse", "--wait", "60")
    assert added.exit_code == 0 and "warehouse: needs everything from seq 0 on, is at 0/0" in added.stdout, added.output
    assert run("log", "readers", change_log).stdout == added.stdout
    for wrong in (("--at", "0/1"), ("--wait", "1"), ("--add", "a", "--remove", "b")):
        assert run("log", "readers", change_log, *wrong).exit_code == 2
    for wrong in (("--add", "x", "--at", "7FFFFFFF/0"), ("--remove", "x"), ("--add", "../x")):
        assert run("log", "readers", change_log, *wrong).exit_code == 1
    assert [reader.name for reader in readers(change_log)] == ["warehouse"]
    assert run("log", "readers", change_log, "--remove", "warehouse").exit_code == 0
    assert readers(change_log) == ()


def test_json_of_what_was_done(run: Run, change_log: Path) -> None:
    """Each command that changes something has its figures as JSON; LSNs are text, as everywhere."""
    added = json.loads(run("log", "readers", change_log, "--add", "warehouse", "--json").stdout)
    assert (added["name"], added["next_seq"], added["lsn"], added["seconds"]) == ("warehouse", 0, "0/0", None)
    assert json.loads(run("log", "readers", change_log, "--json").stdout) == added
    pruning = ("log", "prune", change_log, "--before", "7FFFFFFF/0", "--json")
    planned = json.loads(run(*pruning, "--dry-run").stdout)
    assert planned["segments"] == 0 and "'warehouse'" in planned["holds"][0] and planned["lsn"].count("/") == 1
    assert planned["dry_run"] and json.loads(run(*pruning, "--yes").stdout) == planned | {"dry_run": False}
    planned = json.loads(run("log", "compact", change_log, "--json", "--dry-run").stdout)
    done = json.loads(run("log", "compact", change_log, "--json").stdout)
    assert planned["before"] == 3 and planned == done | {"dry_run": True}


def test_lsns_and_times() -> None:
    """An LSN, or a time, in UTC where it has no zone; anything else is a usage error."""
    position = LSN_OR_TIME.convert("0/10", None, None)
    assert position == Lsn(16) and isinstance(position, Lsn)
    moment = Timestamp.from_datetime(datetime(2026, 1, 1, tzinfo=UTC))
    for text in ("2026-01-01T00:00:00Z", "2026-01-01", "2026-01-01T01:00+01:00"):
        read = LSN_OR_TIME.convert(text, None, None)
        assert read == moment and isinstance(read, Timestamp)
    for text in ("yesterday", "x/y"):
        with pytest.raises(click.UsageError):
            LSN_OR_TIME.convert(text, None, None)
