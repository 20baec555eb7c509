"""The formats of tables by their names."""

from pgoutput_construct.spark.warehouse.delta import DeltaSink
from pgoutput_construct.spark.warehouse.iceberg import IcebergSink
from pgoutput_construct.spark.warehouse.notes import Warehouse
from pgoutput_construct.spark.warehouse.parquet import ParquetSink
from pgoutput_construct.spark.warehouse.sink import Sink

__all__ = ["open_sink"]


def open_sink(name: str, warehouse: Warehouse, grace: float = 0.0) -> Sink:
    """Return what keeps tables of a format; ``grace`` as ``replicate`` has it."""
    match name:
        case "parquet":
            return ParquetSink(warehouse, grace)
        case "delta":
            return DeltaSink(warehouse)
        case "iceberg":
            return IcebergSink(warehouse)
    raise AssertionError(name)
