"""What a task reads: some segments, and what it cannot learn from them. Small, and sent to where the task runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql.datasource import InputPartition

from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._index.index import SegmentIndex
from pgoutput_construct.changelog._index.planning import LostEnd, committed
from pgoutput_construct.changelog._segment.footer import Segment
from pgoutput_construct.spark.metadata import USUAL, Prefix
from pgoutput_construct.spark.replicated_tables import Missing
from pgoutput_construct.spark.source.bounds import Bounds
from pgoutput_construct.stream.transaction_reader import Spans

__all__ = ["Piece", "Range", "TableRows", "Used"]

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Range:
    """Which transactions and copies are wanted."""

    after: int
    """Those that ended after this seq,"""
    until: int
    """up to this one,"""
    bounds: Bounds = field(default_factory=Bounds)
    """and committed between these;"""
    lost: tuple[LostEnd, ...] = ()
    """without those of histories of the server that were lost."""

    def holds(self, transactions: pa.Table) -> NDArray[np.bool_]:
        """Tell of each committed transaction whether it is wanted."""
        seqs, lsns = (transactions[name].to_numpy() for name in ("seq", "commit_lsn"))
        wanted: NDArray[np.bool_] = (seqs > self.after) & (seqs <= self.until) & self.bounds.holds(lsns)
        return wanted

    def transactions(self, index: SegmentIndex) -> pa.Table:
        """Return the wanted transactions of an index."""
        found = committed(index.transactions, self.lost)
        return found.filter(pa.array(self.holds(found)))


@dataclass(frozen=True)
class Piece(InputPartition):
    """Some segments, and which of their transactions are wanted."""

    segments: tuple[Segment, ...]
    range: Range
    spans: Spans | None = None
    """The wanted transactions in them that are not their own (``commit_numbers.is_own``), None for none."""
    copies: tuple[TableCopy, ...] = ()
    """The wanted copies."""


@dataclass(frozen=True)
class Used:
    """What a description of a table's rows is to a reader."""

    names: tuple[str, ...]
    """What its columns are called."""
    missing: Mapping[str, Missing]
    """What its rows have in columns that came later."""


@dataclass(frozen=True)
class TableRows(InputPartition):
    """The rows of one table in a piece."""

    piece: Piece
    table: str
    """Its name, for messages."""
    oids: tuple[int, ...]
    """Its OIDs."""
    columns: pa.Schema
    """The columns that are wanted."""
    schema: pa.Schema
    """All that is returned."""
    used: Mapping[int, Used]
    """What its rows are described by, by the seqs of the Relations."""
    keeps_bad: bool = False
    """Whether malformed rows are left out."""
    prefix: Prefix = USUAL
    """How added columns are called for whom it reads."""
