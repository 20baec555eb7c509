"""The Spark runs that are measured: ours, and the ones that they are compared with, over the same changes."""

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import psutil
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.spark import advance, current_state, net_changes, open_log, write_tables
from pgoutput_construct.spark._log_view.change_columns import CHANGE
from pgoutput_construct.spark._replicate.table_history import history
from pgoutput_construct.wire.protocol import RelationReplicaIdentity
from tools.benchmark.spark.workload import TABLE

__all__ = ["RUNS", "Files", "Run", "Spent", "cpu_of_processes", "measured"]

Result = TypeVar("Result")


class Spent(NamedTuple):
    """What something took."""

    seconds: float
    cpu: float
    """Seconds of all cores, of this process and its children: the JVM, and Python's workers."""


@dataclass(frozen=True)
class Files:
    """What is read and written."""

    log: Path
    """The change log."""
    full: Path
    """That of the same changes of a table whose replica identity is the full row."""
    lines: Path | None
    """What wal2json made of the same changes, None where it is not there."""
    directory: Path
    """What is written goes below this."""

    @property
    def typed(self) -> Path:
        """Our typed Parquet of the table's changes."""
        return self.directory / "typed" / TABLE

    @property
    def typed_full(self) -> Path:
        """That of the table whose identity is the full row."""
        return self.directory / "full" / TABLE


@dataclass(frozen=True)
class Run:
    """One way of doing something."""

    name: str
    work: Callable[[SparkSession, Files], None]

    def measure(self, spark: SparkSession, files: Files) -> Spent:
        """Do it, and return what it took."""
        return measured(lambda: self.work(spark, files))[0]


def measured(work: Callable[[], Result]) -> tuple[Spent, Result]:
    """Do something; return what it took, and what it returned."""
    cpu, begun = _cpu(), time.perf_counter()
    result = work()
    seconds = time.perf_counter() - begun
    return Spent(seconds, _cpu() - cpu), result


