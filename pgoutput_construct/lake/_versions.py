"""What a dataset of a warehouse holds: up to which seq of the log it is, and the shape of its table."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Self

from pgoutput_construct.wire import Lsn

__all__ = ["NOWHERE", "Version", "VersionShape", "is_wider"]

NOWHERE: Final = (-1, -1)
"""The position of a change where there was none."""
_DECIMAL: Final = re.compile(r"decimal128\((\d+), (-?\d+)\)")
_WIDER: Final = {("int16", "int32"), ("int16", "int64"), ("int32", "int64"), ("float", "double")}
"""Types of Arrow, and wider ones, that formats alter a column to."""


def is_wider(kind: str, former: str) -> bool:
    """Return whether a type of Arrow is a wider one, which holds all values of the former one as they are."""
    now, was = _DECIMAL.fullmatch(kind), _DECIMAL.fullmatch(former)
    if now and was:
        return now[2] == was[2] and int(now[1]) > int(was[1])
    return (former, kind) in _WIDER


@dataclass(frozen=True)
class VersionShape:
    """How a table was described: what decides whether its rows can be brought up to date by changes."""

    columns: Mapping[str, str]
    """All columns that it ever had in the log, and their types."""
    current: tuple[str, ...]
    """The present ones."""
    key_columns: tuple[str, ...]
    """Those of its replica identity."""
    replica_identity: str
    """As relreplident in pg_class."""
    copy: int | None
    """The seq of the copy that its state begins with; None for none."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """The attribute numbers of columns (pg_attribute.attnum), as far as they are known; of a history's also those
    that the log no longer has.
    """
    rules: Mapping[str, str] = field(default_factory=dict)
    """What was made of columns: excluded, renamed to this name, or how their values are masked (``Rule.label``)."""
    added: tuple[str, ...] | None = None
    """The columns that the dataset has in addition to the table's, as replays call them; None for those of a history,
    and for the usual ones (``dataset_columns.STATE``).
    """
    copied: tuple[str, ...] = ()
    """Those of ``current`` that are copies of columns of changes (``Table.copied``)."""

    def renamed_in(self, later: "VersionShape") -> dict[str, str]:
        """Return the later names of renamed columns, by their names here.

        A dropped one, whose name another one has later, is called ``name_dropped_number``, as in ``Table``.
        """
        names = {number: name for name, number in later.numbers.items()}
        found = {}
        for name, number in self.numbers.items():
            if number not in names and later.numbers.get(name, number) != number:
                names[number] = f"{name}_dropped_{number}"
            if names.get(number, name) != name:
                found[name] = names[number]
        return found

    def continuing(self, before: "VersionShape") -> Self:
        """Return the shape with the numbers of an earlier one's columns, under their present names."""
        renamed = before.renamed_in(self)
        earlier = {renamed.get(name, name): number for name, number in before.numbers.items()}
        return replace(self, numbers={**earlier, **self.numbers})

    def added_in(self, later: "VersionShape") -> tuple[str, ...]:
        """Return the columns that were added since; columns may have been dropped."""
        was, now = self._own_columns, later._own_columns
        return now[len(tuple(name for name in was if name in now)) :]

    @property
    def _own_columns(self) -> tuple[str, ...]:
        return tuple(name for name in self.current if name not in self.copied)

    def widened_in(self, later: "VersionShape") -> tuple[str, ...]:
        """Return the columns whose type was made wider since: it holds all former values as they were."""
        return tuple(name for name, kind in self.columns.items() if is_wider(later.columns.get(name, kind), kind))

    def obstacle_to(self, later: "VersionShape") -> str:
        """Return why changes alone do not lead to a later shape; "" if they do.

        A renamed, or dropped and re-created, column has another name or order; one of another type other values.
        """
        renamed = ", ".join(f"{name!r} to {now!r}" for name, now in self.renamed_in(later).items())
        found = {
            "it was copied again": self.copy != later.copy,
            f"columns were renamed: {renamed}": bool(renamed),
            "columns are excluded, masked or renamed in another way": self.has_other_rules(later),
            "it has other metadata columns": (self.added, self.copied) != (later.added, later.copied),
        }
        return next((reason for reason, is_so in found.items() if is_so), "") or self._column_obstacle_to(later)

    def _column_obstacle_to(self, later: "VersionShape") -> str:
        was_own, own = self._own_columns, later._own_columns
        kept = tuple(name for name in was_own if name in own)
        if own[: len(kept)] != kept:
            return "its columns have another order"
        added, widened = self.added_in(later), self.widened_in(later)
        known = {name: kind for name, kind in later.columns.items() if name not in added}
        for name in sorted(known.keys() | self.columns.keys()):
            was, now = self.columns.get(name), known.get(name)
            if was != now and name not in widened:
                return f"the column {name!r} is {now or 'not known'}, and was {was or 'not known'}"
        return ""

    def has_other_rules(self, later: "VersionShape") -> bool:
        """Return whether columns are to be excluded, masked or renamed in another way than they were written."""
        renamed, now = self.renamed_in(later), later.rules
        was = {renamed.get(name, name): rule for name, rule in self.rules.items()}
        columns = {renamed.get(name, name) for name in self.columns}
        return any(was.get(name, "") != now[name] for name in now if name in columns) or any(
            now.get(name, "") != was[name] for name in was if name in later.columns
        )


@dataclass(frozen=True)
class Version:
    """The state of a table in a dataset. It is written with the data, in one commit."""

    table: str
    """Schema and name, as SQL writes them."""
    oid: int
    """The table's OID."""
    batch: int
    """The number of the batch that wrote it."""
    seq: int
    """Everything that ended in the log up to this seq is in it."""
    last: tuple[int, int]
    """The position (commit LSN, seq) of the last change that the log had of the table."""
    shape: VersionShape
    """How the table was described."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values that a person can read."""
        commit_lsn, seq = self.last
        return asdict(self) | {"last": {"commit_lsn": str(Lsn(commit_lsn)) if commit_lsn >= 0 else None, "seq": seq}}
