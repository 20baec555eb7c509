"""Hundreds of millions of mutated payloads, through the kernels and the codec."""

import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Final

from pgoutput_construct.wire.options import combinations
from tools.fuzz.compare import Compared, compare_frames, compare_payloads
from tools.fuzz.mutate import Pool, mutated, pool
from tools.fuzz.seeds import frames, payloads

__all__ = ["BATCH", "Report", "run"]

BATCH: Final = 20_000
"""Payloads of a batch; the number of the batch, with the seed, says which ones, and under which options."""
_OPTIONS: Final = tuple(combinations())
_FRAMES: Final = len(_OPTIONS)
"""Which of the batches in a round has frames; each of the others has payloads under a combination of options."""
_NEVER_REPEATED: Final = 1 << 40
_SHOWN: Final = 20
_EVERY_SECONDS: Final = 10


@dataclass
class Report:
    """The results of all batches."""

    payloads: int = 0
    accepted: Counter[str] = field(default_factory=Counter)
    """How many of each class both engines accepted."""
    problems: list[str] = field(default_factory=list)
    """Payloads on which the engines disagree."""

    def add(self, number: int, compared: Compared) -> None:
        """Add the result of a batch."""
        self.payloads += compared.payloads
        self.accepted.update(compared.kinds)
        place = f"batch {number}, {_about(number)}"
        self.problems += [f"{place}: {payload.hex()}: {what}" for payload, what in compared.problems]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report."""
        kinds = ", ".join(f"{name} {count:,}" for name, count in self.accepted.items())
        yield f"{self.payloads:,} payloads, {self.accepted.total():,} accepted by both: {kinds}"
        yield from self.problems[:_SHOWN]
        yield f"{len(self.problems)} disagreements of the kernels with the codec"


def run(count: int, seed: int, jobs: int = 1) -> Report:
    """Compare at least ``payloads`` payloads, mutated by ``seed``, in ``jobs`` processes."""
    first = seed * _NEVER_REPEATED
    numbers = range(first, first + -(-count // BATCH))
    report, begun, said = Report(), time.monotonic(), 0.0
    for number, compared in _all(numbers, jobs):
        report.add(number, compared)
        passed = time.monotonic() - begun
        if passed - said > _EVERY_SECONDS:
            said = passed
            print(
                f"{report.payloads:,} payloads, {report.payloads / passed:,.0f} a second", file=sys.stderr, flush=True
            )
    return report


def _all(numbers: Sequence[int], jobs: int) -> Iterator[tuple[int, Compared]]:
    if jobs == 1:
        yield from ((number, _compare(number)) for number in numbers)
        return
    rest, pending = iter(numbers), list[tuple[int, Future[Compared]]]()
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as workers:
        while pending or (pending := [(n, workers.submit(_compare, n)) for n in islice(rest, 1)]):
            pending += [(n, workers.submit(_compare, n)) for n in islice(rest, 2 * jobs - len(pending))]
            number, future = pending.pop(0)
            yield number, future.result()


@cache
def _pools() -> tuple[Pool, Pool]:
    return pool([seed.payload for seed in payloads()]), pool(frames())


def _compare(number: int) -> Compared:
    of_payloads, of_frames = _pools()
    kind = number % (_FRAMES + 1)
    if kind == _FRAMES:
        return compare_frames(mutated(of_frames, BATCH, number))
    return compare_payloads(mutated(of_payloads, BATCH, number), _OPTIONS[kind])


def _about(number: int) -> str:
    kind = number % (_FRAMES + 1)
    return "frames" if kind == _FRAMES else str(_OPTIONS[kind])
