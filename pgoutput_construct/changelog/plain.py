"""Transactions that begin and end in one block, found without a loop over them."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from pgoutput_construct.changelog.block import Block, Flags, Numbers, header_role
from pgoutput_construct.changelog.index import COLUMNS
from pgoutput_construct.columnar.gather import look_up, tag_table
from pgoutput_construct.stream.bounds import PLAIN_BEGIN, PLAIN_COMMIT
from pgoutput_construct.stream.logged import COMMITTED
from pgoutput_construct.wire.protocol import BEGINS, ENDS

__all__ = ["PlainTransactions", "find_plain"]

_BOUNDS: Final = tag_table(BEGINS | ENDS)
_INT64_MAX: Final = 2**63 - 1


@dataclass(frozen=True)
class PlainTransactions:
    """Transactions of a Begin and its Commit, with no other bound of a transaction between them."""

    first: Numbers
    """The row of each Begin in the block."""
    last: Numbers
    """The row of its Commit."""
    columns: tuple[pa.Array, ...]
    """xid, commit_lsn, end_lsn and commit_time of each."""
    others: Numbers
    """The rows of all other messages that begin or end something."""

    def entries(self, first_seq: int) -> pa.Array:
        """Return them as entries of the index's ``transactions``; ``first_seq`` is the seq of the block's first row."""
        count = len(self.first)
        xid, commit_lsn, end_lsn, commit_time = self.columns
        ends = pa.array(self.last + first_seq)
        spans = pa.StructArray.from_arrays([pa.array(self.first + first_seq), ends], ["first", "last"])
        arrays = {
            "seq": ends,
            "xid": xid,
            "gid": pa.nulls(count, pa.string()),
            "streamed": pa.array(np.zeros(count, np.bool_)),
            "outcome": pa.repeat(COMMITTED, count),
            "commit_lsn": commit_lsn,
            "end_lsn": end_lsn,
            "commit_time": commit_time,
            "spans": pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32)), spans),
            "aborted": pa.ListArray.from_arrays(pa.array(np.zeros(count + 1, np.int32)), pa.array([], pa.int64())),
        }
        kind = COLUMNS["transactions"]
        return pa.StructArray.from_arrays([arrays[field.name] for field in kind], fields=list(kind))


def find_plain(block: Block) -> PlainTransactions:
    """Find the transactions whose Commit is the next bound after their Begin, and fits it."""
    bounds = np.flatnonzero(look_up(block.index.tags, _BOUNDS) & block.index.valid)
    tags = block.index.tags[bounds]
    (begin_rows, begin), (commit_rows, commit) = block.header(PLAIN_BEGIN), block.header(PLAIN_COMMIT)
    opens = np.flatnonzero((tags[:-1] == PLAIN_BEGIN.TAG[0]) & (tags[1:] == PLAIN_COMMIT.TAG[0]))
    begins, commits = np.searchsorted(begin_rows, bounds[opens]), np.searchsorted(commit_rows, bounds[opens + 1])
    # pgoutput_begin_txn() and pgoutput_commit_txn() send the same position.
    announced, is_announced = _positions(header_role(PLAIN_BEGIN, "lsn", begin))
    lsns, is_held = _positions(header_role(PLAIN_COMMIT, "lsn", commit))
    _, is_end_held = _positions(header_role(PLAIN_COMMIT, "end_lsn", commit))
    fits = (announced[begins] == lsns[commits]) & is_announced[begins] & is_held[commits] & is_end_held[commits]
    opens, begins, commits = opens[fits], begins[fits], commits[fits]
    is_other = np.ones(len(bounds), np.bool_)
    is_other[opens] = is_other[opens + 1] = False
    own = (header_role(PLAIN_COMMIT, role, commit).take(pa.array(commits)) for role in _OF_COMMIT)
    columns = header_role(PLAIN_BEGIN, "xid", begin).take(pa.array(begins)), *own
    numbers = tuple(column.cast(pa.int64()) for column in columns)
    return PlainTransactions(begin_rows[begins], commit_rows[commits], numbers, bounds[is_other])


_OF_COMMIT: Final = ("lsn", "end_lsn", "time")


def _positions(said: pa.Array) -> tuple[Numbers, Flags]:
    """Return positions, each with whether it was said and is one that the index can hold."""
    lsns: Numbers = said.fill_null(0).to_numpy()
    return lsns, said.is_valid().to_numpy(zero_copy_only=False) & (lsns <= _INT64_MAX)
