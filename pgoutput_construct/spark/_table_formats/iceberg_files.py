"""Tables of Iceberg by its own Java API in Spark's driver, for what Spark's SQL cannot do.

Data files that tasks have written are appended: Spark's SQL has the procedure ``add_files``, whose snapshots cannot
have a property, such as the version of a dataset. A file has the IDs of the table's columns, by which Iceberg finds
these; its statistics are read from its footer. And Spark's SQL cannot make a column required that is not, even if no
row has NULL in it, as an identifier field must be.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pgoutput_construct.spark._log_view.change_columns import quoted
from pgoutput_construct.spark._own_session import java_map
from pgoutput_construct.spark._table_formats.sink import PresentFile

_FIELD_ID: Final = b"PARQUET:field_id"
"""The metadata of a field of Arrow by which Parquet's writer gives a column its ID."""

_MERGED: Final = "spark.merge-into.num-target-rows-"
"""How the properties of a snapshot begin that say what a MERGE of Spark did."""
DELETES: Final = pa.schema(
    [
        pa.field("file_path", pa.string(), False, {_FIELD_ID: b"2147483546"}),
        pa.field("pos", pa.int64(), False, {_FIELD_ID: b"2147483545"}),
    ]
)
"""The columns of files of position deletes (Iceberg's specification, "Position Delete Files")."""
_WITH_POSITION_DELETES: Final = 2
"""The version of the format that has files of position deletes."""
_MODE, _ON_READ = "write.merge.mode", "merge-on-read"


