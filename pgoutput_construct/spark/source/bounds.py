"""Between which positions the wanted transactions and copies of a log committed."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pgoutput_construct.changelog._facts.copies import TableCopy

__all__ = ["Bounds"]

_MOST: Final = 2**63 - 1


@dataclass(frozen=True)
class Bounds:
    """What ``_commit_lsn`` of wanted rows is between; both ends are within.

    They are options' alone, never those of a filter that Spark pushes down (``DataSourceReader.pushFilters``): up to
    version 4 it keeps what a read with pushed filters is planned to read for the source (``setReadInfo`` in
    PythonScanBuilder), not for the scan. Whatever else reads the same DataFrame, in that plan or in a later one, would
    lack the rows that the filter let out.
    """

    first_lsn: int = 0
    last_lsn: int = _MOST

    def holds(self, lsns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return of each transaction whether it is wanted."""
        found: NDArray[np.bool_] = (lsns >= self.first_lsn) & (lsns <= self.last_lsn)
        return found

    def hold(self, copy: TableCopy) -> bool:
        """Return whether the rows of a copy are wanted."""
        return self.first_lsn <= copy.snapshot.lsn <= self.last_lsn
