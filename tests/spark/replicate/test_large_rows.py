"""A row that is too large for Spark's heap is the error of its table; the heap itself, by default and as set."""

import logging
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.spark import read_current, replicate
from pgoutput_construct.spark._heap import Heap, default_heap, heap_of, machine_memory
from pgoutput_construct.spark._replicate import Batch, staging
from tests.spark.logs import log_options, write_log
from tests.table_formats import SHORT_IN_PARQUET

GIB = 1 << 30
SMALL = Heap(304 << 20, "spark.driver.memory")
LARGE, OTHER = (
    pgo.Relation(
        None,
        oid,
        "public",
        name,
        "d",
        (pgo.RelationColumn(1, "id", 23, -1), pgo.RelationColumn(0, "v", 25, -1), pgo.RelationColumn(0, "n", 23, -1)),
    )
    for oid, name in ((16385, "large"), (16386, "other"))
)
UNCHECKED = """
import sys, warnings
from pgoutput_construct.spark import replicate, spark_session, read_current
from pgoutput_construct.spark._replicate import staging

if sys.argv[3] == "unchecked":
    staging.heap_of = lambda spark: None
seen = []
with spark_session("local[2]", {"spark.driver.memory": "512m"}) as spark:
    try:
        replicate(spark, sys.argv[1], sys.argv[2], on_batch=seen.append)
    finally:
        print(seen[-1].troubled, read_current(spark, sys.argv[2], "other").count())
"""


def _transaction(number: int, rows: Iterable[Any]) -> Iterator[Any]:
    end, time = pgo.Lsn(1000 * (number + 1)), pgo.Timestamp(number * 1_000_000)
    yield from (pgo.Begin(end, time, 700 + number), LARGE, OTHER, *rows, pgo.Commit(end, pgo.Lsn(end + 10), time))


def _write(log: Path, size: int, has_update: bool = False) -> None:
    """Write a log of two transactions: the second one inserts a row with a text of some bytes, and may update it."""
    first = [pgo.Insert(None, each.relation_oid, (b"1", b"a", b"1")) for each in (LARGE, OTHER)]
    second = [
        pgo.Insert(None, LARGE.relation_oid, (b"2", b"x" * size, b"2")),
        pgo.Insert(None, OTHER.relation_oid, (b"2", b"b", b"2")),
    ]
    if has_update:
        second.insert(1, pgo.Update(None, LARGE.relation_oid, None, None, (b"2", b"x" * size, b"3")))
    messages = (each for number, rows in enumerate((first, second)) for each in _transaction(number, rows))
    write_log(log, [pgo.build(each) for each in messages], log_options())


@pytest.mark.spark
@pytest.mark.parametrize("into", SHORT_IN_PARQUET)
def test_one_table(lake: Any, tmp_path: Path, into: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By name, size and place, with the setting that helps; it helps, and so does leaving the column out."""
    log, warehouse, seen = tmp_path / "log", tmp_path / "wh", list[Batch]()
    _write(log, 5 << 20, has_update=True)
    with monkeypatch.context() as patched:
        patched.setattr(staging, "heap_of", lambda spark: SMALL)
        with pytest.raises(pgo.ChangeLogError, match=r"public\.large: .*; all other tables are up to date"):
            replicate(lake, log, warehouse, into, on_batch=seen.append)
        assert seen[-1].troubled == {
            "public.large": "public.large: a row of 5 MB at LSN 0/7D0, 5 MB of it in 'v', is too large for Spark's "
            "heap of 304 MB: set spark.driver.memory (--conf spark.driver.memory=1g), exclude the column "
            "(--exclude-columns), or mask it (--mask)"
        }
        assert read_current(lake, warehouse, "other").count() == 2
        replicate(lake, log, tmp_path / "without", into, exclude_columns=["public.large.v"])
        assert read_current(lake, tmp_path / "without", "large").count() == 2
    replicate(lake, log, warehouse, into)
    assert read_current(lake, warehouse, "large").selectExpr("max(length(v))").first()[0] == 5 << 20


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("check", ["checked", "unchecked"])
def test_a_small_heap(tmp_path: Path, check: str) -> None:
    """A row that does not fit into the heap; without the check a task runs out of memory, and Spark stays alive."""
    _write(tmp_path / "log", 180 << 20)
    command = [sys.executable, "-c", UNCHECKED, tmp_path / "log", tmp_path / "wh", check]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    assert "'public.large': " in done.stdout and done.stdout.endswith(" 2\n"), done.stderr
    # A collector that needs room of its own leaves less of the 512 MB.
    said = "OutOfMemoryError" if check == "unchecked" else r"is too large for Spark's heap of [45]\d\d MB"
    assert re.search(said, done.stdout), done.stdout
    assert done.returncode == 1


def test_sizes() -> None:
    """Texts and binary values count, wherever in a row they are; the largest row is found, and its largest column."""
    rows = pa.record_batch(
        {
            "_commit_lsn": [1, 2, 3],
            "_untyped": pa.array([None, [("k", "v")], []], pa.map_(pa.string(), pa.string())),
            "v": pa.array(["a", None, "x" * 1000]),
            "l": pa.array([["a", None], None, ["c" * 10]]),
            "_before": pa.array([{"b": b"xx"}, None, {"b": b"y"}]),
        }
    )
    for batch, expected in ((rows, [4, 2, 1011]), (rows.slice(1), [2, 1011])):
        assert sum(map(staging._sizes, batch.columns)).tolist() == expected
    staging._check_sizes("t", rows, Heap((256 << 20) + 1011 * 12, "s"))
    with pytest.raises(pgo.ChangeLogError, match=r"^t: a row of .* at LSN 0/3, .* of it in 'v', "):
        staging._check_sizes("t", rows, Heap((256 << 20) + 1010 * 12, "s"))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n"}, None),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "1000\n"}, 1000),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "2000\n"}, 2000),
        (
            {
                "proc/self/cgroup": "9:name=systemd:/\n4:cpu,memory:/docker/x\n0::/\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "3000\n",
            },
            3000,
        ),
    ],
    ids=["none", "no limit", "of a group above", "of a container", "version 1"],
)
def test_memory(tmp_path: Path, files: dict[str, str], expected: int | None) -> None:
    """The limit of a control group counts where it is less than what the machine has."""
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    found = machine_memory(tmp_path)
    assert found is not None and (found == expected if expected else found >= GIB)


def test_default_heap() -> None:
    """A quarter, within bounds."""
    assert [default_heap(memory * GIB) // GIB for memory in (1, 4, 24, 64, 512)] == [1, 1, 6, 16, 31]


@pytest.mark.spark
def test_heap_of_a_session(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    """That of the JVM, which is said where a session is opened."""
    from pgoutput_construct.spark import spark_session

    heap = heap_of(spark)
    assert heap is not None and heap.setting == "spark.driver.memory" and GIB < heap.bytes <= 1500 << 20
    with caplog.at_level(logging.INFO):
        spark_session("local[2]")
    assert f"Spark's tasks have a heap of {heap} (spark.driver.memory)" in caplog.messages
