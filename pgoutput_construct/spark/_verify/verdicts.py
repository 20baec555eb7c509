"""What a verification found; and its record: a small file, so that an interrupted one resumes."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from pgoutput_construct.changelog._store.json_notes import read_note
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.wire import Lsn


@dataclass(frozen=True)
class Difference:
    """A row in which server and warehouse differ; values are canonical texts (``pgtypes/canonical_text.py``)."""

    key: Mapping[str, str | None]
    """The columns of its key; all columns of a table without one."""
    kind: str
    """``missing`` in the warehouse, ``unexpected`` in it, or ``changed``."""
    columns: tuple[str, ...] = ()
    """The columns that differ in a row that both have."""
    source: Mapping[str, str | None] = field(default_factory=dict)
    """Their values on the server."""
    warehouse: Mapping[str, str | None] = field(default_factory=dict)
    """Their values in the warehouse."""


@dataclass(frozen=True)
class TableVerdict:
    """The verdict on one table of a warehouse."""

    table: str
    """Schema and name, as SQL writes them."""
    seq: int = -1
    """The seq of the version in the warehouse: everything that ended by it is in the table."""
    lsn: Lsn = field(default_factory=Lsn)
    """The LSN of the snapshot of the server."""
    rows: int = 0
    """Rows on the server."""
    parts: int = 0
    """How many ranges of keys, or buckets of rows, were compared by checksums."""
    different_parts: int = 0
    """How many of them differ."""
    different_rows: int = 0
    """How many rows differ in the parts that were compared row by row: the first ones."""
    examples: tuple[Difference, ...] = ()
    """Some of these rows."""
    problem: str = ""
    """Why the table could not be compared; empty if it was."""
    is_earlier: bool = False
    """Whether an earlier verification has compared it, which was interrupted."""
    not_compared: Mapping[str, str] = field(default_factory=dict)
    """The columns of the table at its source that were not compared, and why: the warehouse does not have them, or has
    them masked with a salt that is not known here.
    """

    @property
    def equal(self) -> bool:
        """Whether both have the same rows."""
        return not (self.different_parts or self.problem)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self) | {"lsn": str(self.lsn), "equal": self.equal}


FILE_NAME: Final = "_verify.json"


@dataclass(frozen=True)
class _Recorded:
    verdict: TableVerdict
    after: str | None


class VerificationRecord:
    """The progress of a verification; written after each table, and after some ranges of a large one."""

    def __init__(self, store: LogStore, name: str = FILE_NAME) -> None:
        """Read the record that an interrupted verification has left; raises PgoutputError for a damaged one."""
        self._store, self._name = store, name
        self._tables = self._read()

    def done(self, table: str) -> TableVerdict | None:
        """Return the verdict on a table that an interrupted verification has compared completely."""
        verdict, after = self.so_far(table)
        return None if after is not None or verdict is None else replace(verdict, is_earlier=True)

    def restart(self) -> None:
        """Discard all that was found."""
        self._tables.clear()

    def so_far(self, table: str) -> tuple[TableVerdict | None, str | None]:
        """Return the verdict on a table so far, and the key to resume after; None for a table that was not begun."""
        found = self._tables.get(table)
        return (None, None) if found is None else (found.verdict, found.after)

    def record(self, verdict: TableVerdict, after: str | None = None) -> None:
        """Record the verdict on a table up to a key, or its end."""
        self._tables[verdict.table] = _Recorded(verdict, after)
        content = {
            name: {"verdict": each.verdict.to_json(), "after": each.after} for name, each in self._tables.items()
        }
        self._store.write(self._name, json.dumps(content).encode())

    def discard(self, table: str) -> None:
        """Discard what was found of a table."""
        self._tables.pop(table, None)

    def close(self) -> None:
        """Remove the record: everything was compared."""
        self._store.delete(self._name)

    def _read(self) -> dict[str, "_Recorded"]:
        what, remedy = "invalid progress file of a verification", "remove it to start again"
        return read_note(self._store, self._name, dict[str, _Recorded], what=what, remedy=remedy) or {}
