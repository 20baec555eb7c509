"""Rows that a table ever had, and from when to when."""

from pathlib import Path
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.spark import open_log
from pgoutput_construct.spark._replicate import read_history, replicate, step_writer
from tests.spark.test_copies import DESCRIBED, Log
from tests.spark.test_phases import delete, insert, relation, update
from tests.table_formats import SHORT_IN_PARQUET

pytestmark = pytest.mark.spark

TRUNCATE = pgo.build(pgo.Truncate(None, 0, (1,)))
EPOCH = 946684800000000


def _rows(spark: Any, warehouse: Path) -> list[tuple[Any, ...]]:
    """Return the history by its order, with times as the numbers that ``Log`` gives transactions."""
    times = [f"unix_micros({name}) - {EPOCH} AS {name}" for name in ("_valid_from", "_valid_to")]
    found = read_history(spark, warehouse, "public.t").orderBy("_commit_lsn", "_seq")
    chosen = found.selectExpr("id", "code", "_op", *times, "_ended_by", "_unchanged").collect()
    return [tuple(row) for row in chosen]


@pytest.mark.parametrize("into", SHORT_IN_PARQUET)
def test_a_history(lake: Any, tmp_path: Path, into: str) -> None:
    """Updates, other keys, deletes, truncates, values that were not sent: over three batches as in one."""
    log = Log(tmp_path / "log")
    log.copied((90, 90, ()), [[insert(b"1", b"a"), insert(b"2", b"b")]])
    log.transaction(91, DESCRIBED, insert(b"3", b"c"), update(None, None, b"3", b"cc"))
    replicate_to = [_replicated(lake, log, tmp_path / "wh", into)]
    log.transaction(92, update(None, None, b"1", b"aa"), update("K", (b"2", None), b"4", pgo.UNCHANGED))
    log.transaction(93, update(None, None, b"3", pgo.UNCHANGED), delete("K", b"1", None))
    replicate_to.append(_replicated(lake, log, tmp_path / "wh", into))
    log.transaction(94, insert(b"1", b"new"), TRUNCATE, insert(b"9", b"z"))
    replicate_to.append(_replicated(lake, log, tmp_path / "wh", into))
    assert [batch.number for batch in replicate_to] == [1, 2, 3]
    expected = [
        ("1", "a", "snapshot", None, 120, "update", None),
        ("2", "b", "snapshot", None, 120, "update", None),
        ("3", "c", "insert", 110, 110, "update", None),
        ("3", "cc", "update", 110, 130, "update", None),
        ("1", "aa", "update", 120, 130, "delete", None),
        ("4", "b", "update", 120, 140, "truncate", None),
        ("3", "cc", "update", 130, 140, "truncate", None),
        ("1", "new", "insert", 140, 140, "truncate", None),
        ("9", "z", "insert", 140, None, None, None),
    ]
    assert _rows(lake, tmp_path / "wh") == expected
    replicate(lake, log.directory, tmp_path / "once", into, history=True)
    assert _rows(lake, tmp_path / "once") == expected


@pytest.mark.parametrize("into", SHORT_IN_PARQUET)
def test_rows_without_a_key(lake: Any, tmp_path: Path, into: str) -> None:
    """Equal rows end one after the other, the first first."""
    log = Log(tmp_path / "log")
    log.transaction(90, relation(["id"], "f", columns="id code"), insert(b"1", b"a"), insert(b"1", b"a"))
    log.transaction(91, delete("O", b"1", b"a"))
    _replicated(lake, log, tmp_path / "wh", into)
    log.transaction(92, update("O", (b"1", b"a"), b"1", b"b"))
    _replicated(lake, log, tmp_path / "wh", into)
    assert _rows(lake, tmp_path / "wh") == [
        ("1", "a", "insert", 110, 120, "delete", None),
        ("1", "a", "insert", 110, 130, "update", None),
        ("1", "b", "update", 130, None, None, None),
    ]


