"""Sessions of our own, with settings of our own: what a user's session sets does not change what our statements mean.

What writes or compares tables (``replicate``, ``maintain``, ``verify``, ``write_tables``) runs in such sessions. They
share the context, the jars and the executors with the caller's, and neither settings nor views: that one stays as it
is. Of the settings

- FIXED have one value, whatever the caller's session says;
- those of ``_CARRIED`` are the caller's: where tables are, and what resources are used;
- so are all that are not of ``spark.sql``, such as those of Hadoop and of Delta Lake, but for ``_DIRECTED``;
- every other one of ``spark.sql`` has Spark's default. There are some 700, half of them undocumented, and each version
  has more: a list of those that change results would never be complete.

Spark Connect has no such sessions (``newSession`` and the driver are not there), so these functions are refused.
DataFrames for users (``OpenLog.state`` and ``changes``, ``read_current``, the data source) are evaluated in their own
sessions, whenever they like: these are built as columns rather than as text, and without types whose name depends on
a setting.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any, Final, TypeVar, cast

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote
from pyspark.util import inheritable_thread_target

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark._deferred_session import DeferredSession
from pgoutput_construct.spark._execution import is_alive, plain_errors

FIXED: Final[Mapping[str, str]] = {
    # A timestamptz is an instant. Text of it, such as the value of a partition, is ambiguous in a zone in whose autumn
    # an hour occurs twice; by default the zone is the machine's.
    "spark.sql.session.timeZone": "UTC",
    # PostgreSQL's columns may differ in case alone.
    "spark.sql.caseSensitive": "true",
    # Spark's default for timestamps, INT96, has nanoseconds in 64 bits for most readers: 1677 to 2262.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Dates before 1582 are PostgreSQL's, of the proleptic Gregorian calendar, in files of ours of any writer.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    # Statements have values of keys and names: ``${env:HOME}`` in one is text.
    "spark.sql.variable.substitute": "false",
    # What does not fit a type is an error. The default is that of an environment variable.
    "spark.sql.ansi.enabled": "true",
    # Each session whose artifacts are isolated has Python workers of its own, whose daemon Spark never ends:
    # a second of each call, and 250 MB for ever.
    "spark.sql.artifact.isolation.enabled": "false",
}
"""The settings of sessions of our own that are not Spark's defaults, or whose defaults depend on the machine."""
_CARRIED: Final = (
    "spark.sql.catalog.",  # where tables are
    "spark.sql.parquet.compression.codec",  # how large their files are
    # How many rows of files are in memory at a time, which large ones make fewer.
    "spark.sql.iceberg.vectorization.",
    "spark.sql.parquet.columnarReaderBatchSize",
    "spark.sql.parquet.enableVectorizedReader",
    "spark.sql.redaction.",  # which texts are secrets
    # How many tasks there are, what they have in memory at a time, and what is compiled for them.
    "spark.sql.adaptive.",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.broadcastTimeout",
    "spark.sql.codegen.",
    "spark.sql.execution.arrow.max",
    "spark.sql.files.max",
    "spark.sql.files.min",
    "spark.sql.files.openCostInBytes",
    "spark.sql.inMemoryColumnarStorage.",
    "spark.sql.leafNodeDefaultParallelism",
    "spark.sql.shuffle.partitions",
    "spark.sql.sources.parallelPartitionDiscovery.",
)
"""How the names of the caller's settings begin that count here, too, of those that are settings of ``spark.sql``."""
_DIRECTED: Final = (
    "spark.databricks.delta.commitInfo.",  # a commit's metadata say which version it has
    "spark.databricks.delta.v2.",  # its other way into tables, which does not have all that ours needs
    "spark.wap.",  # writes would go to a branch of Iceberg, which readers do not see
)
"""How the names of other settings begin that direct single commits, which are not the caller's."""
_SQL: Final = "spark.sql."
_EXTENSIONS: Final = "spark.sql.extensions"
"""The classes that bring further SQL, which all sessions share."""
_STATIC: Final = {"CANNOT_MODIFY_CONFIG", "CANNOT_MODIFY_STATIC_CONFIG"}
"""The conditions of the errors for settings that all sessions share, and that need not be changed so."""
_GROUPS: Final = 32
"""The most groups of items that are given to threads."""
Item = TypeVar("Item")
Result = TypeVar("Result")


def own_session(spark: SparkSession, purpose: str) -> SparkSession:
    """Return a session of our own; what it runs belongs into a block of ``active_session``.

    Args:
        spark: The caller's session, whose jars, catalogs and resources it has.
        purpose: What it is for, such as ``replicate``.

    Raises:
        PgoutputError: The caller's session is one of Spark Connect.
    """
    if is_remote():
        raise PgoutputError(
            f"{purpose} does not work through Spark Connect, which has no sessions with settings of their own: run it "
            "in a program with a driver (spark_session(), spark-submit, or the command line)"
        )
    return _own(spark)


@contextmanager
def active_session(spark: SparkSession) -> Iterator[None]:
    """Have a session be the active one while the block runs: Spark looks some things up in that one alone."""
    if isinstance(spark, DeferredSession):
        with spark.activated(_activate, _deactivate):
            yield
        return
    before = SparkSession.getActiveSession()
    _activate(spark)
    try:
        yield
    finally:
        if before is not None:
            _activate(before)
        else:  # as in a thread of the caller that has used no session yet
            _deactivate(spark)


def _activate(spark: SparkSession) -> None:
    """Make a session the active one, as ``createDataFrame`` does."""
    session: Any = spark
    session._jsparkSession.setActiveSession(session._jsparkSession)
    SparkSession._activeSession = spark


