"""Engines of a batch: the columnar kernels, from Arrow arrays of payloads to Arrow arrays of columns."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from tools.benchmark.batch import Batch
from tools.benchmark.errors import Unavailable
from tools.benchmark.measure import Engine, Pass, timed

__all__ = ["BATCH_ENGINES", "BATCH_MESSAGES", "Decoder", "decoder", "pieces"]

BATCH_MESSAGES = 65_536
"""Messages in one Arrow batch, about what a change log's reader is given at a time."""

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


def _rows(columnar: Any, batch: Batch) -> Decoder:
    stream = columnar.BatchDecoder(batch.case.proto_version, batch.case.streaming)

    def decode(payloads: Any, _states: Any) -> Any:
        decoded = stream.decode(payloads)
        if decoded.errors:
            raise decoded.errors[0]
        return decoded

    return decode


_DECODERS: dict[str, Callable[[Any, Batch], Decoder]] = {"index": _index, "messages": _messages, "rows": _rows}


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
)
"""The engines that take a batch at a time."""
