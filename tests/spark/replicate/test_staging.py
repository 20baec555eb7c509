"""The changes of a batch: read once for all tables, from a log with a row that is none."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.lake._notes import Warehouse
from pgoutput_construct.spark import open_log, read_current, replicate
from pgoutput_construct.spark._log_view.change_columns import changes_schema
from pgoutput_construct.spark._log_view.replicated_tables import Table
from pgoutput_construct.spark._replicate.staging import ChangeRequest, StagedTable, stage, staging, staging_tasks
from pgoutput_construct.spark._source.task_plan import ReaderColumns
from pgoutput_construct.spark._table_formats.dataset_columns import Naming
from pgoutput_construct.spark._table_formats.delta_sink import DeltaSink
from pgoutput_construct.spark._table_formats.table_description import comments_of
from tests.spark.logs import log_options, write_log

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True, params=["in executors", "here"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where tasks run: those of a batch of few bytes do so in the process of the caller."""
    if request.param == "in executors":
        monkeypatch.setattr("pgoutput_construct.spark._execution._LITTLE", -1)
    return str(request.param)


def _payloads() -> list[bytes]:
    """Three transactions, each with a row for each of three tables."""
    payloads = []
    for number in range(1, 4):
        lsn, time = pgo.Lsn(10 * number), pgo.Timestamp(number)
        payloads.append(pgo.build(pgo.Begin(lsn, time, number)))
        for oid in (1, 2, 3):
            columns = (pgo.RelationColumn(1, "id", 23, -1), pgo.RelationColumn(0, "v", 25, -1))
            payloads.append(pgo.build(pgo.Relation(None, oid, "public", f"t{oid}", "d", columns)))
            payloads.append(pgo.build(pgo.Insert(None, oid, (b"%d" % number, b"x"))))
        payloads.append(pgo.build(pgo.Commit(lsn, pgo.Lsn(lsn + 1), time)))
    return payloads


def test_changes_lie_in_files_while_they_are_needed(spark: Any, tmp_path: Path) -> None:
    """They are those of the log, by table and from where they are wanted; then the files are gone."""
    write_log(tmp_path / "log", _payloads(), log_options(), rows=5)
    log, place = open_log(spark, tmp_path / "log"), Warehouse(tmp_path / "wh [1]")
    place.store.prepare()
    second = log.opened.index.transactions["seq"][1].as_py()
    wanted = [
        ChangeRequest("public.t1", -1),
        ChangeRequest("public.t2", second),
        ChangeRequest("public.t1", second),
        ChangeRequest("public.t3", 99),
    ]
    with staging(log, place, wanted) as staged:
        found = [staged.changes(spark, each) for each in wanted]
        assert [changes.summary.changes for changes in found] == [3, 1, 1, 0]
        for (name, after), changes in zip(wanted, found, strict=True):
            assert _rows(changes.rows) == _rows(log.changes(name, after))
    assert [path.name for path in (tmp_path / "wh [1]").iterdir()] == []


def test_a_row_that_cannot_be_decoded_stops_its_own_table(spark: Any, tmp_path: Path) -> None:
    """The others are brought up to date; the error says where the row is."""
    payloads = _payloads()
    bad = next(seq for seq, each in enumerate(payloads) if each == pgo.build(pgo.Insert(None, 2, (b"2", b"x"))))
    write_log(tmp_path / "log", payloads, log_options(), rows=5, errors={bad: payloads[bad].replace(b"N", b"?")})
    with pytest.raises(pgo.ChangeLogError, match=rf"seq {bad}\b.*Insert"):
        replicate(spark, tmp_path / "log", tmp_path / "wh")
    for name in ("public.t1", "public.t3"):
        assert read_current(spark, tmp_path / "wh", name).count() == 3
    with pytest.raises(pgo.PgoutputError, match=r"no table public\.t2"):
        read_current(spark, tmp_path / "wh", "public.t2")


def test_a_name_that_is_not_utf_8(spark: Any, tmp_path: Path) -> None:
    """Arrow cannot hold it: the table is in trouble, as a database in SQL_ASCII may have it; the others are there."""
    payloads, (good, bad) = _payloads(), (b"\0v\0", b"\0\xff\0")
    payloads = [each.replace(good, bad) if each[:5] == b"R\0\0\0\2" else each for each in payloads]
    write_log(tmp_path / "log", payloads, log_options(), rows=5)
    with pytest.raises(
        pgo.ChangeLogError, match=r"public\.t2 has a column whose name is not UTF-8.*all other tables are up to date"
    ):
        replicate(spark, tmp_path / "log", tmp_path / "wh")
    for name in ("public.t1", "public.t3"):
        assert read_current(spark, tmp_path / "wh", name).count() == 3
    with pytest.raises(pgo.ProtocolError, match="not UTF-8"):
        open_log(spark, tmp_path / "log").changes("public.t2")


