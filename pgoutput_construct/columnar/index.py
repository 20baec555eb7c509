"""The index of a batch of payloads, made by one walk: the tag and validity of each, and the offsets of its tuples."""

from collections import deque
from collections.abc import Mapping
from copy import copy
from functools import cached_property, lru_cache, partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.columnar import kernels
from pgoutput_construct.columnar.batch_arrays import look_up, scatter, tag_table
from pgoutput_construct.columnar.header_columns import read_header
from pgoutput_construct.columnar.row_schema import Payloads, RowError, States
from pgoutput_construct.columnar.threads import checked_threads, in_order
from pgoutput_construct.compiled.jit import kernel
from pgoutput_construct.compiled.memory import read_only, room
from pgoutput_construct.errors import DecodeError
from pgoutput_construct.wire.engine import explain, parse, refused
from pgoutput_construct.wire.messages import BY_TAG, PgoutputMessage
from pgoutput_construct.wire.options import Options, options
from pgoutput_construct.wire.protocol import CHANGES, Streaming
from pgoutput_construct.wire.types import bare

__all__ = ["BatchIndex", "index_batch", "payload_array", "payload_bounds"]

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

IS_ROW: Final = tag_table(CHANGES)
_HOLDS_ROWS: Final = np.zeros(256, np.bool_)
_HOLDS_ROWS[list(kernels.ROW_TAGS)] = True
LISTS_TABLES: Final = IS_ROW & ~_HOLDS_ROWS
"""Messages such as Truncate, which change tables but have no tuples; they are rare, and parsed one by one."""
_LEAST: Final = 16_384
"""The fewest payloads for which another thread is worth starting."""


@kernel
def _split(tags: Any, valid: Any, table: Any, oids: Any, changes: Any, others: Any) -> tuple[int, int, bool]:
    found, rest, same = 0, 0, True
    for row in range(len(tags)):
        if valid[row] and table[tags[row]]:
            changes[found] = row
            same &= oids[row] == oids[changes[0]]
            found += 1
        elif valid[row]:
            others[rest] = row
            rest += 1
    return found, rest, same


@kernel
def _others(tags: Any, valid: Any, rows: Any, table: Any, out: Any) -> int:
    count = 0
    for row in rows:
        if not (valid[row] and table[tags[row]]):
            out[count] = row
            count += 1
    return count


