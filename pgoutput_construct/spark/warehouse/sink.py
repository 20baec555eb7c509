"""What a format of tables must be able to do, so that replicate can keep tables in it."""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from pgoutput_construct.spark.execution import Demand
from pgoutput_construct.spark.warehouse.naming import Naming
from pgoutput_construct.spark.warehouse.notes import Dataset, Warehouse
from pgoutput_construct.spark.warehouse.version import Version

__all__ = ["MergingSink", "Net", "Sink"]


class Net(NamedTuple):
    """What changes of a table come to."""

    rows: DataFrame
    """As ``net_changes`` returns them."""
    may_move_values: bool
    """Whether a value that was not sent may be that of a row with another key."""
    naming: Naming
    """What columns are called in the table: ``rows`` have the names under which changes are replayed."""
    demand: Demand
    """What makes the merge fail: where rows are demanded, ``_missing`` of one says that the table must have the row,
    and more are none."""


class Sink(ABC):
    """Datasets of one format in a warehouse. Calls for different datasets may come from several threads.

    DataFrames belong to the session that is given with them, which no other thread uses meanwhile.
    """

    format: ClassVar[str]
    """What it is called."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        self.naming = Naming()
        """What columns are called in the datasets of tables that have none of ours themselves."""

    def naming_of(self, dataset: Dataset) -> Naming:
        """Return what columns are called in a dataset: as ``read`` returns rows, and ``replace`` takes them."""
        return self.naming.of(dataset.version, dataset.is_history)

    @abstractmethod
    def prepare(self, spark: SparkSession) -> None:
        """Set what a session needs to find the tables; raise PgoutputError when it cannot be used for the format."""

    def replayed(self, spark: SparkSession, dataset: Dataset) -> DataFrame:
        """Return the rows as they are now, under the names that columns have while changes are replayed."""
        return self.naming_of(dataset).from_dataset(self.read(spark, dataset), dataset.is_history)

    @abstractmethod
    def version(self, spark: SparkSession, dataset: Dataset) -> Version | None:
        """Return what the data say that they are; None where they do not."""

    @abstractmethod
    def read(self, spark: SparkSession, dataset: Dataset) -> DataFrame:
        """Return the rows as they are now."""

    @abstractmethod
    def replace(self, spark: SparkSession, dataset: Dataset, rows: DataFrame, before: Dataset | None) -> Dataset:
        """Write all rows of a dataset: readers have those before or these. Return it with its details.

        ``rows`` may be made of those that are there. ``before`` is the dataset that is replaced, None for none.
        """

    @abstractmethod
    def remove(self, spark: SparkSession, dataset: Dataset) -> None:
        """Remove a dataset of which the note is gone; one that is not there is no error."""

    def recover(self, dataset: Dataset, batch: int) -> None:  # noqa: B027 - most formats leave nothing over
        """Remove what a batch that was interrupted left next to a dataset, whether the dataset is there or not."""

    def is_small(self, dataset: Dataset) -> bool:
        """Return whether a dataset is known to have few rows."""
        return False


class MergingSink(Sink):
    """A format whose tables take changes; others are replaced by their rows and the changes."""

    alters: ClassVar[bool] = True
    """Whether changes may come with other columns."""

    @abstractmethod
    def merge(self, spark: SparkSession, dataset: Dataset, changes: Net) -> Dataset:
        """Merge net changes into a dataset, at once. Return it with its details."""

    @abstractmethod
    def record(self, spark: SparkSession, dataset: Dataset, rows: DataFrame) -> Dataset:
        """Put rows of a history (``history``) into a dataset, at once: those that are there have ended."""
