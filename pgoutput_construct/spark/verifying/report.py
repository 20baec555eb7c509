"""What a verification has found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pgoutput_construct.wire import Lsn

__all__ = ["Difference", "TableVerdict"]


@dataclass(frozen=True)
class Difference:
    """A row that the server and the warehouse do not have alike; values are canonical texts (pgtypes)."""

    key: Mapping[str, str | None]
    """The columns of its key; of a table without one, all."""
    kind: str
    """``missing`` in the warehouse, ``unexpected`` in it, or ``changed``."""
    columns: tuple[str, ...] = ()
    """The columns that differ, of a row that is there in both."""
    source: Mapping[str, str | None] = field(default_factory=dict)
    """What the server has in them."""
    warehouse: Mapping[str, str | None] = field(default_factory=dict)
    """What the warehouse has in them."""


@dataclass(frozen=True)
class TableVerdict:
    """One table of a warehouse against its source."""

    table: str
    """Schema and name, as SQL writes them."""
    seq: int = -1
    """The version in the warehouse: all that ended in the log up to here is in it."""
    lsn: Lsn = field(default_factory=Lsn)
    """The position of the snapshot on the server under which they were compared."""
    rows: int = 0
    """Rows on the server."""
    parts: int = 0
    """How many ranges of keys, or buckets of rows, were compared by their checksums."""
    different_parts: int = 0
    """How many of them differ."""
    different_rows: int = 0
    """How many rows differ in those that were compared row by row: the first ones."""
    examples: tuple[Difference, ...] = ()
    """Some of them."""
    problem: str = ""
    """Why it could not be compared; empty where it was."""

    @property
    def equal(self) -> bool:
        """Whether both have the same rows."""
        return not (self.different_parts or self.problem)

    def to_json(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        examples = [
            {**each.__dict__, "key": dict(each.key), "source": dict(each.source), "warehouse": dict(each.warehouse)}
            for each in self.examples
        ]
        return {**self.__dict__, "lsn": str(self.lsn), "equal": self.equal, "examples": examples}
