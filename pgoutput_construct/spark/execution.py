"""What Spark executes for this package: tasks, rows that plans begin with, and the errors of both."""

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.utils import is_remote

from pgoutput_construct import errors
from pgoutput_construct.changelog._facts.copies import snapshot_command
from pgoutput_construct.changelog._store.store import MissingFileError
from pgoutput_construct.errors import ChangeLogError, PgoutputError

__all__ = ["AS_IT_COMES", "Demand", "as_leaf", "deal", "plain_errors", "prefixed", "reason_of", "refuse"]

_OURS = re.compile(r"pgoutput_construct\.[\w.]*?(\w+Error): (.+)")
_PLANNED: Final = "PYTHON_DATA_SOURCE_ERROR"
"""The condition of an error that our data source raised when Spark made a plan with it."""
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
        # Of a plan that Spark refuses, the text may have what the plan would fail with.
        is_refused = isinstance(error, AnalysisException) and error.getCondition() != _PLANNED
        found = [] if is_refused else _OURS.findall(str(error))
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


_VALUE: Final = (
    ": the change of the row ",
    " does not send the value of the column '",
    "' (as of unchanged TOASTed ones), and the log does not have the row before it",
)
_ROW: Final = (": the row ", " is changed and is not there")
_EARLIER: Final = (": the row ", " is changed there, or before, and is not there")


@dataclass(frozen=True)
class Demand:
    """What is asked of the changes of a table."""

    values: bool = True
    """A value that a change does not send, and that no row has, is an error; else it is null."""
    rows: bool = False
    """So is every change of a row that is not there: the log has all rows of the table."""
    table: str = ""
    """The table as SQL writes it, for what is said."""

    def refuse_value(self, place: Column, key: Column, name: Column) -> Column:
        """Return what fails since the change at a place, of the row ``key``, leaves the column ``name`` open."""
        return self._refuse(place, _VALUE[0], key, _VALUE[1], name, _VALUE[2])

    def refuse_row(self, place: Column, key: Column) -> Column:
        """Return what fails since the last change of the row ``key``, at a place, or one before it, finds none."""
        return self._refuse(place, _EARLIER[0], key, f"{_EARLIER[1]}{self.remedy}")

    def row_error(self, commit_lsn: int, seq: int, key: str) -> ChangeLogError:
        """Return the error of a change at a place, of the row ``key``, that finds none."""
        return self._error(commit_lsn, seq, _ROW[0], key, f"{_ROW[1]}{self.remedy}")

    @property
    def remedy(self) -> str:
        """Why a row must be there, and what to do where it is not."""
        return (
            ", though the log has all rows of this table: some of its changes are missing, or there twice; copy the "
            f"table again ({snapshot_command(self.table)}), or go on without such rows, and "
            'have them reported (on_missing="report", --on-missing report)'
        )

    def _refuse(self, place: Column, *parts: Column | str) -> Column:
        where = f"{self._title}commit ", place["_commit_lsn"], ", seq ", place["_seq"], " in it"
        return refuse(*where, *parts).cast("boolean")

    def _error(self, commit_lsn: int, seq: int, *parts: str) -> ChangeLogError:
        return ChangeLogError(f"{self._title}commit {commit_lsn}, seq {seq} in it{''.join(parts)}")

    @property
    def _title(self) -> str:
        return f"{self.table}: " if self.table else ""


AS_IT_COMES: Final = Demand(values=False)
"""Nothing is asked: what is not known is null."""


def refuse(*parts: Column | str) -> Column:
    """Return a column that fails with a ChangeLogError when it is evaluated."""
    texts = (F.lit(part) if isinstance(part, str) else part.cast("string") for part in (prefixed(""), *parts))
    return F.raise_error(F.concat_ws("", *texts))


def prefixed(text: str) -> str:
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


def deal(
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
