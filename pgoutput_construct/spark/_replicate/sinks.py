"""The sinks by format; ``_replicate/__init__`` says how to add one."""

from pgoutput_construct.spark._replicate.delta_sink import DeltaSink
from pgoutput_construct.spark._replicate.iceberg_sink import IcebergSink
from pgoutput_construct.spark._replicate.parquet_sink import ParquetSink
from pgoutput_construct.spark._replicate.sink import Sink
from pgoutput_construct.spark._replicate.warehouse_notes import Warehouse


def open_sink(name: str, warehouse: Warehouse, grace: float = 0.0) -> Sink:
    """Return the sink of a format.

    Args:
        name: The format: ``parquet``, ``delta``, ``iceberg``.
        warehouse: The warehouse.
        grace: For how many seconds replaced Parquet files are retained for their readers.
    """
    match name:
        case "parquet":
            return ParquetSink(warehouse, grace)
        case "delta":
            return DeltaSink(warehouse)
        case "iceberg":
            return IcebergSink(warehouse)
    raise AssertionError(name)
