"""The publications of a log: which tables each publishes, as the capture read it from the catalog (PUBLICATION_FACTS).

A subscription asks for the tables of the publications that it names (fetch_table_list() in ``subscriptioncmds.c``), and
takes changes of no others. The descriptions that a log has of tables would not do: a table that nobody has written to
has none, one that was dropped has one, and so have partitions whose rows are sent as those of their root.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

from pgoutput_construct.changelog._facts.catalog_readings import (
    CatalogColumn,
    PublicationMember,
    PublicationReading,
    TableReading,
    known_tables,
    publication_readings,
)
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.relations import RelationHistory
from pgoutput_construct.wire.messages import PgoutputMessage, Relation

__all__ = [
    "ListedTable",
    "LogPublications",
    "PublishedScope",
    "described_tables",
    "listed_tables",
    "without_partitions",
]

_NEVER: Final = 2**63 - 1


class ListedTable(NamedTuple):
    """One table of a publication."""

    publication: str
    """The publication."""
    relation_oid: int
    """Its OID, by which the stream names it."""
    namespace: str
    """Its schema."""
    name: str
    """Its name."""
    columns: tuple[CatalogColumn, ...]
    """The columns that the publication publishes, by their numbers."""
    replica_identity: str
    """As pg_class.relreplident has it."""
    ancestors: frozenset[int] = frozenset()
    """The OIDs of the tables that it is a partition of."""
    via_root: bool = False
    """Whether the publication publishes changes of partitions as those of their root."""


def described_tables(history: RelationHistory, publications: Collection[str]) -> list[ListedTable]:
    """Return the tables that a stream describes, as those of each of some publications.

    Of tables that had one name one after the other, the last one has it.
    """
    latest = {each.relation.relation_oid: each for each in list(history.descriptions)}
    return listed_tables((each.relation for each in sorted(latest.values(), key=lambda each: each.seq)), publications)


def listed_tables(relations: Iterable[Relation], publications: Collection[str]) -> list[ListedTable]:
    """Return tables as those of each of some publications; of several with one name the last."""
    named = {(relation.namespace, relation.name): relation for relation in relations}
    return [_described(relation, publication) for relation in named.values() for publication in publications]


def _described(relation: Relation, publication: str) -> ListedTable:
    columns = enumerate(relation.columns, 1)
    return ListedTable(
        publication,
        relation.relation_oid,
        relation.namespace or "pg_catalog",
        relation.name,
        tuple(CatalogColumn(number, each.name, each.type_oid, each.type_modifier) for number, each in columns),
        relation.replica_identity,
    )


def without_partitions(tables: Sequence[ListedTable]) -> list[ListedTable]:
    """Exclude partitions of listed tables where a publication publishes via the root.

    The server sends their rows as those of the root, whichever publication names them (filter_partitions()).
    """
    listed = {table.relation_oid for table in tables} if any(table.via_root for table in tables) else set()
    return [table for table in tables if not table.ancestors & listed]


class PublishedScope:
    """What some of the publications of a log publish: of which tables, which operations, and when.

    A reading of the catalog says what was true before it, not since when: what was committed between two readings is
    published where either of them says so. A capture reads the catalog after the stream: a change that no publication
    has, as far as was read, is of one that was altered since, perhaps one of these.
    """

    def __init__(self, readings: Mapping[str, Sequence[PublicationReading]], publications: Collection[str]) -> None:
        """Take in the readings.

        Args:
            readings: Those of all publications, by name, in the order of the log.
            publications: Some of them.
        """
        self._own = _spans(readings[name] for name in publications)
        self._all = _spans(readings.values())

    def has(self, relation_oid: int, message: PgoutputMessage, lsn: int) -> bool:
        """Return whether a change is published.

        Args:
            relation_oid: Its table.
            message: The change.
            lsn: The LSN of its commit.
        """
        operation = type(message).__name__.lower()
        own, all_spans = (spans.get(relation_oid, ()) for spans in (self._own, self._all))
        return _covers(own, operation, lsn) or not _covers(all_spans, operation, lsn)

    def has_table(self, relation_oid: int) -> bool:
        """Return whether a table was ever published."""
        return relation_oid in self._own or relation_oid not in self._all


_Span: TypeAlias = tuple[int, int, frozenset[str]]
"""The first and the last LSN between which a table is published, and the operations with which it is."""


def _covers(spans: Iterable[_Span], operation: str, lsn: int) -> bool:
    return any(begin <= lsn <= end and operation in operations for begin, end, operations in spans)


def _spans(publications: Iterable[Sequence[PublicationReading]]) -> dict[int, list[_Span]]:
    found: dict[int, list[_Span]] = {}
    for readings in publications:
        lsns = [int(reading.snapshot.lsn) for reading in readings]
        # Positions go back where a history of the server was lost.
        begins = [0, *map(min, lsns, lsns[1:])]
        ends = [*map(max, lsns, lsns[1:]), _NEVER]
        for reading, begin, end in zip(readings, begins, ends, strict=True):
            for oid in reading.tables if reading.captured else ():
                found.setdefault(oid, []).append((begin, end, reading.operations))
    return found


class LogPublications:
    """What a log says of the publications that it was captured from."""

    def __init__(self, index: SegmentIndex, history: RelationHistory) -> None:
        """Prepare to look.

        Args:
            index: The log's.
            history: What describes its tables: that is all that a log knows whose events say nothing of a publication,
                as those from servers before PostgreSQL 12.
        """
        self._index, self._history = index, history
        self.scopes: dict[frozenset[str], PublishedScope | None] = {}
        """What some publications publish, where it was asked for."""

    @cached_property
    def readings(self) -> Mapping[str, Sequence[PublicationReading]]:
        """What was read of each publication, in the order of the log."""
        found: dict[str, list[PublicationReading]] = {}
        for reading in publication_readings(self._index):
            found.setdefault(reading.name, []).append(reading)
        return found

    @cached_property
    def _tables(self) -> Mapping[int, TableReading]:
        return {oid: several[-1] for oid, several in known_tables(self._index).items()}

    def latest(self, publication: str) -> PublicationReading | None:
        """Return what a publication publishes in the end; None where the log does not say it."""
        of_name = self.readings.get(publication)
        return of_name[-1] if of_name else None

    def tables(self, publications: Collection[str]) -> list[ListedTable]:
        """Return the tables of some publications, each as often as a publication lists it."""
        known = {name: reading for name in publications if (reading := self.latest(name)) is not None}
        found = [table for reading in known.values() for table in self._listed(reading)]
        others = [name for name in publications if name not in known]
        return found + (described_tables(self._history, others) if others else [])

    def named(self, relation_oid: int) -> tuple[PublicationMember, int] | None:
        """Return a table as it is published now, and an LSN at which it was; None where the log does not say it."""
        latest = [reading for name in self.readings if (reading := self.latest(name)) is not None and reading.captured]
        having = [reading for reading in latest if relation_oid in reading.tables]
        last = max(having, key=lambda reading: reading.seq, default=None)
        return None if last is None else (last.tables[relation_oid], int(last.snapshot.lsn))

    def scope(self, publications: Collection[str]) -> PublishedScope | None:
        """Return what some publications publish of what the log has; None for all of it."""
        if self.readings.keys() <= {*publications} or not self.readings.keys() >= {*publications}:
            return None
        return PublishedScope(self.readings, publications)

    def problem(self, publications: Collection[str]) -> str:
        """Return why the log cannot be served as some publications alone would have it; empty where it can.

        The server merges all publications that a stream names: rows pass where the filter of one of them lets them, and
        come as those of the root where one of them says so (get_rel_sync_entry()).
        """
        if self.scope(publications) is None:
            return ""
        latest = [reading for name in self.readings if (reading := self.latest(name)) is not None and reading.captured]
        named = [reading for reading in latest if reading.name in publications]
        roots = {oid for reading in latest if reading.via_root for oid in reading.tables}
        own = {oid for reading in named for oid in reading.tables}
        for reading in named:
            for oid, table in reading.tables.items():
                title = full_name(table)
                if table.ancestors & roots and not table.ancestors & own:
                    return f"changes of {title} are in the log as those of the table that it is a partition of"
                if _filters(named, oid) != _filters(latest, oid):
                    return f"the log has rows of {title} that another publication publishes, with another row filter"
        return ""

    def operations(self, publications: Collection[str], relation_oid: int, seq: int) -> frozenset[str]:
        """Return what was published of a table at a seq of the log; empty where it does not say so.

        Args:
            publications: Publications; where none of them has the table, all that were captured count.
            relation_oid: The table.
            seq: The seq.
        """
        now = {name: _at(of_name, seq) for name, of_name in self.readings.items()}
        found = {name: each.operations for name, each in now.items() if each.captured and relation_oid in each.tables}
        named = [operations for name, operations in found.items() if name in publications]
        return frozenset().union(*(named or found.values()))

    def _listed(self, reading: PublicationReading) -> Iterator[ListedTable]:
        for oid, table in reading.tables.items() if reading.captured else ():
            facts = self._tables.get(oid)
            if facts is None or not facts.gone:
                columns = tuple(_published_columns(facts, table, reading)) if facts else ()
                own = oid, table.namespace, table.name, columns, facts.replica_identity if facts else ""
                yield ListedTable(reading.name, *own, table.ancestors, reading.via_root)


def _at(readings: Sequence[PublicationReading], seq: int) -> PublicationReading:
    """Return the last reading at a seq; a capture may read a catalog a little after it copied a table."""
    return next((each for each in reversed(readings) if each.seq <= seq), readings[0])


def _filters(readings: Iterable[PublicationReading], oid: int) -> frozenset[str] | None:
    """Return which filters rows of a table must pass one of; None where they need not pass any."""
    found = {reading.tables[oid].filter for reading in readings if oid in reading.tables}
    return None if None in found else frozenset(each for each in found if each is not None)


def _published_columns(
    facts: TableReading, table: PublicationMember, reading: PublicationReading
) -> Iterator[CatalogColumn]:
    for column in facts.columns:
        if column.dropped:
            continue
        if table.columns is not None:
            is_published = column.number in table.columns
        else:
            is_published = not column.generated or (reading.generated and column.generated == "s")
            is_published = is_published and column.published
        if is_published:
            yield column
