"""Current rows of tables whose replica identity changes inside the log."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

import pgoutput_construct as pgo
from pgoutput_construct.spark import (
    OpenLog,
    Table,
    advance,
    missing_rows,
    open_log,
    plain_errors,
    read_table,
    write_tables,
)
from pgoutput_construct.spark._log_view.replicated_tables import ChangePosition
from pgoutput_construct.spark._replicate.table_history import history
from pgoutput_construct.spark._state.identity_phases import PhaseReader
from tests.spark.logs import log_options, write_log

pytestmark = pytest.mark.spark

Row = tuple[bytes | None, ...]
U: Any = pgo.UNCHANGED


def relation(keys: Iterable[str], identity: str = "d", oid: int = 1, columns: str = "id code big") -> bytes:
    """A Relation of texts, as it is sent again after ALTER TABLE."""
    flagged = [pgo.RelationColumn(int(name in keys), name, 25, -1) for name in columns.split()]
    return pgo.build(pgo.Relation(None, oid, "public", "t", identity, tuple(flagged)))


def insert(*new: bytes | None, oid: int = 1) -> bytes:
    """A new row."""
    return pgo.build(pgo.Insert(None, oid, new))


def update(kind: str | None, old: Row | None, *new: Any) -> bytes:
    """A row that was changed."""
    return pgo.build(pgo.Update(None, 1, kind, old, new))


def delete(kind: str, *old: bytes | None) -> bytes:
    """A row that is gone."""
    return pgo.build(pgo.Delete(None, 1, kind, old))


def opened(spark: Any, directory: Path, *transactions: list[bytes]) -> OpenLog:
    """Write transactions as a log, and open it."""
    written(directory, *transactions)
    return open_log(spark, directory)


def written(directory: Path, *transactions: list[bytes]) -> None:
    """Write transactions as a log."""
    payloads = []
    for number, changes in enumerate(transactions, 1):
        lsn, end, time = pgo.Lsn(10 * number), pgo.Lsn(10 * number + 1), pgo.Timestamp(number)
        payloads += [pgo.build(pgo.Begin(lsn, time, number)), *changes, pgo.build(pgo.Commit(lsn, end, time))]
    write_log(directory, payloads, log_options(), rows=5)


def rows(state: Any) -> list[tuple[Any, ...]]:
    """The rows of a state, without ``_untyped``."""
    with plain_errors():
        return sorted((tuple(row)[:-1] for row in state.collect()), key=repr)


FULL = ("id", "code", "big")
FIRST = [relation(["id"]), insert(b"1", b"a", b"A"), insert(b"2", b"b", b"B"), insert(b"3", b"c", b"C")]
BY_CODE = [relation(["code"], "i"), update(None, None, b"9", b"a", U), delete("K", None, b"b", None)]
BY_ROW = [
    relation(FULL, "f"),
    update("O", (b"9", b"a", b"A"), b"8", b"a", U),
    delete("O", b"3", b"c", b"C"),
    insert(b"4", b"d", None),
]
BY_ID = [relation(["id"]), update("K", (b"8", None, None), b"5", b"z", U), delete("K", b"4", None, None)]


@pytest.mark.long
def test_each_change_by_its_own_identity(spark: Any, tmp_path: Path) -> None:
    """Primary key, index, full row and primary key again: unsent values are carried through all of them."""
    steps = [FIRST, BY_CODE, BY_ROW, BY_ID]
    log = opened(spark, tmp_path / "three", *steps[:3])
    assert rows(log.state("public.t")) == [("4", "d", None), ("8", "a", "A")]
    log = opened(spark, tmp_path / "four", *steps)
    written = write_tables(log, tmp_path / "tables")["public.t"]
    assert rows(log.state("public.t", read_table(spark, written.path))) == [("5", "z", "A")]


def leaves(frame: Any) -> int:
    """Return how often a plan reads something."""
    return int(frame._jdf.queryExecution().optimizedPlan().collectLeaves().size())


@pytest.mark.long
def test_a_plan_does_not_grow_with_phases(spark: Any, tmp_path: Path) -> None:
    """After six changes of the identity a plan reads no more than after two; what a phase left is read as it is."""
    two = [FIRST, BY_CODE, [relation(["id"]), update("K", (b"9", None, None), b"8", b"y", U)]]
    six = [
        *(FIRST, BY_CODE, BY_ROW, BY_ID),
        [relation(["code"], "i"), update(None, None, b"6", b"z", U)],
        [relation(FULL, "f"), update("O", (b"6", b"z", b"A"), b"7", b"z", U)],
        [relation(["id"]), update("K", (b"7", None, None), b"8", b"y", U)],
    ]
    logs = [opened(spark, tmp_path / str(len(steps)), *steps) for steps in (two, six)]
    states = [log.state("public.t") for log in logs]
    assert [rows(state) for state in states] == [[("3", "c", "C"), ("8", "y", "A")], [("8", "y", "A")]]
    assert leaves(states[0]) == leaves(states[1])
    missing = [log.missing_rows("public.t") for log in logs]
    assert [found.count() for found in missing] == [0, 0] and leaves(missing[0]) == leaves(missing[1])
    ever = [history(None, log.changes("public.t"), log.table("public.t"), begins=False) for log in logs]
    assert [rows.where("_ended_by IS NULL").count() for rows in ever] == [2, 1]
    assert leaves(ever[0]) == leaves(ever[1])


class WatchedLog(OpenLog):
    """A log that notes which positions each read of it found changes at."""

    def phase_reader(self, table: Table) -> PhaseReader:
        """Note what is read."""
        read = super().phase_reader(table)
        self.found = list[list[int]]()

        def noted(first: ChangePosition | None, end: ChangePosition | None) -> DataFrame:
            rows = read(first, end)
            self.found.append(sorted({row._commit_lsn for row in rows.select("_commit_lsn").collect()}))
            return rows

        return noted


@pytest.mark.long
def test_a_phase_reads_its_part_of_the_log(spark: Any, tmp_path: Path) -> None:
    """Of the log the state, and what is missing, need no more for a phase than the transactions from its first change
    to that of the next one."""
    log = WatchedLog(spark, opened(spark, tmp_path, FIRST, BY_CODE[:2], BY_CODE[2:], BY_ROW, BY_ID).opened)
    assert rows(log.state("public.t")) == [("5", "z", "A")]
    assert log.found == [[10, 20], [20, 30, 40], [40, 50], [50]]
    assert log.missing_rows("public.t").count() == 0
    assert log.found == [[10, 20], [20, 30, 40], [40, 50], [50]]


def test_in_one_transaction_and_after_a_truncate(spark: Any, tmp_path: Path) -> None:
    """Phases begin inside a transaction too; a truncate takes what earlier phases left."""
    truncate = pgo.build(pgo.Truncate(None, 0, (1,)))
    log = opened(spark, tmp_path / "one", [*FIRST, *BY_CODE])
    assert rows(log.state("public.t")) == [("3", "c", "C"), ("9", "a", "A")]
    log = opened(spark, tmp_path / "two", FIRST, [*BY_CODE, truncate, insert(b"7", b"g", b"G")])
    assert rows(log.state("public.t")) == [("7", "g", "G")]


def test_a_recreated_table(spark: Any, tmp_path: Path) -> None:
    """Another table under the same name begins empty; the changes are still those of both."""
    second = [relation(["id"], oid=2), insert(b"2", b"x", b"X", oid=2)]
    log = opened(spark, tmp_path, FIRST, second)
    assert rows(log.state("public.t")) == [("2", "x", "X")]
    assert log.changes("public.t").count() == 4


def test_tables_that_took_turns_under_a_name(spark: Any, tmp_path: Path) -> None:
    """The changes are those of both, each with its table; the state is that of the one that has the name now."""
    other = [relation(["code"], oid=2, columns="id code"), insert(b"2", b"x", oid=2)]
    log = opened(spark, tmp_path, FIRST, other, [insert(b"5", b"e", b"E"), delete("K", b"2", None, None)])
    changes = log.changes("public.t")
    assert sorted(row._relation_oid for row in changes.collect()) == [1, 1, 1, 1, 1, 2]
    expected = [("1", "a", "A"), ("3", "c", "C"), ("5", "e", "E")]
    assert rows(log.state("public.t")) == rows(log.state("public.t", changes)) == expected
    assert log.missing_rows("public.t").count() == 0
    with pytest.raises(pgo.ChangeLogError, match=r"public\.t: 2 tables had this name, .*_relation_oid"):
        log.state("public.t", changes.drop("_relation_oid"))


def test_a_key_that_the_log_does_not_have(spark: Any, tmp_path: Path) -> None:
    """After a key column was renamed, rows that were there have no known key: no state, but all changes."""
    renamed = [relation(["name"], columns="name code big"), insert(b"5", b"e", b"E")]
    log = opened(spark, tmp_path / "renamed", FIRST, renamed)
    with pytest.raises(pgo.ChangeLogError, match=r"public\.t: .*primary key \(name\).*'name'.*pgoutput snapshot"):
        rows(log.state("public.t"))
    assert log.changes("public.t").count() == 4
    emptied = [delete("K", number, None, None) for number in (b"1", b"2", b"3")]
    log = opened(spark, tmp_path / "emptied", FIRST, emptied, renamed)
    assert rows(log.state("public.t")) == [("5", "e", "E")]


@pytest.mark.parametrize("folder", ["d [1]", "a{b,c}*?", "back\\slash"])
def test_folders_that_look_like_patterns(spark: Any, tmp_path: Path, folder: str) -> None:
    """Spark takes a path for a pattern where it reads; datasets are read back by their names."""
    log = opened(spark, tmp_path / folder / "log", FIRST)
    written = write_tables(log, tmp_path / folder / "tables")["public.t"]
    assert written.counts["insert"] == 3 and Path(written.path).is_relative_to(tmp_path / folder)
    assert read_table(spark, written.path).count() == 3


def test_names_that_are_not_utf_8(spark: Any, tmp_path: Path) -> None:
    """A table of a database in Latin-1 has a dataset under its bytes."""
    odd = pgo.build(pgo.Relation(None, 1, "public", "caf\udce9", "d", (pgo.RelationColumn(1, "id", 25, -1),)))
    log = opened(spark, tmp_path / "log", [odd, insert(b"1")])
    (written,) = write_tables(log, tmp_path / "tables").values()
    assert Path(written.path).name == "public.caf%E9" and written.insert == 1


def test_changes_from_before_the_log(spark: Any, tmp_path: Path) -> None:
    """A log that was pruned goes on from what a reader took before: also where that is by another identity."""
    later = [relation(["id"]), insert(b"4", b"d", b"D"), delete("K", b"1", None, None)]
    whole = opened(spark, tmp_path / "whole", FIRST, later)
    rest = opened(spark, tmp_path / "rest", later)
    assert rows(rest.state("public.t", whole.changes("public.t"))) == rows(whole.state("public.t"))
    assert len(rows(whole.state("public.t"))) == 3


@pytest.mark.parametrize(("keys", "identity"), [(["id"], "d"), (FULL, "f")])
def test_few_changes_move_no_rows_that_were_there(spark: Any, tmp_path: Path, keys: list[str], identity: str) -> None:
    """What changes touch is sent to where the rows before are; these are not partitioned for it."""
    gone = (b"1", b"a", b"A") if identity == "f" else (b"1", None, None)
    log = opened(
        spark, tmp_path, [relation(keys, identity), *FIRST[1:]], [delete("O" if identity == "f" else "K", *gone)]
    )
    table, changes = log.table("public.t"), log.changes("public.t")
    before = advance(None, changes.where("_commit_lsn = 10"), table).localCheckpoint()
    state = advance(before, changes.where("_commit_lsn = 20"), table)
    plan = state._jdf.queryExecution().sparkPlan().toString()
    assert "BroadcastHashJoin" in plan and "SortMergeJoin" not in plan
    assert sorted(row.id for row in state.collect()) == ["2", "3"]


ADDED = [
    relation(FULL, "f", columns="id code"),
    *(insert(number, b"a") for number in (b"1", b"2", b"2", b"3")),
    relation(FULL, "f", columns="id code big"),
    # What PostgreSQL gives old rows in a column that was added later is in their old versions, or is not.
    update("O", (b"1", b"a", b"new"), b"1", b"b", b"new"),
    update("O", (b"2", b"a", None), b"2", b"b", None),
    insert(b"3", b"a", b"own"),
    delete("O", b"3", b"a", b"own"),
    delete("O", b"7", b"a", b"own"),
    insert(b"7", b"a", b"own"),
]


def test_full_rows_of_different_shapes(spark: Any, tmp_path: Path) -> None:
    """Old rows are compared in the columns that both have; in one batch, and batch after batch from saved states."""
    log = opened(spark, tmp_path / "one", [*ADDED[:5]], [*ADDED[5:]])
    table, changes = log.table("public.t"), log.changes("public.t")
    expected = [("1", "b", "new"), ("2", "a", None), ("2", "b", None), ("3", "a", None), ("7", "a", "own")]
    assert rows(log.state("public.t")) == expected
    missing = missing_rows(None, changes, table).collect()
    assert [(row._op, row._row["id"], row._commit_lsn) for row in missing] == [("delete", "7", 20)]
    state: Any = None
    for lsn, first, last in ((10, 2, 5), (20, 2, 2), (20, 3, 5), (20, 6, 7)):
        batch = changes.where(f"_commit_lsn = {lsn} AND _seq BETWEEN {first} AND {last}")
        state = advance(state, batch, table).localCheckpoint()
    assert sorted((tuple(row)[:3] for row in state.collect()), key=repr) == expected
