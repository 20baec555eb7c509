"""The changes of tables as datasets of Parquet, one for each table.

Tasks write the files themselves: through Spark's own writer it takes six times as long.
"""

import ctypes
import os
import platform
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pgoutput_construct.changelog._index.planning import lost_histories
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark._execution import plain_errors, run_tasks
from pgoutput_construct.spark._log_view.added_columns import DEFAULT_PREFIX, Prefix
from pgoutput_construct.spark._log_view.change_columns import changes_schema
from pgoutput_construct.spark._log_view.log_tables import LogTables
from pgoutput_construct.spark._log_view.replicated_tables import Table, plain_path
from pgoutput_construct.spark._open_log import OpenLog
from pgoutput_construct.spark._own_session import active_session, own_session
from pgoutput_construct.spark._parquet_file import RowsFile, codec_of
from pgoutput_construct.spark._source.read_range import LogRange
from pgoutput_construct.spark._source.segment_rows import read_table_rows
from pgoutput_construct.spark._source.task_plan import TableScanTask, table_tasks
from pgoutput_construct.stream.rows import OPS

_RESULT: Final = pa.schema([("file", pa.string()), ("op", pa.string()), ("rows", pa.int64())])


@dataclass(frozen=True)
class Written:
    """A table's dataset, and how many changes and copied rows it has."""

    path: str
    """The directory of Parquet files."""
    counts: Mapping[str, int]
    """The number of rows of each ``_op``; also available as attributes ``insert``, ``update`` and so on."""

    def __getattr__(self, name: str) -> int:
        if name not in OPS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self.counts.get(name, 0)


def write_tables(
    log: OpenLog, directory: str | Path, tables: Iterable[str] | None = None, mode: str = "error"
) -> dict[str, Written]:
    """Write one Parquet dataset per table into a directory, named ``schema.table`` (``directory_name``).

    Args:
        log: The log.
        directory: The directory, on a file system that executors share.
        tables: The names of tables, None for all.
        mode: Spark's, for datasets that exist; ``overwrite`` writes a new dataset, and then exchanges it with the
            existing one, so that no reader sees half of it.

    Returns:
        The numbers of rows, by table.

    Raises:
        ChangeLogError: As ``open_log`` does.
    """
    own = log.with_session(own_session(log.spark, "write_tables"))
    with active_session(own.spark):
        return {name: _write(own, name, Path(directory), mode) for name in (log.tables if tables is None else tables)}


def read_table(spark: SparkSession, path: str | Path) -> DataFrame:
    """Read a dataset of ``write_tables``; its ``path`` is taken literally, not as a pattern."""
    return spark.read.parquet(plain_path(path))


def _write(log: OpenLog, name: str, directory: Path, mode: str) -> Written:
    table, path = log.table(name), directory.resolve() / log.table(name).directory
    log.check_names(table)
    with plain_errors():
        if mode == "overwrite":
            with directory_swap(path) as written:
                counts = write_changes(log.spark, log.opened, table, written, log.prefix)
        elif not path.exists():
            counts = write_changes(log.spark, log.opened, table, path, log.prefix)
        else:
            log.changes(name).write.mode(mode).parquet(str(path))
            op = log.prefix.added_name("_op")
            rows = read_table(log.spark, path).groupBy(op).count().collect()
            counts = {row[op]: row["count"] for row in rows}
    return Written(str(path), dict.fromkeys(OPS, 0) | counts)


