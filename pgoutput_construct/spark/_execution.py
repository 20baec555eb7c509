"""What Spark runs for this package: tasks, and leaves of plans; and the errors that come back."""

import pickle
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final
from zipimport import zipimporter

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.utils import is_remote

from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.spark._deferred_session import DeferredSession, has_no_spark

_OURS = re.compile(r"(pgoutput_construct(?:\.\w+)*)\.(\w+Error): (.+)")
_PLANNED: Final = "PYTHON_DATA_SOURCE_ERROR"
"""The condition of an error that our data source raised while Spark planned a query."""
_RAISED: Final = re.compile(r"^(?!py4j\.|pyspark\.)[A-Za-z_][\w.]*(?:Error|Exception): .+$", re.MULTILINE)
"""The last line of a traceback of Python."""
_CALLED: Final = "An error occurred while calling"
"""The beginning of an error of Java in Py4J."""
_NO_MEMORY: Final = re.compile(r"java\.lang\.OutOfMemoryError: [\w ]+\w")
_LONGEST: Final = 500
_SECRET: Final = re.compile(
    r"""((?:password|passwd|pwd|token|secret|credential)[\w.-]*["']?\s*(?:=\s*|:\s*(?=["']))|bearer\s+)"""
    r"""("[^"]*"|'[^']*'|[^\s&;,'"]+)""",
    re.IGNORECASE,
)
"""Such as ``password=...`` in the URL of a JDBC catalog, and ``"client_secret": "..."``."""
_USERINFO: Final = re.compile(r"(://[^\s/@:]*:)[^\s/@]+@")
"""The password in ``scheme://user:password@host``."""


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise an error of this package that comes from an executor with its own class.

    For use around any action (``count``, ``collect``, ``write``) on the DataFrames of this package; without it Spark
    raises its PythonException, with the same text inside.
    """
    try:
        yield
    except PgoutputError:
        raise
    except Exception as error:
        # The text of a plan that Spark refuses may contain what the plan itself would have failed with.
        is_refused = isinstance(error, AnalysisException) and error.getCondition() != _PLANNED
        found = [] if is_refused else _OURS.findall(str(error))
        if not found:
            raise
        # The last one printed is the outermost of a chain: it names segment and seq.
        module, name, text = found[-1]
        raise _error_class(module, name)(text) from error


@contextmanager
def leading_reason() -> Iterator[None]:
    """Let the error with which a query ends begin with the reason, if an error of this package ends it.

    PySpark makes it of the traceback, as Python prints it: the reason would be the last of about forty lines. The cause
    of an error is printed before it.
    """
    try:
        yield
    except PgoutputError as error:
        raise error from PgoutputError(str(error))


def _error_class(module: str, name: str) -> type[PgoutputError]:
    """Return a class of error by its module and name; PgoutputError for an unknown one."""
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) and issubclass(found, PgoutputError) else PgoutputError


def reason_of(error: Exception) -> str:
    """Return an error as text for people: one of this package as it is, of any other the most informative line."""
    text = str(error)
    if isinstance(error, PgoutputError):
        return text
    raised = _RAISED.findall(text.partition("JVM stacktrace")[0]) if "Traceback (most recent call last)" in text else []
    lines = (line.strip(" :") for line in text.splitlines() if not line.startswith(_CALLED))
    line = raised[-1] if raised else next(filter(None, lines), "")
    if (found := _NO_MEMORY.search(text)) is not None:
        line = f"{found[0]}: set a larger heap (--conf spark.driver.memory, on a cluster spark.executor.memory)"
    return f"{type(error).__name__}: {without_secrets(line)[:_LONGEST]}"


def without_secrets(text: str) -> str:
    """Return the text of an error of Spark, or of what it calls, without the passwords of addresses in it."""
    return _SECRET.sub(r"\1***", _USERINFO.sub(r"\1***@", text))


def error_column(*parts: Column | str) -> Column:
    """Return a column that fails with a ChangeLogError when it is evaluated."""
    texts = (F.lit(part) if isinstance(part, str) else part.cast("string") for part in (error_text(""), *parts))
    return F.raise_error(F.concat_ws("", *texts))


def error_text(text: str) -> str:
    """Return the text of a ChangeLogError with its class name, so that ``plain_errors`` finds it."""
    return f"{ChangeLogError.__module__}.{ChangeLogError.__name__}: {text}"


def as_leaf(rows: DataFrame) -> DataFrame:
    """Return rows as a leaf of the plans that read them: their last shuffle is done once for all of these.

    Its files stay on the disks of the executors until nothing refers to the rows. Unlike with ``localCheckpoint``,
    their RDD has its lineage: what is lost with an executor is computed again. With adaptive planning Spark runs the
    stages up to the last shuffle at once, so that errors of rows are raised here. Spark Connect has no RDDs: there it
    is ``localCheckpoint``.
    """
    if is_remote():
        return rows.localCheckpoint()
    frame: Any = rows
    session: Any = rows.sparkSession
    with plain_errors():
        made = frame._jdf.queryExecution().toRdd()
        return DataFrame(session._jsparkSession.internalCreateDataFrame(made, frame._jdf.schema(), False), session)


_FEW: Final = 32
"""More tasks than this get a partition each, so that none waits for another that takes long."""


_LITTLE: Final = 16 << 20
"""Bytes that are worked on here in less time than Spark takes to plan and run a job: a quarter of a second."""


def reaches_files(spark: SparkSession, store: LogStore) -> bool:
    """Return whether this process has the same files in a store as executors: a directory may be another on each host.

    Args:
        spark: The session.
        store: The store.
    """
    is_one_host = (spark.conf.get("spark.master") or "").startswith("local")
    return is_one_host or not isinstance(store, LocalStore)


def run_tasks(
    spark: SparkSession,
    tasks: Sequence[Any],
    work: Callable[[Any], Iterable[dict[str, Any]]],
    schema: pa.Schema,
    size: int | None = None,
    at_once: int = 1,
) -> list[Row]:
    """Run tasks in executors, and return the rows that they yield; or run them here, where that takes less time.

    Args:
        spark: The session.
        tasks: What each task works on; pickled.
        work: Yields the rows of one task; pickled, and its errors are raised here.
        schema: The columns of the rows.
        size: How many bytes all tasks work on; None where that is not known, or they are to run in executors.
            Without a Java all run here.
        at_once: How many run here at the same time: those that wait for a network.
    """
    if not tasks:
        return []
    if size is not None and (size <= _LITTLE or has_no_spark(spark)):
        with ThreadPoolExecutor(at_once, thread_name_prefix="task") as pool:
            found = pool.map(lambda task: list(work(task)), tasks) if at_once > 1 else map(work, tasks)
            return [Row(**{name: row.get(name) for name in schema.names}) for rows in found for row in rows]

    def done(task: Any) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pylist(list(work(task)), schema)

    return task_rows(spark, tasks, done, from_arrow_schema(schema)).collect()


def task_rows(
    spark: SparkSession, tasks: Sequence[Any], work: Callable[[Any], Iterator[pa.RecordBatch]], schema: T.StructType
) -> DataFrame:
    """Return the rows that tasks make in executors, whenever an action runs.

    Args:
        spark: The session.
        tasks: What each task works on; pickled.
        work: Yields the rows of one task; pickled.
        schema: The columns of the rows.
    """
    if not tasks:
        return spark.createDataFrame([], schema)
    rows = spark.createDataFrame(pa.table({"task": [pickle.dumps(task) for task in tasks]}))
    rows = rows.repartition(len(tasks)) if len(tasks) > _FEW else rows

    def done(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for pickled in batch.column(0).to_pylist():
                yield from work(pickle.loads(pickled))

    return rows.mapInArrow(done, schema)


def is_alive(session: SparkSession | DeferredSession) -> bool:
    """Return whether Spark still runs jobs: its errors do not distinguish a failed job from an ended session."""
    started = session.spark if isinstance(session, DeferredSession) else session
    if started is None:
        return not session.has_failed
    try:
        return started.range(1).count() == 1
    except Exception:
        return False


def cache_archives() -> None:
    """Let importers keep the directory of zip files, such as those with PySpark itself: these do not change.

    Before each task a worker of PySpark invalidates the caches of all importers. Before Python 3.12 those of zip files
    then read the directory of each again, once for every package in it, and once for Spark's own jar: together 0.1 s.
    """
    for importer in tuple(sys.path_importer_cache.values()):
        if isinstance(importer, zipimporter):
            vars(importer)["invalidate_caches"] = _nothing


def _nothing() -> None:
    """Do nothing."""
