"""Changes of rows that share keys, replayed in order: what is left are the current rows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.errors import ChangeLogError

__all__ = ["replayed"]

Key = tuple[str | None, ...]


def replayed(events: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return the rows that are left of ``events``, columns ``c0, c1 ...`` for ``names``.

    ``events`` has ``_op, _commit_lsn, _seq, _component, _old, _new, _unchanged`` and the columns. One task replays
    whole components, each in order; it holds one batch, and the batches that an open component still needs.
    """
    places = {name: index for index, name in enumerate(names)}
    columns = [f"c{index}" for index in range(len(names))]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _Replay(columns, places).run(batches)

    order = ("_component", "_commit_lsn", "_seq")
    ordered = events.repartition(F.col("_component")).sortWithinPartitions(*order)
    return ordered.mapInArrow(run, events.select(*columns).schema)


class _Event(NamedTuple):
    op: str
    component: list[str | None]
    old: list[str | None]
    new: list[str | None] | None
    unchanged: list[str] | None
    commit_lsn: int
    seq: int


@dataclass(slots=True)
class _Row:
    """A current row: which event it is from, and from which events the columns are that this one did not send."""

    event: int
    elsewhere: dict[int, int] = field(default_factory=dict)


class _Replay:
    """Replays events in order; events are numbered over all batches, and values are fetched by these numbers."""

    def __init__(self, columns: list[str], places: dict[str, int]) -> None:
        self._columns = columns
        self._places = places
        self._component: list[str | None] | None = None
        self._state: dict[Key, _Row] = {}
        self._done: list[_Row] = []
        self._batches: list[pa.RecordBatch] = []
        self._first = 0

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are left, a component as soon as it has ended."""
        number = 0
        for batch in batches:
            self._batches.append(batch.select(self._columns))
            for event in _events(batch):
                self._apply(number, event)
                number += 1
            yield from self._finished()
        self._end_component()
        yield from self._finished()

    def _apply(self, number: int, event: _Event) -> None:
        if event.component != self._component:
            self._end_component()
            self._component = event.component
        before = None if event.op == "insert" else self._state.pop(tuple(event.old), None)
        if event.new is None:
            return
        row = _Row(number)
        for name in event.unchanged or ():
            self._carry(row, before, name, event)
        self._state[tuple(event.new)] = row

    def _carry(self, row: _Row, before: _Row | None, name: str, event: _Event) -> None:
        place = self._places.get(name)
        if place is None:
            return  # a column that the table no longer has
        if before is None:
            raise ChangeLogError(
                f"commit {event.commit_lsn}, seq {event.seq} in it: the update of the row {event.old} does not "
                f"send the TOASTed column {name!r}, and the log does not have the row before it"
            )
        row.elsewhere[place] = before.elsewhere.get(place, before.event)

    def _end_component(self) -> None:
        self._done += self._state.values()
        self._state = {}

    def _finished(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ended components, and let go of batches that nothing needs any more."""
        if self._done:
            yield from self._fetch(self._done).to_batches()
            self._done = []
        needed = min((n for row in self._state.values() for n in (row.event, *row.elsewhere.values())), default=None)
        while self._batches and (needed is None or self._first + self._batches[0].num_rows <= needed):
            self._first += self._batches.pop(0).num_rows

    def _fetch(self, rows: list[_Row]) -> pa.Table:
        table = pa.Table.from_batches(self._batches).combine_chunks()
        arrays = [
            table.column(place).take(pa.array([row.elsewhere.get(place, row.event) - self._first for row in rows]))
            for place in range(len(self._columns))
        ]
        return pa.Table.from_arrays(arrays, schema=table.schema)


def _events(batch: pa.RecordBatch) -> Iterator[_Event]:
    names = ("_op", "_component", "_old", "_new", "_unchanged", "_commit_lsn", "_seq")
    columns: list[list[Any]] = [batch.column(name).to_pylist() for name in names]
    return map(_Event._make, zip(*columns, strict=True))