def write_changes(
    spark: SparkSession, opened: LogTables, table: Table, path: Path, prefix: Prefix = DEFAULT_PREFIX
) -> dict[str, int]:
    """Write all changes of a table into a new directory; return the number of rows of each ``_op``.

    The directory is like one of Spark's own writer: a file per task, and ``_SUCCESS`` when all are complete. Tasks must
    find it under the same path. Raises ChangeLogError if one does not, and as the read does; then there is no
    directory.

    Args:
        spark: The session.
        opened: The log.
        table: The table.
        path: The directory.
        prefix: The prefix of added columns.
    """
    own = prefix.replay_table(table)
    schema = changes_schema(own.columns)
    selected = LogRange(-1, opened.as_of, lost=tuple(lost_histories(opened.index)))
    tasks = table_tasks(opened, own, selected, own.columns, schema, prefix=prefix)
    path.mkdir(parents=True)
    try:
        with tempfile.TemporaryDirectory(prefix="_temporary-", dir=path) as directory:  # Spark sees no such names
            writer = _Writer(directory, prefix.reader_schema(schema), codec_of(spark), prefix.added_name("_op"))
            return _publish(_write_files(spark, writer, tasks), Path(directory), path)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise


def _write_files(spark: SparkSession, writer: "_Writer", tasks: list[TableScanTask]) -> list[tuple[str, str, int]]:
    if not tasks:
        return [(writer.write([]), "", 0)]
    return [(row["file"], row["op"], row["rows"]) for row in run_tasks(spark, tasks, writer.done, _RESULT)]


def _publish(written: list[tuple[str, str, int]], directory: Path, path: Path) -> dict[str, int]:
    """Make the files of the tasks visible: a task that ran twice, or was given up, may have left another file."""
    for number, file in enumerate(dict.fromkeys(file for file, *_ in written)):
        (directory / file).rename(path / f"part-{number:05d}-{file}")
    (path / "_SUCCESS").touch()
    counts = Counter[str]()
    for _, op, rows in written:
        counts[op] += rows
    return {op: rows for op, rows in counts.items() if rows}


@dataclass(frozen=True)
class _Writer:
    """Writes the files of one table."""

    directory: str
    schema: pa.Schema
    codec: str
    op: str
    """The name of the column ``_op``."""

    def write(self, batches: Iterable[pa.RecordBatch]) -> str:
        """Write a file; return its name."""
        name, directory = f"{uuid4().hex}.{self.codec}.parquet", Path(self.directory)
        if not directory.is_dir():
            raise ChangeLogError(
                f"{directory.parent}: not found on the host {platform.node()}, where a task of Spark writes into it: "
                "give a directory on a file system that all executors share under this path"
            )
        with RowsFile(directory / name, self.schema, self.codec) as file:
            for batch in batches:
                file.write(batch)
        return name

    def done(self, task: TableScanTask) -> Iterator[dict[str, Any]]:
        """Write the file of a task; yield the number of rows of each ``_op``."""
        counts = Counter[str]()
        file = self.write(_count_ops(read_table_rows(task), counts, self.op))
        for op, count in counts.items() or [("", 0)]:
            yield {"file": file, "op": op, "rows": count}


def _count_ops(batches: Iterable[pa.RecordBatch], counts: Counter[str], op: str) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for found in pc.value_counts(batch[op]).to_pylist():
            counts[found["values"]] += found["counts"]
        yield batch


_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2
"""Both as Linux has them (linux/fcntl.h, linux/fs.h)."""


@contextmanager
def directory_swap(path: Path) -> Iterator[Path]:
    """Yield a path to write a directory to, which replaces ``path`` when the block ends; after an error it is removed.

    Readers of ``path`` see the old directory, then the new one: on Linux both are exchanged atomically, elsewhere there
    is none in between.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_name(f"_{uuid4().hex}")  # Spark sees no such names
    try:
        yield written
        if path.exists():
            _exchange(written, path)
        else:
            written.rename(path)
    finally:
        shutil.rmtree(written, ignore_errors=True)


def _exchange(one: Path, other: Path) -> None:
    if not _try_exchange(one, other):
        aside = other.with_name(f"_{uuid4().hex}")
        other.rename(aside)
        one.rename(other)
        aside.rename(one)


def _try_exchange(one: Path, other: Path) -> bool:
    """Exchange two names atomically; return whether the system, and the file system, can do that."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    done: int = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    return done == 0
