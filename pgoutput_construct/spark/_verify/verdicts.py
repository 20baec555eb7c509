"""What a verification has found."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pgoutput_construct.changelog._store.store import LogStore, MissingFileError
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.wire import Lsn

__all__ = ["Difference", "TableVerdict", "VerificationRecord"]


@dataclass(frozen=True)
class Difference:
    """A row that the server and the warehouse do not have alike; values are canonical texts (pgtypes/canonical.py)."""

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


FILE_NAME: Final = "_verify.json"


class VerificationRecord:
    """What has been compared; written after each table, and after each few ranges of a large one."""

    def __init__(self, store: LogStore, name: str = FILE_NAME) -> None:
        """Read the record that an interrupted verification has left; raises PgoutputError for a damaged one."""
        self._store, self._name = store, name
        self._tables: dict[str, Any] = self._read()

    def done(self, table: str) -> TableVerdict | None:
        """Return what was found of a table that was compared to its end."""
        verdict, after = self.so_far(table)
        return None if after is not None else verdict

    def so_far(self, table: str) -> tuple[TableVerdict | None, str | None]:
        """Return what was found of a table, and after which key to go on; nothing of one that was not begun."""
        told = self._tables.get(table)
        return (None, None) if told is None else (_verdict(told["verdict"]), told["after"])

    def record(self, verdict: TableVerdict, after: str | None = None) -> None:
        """Note what was found of a table up to a key, or to its end."""
        self._tables[verdict.table] = {"verdict": verdict.to_json(), "after": after}
        self._store.write(self._name, json.dumps(self._tables).encode())

    def discard(self, table: str) -> None:
        """Begin again with a table: what was found of it is void."""
        self._tables.pop(table, None)

    def close(self) -> None:
        """Remove it: all was compared."""
        self._store.delete(self._name)

    def _read(self) -> dict[str, Any]:
        try:
            told = json.loads(self._store.read(self._name))
            for each in told.values():
                _verdict(each["verdict"])
            return dict(told)
        except MissingFileError:
            return {}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            place = self._store.place(self._name)
            raise PgoutputError(
                f"{place}: no record of a verification: remove it to begin from scratch: {error}"
            ) from None


def _verdict(told: dict[str, Any]) -> TableVerdict:
    examples = tuple(Difference(**{**each, "columns": tuple(each["columns"])}) for each in told["examples"])
    given = {name: value for name, value in told.items() if name != "equal"}
    return TableVerdict(**{**given, "lsn": Lsn(told["lsn"]), "examples": examples})
