"""Compares the kernels with the codec: which payloads of a batch each accepts, and every field of those."""

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.columnar import frame_kernels, index_batch, kernels
from pgoutput_construct.columnar.header_columns import HeaderColumn, read_columns
from pgoutput_construct.columnar.index import BatchIndex, payload_bounds
from pgoutput_construct.pgtypes.kernels.row_plan import ENTRIES, lay_out
from pgoutput_construct.wire import codec, frame_codec
from pgoutput_construct.wire.codec_runtime import PAD, REJECTIONS
from pgoutput_construct.wire.engine import engine
from pgoutput_construct.wire.messages import BY_TAG, VALUE_TAGS, VALUES
from pgoutput_construct.wire.options import STATE_PARAMETERS
from pgoutput_construct.wire.protocol import ParseOptions

__all__ = ["Compared", "compare_frames", "compare_payloads"]

Numbers = NDArray[np.int64]

_SIDES: Final = ("new", "old")
_KINDS: Final = {tag: VALUES[kind] for kind, tag in VALUE_TAGS.items()}
"""What a value in a row is in Python, a constant or a class of bytes, by its tag."""


class Compared(NamedTuple):
    """What was found in a batch."""

    payloads: int
    accepted: int
    problems: list[tuple[bytes, str]]
    """Payloads on which the engines disagree, and how."""
    kinds: dict[str, int]
    """How many of each class were accepted."""


def compare_payloads(payloads: pa.Array, options: ParseOptions) -> Compared:
    """Read payloads by the kernels and by the codec under options."""
    given = options._asdict()
    states: dict[str, Any] = {name: np.full(len(payloads), given.pop(name)) for name in STATE_PARAMETERS}
    index = index_batch(payloads, **states, **given)
    fast = engine(**options._asdict())
    problems, messages = _acceptance(payloads, index.valid, fast._readers)
    found = _Problems(payloads, problems)
    kinds = {}
    for tag, (name, read, fields) in kernels.READERS.items():
        rows = np.flatnonzero((index.tags == tag) & index.valid)
        mine = [messages[row] for row in rows.tolist()]
        kinds[name] = len(rows)
        if len(rows) and not problems:
            _compare_built(
                found, rows, mine, codec.BUILDERS[BY_TAG[bytes([tag])]], tuple(map(int, fast.options.values))
            )
            columns = read_columns(read, fields, kernels.MESSAGE_SCHEMA, index.given(rows), len(rows))
            _compare_header(found, rows, mine, columns, index.data)
            if tag in kernels.ROW_TAGS:
                _compare_rows(found, rows, mine, index)
    return Compared(len(payloads), sum(kinds.values()), found.all, kinds)


def compare_frames(payloads: pa.Array) -> Compared:
    """Read frames of the envelope by the kernels and by the codec."""
    data, starts, ends = payload_bounds(payloads)
    tags, valid = np.empty(len(starts), np.uint8), np.empty(len(starts), np.bool_)
    frame_kernels.index(data, starts, ends, tags, valid)
    problems, messages = _acceptance(payloads, valid, frame_codec.READERS)
    found = _Problems(payloads, problems)
    kinds = {}
    for tag, (name, read, fields) in frame_kernels.READERS.items():
        rows = np.flatnonzero((tags == tag) & valid)
        mine = [messages[row] for row in rows.tolist()]
        kinds[name] = len(rows)
        if len(rows) and not problems:
            _compare_built(found, rows, mine, frame_codec.BUILDERS[type(mine[0])], ())
            given = data, starts[rows], ends[rows]
            _compare_header(
                found, rows, mine, read_columns(read, fields, frame_kernels.MESSAGE_SCHEMA, given, len(rows)), data
            )
    return Compared(len(payloads), sum(kinds.values()), found.all, kinds)


class _Problems:
    """The disagreements about one batch."""

    def __init__(self, payloads: pa.Array, first: Sequence[tuple[int, str]]) -> None:
        self._payloads = payloads
        self.all = [(payloads[row].as_py(), what) for row, what in first]

    def unequal(self, rows: Numbers, what: str, left: Sequence[Any], right: Sequence[Any]) -> None:
        """Note the rows of which two columns have other values."""
        if left == right:
            return
        pairs = zip(rows.tolist(), left, right, strict=True)
        self.all += [(self._payloads[row].as_py(), f"{what}: {a!r:.80} and {b!r:.80}") for row, a, b in pairs if a != b]


