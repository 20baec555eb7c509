"""What Spark executes for this package: tasks, rows that plans begin with, and the errors of both."""

import pickle
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar
from zipimport import zipimporter

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.utils import is_remote

from pgoutput_construct import errors
from pgoutput_construct.changelog._store.store import MissingFileError
from pgoutput_construct.errors import ChangeLogError, PgoutputError

__all__ = [
    "SparkSessions",
    "as_leaf",
    "cache_archives",
    "error_column",
    "error_text",
    "is_alive",
    "plain_errors",
    "reason_of",
    "run_tasks",
]

_OURS = re.compile(r"pgoutput_construct\.[\w.]*?(\w+Error): (.+)")

_KNOWN = {**vars(errors), MissingFileError.__name__: MissingFileError}

_RAISED: Final = re.compile(r"^(?!py4j\.|pyspark\.)[A-Za-z_][\w.]*(?:Error|Exception): .+$", re.MULTILINE)
"""How a traceback of Python ends."""

_CALLED: Final = "An error occurred while calling"
"""How Py4J begins what Java raised."""

_LONGEST: Final = 500


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise an error of this package that Spark brings from an executor as what it was there.

    For use around any action (``count``, ``collect``, ``write``) on the DataFrames of this package; without it Spark
    raises its PythonException, with the same text deep inside.
    """
    try:
        yield
    except PgoutputError:
        raise
    except Exception as error:
        found = _OURS.findall(str(error))
        if not found:
            raise
        # The last one printed is the outermost of a chain: it names segment and seq.
        name, text = found[-1]
        raise _KNOWN.get(name, PgoutputError)(text) from error


def reason_of(error: Exception) -> str:
    """Return an error as text for people: that of this package as it is, of any other the line that says most."""
    text = str(error)
    if isinstance(error, PgoutputError):
        return text
    raised = _RAISED.findall(text.partition("JVM stacktrace")[0]) if "Traceback (most recent call last)" in text else []
    lines = (line.strip(" :") for line in text.splitlines() if not line.startswith(_CALLED))
    line = raised[-1] if raised else next(filter(None, lines), "")
    return f"{type(error).__name__}: {line[:_LONGEST]}"


def error_column(*parts: Column | str) -> Column:
    """Return a column that fails with a ChangeLogError when it is evaluated."""
    texts = (F.lit(part) if isinstance(part, str) else part.cast("string") for part in (error_text(""), *parts))
    return F.raise_error(F.concat_ws("", *texts))


def error_text(text: str) -> str:
    """Return the text of a ChangeLogError: named as an error of an executor is, so that plain_errors finds it."""
    return f"{ChangeLogError.__module__}.{ChangeLogError.__name__}: {text}"


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


_FEW: Final = 32
"""More tasks than this are dealt out one by one, so that none waits for another that takes long."""


def run_tasks(
    spark: SparkSession, tasks: Sequence[Any], work: Callable[[Any], Iterable[dict[str, Any]]], schema: pa.Schema
) -> list[Row]:
    """Return the rows, of ``schema``, that ``work`` yields for each task; both are pickled. Raises what it raises."""
    if not tasks:
        return []
    rows = spark.createDataFrame(pa.table({"task": [pickle.dumps(task) for task in tasks]}))
    rows = rows.repartition(len(tasks)) if len(tasks) > _FEW else rows

    def done(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for pickled in batch.column(0).to_pylist():
                yield pa.RecordBatch.from_pylist(list(work(pickle.loads(pickled))), schema)

    return rows.mapInArrow(done, from_arrow_schema(schema)).collect()


Item = TypeVar("Item")

Result = TypeVar("Result")


class SparkSessions:
    """A few sessions in addition to one, with its settings."""

    def __init__(self, spark: SparkSession, number: int, prepare: Callable[[SparkSession], None]) -> None:
        """``prepare`` sets what a session needs in addition to the settings of ``spark``."""
        self._spark = spark
        self._prepare = prepare
        self._number = number
        self._idle: list[SparkSession] = []

    def run(
        self, items: Sequence[Item], work: Callable[[SparkSession, Item], Result]
    ) -> Iterator[tuple[Item, Result | Exception]]:
        """Yield the items with what ``work`` makes of each, or its error, as soon as it is there.

        An error is raised where Spark itself has ended: then those under way end as they may, and no other begins.
        """
        with ThreadPoolExecutor(self._number, thread_name_prefix="table") as pool:
            futures = {pool.submit(self._done, work, item): item for item in items}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            finally:
                for future in futures:
                    future.cancel()

    def _done(self, work: Callable[[SparkSession, Item], Result], item: Item) -> Result | Exception:
        session = self._idle.pop() if self._idle else self._new()
        try:
            with plain_errors():
                return work(session, item)
        except PgoutputError as error:
            return error
        except Exception as error:
            if not is_alive(session):
                raise
            return error
        finally:
            self._idle.append(session)

    def _new(self) -> SparkSession:
        session = self._spark.newSession()
        for key, value in self._spark.conf.getAll.items():
            with suppress(PySparkException):  # what a running session cannot be told, it shares with the others
                session.conf.set(key, value)
        self._prepare(session)
        return session


def is_alive(session: SparkSession) -> bool:
    """Return whether Spark still does a job: its errors do not tell a job that failed from a session that has ended."""
    try:
        return session.range(1).count() == 1
    except Exception:
        return False


def cache_archives() -> None:
    """Let importers keep what they know of zip files, such as those with PySpark itself: they do not change.

    Before each task a worker of PySpark tells all importers that files may have changed. Those of zip files then read
    the lists of these again, one for each package in them, and one for Spark's own jar: together 0.1 s.
    """
    for importer in tuple(sys.path_importer_cache.values()):
        if isinstance(importer, zipimporter):
            vars(importer)["invalidate_caches"] = _nothing


def _nothing() -> None:
    """Forget nothing."""
