"""Spark and Arrow say the same of copied rows, and of the changes that count in addition: what the law says of each."""

from dataclasses import replace
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._facts.visibility import Snapshot, Visibility
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark._log_view.change_columns import BEFORE_ALL
from pgoutput_construct.spark._log_view.replicated_tables import BaseCopy, Table
from pgoutput_construct.spark._state.copy_visibility import (
    counted_changes,
    counted_changes_arrow,
    move_copy_first,
    move_copy_first_arrow,
    restore_copy_lsn,
    restore_copy_lsn_arrow,
)
from pgoutput_construct.wire import Lsn

pytestmark = pytest.mark.spark

COLUMNS = pa.schema([("id", pa.int32())])
COPIED, AFTER, ENDS = 50, 3, 9
"""The LSN of the copy's snapshot, and the seqs between which its rows are."""
SEEN = Visibility(Lsn(92), frozenset({94}), Lsn(150))
COPY = TableCopy(ENDS, 1, "public", "t", Snapshot(90, 95, (92,), Lsn(COPIED)), 0, 0, 2, SEEN)
BASE = BaseCopy(COPY, AFTER, frozenset(COLUMNS.names))
TABLE = Table("public", "t", COLUMNS, ("id",), ("id",), "d", (), (), 1, (1,), BASE, {}, {}, {}, (), 0)
ROWS = [
    {"id": number, "_op": op, "_commit_lsn": lsn, "_seq": seq, "_xid": xid, "_relation_oid": oid}
    for number, (op, lsn, seq, xid, oid) in enumerate(
        product(
            ("snapshot", "insert", "update", "delete", "truncate"),
            (BEFORE_ALL, 49, COPIED, 51, 91, 92, 93, 149, 150, 151),
            (AFTER - 1, AFTER, AFTER + 1, ENDS - 1, ENDS, ENDS + 1),
            (None, 93, 94, 95),
            (1, 2),
        )
    )
    if (op == "snapshot") == (xid is None)
]
SCHEMA = pa.schema(
    [("id", pa.int32()), ("_op", pa.string()), *((name, pa.int64()) for name in ("_commit_lsn", "_seq", "_xid"))]
)


def _is_copied(row: dict[str, Any]) -> bool:
    return bool(row["_commit_lsn"] == COPIED and AFTER < row["_seq"] < ENDS)


def _is_seen(row: dict[str, Any], seen: Visibility) -> bool:
    lsn = row["_commit_lsn"]
    return bool(lsn < seen.place_lsn or (lsn < seen.sees_until and row["_xid"] in seen.contained))


def _counted(row: dict[str, Any], seen: Visibility, with_copy: bool = True) -> tuple[int, str, int] | None:
    """Return what a change or a copied row of the table counts as: by the theory in ``changelog/_facts/visibility``."""
    if row["_op"] == "snapshot":
        return (row["id"], "insert", BEFORE_ALL) if _is_copied(row) and with_copy else None
    return None if _is_seen(row, seen) else (row["id"], row["_op"], row["_commit_lsn"])


def _told(rows: list[Any]) -> list[tuple[int, str, int]]:
    return sorted((row["id"], row["_op"], row["_commit_lsn"]) for row in rows)


@pytest.fixture(scope="module")
def changes(spark: Any) -> Any:
    """Return the rows in Spark, those of two tables that had one name."""
    columns = "id int, _op string, _commit_lsn bigint, _seq bigint, _xid bigint, _relation_oid bigint"
    return spark.createDataFrame(ROWS, columns).cache()


OWN = [row for row in ROWS if row["_relation_oid"] == 1]
ARROW = pa.Table.from_pylist(OWN, SCHEMA)


@pytest.mark.parametrize("seen", [SEEN, Visibility.at(Lsn(92))], ids=["some contained", "none contained"])
def test_what_counts_beside_a_copy(changes: Any, seen: Visibility) -> None:
    """Copied rows, as inserts before all changes, and the changes of transactions that the copy does not contain."""
    base = BASE._replace(copy=replace(COPY, visibility=seen))
    expected = sorted(found for row in OWN if (found := _counted(row, seen)))
    found = counted_changes(changes, replace(TABLE, base=base))
    assert "_relation_oid" not in found.columns and _told(found.collect()) == expected
    assert _told(counted_changes_arrow(ARROW, base, with_copy=True).to_pylist()) == expected
    without = sorted(found for row in OWN if (found := _counted(row, seen, with_copy=False)))
    assert _told(counted_changes_arrow(ARROW, base, with_copy=False).to_pylist()) == without


def test_all_changes_count_without_a_copy(changes: Any) -> None:
    """As they are; rows of a copy do not."""
    expected = _told([row for row in OWN if row["_op"] != "snapshot"])
    assert _told(counted_changes(changes, replace(TABLE, base=None)).collect()) == expected
    assert _told(counted_changes_arrow(ARROW, None, with_copy=True).to_pylist()) == expected
    kept = ARROW.filter(pa.array([row["_op"] != "snapshot" for row in OWN]))
    assert counted_changes_arrow(kept, None, with_copy=False) is kept


def test_changes_whose_table_is_not_known(changes: Any) -> None:
    """Where several tables had the name, changes say whose they are; where one had, they need not."""
    unnamed = changes.where("_relation_oid = 1").drop("_relation_oid")
    expected = sorted(found for row in OWN if (found := _counted(row, SEEN)))
    assert _told(counted_changes(unnamed, TABLE).collect()) == expected
    with pytest.raises(ChangeLogError, match=r"^public\.t: 2 tables had this name, .* lack the column _relation_oid"):
        counted_changes(unnamed, replace(TABLE, relation_oids=(1, 2)))


def test_rows_as_they_were_copied(changes: Any) -> None:
    """They come first while changes are replayed, whether they say that they are of a copy or not; not afterwards."""
    for rows, of_copy in (
        (changes, lambda row: row["_op"] == "snapshot" and _is_copied(row)),
        (changes.drop("_op"), _is_copied),
    ):
        expected = {row["id"]: BEFORE_ALL if of_copy(row) else row["_commit_lsn"] for row in OWN}
        first = move_copy_first(rows.where("_relation_oid = 1"), TABLE)
        assert {row["id"]: row["_commit_lsn"] for row in first.collect()} == expected
        arrow = move_copy_first_arrow(ARROW.select([name for name in SCHEMA.names if name in rows.columns]), BASE)
        assert {row["id"]: row["_commit_lsn"] for row in arrow.to_pylist()} == expected
        restored = {number: COPIED if lsn == BEFORE_ALL else lsn for number, lsn in expected.items()}
        assert {row["id"]: row["_commit_lsn"] for row in restore_copy_lsn(first, TABLE).collect()} == restored
        assert {row["id"]: row["_commit_lsn"] for row in restore_copy_lsn_arrow(arrow, BASE).to_pylist()} == restored


def test_rows_without_a_copy(changes: Any) -> None:
    """Nothing is made of them."""
    table = replace(TABLE, base=None)
    assert move_copy_first(changes, table) is changes and restore_copy_lsn(changes, table) is changes
    assert move_copy_first_arrow(ARROW, None) is ARROW and restore_copy_lsn_arrow(ARROW, None) is ARROW