@pytest.mark.parametrize("into", SHORT_IN_PARQUET)
def test_a_commit_at_the_lsn_of_a_snapshot(lake: Any, tmp_path: Path, into: str) -> None:
    """Its changes count their places from the transaction's beginning, copied rows theirs from the log's."""
    log = Log(tmp_path / "log")
    log.copied((90, 90, ()), [[insert(b"1", b"a"), insert(b"2", b"b"), insert(b"3", b"c")]], at=110)
    _replicated(lake, log, tmp_path / "wh", into)
    log.transaction(91, DESCRIBED, update(None, None, b"1", b"aa"), insert(b"4", b"d"))
    _replicated(lake, log, tmp_path / "wh", into)
    log.transaction(92, update(None, None, b"4", b"dd"))
    _replicated(lake, log, tmp_path / "wh", into)
    assert sorted(_rows(lake, tmp_path / "wh"), key=repr) == [
        ("1", "a", "snapshot", None, 110, "update", None),
        ("1", "aa", "update", 110, None, None, None),
        ("2", "b", "snapshot", None, None, None, None),
        ("3", "c", "snapshot", None, None, None, None),
        ("4", "d", "insert", 110, 120, "update", None),
        ("4", "dd", "update", 120, None, None, None),
    ]


@pytest.mark.parametrize("into", SHORT_IN_PARQUET)
def test_a_change_that_is_recorded_before_a_new_copy_is_complete(lake: Any, tmp_path: Path, into: str) -> None:
    """Its snapshot is older than the change: the history has the row once, and it has not ended."""
    log = Log(tmp_path / "log")
    log.copied((90, 90, ()), [[insert(b"1", b"a"), insert(b"2", b"b")]])
    _replicated(lake, log, tmp_path / "wh", into)
    log.transaction(91, DESCRIBED, update(None, None, b"2", b"bb"))
    _replicated(lake, log, tmp_path / "wh", into)
    log.copied((91, 91, ()), [[insert(b"1", b"a"), insert(b"2", b"b")]], at=105)
    _replicated(lake, log, tmp_path / "wh", into)
    assert _rows(lake, tmp_path / "wh") == [
        ("1", "a", "snapshot", None, None, "snapshot", None),
        ("2", "b", "snapshot", None, 110, "update", None),
        ("1", "a", "snapshot", None, None, None, None),
        ("2", "b", "snapshot", None, 110, "update", None),
        ("2", "bb", "update", 110, None, None, None),
    ]


@pytest.mark.long
def test_a_text_of_a_row_that_moves_twice(lake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the type of a column does not hold comes along with an unsent value, though no change of the batch has it.

    By Spark: the replay in Arrow does without links from key to key.
    """
    monkeypatch.setattr(step_writer, "produce", lambda *_: {})
    columns = (pgo.RelationColumn(1, "id", 23, -1), pgo.RelationColumn(0, "a", 1007, -1))
    described = pgo.build(pgo.Relation(None, 1, "public", "t", "d", columns))
    log = Log(tmp_path / "log")
    log.transaction(90, described, insert(b"1", b"{{1,2},{3,4}}"))
    _replicated(lake, log, tmp_path / "wh")
    for number in (1, 11, 21):
        log.transaction(90 + number, update("K", (b"%d" % number, None), b"%d" % (number + 10), pgo.UNCHANGED))
    _replicated(lake, log, tmp_path / "wh")
    found = read_history(lake, tmp_path / "wh", "public.t").select("id", "a", "_untyped", "_unchanged").collect()
    text = {"a": "{{1,2},{3,4}}"}
    assert sorted(map(tuple, found)) == [(number, None, text, None) for number in (1, 11, 21, 31)]


def _replicated(spark: Any, log: Log, warehouse: Path, into: str = "parquet") -> Any:
    log.cut()
    assert open_log(spark, log.directory).tables == ("public.t",)
    return replicate(spark, log.directory, warehouse, into, history=True)
