"""Threads that work on tables side by side, each with a session of its own: settings of one are not another's."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from typing import TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark.execution import plain_errors

__all__ = ["Sessions", "is_alive"]

Item = TypeVar("Item")
Result = TypeVar("Result")


class Sessions:
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
