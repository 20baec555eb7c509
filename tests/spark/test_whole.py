"""Changes of rows that are not there, of tables of which the log has all rows: they cannot be right."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.spark import IncompleteTableWarning, OpenLog, advance, open_log, plain_errors
from tests.spark.logs import log_options, write_log, write_publication
from tests.spark.test_phases import FULL, U, delete, insert, relation, rows, update

pytestmark = pytest.mark.spark

ALL = ("insert", "update", "delete", "truncate")
TRUNCATE = pgo.build(pgo.Truncate(None, 0, (1,)))
ROWS = [TRUNCATE, insert(b"1", b"a", b"A"), insert(b"2", b"b", b"B")]
BY_KEY = {
    "delete": ([delete("K", b"7", None, None)], r'commit 20, seq \d+ in it: row {"id":"7"}: UPDATE or DELETE'),
    "update": ([update(None, None, b"7", b"x", b"y")], '{"id":"7"}: UPDATE or DELETE'),
    "of one that went": (
        [delete("K", b"1", None, None), update(None, None, b"1", b"x", b"y")],
        '{"id":"1"}: UPDATE or DELETE',
    ),
    "another key": ([update("K", (b"7", None, None), b"8", b"x", b"y")], '{"id":"7"}: UPDATE or DELETE'),
    "after another key": (
        [update("K", (b"1", None, None), b"8", b"x", U), delete("K", b"1", None, None)],
        '{"id":"1"}: UPDATE or DELETE',
    ),
}
BY_ROW = {
    "delete": (
        [relation(FULL, "f"), delete("O", b"2", b"b", b"?")],
        r'commit 20, seq 2 in it: row {"id":"2".*"\?"}',
    ),
    "twice": ([relation(FULL, "f"), *[delete("O", b"2", b"b", b"B")] * 2, insert(b"2", b"b", b"B")], "seq 3 in it"),
    "other columns": (
        [relation(FULL, "f", columns="id code"), delete("O", b"2", b"b"), delete("O", b"2", b"c")],
        'seq 3 in it: row {"id":"2","code":"c"}: UPDATE or DELETE',
    ),
}


def write(
    directory: Path, transactions: Sequence[Sequence[bytes]], operations: Sequence[str] = ALL, first: int = 1
) -> None:
    """Write transactions, numbered from the first, as a log of tables that are published; no operations: as more."""
    if operations:
        write_publication(directory, operations, [1, 2])
    payloads = []
    for number, changes in enumerate(transactions, first):
        lsn, end, time = pgo.Lsn(10 * number), pgo.Lsn(10 * number + 1), pgo.Timestamp(number)
        payloads += [pgo.build(pgo.Begin(lsn, time, number)), *changes, pgo.build(pgo.Commit(lsn, end, time))]
    write_log(directory, payloads, log_options())


def refused(state: Any, text: str) -> None:
    """An action on a state fails, and says so."""
    with pytest.raises(pgo.ChangeLogError, match=text) as caught, plain_errors():
        state.count()
    assert str(caught.value).startswith("public.t: ") and 'on_missing="report"' in str(caught.value)


def check(log: OpenLog, text: str) -> None:
    """Refused at once, and from saved rows, whether these are few or many."""
    table, changes = log.table("public.t"), log.changes("public.t").localCheckpoint()
    refused(log.state("public.t"), text)
    before = advance(None, changes.where("_commit_lsn = 10"), table, is_whole=True).localCheckpoint()
    for is_small in (False, True):
        later = changes.where("_commit_lsn > 10")
        refused(advance(before, later, table, is_small=is_small, is_whole=True), text)
    assert log.missing_rows("public.t", changes).count() == 1
    log.state("public.t", changes, on_missing="report").count()


@pytest.mark.parametrize(
    "case",
    [case if case == "update" else pytest.param(case, marks=pytest.mark.long) for case in BY_KEY],
)
def test_by_key(spark: Any, tmp_path: Path, case: str) -> None:
    """The row with a key was never there, went before, or has another key now."""
    changes, text = BY_KEY[case]
    write(tmp_path, [[relation(["id"]), *ROWS], [update(None, None, b"2", b"x", b"y"), *changes]])
    check(open_log(spark, tmp_path), text)


@pytest.mark.parametrize(
    "case",
    [case if case == "other columns" else pytest.param(case, marks=pytest.mark.long) for case in BY_ROW],
)
def test_by_row(spark: Any, tmp_path: Path, case: str) -> None:
    """No row is equal to the old one, or not so many are; also where other columns are compared."""
    changes, text = BY_ROW[case]
    write(tmp_path, [[relation(FULL, "f"), *ROWS], changes])
    check(open_log(spark, tmp_path), text)


def test_what_is_no_error(spark: Any, tmp_path: Path) -> None:
    """Rows that are there; and any where inserts are not published, or nobody knows what is."""
    changes = [
        *(update("K", (b"1", None, None), b"3", b"a", U), update("K", (b"2", None, None), b"1", b"b", U)),
        *(insert(b"2", b"c", b"C"), delete("K", b"2", None, None), delete("K", b"3", None, None)),
    ]
    write(tmp_path / "right", [[relation(["id"]), *ROWS], changes])
    log = open_log(spark, tmp_path / "right")
    table, all_changes = log.table("public.t"), log.changes("public.t")
    assert log.is_whole(table) and rows(log.state("public.t")) == [("1", "b", "B")]
    before = advance(None, all_changes.where("_commit_lsn = 10"), table, is_whole=True).localCheckpoint()
    later = advance(before, all_changes.where("_commit_lsn > 10"), table, is_whole=True)
    assert rows(later.drop("_commit_lsn", "_seq")) == [("1", "b", "B")]
    for number, operations in enumerate((("update", "delete"), ())):
        write(tmp_path / str(number), [[relation(["id"]), *ROWS], BY_KEY["delete"][0]], operations)
        log = open_log(spark, tmp_path / str(number))
        with warnings.catch_warnings():
            warnings.simplefilter("error", IncompleteTableWarning)
            assert len(rows(log.state("public.t"))) == 2
