"""python -m tools.benchmark lake: what a batch of ``replicate`` costs in tables that grow, and what it writes.

Every case is measured in one run with what it is compared with: another size of the table, or Spark's own writer.
"""

import argparse
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from pgoutput_construct.cli._options import WRITE_MODES
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import capture, create_slot, current_lsn
from pgoutput_construct.spark import Retention, read_current, replicate, spark_session
from pgoutput_construct.spark.formats import FORMATS
from tools.benchmark.spark.runs import Spent, measured

__all__ = ["main"]

_SLOT: Final = "lake"
_SERVER: Final = {"autovacuum": "off", "max_wal_size": "8GB", "fsync": "off", "logical_decoding_work_mem": "256MB"}
_CREATE: Final = "CREATE TABLE t{0} (id bigint PRIMARY KEY, note text, amount numeric(12, 2), at timestamptz)"
_FILL: Final = (
    "INSERT INTO t{0} SELECT i, md5(i::text) || md5((i + 1)::text), i % 1000, now() FROM generate_series({1}, {2}) i"
)
_CHANGE: Final = (
    "UPDATE t{0} SET note = md5(random()::text) || md5(note), amount = amount + 1 "
    "WHERE id IN (SELECT 1 + (random() * ({1} - 1))::bigint FROM generate_series(1, {2}))"
)
"""Random rows, of which a few may be the same."""


_APPENDS: Final = 8
"""Batches of inserts alone; the median is that of the later half, when both are warm."""
_SCANS: Final = 8
"""Scans of each table, in turns."""
_MAINTAINED: Final = 50
"""The number of batches after which ``--continuous`` maintains a table."""


class _Cost(NamedTuple):
    """What a batch took, and wrote."""

    spent: Spent
    written: int
    """Bytes of files that were not there before."""
    batch: float = 0.0
    """Seconds of the batch itself, without opening warehouse, log and sessions."""


class _Source:
    """A server with one publication, and the log that is captured from it."""

    def __init__(self, server: EmbeddedServer, place: Path) -> None:
        self._server = server
        self.place = place

    def begin(self, *statements: str) -> None:
        """Run statements, and capture what they leave: it is copied."""
        with self._server.connect() as connection:
            for statement in (*statements, "CREATE PUBLICATION lake FOR ALL TABLES"):
                connection.execute(statement.encode())
            create_slot(connection, _SLOT)
        self.run()

    def run(self, *statements: str) -> None:
        """Run statements, each in a transaction of its own, and capture what they do."""
        with self._server.connect() as connection:
            for statement in statements:
                connection.execute(statement.encode())
            end = current_lsn(connection)
        capture(self._server.dsn, _SLOT, [_SLOT], self.log, until_lsn=end, snapshot=True, new_log=True)

    @property
    def log(self) -> Path:
        """The log."""
        return self.place / "log"


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    options = _parser().parse_args(arguments)
    options.directory.mkdir(parents=True, exist_ok=True)
    settings = {"spark.sql.shuffle.partitions": str(options.cores), "spark.driver.memory": options.heap}
    with (
        tempfile.TemporaryDirectory(prefix="lake-", dir=options.directory) as place,
        spark_session(f"local[{options.cores}]", settings, into=options.into, warehouse=place) as spark,
    ):
        for name in options.case:
            print(f"== {name}", flush=True)
            with EmbeddedServer(18, _SERVER) as server:
                _CASES[name](spark, _Source(server, Path(place, name)), options)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.benchmark lake", description=__doc__)
    add, root = parser.add_argument, Path(__file__).parents[3] / "build" / "benchmark"
    add("--case", nargs="+", choices=[*_CASES], default=[*_CASES], help=f"what is measured (all: {', '.join(_CASES)})")
    add("--into", nargs="+", choices=sorted(FORMATS), default=sorted(FORMATS), help="formats (all)")
    add("--write-mode", choices=WRITE_MODES, help="of the tables (default: each format's own)")
    add("--rows", nargs="+", type=int, default=[100_000, 10_000_000], metavar="N", help="of tables (100000 10000000)")
    add("--changes", type=int, default=1000, metavar="N", help="of a batch (default 1000)")
    add("--batches", type=int, default=5, metavar="N", help="that are measured (default 5)")
    add("--tables", type=int, default=20, metavar="N", help="of the case tables (default 20)")
    add("--many", type=int, default=1000, metavar="N", help="batches of the case batches (default 1000)")
    add("--heap", default="4g", metavar="SIZE", help="of the JVM (default 4g)")
    add("--cores", type=int, default=2, metavar="N", help="threads of Spark (default 2)")
    add("--directory", type=Path, default=root, metavar="FOLDER", help="for files (default build/benchmark)")
    return parser


