"""What a dataset of a warehouse holds: which table, up to which position of the log, and how the table was then."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from pgoutput_construct.spark.replicated_tables import Place, Table
from pgoutput_construct.stream.identifiers import normal_name
from pgoutput_construct.wire import Lsn

__all__ = ["Shape", "Version"]

_NOWHERE: Place = (-1, -1)


@dataclass(frozen=True)
class Shape:
    """What a table was described with: what decides whether rows of then can be brought up to date by changes."""

    columns: Mapping[str, str]
    """All columns that it ever had in the log, and their types."""
    current: tuple[str, ...]
    """Those that it had."""
    key_columns: tuple[str, ...]
    """Those of its replica identity."""
    replica_identity: str
    """As relreplident in pg_class."""
    copy: int | None
    """The seq of the copy that its state begins with; None for none."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """The attribute numbers of columns (pg_attribute.attnum), as far as they are known: of a history's, also of those
    that the log knows no more."""

    @classmethod
    def of(cls, table: Table) -> Self:
        """Return the shape of a table as the log has it."""
        columns = {field.name: str(field.type) for field in table.columns}
        copy = table.base.copy.seq if table.base else None
        return cls(columns, table.current, table.key_columns, table.replica_identity, copy, table.numbers)

    def renamed_in(self, later: "Shape") -> dict[str, str]:
        """Return the later names of columns that have another one then, by their names now.

        One that was dropped, and whose name another one has then, is called ``name_dropped_number``, as ``Table`` does.
        """
        names = {number: name for name, number in later.numbers.items()}
        found = {}
        for name, number in self.numbers.items():
            if number not in names and later.numbers.get(name, number) != number:
                names[number] = f"{name}_dropped_{number}"
            if names.get(number, name) != name:
                found[name] = names[number]
        return found

    def after(self, before: "Shape") -> Self:
        """Return the shape with the numbers of an earlier one's columns, under the names that they have now."""
        renamed = before.renamed_in(self)
        earlier = {renamed.get(name, name): number for name, number in before.numbers.items()}
        return replace(self, numbers={**earlier, **self.numbers})

    def added_in(self, later: "Shape") -> tuple[str, ...] | None:
        """Return the columns that came after these; None where changes alone do not lead to what is ``later``.

        Columns may have been dropped. One that was renamed, or dropped and made again, has another name or place; one
        that has another type has other values.
        """
        kept = tuple(name for name in self.current if name in later.current)
        added = later.current[len(kept) :]
        known = {name: kind for name, kind in later.columns.items() if name not in added}
        same = later.current[: len(kept)] == kept and known == self.columns and self.copy == later.copy
        return added if same and not self.renamed_in(later) else None


@dataclass(frozen=True)
class Version:
    """The state of a table, as a dataset has it. It stands with the data, written in one with them."""

    table: str
    """Schema and name, as SQL writes them."""
    oid: int
    """The table's OID."""
    batch: int
    """The number of the batch that wrote it."""
    seq: int
    """All that ended in the log up to here is in it."""
    last: Place
    """Where the last change stands that the log had of the table: its transaction's commit, and the place in it."""
    shape: Shape
    """What the table was described with."""

    @classmethod
    def of(cls, table: Table, batch: int, seq: int) -> Self:
        """Return the version of a table as a log has it, up to ``seq``."""
        last = max((each.last for each in table.identities), default=_NOWHERE)
        return cls(table.qualified, table.relation_oid, batch, seq, last, Shape.of(table))

    def to_json(self) -> dict[str, Any]:
        """Return it as values of JSON that a person can read."""
        commit_lsn, place = self.last
        return asdict(self) | {"last": {"commit_lsn": str(Lsn(commit_lsn)) if commit_lsn >= 0 else None, "seq": place}}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Self:
        """Read what ``to_json`` gives; raise KeyError, TypeError or ValueError for anything else."""
        shape = {**told["shape"], **{name: tuple(told["shape"][name]) for name in ("current", "key_columns")}}
        lsn = told["last"]["commit_lsn"]
        last = (_NOWHERE[0] if lsn is None else int(Lsn(lsn)), int(told["last"]["seq"]))
        # Earlier versions wrote keywords, and names with a dollar sign, without quotes.
        return cls(**{**told, "table": normal_name(told["table"]), "last": last, "shape": Shape(**shape)})

    def to_text(self) -> str:
        """Return it as text, for formats whose metadata hold text."""
        return json.dumps(self.to_json())
