"""``format("pgoutput")``: a change log as a data source of Spark."""

from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any, Final, cast
from weakref import WeakSet

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pgoutput_construct.extras import needing
from pgoutput_construct.spark._execution import cache_archives
from pgoutput_construct.spark._source.source_options import read_options

__all__ = ["PgoutputSource", "register"]

_AVAILABLE_NOW: Final = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"

_registered: "WeakSet[Any]" = WeakSet()


class PgoutputSource(DataSource):
    """A change log; ``source/options.py`` has the options."""

    def __init__(self, options: Any) -> None:
        """Read the options; raises PgoutputError for one that is unknown, or has no such value."""
        super().__init__(dict(options))
        cache_archives()  # the process that makes sources does nothing else of ours
        self.given = read_options(options)

    @classmethod
    def name(cls) -> str:
        """Return what ``format`` takes."""
        return "pgoutput"

    def schema(self) -> StructType:
        """Return the columns of what is read, from the log's index."""
        if self.given.dsn is not None:
            return from_arrow_schema(self._live().live_schema(self.given), prefer_timestamp_ntz=True)
        from pgoutput_construct.spark._source.read_range import log_as_of
        from pgoutput_construct.spark._source.views import view_of

        log, as_of = log_as_of(self.given)
        return from_arrow_schema(view_of(self.given).schema(log, as_of), prefer_timestamp_ntz=True)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what plans and does a read."""
        if self.given.dsn is not None:
            return cast("DataSourceReader", self._live().LiveReader(self.given, schema))
        from pgoutput_construct.spark._source.log_readers import LogReader

        return LogReader(self.given, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return what reads a log micro-batch by micro-batch."""
        if self.given.dsn is not None:
            return cast("DataSourceStreamReader", self._live().LiveStreamReader(self.given, schema))
        from pgoutput_construct.spark._source.log_readers import stream_reader

        return stream_reader(self.given, schema)

    def _live(self) -> ModuleType:
        """Return what needs psycopg, which is not needed to read a log."""
        with needing("postgres"):
            return import_module("pgoutput_construct.spark._source.live_slot")


def register(spark: SparkSession) -> None:
    """Let a session read change logs: ``spark.read.format("pgoutput").option("path", LOG)...``.

    Also switches on that ``trigger(availableNow=True)`` continues after a batch that was interrupted: without it the
    query would end there with sources that Spark asks for no limit.
    """
    if spark not in _registered:
        spark.dataSource.register(PgoutputSource)
        with suppress(PySparkException):  # a pipeline may set nothing; it has triggers of its own
            spark.conf.set(_AVAILABLE_NOW, "true")
        _registered.add(spark)
