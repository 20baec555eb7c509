"""Tables that could not be brought up to date: why, and when each is retried."""

import re
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark._execution import reason_of

__all__ = ["Troubles", "WaitingError", "combined_error"]

_FIRST: Final = 1.0
"""Seconds until a table is retried; doubled by each failure,"""
_LONGEST: Final = 300.0
"""up to these."""


_ESCAPED: Final = re.compile(r"""(?<=['"`])~(?=[_~])""")
"""How column names are escaped while changes are replayed (``added_columns.MARK``)."""


class WaitingError(ChangeLogError):
    """A table waits for another one that is in trouble."""


@dataclass(frozen=True)
class _Trouble:
    table: str
    reason: str
    kind: str
    """The class of the error."""
    waits: bool
    """Whether the trouble is that of another table."""
    pause: float
    """Seconds until the next attempt."""
    since: float
    """When the last attempt failed."""

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self.since + self.pause


class Troubles:
    """The tables in trouble, by OID."""

    def __init__(self) -> None:
        self._known: dict[int, _Trouble] = {}

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why tables are not up to date, by name."""
        return {each.table: each.reason for each in sorted(self._known.values(), key=lambda each: each.table)}

    @property
    def names(self) -> Mapping[int, str]:
        """The names of the tables in trouble, by OID."""
        return {oid: each.table for oid, each in self._known.items()}

    @property
    def kinds(self) -> Mapping[str, str]:
        """The classes of the errors, by the names of tables; they contain no data."""
        return {each.table: each.kind for each in sorted(self._known.values(), key=lambda each: each.table)}

    def __contains__(self, oid: int) -> bool:
        return oid in self._known

    def has_own(self, oid: int) -> bool:
        """Return whether a table is in trouble by itself, not because of another one."""
        known = self._known.get(oid)
        return known is not None and not known.waits

    def may_retry(self, oid: int) -> bool:
        """Return whether a batch tries a table: one in no trouble, one whose pause is over, or one that waits."""
        known = self._known.get(oid)
        return known is None or known.waits or known.is_due

    @property
    def has_due(self) -> bool:
        """Whether the pause of a table is over."""
        return any(each.is_due for each in self._known.values())

    def note(self, oid: int, table: str, error: Exception) -> None:
        """Note why a table could not be brought up to date."""
        before, waits = self._known.get(oid), isinstance(error, WaitingError)
        pause = _FIRST if before is None or waits else min(2 * before.pause, _LONGEST)
        reason = _ESCAPED.sub("", reason_of(error))
        self._known[oid] = _Trouble(table, reason, type(error).__name__, waits, pause, time.monotonic())

    def retain_only(self, oids: Collection[int]) -> None:
        """Forget all tables but these."""
        self._known = {oid: each for oid, each in self._known.items() if oid in oids}


def combined_error(reasons: Mapping[str, str]) -> ChangeLogError:
    """Return one error for all tables in trouble."""
    (name, first), *others = sorted(reasons.items())
    more = f" (and {len(others)} more: {', '.join(other for other, _ in others)})" if others else ""
    text = first if first.startswith(name) else f"{name}: {first}"
    return ChangeLogError(f"{text}{more}; all other tables are up to date")
