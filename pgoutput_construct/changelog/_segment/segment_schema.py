"""The columns of a segment: from blocks and events to an Arrow table, and back."""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._segment.block import NO_XID, Block, Numbers
from pgoutput_construct.changelog._segment.events import LogEvent, log_events
from pgoutput_construct.columnar.descriptions import OUTSIDE, copy_scope
from pgoutput_construct.columnar.index import payload_bounds
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire.options import STATE_PARAMETERS
from pgoutput_construct.wire.types import UNIX_TO_POSTGRES

__all__ = ["SCHEMA", "Part", "checksums", "coalesced", "parts_of", "scopes_of", "segment_table", "upgraded"]


SCHEMA: Final = pa.schema(
    [
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("wal_start", pa.int64(), nullable=False),
        pa.field("send_time", pa.timestamp("us", "UTC"), nullable=False),
        *(pa.field(name, pa.bool_(), nullable=False) for name in STATE_PARAMETERS),
        pa.field("stream_xid", pa.int64()),
        pa.field("tag", pa.uint8()),
        pa.field("relation_oid", pa.int64()),
        pa.field("xid", pa.int64()),
        pa.field("snapshot", pa.int32()),
        pa.field("payload", pa.binary(), nullable=False),
    ]
)
"""The columns. ``in_stream`` (and any later stream state) and ``stream_xid`` are the state in which the payload is
parsed, that before the message: a Stream Start is outside, a Stream Stop inside. ``tag`` is the message's first byte,
null for an event; ``relation_oid`` is that of inserts, updates and deletes; ``xid`` is the transaction or
subtransaction; ``snapshot`` is the number of the snapshot chunk that a copied row belongs to.
"""

_LARGEST_TIME: Final = 2**63 - 1 - UNIX_TO_POSTGRES


def segment_table(parts: "Sequence[Part]", first_seq: int) -> pa.Table:
    """Return blocks and events as a table of SCHEMA, with seqs from ``first_seq`` on; payloads are not copied.

    Raises ChangeLogError for a timestamp that does not fit into 64 bits.
    """
    batches = []
    for part in parts:
        block, is_event = (_event_block(part), True) if isinstance(part, LogEvent) else (part, False)
        batches.append(_batch(block, first_seq, is_event))
        first_seq += len(block)
    return pa.Table.from_batches(batches, SCHEMA)


def parts_of(table: pa.Table, layout: Mapping[str, Any], open_xid: int = NO_XID) -> "Iterator[Part]":
    """Yield the blocks and events in a table of SCHEMA: the inverse of ``segment_table``.

    Args:
        table: Consecutive rows of a segment.
        layout: The options under which the payloads were sent (``StreamOptions.layout``).
        open_xid: The transaction that is open before the first row, or NO_XID.
    """
    for batch in table.combine_chunks().to_batches():
        events = batch.column("tag").is_null().to_numpy(zero_copy_only=False)
        chunks = batch.column("snapshot").fill_null(-1).to_numpy()
        bounds = np.flatnonzero(np.diff(chunks, prepend=-2) | events | np.append(False, events[:-1]))
        for first, end in pairwise([*bounds.tolist(), batch.num_rows]):
            part = batch.slice(first, end - first)
            if events[first]:
                yield from log_events(pa.Table.from_batches([part]))
            else:
                block = _block(part, layout, open_xid)
                open_xid = block.open_xid
                yield block


def scopes_of(rows: pa.RecordBatch | pa.Table) -> Numbers:
    """Return the scope whose Relations describe each row of SCHEMA: a stream's xid, OUTSIDE, or ``copy_scope``."""
    scopes: Numbers = rows.column("stream_xid").fill_null(OUTSIDE).to_numpy()
    chunks = rows.column("snapshot")
    if chunks.null_count == len(chunks):
        return scopes
    numbers = chunks.fill_null(-1).to_numpy().astype(np.int64)
    return np.where(numbers < 0, scopes, copy_scope(0) - numbers)


def _block(batch: pa.RecordBatch, layout: Mapping[str, Any], open_xid: int) -> Block:
    wal_start, sent = batch.column("wal_start").to_numpy(), batch.column("send_time").cast(pa.int64()).to_numpy()
    states = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in STATE_PARAMETERS}
    times = sent - UNIX_TO_POSTGRES
    return Block.from_payloads(batch.column("payload"), wal_start, times, layout, states, scopes_of(batch), open_xid)


