"""How far a verification has come: a small file, so that one that was interrupted resumes where it was."""

import json
from typing import Any, Final

from pgoutput_construct.changelog._store.store import LogStore, MissingFileError
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark.verifying.report import Difference, TableVerdict
from pgoutput_construct.wire import Lsn

__all__ = ["FILE_NAME", "Record"]

FILE_NAME: Final = "_verify.json"


class Record:
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

    def note(self, verdict: TableVerdict, after: str | None = None) -> None:
        """Note what was found of a table up to a key, or to its end."""
        self._tables[verdict.table] = {"verdict": verdict.to_json(), "after": after}
        self._store.write(self._name, json.dumps(self._tables).encode())

    def forget(self, table: str) -> None:
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
            place = self._store.path_of(self._name)
            raise PgoutputError(
                f"{place}: no record of a verification: remove it to begin from scratch: {error}"
            ) from None


def _verdict(told: dict[str, Any]) -> TableVerdict:
    examples = tuple(Difference(**{**each, "columns": tuple(each["columns"])}) for each in told["examples"])
    given = {name: value for name, value in told.items() if name != "equal"}
    return TableVerdict(**{**given, "lsn": Lsn(told["lsn"]), "examples": examples})