class IcebergTable:
    """A table of Iceberg.

    Args:
        spark: The session, which has the catalog.
        name: The name of the table, as SQL has it.
    """

    def __init__(self, spark: SparkSession, name: str) -> None:
        self._jvm = _jvm_of(spark)
        self._transaction: Any = None
        self._listed: int | None = None
        """The ID of the snapshot whose files were listed,"""
        self._paths = list[str]()
        """and their addresses."""
        spark.catalog.tableExists(name)  # opens the catalog, which goes by the active session
        self._table = self._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(_session_of(spark), name)

    @classmethod
    def creating(
        cls,
        spark: SparkSession,
        catalog: str,
        names: tuple[str, str],
        schema: pa.Schema,
        properties: Mapping[str, str],
    ) -> "IcebergTable":
        """Return a table that is to be created, or replaced; nothing is written before ``append``.

        Args:
            spark: The session.
            catalog: The name of the catalog.
            names: The namespace, and the name of the table.
            schema: The columns.
            properties: The properties of the table.
        """
        spark.catalog.tableExists(".".join(map(quoted, (catalog, *names))))  # opens the catalog, as above
        found = cls.__new__(cls)
        found._jvm = jvm = _jvm_of(spark)
        context: Any = spark.sparkContext
        levels = context._gateway.new_array(jvm.java.lang.String, len(names))
        for index, part in enumerate(names):
            levels[index] = part
        columns = from_arrow_schema(schema, prefer_timestamp_ntz=True).json()
        kinds = jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(_session_of(spark).parseDataType(columns))
        builder = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergCatalog(_session_of(spark), catalog).buildTable(
            jvm.org.apache.iceberg.catalog.TableIdentifier.of(levels), kinds
        )
        for name, value in properties.items():
            builder = builder.withProperty(name, value)
        found._transaction = builder.createOrReplaceTransaction()
        found._table = found._transaction.table()
        return found

    @property
    def location(self) -> str:
        """The address of the table."""
        return str(self._table.location())

    @property
    def is_partitioned(self) -> bool:
        """Whether it has partitions, or an order of its rows, which files would have to have."""
        return not (self._table.spec().isUnpartitioned() and self._table.sortOrder().isUnsorted())

    @property
    def ever_partitioned_by(self) -> set[str | None]:
        """The columns by which it ever was partitioned, None for one that it has no more."""
        schema = self._table.schema()
        specs = (each.getValue() for each in _items(self._table.specs().entrySet()))
        fields = (field for spec in specs for field in _items(spec.fields()))
        return {schema.findColumnName(field.sourceId()) for field in fields}

    @property
    def properties(self) -> dict[str, str]:
        """Its properties."""
        return java_map(self._jvm, self._table.properties())

    @property
    def columns(self) -> StructType:
        """Its columns, as Spark has them."""
        kinds = self._jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(self._table.schema())
        return StructType.fromJson(json.loads(kinds.json()))

    def with_ids(self, schema: pa.Schema) -> pa.Schema:
        """Return columns with the IDs of those of the table, which has them under the same names."""
        fields = json.loads(self._jvm.org.apache.iceberg.SchemaParser.toJson(self._table.schema()))["fields"]
        known = {each["name"]: each for each in fields}
        return pa.schema([_with_id(field, known[field.name]["id"], known[field.name]["type"]) for field in schema])

    @property
    def takes_deletes(self) -> bool:
        """Whether files of position deletes are what a merge would write.

        Version 3 of the format has bitmaps instead, and one of a file is of the same partitions as that.
        """
        version, mode = self._table.operations().current().formatVersion(), self.properties.get(_MODE)
        return version == _WITH_POSITION_DELETES and mode == _ON_READ and self._table.specs().size() == 1

    def files(self, folder: str) -> list[PresentFile] | None:
        """Return its data files; None where files are elsewhere, or rows are deleted by other than positions.

        Args:
            folder: Their folder in the warehouse.
        """
        found = list[PresentFile]()
        snapshot = self._table.currentSnapshot()
        self._listed = None if snapshot is None else snapshot.snapshotId()
        scan = self._table.newScan().planFiles()
        try:
            for task in _items(scan):
                deletes = [_warehouse_name(each, folder) for each in _items(task.deletes()) if _has_positions(each)]
                name = _warehouse_name(task.file(), folder)
                if name is None or None in deletes or len(deletes) < task.deletes().size():
                    return None
                size, address = int(task.file().fileSizeInBytes()), str(task.file().location())
                found.append(PresentFile(name, size, address, tuple(filter(None, deletes))))
        finally:
            scan.close()
        self._paths = [each.address for each in found]
        return found

    def commit(self, paths: Iterable[str], properties: Mapping[str, str], *, is_overwrite: bool = False) -> None:
        """Add files, in one commit, which also creates or replaces the table.

        Args:
            paths: The addresses of the files.
            properties: The properties of the snapshot.
            is_overwrite: Whether they replace all that it has.
        """
        iceberg, table = self._jvm.org.apache.iceberg, self._table
        change: Any
        if is_overwrite:
            change = table.newOverwrite().overwriteByRowFilter(iceberg.expressions.Expressions.alwaysTrue())
            add = change.addFile
        else:
            change = (self._transaction or table).newAppend()
            add = change.appendFile
        for path in paths:
            add(self._data_file(path))
        for name, value in properties.items():
            change.set(name, value)
        change.commit()
        if self._transaction is not None:
            self._transaction.commitTransaction()

    def change(self, paths: Iterable[str], deletes: Iterable[str], properties: Mapping[str, str]) -> None:
        """Add files, and such as say which rows of others are gone, in one commit.

        It fails if another one, such as of a compaction, came after ``files`` has listed those others.

        Args:
            paths: The addresses of the files.
            deletes: Those of files of position deletes.
            properties: The properties of the snapshot.
        """
        iceberg, table = self._jvm.org.apache.iceberg, self._table
        change, metrics = table.newRowDelta(), iceberg.MetricsConfig.forPositionDelete(table)
        change = change.conflictDetectionFilter(iceberg.expressions.Expressions.alwaysTrue()).validateDeletedFiles()
        change = change.validateNoConflictingDataFiles().validateNoConflictingDeleteFiles()
        if self._listed is not None:
            change = change.validateFromSnapshot(self._listed)
        existing = self._jvm.java.util.ArrayList()
        for path in self._paths:
            existing.add(path)
        change = change.validateDataFilesExist(existing)
        for path in paths:
            change.addRows(self._data_file(path))
        for path in deletes:
            file = table.io().newInputFile(path)
            builder = iceberg.FileMetadata.deleteFileBuilder(table.spec()).ofPositionDeletes().withInputFile(file)
            found = iceberg.parquet.ParquetUtil.fileMetrics(file, metrics)
            change.addDeletes(builder.withFormat("parquet").withMetrics(found).build())
        for name, value in properties.items():
            change.set(name, value)
        change.commit()

    def _data_file(self, path: str) -> Any:
        iceberg, table = self._jvm.org.apache.iceberg, self._table
        file = table.io().newInputFile(path)
        found = iceberg.parquet.ParquetUtil.fileMetrics(file, iceberg.MetricsConfig.forTable(table))
        builder = iceberg.DataFiles.builder(table.spec()).withInputFile(file)
        return builder.withFormat("parquet").withMetrics(found).build()

    @property
    def rows(self) -> int:
        """How many rows its files have, with those that are deleted, as its last snapshot says; 0 for none."""
        return self._total("records")

    @property
    def total_bytes(self) -> int:
        """The bytes of its files, as its last snapshot says; 0 for none."""
        return self._total("files-size")

    def _total(self, name: str) -> int:
        snapshot = self._table.currentSnapshot()
        return 0 if snapshot is None else int(snapshot.summary().get(f"total-{name}") or 0)

    def create_branch(self, name: str) -> None:
        """Create a branch of the last snapshot; one that an interrupted batch has left is moved there."""
        self.drop_branch(name)
        self._table.manageSnapshots().createBranch(name).commit()

    def merged_rows(self, name: str) -> int:
        """Return how many rows the latest MERGE of a branch updated or deleted, as its snapshot says; -1 if not so."""
        self._table.refresh()
        summary = self._table.snapshot(name).summary()
        counts = [summary.get(f"{_MERGED}{each}") for each in ("updated", "deleted")]
        return -1 if None in counts else sum(map(int, counts))

    def fast_forward(self, name: str) -> None:
        """Move ``main`` to the last snapshot of a branch."""
        self._table.refresh()
        self._table.manageSnapshots().fastForwardBranch("main", name).commit()

    def drop_branch(self, name: str) -> None:
        """Drop a branch, if it exists."""
        self._table.refresh()
        if self._table.refs().containsKey(name):
            self._table.manageSnapshots().removeBranch(name).commit()

    def identify(self, key: Sequence[str]) -> None:
        """Make columns the identifier fields, and the only required ones: a commit of its own, without a snapshot."""
        update, fields = self._table.updateSchema().allowIncompatibleChanges(), self._jvm.java.util.ArrayList()
        for name in key:
            fields.add(name)
            update = update.requireColumn(name)
        for field in _items(self._table.schema().columns()):
            if field.isRequired() and field.name() not in key:
                update = update.makeColumnOptional(field.name())
        update.setIdentifierFields(fields).commit()


