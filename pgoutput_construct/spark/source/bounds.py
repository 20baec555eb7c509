"""Which transactions and copies of a log are wanted, by position and time: out of options and filters."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual

from pgoutput_construct.changelog.copies import TableCopy
from pgoutput_construct.columnar.times import FIRST_TIMESTAMP
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.wire import Timestamp

__all__ = ["Bounds", "bounded"]

_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1


@dataclass(frozen=True)
class Bounds:
    """What ``_commit_lsn`` and ``_commit_time`` of wanted rows are between; both ends are within."""

    first_lsn: int = _LEAST
    last_lsn: int = _MOST
    first_time: int = _LEAST
    """Microseconds since 2000-01-01 UTC."""
    last_time: int = _MOST

    def holds(self, lsns: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell of each transaction or copy whether it is wanted."""
        is_there = (lsns >= self.first_lsn) & (lsns <= self.last_lsn)
        return is_there & (times >= self.first_time) & (times <= self.last_time)

    def hold(self, copy: TableCopy) -> bool:
        """Tell whether the rows of a copy are wanted: they have a position, and no time."""
        has_times = (self.first_time, self.last_time) != (_LEAST, _MOST)
        return self.first_lsn <= copy.snapshot.lsn <= self.last_lsn and not has_times

    def within(self, column: str, first: int, last: int) -> "Bounds":
        """Narrow what one of both is between."""
        if column == "lsn":
            return replace(self, first_lsn=max(first, self.first_lsn), last_lsn=min(last, self.last_lsn))
        # Rows without a time, which no filter lets through, have one that no calendar has.
        first = max(first, FIRST_TIMESTAMP)
        return replace(self, first_time=max(first, self.first_time), last_time=min(last, self.last_time))


def bounded(bounds: Bounds, filters: Iterable[Filter]) -> Bounds:
    """Narrow bounds to what Spark's filters let through; Spark applies them all the same."""
    for each in filters:
        kind = type(each)
        if kind not in _RANGES:
            continue
        column, value = getattr(each, "attribute", ()), getattr(each, "value", None)
        number = _number(column, value)
        if number is not None:
            less, more = _RANGES[kind]
            first = _LEAST if less is None else min(number + less, _MOST)
            last = _MOST if more is None else max(number + more, _LEAST)
            bounds = bounds.within("lsn" if column == ("_commit_lsn",) else "time", first, last)
    return bounds


_RANGES: Final[dict[type[Filter], tuple[int | None, int | None]]] = {
    EqualTo: (0, 0),
    GreaterThan: (1, None),
    GreaterThanOrEqual: (0, None),
    LessThan: (None, -1),
    LessThanOrEqual: (None, 0),
}
"""How far from the value of a filter what it lets through begins and ends; None: anywhere."""


def _number(column: tuple[str, ...], value: Any) -> int | None:
    if column == ("_commit_lsn",) and isinstance(value, int):
        return value
    if column == ("_commit_time",) and isinstance(value, datetime):
        try:
            return int(Timestamp.from_datetime(value if value.tzinfo else value.replace(tzinfo=UTC)))
        except (PgoutputError, OverflowError):
            return None
    return None