def _changes(spark: SparkSession, source: _Source, options: argparse.Namespace) -> None:
    """Measure batches of changed rows in tables of different sizes, and of inserted ones; and how the tables began."""
    costs = dict[tuple[str, int], _Cost]()
    filled = ([_CREATE.format(number), _FILL.format(number, 1, rows)] for number, rows in enumerate(options.rows))
    source.begin(*(statement for each in filled for statement in each))
    for number, rows in enumerate(options.rows):
        names = [f"public.t{number}"]
        for into in options.into:
            load = _replicated(spark, source, into, options, names)
            own = _own_write(spark, source, into, names[0])
            ratio = f"{load.spent.seconds / own.spent.seconds:.2f} of the time"
            print(f"{into}: load of {rows:,} rows: {_text(load)}; Spark's own write {_text(own)}: {ratio}", flush=True)
        found: dict[str, list[_Cost]] = {into: [] for into in options.into}
        for _ in range(options.batches + 1):
            source.run(_CHANGE.format(number, rows, options.changes))
            for into in options.into:
                found[into].append(_replicated(spark, source, into, options, names))
        for into, each in found.items():
            costs[into, rows] = cost = _median(each[1:])
            payload = _payload(spark, source, into, names[0], options.changes)
            parts = f"{cost.written / payload:.1f} times the bytes of the changed rows as typed Parquet"
            print(f"{into}: {options.changes:,} changes of {rows:,} rows: {_text(cost)}, {parts}", flush=True)
        _inserts(spark, source, options, number, rows)
    first, *others = options.rows
    for into in options.into:
        for rows in others:
            one, other = costs[into, first], costs[into, rows]
            ratios = other.spent.seconds / one.spent.seconds, other.written / one.written
            print(f"{into}: {rows:,} rows against {first:,}: {ratios[0]:.2f} of the time, {ratios[1]:.2f} of the bytes")


