"""The catalog as the log has it, and what a reading changes: events for readers, and warnings for the operator."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from pgoutput_construct.changelog._facts.catalog_readings import TableFactsReader
from pgoutput_construct.changelog._facts.completeness import UnpublishedColumns
from pgoutput_construct.changelog._index.planning import latest_descriptions
from pgoutput_construct.changelog._segment.events import PUBLICATION_FACTS, TABLE_FACTS, EventRow, event_rows
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.postgres._catalog.table_catalog import CatalogReading, Facts
from pgoutput_construct.stream.identifiers import qualified_name
from pgoutput_construct.wire import Lsn
from pgoutput_construct.wire.messages import Relation

__all__ = ["CatalogEvent", "CatalogState", "RelationShape", "relation_shape"]


_Change: TypeAlias = tuple[str, Facts, str | None]

_READING_KEYS: Final = ("seq", "since", "unchanged", "snapshot")
_VOLATILE: Final = ("recent", "truncated", "rewritten")
"""Facts about the time of a reading rather than the table: a change in these alone is no event."""


class RelationShape(NamedTuple):
    """The columns of a table, as a Relation message describes them."""

    namespace: str
    """The table's schema."""
    name: str
    """Its name."""
    columns: tuple[tuple[str, int, int], ...]
    """The name, type OID and type modifier of each column."""


class CatalogEvent(NamedTuple):
    """An event to append to the log."""

    name: str
    """TABLE_FACTS or PUBLICATION_FACTS."""
    lsn: Lsn
    """The WAL insert position after the reading: everything that it saw was committed before."""
    details: Facts
    """The facts."""
    description: str | None
    """A warning for the operator; None if it is not worth one."""


def relation_shape(relation: Relation) -> RelationShape:
    """Return the shape of the table that a Relation message describes."""
    columns = tuple((column.name, column.type_oid, column.type_modifier) for column in relation.columns)
    return RelationShape(relation.namespace or "pg_catalog", relation.name, columns)


@dataclass
class CatalogState:
    """The latest facts that are in the log, or about to be appended."""

    tables: dict[int, Facts] = field(default_factory=dict)
    """Facts by table OID, without dropped tables."""
    publications: dict[str, Facts] = field(default_factory=dict)
    """Facts by publication name, including publications that are no longer captured."""
    published_at: dict[str, int] = field(default_factory=dict)
    """The seq of the latest facts of each publication."""
    confirmed: dict[int, RelationShape] = field(default_factory=dict)
    """The latest description of each table that is followed by facts of the table."""
    unconfirmed: dict[int, RelationShape] = field(default_factory=dict)
    """The latest description of each table that is not."""
    dropped: set[int] = field(default_factory=set)
    """The OIDs of tables that were dropped."""
    since: dict[int, int] = field(default_factory=dict)
    """By table OID, 0 for publications: the facts were still unchanged when all messages before this seq had been
    received."""

    @classmethod
    def from_index(cls, index: SegmentIndex) -> "CatalogState":
        """Return the state that the index of a log contains."""
        known, latest, said = cls(), dict[int, EventRow](), dict[int, int]()
        reader = TableFactsReader()
        for event in event_rows(index, {PUBLICATION_FACTS, TABLE_FACTS}):
            if event.name == PUBLICATION_FACTS:
                details = event.read().details
                known.publications[details["publication"]] = _facts(details)
                known.published_at[details["publication"]] = event.seq
            else:
                reading = reader.read(event)
                said[reading.oid] = max(said.get(reading.oid, -1), reading.since)
                latest[reading.oid] = event
        for oid, event in latest.items():
            known._set_table(oid, _facts(event.read().details))
        for description in latest_descriptions(index) if said else ():
            oid = description.relation.relation_oid
            is_confirmed = description.seq < said.get(oid, -1)
            (known.confirmed if is_confirmed else known.unconfirmed)[oid] = relation_shape(description.relation)
        return known

    def update(
        self, reading: CatalogReading, start: int, locked: Collection[int], described: Mapping[int, RelationShape]
    ) -> list[CatalogEvent]:
        """Apply a reading, and return the events for what it changes.

        Args:
            reading: The reading of the catalog.
            start: The seq before which everything had been received when the reading began.
            locked: The OIDs of tables that were being altered.
            described: The descriptions that wait for a reading, by table OID.
        """
        found = [*self._publication_changes(reading), *self._table_changes(reading, locked, described)]
        for _, facts, _ in found:
            oid = facts.get("oid", 0)
            facts["since"] = -1 if oid in locked else start
            facts["unchanged"] = self.since.get(oid, -1)
        self.note_unchanged(start, locked)
        lsn, snapshot = reading.snapshot.lsn, reading.snapshot
        said = {"snapshot": [snapshot.xmin, snapshot.xmax, list(snapshot.xip)]}
        return [CatalogEvent(name, lsn, facts | said, description) for name, facts, description in found]

    def note_unchanged(self, start: int, locked: Collection[int]) -> None:
        """Note that the facts are unchanged in a reading that began when everything before ``start`` was received."""
        self.since |= {0: start} | {oid: start for oid in self.tables if oid not in locked}

    def _table_changes(
        self, reading: CatalogReading, locked: Collection[int], described: Mapping[int, RelationShape]
    ) -> Iterator[_Change]:
        published = (table for facts in reading.publications.values() for table in facts["tables"])
        without_list = {table["oid"] for table in published if table["columns"] is None}
        for oid, facts in reading.tables.items():
            confirms = oid in described and oid not in locked
            if confirms:
                self.confirmed[oid] = described[oid]
            if confirms or _comparable(facts) != _comparable(self.tables.get(oid)):
                before = self.tables.get(oid)
                description = [
                    _describe_table_change(before, facts),
                    _describe_columns(before, facts) if oid in without_list else None,
                ]
                self.tables[oid] = facts
                yield TABLE_FACTS, dict(facts), "; ".join(filter(None, description)) or None
        self.dropped -= reading.tables.keys()
        # A table that was described and is not in the catalog was created and dropped since the last reading; or its
        # CREATE is not visible yet, and then it is still locked.
        short_lived = described.keys() - self.dropped - {*locked}
        for oid in (self.tables.keys() | short_lived) - reading.tables.keys():
            before = self.tables.pop(oid, None)
            # It may have been renamed since the last reading: its description has the name under which it was written.
            schema, name = (before["schema"], before["name"]) if before and oid not in described else described[oid][:2]
            facts = {"oid": oid, "schema": schema, "name": name, "gone": True}
            self.dropped.add(oid)
            yield TABLE_FACTS, facts, _describe_table_change(before, facts)

    def _publication_changes(self, reading: CatalogReading) -> Iterator[_Change]:
        for name, facts in reading.publications.items():
            if facts != self.publications.get(name):
                description = _describe_publication_change(self.publications.get(name), facts)
                self.publications[name] = facts
                yield PUBLICATION_FACTS, dict(facts), description
        for name, facts in self.publications.items():
            if name not in reading.publications and facts.get("captured", True):
                self.publications[name] = {"publication": name, "captured": False}
                yield PUBLICATION_FACTS, dict(self.publications[name]), None

    def _set_table(self, oid: int, facts: Facts) -> None:
        if facts.get("gone"):
            self.tables.pop(oid, None)
            self.dropped.add(oid)
        else:
            self.tables[oid] = facts


