"""Tables as plain Parquet files, in directories that a note names: a base, and what changes have added and removed.

A table is the rows of its *parts*, without those whose positions are listed as deleted. A part is a directory ``v``
and the number of the batch that wrote it: the base, which has the whole table of that time, and the parts of later
changes, each with the rows that came or changed in it (``v7-rows-0123abcd`` if Spark did not write it). A changed row
stays where it is, and its position, the file and the number of the row in it, is written into a directory of deleted
positions next to the part with its present values (``v7-deleted``, or ``v7-rows-0123abcd-deleted``). So a batch
writes what has changed, however large the table is.

Readers have more to do for each part and each position. So parts are put together when they add up
(``first_merged``): a batch that does this writes the rows of some latest parts together with its own. It is the base,
too, when changes have replaced a third of it, and each time if the table is small. Maintenance writes the base again
sooner (``compacted``), since it is not what a batch waits for.

The note is the table: readers see the parts that it names, which do not change any more; what it no longer names is
retained for a while.
"""

import functools
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._notes import Dataset, Warehouse
from pgoutput_construct.lake._parquet_parts import Parts
from pgoutput_construct.lake._versions import Version
from pgoutput_construct.spark._log_view.added_columns import escaped
from pgoutput_construct.spark._log_view.change_columns import column
from pgoutput_construct.spark._log_view.replicated_tables import plain_path
from pgoutput_construct.spark._parquet_file import codec_of
from pgoutput_construct.spark._table_formats.dataset_columns import ROW_KEY
from pgoutput_construct.spark._table_formats.existing_tables import (
    ExistingTable,
    entries_of,
    existing_files,
    remove_replaced,
)
from pgoutput_construct.spark._table_formats.merge_statement import (
    MergeExpressions,
    key_conditions,
    merge_expressions,
    target_columns,
    with_moved_values,
)
from pgoutput_construct.spark._table_formats.reserved_names import PARQUET
from pgoutput_construct.spark._table_formats.sink import (
    DEFAULT_OPTIONS,
    DeletesFile,
    FilesUse,
    NetChanges,
    NewFiles,
    PresentFile,
    Retention,
    Sink,
    WriteMode,
    WriteOptions,
)

SMALL: Final = 1 << 22
"""The most bytes of the files of a small table."""
_PARTS: Final = 16
"""The most parts of changes."""
_SHARE: Final = 3
"""The base is written again when changes that replaced rows have this part of its bytes, or deleted positions of its
rows."""
_SHARE_OF_MAINTENANCE: Final = 10
"""Maintenance writes the base again when deleted positions have this part of its rows: what it writes is in proportion
to them."""
_DELETED: Final = "-deleted"
"""The suffix of the directory of deleted positions."""
_DIRECTORIES: Final = {"changes", "deleted", "replaced"}
"""What a note has by directory, besides the path of the base."""
_ROWS: Final = "-rows-"
"""What follows the number of the batch in the name of a part that tasks have written, not Spark, before eight digits.
One of them may still write when the batch has given it up: what its changes become is in another directory."""
_WHOLE: Final = "-whole-"
"""What follows the number of the last batch in the name of a base that maintenance has written, before eight digits:
two processes that maintain a table in an object store, where no lock excludes one, do not write into one directory.
"""
_PART: Final = re.compile(rf"v(\d+)((?:(?:{_ROWS}|{_WHOLE})[0-9a-f]{{8}})?(?:{_DELETED})?)")
_POSITIONS: Final = T.StructType().add("part", "string").add("file", "string").add("row", "long")
"""A position: the names of a part and of a file in it, which no other file has, and the number of a row, from 0 on."""
_FEW: Final = 1_000_000
"""The most changes of which each task of a lookup gets the keys of all."""
_NUMBERED: Final = 32
"""The most files whose rows are numbered as one sequence: the name of its file is compared for each row."""
_ROWS_OF_FILE: Final = 1 << 40
"""More than a file has."""


