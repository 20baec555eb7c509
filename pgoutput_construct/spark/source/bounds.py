"""Which transactions, copies and rows of a log are wanted, by position and time: out of options and filters."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

from pgoutput_construct.changelog.copies import TableCopy
from pgoutput_construct.columnar.forms.times import FIRST_TIMESTAMP
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark.metadata import USUAL, Prefix
from pgoutput_construct.wire import Timestamp

__all__ = ["Bounds", "bounded"]

Numbers = NDArray[np.int64]

_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1


@dataclass(frozen=True)
class Bounds:
    """What ``_commit_lsn``, ``_commit_time`` and ``_seq`` of wanted rows are between; both ends are within."""

    first_lsn: int = _LEAST
    last_lsn: int = _MOST
    first_time: int = _LEAST
    """Microseconds since 2000-01-01 UTC."""
    last_time: int = _MOST
    first_position: int = _LEAST
    """In the transaction; of copied rows, in the log."""
    last_position: int = _MOST

    def holds(self, lsns: Numbers, times: Numbers) -> NDArray[np.bool_]:
        """Tell of each transaction or copy whether it is wanted."""
        is_there = (lsns >= self.first_lsn) & (lsns <= self.last_lsn)
        return is_there & (times >= self.first_time) & (times <= self.last_time)

    def hold(self, copy: TableCopy) -> bool:
        """Return whether the rows of a copy are wanted: they have a position, and no time."""
        has_times = (self.first_time, self.last_time) != (_LEAST, _MOST)
        return self.first_lsn <= copy.snapshot.lsn <= self.last_lsn and not has_times

    def narrowed(self, first: Numbers, last: Numbers, position: Numbers) -> tuple[Numbers, Numbers]:
        """Return the part of each span that is wanted: its first seq, and its last one, before the first if none is.

        ``position`` is that of each span's first message in its transaction.
        """
        least, most = max(self.first_position, 0), max(self.last_position, -1)
        after = np.maximum(least - position, 0)
        # A sum with what stands for no bound would be none.
        return first + np.minimum(after, last - first + 1), first + np.minimum(most - position, last - first)

    def within(self, column: str, first: int, last: int) -> "Bounds":
        """Narrow what one of the three is between: ``lsn``, ``time`` or ``position``."""
        if column == "time":
            # Rows without a time, which no filter lets through, have one that no calendar has.
            first = max(first, FIRST_TIMESTAMP)
        least, most = f"first_{column}", f"last_{column}"
        return replace(self, **{least: max(first, getattr(self, least)), most: min(last, getattr(self, most))})


def bounded(bounds: Bounds, filters: Iterable[Filter], prefix: Prefix = USUAL) -> Bounds:
    """Narrow bounds to what Spark's filters let through, under a reader's names; Spark applies them all the same."""
    columns: Mapping[object, str] = {(prefix.ours(name),): column for name, column in _COLUMNS.items()}
    for each in filters:
        column = columns.get(getattr(each, "attribute", ()))
        if column is None or type(each) not in _RANGES:
            continue
        given = getattr(each, "value", None)
        numbers = [_number(column, value) for value in (given if isinstance(given, tuple) else (given,))]
        if known := [number for number in numbers if number is not None]:
            less, more = _RANGES[type(each)]
            first = _LEAST if less is None or len(known) < len(numbers) else min(min(known) + less, _MOST)
            last = _MOST if more is None or len(known) < len(numbers) else max(max(known) + more, _LEAST)
            bounds = bounds.within(column, first, last)
    return bounds


_COLUMNS: Final[Mapping[str, str]] = {
    "_commit_lsn": "lsn",
    "_commit_time": "time",
    "_seq": "position",
}
"""What the bounds of a column are called."""

_RANGES: Final[dict[type[Filter], tuple[int | None, int | None]]] = {
    EqualTo: (0, 0),
    In: (0, 0),
    GreaterThan: (1, None),
    GreaterThanOrEqual: (0, None),
    LessThan: (None, -1),
    LessThanOrEqual: (None, 0),
}
"""How far from the values of a filter what it lets through begins and ends; None: anywhere."""


def _number(column: str, value: Any) -> int | None:
    if column != "time":
        return value if isinstance(value, int) else None
    try:
        return int(Timestamp.from_datetime(value if value.tzinfo else value.replace(tzinfo=UTC)))
    except (PgoutputError, OverflowError, AttributeError):
        return None
