"""What the log knows of the catalog: what has changed since, and that in words for the operator."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from pgoutput_construct.changelog._facts.catalog_readings import TableFactsReader
from pgoutput_construct.changelog._facts.completeness import UnpublishedColumns
from pgoutput_construct.changelog._facts.events import PUBLICATION_FACTS, TABLE_FACTS, EventRow, event_rows
from pgoutput_construct.changelog._index.planning import latest_descriptions
from pgoutput_construct.changelog._index.segment_index import SegmentIndex
from pgoutput_construct.postgres._catalog.table_catalog import CatalogReading, Facts
from pgoutput_construct.stream.identifiers import qualified_name
from pgoutput_construct.wire import Lsn
from pgoutput_construct.wire.messages import Relation

__all__ = ["Known", "News", "Shape", "shape_of"]


_Found: TypeAlias = tuple[str, Facts, str | None]

_READING: Final = ("seq", "since", "unchanged", "snapshot")
_PASSING: Final = ("recent", "truncated", "rewritten")
"""What says something of the moment of a reading: it is not told when it alone is another."""


class Shape(NamedTuple):
    """What a Relation says of its table and its columns."""

    namespace: str
    """The table's schema."""
    name: str
    """Its name."""
    columns: tuple[tuple[str, int, int], ...]
    """Names, types and modifiers of its columns."""


class News(NamedTuple):
    """An event that the log is to have."""

    name: str
    """TABLE_FACTS or PUBLICATION_FACTS."""
    lsn: Lsn
    """All that the reading saw was committed before this position."""
    details: Facts
    """The facts."""
    words: str | None
    """What is worth telling the operator."""


def shape_of(relation: Relation) -> Shape:
    """Return what a Relation says."""
    columns = tuple((column.name, column.type_oid, column.type_modifier) for column in relation.columns)
    return Shape(relation.namespace or "pg_catalog", relation.name, columns)


@dataclass
class Known:
    """The latest facts that were said, or are about to be."""

    tables: dict[int, Facts] = field(default_factory=dict)
    """By OID; those that are gone are not among them."""
    publications: dict[str, Facts] = field(default_factory=dict)
    """By name, also those that are no longer captured."""
    published_at: dict[str, int] = field(default_factory=dict)
    """The seq at which the log says what each publication publishes."""
    confirmed: dict[int, Shape] = field(default_factory=dict)
    """The latest description of each table, where its facts were said after it."""
    unconfirmed: dict[int, Shape] = field(default_factory=dict)
    """The latest description of each table in the log where they were not."""
    gone: set[int] = field(default_factory=set)
    """The OIDs of tables that were dropped."""
    since: dict[int, int] = field(default_factory=dict)
    """When all messages before this seq had been received, the facts of a table were still as they are here."""

    @classmethod
    def of(cls, index: SegmentIndex) -> "Known":
        """Return what a log says."""
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
            known._keep(oid, _facts(event.read().details))
        for description in latest_descriptions(index) if said else ():
            oid = description.relation.relation_oid
            is_confirmed = description.seq < said.get(oid, -1)
            (known.confirmed if is_confirmed else known.unconfirmed)[oid] = shape_of(description.relation)
        return known

    def news(
        self, reading: CatalogReading, start: int, locked: Collection[int], described: Mapping[int, Shape]
    ) -> list[News]:
        """Return the events that say what is new in a reading, which is known from now on.

        ``start`` is the seq before which all was received when the reading began; ``locked`` are tables that were being
        altered; ``described`` are those whose descriptions wait for a reading.
        """
        found = [*self._publication_news(reading), *self._table_news(reading, locked, described)]
        for _, facts, _ in found:
            oid = facts.get("oid", 0)
            facts["since"] = -1 if oid in locked else start
            facts["unchanged"] = self.since.get(oid, -1)
        self.passed(start, locked)
        lsn, snapshot = reading.snapshot.lsn, reading.snapshot
        said = {"snapshot": [snapshot.xmin, snapshot.xmax, list(snapshot.xip)]}
        return [News(name, lsn, facts | said, words) for name, facts, words in found]

    def passed(self, start: int, locked: Collection[int]) -> None:
        """Note that nothing else is new, at a look that began when all before ``start`` was received."""
        self.since |= {oid: start for oid in self.tables if oid not in locked}

    def _table_news(
        self, reading: CatalogReading, locked: Collection[int], described: Mapping[int, Shape]
    ) -> Iterator[_Found]:
        published = (table for facts in reading.publications.values() for table in facts["tables"])
        without_list = {table["oid"] for table in published if table["columns"] is None}
        for oid, facts in reading.tables.items():
            confirms = oid in described and oid not in locked
            if confirms:
                self.confirmed[oid] = described[oid]
            if confirms or _lasting(facts) != _lasting(self.tables.get(oid)):
                before = self.tables.get(oid)
                words = [_table_words(before, facts), _column_words(before, facts) if oid in without_list else None]
                self.tables[oid] = facts
                yield TABLE_FACTS, dict(facts), "; ".join(filter(None, words)) or None
        self.gone -= reading.tables.keys()
        # A table that is described and not in the catalog came and went since the last look; or it is yet to come, and
        # who creates it holds its lock.
        short_lived = described.keys() - self.gone - {*locked}
        for oid in (self.tables.keys() | short_lived) - reading.tables.keys():
            before = self.tables.pop(oid, None)
            # It may have been renamed since the last reading, and written under that name.
            schema, name = (before["schema"], before["name"]) if before and oid not in described else described[oid][:2]
            facts = {"oid": oid, "schema": schema, "name": name, "gone": True}
            self.gone.add(oid)
            yield TABLE_FACTS, facts, _table_words(before, facts)

    def _publication_news(self, reading: CatalogReading) -> Iterator[_Found]:
        for name, facts in reading.publications.items():
            if facts != self.publications.get(name):
                words = _publication_words(self.publications.get(name), facts)
                self.publications[name] = facts
                yield PUBLICATION_FACTS, dict(facts), words
        for name, facts in self.publications.items():
            if name not in reading.publications and facts.get("captured", True):
                self.publications[name] = {"publication": name, "captured": False}
                yield PUBLICATION_FACTS, dict(self.publications[name]), None

    def _keep(self, oid: int, facts: Facts) -> None:
        if facts.get("gone"):
            self.tables.pop(oid, None)
            self.gone.add(oid)
        else:
            self.tables[oid] = facts