def _acceptance(payloads: pa.Array, valid: NDArray[np.bool_], readers: Any) -> tuple[list[tuple[int, str]], list[Any]]:
    """Return the rows that one accepts and the other refuses, and what the codec reads of each, None for nothing."""
    messages = list(_read(payloads.to_pylist(), readers))
    accepted = np.fromiter((message is not None for message in messages), np.bool_, len(messages))
    says = {True: "the kernels accept what the codec refuses", False: "the kernels refuse what the codec accepts"}
    return [(row, says[bool(valid[row])]) for row in np.flatnonzero(accepted != valid).tolist()], messages


def _read(payloads: Sequence[bytes], readers: Any) -> Iterator[Any]:
    """Yield the messages of an engine's table of readers, without the explanations of its ``parse``: they take long."""
    for payload in payloads:
        try:
            message, end = readers[payload[0]](payload + PAD, 0, len(payload))
            yield message if end == len(payload) else None
        except REJECTIONS:
            yield None


def _compare_built(
    found: _Problems, rows: Numbers, messages: Sequence[Any], build: Callable[..., bytes], parameters: tuple[int, ...]
) -> None:
    """Check that the codec builds the same bytes that it parsed: none is ignored."""
    built = [build(message, *parameters) for message in messages]
    found.unequal(rows, "built", built, [found._payloads[row].as_py() for row in rows.tolist()])


def _compare_header(
    found: _Problems, rows: Numbers, messages: Sequence[Any], columns: Sequence[HeaderColumn], data: NDArray[np.uint8]
) -> None:
    for column in columns:
        given: list[Any] = list(map(attrgetter(column.name), messages))
        found.unequal(rows, column.name, _of_kernel(column, data), [*map(_bare, given)])


def _of_kernel(column: HeaderColumn, data: NDArray[np.uint8]) -> list[Any]:
    if column.form == "bytes":
        starts, sizes = column.values
        values: list[Any] = [data[at : at + n].tobytes() for at, n in zip(starts.tolist(), sizes.tolist(), strict=True)]
    else:
        values = column.values[0].tolist()
        values = [bytes([value]) for value in values] if column.form == "letter" else values
    if column.present is None:
        return values
    return [value if there else None for value, there in zip(values, column.present.tolist(), strict=True)]


def _bare(value: Any) -> Any:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _compare_rows(found: _Problems, rows: Numbers, messages: Sequence[Any], index: BatchIndex) -> None:
    for name in ("relation_oid", "xid"):
        found.unequal(
            rows, f"index {name}", index.rows[name][rows].tolist(), [getattr(each, name) or 0 for each in messages]
        )
    kinds = [ord(getattr(each, "old_kind", None) or "\0") for each in messages]
    found.unequal(rows, "index old_kind", index.rows["old_kind"][rows].tolist(), kinds)
    for side in _SIDES:
        sent = [getattr(each, side, None) for each in messages]
        given = [None if row is None else tuple((type(value), value) for value in row) for row in sent]
        found.unequal(rows, side, _values(index, rows, side, [0 if row is None else len(row) for row in sent]), given)


def _values(index: BatchIndex, rows: Numbers, side: str, widths: Sequence[int]) -> list[Any]:
    """Return the values of rows as the kernel finds them, with their classes; None for a side that is not sent."""
    places, of = index.rows[side][rows], np.array(widths)
    found: list[Any] = [None] * len(rows)
    for width in np.unique(of[places >= 0]).tolist():
        some = np.flatnonzero((of == width) & (places >= 0))
        tags, starts, lengths, fits = _find(index, rows[some], places[some], width)
        if fits:
            lines = zip(some.tolist(), tags.T.tolist(), starts.T.tolist(), lengths.T.tolist(), strict=True)
            for place, *line in lines:
                found[place] = tuple(_value(index.data, *each) for each in zip(*line, strict=True))
    return found


def _find(index: BatchIndex, rows: Numbers, places: Numbers, width: int) -> Any:
    shape = width, len(rows)
    tags, starts, lengths = np.zeros(shape, np.uint8), np.zeros(shape, np.int64), np.zeros(shape, np.int32)
    plan, content = lay_out(np.zeros((width, ENTRIES), np.int64), len(rows), np.zeros(width, np.int64))
    counts, seen, sizes = np.zeros(len(rows), np.int32), np.zeros((width, 256), np.int32), np.zeros(width, np.int64)
    (find,) = kernels.TUPLES.values()
    given = *index.given_rows(rows, places), width, plan, np.frombuffer(content, np.uint8)
    fits = find(*given, counts, tags, starts, lengths, seen, sizes)
    return tags, starts, lengths, fits


def _value(data: NDArray[np.uint8], tag: int, start: int, length: int) -> tuple[type, Any]:
    sent: Any = _KINDS[tag]
    value = sent(data[start : start + length].tobytes()) if isinstance(sent, type) else sent
    return type(value), value