def test_keys_that_are_not_utf_8(spark: Any, tmp_path: Path) -> None:
    """Each is a key of its own, by its bytes; databases in SQL_ASCII have such keys."""
    columns = (pgo.RelationColumn(1, "id", 25, -1), pgo.RelationColumn(0, "v", 25, -1))
    relation = pgo.Relation(None, 1, "public", "t", "d", columns)
    batches = (
        [pgo.Insert(None, 1, (b"a\xe4", b"x")), pgo.Insert(None, 1, (b"a\xf6", b"y"))],
        [pgo.Update(None, 1, None, None, (b"a\xf6", b"\xff")), pgo.Delete(None, 1, "K", (b"a\xe4", None))],
    )
    payloads = []
    for number, changes in enumerate(batches, 1):
        lsn = pgo.Lsn(10 * number)
        messages = (
            pgo.Begin(lsn, pgo.Timestamp(0), number),
            relation,
            *changes,
            pgo.Commit(lsn, lsn, pgo.Timestamp(0)),
        )
        payloads.append([pgo.build(message) for message in messages])
    for number in (1, 2):
        log = tmp_path / f"log{number}"
        write_log(log, [each for batch in payloads[:number] for each in batch], log_options(), rows=5)
        replicate(spark, log, tmp_path / f"wh{number}")
    first, last = (read_current(spark, tmp_path / f"wh{number}", "public.t").collect() for number in (1, 2))
    assert sorted(row["_untyped"]["id"] for row in first) == ["\\x61e4", "\\x61f6"]
    assert [row["_untyped"] for row in last] == [{"id": "\\x61f6", "v": "\\xff"}]


def test_comments_that_are_not_utf_8(spark: Any, tmp_path: Path) -> None:
    """Spark cannot be sent them as they are."""
    write_log(tmp_path / "log", _payloads(), log_options(), rows=5)
    table = replace(open_log(spark, tmp_path / "log").table("public.t1"), comments={0: "f\udcfcr"})
    assert comments_of(DeltaSink(Warehouse(tmp_path / "wh")), table, Naming()) == {"": "f\ufffdr"}


def test_a_warehouse_that_an_executor_does_not_find(spark: Any, tmp_path: Path) -> None:
    """The error names the host; a local path that machines do not share is the usual reason."""
    write_log(tmp_path / "log", _payloads(), log_options(), rows=5)
    log, elsewhere = open_log(spark, tmp_path / "log"), LocalStore(tmp_path / "not" / "shared")
    task = next(staging_tasks(log, elsewhere, [ChangeRequest("public.t1", -1)], [log.table("public.t1")]))
    with pytest.raises(pgo.ChangeLogError, match=r"not/shared: not found on the host .* all executors share"):
        list(stage(task))


class _Fatal(dict[int, Any]):
    """What ends the process that reads it from a pickle, as one that runs out of memory ends."""

    def __reduce__(self) -> Any:
        return os._exit, (1,)


def test_a_table_that_ends_its_executor(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Tables are staged one by one then: it alone is in trouble, and comes back when it can."""
    if place == "here":
        pytest.skip("what runs here has few bytes, and memory for them")
    write_log(tmp_path / "log", _payloads(), log_options(), rows=5)

    def staged_table(number: int, table: Table, used: Mapping[int, ReaderColumns], *_: Any) -> StagedTable:
        known = _Fatal(used) if table.name == "t2" else used
        return StagedTable(number, table.columns, changes_schema(table.columns), (), known)

    with monkeypatch.context() as patch:
        patch.setattr("pgoutput_construct.spark._replicate.staging._staged_table", staged_table)
        with pytest.raises(pgo.ChangeLogError, match=r"public\.t2: .*(exited|crashed).*; all other tables are up to"):
            replicate(spark, tmp_path / "log", tmp_path / "wh")
    for name in ("public.t1", "public.t3"):
        assert read_current(spark, tmp_path / "wh", name).count() == 3
    done = replicate(spark, tmp_path / "log", tmp_path / "wh")
    assert done is not None and done.tables == {"public.t2": "written"}
    assert read_current(spark, tmp_path / "wh", "public.t2").count() == 3


def _rows(changes: Any) -> list[Any]:
    return sorted(map(tuple, changes.collect()))
