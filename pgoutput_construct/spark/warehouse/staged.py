"""A task of a batch: a part of the log is read once, and the changes of each table in it become a file."""

import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._store.store import LogStore, MissingFileError
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark.change_frames import Seen
from pgoutput_construct.spark.execution import reason_of
from pgoutput_construct.spark.rows_file import RowsFile
from pgoutput_construct.spark.source.pieces import Piece, Used
from pgoutput_construct.spark.source.reading import Part, parts_of_piece, rows_of_part
from pgoutput_construct.stream.rows import OPERATIONS
from pgoutput_construct.wire.messages import Truncate, Update

__all__ = ["TOLD", "StagedTable", "StagingTask", "joined", "put", "see", "stage"]

TOLD: Final = pa.schema(
    {
        "table": pa.int32(),
        "file": pa.string(),
        "error": pa.string(),
        "changes": pa.int64(),
        "truncates": pa.bool_(),
        "unsent": pa.list_(pa.string()),
        "moved": pa.bool_(),
        "chained": pa.bool_(),
        "untyped": pa.bool_(),
    }
)
"""What a task tells of each table that it found: the file of its changes, what is in them, or why there is none."""


@dataclass(frozen=True)
class StagedTable:
    """A table of a task."""

    number: int
    """Which one of the batch's it is."""
    columns: pa.Schema
    """Its columns."""
    schema: pa.Schema
    """Those of its changes."""
    used: Mapping[int, Used]
    """What its rows are described by, by the seqs of the Relations."""


@dataclass(frozen=True)
class StagingTask:
    """A part of the log, and the tables that are wanted of it."""

    number: int
    piece: Piece
    oids: tuple[int, ...]
    """The OIDs of the tables."""
    tables: tuple[StagedTable, ...]
    store: LogStore
    """Where the files go,"""
    folder: str
    """and the folder there."""


def joined(one: Seen, other: Seen) -> Seen:
    """Return what is in both."""
    flags = (a or b for a, b in zip(one[3:], other[3:], strict=True))
    return Seen(one.changes + other.changes, one.truncates or other.truncates, one.unsent | other.unsent, *flags)


def stage(task: StagingTask) -> Iterator[dict[str, Any]]:
    """Do a task; yields TOLD, a row a table. Raises ChangeLogError for damage."""
    files = {table.number: _File(table) for table in task.tables}
    for part in parts_of_piece(task.piece, task.oids):
        for file in files.values():
            file.take(part)
    for number, file in files.items():
        if file.seen or file.error:
            name = f"{task.folder}/{number}-{task.number}.parquet"
            if file.seen:
                put(task.store, name, file.content())
            seen = reduce(joined, file.seen, Seen(0, False, frozenset(), False, False, False))
            yield {"table": number, "file": name, "error": file.error, **seen._asdict(), "unsent": [*seen.unsent]}


def put(store: LogStore, name: str, content: pa.Buffer) -> None:
    """Write a file into a warehouse; raise ChangeLogError where that is not on the machine of the task."""
    try:
        store.write(name, content)
    except MissingFileError as error:
        raise ChangeLogError(
            f"{store}: not found on the host {platform.node()}, where a task of Spark writes into it: give a warehouse "
            "on a file system that all executors share under this path, or at an address such as s3://bucket/folder"
        ) from error


class _File:
    """The changes of one table that a task finds."""

    def __init__(self, table: StagedTable) -> None:
        self._table = table
        self._sink = pa.BufferOutputStream()
        self._writer: RowsFile | None = None
        self.seen: list[Seen] = []
        self.error: str | None = None

    def take(self, part: Part) -> None:
        """Add what a part of the log has of the table; rows that cannot be decoded are the error of the table."""
        if self.error is not None or not any(each.seq in self._table.used for each, _ in part.described):
            return
        try:
            for batch in rows_of_part(part, self._table.columns, self._table.schema, self._table.used):
                self._write(batch)
        except Exception as error:  # whatever it is, the other tables of the task are read
            self.error = reason_of(error)

    def content(self) -> pa.Buffer:
        """Return the file."""
        if self._writer is not None:
            self._writer.close()
        return self._sink.getvalue()

    def _write(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            self._writer = RowsFile(self._sink, self._table.schema, group_bytes=0)  # many at once
        self._writer.write(batch)
        self.seen.append(see(batch))


def see(batch: pa.RecordBatch) -> Seen:
    """Return what is in changes."""
    op, unchanged = batch.column("_op"), batch.column("_unchanged")
    # Of a table without columns there is no ``_before``.
    old = batch.column("_before") if "_before" in batch.schema.names else pa.nulls(len(batch))
    is_moved = pc.and_(pc.equal(op, OPERATIONS[Update]), old.is_valid())
    left_out = pc.fill_null(pc.greater(pc.list_value_length(unchanged), 0), False)
    truncates, moved, chained = (
        pc.any(flags, min_count=0).as_py()
        for flags in (pc.equal(op, OPERATIONS[Truncate]), is_moved, pc.and_(is_moved, left_out))
    )
    unsent = frozenset(pc.unique(unchanged.flatten()).to_pylist())
    return Seen(batch.num_rows, truncates, unsent, moved, chained, len(batch.column("_untyped").keys) > 0)