class BatchIndex:
    """The result of a walk over a batch; its arrays have one entry for each payload, in order."""

    def __init__(
        self, payloads: pa.Array, states: Mapping[str, Flags], layout: Mapping[str, Any], threads: int = 1
    ) -> None:
        self.data, self.starts, self.ends = payload_bounds(payloads)
        self.states = states
        """The stream state parameters of each payload, those that were passed."""
        self.layout = layout
        """The options under which all payloads were sent."""
        self.options = options(**{**layout, **dict.fromkeys(states, False)})
        self._parameters = tuple(v for n, v in self.options.parameters().items() if n not in kernels.ROW_PARAMETERS)
        count = len(self.starts)
        self.tags = room(count)
        """The first byte of each payload, 0 for an empty one."""
        self.valid = room(count, np.bool_)
        """Whether it is a valid message; ``error`` explains why it is not."""
        self.rows: dict[str, NDArray[Any]] = {name: room(count, dtype) for name, dtype in kernels.ROW_FIELDS.items()}
        """Of messages with tuples: relation_oid, xid, old_kind, and the offsets of the old and new tuple (-1: none)."""
        self._others: Numbers | None = None
        """The indexes of the messages without tuples; None until first needed."""
        step = max(_LEAST, -(-count // threads))
        parts = (slice(first, first + step) for first in range(0, count, step))
        deque(in_order(self._walk, parts, threads), maxlen=0)

    def _walk(self, rows: slice) -> None:
        tags, valid, *kept = (column[rows] for column in (self.tags, self.valid, *self.rows.values()))
        kernels.index(*self.given(rows), tags, valid, *kept)
        unread = _unread(self.options)
        if unread.any():  # not sent under the options, or not readable without a stream state that was not passed
            valid &= ~look_up(tags, unread)

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, rows: slice | Numbers | Flags) -> "BatchIndex":
        """Return the index of some of the payloads; it shares their bytes."""
        other = copy(self)
        for kept in ("is_row", "_unsaid"):
            other.__dict__.pop(kept, None)
        other._others = None
        other.starts, other.ends = self.starts[rows], self.ends[rows]
        other.tags, other.valid = self.tags[rows], self.valid[rows]
        other.rows = {name: column[rows] for name, column in self.rows.items()}
        other.states = {name: state[rows] for name, state in self.states.items()}
        return other

    def given(self, rows: Numbers | slice) -> Any:
        """Return the kernels' arguments for some payloads: bytes, bounds, parameters."""
        return (self.data, self.starts[rows], self.ends[rows], *self._parameters_of(rows))

    def given_rows(self, rows: Numbers, offsets: Numbers) -> Any:
        """Return what kernels over rows are given: bytes, indexes of payloads, offsets of their rows, parameters.

        The parameters are those of all payloads: the kernels look them up.
        """
        return (self.data, rows, offsets, *self._parameters_of(slice(None)))

    def _parameters_of(self, rows: Numbers | slice) -> Any:
        """Return the parameters of some payloads: those that states set, for each; then the others."""
        states = (self.states.get(name, self._unsaid) for name in kernels.ROW_PARAMETERS)
        return *(state[rows] for state in states), *self._parameters

    @cached_property
    def _unsaid(self) -> Flags:
        """False for each payload: the value of a stream state that was not passed."""
        return np.zeros(len(self), np.bool_)

    def payload(self, row: int) -> bytes:
        """Return one payload."""
        return self.data[self.starts[row] : self.ends[row]].tobytes()

    def message(self, row: int) -> "PgoutputMessage":
        """Return the message in one payload; raise DecodeError if it is not valid."""
        return parse(self.payload(row), **self.keywords(row))

    def keywords(self, row: int) -> dict[str, Any]:
        """Return the options and states of a payload, as keywords of parse."""
        return {**self.layout, **{name: bool(state[row]) for name, state in self.states.items()}}

    def tables(self) -> tuple[Numbers, Numbers]:
        """Return the payloads that change tables, once for each table that they change, and the OIDs of the tables."""
        (changes, _, same), of_tables = self._tell_apart(), self.rows["relation_oid"]
        if len(changes) and same:
            oids = np.broadcast_to(np.int64(of_tables[changes[0]]), len(changes))
        else:
            oids = of_tables[changes].astype(np.int64)
        listing = self.messages_without_rows(LISTS_TABLES).tolist()
        if not listing:
            return changes, oids
        found = np.array([pair for row in listing for pair in self._listed(row)], np.int64).reshape(-1, 2)
        rows, oids = np.append(changes, found[:, 0]), np.append(oids, found[:, 1])
        order = np.argsort(rows, kind="stable")
        return rows[order], oids[order]

    def messages_without_rows(self, table: Flags) -> Numbers:
        """Return the indexes of the messages without tuples whose tags are in a table (``tag_table``)."""
        others = self._tell_apart()[1] if self._others is None else self._others
        return others[table[self.tags[others]]]

    def _tell_apart(self) -> tuple[Numbers, Numbers, bool]:
        """Return the messages with tuples, those without (cached), and whether all tuples are of one table."""
        changes, others = room(len(self), np.int64), room(len(self), np.int64)
        given = self.tags, self.valid, _HOLDS_ROWS, self.rows["relation_oid"]
        found, rest, same = _split(*given, changes, others)
        self._others = others[:rest].copy()
        return changes[:found], self._others, same

    def _listed(self, row: int) -> list[tuple[int, int]]:
        message: Any = self.message(row)
        return [(row, bare(oid)) for oid in message.relation_oids]

    @cached_property
    def is_row(self) -> Flags:
        """Which payloads are valid messages that change rows."""
        return self.valid & look_up(self.tags, IS_ROW)

    def others(self, rows: Numbers) -> Numbers:
        """Return those of some payloads that are not valid messages that change rows."""
        others = room(len(rows), np.int64)
        return others[: _others(self.tags, self.valid, rows, IS_ROW, others)]

    def malformed(self) -> Numbers:
        """Return the indexes of the payloads that are not valid messages."""
        return np.flatnonzero(~self.valid)

    def error(self, row: int) -> DecodeError:
        """Return the definitions' error for a payload that is not valid."""
        return _explained(self.payload(row), self.keywords(row))

    def row_error(self, row: int) -> RowError:
        """Return the same as a RowError, explained on demand; it holds a copy of the payload, not the batch."""
        return RowError(row, partial(_explained, self.payload(row), self.keywords(row)))

    def messages(self) -> pa.RecordBatch:
        """Return one row for each payload: its class as ``kind``, and the header fields of all messages
        (MESSAGE_SCHEMA).

        Fields that a message does not have are null; for an invalid payload, all fields are. LSNs are uint64, times are
        microseconds since 2000-01-01 UTC. Bytes of names that are not UTF-8 become U+FFFD.
        """
        columns: dict[str, list[tuple[Numbers, pa.Array]]] = {name: [] for name in kernels.MESSAGE_SCHEMA.names}
        for tag, (name, read, fields) in kernels.READERS.items():
            rows = np.flatnonzero((self.tags == tag) & self.valid)
            if len(rows):
                columns["kind"].append((rows, pa.array([name]).take(pa.array(np.zeros(len(rows), np.int8)))))
                for field, array in self.read(rows, read, fields):
                    columns[field].append((rows, array))
        return pa.RecordBatch.from_arrays(
            [scatter(columns[field.name], len(self), field.type) for field in kernels.MESSAGE_SCHEMA],
            schema=kernels.MESSAGE_SCHEMA,
        )

    def read(self, rows: Numbers, read: Any, fields: tuple[tuple[str, str], ...]) -> list[tuple[str, pa.Array]]:
        """Return the header fields of messages of one class, by name (see kernels.READERS)."""
        return read_header(read, fields, kernels.MESSAGE_SCHEMA, self.given(rows), len(rows))


@lru_cache
def _unread(given: Options) -> Flags:
    """Return the table of tags whose messages the options refuse, whatever their bytes."""
    return tag_table(cls for tag, cls in BY_TAG.items() if refused(tag, given))


def _explained(payload: bytes, given: Mapping[str, Any]) -> DecodeError:
    return explain(payload, options(**given))


def index_batch(
    payloads: Payloads,
    in_stream: States = None,
    *,
    proto_version: int = 1,
    streaming: Streaming = "off",
    threads: int = 1,
    **others: Any,
) -> BatchIndex:
    """Walk a batch of payloads once and return its index. Malformed payloads are not ``valid``, and stop nothing.

    Args:
        payloads: A binary array, or a sequence of bytes.
        in_stream: Whether each payload is inside a stream. Required only if it can matter, as for ``parse``.
        proto_version: As of ``parse``.
        streaming: As of ``parse``.
        threads: The number of threads that walk parts of the batch in parallel.
        others: Other options, and other stream states with one entry for each payload.

    Raises:
        PgoutputError: An argument that is not permitted.
    """
    chunk = payload_array(payloads)
    given = {"in_stream": in_stream, "proto_version": proto_version, "streaming": streaming, **others}
    said = {name: given.pop(name, None) for name in kernels.ROW_PARAMETERS}
    states = {name: _flags(state, len(chunk), name) for name, state in said.items() if state is not None}
    return BatchIndex(chunk, states, given, checked_threads(threads))


def payload_array(payloads: Payloads) -> pa.Array:
    """Return payloads as one binary array, without a copy if possible; raise DecodeError for anything else."""
    if not isinstance(payloads, pa.Array | pa.ChunkedArray):
        return _array(payloads, pa.large_binary(), "payloads must be bytes")
    if not any(is_type(payloads.type) for is_type in _BINARY):
        raise DecodeError(f"payloads must be a binary array, not one of {payloads.type}")
    chunked = isinstance(payloads, pa.ChunkedArray)
    plain = pa.types.is_binary(payloads.type) and not (chunked and payloads.nbytes >= 1 << 31)
    if not plain and not pa.types.is_large_binary(payloads.type):
        payloads = payloads.cast(pa.large_binary())
    return payloads.combine_chunks() if chunked else payloads


_BINARY = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)


