"""The changes of a table as a dataset of Parquet, of whose files each is written by a task."""

import platform
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pgoutput_construct.changelog.planning import lost_ends
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark.dealing import deal
from pgoutput_construct.spark.metadata import USUAL, Prefix
from pgoutput_construct.spark.opened import Opened
from pgoutput_construct.spark.rows_file import RowsFile, codec_of
from pgoutput_construct.spark.schemas import changes_schema
from pgoutput_construct.spark.source.pieces import Range, TableRows
from pgoutput_construct.spark.source.planning import table_pieces
from pgoutput_construct.spark.source.reading import read_table_rows
from pgoutput_construct.spark.tables import Table

__all__ = ["write_changes"]

_RESULT: Final = pa.schema([("file", pa.string()), ("op", pa.string()), ("rows", pa.int64())])


def write_changes(
    spark: SparkSession, opened: Opened, table: Table, path: Path, prefix: Prefix = USUAL
) -> dict[str, int]:
    """Write all changes of a table into a directory that is not there yet; return how many there are of each ``_op``.

    What is there then is as Spark's own writer makes it: a file a task, and ``_SUCCESS`` when all are complete. Added
    columns begin with ``prefix``. Tasks must find the directory under the same path. Raises ChangeLogError where one
    does not, and as the read does; then there is no directory.
    """
    own = prefix.table(table)
    schema = changes_schema(own.columns)
    wanted = Range(-1, opened.as_of, lost=tuple(lost_ends(opened.index)))
    tasks = table_pieces(opened, own, wanted, own.columns, schema, prefix=prefix)
    path.mkdir(parents=True)
    try:
        with tempfile.TemporaryDirectory(prefix="_temporary-", dir=path) as directory:  # Spark sees no such names
            writer = _Writer(directory, prefix.schema(schema), codec_of(spark), prefix.ours("_op"))
            return _moved(_written(spark, writer, tasks), Path(directory), path)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise


def _written(spark: SparkSession, writer: "_Writer", tasks: list[TableRows]) -> list[tuple[str, str, int]]:
    if not tasks:
        return [(writer.write([]), "", 0)]
    return [(row["file"], row["op"], row["rows"]) for row in deal(spark, tasks, writer.done, _RESULT)]


def _moved(written: list[tuple[str, str, int]], directory: Path, path: Path) -> dict[str, int]:
    """Let those files be seen that count: a task that was done twice, or given up, may have left another one."""
    for number, file in enumerate(dict.fromkeys(file for file, *_ in written)):
        (directory / file).rename(path / f"part-{number:05d}-{file}")
    (path / "_SUCCESS").touch()
    counts = Counter[str]()
    for _, op, rows in written:
        counts[op] += rows
    return {op: rows for op, rows in counts.items() if rows}


@dataclass(frozen=True)
class _Writer:
    """Writes files of one table."""

    place: str
    schema: pa.Schema
    codec: str
    op: str
    """What the column with the kind of a change is called."""

    def write(self, batches: Iterable[pa.RecordBatch]) -> str:
        """Write a file; return its name."""
        name, place = f"{uuid4().hex}.{self.codec}.parquet", Path(self.place)
        if not place.is_dir():
            raise ChangeLogError(
                f"{place.parent}: not found on the host {platform.node()}, where a task of Spark writes into it: give "
                "a directory on a file system that all executors share under this path"
            )
        with RowsFile(place / name, self.schema, self.codec) as file:
            for batch in batches:
                file.write(batch)
        return name

    def done(self, task: TableRows) -> Iterator[dict[str, Any]]:
        """Write the file of a task; yields how many rows of each ``_op`` it has."""
        counts = Counter[str]()
        file = self.write(_counted(read_table_rows(task), counts, self.op))
        for op, count in counts.items() or [("", 0)]:
            yield {"file": file, "op": op, "rows": count}


def _counted(batches: Iterable[pa.RecordBatch], counts: Counter[str], op: str) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for found in pc.value_counts(batch[op]).to_pylist():
            counts[found["values"]] += found["counts"]
        yield batch
