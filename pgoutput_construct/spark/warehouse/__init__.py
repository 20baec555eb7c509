"""Tables of a change log, kept up to date in a warehouse: Parquet, Delta Lake, Iceberg."""

from pgoutput_construct.spark.warehouse.batches import Batch
from pgoutput_construct.spark.warehouse.loading import BatchProgress
from pgoutput_construct.spark.warehouse.reading import read_current, read_history
from pgoutput_construct.spark.warehouse.replicating import replicate
from pgoutput_construct.spark.warehouse.reports import read_missing
from pgoutput_construct.spark.warehouse.request import check_request

__all__ = [
    "Batch",
    "BatchProgress",
    "check_request",
    "read_current",
    "read_history",
    "read_missing",
    "replicate",
]
