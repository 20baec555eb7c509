"""Tables of a warehouse, read."""

from pyspark.sql import DataFrame, SparkSession

from pgoutput_construct.changelog.store import Address
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark.formats import check_format
from pgoutput_construct.spark.warehouse.notes import Warehouse
from pgoutput_construct.spark.warehouse.sinks import open_sink

__all__ = ["read_current"]


def read_current(spark: SparkSession, warehouse: Address, table: str) -> DataFrame:
    """Return the rows of a table as the last batch of ``replicate`` left them: its columns, and those of the change.

    ``table`` is its name as SQL writes it, such as ``public.orders``. The DataFrame is of one moment: call this again
    for what has come since. Raises PgoutputError where there is no such warehouse or table.
    """
    place = Warehouse(warehouse)
    progress = place.progress()
    if progress is None:
        raise PgoutputError(f"{place.store}: no warehouse here (no table was replicated into it)")
    check_format(spark, progress.format)
    datasets = {each.version.table: each for each in place.datasets().values()}
    if table not in datasets:
        raise PgoutputError(f"{place.store}: no table {table}: it has {', '.join(sorted(datasets)) or 'none'}")
    sink = open_sink(progress.format, place)
    sink.prepare(spark)
    return sink.read(spark, datasets[table])
