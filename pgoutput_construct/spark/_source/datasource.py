"""``format("pgoutput")``: the class that Spark knows. It imports only what a process needs of the others."""

from contextlib import nullcontext
from importlib import import_module
from types import ModuleType
from typing import Any, cast
from weakref import WeakSet

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType
from pyspark.sql.utils import is_remote

from pgoutput_construct.extras import needing
from pgoutput_construct.spark._execution import cache_archives
from pgoutput_construct.spark._own_session import active_session
from pgoutput_construct.spark._source.source_options import read_options

_registered: "WeakSet[Any]" = WeakSet()


class PgoutputSource(DataSource):
    """A change log, or a slot; ``source_options`` has the options."""

    def __init__(self, options: Any) -> None:
        """Read the options; raises PgoutputError for an unknown one, or an invalid value."""
        super().__init__(dict(options))
        cache_archives()  # the process that creates sources runs nothing else of ours
        self.given = read_options(options)

    @classmethod
    def name(cls) -> str:
        """Return what ``format`` takes."""
        return "pgoutput"

    def schema(self) -> StructType:
        """Return the columns, from the log's index."""
        if self.given.dsn is not None:
            return from_arrow_schema(self._live().live_schema(self.given), prefer_timestamp_ntz=True)
        from pgoutput_construct.spark._source.read_range import log_as_of
        from pgoutput_construct.spark._source.views import view_of

        log, as_of = log_as_of(self.given)
        return from_arrow_schema(view_of(self.given).schema(log, as_of), prefer_timestamp_ntz=True)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch."""
        if self.given.dsn is not None:
            return cast("DataSourceReader", self._live().LiveReader(self.given, schema))
        from pgoutput_construct.spark._source.log_readers import LogReader

        return LogReader(self.given, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream."""
        from pgoutput_construct.spark._source.log_readers import LogStreamReader
        from pgoutput_construct.spark._source.micro_batches import with_available_now

        kind = LogStreamReader if self.given.dsn is None else self._live().LiveStreamReader
        return with_available_now(kind)(self.given, schema)

    def _live(self) -> ModuleType:
        """Return the module that needs psycopg, which reading a log does not."""
        with needing("postgres"):
            return import_module("pgoutput_construct.spark._source.live_slot")


def register(spark: SparkSession) -> None:
    """Let a session read change logs: ``spark.read.format("pgoutput").option("path", LOG)...``."""
    if spark not in _registered:
        # Whether there is a source of this name Spark looks up in the active session, which may be another one.
        with nullcontext() if is_remote() else active_session(spark):
            spark.dataSource.register(PgoutputSource)
        _registered.add(spark)
