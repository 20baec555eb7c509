"""A batch of payloads, walked once: which message each is, whether it is one, and where its rows are."""

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.columnar import kernels
from pgoutput_construct.columnar.decode import Payloads, Streams
from pgoutput_construct.columnar.gather import scatter, strings
from pgoutput_construct.errors import DecodeError
from pgoutput_construct.wire.engine import explain, parse
from pgoutput_construct.wire.messages import BY_TAG, PgoutputMessage, Truncate
from pgoutput_construct.wire.options import STATE_PARAMETERS, options
from pgoutput_construct.wire.protocol import CHANGES, Streaming
from pgoutput_construct.wire.types import bare

__all__ = ["BatchIndex", "index_batch", "payload_array", "payload_bounds"]

Numbers = NDArray[np.int64]

IS_ROW: Final = np.zeros(256, np.bool_)
IS_ROW[[cls.TAG[0] for cls in CHANGES]] = True
_TRUNCATE: Final = Truncate.TAG[0]


class BatchIndex:
    """What a walk over a batch has found; one entry a payload, in the batch's order."""

    def __init__(
        self, payloads: pa.Array, streams: NDArray[np.bool_], proto_version: int, streaming: Streaming
    ) -> None:
        self.data, self.starts, self.ends = payload_bounds(payloads)
        self.streams = streams
        self.proto_version, self.streaming = proto_version, streaming
        self.options = options(proto_version, streaming)
        self._arguments = tuple(v for n, v in self.options.parameters().items() if n not in STATE_PARAMETERS)
        count = len(self.starts)
        self.tags = np.zeros(count, np.uint8)
        """The first byte of each payload, 0 for an empty one."""
        self.valid = np.zeros(count, np.bool_)
        """Whether it is a message; what is not is explained by ``error``."""
        self.rows: dict[str, NDArray[Any]] = {
            name: np.full(count, -1 if dtype is np.int64 else 0, dtype) for name, dtype in kernels.ROW_FIELDS.items()
        }
        """Of messages that hold rows: relation_oid, xid, old_kind, and the positions of old and new (-1 for none)."""
        given: Any = (self.data, self.starts, self.ends, streams, *self._arguments)
        kernels.index(*given, self.tags, self.valid, *self.rows.values())
        self.valid &= self._comes()[self.tags]

    def __len__(self) -> int:
        return len(self.starts)

    def payload(self, row: int) -> bytes:
        """Return one payload."""
        return self.data[self.starts[row] : self.ends[row]].tobytes()

    def message(self, row: int) -> PgoutputMessage:
        """Return the message in one payload; raise DecodeError where there is none."""
        return parse(self.payload(row), self.proto_version, self.streaming, in_stream=bool(self.streams[row]))

    def tables(self) -> tuple[Numbers, Numbers]:
        """Return the rows that change tables, each as often as it has tables, and the OID of each table."""
        changes = np.flatnonzero(self.valid & IS_ROW[self.tags] & (self.tags != _TRUNCATE))
        rows, tables = [changes], [self.rows["relation_oid"][changes].astype(np.int64)]
        for row in np.flatnonzero(self.valid & (self.tags == _TRUNCATE)).tolist():
            oids = np.array([bare(oid) for oid in self.message(row).relation_oids], np.int64)  # type: ignore[union-attr]
            rows.append(np.full(len(oids), row, np.int64))
            tables.append(oids)
        every = np.concatenate(rows)
        order = np.argsort(every, kind="stable")
        return every[order], np.concatenate(tables)[order]

    def malformed(self) -> Numbers:
        """Return the indexes of the payloads that are no messages."""
        return np.flatnonzero(~self.valid)

    def error(self, row: int) -> DecodeError:
        """Return what is wrong with a payload that is no message, as the definitions say it."""
        streams = {"in_stream": bool(self.streams[row])}
        return explain(self.payload(row), options(self.proto_version, self.streaming, **streams))

    def _comes(self) -> NDArray[np.bool_]:
        """Return for each tag whether its message comes under the options."""
        comes = np.ones(256, np.bool_)
        comes[[cls.TAG[0] for cls in BY_TAG.values() if self.options.refusal(cls)]] = False
        return comes

    def messages(self) -> pa.RecordBatch:
        """Return a row a payload: the kind, and the header fields of every message as columns (MESSAGE_SCHEMA).

        Fields that a message does not have are null, and so is all of a payload that is no message. LSNs are uint64,
        times are microseconds since 2000-01-01 UTC. Names are UTF-8; bytes that are not become U+FFFD.
        """
        columns: dict[str, list[tuple[Numbers, pa.Array]]] = {name: [] for name in kernels.MESSAGE_SCHEMA.names}
        for kind, (name, read, fields) in kernels.READERS.items():
            rows = np.flatnonzero((self.tags == kind) & self.valid)
            if len(rows):
                columns["kind"].append((rows, pa.array([name]).take(pa.array(np.zeros(len(rows), np.int8)))))
                for field, array in self.read(rows, read, fields):
                    columns[field].append((rows, array))
        return pa.RecordBatch.from_arrays(
            [scatter(columns[field.name], len(self), field.type) for field in kernels.MESSAGE_SCHEMA],
            schema=kernels.MESSAGE_SCHEMA,
        )

    def read(self, rows: Numbers, read: Any, fields: tuple[tuple[str, str], ...]) -> list[tuple[str, pa.Array]]:
        """Return the header fields of messages of one kind (an entry of kernels.READERS), by name."""
        arrays = [_Column(name, form, len(rows)) for name, form in fields]
        if read is not None:
            outs = [out for array in arrays for out in array.outs]
            read(self.data, self.starts[rows], self.streams[rows], *self._arguments, *outs)
        return [(array.name, array.arrow(self.data)) for array in arrays]


