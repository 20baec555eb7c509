"""What is wrong with one table stays with it: in reports of missing rows, in verify, in the last batch, in metrics."""

import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog.prune import Prune, prune
from pgoutput_construct.changelog.registry import forget, readers
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import snapshot
from pgoutput_construct.postgres.checksums import SourceServer
from pgoutput_construct.spark._execution import reason_of
from pgoutput_construct.spark._replicate import Batch, read_current, read_missing, replicate, troubles
from pgoutput_construct.spark._verify import TableVerdict, VerifyOptions, verify
from tests.postgres.shop import Shop, wait_until

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """Two tables with a row each."""
    with Shop.create(server18, "own_trouble", tmp_path / "log") as shop:
        for name in ("bad", "good"):
            shop.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)", f"INSERT INTO {name} VALUES (1, 'a')")
        shop.capture(snapshot=True)
        yield shop


def _verified(spark: Any, shop: Shop, warehouse: Path) -> dict[str, TableVerdict]:
    source = SourceServer(shop.dsn, shop.log().options.publications)
    with shop.capturing():
        return {
            each.table: each
            for each in verify(spark, shop.directory, warehouse, source, options=VerifyOptions(wait=60))
        }


@pytest.mark.long
def test_verify_and_missing_rows(spark: Any, shop: Shop, tmp_path: Path) -> None:
    """A damaged note, files that are gone: verify names the table, and compares the others; so do reports."""
    warehouse = tmp_path / "wh"
    shop.execute("CREATE TABLE worse (id int PRIMARY KEY)")
    shop.capture(snapshot=True)
    replicate(spark, shop.directory, warehouse, on_missing="report", history=True)
    notes = warehouse / "_datasets"
    (notes / "public.bad.json").write_text("{}")
    (notes / "public.good.history.json").write_text("{}")
    shutil.rmtree(warehouse / "public.worse")
    found = _verified(spark, shop, warehouse)
    assert {name: verdict.equal for name, verdict in found.items()} == {
        "public.bad": False,
        "public.good": True,
        "public.item": True,
        "public.worse": False,
    }
    assert "public.bad.json: the note of a table" in found["public.bad"].problem
    assert found["public.worse"].problem
    assert read_missing(spark, warehouse, "good").count() == 0
    with pytest.raises(pgo.PgoutputError, match=r"public\.bad\.json: .* is damaged"):
        read_missing(spark, warehouse, "bad")
    with pytest.raises(pgo.PgoutputError, match=r"no table public\.absent: it has public\.good, public\.item"):
        read_current(spark, warehouse, "absent")


