"""Changes replayed in their order, component by component: what is left are the current rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

__all__ = ["Current", "Event", "Row", "Texts", "replayed"]

Texts: TypeAlias = tuple[str | None, ...]
"""Values as texts, two a column: its own, and that in ``_untyped``."""


class Event(NamedTuple):
    """A change as far as its fate depends on it."""

    op: str
    component: list[str | None]
    old: list[str | None]
    """The key of the row before it, or the whole row."""
    new: list[str | None] | None
    """The same after it."""
    unchanged: list[str] | None
    shape: int
    """Which columns it was described with."""
    commit_lsn: int
    seq: int


@dataclass(slots=True)
class Row:
    """A current row: which event it is from, and from which events the columns are that this one did not send."""

    event: int
    elsewhere: dict[int, int] = field(default_factory=dict)


class Current(ABC):
    """The rows of one component that are current, change by change."""

    @abstractmethod
    def change(self, number: int, event: Event) -> None:
        """Take in the next event, and the number by which its values are found."""

    @abstractmethod
    def rows(self) -> Iterable[Row]:
        """Return the rows that are left."""


def replayed(events: DataFrame, columns: list[str], begin: Callable[[], Current]) -> DataFrame:
    """Return the ``columns`` of the rows that are left of ``events``, and ``_shape``.

    ``events`` has ``_op, _commit_lsn, _seq, _component, _old, _new, _unchanged, _shape`` and the columns. One task
    replays whole components, each in order; it holds one batch, and the batches that an open component still needs.
    Of events at one place deletes come first.
    """
    kept = [*columns, "_shape"]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _Replay(kept, begin).run(batches)

    order = ("_component", "_commit_lsn", "_seq", "_op")
    ordered = events.repartition(F.col("_component")).sortWithinPartitions(*order)
    return ordered.mapInArrow(run, events.select(*kept).schema)


class _Replay:
    """Replays events in order; events are numbered over all batches, and values are fetched by these numbers."""

    def __init__(self, columns: list[str], begin: Callable[[], Current]) -> None:
        self._columns = columns
        self._begin = begin
        self._component: list[str | None] | None = None
        self._current = begin()
        self._done: list[Row] = []
        self._batches: list[pa.RecordBatch] = []
        self._first = 0

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are left, a component as soon as it has ended."""
        number = 0
        for batch in batches:
            self._batches.append(batch.select(self._columns))
            for event in _events(batch):
                if event.component != self._component:
                    self._end_component()
                    self._component = event.component
                self._current.change(number, event)
                number += 1
            yield from self._finished()
        self._end_component()
        yield from self._finished()

    def _end_component(self) -> None:
        self._done += self._current.rows()
        self._current = self._begin()

    def _finished(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ended components, and let go of batches that nothing needs any more."""
        if self._done:
            yield from self._fetch(self._done).to_batches()
            self._done = []
        needed = min((n for row in self._current.rows() for n in (row.event, *row.elsewhere.values())), default=None)
        while self._batches and (needed is None or self._first + self._batches[0].num_rows <= needed):
            self._first += self._batches.pop(0).num_rows

    def _fetch(self, rows: list[Row]) -> pa.Table:
        table = pa.Table.from_batches(self._batches).combine_chunks()
        arrays = [
            table.column(place).take(pa.array([row.elsewhere.get(place, row.event) - self._first for row in rows]))
            for place in range(len(self._columns))
        ]
        return pa.Table.from_arrays(arrays, schema=table.schema)


def _events(batch: pa.RecordBatch) -> Iterator[Event]:
    names = ("_op", "_component", "_old", "_new", "_unchanged", "_shape", "_commit_lsn", "_seq")
    columns: list[list[Any]] = [batch.column(name).to_pylist() for name in names]
    return map(Event._make, zip(*columns, strict=True))
