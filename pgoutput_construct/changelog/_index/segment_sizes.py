"""Estimates the size of rows in a log: each segment's footer has the bytes of its payloads."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.changelog._segment.footer import Segment

__all__ = ["Sizes"]


@dataclass(frozen=True)
class Sizes:
    """Bytes of payloads by seq; the rows of one segment count as equally long."""

    begins: Numbers
    """The first seq of each segment, and the seq after the last one."""
    bytes: Numbers
    """The bytes of payloads before each of these."""

    @classmethod
    def from_segments(cls, segments: Iterable[Segment]) -> Self:
        """Return the sizes of consecutive segments, at least one."""
        rows = [(one.first_seq, one.payload_bytes, one.last_seq + 1) for one in segments]
        firsts, sizes, ends = (np.array(each, np.int64) for each in zip(*rows, strict=True))
        return cls(np.append(firsts, ends[-1]), np.append(0, np.cumsum(sizes)))

    @property
    def means(self) -> NDArray[np.float64]:
        """The mean size of a row of each segment, in bytes."""
        found: NDArray[np.float64] = np.diff(self.bytes) / np.diff(self.begins)
        return found

    def mean(self, first: Numbers, last: Numbers) -> NDArray[np.float64]:
        """Return the mean size of a row, in bytes, for each pair of a first and a last seq."""
        low = np.maximum(first, self.begins[0])
        before, until = (np.interp(seqs, self.begins, self.bytes) for seqs in (low, last + 1))
        found: NDArray[np.float64] = (until - before) / np.maximum(last + 1 - low, 1)
        return found