def _facts(details: Mapping[str, Any]) -> Facts:
    return {name: value for name, value in details.items() if name not in _READING}


def _lasting(facts: Facts | None) -> Facts | None:
    if facts is None:
        return None
    columns: Iterable[Facts] = facts["columns"]
    kept = [{name: value for name, value in column.items() if name not in _PASSING} for column in columns]
    return {name: value for name, value in facts.items() if name not in _PASSING} | {"columns": kept}


_AnyFacts = Mapping[str, Any]


def _table_words(before: _AnyFacts | None, after: _AnyFacts) -> str | None:
    """Say what became of a table as a whole; None for what the log alone need know."""
    if before is None:
        return None
    was, now = _title(before), _title(after)
    if after.get("gone"):
        return f"table {was} was dropped"
    if was != now:
        return f"table {was} is called {now} now"
    leaves = {oid for oid, _ in after["filenodes"]} - {oid for oid, _ in before["filenodes"]}
    gone = {oid for oid, _ in before["filenodes"]} - {oid for oid, _ in after["filenodes"]}
    changes = [f"{len(found)} {what}" for found, what in ((leaves, "attached"), (gone, "gone")) if found]
    return f"partitions of table {now}: {', '.join(changes)}" if changes else None


def _column_words(before: _AnyFacts | None, after: _AnyFacts) -> str | None:
    """Say which generated columns the log will be without, when they are seen first."""
    known = {} if before is None else _unpublished(before)
    found = _unpublished(after)
    return (
        str(UnpublishedColumns.from_generated(after["oid"], _title(after), found))
        if found.keys() - known.keys()
        else None
    )


def _publication_words(before: _AnyFacts | None, after: _AnyFacts) -> str | None:
    """Say what a publication publishes now that it did not, and the other way round."""
    if before is None or not after.get("captured", True):
        return None
    was, now = ({table["oid"]: table for table in facts.get("tables", ())} for facts in (before, after))
    parts = {
        "publishes also": [_title(now[oid]) for oid in now.keys() - was.keys()],
        "no longer publishes": [_title(was[oid]) for oid in was.keys() - now.keys()],
        "has another filter or list of columns for": [
            _title(now[oid]) for oid in now.keys() & was.keys() if _rules(now[oid]) != _rules(was[oid])
        ],
        "has partitions that are foreign or unlogged, of which the server sends nothing:": [
            _title(each) for each in after["unsent"] if each not in before.get("unsent", ())
        ],
        "publishes only": after["operations"] if after["operations"] != before.get("operations") else [],
    }
    changes = [f"{what} {', '.join(sorted(names))}" for what, names in parts.items() if names]
    return f"publication {after['publication']!r} was changed: {'; it '.join(changes)}" if changes else None


def _unpublished(table: _AnyFacts) -> dict[str, str]:
    columns = (column for column in table["columns"] if "generated" in column and not column.get("published"))
    return {column["name"]: column["generated"] for column in columns}


def _title(table: _AnyFacts) -> str:
    return qualified_name(table["schema"], table["name"])


def _rules(table: _AnyFacts) -> tuple[Any, ...]:
    return table.get("filter"), table.get("columns"), table.get("member")