def cpu_of_processes(pid: int) -> dict[int, float]:
    """Return the CPU seconds of a process and of all below it that run now, by their process IDs."""
    here, found = psutil.Process(pid), dict[int, float]()
    for process in (here, *here.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            found[process.pid] = sum(process.cpu_times()[:2])
    return found


def _cpu() -> float:
    """Return the CPU seconds of this process and of all below it, also of those that have ended."""
    here, found = psutil.Process(), 0.0
    for process in (here, *here.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # it has ended meanwhile: its parent has its seconds
            found += sum(process.cpu_times()[:4])
    return found


def _tables(spark: SparkSession, files: Files) -> None:
    write_tables(open_log(spark, files.log), files.typed.parent, [TABLE], mode="overwrite")


def _full_tables(spark: SparkSession, files: Files) -> None:
    write_tables(open_log(spark, files.full), files.typed_full.parent, [TABLE], mode="overwrite")


def _changes(spark: SparkSession, files: Files) -> None:
    _write(open_log(spark, files.log).changes(TABLE), files.directory / "changes")


def _copy(spark: SparkSession, files: Files) -> None:
    _write(spark.read.parquet(str(files.typed)), files.directory / "copy")


def _from_json(spark: SparkSession, files: Files) -> None:
    column = T.StructType().add("name", "string").add("value", "string")
    line = T.StructType().add("action", "string").add("lsn", "string").add("timestamp", "string")
    line = line.add("columns", T.ArrayType(column)).add("identity", T.ArrayType(column))
    typed = open_log(spark, files.log).changes(TABLE).schema
    read = spark.read.text(str(files.lines)).select(F.from_json("value", line).alias("line")).select("line.*")
    rows = read.where("action IN ('I', 'U', 'D')").withColumn(
        "new", F.map_from_entries(F.coalesce("columns", "identity"))
    )
    own = [field for field in typed.fields if field.name not in CHANGE]
    values = [F.col("new")[field.name].cast(field.dataType).alias(field.name) for field in own]
    _write(rows.select(*values, "action", "lsn", F.col("timestamp").cast("timestamp")), files.directory / "json")


def _state(spark: SparkSession, files: Files) -> None:
    opened = open_log(spark, files.log)
    _discard(opened.state(TABLE, spark.read.parquet(str(files.typed))))


def _state_of_full(spark: SparkSession, files: Files) -> None:
    _discard(open_log(spark, files.full).state(TABLE, spark.read.parquet(str(files.typed_full))))


def _advance(spark: SparkSession, files: Files) -> None:
    """Bring rows up to date with the last tenth of the changes; the first round writes the rows before."""
    table, changes = open_log(spark, files.log).table(TABLE), spark.read.parquet(str(files.typed))
    first, last = table.identities[0].first[0], table.identities[-1].last[0]
    begin, lsn = last - (last - first) // 10, F.col("_commit_lsn")
    path = files.directory / f"before-{begin}"
    if not (path / "_SUCCESS").exists():
        _write(advance(None, changes.where(lsn < begin), table), path)
    _discard(advance(spark.read.parquet(str(path)), changes.where(lsn >= begin), table))


def _net_changes(spark: SparkSession, files: Files) -> None:
    table = open_log(spark, files.log).table(TABLE)
    _discard(net_changes(spark.read.parquet(str(files.typed)), table.key_columns, table.current))


def _history(spark: SparkSession, files: Files) -> None:
    table = open_log(spark, files.log).table(TABLE)
    _discard(history(None, spark.read.parquet(str(files.typed)), table, begins=True))


def _history_of_full(spark: SparkSession, files: Files) -> None:
    table = open_log(spark, files.full).table(TABLE)
    _discard(history(None, spark.read.parquet(str(files.typed_full)), table, begins=True))


def _max_by(spark: SparkSession, files: Files) -> None:
    _last(spark.read.parquet(str(files.typed)))


def _state_of_moved(spark: SparkSession, files: Files) -> None:
    _discard(current_state(_moved(spark, files), ("id",), RelationReplicaIdentity.DEFAULT))


def _max_by_of_moved(spark: SparkSession, files: Files) -> None:
    _last(_moved(spark, files))


def _moved(spark: SparkSession, files: Files) -> DataFrame:
    """Return as many changes as there are of the table; the first round writes them."""
    path, count = files.directory / "moved", spark.read.parquet(str(files.typed)).count()
    if not (path / "_SUCCESS").exists() or spark.read.parquet(str(path)).count() != count:
        write_moved(spark, path, count)
    return spark.read.parquet(str(path))


def _last(changes: DataFrame) -> None:
    """Take the last change of each key, as who knows nothing of unsent values and changed keys would."""
    own = [name for name in changes.columns if name not in CHANGE]
    key = F.coalesce("id", "_before.id").alias("_id")
    latest = F.max_by(F.struct("_op", *own), F.struct("_commit_lsn", "_seq")).alias("row")
    _discard(changes.groupBy(key).agg(latest).where("row._op <> 'delete'").select("row.*"))


def _write(rows: DataFrame, path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    rows.write.parquet(str(path))


def _discard(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


RUNS: Final = {
    run.name: run
    for run in (
        Run("log to typed Parquet", _tables),
        Run("changes, by Spark's writer", _changes),
        Run("plain copy of it", _copy),
        Run("from_json over wal2json's lines", _from_json),
        Run("state", _state),
        Run("max_by per key", _max_by),
        Run("rows, and a tenth of the changes", _advance),
        Run("net changes", _net_changes),
        Run("history", _history),
        Run("log of full rows to typed Parquet", _full_tables),
        Run("state of full rows", _state_of_full),
        Run("history of full rows", _history_of_full),
        Run("state, keys change, values unsent", _state_of_moved),
        Run("max_by of the same", _max_by_of_moved),
    )
}
"""All runs by name; those that write typed Parquet write what others after them read."""


_KEYS: Final = 4
"""Each key has so many changes, on average."""
_MOVED: Final = 5
_UNSENT: Final = 30
"""Of so many per cent of the updates."""


def write_moved(spark: SparkSession, directory: Path, count: int) -> None:
    """Write so many changes of one table, whose key is ``id``, as ``write_tables`` does."""
    i, keys = F.col("i"), count // _KEYS
    key = F.when(i < keys, i).otherwise(F.pmod(F.xxhash64(i), F.lit(keys)))
    stays = F.col("key") % 2 == 1  # what is left out, a row has that neither moved nor went
    op = F.when(i < keys, "insert").when(stays | (_chance(1) < 80), "update").otherwise("delete")
    rows = spark.range(count).select(F.col("id").alias("i")).select("i", key.alias("key"))
    rows = rows.select("i", "key", op.alias("_op"))
    is_moved = (F.col("_op") == "update") & ~stays & (_chance(2) < 2 * _MOVED)
    is_unsent = (F.col("_op") == "update") & stays & (_chance(3) < 2 * _UNSENT)
    values = {
        "id": F.when(is_moved, i + count).otherwise(F.col("key")),
        "quantity": (i % 1000).cast("int"),
        "kind": (i % 77).cast("smallint"),
        "name": F.concat(F.lit("customer name "), i % 5000),
        "mail": F.concat(F.lit("mail"), i, F.lit("@example.org")),
        "price": (i / 100).cast("decimal(12,2)"),
        "moment": F.timestamp_micros(i * 1_000_000),
        "valid": i % 2 == 0,
        "weight": i * 1.5,
        "document": F.when(~is_unsent, F.repeat(F.concat(F.lit("x"), i), 8)),
    }
    kinds = {field.name: field.dataType for field in rows.select(*_named(values)).schema}
    nothing = {name: F.lit(None).cast(kind) for name, kind in kinds.items()}
    is_deleted = F.col("_op") == "delete"
    written = rows.select(
        *(F.when(~is_deleted, value).alias(name) for name, value in values.items()),
        "_op",
        (i / 8).cast("bigint").alias("_commit_lsn"),
        (i % 8).alias("_seq"),
        F.timestamp_micros(i * 1_000_000).alias("_commit_time"),
        (i / 8 + 1000).cast("bigint").alias("_xid"),
        F.when(is_moved | is_deleted, F.struct(*_named({**nothing, "id": F.col("key")}))).alias("_before"),
        F.when(is_unsent, F.array(F.lit("document"))).otherwise(F.array().cast("array<string>")).alias("_unchanged"),
        F.lit(None).cast("map<string,string>").alias("_untyped"),
    )
    written.write.mode("overwrite").parquet(str(directory))


def _named(values: dict[str, Column]) -> list[Column]:
    return [value.alias(name) for name, value in values.items()]


def _chance(seed: int) -> Any:
    return F.pmod(F.xxhash64(F.col("i"), F.lit(seed)), F.lit(100))