def index_batch(
    payloads: Payloads,
    in_stream: Streams = None,
    *,
    proto_version: int = 1,
    streaming: Streaming = "off",
) -> BatchIndex:
    """Walk a batch of payloads once and return its index.

    ``in_stream`` tells of each payload whether it stands inside a stream, None for none. A payload that is no message
    is flagged and stops nothing.
    """
    chunk = payload_array(payloads)
    streams = np.zeros(len(chunk), np.bool_) if in_stream is None else _flags(in_stream)
    if len(streams) != len(chunk):
        raise DecodeError(f"{len(chunk)} payloads have {len(streams)} entries of in_stream: give one for each")
    return BatchIndex(chunk, streams, proto_version, streaming)


def payload_array(payloads: Payloads) -> pa.Array:
    """Return payloads as one array; what is one already is not copied."""
    if not isinstance(payloads, pa.Array | pa.ChunkedArray):
        return pa.array(payloads, pa.large_binary())
    if not any(is_kind(payloads.type) for is_kind in _BINARY):
        raise DecodeError(f"payloads must be a binary array, not one of {payloads.type}")
    if not pa.types.is_large_binary(payloads.type) and (payloads.nbytes >= 1 << 31 or not _is_plain(payloads.type)):
        payloads = payloads.cast(pa.large_binary())
    return payloads.combine_chunks() if isinstance(payloads, pa.ChunkedArray) else payloads


_BINARY = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)


def _is_plain(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind))


def _flags(in_stream: Any) -> NDArray[np.bool_]:
    if isinstance(in_stream, pa.ChunkedArray):
        in_stream = in_stream.combine_chunks()
    if isinstance(in_stream, pa.Array):
        in_stream = in_stream.to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(in_stream, np.bool_)


def payload_bounds(payloads: pa.Array) -> tuple[NDArray[np.uint8], Numbers, Numbers]:
    """Return all bytes of a batch without copying them, and where each payload starts and ends; null is empty."""
    large = pa.types.is_large_binary(payloads.type)
    validity, ends, data = payloads.buffers()
    if not len(payloads):
        return np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64)
    first, last = payloads.offset, payloads.offset + len(payloads)
    bounds = np.frombuffer(ends, np.int64 if large else np.int32)[first : last + 1].astype(np.int64)
    content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    starts, stops = bounds[:-1], bounds[1:]
    if validity is not None and payloads.null_count:
        stops = np.where(payloads.is_valid().to_numpy(zero_copy_only=False), stops, starts)
    return content, starts, stops


class _Column:
    """One header field of the messages of one kind, while it is read."""

    def __init__(self, name: str, form: str, count: int) -> None:
        self.name = name
        self.form = form.rstrip("?")
        kind = kernels.MESSAGE_SCHEMA.field(name).type
        if self.form == "bytes":
            self.values: list[NDArray[Any]] = [np.zeros(count, np.int64), np.zeros(count, np.int64)]
        else:
            self.values = [np.zeros(count, np.uint8 if self.form == "letter" else kind.to_pandas_dtype())]
        self.present = np.zeros(count, np.bool_) if form.endswith("?") else None
        self.outs = [*self.values, *([] if self.present is None else [self.present])]
        self.kind = kind

    def arrow(self, data: NDArray[np.uint8]) -> pa.Array:
        mask = None if self.present is None else ~self.present
        if self.form == "bytes":
            starts, lengths = self.values
            return strings(data, starts, lengths, mask, self.kind)
        if self.form == "letter":
            return pa.array(self.values[0].view("S1").astype(str), pa.string(), mask=mask)
        return pa.array(self.values[0], self.kind, mask=mask)
