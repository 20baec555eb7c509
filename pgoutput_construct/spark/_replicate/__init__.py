"""Tables of a change log, kept up to date in a warehouse: Parquet, Delta Lake, Iceberg."""

from pgoutput_construct.spark._replicate.batch_loop import check_request, replicate
from pgoutput_construct.spark._replicate.batch_plan import BatchProgress
from pgoutput_construct.spark._replicate.table_batches import Batch
from pgoutput_construct.spark._replicate.warehouse_reader import read_current, read_history, read_missing

__all__ = [
    "Batch",
    "BatchProgress",
    "check_request",
    "read_current",
    "read_history",
    "read_missing",
    "replicate",
]
