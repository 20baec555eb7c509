"""Checks that the cost per item is constant: messages among 10^4 to 10^7, columns among 1 to 1600."""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pgoutput_construct as pgo
from tools.benchmark.batch import Batch
from tools.benchmark.batches import decoder
from tools.benchmark.cases import Case
from tools.benchmark.errors import Unavailable
from tools.benchmark.measure import Pass, average, timed
from tools.benchmark.messages import MESSAGE_ENGINES
from tools.benchmark.progress import Progress

__all__ = ["COLUMN_COUNTS", "MESSAGE_COUNTS", "SCALED", "Point", "growth", "scale"]

MESSAGE_COUNTS = (10_000, 100_000, 1_000_000, 10_000_000)
"""Messages in one batch."""
COLUMN_COUNTS = (1, 3, 10, 30, 100, 300, 1000, 1600)
"""Columns of one table; PostgreSQL has no table with more."""
SCALED = ("codec", "index", "messages", "rows")
"""The engines that are looked at."""

_ROWS = 4096  # the same for every number of columns: what a batch costs for each column is shared by its rows
_MEMORY_FACTOR = 6
_INT4 = 23


@dataclass(frozen=True, slots=True)
class Point:
    """The cost at one size."""

    engine: str
    per: str
    """``message`` or ``column``."""
    size: int
    """Messages in the batch, or columns of the table."""
    ns: float | None
    """Nanoseconds a message, or a message's column; None where the machine's memory is too small."""


def growth(points: list[Point]) -> float | None:
    """Return how many times more the cost is at a size than at a smaller one, at worst."""
    costs = [point.ns for point in points if point.ns is not None]
    return max((costs[n] / min(costs[:n]) for n in range(1, len(costs))), default=None)


def scale(batch: Batch, limit: int, repeat: int, progress: Progress) -> Iterator[Point]:
    """Measure each engine at each size up to ``limit`` messages; ``batch`` is what is repeated."""
    for count in (count for count in MESSAGE_COUNTS if count <= limit):
        large = _repeated(batch, count)
        yield from _points("message", count, large, count, repeat, progress)
    for columns in COLUMN_COUNTS:
        rows = min(_ROWS, limit)
        yield from _points("column", columns, _table(columns, rows), rows * columns, repeat, progress)


def _points(per: str, size: int, batch: Batch, units: int, repeat: int, progress: Progress) -> Iterator[Point]:
    progress.step(f"scaling: {size:,} {per}s")
    fits = batch.size * _MEMORY_FACTOR < _free_memory()
    for engine in SCALED:
        progress.detail(f"scaling: {engine}, {size:,} {per}s")
        if not fits:
            yield Point(engine, per, size, None)
            continue
        try:
            with ExitStack() as stack:
                yield Point(engine, per, size, _median(_pass(engine, batch, stack), repeat) / units)
        except Unavailable:
            continue


def _pass(name: str, batch: Batch, stack: ExitStack) -> Pass:
    for engine in MESSAGE_ENGINES:
        if engine.name == name:
            return engine.start(batch, stack)
    return timed(_whole(name, batch), len(batch))


def _whole(name: str, batch: Batch) -> Callable[[], int]:
    """Decode everything as one Arrow batch: that is what must not cost more when it is large."""
    decode = decoder(name, batch)

    def work() -> int:
        decode(batch.array, batch.states)
        return len(batch)

    return work


def _median(run: Pass, repeat: int, seconds: float = 5.0) -> float:
    """Return the median of some passes: of ``repeat``, or fewer where they take long."""
    run()
    taken: list[float] = []
    deadline = time.monotonic() + seconds
    while not taken or (len(taken) < repeat and time.monotonic() < deadline):
        taken.append(average(run))
    return statistics.median(taken)


def _repeated(batch: Batch, count: int) -> Batch:
    times = count // len(batch) + 1
    return Batch(batch.case, ([*batch.payloads] * times)[:count], ([*batch.in_stream] * times)[:count])


def _table(columns: int, rows: int) -> Batch:
    """Return the rows of a table of int4 columns, as a server would send them."""
    described = tuple(pgo.RelationColumn(0, f"c{number}", _INT4, -1) for number in range(columns))
    relation = pgo.Relation(None, 1, "public", "t", "d", described)
    texts = [str(number * 7919 % 100_000).encode() for number in range(columns + 97)]
    inserts = (pgo.Insert(None, 1, tuple(texts[row % 97 : row % 97 + columns])) for row in range(rows))
    case = Case(f"{columns} columns", "", (), (), "")
    return Batch(case, [pgo.build(relation), *(pgo.build(insert) for insert in inserts)])


def _free_memory() -> int:
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 4 << 30