class ParquetSink(Sink):
    """The note is the table: readers see the parts that it names; replaced ones are retained for a while."""

    format = "parquet"
    reserved = PARQUET
    few_bytes = history_bytes = SMALL
    key_bytes = 1 << 26
    alters = False  # files have columns by name: one that is dropped and added again would have its former values

    needs_spark = "its files are to be put together"

    def __init__(self, warehouse: Warehouse, options: WriteOptions = DEFAULT_OPTIONS) -> None:
        """Take the warehouse, and how tables are written."""
        super().__init__(warehouse, options)
        self._mode, self.overwrites_few = options.mode, options.mode is not WriteMode.MERGE_ON_READ
        self._codec = ""

    def version(self, spark: SparkSession, dataset: Dataset) -> Version | None:
        """Return the version in the note, which is written last."""
        return dataset.version

    def read(self, spark: SparkSession, dataset: Dataset) -> DataFrame:
        """Return the rows of the parts that the note names."""
        parts = Parts.of(dataset)
        if not parts.deleted:
            return self._rows(spark, dataset, parts.paths)
        names = _position_names(dataset)
        rows = self._rows_with_positions(spark, dataset, parts.paths)
        positions = self._positions(spark, parts.deleted).toDF(*names)
        found = sorted(rows.inputFiles(), key=lambda path: f"/{parts.path}/" not in path)  # most rows are in the base
        files = [path.rpartition("/")[2] for path in found]
        if not 0 < len(files) <= _NUMBERED:
            return _without(rows, positions, parts.deleted_positions).drop(*names)
        # A number alone is looked up in less time than a name and a number.
        rows, positions = (_with_row_numbers(each, names, files) for each in (rows, positions))
        deleted = _broadcast_if_few(positions.select(column(names[-1])), parts.deleted_positions)
        return rows.join(deleted, names[-1], "left_anti").drop(*names)

    def _rows(self, spark: SparkSession, dataset: Dataset, paths: Collection[str]) -> DataFrame:
        schema = StructType.fromJson(dataset.details["schema"])
        return spark.read.schema(schema).parquet(*(self._location(path) for path in paths))

    def _rows_with_positions(self, spark: SparkSession, dataset: Dataset, paths: Collection[str]) -> DataFrame:
        """Return the rows of some parts, also deleted ones, with their positions: the path of the file for the part."""
        rows = self._rows(spark, dataset, paths)
        metadata = rows.metadataColumn("_metadata")
        fields = zip(("file_path", "file_name", "row_index"), _position_names(dataset), strict=True)
        return rows.select("*", *(metadata.getField(field).alias(name) for field, name in fields))

    def _live_rows(self, spark: SparkSession, dataset: Dataset, paths: Collection[str]) -> DataFrame:
        """Return the rows of some parts that were not deleted, as ``_rows_with_positions`` does."""
        return self._without_deleted(spark, dataset, self._rows_with_positions(spark, dataset, paths))

    def _without_deleted(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> DataFrame:
        parts = Parts.of(dataset)
        if not parts.deleted:
            return rows
        positions = self._positions(spark, parts.deleted).toDF(*_position_names(dataset))
        return _without(rows, positions, parts.deleted_positions)

    def _positions(self, spark: SparkSession, paths: Collection[str]) -> DataFrame:
        return spark.read.schema(_POSITIONS).parquet(*(self._location(path) for path in paths))

    def _location(self, path: str) -> str:
        return plain_path(f"{self.warehouse.path}/{path}")

    def replace(self, spark: SparkSession, dataset: Dataset, rows: DataFrame, before: Dataset | None) -> Dataset:
        """Write a base next to the present parts."""
        adopted = self.check_location(spark, dataset, rows.schema) if before is None else None
        rows.write.mode("overwrite").parquet(f"{self.warehouse.path}/{self.path(dataset)}")
        if adopted is not None:
            remove_replaced(self.warehouse.store, dataset.directory, adopted)
        return self.noted(dataset, rows.schema.jsonValue(), Parts(self.path(dataset)), before)

    def new_files(
        self, spark: SparkSession, dataset: Dataset, schema: pa.Schema, before: Dataset | None, use: FilesUse
    ) -> NewFiles | None:
        """Return the files of a base, or of a part that is not to be put together with others."""
        self._codec = codec = self._codec or codec_of(spark)  # of each session of ours the same
        if use is FilesUse.REPLACE:
            is_free = before is not None or self.existing(spark, dataset) is None
            return _PartFiles(self, dataset, schema, codec, None, before) if is_free else None
        assert before is not None
        if use is FilesUse.OVERWRITE and (small := self._small_files(before, schema)):
            files = _PartFiles(self, dataset, schema, codec, None, before)
            files.present = small
            return files
        kinds = from_arrow_schema(schema, prefer_timestamp_ntz=True)
        parts, stored = Parts.of(dataset), StructType.fromJson(dataset.details["schema"])
        parts = replace(parts, rows=self.row_count(parts.path)) if parts.rows is None else parts
        has_same = [(each.name, each.dataType) for each in stored] == [(each.name, each.dataType) for each in kinds]
        is_merged = not has_same or self._first_merged(parts, use is FilesUse.OVERWRITE) < len(parts.paths)
        if is_merged:
            return None
        files = _PartFiles(self, dataset, schema, codec, parts, dataset)
        if use is FilesUse.OVERWRITE:
            present, deleted = self._files(parts.paths), self._files(parts.deleted)
            if {each.name.rpartition("/")[0] for each in (*present, *deleted)} != parts.directories:
                return None  # files are lost, of which Spark's error says more
            files.add_to(present, [each.name for each in deleted])
        return files

    def _small_files(self, dataset: Dataset, schema: pa.Schema) -> list[PresentFile]:
        """Return the files of a small table that has a base alone, and these columns; none for any other."""
        parts, stored = Parts.of(dataset), {field["name"] for field in dataset.details["schema"]["fields"]}
        found = [] if parts.changes or parts.deleted or stored != {*schema.names} else self._files([parts.path])
        return found if sum(each.size for each in found) <= SMALL else []

    def _files(self, paths: Iterable[str]) -> list[PresentFile]:
        """Return the files of directories; positions refer to each by its name, and that of its part."""
        return [
            PresentFile(f"{path}/{name}", size, f"{path.rpartition('/')[2]}/{name}")
            for path in paths
            for name, size in self.warehouse.store.files(path).items()
            if not name.startswith("_")
        ]

    def existing(self, spark: SparkSession, dataset: Dataset) -> ExistingTable | None:
        """Return what is in the directory of a dataset and is not called as parts are."""
        entries = entries_of(self.warehouse.store, dataset.directory)
        others = [name for name in entries if not _PART.fullmatch(name)]
        return existing_files(spark, self.warehouse, dataset.directory, others, self.adopts) if others else None

    def path(self, dataset: Dataset) -> str:
        """Return the directory of the part that a dataset will have."""
        return f"{dataset.directory}/v{dataset.version.batch}"

    def noted(self, dataset: Dataset, schema: Any, parts: Parts, before: Dataset | None, grace: float = 0.0) -> Dataset:
        """Return a dataset with its parts; remove former ones whose grace is over.

        Args:
            dataset: The dataset.
            schema: The columns, as JSON.
            parts: The parts.
            before: The dataset that is replaced, None for none.
            grace: Seconds for which parts are retained in any case.
        """
        details = {
            "path": parts.path,
            "rows": parts.rows,
            "changes": dict(parts.changes),
            "deleted": dict(parts.deleted),
        }
        return replace(dataset, details=details | {"schema": schema, "replaced": self._replaced(before, parts, grace)})

    def _replaced(self, before: Dataset | None, parts: Parts, grace: float) -> dict[str, float]:
        """Return the retained directories that are no part any more, and since when (seconds since 1970)."""
        if before is None:
            return {}
        now, found = time.time(), dict[str, float]()
        for path, replaced_at in before.details["replaced"].items():
            if path in parts.directories:
                continue
            if replaced_at + max(self.grace, grace) <= now:
                self.warehouse.store.remove(path)
            else:
                found[path] = replaced_at
        return found | dict.fromkeys(Parts.of(before).directories - parts.directories, now)

    def merge(self, spark: SparkSession, dataset: Dataset, changes: NetChanges) -> Dataset:
        """Write the rows that came or changed, and the positions of those that changed or are gone."""
        rows, naming, shape = changes.rows.persist(), changes.naming, dataset.version.shape
        keys, current = (tuple(map(escaped, names)) for names in (shape.key_columns, shape.current))
        found, target = rows, target_columns(rows, naming)
        try:
            if changes.may_move_values:
                stored = naming.from_dataset(self.read(spark, dataset))
                found = with_moved_values(rows, stored, keys, current, changes.demand)
            own, merged = naming.unescape(found), merge_expressions(keys, target, changes, found is not rows)
            there = self._rows_with_positions(spark, dataset, Parts.of(dataset).paths).alias("t")
            for condition in key_conditions(keys, target, changes):
                there = there.where(condition)
            unsent = (name for name in target.names if name in changes.unsent)
            texts = [naming.added_name("_untyped")] if naming.holds("_untyped") else []
            needed = [*map(naming.reader_name, (*keys, *unsent)), *texts]
            wanted = _broadcast_if_few(own.select(*map(column, keys), "_untyped"), changes.most)
            matches = there.join(wanted.alias("s"), F.expr(merged.on)).select(
                *(column("t", name) for name in dict.fromkeys([*needed, *_position_names(dataset)]))
            )
            matches.persist()  # few: what is deleted is looked for among them alone
            try:
                live = self._without_deleted(spark, dataset, matches)
                new = _merged_rows(own, live, merged, _position_names(dataset)[-1])
                return self._write(spark, dataset, new, live, changes.most)
            finally:
                matches.unpersist()
        finally:
            rows.unpersist()

    def append(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> Dataset:
        """Write a part of new rows."""
        return self._write(spark, dataset, rows, None)

    def record(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> Dataset:
        """Write rows that are new or have ended, and the former positions of the latter; these keep dropped columns."""
        naming, positions = self.naming_of(dataset), _position_names(dataset)
        key = [naming.added_name(name) for name in ROW_KEY]
        ends = [naming.added_name(name) for name in ("_valid_to", "_ended_by")]
        there = self._live_rows(spark, dataset, Parts.of(dataset).paths).drop(*ends)
        most = rows.count()
        ended = _broadcast_if_few(rows.select(*map(column, (*key, *ends))), most)
        matches = there.join(ended, key).persist()
        try:
            come = rows.join(matches.select(*map(column, key)), key, "left_anti")
            new = matches.drop(*positions).unionByName(come, allowMissingColumns=True)
            return self._write(spark, dataset, new, matches, most)
        finally:
            matches.unpersist()

    def _write(
        self, spark: SparkSession, dataset: Dataset, new: DataFrame, matches: DataFrame | None, most: int = 0
    ) -> Dataset:
        """Write a part, together with the latest ones if they have added up.

        Args:
            spark: The session.
            dataset: The dataset as it will be, with the parts that it has.
            new: The rows that came or changed.
            matches: The positions of those that changed or are gone, None for none; with other columns, too.
            most: The number of these positions, or more.
        """
        parts, names = Parts.of(dataset), _position_names(dataset)
        parts = replace(parts, rows=self.row_count(parts.path)) if parts.rows is None else parts
        first = self._first_merged(parts, matches is not None)
        kept, merged = parts.paths[:first], parts.paths[first:]
        positions = None if matches is None else _as_positions(matches, names)
        columns = StructType.fromJson(dataset.details["schema"]).names
        if merged:
            live = self._live_rows(spark, dataset, merged)
            live = live if positions is None else _without(live, positions.toDF(*names), most)
            new = live.drop(*names).unionByName(new)
            if parts.deleted:
                earlier = self._positions(spark, parts.deleted)
                positions = earlier if positions is None else earlier.unionAll(positions)
        path = self.path(dataset)
        new.select(*map(column, columns)).write.mode("overwrite").parquet(f"{self.warehouse.path}/{path}")
        if not kept:
            return self.noted(dataset, dataset.details["schema"], Parts(path), dataset)
        changes = {each: parts.changes[each] for each in kept[1:]} | {path: self._size(path)}
        deleted = {} if merged else dict(parts.deleted)
        if positions is not None:
            of_kept = F.col("part").isin([each.rpartition("/")[2] for each in kept])
            positions = positions.where(of_kept) if merged else positions
            positions_path = f"{path}{_DELETED}"
            positions.coalesce(1).write.mode("overwrite").parquet(f"{self.warehouse.path}/{positions_path}")
            if count := self.row_count(positions_path):
                deleted[positions_path] = count
            else:
                self.warehouse.store.remove(positions_path)
        return self.noted(dataset, dataset.details["schema"], Parts(parts.path, parts.rows, changes, deleted), dataset)

    def maintain(self, spark: SparkSession, dataset: Dataset, retention: Retention) -> Iterator[tuple[str, int]]:
        """Remove parts that no note has, and former ones whose grace is over: else the next batch of the table does.

        Parts of later batches than that of the note are not touched: where a lock cannot exclude it, another process
        may be writing them.
        """
        grace, known, now = self.seconds_until_expired(retention), Parts.of(dataset).directories, time.time()
        retained = {path for path, replaced_at in dataset.details["replaced"].items() if replaced_at + grace > now}
        removed = 0
        for path, number, _ in self._parts_in(dataset.directory):
            if number <= dataset.version.batch and path not in known | retained:
                self.warehouse.store.remove(path)
                removed += 1
        yield "directories removed", removed

    def seconds_until_expired(self, retention: Retention) -> float:
        """Return the grace: there are no snapshots that are retained."""
        return max(self.grace, retention.grace)

    def compacted(
        self, spark: SparkSession, dataset: Dataset, retention: Retention, most: int | None
    ) -> Dataset | None:
        """Write the base again if a tenth of its rows was replaced."""
        parts = Parts.of(dataset)
        if not parts.deleted or (most is not None and self._size(parts.path) + sum(parts.changes.values()) > most):
            return None
        rows = self.row_count(parts.path) if parts.rows is None else parts.rows
        if parts.deleted_positions * _SHARE_OF_MAINTENANCE < rows:
            return None
        path = f"{self.path(dataset)}{_WHOLE}{uuid4().hex[:8]}"
        try:
            self.read(spark, dataset).write.mode("overwrite").parquet(f"{self.warehouse.path}/{path}")
        except BaseException:
            with suppress(PgoutputError):
                self.warehouse.store.remove(path)
            raise
        return self.noted(dataset, dataset.details["schema"], Parts(path), dataset, retention.grace)

    def _first_merged(self, parts: Parts, replaces_rows: bool) -> int:
        if self._mode is WriteMode.COPY_ON_WRITE and (replaces_rows or parts.deleted):
            return 0
        if len(parts.deleted) > 2 * _PARTS:
            return 0
        sizes = [self._size(parts.path), *parts.changes.values()]
        if self.overwrites_few and sum(sizes) <= SMALL:
            return 0
        return first_merged(sizes, parts.deleted_positions, parts.rows or 0)

    def row_count(self, path: str) -> int:
        """Return the number of rows of the files in a directory, as they say themselves."""
        found, store = 0, self.warehouse.store
        for name in store.files(path):
            if name.endswith(".parquet"):
                with store.explained("cannot be read", f"{path}/{name}"), store.open(f"{path}/{name}") as file:
                    found += pq.read_metadata(file).num_rows
        return found

    def _size(self, path: str) -> int:
        return sum(self.warehouse.store.files(path).values())

    def moved(self, dataset: Dataset, directory: str) -> Dataset:
        """Return a dataset with its parts in another directory."""

        def there(path: str) -> str:
            return directory + path.removeprefix(dataset.directory)

        details = dict(dataset.details) | {"path": there(dataset.details["path"])}
        for name in _DIRECTORIES & details.keys():
            details[name] = {there(path): value for path, value in details[name].items()}
        return replace(dataset, directory=directory, details=details)

    def recover(self, directory: str, noted: Dataset | None, batch: int) -> None:
        """Remove parts of later batches than that of the note: they are incomplete, or it would name them."""
        last = batch - 1 if noted is None else noted.version.batch
        known = Parts.of(noted).directories if noted is not None and noted.details else frozenset[str]()
        for path, number, _ in self._parts_in(directory):
            if number > last and path not in known:
                self.warehouse.store.remove(path)

    def remove_left_rows(self, dataset: Dataset) -> None:
        """Remove parts that tasks wrote, and that no note has: a batch has given them up, or was interrupted."""
        known = {*Parts.of(dataset).directories, *dataset.details["replaced"]} if dataset.details else set[str]()
        for path, _, suffix in self._parts_in(dataset.directory):
            if suffix.startswith(_ROWS) and path not in known:
                self.warehouse.store.remove(path)

    def _parts_in(self, directory: str) -> Iterator[tuple[str, int, str]]:
        """Yield the directories of parts in that of a dataset, each with the number of its batch, and what follows."""
        for name in self.warehouse.store.folders(directory):
            if (part := _PART.fullmatch(name)) is not None:
                yield f"{directory}/{name}", int(part[1]), part[2]

    def is_small(self, dataset: Dataset) -> bool:
        """Return whether the files are small."""
        parts = Parts.of(dataset)
        return self._size(parts.path) + sum(parts.changes.values()) <= SMALL


class _PartFiles(NewFiles):
    """The files of a part."""

    def __init__(
        self,
        sink: ParquetSink,
        dataset: Dataset,
        schema: pa.Schema,
        codec: str,
        parts: "Parts | None",
        before: Dataset | None,
    ) -> None:
        """Take the present ``parts``, None if the new one becomes the base; ``before`` is the dataset as it is."""
        self.folder, self.schema, self.codec = f"{sink.path(dataset)}{_ROWS}{uuid4().hex[:8]}", schema, codec
        self._sink, self._dataset, self._parts, self._before = sink, dataset, parts, before
        sink.remove_left_rows(before or dataset)

    def add_to(self, present: Sequence[PresentFile], deleted: Sequence[str]) -> None:
        """Take the files of the table, and the names of those of its deleted positions, to which another may come."""
        self.present = [each._replace(deletes=tuple(deleted)) for each in present]
        self.deletes = DeletesFile(f"{self.folder}{_DELETED}/part-0.parquet", to_arrow_schema(_POSITIONS))

    def commit(self, files: Mapping[str, int], deletes: Mapping[str, int] | None = None) -> Dataset:
        """Return the dataset with its new part, and the positions that are deleted."""
        if self._parts is None or (self.deletes is not None and deletes is None):
            kinds = from_arrow_schema(self.schema, prefer_timestamp_ntz=True)
            return self._sink.noted(self._dataset, kinds.jsonValue(), Parts(self.folder), self._before)
        changes, deleted = dict(self._parts.changes), dict(self._parts.deleted)
        changes |= {self.folder: sum(files.values())} if files else {}
        for path in {name.rpartition("/")[0] for name in deletes or ()}:
            deleted[path] = self._sink.row_count(path)
        parts = replace(self._parts, changes=changes, deleted=deleted)
        return self._sink.noted(self._dataset, self._dataset.details["schema"], parts, self._before)


def first_merged(sizes: Sequence[int], positions: int, rows: int) -> int:
    """Return the index of the first part that is put together with all later ones, by the size of parts; or their end.

    There are at most ``_PARTS`` parts of changes. Since those that are put together are of about one size, a row is
    written again as often as the number of changes since the base doubles.

    Args:
        sizes: The bytes of the base, and of the parts of changes.
        positions: The number of deleted positions.
        rows: The number of rows of the base.
    """
    if positions and (sum(sizes[1:]) * _SHARE >= sizes[0] or positions * _SHARE >= rows):
        return 0
    if len(sizes) <= _PARTS:
        return len(sizes)
    first = len(sizes) - _PARTS // 2
    while first > 0 and sizes[first - 1] <= sum(sizes[first:]):
        first -= 1
    return first


def _position_names(dataset: Dataset) -> tuple[str, ...]:
    """Return the names of the columns of a position, none of which is the name of a column of the dataset."""
    taken = {each["name"].lower() for each in dataset.details["schema"]["fields"]}
    names = tuple(_POSITIONS.names)
    while not taken.isdisjoint(names):
        names = tuple(f"_{name}" for name in names)
    return names


def _as_positions(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return the positions of rows, given the names of their columns."""
    path, file, row = map(column, names)
    part = F.substring_index(F.substring_index(path, "/", -2), "/", 1)
    return rows.select(part, file, row).toDF(*_POSITIONS.names)


def _with_row_numbers(rows: DataFrame, names: Sequence[str], files: Sequence[str]) -> DataFrame:
    """Return rows whose number in their file becomes one in all files; null for another file.

    Args:
        rows: The rows.
        names: The names of the columns of their positions.
        files: The names of the files.
    """
    _, file, row = map(column, names)
    first = F.when(file == files[0], 0)
    number = functools.reduce(lambda found, each: found.when(file == each[1], each[0]), enumerate(files[1:], 1), first)
    return rows.withColumn(names[-1], number * _ROWS_OF_FILE + row)


def _without(rows: DataFrame, positions: DataFrame, most: int) -> DataFrame:
    """Return rows without those at some positions, at most ``most``; both with the same three names."""
    _, file, row = positions.columns
    kept = rows.join(_broadcast_if_few(positions.select(column(file), column(row)), most), [file, row], "left_anti")
    return kept.select(*map(column, rows.columns))


def _broadcast_if_few(keys: DataFrame, count: int) -> DataFrame:
    return F.broadcast(keys) if count <= _FEW else keys


def _merged_rows(changes: DataFrame, matches: DataFrame, merged: MergeExpressions, row_index: str) -> DataFrame:
    """Return the rows that come or change, given those of the table that changes are of."""
    joined = changes.alias("s").join(matches.alias("t"), F.expr(merged.on), "left")
    is_there, is_deleted = column("t", row_index).isNotNull(), F.expr("s._op = 'delete'")
    values = [
        F.when(is_there, F.expr(merged.updated[name])).otherwise(F.expr(merged.inserted[name])).alias(name)
        for name in merged.inserted
    ]
    return joined.where((is_there & ~is_deleted) | (~is_there & F.expr(merged.comes))).select(*values)
