"""Reports of changes of rows that are not there: Parquet files in the warehouse, next to the tables of any format."""

from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.spark.metadata import escaped
from pgoutput_construct.spark.replicated_tables import plain_path
from pgoutput_construct.spark.warehouse.naming import unescaped
from pgoutput_construct.spark.warehouse.notes import Dataset, Warehouse
from pgoutput_construct.spark.warehouse.steps import Step
from pgoutput_construct.stream.identifiers import normal_name

__all__ = ["forget_missing", "read_missing", "report_missing"]

_FOLDER: Final = "missing"  # no table's directory, which has a dot
_NOTHING: Final = "PATH_NOT_FOUND"
_COLUMNS: Final = "_commit_lsn bigint, _seq bigint, _op string, _row map<string, string>, _unchanged array<string>"


def read_missing(spark: SparkSession, warehouse: Address, table: str) -> DataFrame:
    """Return the changes of rows that are not there, which ``replicate(on_missing="report")`` met.

    They are those that led to the rows of the table since it was written as a whole: updates and deletes, with the
    columns of ``OpenLog.missing_rows``. Raises PgoutputError where there is no such table.
    """
    place = Warehouse(warehouse)
    return _read(spark, plain_path(f"{place.path}/{_folder(place.find(normal_name(table)))}"))


def report_missing(warehouse: Warehouse, step: Step, rows: DataFrame) -> int:
    """Keep the changes that a step finds no rows for; return how many there are.

    A step that is done again, after a batch that was interrupted, puts the same in place of what it left.
    """
    if any(name != escaped(name) for name in step.dataset.version.shape.columns):
        rows = unescaped(rows, "_row", "_unchanged")
    found = rows.persist()
    try:
        count = found.count()
        if count:
            # The seq after which the changes of the step begin.
            path = f"{warehouse.path}/{_folder(step.dataset)}/after-{step.after}"
            found.coalesce(1).write.mode("overwrite").parquet(path)
        return count
    finally:
        found.unpersist()


def forget_missing(warehouse: Warehouse, dataset: Dataset) -> None:
    """Remove what was reported of a table."""
    if not dataset.is_history:
        warehouse.store.remove(_folder(dataset))


def _read(spark: SparkSession, path: str) -> DataFrame:
    reader = spark.read.schema(_COLUMNS).option("recursiveFileLookup", True)
    try:
        return reader.parquet(path)
    except AnalysisException as error:
        if error.getCondition() != _NOTHING:
            raise
        return spark.createDataFrame([], _COLUMNS)


def _folder(dataset: Dataset) -> str:
    return f"{_FOLDER}/{dataset.directory}"
