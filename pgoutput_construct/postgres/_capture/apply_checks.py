"""What an apply worker refuses in a stream though each message is valid: a damaged stream is not stored.

These are the comparisons of PostgreSQL's worker.c: the end of a transaction with its beginning, and xids in streams.
The fields are read through ``Block.header``, which the index of the segment needs anyway: they cost nothing more.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from pgoutput_construct.changelog._segment.block import Block, header_role
from pgoutput_construct.columnar import kernels
from pgoutput_construct.columnar.batch_arrays import look_up, tag_table
from pgoutput_construct.columnar.descriptions import OUTSIDE
from pgoutput_construct.columnar.row_schema import RowError
from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.stream.bounds import having
from pgoutput_construct.wire import Lsn, Message
from pgoutput_construct.wire.protocol import BOUNDS, STATES, TRANSITIONS

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ApplyChecks"]

_LSN_ROLE: Final = "lsn"


_BEGINS: Final = tag_table(having("begin", "begin_prepared"))
_ENDS: Final = tag_table(having("commit", "prepare"))
_BOUNDS: Final = _BEGINS | _ENDS
_ALONE: Final = tag_table(cls for cls in having("commit", "prepare") if next(iter(STATES)) in TRANSITIONS[cls])
"""The ends that may come without a begin: PostgreSQL 18 sends a Prepare alone for a transaction without changes."""
_ANNOUNCING: Final = {
    cls.TAG[0]: cls for cls in having("begin", "begin_prepared", "commit", "prepare") if _LSN_ROLE in BOUNDS[cls].roles
}
"""Begins and ends that have the LSN of the end, by their tags."""
_OPENS_STREAM: Final = tag_table(having("begin_segment"))
_IGNORED: Final = tag_table([Message])
"""An apply worker does not look into logical messages, and so not at their xids."""
_REMEDY: Final = (
    "the stream is damaged. Everything before this transaction is stored; start the capture again, and the server"
    " sends the transaction again. If it is refused again, connect without what is between (a proxy, a pooler)"
)


class ApplyChecks:
    """Checks the blocks of one connection, in order."""

    def __init__(self) -> None:
        self._last = _Bound(False, False, 0)
        """The last begin or end of a transaction; at first none is open, as after an end."""

    def first_refused(self, block: Block) -> RowError | None:
        """Return the first message of the next block that an apply worker refuses, with its ProtocolError, or None."""
        found = [error for error in (self._end_of_another(block), _without_xid(block)) if error is not None]
        return min(found, key=lambda error: error.row, default=None)

    def _end_of_another(self, block: Block) -> RowError | None:
        """Return the first end whose LSN is not that of its begin (apply_handle_commit(), apply_handle_prepare()).

        A Commit without a Begin is one of them: before the first Begin an apply worker expects 0/0.
        """
        tags = block.index.tags
        rows = np.flatnonzero(look_up(tags, _BOUNDS) & block.index.valid)
        if not len(rows):
            return None
        kinds = tags[rows]
        begins = np.append(self._last.is_begin, look_up(kinds, _BEGINS))
        said, lsns = np.zeros(len(begins), np.bool_), np.zeros(len(begins), np.uint64)
        said[0], lsns[0] = self._last.says_lsn, self._last.lsn
        for tag in _ANNOUNCING.keys() & set(np.flatnonzero(np.bincount(kinds)).tolist()):
            own = np.flatnonzero(kinds == tag) + 1
            column: pa.Array = header_role(_ANNOUNCING[tag], _LSN_ROLE, block.header(_ANNOUNCING[tag])[1])
            said[own], lsns[own] = column.is_valid().to_numpy(zero_copy_only=False), column.fill_null(0).to_numpy()
        other = (lsns[1:] != lsns[:-1]) & said[1:] & said[:-1]
        strange = np.flatnonzero(~begins[1:] & np.where(begins[:-1], other, ~look_up(kinds, _ALONE)))
        self._last = _Bound(bool(begins[-1]), bool(said[-1]), int(lsns[-1]))
        if not len(strange):
            return None
        first = int(strange[0])
        announced = Lsn(int(lsns[first])) if begins[first] else None
        return _incorrect(int(rows[first]), _name(block, int(rows[first])), Lsn(int(lsns[first + 1])), announced)


class _Bound(NamedTuple):
    """A begin or an end of a transaction."""

    is_begin: bool
    says_lsn: bool
    """Whether it has the LSN of the end: a later version of the protocol may make it optional."""
    lsn: int


def _incorrect(row: int, name: str, lsn: Lsn, announced: Lsn | None) -> RowError:
    where = "without a Begin" if announced is None else f"after a Begin that announced {announced}"
    return RowError(row, ProtocolError(f"{name} with the LSN {lsn} {where}: {_REMEDY}"))


def _name(block: Block, row: int) -> str:
    return kernels.READERS[int(block.index.tags[row])][0]


def _without_xid(block: Block) -> RowError | None:
    """Return the first Stream Start, or message in a stream, of the xid 0 (handle_streamed_transaction())."""
    rows = np.flatnonzero(block.xid == 0)
    if not len(rows):
        return None
    tags = block.index.tags[rows]
    inside = (block.stream_xid[rows] > OUTSIDE) & ~look_up(tags, _IGNORED)
    refused = rows[(inside | look_up(tags, _OPENS_STREAM)) & block.index.valid[rows]]
    if not len(refused):
        return None
    row = int(refused[0])
    return RowError(row, ProtocolError(f"{_name(block, row)} of the transaction ID 0 in a stream: {_REMEDY}"))
