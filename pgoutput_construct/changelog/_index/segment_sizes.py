"""How long the rows of a log are, as far as its segments tell: each says how many bytes of payloads it has."""

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
    """Bytes of payloads in consecutive segments; between two rows of one segment they count as equally long."""

    begins: Numbers
    """The first seq of each segment, and the seq after the last one."""
    bytes: Numbers
    """How many bytes there are before each of these."""

    @classmethod
    def of(cls, segments: Iterable[Segment]) -> Self:
        """Return those of segments, of which there is one at least."""
        told = [(one.first_seq, one.payload_bytes, one.last_seq + 1) for one in segments]
        firsts, sizes, ends = (np.array(each, np.int64) for each in zip(*told, strict=True))
        return cls(np.append(firsts, ends[-1]), np.append(0, np.cumsum(sizes)))

    @property
    def means(self) -> NDArray[np.float64]:
        """How long a row of each segment is on average."""
        found: NDArray[np.float64] = np.diff(self.bytes) / np.diff(self.begins)
        return found

    def mean(self, first: Numbers, last: Numbers) -> NDArray[np.float64]:
        """Return how long the rows from one seq to another one are on average, for each pair."""
        low = np.maximum(first, self.begins[0])
        before, until = (np.interp(seqs, self.begins, self.bytes) for seqs in (low, last + 1))
        found: NDArray[np.float64] = (until - before) / np.maximum(last + 1 - low, 1)
        return found
