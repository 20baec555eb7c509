"""A block: consecutive payloads with their LSNs, times and stream states, as a capture appends them to the log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pgoutput_construct.columnar import kernels
from pgoutput_construct.columnar.batch_arrays import look_up, tag_table
from pgoutput_construct.columnar.descriptions import OUTSIDE, copy_scope
from pgoutput_construct.columnar.index import BatchIndex, index_batch, payload_array
from pgoutput_construct.stream.bounds import CLOSES, OPENERS, having
from pgoutput_construct.wire.options import STATE_PARAMETERS
from pgoutput_construct.wire.protocol import BOUNDS

if TYPE_CHECKING:
    from pgoutput_construct.wire.messages import PgoutputMessage

__all__ = ["NO_XID", "Block", "Flags", "Header", "Numbers", "header_role", "transaction_xids"]

Numbers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
Header: TypeAlias = tuple[Numbers, Mapping[str, Any]]
"""The rows of the messages of one class, and their header fields as Arrow arrays, by name."""

NO_XID: Final = -1
"""Instead of an xid: the payload belongs to no transaction."""

_OPENERS: Final = {cls.TAG[0]: cls for cls in having("begin", "begin_prepared")}
_CLOSES: Final = tag_table(CLOSES.keys() - having("end_segment"))
_BOUNDS: Final = tag_table(OPENERS) | _CLOSES
_OTHERS_WITH_XID: Final = frozenset(
    tag for tag, (_, _, fields) in kernels.READERS.items() if "xid" in dict(fields) and tag not in kernels.ROW_TAGS
).difference(_OPENERS)
"""The tags of messages with an xid that are neither row messages nor begin a transaction."""


@dataclass(frozen=True)
class Block:
    """Consecutive payloads in the order in which they were received; each column has one entry per payload."""

    payloads: pa.Array
    """The messages: a binary or large binary array."""
    wal_start: Numbers
    """As the server sent it: 0 for Relation, Type, and a message that an Origin follows."""
    send_time: Numbers
    """The server's clock when it sent this: microseconds since 2000-01-01 UTC."""
    index: BatchIndex
    """The index of the payloads: tags, relation OIDs, and the stream states in which each is parsed."""
    stream_xid: Numbers
    """The top-level xid of the stream that contains it, or OUTSIDE; ``copy_scope`` for copied rows."""
    xid: Numbers
    """The transaction or subtransaction of the payload, or NO_XID: see ``transaction_xids``."""
    open_xid: int = NO_XID
    """The transaction that is open after the last payload, outside streams, or NO_XID."""
    _headers: dict[int, Header] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_payloads(
        cls,
        payloads: Sequence[bytes] | pa.Array,
        wal_start: Sequence[int] | Numbers,
        send_time: Sequence[int] | Numbers,
        layout: Mapping[str, Any],
        states: Mapping[str, Sequence[bool] | Flags],
        stream_xid: Sequence[int] | Numbers,
        open_xid: int = NO_XID,
    ) -> "Block":
        """Index payloads, in one pass, and return them as a block.

        Args:
            payloads: The messages.
            wal_start: The start LSN of each, as the server sent it.
            send_time: When each was sent: microseconds since 2000-01-01 UTC.
            layout: The options under which they were sent (``StreamOptions.layout``).
            states: For each of STATE_PARAMETERS, whether each payload is parsed in that state.
            stream_xid: The top-level xid of the stream that contains each payload, or OUTSIDE.
            open_xid: The transaction that is open before the first payload, outside streams, or NO_XID.

        Raises:
            DecodeError: ``payloads`` are not bytes.
            OverflowError: A number does not fit into 64 bits.
        """
        array = payload_array(payloads)
        index = index_batch(
            array, **{**layout, **{name: np.asarray(state, np.bool_) for name, state in states.items()}}
        )
        scopes = np.ascontiguousarray(stream_xid, np.int64)
        numbers = np.asarray(wal_start, np.int64), np.asarray(send_time, np.int64)
        return cls(array, *numbers, index, scopes, *transaction_xids(index, scopes, open_xid))

    @classmethod
    def concat(cls, blocks: Sequence["Block"]) -> "Block":
        """Concatenate blocks that were sent under the same options; their bytes are copied and indexed again."""
        layout, states = blocks[0].index.layout, blocks[0].index.states
        array = pa.concat_arrays([payload_array(block.payloads).cast(pa.large_binary()) for block in blocks])
        flags = {name: np.concatenate([block.index.states[name] for block in blocks]) for name in states}
        columns = [(block.wal_start, block.send_time, block.stream_xid, block.xid) for block in blocks]
        wal_start, send_time, stream_xid, xid = (np.concatenate(column) for column in zip(*columns, strict=True))
        index = index_batch(array, **{**layout, **flags})
        return cls(array, wal_start, send_time, index, stream_xid, xid, blocks[-1].open_xid)

    @classmethod
    def copied(cls, payloads: pa.Array, number: int, lsn: int, send_time: int, layout: Mapping[str, Any]) -> "Block":
        """Return a block of rows from a table copy; such a block is never concatenated with others.

        Args:
            payloads: The Relation of the table, then an Insert for each row.
            number: The number of the snapshot chunk that the rows belong to.
            lsn: The LSN of the snapshot.
            send_time: When the rows were read: microseconds since 2000-01-01 UTC.
            layout: The options by which the messages were built (``StreamOptions.layout``).
        """
        states = {name: np.zeros(len(payloads), np.bool_) for name in STATE_PARAMETERS}
        array, numbers = payload_array(payloads), (lsn, send_time, copy_scope(number), NO_XID)
        # Each is one number in memory, whatever the number of rows.
        positions, times, scopes, xids = (np.broadcast_to(np.int64(n), len(array)) for n in numbers)
        return cls(array, positions, times, index_batch(array, **{**layout, **states}), scopes, xids)

    @property
    def chunk(self) -> int | None:
        """The snapshot chunk that the rows were copied in; None for messages of the stream."""
        scope = int(self.stream_xid[0]) if len(self) else OUTSIDE
        return copy_scope(scope) if scope < OUTSIDE else None

    @property
    def payload_bytes(self) -> int:
        """The sum of the payloads' sizes, in bytes."""
        return int(self.index.ends.sum()) - int(self.index.starts.sum())

    def __len__(self) -> int:
        return len(self.payloads)

    def take(self, rows: slice | Numbers | Flags) -> "Block":
        """Return some of the payloads, selected by a slice, by indices, or by a boolean mask."""
        if isinstance(rows, slice):
            payloads = self.payloads[rows]
        else:
            chosen = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
            payloads = self.payloads.take(pa.array(chosen))
        columns = self.stream_xid[rows], self.xid[rows], self.open_xid
        return Block(payloads, self.wal_start[rows], self.send_time[rows], self.index.take(rows), *columns)

    def header(self, message: type["PgoutputMessage"]) -> Header:
        """Return the rows of the messages of one class and their header fields; the result is cached."""
        (tag,) = message.TAG
        if tag not in self._headers:
            self._headers[tag] = _header(self.index, tag)
        return self._headers[tag]