def _facts(details: Mapping[str, Any]) -> Facts:
    return {name: value for name, value in details.items() if name not in _READING_KEYS}


def _comparable(facts: Facts | None) -> Facts | None:
    if facts is None:
        return None
    columns: Iterable[Facts] = facts["columns"]
    kept = [{name: value for name, value in column.items() if name not in _VOLATILE} for column in columns]
    return {name: value for name, value in facts.items() if name not in _VOLATILE} | {"columns": kept}


_AnyFacts = Mapping[str, Any]


def _describe_table_change(before: _AnyFacts | None, after: _AnyFacts) -> str | None:
    """Describe what happened to a table as a whole; None for changes that are no warning."""
    if before is None:
        return None
    was, now = _title(before), _title(after)
    if after.get("gone"):
        return f"table {was} was dropped"
    if was != now:
        return f"table {was} was renamed to {now}"
    leaves = {oid for oid, _ in after["filenodes"]} - {oid for oid, _ in before["filenodes"]}
    removed = {oid for oid, _ in before["filenodes"]} - {oid for oid, _ in after["filenodes"]}
    changes = [f"{len(found)} {what}" for found, what in ((leaves, "attached"), (removed, "removed")) if found]
    return f"partitions of table {now}: {', '.join(changes)}" if changes else None


def _describe_columns(before: _AnyFacts | None, after: _AnyFacts) -> str | None:
    """Describe generated columns that the log will not have, when they are first seen."""
    known = {} if before is None else _unpublished(before)
    found = _unpublished(after)
    return (
        str(UnpublishedColumns.from_generated(after["oid"], _title(after), found))
        if found.keys() - known.keys()
        else None
    )


def _describe_publication_change(before: _AnyFacts | None, after: _AnyFacts) -> str | None:
    """Describe how a publication has changed; None for no change."""
    if before is None or not after.get("captured", True):
        return None
    was, now = ({table["oid"]: table for table in facts.get("tables", ())} for facts in (before, after))
    parts = {
        "now also publishes": [_title(now[oid]) for oid in now.keys() - was.keys()],
        "no longer publishes": [_title(was[oid]) for oid in was.keys() - now.keys()],
        "has another row filter or column list for": [
            _title(now[oid]) for oid in now.keys() & was.keys() if _rules(now[oid]) != _rules(was[oid])
        ],
        "has foreign or unlogged partitions, which are never replicated:": [
            _title(each) for each in after["unsent"] if each not in before.get("unsent", ())
        ],
        "publishes only": after["operations"] if after["operations"] != before.get("operations") else [],
    }
    changes = [f"{what} {', '.join(sorted(names))}" for what, names in parts.items() if names]
    return f"publication {after['publication']!r} was changed: it {'; it '.join(changes)}" if changes else None


def _unpublished(table: _AnyFacts) -> dict[str, str]:
    columns = (column for column in table["columns"] if "generated" in column and not column.get("published"))
    return {column["name"]: column["generated"] for column in columns}


def _title(table: _AnyFacts) -> str:
    return qualified_name(table["schema"], table["name"])


def _rules(table: _AnyFacts) -> tuple[Any, ...]:
    return table.get("filter"), table.get("columns"), table.get("member")
