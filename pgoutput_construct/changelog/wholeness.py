"""What a log lacks: tables that it does not hold from their first row on, and such that changed behind its back."""

from collections.abc import Iterator

import numpy as np

from pgoutput_construct.changelog.copies import TableCopy, copies_of
from pgoutput_construct.changelog.index import SegmentIndex

__all__ = ["present_copies"]


def present_copies(index: SegmentIndex) -> Iterator[TableCopy]:
    """Yield the complete copies whose rows are all there: a log that was pruned may begin amid one."""
    chunks = index.entries("snapshots").sort_by("number")
    numbers, rows = chunks["number"].to_numpy(), chunks["rows"].to_numpy()
    passed = np.append(0, np.cumsum(rows))
    for copy in copies_of(index):
        first = np.searchsorted(numbers, copy.first_chunk)
        end = max(first, np.searchsorted(numbers, copy.last_chunk, "right"))
        if passed[end] - passed[first] == copy.rows:
            yield copy