def transaction_xids(index: BatchIndex, stream_xid: Numbers, open_xid: int = NO_XID) -> tuple[Numbers, int]:
    """Return the xid of each payload, and the transaction that is open after the last one, NO_XID for none.

    The xid is the one in the message (in streams the subtransaction's), else that of the preceding Begin.

    Args:
        index: The index of the payloads.
        stream_xid: The stream that contains each payload (``Block.stream_xid``).
        open_xid: The transaction that is open before the first payload, or NO_XID.
    """
    xids, after = _of_begins(index, stream_xid, open_xid)
    inside = index.is_row & (stream_xid > OUTSIDE)
    xids[inside] = index.rows["xid"][inside]
    for tag in _OTHERS_WITH_XID.intersection(np.unique(index.tags).tolist()):
        rows, fields = _header(index, tag)
        has_xid = fields["xid"].is_valid().to_numpy(zero_copy_only=False)
        xids[rows[has_xid]] = fields["xid"].drop_null().to_numpy()
    return xids, after


def _of_begins(index: BatchIndex, stream_xid: Numbers, open_xid: int) -> tuple[Numbers, int]:
    """Return the transaction of each payload outside streams, from its Begin to its Commit, and the last one."""
    bounds = np.flatnonzero(look_up(index.tags, _BOUNDS) & index.valid)
    tags, after = index.tags[bounds], np.full(len(bounds), NO_XID, np.int64)
    for tag in _OPENERS.keys() & set(tags.tolist()):
        after[tags == tag] = header_role(_OPENERS[tag], "xid", _header(index, tag)[1]).to_numpy()
    after = np.append(open_xid, after)
    # A Commit still belongs to its transaction.
    lengths = np.diff(np.concatenate([[0], bounds + _CLOSES[tags], [len(index)]]))
    return np.where(stream_xid == OUTSIDE, np.repeat(after, lengths), NO_XID), int(after[-1])


def header_role(message: type["PgoutputMessage"], role: str, header: Mapping[str, Any]) -> Any:
    """Return the field with a role of begin or end messages, as an Arrow array; see ``stream.bounds.said``.

    Args:
        message: The class of the messages.
        role: The role, such as ``lsn``.
        header: Their header fields (``Block.header``).
    """
    columns = [header[name] for name in BOUNDS[message].roles[role]]
    return columns[0] if len(columns) == 1 else pc.coalesce(*(column.cast(pa.int64()) for column in columns))


def _header(index: BatchIndex, tag: int) -> Header:
    _, read, fields = kernels.READERS[tag]
    rows = np.flatnonzero((index.tags == tag) & index.valid)
    return rows, dict(index.read(rows, read, fields))
