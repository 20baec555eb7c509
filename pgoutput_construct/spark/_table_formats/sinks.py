"""The sinks by format; ``_table_formats/__init__`` says how to add one."""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._notes import Progress, Warehouse
from pgoutput_construct.spark._table_formats.dataset_columns import Naming
from pgoutput_construct.spark._table_formats.delta_sink import DeltaSink
from pgoutput_construct.spark._table_formats.iceberg_sink import IcebergSink
from pgoutput_construct.spark._table_formats.parquet_sink import ParquetSink
from pgoutput_construct.spark._table_formats.shared_tables import SharedDelta, SharedIceberg
from pgoutput_construct.spark._table_formats.sink import DEFAULT_OPTIONS, PartitionField, Sink, WriteMode, WriteOptions
from pgoutput_construct.stream.identifiers import normal_name

_OURS: Final[Mapping[str, str]] = {
    "delta.columnMapping.": "where a name needs it",
    "delta.enableDeletionVectors": "choose --write-mode (write_mode=)",
    "write.delete.mode": "choose --write-mode (write_mode=)",
    "write.update.mode": "choose --write-mode (write_mode=)",
    "write.merge.mode": "choose --write-mode (write_mode=)",
    "pgoutput.": "they say whose a table is, and how far it has come",
}
"""Properties that replicate sets itself, by how their names begin, and what to do instead."""
_LOCATION: Final = "location"
"""The property that would give all tables one location, where maintenance takes the files of others for orphans."""


SINKS: Final[dict[str, type[Sink]]] = {"parquet": ParquetSink, "delta": DeltaSink, "iceberg": IcebergSink}
"""The sinks by format, and"""
_SHARED: Final[Mapping[str, type[Sink]]] = {"delta": SharedDelta, "iceberg": SharedIceberg}
"""those of tables that schemas share."""


def open_sink(name: str, warehouse: Warehouse, options: WriteOptions = DEFAULT_OPTIONS) -> Sink:
    """Return the sink of a format.

    Args:
        name: The format, one of ``SINKS``.
        warehouse: The warehouse.
        options: How it writes, as ``write_options_of`` has checked it; who only reads needs none.
    """
    return (_SHARED if options.schema_column else SINKS)[name](warehouse, options)


def existing_sink(warehouse: Warehouse, progress: Progress) -> Sink:
    """Return the sink of the tables that a warehouse has."""
    options = WriteOptions(catalog=progress.catalog, schema_column=progress.schema_column, grace=progress.grace)
    sink = open_sink(progress.format, warehouse, options)
    sink.naming = Naming(progress.prefix)
    return sink


def write_options_of(
    name: str,
    mode: str | None,
    properties: Mapping[str, str],
    grace: float,
    catalog: str | None = None,
    partitions: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> WriteOptions:
    """Return options as a caller gives them; raise PgoutputError for what a format does not have.

    Args:
        name: The format.
        mode: One of WriteMode, None for the format's own.
        properties: Further properties of the tables.
        grace: As in WriteOptions.
        catalog: As in WriteOptions.
        partitions: By the names of tables, as ``PartitionField.parse`` reads each.
    """
    if catalog is not None and name != "iceberg":
        raise PgoutputError(f"a catalog has tables of Iceberg: {name} has them in the warehouse")
    if partitions and name == "parquet":
        raise PgoutputError("Parquet files are not partitioned: choose delta or iceberg")
    found: dict[str, tuple[PartitionField, ...]] = {}
    for table, each in partitions.items():
        found[normal_name(table)] = (*found.get(normal_name(table), ()), *map(PartitionField.parse, each))
    if name == "delta" and any(each.transform != "identity" for fields in found.values() for each in fields):
        raise PgoutputError("Delta Lake partitions by the values of columns alone: name a column")
    if name == "parquet" and properties:
        raise PgoutputError("Parquet files have no table properties: choose delta or iceberg")
    if mode is not None and mode not in list(WriteMode):
        raise PgoutputError(f"write mode {mode!r}: it must be {' or '.join(WriteMode)}")
    for given in sorted(properties):
        if given == _LOCATION:
            raise PgoutputError(
                f"table property {given!r} would give all tables one location: set the warehouse of the catalog, or "
                "the location of a namespace"
            )
        for start, remedy in _OURS.items():
            if given.startswith(start):
                raise PgoutputError(f"table property {given!r} is set by replicate itself: {remedy}")
    return WriteOptions(None if mode is None else WriteMode(mode), dict(properties), grace, catalog, found)
