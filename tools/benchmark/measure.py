"""Measures engines in rounds: each engine runs once per round, so that a disturbance affects all of them."""

import gc
import os
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from tools.benchmark.batch import Batch
from tools.benchmark.errors import BenchmarkError, Unavailable
from tools.benchmark.progress import Progress

__all__ = ["CPUS", "SHORTEST_SAMPLE", "Engine", "Pass", "Result", "Results", "average", "measure", "pin", "timed"]

SHORTEST_SAMPLE = 20_000_000
"""Nanoseconds that one sample must take."""

CPUS = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
"""The CPUs that this process may use, before it is bound to one."""

Pass = Callable[[], int]
"""One pass over a batch; it returns the nanoseconds that it took."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One thing to be measured."""

    name: str
    does: str
    """``parse``, ``build`` or ``limit``."""
    group: str
    """``ours``, ``peers`` or ``limits``."""
    title: str
    start: Callable[[Batch, ExitStack], Pass]
    """Prepares an engine for a batch, or raises Unavailable; resources to close are pushed on the stack."""
    sample: int | None = None
    """The number of messages for a slow engine, sampled evenly; None: all."""
    prepare: Callable[[], object] | None = None
    """What may take long and use every CPU: done before anything is measured."""


@dataclass(frozen=True, slots=True)
class Result:
    """What one engine took for the messages of one case."""

    case: str
    engine: str
    does: str
    messages: int
    bytes: int
    samples: tuple[float, ...]
    """Nanoseconds a message, one number a round."""

    @property
    def ns(self) -> float:
        """The median, in nanoseconds a message."""
        return statistics.median(self.samples)

    @property
    def spread(self) -> float:
        """The distance between the quartiles, as a part of the median."""
        if len(self.samples) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.samples, n=4, method="inclusive")
        return (high - low) / self.ns

    @property
    def messages_per_second(self) -> float:
        """How many messages a second."""
        return 1e9 / self.ns

    @property
    def bytes_per_second(self) -> float:
        """How many bytes of payload a second."""
        return self.messages_per_second * self.bytes / self.messages


@dataclass(slots=True)
class Results:
    """Everything that was measured, and what was not."""

    results: list[Result] = field(default_factory=list)
    skipped: list[tuple[str, str, str]] = field(default_factory=list)
    """Case, engine, and why it was not measured."""

    def find(self, case: str, engine: str) -> Result | None:
        """Return what was measured, or None."""
        return next((found for found in self.results if (found.case, found.engine) == (case, engine)), None)

    def why_not(self, case: str, engine: str) -> str:
        """Return why there is no number."""
        return next((why for *key, why in self.skipped if key == [case, engine]), "not asked for")

    def ratio(self, upper: tuple[str, str], lower: tuple[str, str]) -> float | None:
        """Return how many times longer one (case, engine) takes than another: the median of the rounds' ratios."""
        above, below = self.find(*upper), self.find(*lower)
        if above is None or below is None:
            return None
        return statistics.median(a / b for a, b in zip(above.samples, below.samples, strict=True))


def timed(work: Callable[[], int], expected: int) -> Pass:
    """Return a pass that times ``work``, which returns how many messages it had."""

    def run() -> int:
        began = time.perf_counter_ns()
        count = work()
        took = time.perf_counter_ns() - began
        if count != expected:
            raise BenchmarkError(f"{count} messages came out, {expected} went in")
        return took

    return run


def pin() -> str:
    """Bind this process, and those that it starts, to one CPU where the system can; return what was done."""
    os.environ.setdefault("GOMAXPROCS", "1")
    try:
        import pyarrow as pa
    except ImportError:
        pass
    else:
        pa.set_cpu_count(1)
        pa.set_io_thread_count(1)
    if not hasattr(os, "sched_setaffinity"):
        return "one thread (this system cannot bind a process to one CPU)"
    chosen = max(os.sched_getaffinity(0))  # interrupts are mostly served by the first
    os.sched_setaffinity(0, {chosen})
    return f"one thread, bound to CPU {chosen}"


def measure(batch: Batch, engines: Iterable[Engine], repeat: int, results: Results, progress: Progress) -> None:
    """Measure engines on one case, and add what they took to ``results``."""
    case = batch.case.name
    progress.step(f"{case}: making the engines ready")
    with ExitStack() as stack:
        running: list[tuple[Engine, Batch, Pass]] = []
        for engine in engines:
            progress.detail(f"{case}: making {engine.name} ready")
            try:
                given = batch if engine.sample is None else batch.sample(engine.sample)
                run = engine.start(given, stack)
                run()  # compiles what is compiled on the way, and fills the caches
            except Unavailable as reason:
                results.skipped.append((case, engine.name, str(reason)))
            else:
                running.append((engine, given, run))
        samples = _rounds(case, running, repeat, progress)
        for (engine, given, _), taken in zip(running, samples, strict=True):
            results.results.append(Result(case, engine.name, engine.does, len(given), given.size, tuple(taken)))


def _rounds(
    case: str, running: Sequence[tuple[Engine, Batch, Pass]], repeat: int, progress: Progress
) -> list[list[float]]:
    samples: list[list[float]] = [[] for _ in running]
    gc.collect()
    gc.freeze()  # the batches are no garbage: collections during a pass must not look at them
    try:
        progress.step(f"{case}: {repeat} rounds of {len(running)} engines")
        for number in range(repeat):
            for place in range(len(running)):
                index = (place + number) % len(running)  # each round begins with another one
                engine, given, run = running[index]
                progress.detail(f"{case}: round {number + 1} of {repeat}: {engine.name}")
                samples[index].append(average(run) / len(given))
    finally:
        gc.unfreeze()
    return samples


def average(run: Pass) -> float:
    """Return the nanoseconds of a pass; one that is over at once is repeated, since clocks and caches need longer."""
    taken, passes = 0, 0
    while taken < SHORTEST_SAMPLE:
        taken += run()
        passes += 1
    return taken / passes
