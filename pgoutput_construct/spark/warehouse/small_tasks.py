"""A task of a batch: some small tables, each read, brought up to date, and written as a file, one after the other."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from pgoutput_construct.changelog.store import LogStore
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark.arrow_state import Rule, advanced_rows, history_schema, recorded_rows, rows_schema
from pgoutput_construct.spark.rows_file import RowsFile
from pgoutput_construct.spark.warehouse.staged import put

__all__ = ["DONE", "SMALL", "SmallTable", "SmallTask", "advance_small"]

SMALL: Final = 1 << 22
"""Bytes of the files of a table that is small."""
_ROWS: Final = 1 << 18
"""Rows that it has at most, and"""
_MEMORY: Final = 1 << 28
"""bytes in memory."""
_FILE: Final = "part-00000.parquet"
_LEGACY: Final = b"org.apache.spark.legacy"
"""How Spark begins the names under which a footer says that days of long ago are counted by another calendar."""

DONE: Final = pa.schema({"table": pa.int32(), "done": pa.bool_()})
"""What a task tells of each of its tables."""


@dataclass(frozen=True)
class SmallTable:
    """A table of a task."""

    number: int
    """Which one of the batch's it is."""
    path: str
    """The directory of its new version."""
    before: str | None
    """That of the one before, None for no row."""
    changes: tuple[str, ...]
    """The files of its changes."""
    changed: pa.Schema
    """The columns of these."""
    rule: Rule
    named: tuple[str, ...]
    """What the columns of its rows are called in the files."""
    is_history: bool = False
    """Whether it is the history of a table."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows."""
        return (history_schema if self.is_history else rows_schema)(self.rule.columns)


@dataclass(frozen=True)
class SmallTask:
    """Tables, and where their files are."""

    store: LogStore
    codec: str
    """How pages are compressed, by Arrow's name."""
    tables: tuple[SmallTable, ...]


def advance_small(task: SmallTask) -> Iterator[dict[str, Any]]:
    """Do a task; yields DONE: a table that is not done has no file, and is for others to bring up to date."""
    for table in task.tables:
        try:
            done = _advance(task, table)
        except (PgoutputError, pa.ArrowException, OSError):
            done = False  # who then does it says what is wrong
        yield {"table": table.number, "done": done}


def _advance(task: SmallTask, table: SmallTable) -> bool:
    store, schema = task.store, table.schema
    changes = _read(store, dict.fromkeys(table.changes), table.changed)
    there = {} if table.before is None else store.files(table.before)
    files = {f"{table.before}/{name}": size for name, size in there.items() if _is_data(name)}
    before = _read(store, files, schema.empty_table().rename_columns([*table.named]).schema)
    if changes is None or before is None or (table.before is not None and not files):
        return False  # also where a version is lost: a table without rows has a file, too
    stored = None if table.before is None else before.rename_columns(schema.names)
    rows = (recorded_rows if table.is_history else advanced_rows)(stored, changes, table.rule)
    if rows is None:
        return False
    for name in store.files(table.path).keys() - {_FILE}:
        store.delete(f"{table.path}/{name}")
    put(store, f"{table.path}/{_FILE}", _content(rows.rename_columns([*table.named]), task.codec))
    return True


def _is_data(name: str) -> bool:
    return not name.startswith("_")


def _read(store: LogStore, files: Mapping[str, int | None], schema: pa.Schema) -> pa.Table | None:
    """Return rows; None where they are more than a task should hold, or are written as no Spark of today does."""
    parts, rows = [schema.empty_table()], 0
    if sum(size or 0 for size in files.values()) > SMALL:
        return None
    for name in files:
        with store.explained("cannot be read", name), store.open(name) as file:
            if file.size() > SMALL:
                return None
            parquet = pq.ParquetFile(pa.BufferReader(file.read_buffer()), coerce_int96_timestamp_unit="us")
        rows += parquet.metadata.num_rows
        if rows > _ROWS or any(key.startswith(_LEGACY) for key in parquet.metadata.metadata or ()):
            return None
        parts.append(parquet.read(schema.names).select(schema.names).cast(schema))
    found = pa.concat_tables(parts)
    return found if found.nbytes <= _MEMORY else None


def _content(rows: pa.Table, codec: str) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with RowsFile(sink, rows.schema, codec) as file:
        for batch in rows.to_batches():
            file.write(batch)
    return sink.getvalue()
