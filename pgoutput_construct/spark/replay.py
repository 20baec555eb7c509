"""Changes replayed in their order, component by component, for rows that have to be followed one by one."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

__all__ = ["Current", "Event", "Row", "Texts", "replayed"]

Texts: TypeAlias = tuple[str | None, ...]
"""Values as texts, two a column: its own, and that in ``_untyped``."""


class Event(NamedTuple):
    """A change of one row, as far as its fate depends on it; its fields are the columns of ``replayed``."""

    component: Any
    """Whose rows it is among."""
    key: list[str | None]
    """The key of the row, or the whole row."""
    former: list[str | None] | None
    """The key that the row had before the change, where that is another one."""
    gone: bool
    """Whether the row is no more."""
    needs: bool
    """Whether it must have been there, under this key."""
    unchanged: list[str] | None
    """The columns that were left out."""
    shape: int
    """Which columns it was described with."""


@dataclass(slots=True)
class Row:
    """A row that is left: which event it is from, and from which events the columns are that this one did not send."""

    event: int
    elsewhere: dict[int, int] = field(default_factory=dict)
    said: tuple[Any, ...] = ()
    """What the replay found out about it, for additional columns."""


class Current(ABC):
    """The rows of one component, change by change."""

    @abstractmethod
    def change(self, number: int, event: Event) -> None:
        """Take in the next event, and the number by which its values are found."""

    @abstractmethod
    def rows(self) -> Iterable[Row]:
        """Return the rows that are left."""


def replayed(
    events: DataFrame, columns: Sequence[str], order: Sequence[str], begin: Callable[[], Current], said: pa.Schema
) -> DataFrame:
    """Return the ``columns`` of the rows that are left of ``events``, and those of ``said``, found on the way.

    ``events`` has those of ``Event``, with an underscore before them; ``order`` is what they are sorted by. One task
    replays whole components; it holds one batch, and those that an open component still needs.
    """
    kept = list(columns)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _Replay(kept, begin, said).run(batches)

    ordered = events.repartition(F.col("_component")).sortWithinPartitions("_component", *order)
    fields = [*events.select(*kept).schema, *from_arrow_schema(said)]
    return ordered.mapInArrow(run, T.StructType(fields))


class _Replay:
    """Replays events in order; events are numbered over all batches, and values are fetched by these numbers."""

    def __init__(self, columns: list[str], begin: Callable[[], Current], said: pa.Schema) -> None:
        self._columns = columns
        self._begin = begin
        self._said = said
        self._component: Any = None
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
        said = zip(self._said, zip(*(row.said for row in rows), strict=True), strict=True)
        arrays += [pa.array(values, field.type) for field, values in said]
        return pa.Table.from_arrays(arrays, schema=pa.schema([*table.schema, *self._said]))


def _events(batch: pa.RecordBatch) -> Iterator[Event]:
    columns: list[list[Any]] = [batch.column(f"_{name}").to_pylist() for name in Event._fields]
    return map(Event._make, zip(*columns, strict=True))
