"""Engines of a batch: the columnar kernels, from Arrow arrays of payloads to Arrow arrays of columns."""

import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from tools.benchmark.batch import Batch
from tools.benchmark.errors import Unavailable
from tools.benchmark.measure import CPUS, Engine, Pass, timed

__all__ = ["BATCH_ENGINES", "BATCH_MESSAGES", "Decoder", "decoder", "pieces"]

BATCH_MESSAGES = 65_536
"""Messages in one Arrow batch, about what a change log's reader is given at a time."""

ONE_ARRAY = 10_000_000
MOST_COPIES = 50
"""How large one array is: so many messages, or so many times those that are there."""
THREADS = 2

Decoder = Callable[[Any, Any], Any]
"""From an array of payloads and an array of stream states (or None) to whatever the engine makes of them."""


def pieces(batch: Batch) -> list[tuple[Any, Any]]:
    """Return the payloads in batches of ``BATCH_MESSAGES``, each with its stream states: slices, not copies."""
    starts = range(0, len(batch), BATCH_MESSAGES)
    states = batch.states
    return [
        (batch.array.slice(start, BATCH_MESSAGES), None if states is None else states.slice(start, BATCH_MESSAGES))
        for start in starts
    ]


def decoder(name: str, batch: Batch) -> Decoder:
    """Return what decodes one Arrow batch; raise Unavailable where the package or its extra lacks it."""
    try:
        from pgoutput_construct import columnar
    except ImportError as error:
        raise Unavailable(f"needs the extra columnar: {error}") from error
    return _DECODERS[name](columnar, batch)


def _index(columnar: Any, batch: Batch) -> Decoder:
    options = {"proto_version": batch.case.proto_version, "streaming": batch.case.streaming}
    return lambda payloads, states: columnar.index_batch(payloads, states, **options)


def _messages(columnar: Any, batch: Batch) -> Decoder:
    index = _index(columnar, batch)
    return lambda payloads, states: index(payloads, states).messages()


def _rows(columnar: Any, batch: Batch, threads: int = 1) -> Decoder:
    stream = columnar.BatchDecoder(batch.case.proto_version, batch.case.streaming, threads=threads)

    def decode(payloads: Any, _states: Any) -> Any:
        decoded = stream.decode(payloads)
        if decoded.errors:
            raise decoded.errors[0]
        return decoded

    return decode


@lru_cache(maxsize=1)
def _one_array(batch: Batch) -> Any:
    """Return ten million messages as one array, or as many times the batch's as are allowed."""
    import pyarrow as pa

    if batch.case.streaming != "off":
        raise Unavailable("changes of a stream cannot be repeated")
    changes = batch.rows().array.cast(pa.large_binary())
    copies = min(ONE_ARRAY // len(batch), MOST_COPIES)
    return pa.concat_arrays([batch.array.cast(pa.large_binary()), *[changes] * copies])


def _one(batch: Batch, stack: ExitStack, name: str = "rows") -> Pass:
    """Decode one large array; its time is that of one batch."""
    array = _one_array(batch)
    stack.callback(_one_array.cache_clear)  # more than a GB
    decoder(name, batch)

    def work() -> int:
        decoder(name, batch)(array, None)
        return len(array)

    run = timed(work, len(array))
    return lambda: run() * len(batch) // len(array)


def _one_on_two(batch: Batch, stack: ExitStack) -> Pass:
    return _on_two_cpus(_one(batch, stack, "rows-2"))


def _batches_on_two(batch: Batch, _stack: ExitStack) -> Pass:
    parts = pieces(batch)

    def work() -> int:
        decode = decoder("rows-2", batch)
        return sum(len(decode(payloads, states).index) for payloads, states in parts)

    return _on_two_cpus(timed(work, len(batch)))


def _on_two_cpus(run: Pass) -> Pass:
    if len(CPUS) < THREADS:
        raise Unavailable("there is one CPU")

    def bound() -> int:
        before = os.sched_getaffinity(0)
        _bind(CPUS[-THREADS:])
        try:
            return run()
        finally:
            _bind(before)

    return bound


def _bind(cpus: Iterable[int]) -> None:
    """Bind all threads of this process: those that were made while it was bound to one CPU would stay on that."""
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), cpus)


_DECODERS: dict[str, Callable[[Any, Batch], Decoder]] = {
    "index": _index,
    "messages": _messages,
    "rows": _rows,
    "rows-2": partial(_rows, threads=THREADS),
}


def _engine(name: str, title: str) -> Engine:
    def start(batch: Batch, _stack: ExitStack) -> Pass:
        parts = pieces(batch)
        decoder(name, batch)  # Unavailable is raised here, not while measuring

        def work() -> int:
            decode = decoder(name, batch)  # a stream from its start: the last pass may have ended inside one
            count = 0
            for payloads, states in parts:
                decode(payloads, states)
                count += len(payloads)
            return count

        return timed(work, len(batch))

    return Engine(name, "parse", "ours", title, start)


BATCH_ENGINES = (
    _engine("index", "columnar: where every field and value stands"),
    _engine("messages", "columnar: a row a message, header fields as columns"),
    _engine("rows", "columnar: the table's rows, every column typed"),
    Engine("rows-2", "parse", "ours", "the same, on two threads", _batches_on_two),
    Engine("rows-one", "parse", "ours", "the same, ten million messages as one array", _one),
    Engine("rows-one-2", "parse", "ours", "the same array, on two threads", _one_on_two),
)
"""The engines that take a batch at a time."""
