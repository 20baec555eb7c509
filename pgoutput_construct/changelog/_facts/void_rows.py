"""Rows of a table copy that do not count: a copy that was interrupted was resumed under a later snapshot.

They had changed by then, were read again under it, or are of pages that were not read as a whole. Rows are stored
between transactions, in the order in which they were read, so that those of one page or of one key range are often
neighbours: their seqs are kept as ranges.
"""

import base64
import binascii
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.changelog._segment.events import VoidRowsDetails

__all__ = ["NO_VOID_ROWS", "VoidRows"]

_NUMBER: Final = np.dtype("<i8")


@dataclass(frozen=True)
class VoidRows:
    """The seqs of some copied rows."""

    rows: int = 0
    """Their number."""
    ranges: int = 0
    """The number of ranges that they make."""
    seqs: str = ""
    """The ranges, as ``VoidRowsDetails`` has them."""

    @classmethod
    def from_seqs(cls, seqs: Numbers) -> "VoidRows":
        """Return the rows with some seqs, which ascend."""
        if not len(seqs):
            return NO_VOID_ROWS
        starts = np.flatnonzero(np.diff(seqs, prepend=seqs[0] - 2) != 1)
        lengths = np.diff(np.append(starts, len(seqs)))
        steps = np.diff(seqs[starts], prepend=0)
        content = np.stack([steps, lengths], 1).astype(_NUMBER).tobytes()
        return cls(len(seqs), len(starts), base64.b64encode(zlib.compress(content)).decode("ascii"))

    @classmethod
    def read(cls, details: Mapping[str, Any] | None) -> "VoidRows":
        """Return what the details of an event say; raise ValueError if they contradict themselves."""
        if details is None:
            return NO_VOID_ROWS
        found = cls(details["rows"], details["ranges"], details["seqs"])
        first, last = found.bounds
        if int((last - first + 1).sum()) != found.rows or (last < first).any() or (first[1:] <= last[:-1]).any():
            raise ValueError("the seqs of void rows contradict themselves")
        return found

    def details(self) -> VoidRowsDetails:
        """Return the rows as details of an event."""
        return {"rows": self.rows, "ranges": self.ranges, "seqs": self.seqs}

    @cached_property
    def bounds(self) -> tuple[Numbers, Numbers]:
        """The first and the last seq of each range, ascending; raises ValueError for a text that is damaged."""
        size = self.ranges * 2 * _NUMBER.itemsize
        unpacker = zlib.decompressobj()
        try:
            content = unpacker.decompress(base64.b64decode(self.seqs, validate=True), size + 1) if self.seqs else b""
        except (binascii.Error, zlib.error) as error:
            raise ValueError(f"the seqs of void rows are damaged: {error}") from None
        if len(content) != size:
            raise ValueError(f"the seqs of void rows are damaged: there are not {self.ranges} ranges")
        steps, lengths = np.frombuffer(content, _NUMBER).astype(np.int64).reshape(-1, 2).T
        first = np.cumsum(steps)
        return first, first + lengths - 1

    def __contains__(self, seq: int) -> bool:
        return bool(self.rows and self.has(np.array([seq], np.int64))[0])

    def has(self, seqs: Numbers) -> Flags:
        """Return for each seq whether it is one of them."""
        first, last = self.bounds
        indexes = np.searchsorted(first, seqs, "right") - 1
        found = indexes >= 0
        found[found] = seqs[found] <= last[indexes[found]]
        return found


NO_VOID_ROWS: Final = VoidRows()
"""None."""
