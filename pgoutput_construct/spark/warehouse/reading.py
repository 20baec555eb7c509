"""Tables of a warehouse, read."""

from pyspark.sql import DataFrame, SparkSession

from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark.formats import check_format
from pgoutput_construct.spark.warehouse.notes import Warehouse
from pgoutput_construct.spark.warehouse.sinks import open_sink
from pgoutput_construct.stream.identifiers import normal_name

__all__ = ["read_current", "read_history"]


def read_current(spark: SparkSession, warehouse: Address, table: str) -> DataFrame:
    """Return the rows of a table as the last batch of ``replicate`` left them: its columns, and those of the change.

    ``table`` is its name as SQL writes it, such as ``public.orders``. The DataFrame is of one moment: call this again
    for what has come since. Raises PgoutputError where there is no such warehouse or table.
    """
    return _read(spark, warehouse, table, is_history=False)


def read_history(spark: SparkSession, warehouse: Address, table: str) -> DataFrame:
    """Return all rows that a table ever had, as ``replicate(history=True)`` saw them; raises as ``read_current``.

    Its columns are those of the table, and HISTORY: ``_valid_from`` and ``_valid_to`` among them.
    """
    return _read(spark, warehouse, table, is_history=True)


def _read(spark: SparkSession, warehouse: Address, table: str, is_history: bool) -> DataFrame:
    place = Warehouse(warehouse)
    progress = place.progress()
    if progress is None:
        raise PgoutputError(f"{place.store}: no warehouse here (no table was replicated into it)")
    check_format(spark, progress.format)
    dataset = place.find(normal_name(table), is_history)
    sink = open_sink(progress.format, place)
    sink.prepare(spark)
    return sink.read(spark, dataset)
