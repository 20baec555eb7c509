"""Kills of ``replicate``: its process ends at a moment of a batch, and the next one finds what it has left.

A batch is *intent, produce, commit, note*: how these come to pass in today's code is said here, and nowhere else in
tests. A process that was killed writes nothing more, also where its code would clean up.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import pytest

from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.lake._notes import Dataset, Progress, Warehouse
from pgoutput_construct.lake._versions import Version
from pgoutput_construct.spark._replicate.arrow_writes import ProducedFiles
from pgoutput_construct.spark._replicate.new_rows import NewRows
from pgoutput_construct.spark._table_formats.iceberg_files import IcebergTable
from pgoutput_construct.spark._table_formats.parquet_sink import ParquetSink
from pgoutput_construct.spark._table_formats.sink import NewFiles, Sink
from pgoutput_construct.spark._table_formats.sinks import open_sink

__all__ = ["Killed", "Moment", "Point", "after", "before", "killed"]

_SECONDS = 300
"""For how long a table waits for others to come to the moment."""
_PRODUCERS = ("replace", "append", "merge", "overwrite", "record")
"""The methods of a sink that write a dataset with Spark, and commit it."""


class Killed(BaseException):
    """The process ends here."""


class Moment(StrEnum):
    """When a batch is killed."""

    BEFORE_INTENT = "before intent"
    """Nothing says yet that the batch begins."""
    AFTER_INTENT = "after intent"
    """It is noted what the tables are about to become."""
    AMID_COMMIT = "amid commit"
    """What was written without Spark is stored, and no table has it; of a merge in parts, its branch has them all."""
    AFTER_COMMIT = "after commit"
    """The table has it. Of Parquet the note is the commit."""
    BEFORE_NOTE = "before note"
    """The table is described, too, and its note is as it was."""


class Point(NamedTuple):
    """A function whose caller dies."""

    owner: Any
    """What has the function: a class or a module."""
    name: str
    is_after: bool = False
    """Whether the function has returned."""
    condition: Callable[..., bool] = lambda *_: True
    """Which of its calls count, by their arguments."""


def before(owner: Any, name: str) -> Point:
    """Return the point before a function is called."""
    return Point(owner, name)


def after(owner: Any, name: str) -> Point:
    """Return the point after a function has returned."""
    return Point(owner, name, True)


def _points_of(moment: Moment, into: str, in_parts: bool) -> list[Point]:
    """Return the points of a moment."""
    match moment:
        case Moment.BEFORE_INTENT | Moment.AFTER_INTENT:
            return [Point(Warehouse, "write_progress", moment is Moment.AFTER_INTENT, _is_intent)]
        case Moment.AMID_COMMIT if in_parts:
            return [before(IcebergTable, "fast_forward")]
        case Moment.AMID_COMMIT:
            # The metadata of a commit is the last thing that is made for it.
            return [before(ParquetSink, "noted") if into == "parquet" else before(Warehouse, "commit_text")]
        case Moment.AFTER_COMMIT if into == "parquet":
            return [after(Warehouse, "write_note")]
        case Moment.AFTER_COMMIT:
            return [after(owner, name) for owner, name in _committing()]
    return [before(Warehouse, "write_note")]


def _is_intent(warehouse: Warehouse, progress: Progress) -> bool:
    return not progress.done


def _committing() -> Iterator[tuple[type, str]]:
    """Yield the methods that commit a dataset."""
    assert callable(open_sink)  # imports the sinks
    for owner in (*_subclasses(Sink), *_subclasses(NewFiles)):
        yield from ((owner, name) for name in (*_PRODUCERS, "commit") if name in vars(owner))


def _subclasses(owner: type) -> Iterator[type]:
    for each in owner.__subclasses__():
        yield each
        yield from _subclasses(each)


@dataclass
class _Death:
    """What a process that is killed was about to do."""

    skip: int
    spared: str
    deaths: int
    """How many tables come to the moment before any of them dies."""
    tables: dict[str, str] = field(default_factory=dict)
    """The tables that were killed, a history as ``NAME.history``, each with what wrote it: a method of a sink, rows as
    ``new``, ``few`` or ``deletes``.
    """
    threads: set[int] = field(default_factory=lambda: {threading.get_ident()})
    """The threads that write nothing after the first death."""
    is_dead: bool = False
    lock: threading.Condition = field(default_factory=threading.Condition)
    work: threading.local = field(default_factory=threading.local)
    """What a thread writes (``by``), and to which table."""

    def reach(self, arguments: tuple[Any, ...]) -> None:
        """Die at a point, unless it is that of a table that is spared, or its turn has not come."""
        table = getattr(self.work, "table", None) or _table_of(arguments)
        with self.lock:
            if table == self.spared:
                return
            if self.skip:
                self.skip -= 1
                return
            if table:
                self.tables[table] = getattr(self.work, "by", "")
                self.lock.notify_all()
                self.lock.wait_for(lambda: len(self.tables) >= self.deaths, _SECONDS)
            self.is_dead = True
            self.threads.add(threading.get_ident())
        raise Killed

    def check_alive(self) -> None:
        """Raise Killed in a thread that is dead."""
        if self.is_dead and threading.get_ident() in self.threads:
            raise Killed


def _table_of(arguments: tuple[Any, ...]) -> str | None:
    """Return the table that a function is called for, None for none."""
    for each in arguments:
        match each:
            case ProducedFiles():
                return _table_of((each.files,))
            case NewFiles():
                return _table_of((each._dataset,))  # type: ignore[attr-defined]
            case Dataset():
                return each.version.table + (".history" if each.is_history else "")
            case Version():
                return each.table
    return None


@contextmanager
def killed(
    at: Moment | Point, into: str = "", in_parts: bool = False, *, skip: int = 0, spared: str = "", deaths: int = 1
) -> Iterator[dict[str, str]]:
    """Expect that a block is killed at a moment or a point, in each thread that comes to it.

    Yield the tables that were killed, and what wrote them (``_Death.tables``).

    Args:
        at: The moment, or the point.
        into: The format of the tables, where the moment is one of a commit.
        in_parts: Whether that is one of a merge in parts.
        skip: How many times it is passed before.
        spared: A table that is never killed.
        deaths: How many tables come to the moment, each in a thread of its own, before any of them dies.
    """
    points = _points_of(at, into, in_parts) if isinstance(at, Moment) else [at]
    death = _Death(skip, spared, deaths)
    with pytest.MonkeyPatch.context() as patched, pytest.raises(Killed):
        for owner, name in ((LocalStore, "writing"), (LocalStore, "delete"), (LocalStore, "remove")):
            patched.setattr(owner, name, _while_alive(death, getattr(owner, name)))
        patched.setattr(IcebergTable, "drop_branch", _while_alive(death, IcebergTable.drop_branch))
        for owner, name in (*_committing(), (NewRows, "write"), (ProducedFiles, "commit")):
            patched.setattr(owner, name, _watched(death, owner, name))
        for point in points:
            patched.setattr(point.owner, point.name, _dying(death, point))
        yield death.tables


def _while_alive(death: _Death, function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arguments: Any, **options: Any) -> Any:
        death.check_alive()
        return function(*arguments, **options)

    return run


def _watched(death: _Death, owner: type, name: str) -> Callable[..., Any]:
    """Return a function that notes what a thread does."""
    function = getattr(owner, name)

    def run(*arguments: Any, **options: Any) -> Any:
        if name != "commit":
            death.work.by = "new" if name == "write" else name
        elif owner is ProducedFiles:
            death.work.by = "few" if arguments[0].deletes is None else "deletes"
        death.work.table = _table_of(arguments)
        return function(*arguments, **options)

    return run


def _dying(death: _Death, point: Point) -> Callable[..., Any]:
    """Return a function before or after which its thread dies."""
    function = getattr(point.owner, point.name)

    def run(*arguments: Any, **options: Any) -> Any:
        if not point.condition(*arguments):
            return function(*arguments, **options)
        if not point.is_after:
            death.reach(arguments)
        found = function(*arguments, **options)
        if point.is_after:
            death.reach(arguments)
        return found

    return run