def test_the_last_batch_tries_all(spark: Any, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that is mended while batches are under way is up to date in the end, whatever its pause is."""
    warehouse, seen = tmp_path / "wh", list[Batch]()
    replicate(spark, shop.directory, warehouse)
    away = shutil.move(warehouse / "public.bad", tmp_path / "away")
    for number in (2, 3, 4):
        shop.execute(*(f"INSERT INTO {name} VALUES ({number}, 'a')" for name in ("bad", "good")))
    shop.capture()
    monkeypatch.setattr(troubles, "_FIRST", 3600.0)

    def mend(batch: Batch) -> None:
        seen.append(batch)
        if len(seen) == 2:
            shutil.move(away, warehouse / "public.bad")

    done = replicate(spark, shop.directory, warehouse, batch_transactions=1, on_batch=mend)
    assert done is not None and not done.troubled and len(seen) > 3
    assert [set(batch.troubled) for batch in seen] == [*[{"public.bad"}] * (len(seen) - 1), set()]
    assert [batch.trouble_kinds for batch in seen[:2]] == [{"public.bad": "ChangeLogError"}] * 2 or seen[
        0
    ].trouble_kinds
    assert read_current(spark, warehouse, "bad").count() == 4


@pytest.mark.long
def test_metrics(shop: Shop, tmp_path: Path) -> None:
    """While it runs: batches, rows, position, and the table in trouble by its name and the class of its error."""
    warehouse = tmp_path / "wh"
    (warehouse / "_datasets").mkdir(parents=True)
    note = warehouse / "_datasets" / "public.bad.json"
    note.write_text("a secret")
    command = ["replicate", str(shop.directory), "--into", "parquet", "--warehouse", str(warehouse), "--continuous"]
    given = ["--metrics", "127.0.0.1:0", "--interval", "0.2", "--master", "local[2]"]
    process = subprocess.Popen(
        [sys.executable, "-m", "pgoutput_construct.cli", *command, *given], stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        address = next(
            found[0] for line in process.stderr if (found := re.search(r"http://127\.0\.0\.1:\d+/metrics", line))
        )
        wait_until(lambda: "pgoutput_replicate_batches_total" in _metrics(address), 120)
        wait_until(lambda: _metrics(address)["pgoutput_replicate_batches_total"] >= 1, 120)
        first = _metrics(address)
        assert first['pgoutput_replicate_table_troubled{reason="ChangeLogError",table="public.bad"}'] == 1
        assert first["pgoutput_replicate_troubled_tables"] == 1 and first["pgoutput_replicate_rows_total"] > 0
        assert 0 < time.time() - first["pgoutput_replicate_applied_commit_timestamp_seconds"] < 600
        fresh = "pgoutput_replicate_table_applied_commit_timestamp_seconds"
        assert [name for name in first if name.startswith(fresh) and "good" in name] == [
            f'{fresh}{{table="public.good"}}'
        ]
        lags = [first[f'pgoutput_replicate_lag_seconds{{stage="{each}"}}'] for each in ("seen", "staged", "visible")]
        assert lags == sorted(lags) and lags[0] < lags[2]
        assert first['pgoutput_replicate_step_seconds_total{step="stage"}'] > 0
        assert first["pgoutput_replicate_batch_seconds"] > 0 and first["pgoutput_replicate_applied_lsn"] > 0
        shop.execute("INSERT INTO good VALUES (2, 'b')")
        shop.capture()
        last = shop.log().segments[-1].last_seq
        wait_until(lambda: _metrics(address)["pgoutput_replicate_applied_seq"] == last, 120)
        assert _metrics(address)["pgoutput_replicate_rows_total"] == first["pgoutput_replicate_rows_total"] + 1
        with urlopen(address, timeout=10) as answer:
            assert "secret" not in answer.read().decode()
        note.unlink()
        wait_until(lambda: _metrics(address)["pgoutput_replicate_troubled_tables"] == 0, 120)
        assert not [name for name in _metrics(address) if "public.bad" in name and "troubled" in name]
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
    finally:
        process.kill()
        process.communicate()


def _metrics(address: str) -> dict[str, float]:
    with urlopen(address, timeout=10) as answer:
        text = answer.read().decode()
    return {name: float(value) for name, value in re.findall(r"^(pgoutput_\S+) (\S+)$", text, re.MULTILINE)}


def _prune(shop: Shop) -> Prune:
    return prune(shop.directory, shop.log().complete_lsn, states=False)


def test_what_is_retained_for_it(spark: Any, shop: Shop, tmp_path: Path) -> None:
    """The log is pruned up to where the other tables are, but for what it needs: prune names it, and lets go of it."""
    warehouse = tmp_path / "wh"
    replicate(spark, shop.directory, warehouse)
    (main,) = readers(shop.directory)
    away = shutil.move(warehouse / "public.bad", tmp_path / "away")
    for number in (2, 3, 4):
        shop.execute(*(f"INSERT INTO {name} VALUES ({number}, 'a')" for name in ("bad", "good")))
        shop.capture()
        with pytest.raises(pgo.ChangeLogError, match=r"public\.bad: .*all other tables are up to date"):
            replicate(spark, shop.directory, warehouse)
    there = {reader.name: reader.next_seq for reader in readers(shop.directory)}
    held = f"{main.name}.{_oid(shop, 'bad')}.public.bad"
    assert there.keys() == {main.name, held}
    assert there[main.name] == shop.log().index.last_seq + 1 and there[held] == main.next_seq
    assert _prune(shop).holds[-1].startswith(f"reader '{held}' has not read seq ")
    shutil.move(away, warehouse / "public.bad")
    done = replicate(spark, shop.directory, warehouse)
    assert done is not None and not done.troubled
    assert [each.name for each in readers(shop.directory)] == [main.name]
    for name in ("bad", "good"):
        assert read_current(spark, warehouse, name).count() == 4
    assert _prune(shop).segments > 0


def test_it_is_let_go_of(spark: Any, shop: Shop, tmp_path: Path) -> None:
    """Without its reader the log shrinks; it is not registered again, and needs another copy then."""
    warehouse = tmp_path / "wh"
    replicate(spark, shop.directory, warehouse)
    shutil.move(warehouse / "public.bad", tmp_path / "away")
    for number in (2, 3):
        shop.execute(*(f"INSERT INTO {name} VALUES ({number}, 'a')" for name in ("bad", "good")))
        shop.capture()
        with pytest.raises(pgo.ChangeLogError, match=r"public\.bad: "):
            replicate(spark, shop.directory, warehouse)
        for reader in readers(shop.directory):
            if reader.name.endswith(".public.bad"):
                assert number == 2
                forget(shop.directory, reader.name)
    assert len(readers(shop.directory)) == 1 and _prune(shop).segments > 0
    shutil.move(tmp_path / "away", warehouse / "public.bad")
    with pytest.raises(pgo.ChangeLogError, match=r"public\.bad: the seqs .* were pruned .*pgoutput snapshot"):
        replicate(spark, shop.directory, warehouse)
    snapshot(shop.dsn, shop.directory, ["public.bad"])
    shop.capture()
    replicate(spark, shop.directory, warehouse)
    assert read_current(spark, warehouse, "bad").count() == 3


def _oid(shop: Shop, name: str) -> int:
    with shop.connect() as connection:
        row = connection.execute(f"SELECT 'public.{name}'::regclass::oid::bigint".encode()).fetchone()
    assert row is not None
    return int(row[0])


def test_errors_without_secrets() -> None:
    """Passwords in the addresses of catalogs, which drivers put into their errors."""
    for secret in (
        "Failed to connect: jdbc:postgresql://db/c?user=u&password=s3cret",
        "no answer of jdbc:mysql://u:s3cret@db:3306/c",
        "refused: credential=id:s3cret; scope=all",
        "client.secret: 's3cret'",
        '{"error": "no", "client_secret":"s3cret two"}',
        "Authorization: Bearer s3cret",
    ):
        said = reason_of(OSError(secret))
        assert "s3cret" not in said and "***" in said
    for plain in ("at s3://lake/wh: 2 files", "public.secrets: Delta commit failed", "Syntax error at token: SELECT"):
        assert reason_of(OSError(plain)) == f"OSError: {plain}"
