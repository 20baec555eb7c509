"""The events of a change log as sentences: what happened, to what. ``spec/changelog.md`` describes their details."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self, TypeAlias

from pgoutput_construct.changelog._segment.events import (
    BEGUN_ANEW,
    CONNECTED,
    COPIED_CHUNKS,
    COPIED_TABLE,
    COPYING_TABLE,
    CREATED_SLOT,
    OPTIONS_CHANGED,
    PUBLICATION_FACTS,
    TABLE_FACTS,
)
from pgoutput_construct.cli._printing import counted, listed
from pgoutput_construct.cli._values import told
from pgoutput_construct.stream.identifiers import qualified_name
from pgoutput_construct.wire import Lsn

__all__ = ["EventTexts"]

_Details: TypeAlias = Mapping[str, Any]
_NAMES: Final = ("slot", "timeline")
_IDENTITIES: Final = {"d": "its primary key", "i": "an index", "f": "FULL", "n": "NOTHING"}
"""pg_class.relreplident."""


class EventTexts:
    """Writes the events of one log, in order: of tables and publications what differs from what was said before."""

    def __init__(self, everything: bool = False) -> None:
        """``everything`` writes all details, of each event."""
        self._everything = everything
        self._columns: dict[int, Mapping[int, _Column]] = {}
        """The columns of tables by OID and number."""
        self._members: dict[str, set[str]] = {}
        """The tables of publications."""
        self._said: dict[object, str] = {}
        """The last states of tables and publications."""

    def text(self, name: str, details: _Details) -> str | None:
        """Return an event as a sentence for people; None if it repeats another one, as a new connection does."""
        if name == COPIED_CHUNKS and not self._everything:
            return None  # there are thousands: the progress of copies is shown
        if self._everything or name not in {*_TEXTS, COPYING_TABLE, TABLE_FACTS, PUBLICATION_FACTS}:
            said = told(details, self._everything)
            return f"{name}{said and f': {said}'}"
        if name == TABLE_FACTS:
            return self._table(details)
        if name == PUBLICATION_FACTS:
            return self._publication(details)
        if name == COPYING_TABLE:
            return self._copying_table(details)
        return _TEXTS[name](details)

    def _table(self, details: _Details) -> str | None:
        oid, title = details["oid"], f"table {_table_name(details)}"
        if details.get("gone"):
            return self._text(oid, title, [], "was dropped")
        columns = {
            each["number"]: _Column.parse(each) for each in details.get("columns", ()) if not each.get("dropped")
        }
        changes = [*_differences(self._columns.get(oid, columns), columns)]
        self._columns[oid] = columns
        identity = _IDENTITIES.get(details.get("replica_identity", ""), "unknown")
        return self._text(oid, title, changes, f"{counted(len(columns), 'column')}, replica identity is {identity}")

    def _publication(self, details: _Details) -> str | None:
        name = details["publication"]
        title = f"publication {name}"
        if not details.get("captured", True):
            return self._text(name, title, [], "is not captured any more")
        members = {_table_name(each) for each in details.get("tables", ())}
        before = self._members.get(name, members)
        self._members[name] = members
        changes = [
            *([f"added {listed(sorted(members - before))}"] if members - before else []),
            *([f"removed {listed(sorted(before - members))}"] if before - members else []),
        ]
        parts = [
            f"{'all tables, ' if details.get('all_tables') else ''}{counted(len(members), 'table')}",
            ", ".join(details.get("operations", ())) or "no operations",
            *(["partitions as their root"] if details.get("via_root") else []),
        ]
        if unsent := {_table_name(each) for each in details.get("unsent", ())}:
            parts.append(f"without the foreign or unlogged {listed(sorted(unsent))}")
        return self._text(name, title, changes, "; ".join(parts))

    def _copying_table(self, details: _Details) -> str:
        table, chunks = qualified_name(details["schema"], details["table"]), tuple(details["chunks"])
        pages = counted(sum(leaf[2] for leaf in details["leaves"]), "page")
        is_resumed = self._said.get(chunks) is not None
        self._said[chunks] = table
        return f"resumed the copy of table {table}" if is_resumed else f"began to copy table {table}, {pages}"

    def _text(self, about: object, title: str, changes: Sequence[str], state: str) -> str | None:
        """Return a text about a table or publication; None if it says nothing that was not said before."""
        text = f"{title}: {state}"
        if self._said.get(about) == text and not changes:
            return None
        self._said[about] = text
        return f"{title}: {', '.join(changes)}: {state}" if changes else text


class _Column(NamedTuple):
    name: str
    type: int
    modifier: int

    @classmethod
    def parse(cls, facts: _Details) -> Self:
        return cls(facts.get("name", ""), facts.get("type", 0), facts.get("modifier", 0))


def _differences(before: Mapping[int, _Column], now: Mapping[int, _Column]) -> Iterator[str]:
    """Yield how columns differ, which are known by their numbers."""
    for number, column in now.items():
        was = before.get(number)
        if was is None:
            yield f"added column {column.name}"
        elif was.name != column.name:
            yield f"renamed column {was.name} to {column.name}"
        elif was != column:
            yield f"altered the type of column {column.name}"
    yield from (f"dropped column {was.name}" for number, was in before.items() if number not in now)


def _connected(details: _Details) -> str:
    version = f" to PostgreSQL {_version(details['server_version'])}" if "server_version" in details else ""
    return ", ".join([f"connected{version}", *(f"{name} {details[name]}" for name in _NAMES if name in details)])


def _version(number: int) -> str:
    return f"{number // 10000}.{number % 10000}"  # as in PostgreSQL 10 and newer


def _created_slot(details: _Details) -> str:
    copies = "" if details["snapshot"] is None else ", with a snapshot for the first table copies"
    return f"created slot {details['slot']}{copies}"


def _options(details: _Details) -> str:
    changes = (f"{name} {_option(before)} -> {_option(now)}" for name, (before, now) in details.items())
    return f"options changed: {', '.join(changes)}"


def _option(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else "none" if value is None else str(value)


def _copied_table(details: _Details) -> str:
    table = qualified_name(details["schema"], details["table"])
    return f"copied table {table}: {counted(details['rows'], 'row')}"


def _table_name(details: _Details) -> str:
    return qualified_name(details["schema"], details["name"])


def _begun_anew(details: _Details) -> str:
    void = details.get("void_after")
    lost = "" if void is None else f"; what ended after {Lsn(void)} before this line is void"
    return f"changes were lost ({details['reason']}){lost}: tables are complete again after their next copies"


_TEXTS: Final[Mapping[str, Callable[[_Details], str]]] = {
    CONNECTED: _connected,
    CREATED_SLOT: _created_slot,
    OPTIONS_CHANGED: _options,
    COPIED_TABLE: _copied_table,
    BEGUN_ANEW: _begun_anew,
}
