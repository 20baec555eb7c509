"""Rows whose plan ends with them: what reads them, however often, is planned without what made them."""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.utils import is_remote

from pgoutput_construct.spark.failures import plain_errors

__all__ = ["as_leaf"]


def as_leaf(rows: DataFrame) -> DataFrame:
    """Return rows as a leaf of the plans that read them; their last shuffle is done once for all of these.

    What it wrote stays on the disks of the executors until nothing refers to the rows. Unlike ``localCheckpoint``,
    their RDD knows how it was made: what an executor takes with it is made again. Spark runs the stages up to the last
    shuffle at once where it plans adaptively, so that what refuses rows does it here. Spark Connect has no RDDs: there
    ``localCheckpoint`` has to do.
    """
    if is_remote():
        return rows.localCheckpoint()
    frame: Any = rows
    session: Any = rows.sparkSession
    with plain_errors():
        made = frame._jdf.queryExecution().toRdd()
        return DataFrame(session._jsparkSession.internalCreateDataFrame(made, frame._jdf.schema(), False), session)
