"""A format of tables that can only be replaced: JSON files, in a directory for each batch; the note names the present.

Batches write next to the rows that readers see. Values whose text in JSON would not be exact are stored as others that
are: Spark writes milliseconds of timestamps, and by the time zone of the session.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple
from uuid import uuid4

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._notes import Dataset, Warehouse
from pgoutput_construct.lake._versions import Version
from pgoutput_construct.spark._log_view.change_columns import column
from pgoutput_construct.spark._log_view.replicated_tables import plain_path
from pgoutput_construct.spark._table_formats.existing_tables import (
    ExistingTable,
    entries_of,
    existing_files,
    remove_replaced,
)
from pgoutput_construct.spark._table_formats.reserved_names import ReservedNames
from pgoutput_construct.spark._table_formats.sink import DEFAULT_OPTIONS, Sink, WriteOptions

__all__ = ["JsonSink"]

_FOLDER: Final = re.compile(r"v(\d+)-[0-9a-f]{8}")
"""A directory: the number of the batch that wrote it, and digits that no attempt of the batch shares with another."""
_READING: Final[Mapping[str, str]] = {
    "mode": "FAILFAST",  # otherwise a damaged line is a row of nulls
    "columnNameOfCorruptRecord": "",  # no column of PostgreSQL, while a table may have Spark's _corrupt_record
    "maxStringLen": str(2**31 - 1),  # Jackson refuses strings of more than 20 MB; PostgreSQL has up to 1 GB
}


class _Exact(NamedTuple):
    """What is stored instead of values of a type."""

    kind: T.DataType
    store: Callable[[Column], Column]
    restore: Callable[[Column], Column]


_EXACT: Final[Mapping[type[T.DataType], _Exact]] = {
    T.DateType: _Exact(T.IntegerType(), F.unix_date, F.date_from_unix_date),
    T.TimestampType: _Exact(T.LongType(), F.unix_micros, F.timestamp_micros),
    T.TimestampNTZType: _Exact(  # microseconds would be counted in the time zone of the session
        T.StringType(), lambda value: value.cast("string"), lambda text: text.cast("timestamp_ntz")
    ),
}
"""All other types are exact in JSON: NaN and infinity are strings there, bytes base64, decimals all of their digits."""


class JsonSink(Sink):
    """The note is the table: readers see the directory that it names; replaced ones are retained for a while."""

    format = "json"
    is_replaced = True
    reserved = ReservedNames("JSON")

    def __init__(self, warehouse: Warehouse, options: WriteOptions = DEFAULT_OPTIONS) -> None:
        """Take the warehouse; raise PgoutputError for options of other formats."""
        super().__init__(warehouse, options)
        if options.schema_column or options.partitions or options.properties:
            raise PgoutputError(
                "tables of JSON are not shared by schemas, not partitioned, and have no properties: choose delta or "
                "iceberg"
            )

    def version(self, spark: SparkSession, dataset: Dataset) -> Version | None:
        """Return the version in the note, which is written last."""
        return dataset.version

    def read(self, spark: SparkSession, dataset: Dataset) -> DataFrame:
        """Return the rows of the directory that the note names."""
        columns = T.StructType.fromJson(dataset.details["schema"])
        stored = T.StructType([T.StructField(each.name, _stored_type(each.dataType)) for each in columns])
        path = plain_path(f"{self.warehouse.path}/{dataset.directory}/{dataset.details['folder']}")
        rows = spark.read.schema(stored).options(**_READING).json(path)
        return rows.select(*(_restored(column(each.name), each.dataType).alias(each.name) for each in columns))

    def existing(self, spark: SparkSession, dataset: Dataset) -> ExistingTable | None:
        """Return what is in the directory of a dataset and is not called as those of batches are."""
        others = [name for name in entries_of(self.warehouse.store, dataset.directory) if not _FOLDER.fullmatch(name)]
        return existing_files(spark, self.warehouse, dataset.directory, others, self.adopts) if others else None

    def replace(self, spark: SparkSession, dataset: Dataset, rows: DataFrame, before: Dataset | None) -> Dataset:
        """Write a directory next to the present one."""
        adopted = self.check_location(spark, dataset, rows.schema) if before is None else None
        folder = f"v{dataset.version.batch}-{uuid4().hex[:8]}"
        stored = rows.select(*(_stored(column(each.name), each.dataType).alias(each.name) for each in rows.schema))
        # With nulls, so that every line has all columns, for whoever reads the files alone.
        stored.write.json(f"{self.warehouse.path}/{dataset.directory}/{folder}", ignoreNullFields=False)
        if adopted is not None:
            remove_replaced(self.warehouse.store, dataset.directory, adopted)
        # Not in addition to the former details, which a dataset comes with.
        replaced = self._retained(dataset, folder, before)
        details = {"folder": folder, "schema": rows.schema.jsonValue(), "replaced": replaced}
        return replace(dataset, details=details)

    def recover(self, directory: str, noted: Dataset | None, batch: int) -> None:
        """Remove directories of the note's batch, and of later ones, that it does not name: they are incomplete."""
        first, known = (batch, set[str]()) if noted is None else (noted.version.batch, _known(noted))
        for name in self.warehouse.store.folders(directory) - known:
            if (found := _FOLDER.fullmatch(name)) is not None and int(found[1]) >= first:
                self.warehouse.store.remove(f"{directory}/{name}")

    def _retained(self, dataset: Dataset, folder: str, before: Dataset | None) -> dict[str, float]:
        """Return the replaced directories that stay, and since when they are; remove all but these and the new one."""
        now, found = time.time(), dict[str, float]()
        if before is not None:
            replaced = before.details["replaced"].items()
            found = {name: replaced_at for name, replaced_at in replaced if replaced_at + self.grace > now}
            found[before.details["folder"]] = now  # whatever the grace: readers see it until the note is written
        for name in self.warehouse.store.folders(dataset.directory) - {folder, *found}:
            if _FOLDER.fullmatch(name):
                self.warehouse.store.remove(f"{dataset.directory}/{name}")
        return found


def _known(dataset: Dataset) -> set[str]:
    return {dataset.details["folder"], *dataset.details["replaced"]}


def _stored_type(kind: T.DataType) -> T.DataType:
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_stored_type(kind.elementType))
    return _EXACT[type(kind)].kind if type(kind) in _EXACT else kind


def _stored(value: Column, kind: T.DataType) -> Column:
    if isinstance(kind, T.ArrayType):
        return F.transform(value, lambda each: _stored(each, kind.elementType))
    return _EXACT[type(kind)].store(value) if type(kind) in _EXACT else value


def _restored(value: Column, kind: T.DataType) -> Column:
    if isinstance(kind, T.ArrayType):
        return F.transform(value, lambda each: _restored(each, kind.elementType))
    return _EXACT[type(kind)].restore(value) if type(kind) in _EXACT else value
