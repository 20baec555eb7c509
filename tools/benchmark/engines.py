"""All engines, the lower bounds among them (copying, Arrow alone), and their selection by name."""

from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from typing import Any

from tools.benchmark import harness, pypgoutput
from tools.benchmark.batch import Batch
from tools.benchmark.batches import BATCH_ENGINES, pieces
from tools.benchmark.errors import Unavailable
from tools.benchmark.harness import CODECS, HARNESSES, Harness
from tools.benchmark.measure import Engine, Pass, timed
from tools.benchmark.messages import MESSAGE_ENGINES

__all__ = ["GROUPS", "choose", "engines"]

GROUPS = ("ours", "languages", "peers", "limits")
"""Names of groups of engines."""

_PYPGOUTPUT = Engine(
    "pypgoutput",
    "parse",
    "peers",
    "pypgoutput (Python): its decoders",
    pypgoutput.start,
    sample=50_000,
    prepare=pypgoutput.prepare,
)


def engines() -> tuple[Engine, ...]:
    """Return every engine."""
    return (*MESSAGE_ENGINES, *BATCH_ENGINES, _PYPGOUTPUT, *map(_peer, HARNESSES), *map(_codec, CODECS), *LIMIT_ENGINES)


def choose(known: Iterable[Engine], names: Iterable[str]) -> list[Engine]:
    """Return the engines with these names, or of these groups; all if there are no names."""
    selected = set(names)
    return [engine for engine in known if not selected or {engine.name, engine.group} & selected]


def _peer(foreign: Harness) -> Engine:
    start, prepare = partial(harness.start, foreign), partial(harness.prepare, foreign)
    return Engine(foreign.name, "parse", "peers", foreign.title, start, prepare=prepare)


def _codec(own: Harness) -> Engine:
    start, prepare = partial(harness.start, own), partial(harness.prepare, own)
    return Engine(own.name, "parse", "languages", own.title, start, prepare=prepare)


def _bytes_of(array: Any) -> Any:
    """Return the payloads of an Arrow array as one NumPy array, without a copy."""
    import numpy as np

    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(array.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]


def _memcpy(batch: Batch, _stack: ExitStack) -> Pass:
    import numpy as np

    parts = [(_bytes_of(payloads), len(payloads)) for payloads, _ in pieces(batch)]
    target = np.zeros(max(len(part) for part, _ in parts), np.uint8)

    def work() -> int:
        count = 0
        for part, messages in parts:
            np.copyto(target[: len(part)], part)
            count += messages
        return count

    return timed(work, len(batch))


def _copy(batch: Batch, _stack: ExitStack) -> Pass:
    parts = [(_bytes_of(payloads), len(payloads)) for payloads, _ in pieces(batch)]

    def work() -> int:
        count = 0
        for part, messages in parts:
            part.copy()
            count += messages
        return count

    return timed(work, len(batch))


def cast_column(texts: Any, kind: Any) -> Any:
    """Have Arrow make a typed column of PostgreSQL's texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.equal(texts, "t") if pa.types.is_boolean(kind) else texts.cast(kind)


def _split(batch: Batch) -> list[tuple[Any, Any]]:
    """Return each column's texts, one a row, as Arrow strings, with the type that the column should have."""
    import pyarrow as pa

    from pgoutput_construct import columnar

    schema = columnar.columns_schema(batch.description())
    rows = [new for message in batch.messages if (new := getattr(message, "new", None)) is not None]
    columns: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)]
    texts = [[value if isinstance(value, bytes) else None for value in column] for column in columns]
    arrays = [pa.array(column, pa.binary()).cast(pa.string()) for column in texts]
    return list(zip(arrays, schema.types, strict=True))


def _cast(batch: Batch, _stack: ExitStack) -> Pass:
    if batch.case.binary:
        raise Unavailable("Arrow has no cast from binary values")
    columns = _split(batch)

    def work() -> int:
        for texts, kind in columns:
            cast_column(texts, kind)
        return len(batch)

    return timed(work, len(batch))


LIMIT_ENGINES = (
    Engine("memcpy", "limit", "limits", "copying the payloads into memory that is there", _memcpy),
    Engine("copy", "limit", "limits", "copying the payloads into new memory", _copy),
    Engine("cast", "limit", "limits", "Arrow casts the new rows' columns from split strings", _cast),
)
"""What the engines of a batch are compared with."""
