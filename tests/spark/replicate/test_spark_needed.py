"""Where a batch needs Spark, which cannot be started, each table's error says why; what fails otherwise says that."""

from pathlib import Path
from typing import Any, NoReturn, cast

import pytest

import pgoutput_construct as pgo
from pgoutput_construct import lake
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.spark._deferred_session import NEEDED_BY, DeferredSession
from pgoutput_construct.spark._replicate import arrow_writes, replicate, small_tables, write_ways
from pgoutput_construct.spark._table_formats.delta_sink import DeltaSink
from pgoutput_construct.spark._table_formats.parquet_sink import ParquetSink
from pgoutput_construct.spark.formats import _all_settings
from tests.spark.test_copies import DESCRIBED, Log
from tests.spark.test_phases import delete, insert, update

LIMITS: Any = {
    "changes": ((write_ways, "ARROW_CHANGES", 1), "2 changes, more than 1"),
    "bytes": ((ParquetSink, "key_bytes", 0), (ParquetSink, "few_bytes", 0), r"its files have \d kB, more than 0 kB"),
    "staged": ((small_tables, "_BYTES", 10), "a file has . kB, more than 0 kB"),
    "rows": ((small_tables, "_ROWS", 0), "2 rows, more than 0"),
    "memory": ((small_tables, "_MEMORY", 0), "its rows are more than 0 kB in memory"),
}
"""Limits as they are set, and the reason."""


def _no_spark() -> NoReturn:
    raise PgoutputError(f"{NEEDED_BY.get()} needs Spark")


def _replicate(log: Log, warehouse: Path, into: str = "parquet", **options: Any) -> None:
    log.cut()
    settings = _all_settings("local[2]", None, [into], str(warehouse))
    session = cast("Any", DeferredSession(_no_spark, settings, can_start=lambda: False))
    replicate(session, log.directory, warehouse, into, workers=1, **options)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """A table with a key, of two rows."""
    log = Log(tmp_path / "log")
    log.copied((90, 90, ()), [[insert(b"1", b"a"), insert(b"2", b"b")]])
    log.transaction(91, DESCRIBED)
    return log


@pytest.mark.parametrize("name", LIMITS)
def test_limits(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Each of them is in the error of the table that exceeds it."""
    _replicate(log, tmp_path / "wh")
    log.transaction(92, update(None, None, b"1", b"aa"), update(None, None, b"2", b"bb"))
    *limits, reason = LIMITS[name]
    for limit in limits:
        monkeypatch.setattr(*limit)
    with pytest.raises(ChangeLogError, match=rf"public\.t \({reason}.*\) needs Spark"):
        _replicate(log, tmp_path / "wh")


@pytest.mark.parametrize(
    ("into", "options", "reason"),
    [
        ("parquet", {"write_mode": "merge-on-read"}, "--write-mode is given"),
        ("delta", {"table_properties": {"delta.appendOnly": "false"}}, "partitions, properties or further features"),
    ],
)
def test_options(log: Log, tmp_path: Path, into: str, options: dict[str, Any], reason: str) -> None:
    """So is what was requested of it."""
    with pytest.raises(ChangeLogError, match=rf"public\.t \(.*{reason}.*\) needs Spark"):
        _replicate(log, tmp_path / "wh", into, **options)


@pytest.mark.parametrize("into", ["parquet", "delta"])
def test_deleted_rows_that_stay(log: Log, tmp_path: Path, into: str) -> None:
    """They need no Spark: of each key the last one, unless it has come again; only where all of them are written."""
    emptied = pgo.build(pgo.Truncate(None, 0, (1,)))
    changes = {
        (): {("1", "a", False), ("2", "b", False)},
        (
            update("K", (b"1", None), b"3", b"moved"),
            delete("K", b"2", None),
            insert(b"4", b"d"),
            delete("K", b"4", None),
            insert(b"4", b"again"),
        ): {("1", "a", True), ("2", "b", True), ("3", "moved", False), ("4", "again", False)},
        (insert(b"2", b"again"), emptied, insert(b"4", b"after")): {
            ("1", "a", True),
            ("2", "again", True),
            ("3", "moved", True),
            ("4", "after", False),
        },
    }
    for number, (done, expected) in enumerate(changes.items()):
        if done:
            log.transaction(92 + number, *done)
        _replicate(log, tmp_path / "wh", into, soft_delete=True)
        found = lake.read(tmp_path / "wh", "public.t").to_pylist()
        rows = [(row["id"], row["code"], row["_deleted_at"] is not None) for row in found]
        assert len(rows) == len(expected) and {*rows} == expected
    with pytest.raises(ChangeLogError, match=r"its deleted rows stay, and it is written from scratch"):
        _replicate(log, tmp_path / "wh", into, resync=["public.t"])


def test_rows_that_do_not_exist(log: Log, tmp_path: Path) -> None:
    """Spark would say which."""
    _replicate(log, tmp_path / "wh")
    log.transaction(92, delete("K", b"9", None))
    with pytest.raises(ChangeLogError, match=r"public\.t \(the row of a change does not exist\) needs Spark"):
        _replicate(log, tmp_path / "wh")


@pytest.mark.parametrize(("into", "sink"), [("parquet", ParquetSink), ("delta", DeltaSink)])
def test_what_fails(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, into: str, sink: type[Any]) -> None:
    """A disk that is full is no reason to look for Java, nor is what fails before files are written."""
    _replicate(log, tmp_path / "wh", into)
    log.transaction(92, update(None, None, b"1", b"aa"))

    def full(*_: Any, **__: Any) -> NoReturn:
        raise OSError(28, "No space left on device")

    for owner, name in ((arrow_writes, "content_of"), (sink, "new_files")):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, full)
            with pytest.raises(ChangeLogError, match="No space left on device") as raised:
                _replicate(log, tmp_path / "wh", into)
        assert "needs Spark" not in str(raised.value)
    _replicate(log, tmp_path / "wh", into)
    assert lake.read(tmp_path / "wh", "public.t", columns=["code"])["code"].to_pylist().count("aa") == 1
