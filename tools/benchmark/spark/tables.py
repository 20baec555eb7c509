"""python -m tools.benchmark tables: the time of a batch with many small tables, and with one table."""

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pgoutput_construct.demo.server import EmbeddedServer
from pgoutput_construct.postgres import capture, create_slot, current_lsn
from pgoutput_construct.spark import replicate, spark_session
from pgoutput_construct.spark._replicate import Batch
from pgoutput_construct.spark.formats import FORMATS
from tools.benchmark.spark.runs import Spent, measured

if TYPE_CHECKING:
    import psycopg

__all__ = ["main"]

_SLOT: Final = "tables"
_CREATE: Final = "CREATE TABLE t{0} (id bigint PRIMARY KEY, note text, amount numeric(12, 2), at timestamptz)"
_INSERT: Final = "INSERT INTO t{0} SELECT i, 'new ' || i, i, now() FROM generate_series({1} + 1, {1} + {2}) i"
_UPDATE: Final = "UPDATE t{0} SET note = 'changed' WHERE id % 10 = 0"
_DELETE: Final = "DELETE FROM t{0} WHERE id % 10 = {1}"


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="tables-") as place:
        settings = {"spark.sql.shuffle.partitions": str(options.cores)}
        with spark_session(f"local[{options.cores}]", settings, into=[options.into], warehouse=place) as spark:
            one = _batches(spark, Path(place, "one"), 1, options)  # the first warms up
            many = _batches(spark, Path(place, "many"), options.tables, options)
    ratio, cpu = many.seconds / one.seconds, many.cpu / one.cpu
    print(f"{options.tables} tables / one table: {ratio:.1f}, of CPU {cpu:.1f}", flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.benchmark tables", description=__doc__)
    parser.add_argument("--tables", type=int, default=500, metavar="N", help="in one log (default 500)")
    parser.add_argument("--rows", type=int, default=100, metavar="N", help="that come to each in a batch (default 100)")
    parser.add_argument("--into", choices=sorted(FORMATS), default="parquet", help="format (default parquet)")
    parser.add_argument("--batches", type=int, default=4, metavar="N", help="batches after the first (default 4)")
    parser.add_argument("--cores", type=int, default=2, metavar="N", help="threads of Spark (default 2)")
    return parser


def _batches(spark: Any, place: Path, tables: int, options: argparse.Namespace) -> Spent:
    """Print what each batch takes; return the median of those after the first."""
    found = []
    with EmbeddedServer(18) as server:
        with server.connect() as connection:
            _run(connection, _CREATE, tables)
            connection.execute("CREATE PUBLICATION tables FOR ALL TABLES")
            create_slot(connection, _SLOT)
        for number in range(options.batches + 1):
            with server.connect() as connection:
                _change(connection, tables, number, options.rows)
                end = current_lsn(connection)
            capture(server.dsn, _SLOT, ["tables"], place / "log", until_lsn=end, snapshot=True, new_log=True)
            spent, batch = measured(lambda: _replicated(spark, place, options.into))
            assert batch is not None and len(batch.tables) == tables
            print(f"  {tables} tables, batch {number + 1}: {spent.seconds:.2f} s, {spent.cpu:.2f} s of CPU", flush=True)
            found.append(spent)
    return Spent(*map(statistics.median, zip(*found[1:], strict=True)))


def _replicated(spark: Any, place: Path, into: str) -> Batch | None:
    return replicate(spark, place / "log", place / "warehouse", into)


def _change(connection: "psycopg.Connection[Any]", tables: int, number: int, rows: int) -> None:
    if number:
        _run(connection, _UPDATE, tables)
        _run(connection, _DELETE, tables, number)
    _run(connection, _INSERT, tables, number * rows, rows)


def _run(connection: "psycopg.Connection[Any]", statement: str, tables: int, *values: int) -> None:
    for table in range(tables):
        connection.execute(statement.format(table, *values).encode())
