"""Reading a warehouse: tables, histories, and reports of changes whose rows did not exist."""

from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.lake._notes import Dataset, Warehouse
from pgoutput_construct.spark._log_view.added_columns import escaped
from pgoutput_construct.spark._log_view.replicated_tables import plain_path
from pgoutput_construct.spark._replicate.batch_plan import TableStep
from pgoutput_construct.spark._table_formats.dataset_columns import unescape_references
from pgoutput_construct.spark._table_formats.sinks import existing_sink
from pgoutput_construct.spark.formats import check_format
from pgoutput_construct.stream.identifiers import normal_name


def read_current(spark: SparkSession, warehouse: Address, table: str) -> DataFrame:
    """Return the rows of a table as the last batch of ``replicate`` left them: its columns, and those of the change.

    The DataFrame is of one version: call this again for later ones.

    Args:
        spark: The session.
        warehouse: The warehouse's address.
        table: The table as SQL writes it, such as ``public.orders``.

    Raises:
        PgoutputError: There is no such warehouse or table.
    """
    return _read_rows(spark, warehouse, table, is_history=False)


def read_history(spark: SparkSession, warehouse: Address, table: str) -> DataFrame:
    """Return all rows that a table ever had, as ``replicate(history=True)`` recorded them.

    The columns are those of the table, and HISTORY: ``_valid_from`` and ``_valid_to`` among them.

    Args:
        spark: The session.
        warehouse: The warehouse's address.
        table: The table as SQL writes it.

    Raises:
        PgoutputError: There is no such warehouse or history.
    """
    return _read_rows(spark, warehouse, table, is_history=True)


def _read_rows(spark: SparkSession, warehouse: Address, table: str, is_history: bool) -> DataFrame:
    opened = Warehouse(warehouse)
    progress = opened.existing_progress()
    check_format(spark, progress.format)
    dataset = opened.find(normal_name(table), is_history)
    sink = existing_sink(opened, progress)
    sink.prepare(spark)
    return sink.read(spark, dataset)


_FOLDER: Final = "missing"  # no table's directory, which has a dot
_NOTHING: Final = "PATH_NOT_FOUND"
_COLUMNS: Final = "_commit_lsn bigint, _seq bigint, _op string, _row map<string, string>, _unchanged array<string>"


def read_missing(spark: SparkSession, warehouse: Address, table: str) -> DataFrame:
    """Return the changes of rows that did not exist, which ``replicate(on_missing="report")`` reported.

    They are those since the table was written as a whole: updates and deletes, with the columns of
    ``OpenLog.missing_rows``.

    Args:
        spark: The session.
        warehouse: The warehouse's address.
        table: The table as SQL writes it.

    Raises:
        PgoutputError: There is no such warehouse or table.
    """
    opened = Warehouse(warehouse)
    path = f"{opened.path}/{_reports_folder(opened.find(normal_name(table)))}"
    reader = spark.read.schema(_COLUMNS).option("recursiveFileLookup", True)
    try:
        return reader.parquet(plain_path(path))
    except AnalysisException as error:
        if error.getCondition() != _NOTHING:
            raise
        return spark.createDataFrame([], _COLUMNS)


def report_missing(warehouse: Warehouse, step: TableStep, rows: DataFrame) -> int:
    """Store the changes of a step whose rows did not exist; return their number.

    A step that is repeated after an interrupted batch overwrites its report with the same.
    """
    if any(name != escaped(name) for name in step.dataset.version.shape.columns):
        rows = unescape_references(rows, "_row", "_unchanged")
    found = rows.persist()
    try:
        count = found.count()
        if count:
            # Named after the seq that the changes of the step begin after.
            path = f"{warehouse.path}/{_reports_folder(step.dataset)}/after-{step.after}"
            found.coalesce(1).write.mode("overwrite").parquet(path)
        return count
    finally:
        found.unpersist()


def copy_missing(warehouse: Warehouse, dataset: Dataset, other: Dataset) -> None:
    """Copy the reports of a table, which are small, to the dataset that it is moved to."""
    store, folder = warehouse.store, _reports_folder(dataset)
    for batch in () if dataset.is_history else sorted(store.folders(folder)):
        for name in store.files(f"{folder}/{batch}"):
            store.write(f"{_reports_folder(other)}/{batch}/{name}", store.read(f"{folder}/{batch}/{name}"))


def forget_missing(warehouse: Warehouse, dataset: Dataset) -> None:
    """Remove the reports of a table."""
    if not dataset.is_history:
        warehouse.store.remove(_reports_folder(dataset))


def _reports_folder(dataset: Dataset) -> str:
    return f"{_FOLDER}/{dataset.directory}"
