"""The changes of a batch: the log is read once for all tables, and typed changes are stored as files, by table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pgoutput_construct.changelog._index.planning import lost_ends
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.spark.change_frames import Seen, changes_schema
from pgoutput_construct.spark.execution import deal, plain_errors, reason_of
from pgoutput_construct.spark.log_view import OpenLog
from pgoutput_construct.spark.replicated_tables import Table, plain_path
from pgoutput_construct.spark.source.pieces import Range, Used
from pgoutput_construct.spark.source.planning import chosen, described_pieces, used_by
from pgoutput_construct.spark.warehouse.notes import STAGED, Warehouse
from pgoutput_construct.spark.warehouse.sessions import is_alive
from pgoutput_construct.spark.warehouse.staged import TOLD, StagedTable, StagingTask, joined, stage

__all__ = ["Changes", "Staged", "Wanted", "staging", "staging_tasks"]

_NOTHING: Final = Seen(0, False, frozenset(), False, False, False)


class Wanted(NamedTuple):
    """The changes of a table that are needed."""

    table: str
    """Its name."""
    after: int
    """They ended after this seq."""


class Changes(NamedTuple):
    """Changes of a table, and what is in them."""

    rows: DataFrame
    seen: Seen


@dataclass(frozen=True)
class _Files:
    schema: pa.Schema
    names: tuple[str, ...] = ()
    seen: Seen = _NOTHING
    errors: tuple[str, ...] = ()


class Staged:
    """Changes of tables, as files."""

    def __init__(self, path: str, files: Mapping[Wanted, _Files]) -> None:
        self._path = path
        self._files = files

    def seen(self, wanted: Wanted) -> Seen:
        """Return what is in changes."""
        return self._files[wanted].seen

    def files(self, wanted: Wanted) -> tuple[str, ...]:
        """Return the names of the files of changes, in the warehouse."""
        return self._files[wanted].names

    def errors(self, wanted: Wanted) -> tuple[str, ...]:
        """Return why changes could not be decoded."""
        return self._files[wanted].errors

    def changes(self, spark: SparkSession, wanted: Wanted) -> Changes:
        """Return changes as ``OpenLog.changes`` does; raise ChangeLogError where they could not be decoded."""
        found = self._files[wanted]
        for error in found.errors:
            raise ChangeLogError(error)
        schema = from_arrow_schema(found.schema, prefer_timestamp_ntz=True)
        if not found.names:
            return Changes(spark.createDataFrame([], schema), found.seen)
        paths = (plain_path(f"{self._path}/{name}") for name in found.names)
        return Changes(spark.read.schema(schema).parquet(*paths), found.seen)


@contextmanager
def staging(log: OpenLog, warehouse: Warehouse, wanted: Iterable[Wanted]) -> Iterator[Staged]:
    """Yield changes of tables while they lie in a warehouse, which executors must reach; then they are removed.

    Raises ChangeLogError where the log is damaged.
    """
    store = warehouse.store
    if isinstance(store, LocalStore):
        store = LocalStore(store.directory, durable=False, private=store.private)
    store.remove(STAGED)
    try:
        yield Staged(warehouse.path, _staged(log, store, list(dict.fromkeys(wanted))))
    finally:
        store.remove(STAGED)


def _staged(log: OpenLog, store: LogStore, wanted: Sequence[Wanted]) -> dict[Wanted, _Files]:
    tables = [log.table(each.table) for each in wanted]
    files = [_Files(changes_schema(table.columns)) for table in tables]
    tasks = list(staging_tasks(log, store, wanted, tables))
    try:
        told = _told(log.spark, tasks)
    except PgoutputError:
        raise
    except Exception:
        told = list(_told_one_by_one(log, store, wanted, tables))
    for row in told:
        files[row["table"]] = _with(files[row["table"]], row)
    return dict(zip(wanted, files, strict=True))


def _told(spark: SparkSession, tasks: Sequence[StagingTask]) -> list[Row]:
    with plain_errors():
        return deal(spark, tasks, stage, TOLD)


def _told_one_by_one(log: OpenLog, store: LogStore, wanted: Sequence[Wanted], tables: Sequence[Table]) -> Iterator[Row]:
    """Stage tables one after the other when an executor fails with all of them: that one's fault is not the others'."""
    for place, (each, table) in enumerate(zip(wanted, tables, strict=True)):
        tasks = [
            replace(task, tables=tuple(replace(mine, number=place) for mine in task.tables))
            for task in staging_tasks(log, store, [each], [table])
        ]
        try:
            yield from _told(log.spark, tasks)
        except PgoutputError:
            raise
        except Exception as error:
            if not is_alive(log.spark):
                raise
            yield Row(table=place, error=reason_of(error))


def staging_tasks(
    log: OpenLog, store: LogStore, wanted: Sequence[Wanted], tables: Sequence[Table]
) -> Iterator[StagingTask]:
    """Yield tasks, each for the tables of which the same changes are wanted."""
    numbers = count()
    for after in sorted({each.after for each in wanted}):
        mine = {place: tables[place] for place, each in enumerate(wanted) if each.after == after}
        used = {place: used_by(log.opened, table) for place, table in mine.items()}
        oids = tuple(sorted({table.relation_oid for table in mine.values()}))
        range_ = Range(after, log.opened.as_of, lost=tuple(lost_ends(log.opened.index)))
        for piece, described in described_pieces(log.opened, range_, oids):
            found = {place: chosen(used[place], described) for place in mine}
            of_piece = tuple(_table(place, mine[place], known) for place, known in found.items() if known)
            yield StagingTask(next(numbers), piece, oids, of_piece, store, STAGED)


def _table(number: int, table: Table, used: Mapping[int, Used]) -> StagedTable:
    return StagedTable(number, table.columns, changes_schema(table.columns), used)


def _with(files: _Files, told: Row) -> _Files:
    if told["error"] is not None:
        return _Files(files.schema, files.names, files.seen, (*files.errors, told["error"]))
    seen = Seen(**{name: told[name] for name in Seen._fields} | {"unsent": frozenset(told["unsent"])})
    return _Files(files.schema, (*files.names, told["file"]), joined(files.seen, seen), files.errors)