def _jvm_of(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm


def _session_of(spark: SparkSession) -> Any:
    session: Any = spark
    return session._jsparkSession


def _items(found: Any) -> Iterator[Any]:
    """Yield what a collection of Java has.

    Py4J's own loop ends by an exception of Java, which PySpark compares with thirteen classes by their names.
    """
    iterator = found.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _has_positions(file: Any) -> bool:
    """Return whether a file says by their positions which rows are gone."""
    return str(file.content()) == "POSITION_DELETES" and str(file.format()) == "PARQUET"


def _warehouse_name(file: Any, folder: str) -> str | None:
    """Return the name of a file in the warehouse, given the folder that it is to be in; None if it is elsewhere."""
    directory, _, name = str(file.location()).rpartition("/")
    return f"{folder}/{name}" if directory.endswith(f"/{folder}") else None


def _with_id(field: pa.Field, number: int, kind: Any) -> pa.Field:
    """Return a field with its ID, and those of its parts.

    Args:
        field: The field.
        number: Its ID.
        kind: Its type, as Iceberg's JSON of schemas has it.
    """
    return pa.field(field.name, _kind_with_ids(field.type, kind), metadata={_FIELD_ID: str(number).encode()})


def _kind_with_ids(found: pa.DataType, kind: Any) -> pa.DataType:
    if pa.types.is_struct(found):
        known = {each["name"]: each for each in kind["fields"]}
        parts = (found.field(index) for index in range(found.num_fields))
        return pa.struct([_with_id(part, known[part.name]["id"], known[part.name]["type"]) for part in parts])
    if pa.types.is_map(found):
        key = _with_id(found.key_field, kind["key-id"], kind["key"]).with_nullable(False)
        return pa.map_(key, _with_id(found.item_field, kind["value-id"], kind["value"]))
    if pa.types.is_list(found):
        return pa.list_(_with_id(found.value_field, kind["element-id"], kind["element"]))
    # Iceberg has no shorter integers, and Spark writes these as int.
    return pa.int32() if pa.types.is_int8(found) or pa.types.is_int16(found) else found
