"""Small tables in Arrow: what random histories, with which test_advance.py compares Spark, do not bring about."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.spark._log_view.change_columns import changes_schema
from pgoutput_construct.spark._replicate.arrow_writes import ArrowTask, ArrowWrite, write_files
from pgoutput_construct.spark._replicate.small_tables import (
    SmallTable,
    SmallTableRule,
    advanced_rows,
    rows_schema,
)
from pgoutput_construct.spark._replicate.write_ways import SparkNeededError
from pgoutput_construct.spark._table_formats.sink import FilesUse, PresentFile

COLUMNS = pa.schema([("id", pa.int32()), ("big", pa.string())])


def _change(seq: int, op: str, key: int | None, big: str | None = None, **others: Any) -> dict[str, Any]:
    return {"id": key, "big": big, "_op": op, "_commit_lsn": 100, "_seq": seq, "_xid": 90, "_unchanged": [], **others}


def _table(*changes: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(changes), changes_schema(COLUMNS))


def _rule(lacks_rows: bool = False) -> SmallTableRule:
    return SmallTableRule(COLUMNS, ("id",), ("big",), None, lacks_rows)


def test_an_update_that_names_the_key_that_it_keeps() -> None:
    """It is one change, as of a key that is stored apart: the row is not gone."""
    changes = _table(_change(0, "insert", 1, "a"), _change(1, "update", 1, "b", _before={"id": 1}))
    rows = advanced_rows(None, changes, _rule())
    assert rows.select(["id", "big", "_seq"]).to_pylist() == [{"id": 1, "big": "b", "_seq": 1}]


def test_rows_that_are_older_than_the_log() -> None:
    """Where there may be such, what leaves nothing open is done; else all is for Spark to say."""
    whole = _table(_change(0, "delete", None, _before={"id": 1}), _change(1, "update", 2, "b"))
    with pytest.raises(SparkNeededError, match="the row of a change does not exist"):
        advanced_rows(None, whole, _rule())
    rows = advanced_rows(rows_schema(COLUMNS).empty_table(), whole, _rule(lacks_rows=True))
    assert rows["id"].to_pylist() == [2]
    left_open = _table(_change(0, "update", 1, _unchanged=["big"]))
    with pytest.raises(SparkNeededError, match="a value that no row has"):
        advanced_rows(None, left_open, _rule(lacks_rows=True))


def test_files_of_a_task(tmp_path: Path) -> None:
    """A table whose files are lost is not taken for one without rows; one that is new is written."""
    store = LocalStore(tmp_path, durable=False)
    pq.write_table(_table(_change(0, "insert", 1, "a")), tmp_path / "changes.parquet")
    named = tuple((name, name) for name in rows_schema(COLUMNS).names)
    table, schema = SmallTable(_rule(), ("changes.parquet",), changes_schema(COLUMNS), named), rows_schema(COLUMNS)
    lost = PresentFile("t/v1/part.parquet", 100)
    writes = (
        ArrowWrite(0, table, FilesUse.OVERWRITE, "t/v2/part.parquet", schema, "snappy", (lost,)),
        ArrowWrite(1, table, FilesUse.REPLACE, "new/v2/part.parquet", schema, "snappy", ()),
    )
    first, second = write_files(ArrowTask(store, writes))
    assert first["table"] == 0 and first["is_error"] and "part.parquet" in first["reason"]
    assert not (tmp_path / "t").exists()
    assert (second["table"], second["overwrites"], second["rows"]) == (1, True, 1) and "reason" not in second
    assert pq.read_table(tmp_path / "new" / "v2")["id"].to_pylist() == [1]
