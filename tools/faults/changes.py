"""A change of a row, from the witness or from the log."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

__all__ = ["Change", "Row", "shown"]

Row = Mapping[str, str | None]
"""A row's columns as texts, long ones as their digest."""

_FULL_IDENTITY = frozenset({"ledger"})
"""The tables with REPLICA IDENTITY FULL, whose old rows must be complete."""
_LONG = 64


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one row, a truncate of one table, or one logical message."""

    op: str
    """``insert``, ``update``, ``delete``, ``truncate`` or ``message``."""
    relation: str
    """The table's name; empty for a message."""
    old: Row | None = None
    new: Row | None = None
    unchanged: tuple[str, ...] = ()
    """The columns of the new row that were not sent, since they are TOASTed and stayed the same."""

    @property
    def identity(self) -> tuple[str | None, ...]:
        """Identifies the change in its transaction: each insert and update has a unique mark."""
        row = self.new if self.new is not None else self.old or {}
        return self.op, self.relation, row.get("id"), row.get("mark") if self.new is not None else None

    def differences(self, true: "Change") -> list[str]:
        """Return how this change of a log differs from the witness's change ``true`` with the same identity."""
        problems = [f"new {name}" for name, value in (self.new or {}).items() if (true.new or {}).get(name) != value]
        problems += [f"old {name}" for name, value in (self.old or {}).items() if (true.old or {}).get(name) != value]
        problems += [
            f"unchanged {name}" for name in self.unchanged if (true.old or {}).get(name) != (true.new or {}).get(name)
        ]
        if {*(self.new or {}), *self.unchanged} != set(true.new or {}):
            problems.append(f"columns {sorted({*(self.new or {}), *self.unchanged} ^ set(true.new or {}))}")
        if not _needed_of_old(true) <= set(self.old or {}):
            problems.append("no old row")
        return problems


def shown(row: Mapping[str, Any] | None) -> Row | None:
    """Return a row of Python values as the witness shows it (``texts()`` in witnessed.sql)."""
    return None if row is None else {name: _text(value) for name, value in row.items()}


def _text(value: Any) -> str | None:
    if value is None:
        return None
    text = format(value, "f") if isinstance(value, Decimal) else str(value)
    return f"md5:{hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()}" if len(text) > _LONG else text


def _needed_of_old(true: Change) -> set[str]:
    """Return the columns of the old row that must have been sent: the replica identity, where it is needed."""
    if true.old is None:
        return set()
    if true.relation in _FULL_IDENTITY:
        return set(true.old)
    moved = true.new is None or true.new["id"] != true.old["id"]
    return {"id"} if moved else set()
