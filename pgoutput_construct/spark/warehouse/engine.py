"""The rows that a batch writes: of a table as a whole, or made of those before and the changes since."""

import warnings
from copy import copy

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.changelog.wholeness import IncompleteTableWarning
from pgoutput_construct.spark.job import OpenLog

__all__ = ["PLACES", "in_session", "whole"]

PLACES = ("_commit_lsn", "_seq")
"""Where the change stands that a row is from."""


def in_session(log: OpenLog, spark: SparkSession) -> OpenLog:
    """Return an open log whose DataFrames belong to another session."""
    found = copy(log)
    found.spark = spark
    return found


def whole(log: OpenLog, name: str) -> DataFrame:
    """Return all rows of a table as the log has it: its columns, ``_untyped``, and PLACES."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompleteTableWarning)  # said once, by the batch
        rows = log.state(name)
    for place in PLACES:
        if place not in rows.columns:
            rows = rows.withColumn(place, F.lit(None).cast("bigint"))
    return rows