def _inserts(spark: SparkSession, source: _Source, options: argparse.Namespace, number: int, rows: int) -> None:
    """Measure batches of inserted rows alone, in turns with Spark's own appends of the same rows."""
    count, names = 100 * options.changes, [f"public.t{number}"]
    found: dict[str, list[tuple[_Cost, _Cost]]] = {into: [] for into in options.into}
    for turn in range(_APPENDS):
        after = rows + turn * count
        source.run(_FILL.format(number, after + 1, after + count))
        for into in options.into:
            cost = _replicated(spark, source, into, options, names)
            found[into].append((cost, _own_append(spark, source, into, names[0], after)))
    for into, each in found.items():
        cost, own = map(_median, zip(*each[_APPENDS // 2 :], strict=True))
        ratio = f"{cost.spent.seconds / own.spent.seconds:.2f} of the time, the batch itself {cost.batch:.2f} s"
        print(f"{into}: {count:,} rows that come: {_text(cost)}; Spark's own append {_text(own)}: {ratio}", flush=True)


def _tables(spark: SparkSession, source: _Source, options: argparse.Namespace) -> None:
    """Measure a small batch of many tables."""
    filled = ([_CREATE.format(number), _FILL.format(number, 1, 1000)] for number in range(options.tables))
    source.begin(*(statement for each in filled for statement in each))
    found: dict[str, list[_Cost]] = {into: [] for into in options.into}
    for _ in range(options.batches + 2):
        for into in options.into:
            found[into].append(_replicated(spark, source, into, options))
        source.run(*(_CHANGE.format(number, 1000, 10) for number in range(options.tables)))
    for into, costs in found.items():
        print(f"{into}: 10 changes in each of {options.tables} tables: {_text(_median(costs[2:]))}", flush=True)


def _batches(spark: SparkSession, source: _Source, options: argparse.Namespace) -> None:
    """Measure what a table is like after very many batches, maintained as ``--continuous`` maintains it."""
    rows = options.rows[0]
    source.begin(_CREATE.format(0), _FILL.format(0, 1, rows))
    for into in options.into:
        _replicated(spark, source, into, options)
    seconds = dict.fromkeys(options.into, 0.0)
    for done in range(0, options.many, _MAINTAINED):
        together = min(_MAINTAINED, options.many - done)
        source.run(*[_CHANGE.format(0, rows, options.changes)] * together)
        for into in options.into:
            work = partial(
                replicate, spark, source.log, source.place / into, into, write_mode=options.write_mode, grace=0.0
            )
            kept = Retention(age=0.0, count=1, grace=0.0)
            spent, _ = measured(partial(work, batch_transactions=1, maintains=True, retention=kept))
            seconds[into] += spent.seconds
    for into in options.into:
        there = read_current(spark, source.place / into, "public.t0")
        fresh = source.place / f"{into}-fresh"
        _write(spark, there, into, fresh)
        held, fresh_held = _held(source.place / into), _held(fresh)
        scanned = there, _read(spark, into, fresh)
        turns = [[measured(partial(_scan, rows))[0].seconds for rows in scanned] for _ in range(_SCANS)]
        scans = map(statistics.median, zip(*turns[1:], strict=True))  # the first turn warms up
        now, new = (f"{each}, scan {scan:.2f} s" for each, scan in zip((held, fresh_held), scans, strict=True))
        print(f"{into}: {options.many:,} batches in {seconds[into]:,.0f} s: {now}; written again: {new}", flush=True)


_CASES: Final[Mapping[str, Callable[[SparkSession, _Source, argparse.Namespace], None]]] = {
    "changes": _changes,
    "tables": _tables,
    "batches": _batches,
}


def _replicated(
    spark: SparkSession, source: _Source, into: str, options: argparse.Namespace, tables: Sequence[str] | None = None
) -> _Cost:
    warehouse = source.place / into
    before = _files(warehouse)
    work = partial(replicate, spark, source.log, warehouse, into, tables, write_mode=options.write_mode)
    spent, done = measured(work)
    written = sum(size for file, size in _files(warehouse).items() if file not in before)
    return _Cost(spent, written, done.seconds if done is not None else 0.0)


def _own_write(spark: SparkSession, source: _Source, into: str, table: str) -> _Cost:
    """Write the rows of a table into a new one of the same format by Spark's own writer, from Parquet."""
    plain, place = source.place / "plain" / into / table, source.place / "own" / into / table
    read_current(spark, source.place / into, table).write.parquet(str(plain))
    spent, _ = measured(partial(_write, spark, spark.read.parquet(str(plain)), into, place))
    return _Cost(spent, sum(_files(place).values()))


def _own_append(spark: SparkSession, source: _Source, into: str, table: str, after: int) -> _Cost:
    """Append the latest rows of a table to what ``_own_write`` wrote."""
    plain, place = source.place / "plain" / into / f"{table}-{after}", source.place / "own" / into / table
    read_current(spark, source.place / into, table).where(f"id > {after}").write.parquet(str(plain))
    before = _files(place)
    spent, _ = measured(partial(_write, spark, spark.read.parquet(str(plain)), into, place, "append"))
    return _Cost(spent, sum(size for file, size in _files(place).items() if file not in before))


def _write(spark: SparkSession, rows: DataFrame, into: str, place: Path, mode: str = "errorifexists") -> None:
    if into != "iceberg":
        rows.write.format(into).mode(mode).save(str(place))
        return
    table = _iceberg_name(spark, place)
    if mode == "append":
        rows.writeTo(table).append()
    else:
        rows.writeTo(table).using("iceberg").create()


def _read(spark: SparkSession, into: str, place: Path) -> DataFrame:
    return spark.table(_iceberg_name(spark, place)) if into == "iceberg" else spark.read.format(into).load(str(place))


def _iceberg_name(spark: SparkSession, place: Path) -> str:
    """Return the name of a table of a catalog of files whose directory is the path."""
    settings = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": str(place.parent)}
    catalog = f"own_{abs(hash(place.parent))}"
    for name, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{catalog}{name}", value)
    return f"{catalog}.`{place.name}`"


def _payload(spark: SparkSession, source: _Source, into: str, table: str, changes: int) -> int:
    """Return the bytes of a Parquet file of the latest ``changes`` rows of a table."""
    place = source.place / "payload" / into / table
    rows = read_current(spark, source.place / into, table).orderBy("_commit_lsn", ascending=False).limit(changes)
    rows.coalesce(1).write.parquet(str(place))
    return sum(size for file, size in _files(place).items() if file.endswith(".parquet"))


def _scan(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


def _held(place: Path) -> str:
    """Return what a table has: files of data, which a scan opens, all files, and their bytes."""
    sizes = {file: size for file, size in _files(place).items() if not Path(file).name.startswith(".")}
    data = [file for file in sizes if file.endswith(".parquet") and "_delta_log" not in file]
    return f"{len(data)} data files of {len(sizes)}, {sum(sizes.values()) / 1e6:.1f} MB"


def _files(place: Path) -> dict[str, int]:
    """Return the files below a directory, and their bytes; without those that Hadoop's checksums are in."""
    return {str(file): file.stat().st_size for file in place.rglob("*") if file.is_file() and file.suffix != ".crc"}


def _median(costs: Sequence[_Cost]) -> _Cost:
    """Return the median of each number."""
    spent = Spent(*map(statistics.median, zip(*(each.spent for each in costs), strict=True)))
    written, batch = (
        statistics.median(each) for each in zip(*((each.written, each.batch) for each in costs), strict=True)
    )
    return _Cost(spent, int(written), batch)


def _text(cost: _Cost) -> str:
    return f"{cost.spent.seconds:.2f} s, {cost.spent.cpu:.2f} s of CPU, {cost.written / 1e6:.2f} MB"
