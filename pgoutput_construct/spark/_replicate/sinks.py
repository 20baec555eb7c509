"""The sinks by format; ``_replicate/__init__`` says how to add one."""

from collections.abc import Mapping
from typing import Final

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark._replicate.delta_sink import DeltaSink
from pgoutput_construct.spark._replicate.iceberg_sink import IcebergSink
from pgoutput_construct.spark._replicate.parquet_sink import ParquetSink
from pgoutput_construct.spark._replicate.sink import DEFAULT_OPTIONS, Sink, WriteMode, WriteOptions
from pgoutput_construct.spark._replicate.warehouse_notes import Warehouse

_OURS: Final = ("delta.columnMapping.", "delta.enableDeletionVectors", "write.delete.mode", "write.merge.mode")
"""How the names of properties begin that have options of their own, or that names of columns decide."""


def open_sink(name: str, warehouse: Warehouse, options: WriteOptions = DEFAULT_OPTIONS) -> Sink:
    """Return the sink of a format.

    Args:
        name: The format: ``parquet``, ``delta``, ``iceberg``.
        warehouse: The warehouse.
        options: How it writes; who only reads needs none.

    Raises:
        PgoutputError: The format does not have such options.
    """
    match name:
        case "parquet":
            if options.mode is not None or options.properties:
                raise PgoutputError("Parquet has no write mode and no table properties: choose delta or iceberg")
            return ParquetSink(warehouse, options.grace)
        case "delta":
            return DeltaSink(warehouse, options)
        case "iceberg":
            return IcebergSink(warehouse, options)
    raise AssertionError(name)


def write_options_of(name: str, mode: str | None, properties: Mapping[str, str], grace: float) -> WriteOptions:
    """Return options as a caller gives them; raise PgoutputError for what a format does not have.

    Args:
        name: The format.
        mode: One of WriteMode, None for the format's own.
        properties: Further properties of the tables.
        grace: As in WriteOptions.
    """
    if name == "parquet" and (mode is not None or properties):
        raise PgoutputError("Parquet files have no write mode and no table properties: choose delta or iceberg")
    if mode is not None and mode not in list(WriteMode):
        raise PgoutputError(f"write mode {mode!r}: it must be {' or '.join(WriteMode)}")
    if ours := sorted(name for name in properties if name.startswith(_OURS)):
        raise PgoutputError(f"table property {ours[0]!r} is set by replicate itself: choose --write-mode (write_mode=)")
    return WriteOptions(None if mode is None else WriteMode(mode), dict(properties), grace)