def upgraded(table: pa.Table) -> pa.Table:
    """Add the stream states, as false, that the specification did not have yet when a segment was written."""
    for number, column in enumerate(SCHEMA):
        if column.name in STATE_PARAMETERS and column.name not in table.schema.names:
            table = table.add_column(number, column, pa.array(np.zeros(table.num_rows, np.bool_)))
    return table


def checksums(table: pa.Table) -> dict[str, int]:
    """Return the CRC-32 of each column's values, independent of chunking and of what Arrow stores for nulls."""
    return {name: _checksum(table[name]) for name in table.schema.names}


def _event_block(event: LogEvent) -> Block:
    states = {name: [False] for name in STATE_PARAMETERS}
    return Block.from_payloads([event.payload()], [event.lsn], [event.time], {}, states, [OUTSIDE])


def _batch(block: Block, first_seq: int, is_event: bool) -> pa.RecordBatch:
    for row in np.flatnonzero(block.send_time > _LARGEST_TIME)[:1].tolist():
        raise ChangeLogError(f"seq {first_seq + row} cannot be written: its timestamp does not fit into 64 bits")
    outside = np.zeros(len(block), np.bool_)
    oids = block.index.rows["relation_oid"].astype(np.int64)
    given = {
        "seq": np.arange(first_seq, first_seq + len(block), dtype=np.int64),
        "wal_start": block.wal_start,
        "send_time": block.send_time + UNIX_TO_POSTGRES,
        **{name: block.index.states.get(name, outside) for name in STATE_PARAMETERS},
        "stream_xid": pa.array(block.stream_xid, mask=block.stream_xid <= OUTSIDE),
        "tag": pa.array(block.index.tags, mask=np.full(len(block), is_event)),
        "relation_oid": _nullable(np.where(block.index.is_row & (oids != 0), oids, -1), -1),
        "xid": _nullable(block.xid, NO_XID),
        "snapshot": pa.nulls(len(block), pa.int32()) if block.chunk is None else pa.repeat(block.chunk, len(block)),
        "payload": block.payloads,
    }
    arrays = [pa.array(given[column.name]).cast(column.type) for column in SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _nullable(numbers: Numbers, null: int) -> pa.Array:
    return pa.array(numbers, mask=numbers == null)


def _checksum(column: pa.ChunkedArray) -> int:
    check = 0
    if not pa.types.is_binary(column.type):
        for chunk in column.chunks:
            check = zlib.crc32(_values(chunk), check)
        return check
    for chunk in column.chunks:
        check = zlib.crc32(_values(pc.binary_length(chunk)), check)
    for chunk in column.chunks:
        data, starts, ends = payload_bounds(chunk)
        if len(starts):
            check = zlib.crc32(data[starts[0] : ends[-1]].data, check)
    return check


def _values(column: pa.Array) -> memoryview:
    numbers = column.cast(pa.int64()).fill_null(-1)
    start = numbers.offset * 8
    return memoryview(numbers.buffers()[1])[start : start + len(numbers) * 8]


Part: TypeAlias = Block | LogEvent
"""A segment consists of these."""

_SMALL_ROWS: Final = 2048
_SMALL_BYTES: Final = 1 << 20
"""Blocks up to both limits are concatenated: indexing a block costs as much as indexing a thousand rows."""


def coalesced(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield the same payloads and events in fewer parts: consecutive small blocks are concatenated."""
    for layout, group in groupby(parts, _layout_of_small):
        found = list(group)
        if layout is not None and len(found) > 1:
            yield Block.concat([part for part in found if isinstance(part, Block)])
        else:
            yield from found


def _layout_of_small(part: Part) -> tuple[object, ...] | None:
    """Return the options that small blocks must share to be concatenated; None for a part that stays as it is."""
    if isinstance(part, LogEvent) or part.chunk is not None:
        return None
    if len(part) > _SMALL_ROWS or part.payloads.nbytes > _SMALL_BYTES:
        return None
    return (*part.index.layout.items(), *part.index.states)