def _deactivate(spark: SparkSession) -> None:
    """Have no session be the active one."""
    session: Any = spark
    session._jsparkSession.clearActiveSession()
    SparkSession._activeSession = None


def _own(spark: SparkSession, prepare: Callable[[SparkSession], None] | None = None) -> SparkSession:
    """Return another session, with our settings and those of a session that count here, too; ``prepare`` adds to them.

    If ``spark`` is a DeferredSession, both are opened when the new one is needed.
    """
    if isinstance(spark, DeferredSession):
        shared = {name: value for name, value in spark.settings.items() if name == _EXTENSIONS}
        settings = {**_own_settings(spark.settings), **shared}
        return cast("SparkSession", DeferredSession(lambda: _own(spark.opened(), prepare), settings, spark))
    session = spark.newSession()
    known = settings_of(session)
    wanted = _own_settings(settings_of(spark))
    for name in known.keys() - wanted.keys():
        _change(session.conf.unset, name)
    for name, value in wanted.items():
        if known.get(name) != value:
            _change(session.conf.set, name, value)
    if prepare is not None:
        prepare(session)
    return session


def _own_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return our settings, with those of a session that count here, too."""
    return {**{name: value for name, value in settings.items() if _is_carried(name)}, **FIXED}


def settings_of(spark: SparkSession) -> dict[str, str]:
    """Return what ``conf.getAll`` does, without three calls of the JVM for each setting."""
    if isinstance(spark, DeferredSession) and not spark.is_open:
        return dict(spark.settings)
    session: Any = spark
    return java_map(session._jvm, session._jsparkSession.conf().getAllAsJava())


def java_map(jvm: Any, found: Any) -> dict[str, str]:
    """Return a map of Java whose keys and values are texts, in one call of the JVM."""
    mapper = getattr(jvm, "com.fasterxml.jackson.databind.ObjectMapper")()
    texts: dict[str, str] = json.loads(mapper.writeValueAsString(found))
    return texts


def _is_carried(name: str) -> bool:
    return name.startswith(_CARRIED) if name.startswith(_SQL) else not name.startswith(_DIRECTED)


_shared = set[str]()
"""The settings that all sessions share, as far as known: to be refused again takes a tenth of a second for each."""


def _change(change: Callable[..., None], name: str, *value: str) -> None:
    """Change a setting, except one that all sessions share."""
    if name in _shared:
        return
    try:
        change(name, *value)
    except PySparkException as error:
        if error.getCondition() not in _STATIC:
            raise
        _shared.add(name)


def _attempted(spark: SparkSession, work: Callable[[SparkSession, Item], Result], item: Item) -> Result | Exception:
    """Return the result of ``work``, or its error, which is raised where Spark itself has ended."""
    try:
        with plain_errors():
            return work(spark, item)
    except PgoutputError as error:
        return error
    except Exception as error:
        if not is_alive(spark):
            raise
        return error


class SparkSessions:
    """Threads that work on several items at a time, each with a session of its own: settings do not interfere."""

    def __init__(self, spark: SparkSession, number: int, prepare: Callable[[SparkSession], None]) -> None:
        """``prepare`` sets what a session needs in addition to the settings of ``spark``."""
        self._spark = spark
        self._prepare = prepare
        self._number = number
        self._idle: list[SparkSession] = []

    def run(
        self, items: Sequence[Item], work: Callable[[SparkSession, Item], Result]
    ) -> Iterator[tuple[Item, Result | Exception]]:
        """Yield the items with the result of ``work`` for each, or its error, as soon as it is known.

        Jobs have the caller's group, description and pool of the scheduler. An error is raised where Spark itself has
        ended: work under way may end, and no more is started.
        """
        with ThreadPoolExecutor(self._number, thread_name_prefix="table") as pool:
            futures = {pool.submit(self._inheriting(), work, item): item for item in items}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            except (KeyboardInterrupt, SystemExit):
                if isinstance(self._spark, DeferredSession):  # of others Spark's own handler of signals does it
                    self._spark.cancel()
                raise
            finally:
                for future in futures:
                    future.cancel()

    def run_grouped(
        self, small: Sequence[Item], work: Callable[[SparkSession, Item], Result], large: Sequence[Item] = ()
    ) -> Iterator[tuple[Item, Result | Exception]]:
        """Do as ``run``, for many items that take less time than it takes to give one to a thread.

        Args:
            small: These items, of which a thread gets several at a time.
            work: What is done with each.
            large: Others, of which it gets one.
        """
        number = min(len(small), _GROUPS)
        groups = [*([item] for item in large), *(small[index::number] for index in range(number))]

        def of_group(spark: SparkSession, group: Sequence[Item]) -> list[tuple[Item, Result | Exception]]:
            return [(item, _attempted(spark, work, item)) for item in group]

        for _, done in self.run(groups, of_group):
            if isinstance(done, Exception):
                raise done
            yield from done

    def _inheriting(self) -> Any:
        """Return ``_done`` with a copy of the local properties of this thread: Spark changes those of each job's."""
        if isinstance(self._spark, DeferredSession):  # of a program of our own, which sets none
            return self._done
        return inheritable_thread_target(self._spark)(self._done)

    def _done(self, work: Callable[[SparkSession, Item], Result], item: Item) -> Result | Exception:
        try:
            session = self._idle.pop()
        except IndexError:
            session = _own(self._spark, self._prepare)
        try:
            return _attempted(session, work, item)
        finally:
            self._idle.append(session)


@contextmanager
def session_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of a session of our own while the block runs."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)