def _array(items: Any, kind: pa.DataType, problem: str) -> pa.Array:
    try:
        found = list(items)
        if any(issubclass(cls, str) for cls in set(map(type, found))):  # Arrow would accept it as bytes
            raise TypeError("a string is among them")
        return pa.array(found, kind)
    except (TypeError, ValueError) as error:
        raise DecodeError(f"{problem}: {error}") from error


def _flags(state: Any, count: int, name: str) -> Flags:
    """Return a state as a numpy array; raise DecodeError unless it has one boolean for each payload."""
    problem = f"{name} needs one boolean for each of the {count} payloads"
    if not isinstance(state, np.ndarray | pa.Array | pa.ChunkedArray):
        state = _array(state, pa.bool_(), problem)
    flags = np.asarray(state)
    if flags.shape != (count,) or (count and flags.dtype != np.bool_):  # with a null they are objects
        raise DecodeError(f"{problem}, not {flags.size} values of type {flags.dtype}")
    return np.ascontiguousarray(flags, np.bool_)


def payload_bounds(payloads: pa.Array) -> tuple[NDArray[np.uint8], Numbers, Numbers]:
    """Return the bytes of a batch without a copy, and the start and end of each payload in them; null is empty."""
    large = pa.types.is_large_binary(payloads.type)
    validity, ends, data = payloads.buffers()
    if not len(payloads):
        return read_only(np.zeros(0, np.uint8)), np.zeros(0, np.int64), np.zeros(0, np.int64)
    first, last = payloads.offset, payloads.offset + len(payloads)
    bounds = room(len(payloads) + 1, np.int64)
    bounds[:] = np.frombuffer(ends, np.int64 if large else np.int32)[first : last + 1]
    content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    starts, stops = bounds[:-1], bounds[1:]
    if validity is not None and payloads.null_count:
        stops = np.where(payloads.is_valid().to_numpy(zero_copy_only=False), stops, starts)
    return read_only(content), starts, stops
