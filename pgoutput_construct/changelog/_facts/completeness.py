"""What a log lacks: tables that it does not hold from their first row on, and such that changed behind its back."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pgoutput_construct.changelog._facts.copies import TableCopy, copies_of, snapshot_command
from pgoutput_construct.changelog._facts.described import described
from pgoutput_construct.changelog._facts.events import BEGUN_ANEW, events_of
from pgoutput_construct.changelog._facts.facts import (
    PublicationReading,
    TableReading,
    covers,
    publication_readings,
    table_readings,
)
from pgoutput_construct.changelog._facts.lineage import lineage_of
from pgoutput_construct.changelog._index.index import SegmentIndex
from pgoutput_construct.changelog._index.planning import lost_ends, run_spans
from pgoutput_construct.columnar.batch_arrays import look_up, tag_table
from pgoutput_construct.stream.identifiers import full_name, quote_identifier
from pgoutput_construct.wire.messages import Truncate

__all__ = [
    "IncompleteTableWarning",
    "Lack",
    "UnpublishedColumns",
    "begun_without_copy",
    "lacks_of",
    "present_copies",
    "superfluous_copies",
    "unpublished_columns",
    "whole_tables",
]

_TRUNCATES = tag_table({Truncate})
_OPERATIONS = frozenset({"insert", "update", "delete", "truncate"})


class IncompleteTableWarning(UserWarning):
    """What a log has of a table is not all of it, or no longer what the table has."""


@dataclass(frozen=True)
class Lack:
    """Why a table cannot be rebuilt as it is."""

    relation_oid: int
    """The table."""
    name: str
    """Schema and name."""
    reason: str
    """What is missing, or what happened behind the log's back."""
    remedy: str
    """What to do."""
    stale_since: int | None = None
    """The seq from which on the log's rows are not those of the table; None for a log that never had all of them."""

    def __str__(self) -> str:
        return f"{self.reason}: {self.remedy}"


@dataclass(frozen=True)
class UnpublishedColumns:
    """Generated columns of a table that the server does not publish: the log has its rows without them.

    That is no ``Lack``: all else of the table is right.
    """

    relation_oid: int
    """The table."""
    name: str
    """Schema and name."""
    columns: tuple[str, ...]
    """The names of the columns."""
    reason: str
    """What is missing."""
    remedy: str
    """What to do for those who need them."""

    @classmethod
    def of(cls, relation_oid: int, name: str, generated: Mapping[str, str]) -> "UnpublishedColumns":
        """``generated`` are the columns by name, and how each is generated, as pg_attribute.attgenerated has it."""
        columns = ", ".join(map(quote_identifier, generated))
        remedy = "compute them where they are read"
        if "s" in generated.values():
            remedy += (
                ", or publish the stored ones (PostgreSQL 18: ALTER PUBLICATION ... SET (publish_generated_columns = "
                "stored))"
            )
        reason = f"{name} is in the log without its generated columns, which are not published: {columns}"
        return cls(relation_oid, name, tuple(generated), reason, remedy)

    def __str__(self) -> str:
        return f"{self.reason}; {self.remedy}"


def unpublished_columns(index: SegmentIndex) -> list[UnpublishedColumns]:
    """Return the generated columns that the log has not, since they are not published: by the names of their tables.

    A publication that lists the columns of a table publishes what was asked for: that is not among them.
    """
    readings = {oid: of_table[-1] for oid, of_table in table_readings(index).items()}
    published = publication_readings(index)
    latest = _captured_now(published)
    without_list = {oid for reading in latest for oid, table in reading.tables.items() if table.columns is None}
    found = []
    for oid in without_list & readings.keys() - _sent_as_root(published, readings):
        columns = (column for column in readings[oid].columns if column.generated and not column.published)
        if generated := {column.name: column.generated for column in columns}:
            found.append(UnpublishedColumns.of(oid, readings[oid].title, generated))
    return sorted(found, key=lambda each: each.name)


def lacks_of(index: SegmentIndex) -> list[Lack]:
    """Return what a log lacks of its tables, from its index: by their names, those without a first row first.

    A table is held from its first row on with a complete copy, after a truncate, and where it was created while all
    tables were published. Tables that are gone are not among them.
    """
    readings = {oid: of_table[-1] for oid, of_table in table_readings(index).items()}
    published = publication_readings(index)
    begun = {copy.relation_oid for copy in present_copies(index)} | _begun(index, readings, published).keys()
    known = set(index.counts["oid"].to_pylist()) | (_published(published) - _sent_as_root(published, readings))
    names = _names(index, readings)
    gone = {oid for oid, reading in readings.items() if reading.gone}
    lacks = [_without_snapshot(oid, names[oid]) for oid in (known & names.keys()) - begun - gone]
    for oid, stale in lineage_of(index).stale.items():
        if oid not in {lack.relation_oid for lack in lacks}:
            lacks.append(Lack(oid, names.get(oid, str(oid)), stale.reason, stale.remedy, stale.seq))
    lacks += _unsent(published, names)
    return sorted(lacks, key=lambda lack: (lack.stale_since is not None, lack.name))


def whole_tables(index: SegmentIndex, lacks: Iterable[Lack]) -> frozenset[int]:
    """Return the OIDs of the tables of which a log has every row, given what it ``lacks``.

    These are the others, as far as the log knows what is published of them, and while all publications that have one
    publish its inserts and updates: without them it has rows that nobody said. It may have rows too many, where deletes
    are not published.
    """
    readings, copies = publication_readings(index), {copy.relation_oid: copy for copy in present_copies(index)}
    known = {oid for reading in readings if reading.captured for oid in reading.tables}
    tables = {oid: of_table[-1] for oid, of_table in table_readings(index).items()}
    found = known - {lack.relation_oid for lack in lacks} - _sent_as_root(readings, tables)
    return frozenset(oid for oid in found if all(map(_is_whole, _in_force(readings, oid, copies.get(oid)))))


def _in_force(readings: Sequence[PublicationReading], oid: int, copy: TableCopy | None) -> Iterator[PublicationReading]:
    """Yield the readings of publications that say what was sent of a table, after a copy of it."""
    for place, reading in enumerate(readings):
        later = (each for each in readings[place + 1 :] if each.name == reading.name)
        is_past = copy is not None and any(covers(copy.snapshot, each.snapshot) for each in later)
        if reading.captured and oid in reading.tables and not is_past:
            yield reading


def _is_whole(reading: PublicationReading) -> bool:
    return reading.operations >= {"insert", "update"}


def present_copies(index: SegmentIndex) -> Iterator[TableCopy]:
    """Yield the complete copies whose rows are all there: a log that was pruned may begin amid one."""
    chunks = index.entries("snapshots").sort_by("number")
    numbers, rows = chunks["number"].to_numpy(), chunks["rows"].to_numpy()
    passed = np.append(0, np.cumsum(rows))
    for copy in copies_of(index):
        first = np.searchsorted(numbers, copy.first_chunk)
        end = max(first, np.searchsorted(numbers, copy.last_chunk, "right"))
        if passed[end] - passed[first] == copy.rows:
            yield copy


def superfluous_copies(index: SegmentIndex) -> frozenset[int]:
    """Return the seqs of copies whose rows are in the log without them, as changes from the table's creation on.

    They were made since the log had no copy of the table. What follows a copy in the log does not count, apart from an
    exclusion of its table: a copy that is superfluous remains so while nothing is pruned.
    """
    readings, published, lost = table_readings(index), publication_readings(index), lost_ends(index)
    firsts: dict[int, TableCopy] = {}
    for copy in copies_of(index):
        firsts.setdefault(copy.relation_oid, copy)
    created: dict[int, int] = {}
    first = {oid: of_table[0] for oid, of_table in readings.items()}
    for oid, seq in _creations(first, published, _last_begun(index)):
        created.setdefault(oid, seq)
    found = set[int]()
    for oid, copy in firsts.items():
        is_lost = copy.is_requested or any(seq < copy.seq for seq, _ in lost)
        if is_lost or created.get(oid, copy.seq) >= copy.seq:
            continue
        before = [each for each in readings[oid] if each.seq < copy.seq]
        is_sent = all(_sends_all(each, oid) for each in published if each.seq < copy.seq)
        if before and is_sent and all(map(_is_unaltered, before)):
            found.add(copy.seq)
    return frozenset(found)


def _is_unaltered(reading: TableReading) -> bool:
    """Return whether a table has no rows, and no values, that no stream has said.

    A table is created with a file that its OID names (heap_create()), and has another one after each rewrite.
    """
    has_values = any(column.missing is not None for column in reading.columns)
    return not (reading.gone or reading.attached or has_values) and reading.filenodes == {reading.oid: reading.oid}


def _sends_all(reading: PublicationReading, oid: int) -> bool:
    """Return whether a publication publishes a table as a whole, or has nothing to do with it."""
    table = reading.tables.get(oid)
    if table is None or not reading.captured:
        return True
    is_plain = table.columns is None and table.filter is None and not table.ancestors
    return is_plain and reading.operations >= _OPERATIONS


def _without_snapshot(oid: int, name: str) -> Lack:
    remedy = snapshot_command(name)
    return Lack(oid, name, f"the log has no snapshot of {name}", remedy)


def _unsent(published: Iterable[PublicationReading], names: Mapping[int, str]) -> Iterator[Lack]:
    """Yield the tables that have partitions of which nothing is ever sent."""
    latest = {reading.name: reading for reading in published}
    found = {each.oid: each for reading in latest.values() if reading.captured for each in reading.unsent}
    for each in found.values():
        title = full_name(each)
        root = names.get(each.root, title)
        what, remedy = (
            "unlogged",
            f"ALTER TABLE {title} SET LOGGED, and {snapshot_command(root)}",
        )
        if each.is_foreign:
            what, remedy = "a foreign table", "capture it where its rows are, or detach it (ALTER TABLE)"
        reason = f"the log lacks the rows of partition {title}, of which the server sends nothing, since it is {what}"
        yield Lack(each.root, root, reason, remedy)


def _names(index: SegmentIndex, readings: Mapping[int, TableReading]) -> dict[int, str]:
    sent = [*index.entries("inherited").to_pylist(), *index.entries("descriptions").to_pylist()]
    relations = [description.relation for description in described(sent)]
    names = {each.relation_oid: full_name(each) for each in relations}
    return names | {oid: reading.title for oid, reading in readings.items()}


def begun_without_copy(index: SegmentIndex) -> dict[int, tuple[int, str]]:
    """Return the tables that a log holds from their first row on although they were not copied: from where, and names.

    That is by their OIDs, where they were truncated, or what shows that they were created later.
    """
    readings = {oid: of_table[-1] for oid, of_table in table_readings(index).items()}
    names = _names(index, readings)
    begun = _begun(index, readings, publication_readings(index))
    return {oid: (seq, names.get(oid, str(oid))) for oid, seq in begun.items()}


def _begun(
    index: SegmentIndex, readings: Mapping[int, TableReading], published: Iterable[PublicationReading]
) -> dict[int, int]:
    return dict(_creations(readings, published, _last_begun(index))) | _truncated(index)


def _truncated(index: SegmentIndex) -> dict[int, int]:
    """Return where a committed transaction has emptied tables last: from then on the log has all of them."""
    rows = index.entries("rows")
    rows = rows.filter(look_up(rows["tag"].to_numpy(), _TRUNCATES))
    spans = run_spans(index)
    first, last = np.asarray(spans.first_seq), np.asarray(spans.last_seq)
    seqs, xids, oids = (rows[name].to_numpy() for name in ("first_seq", "xid", "oid"))
    places = np.searchsorted(first, seqs, "right") - 1
    found: dict[int, int] = {}
    for seq, xid, oid, place in zip(seqs.tolist(), xids.tolist(), oids.tolist(), places.tolist(), strict=True):
        if place >= 0 and seq <= last[place] and xid not in spans.aborted.get(place, ()):
            found[oid] = max(seq, found.get(oid, 0))
    return found


def _last_begun(index: SegmentIndex) -> int:
    """Return the seq at which the log was begun anew last, since changes are missing before; -1 for never."""
    return max((event.seq for event in events_of(index, BEGUN_ANEW)), default=-1)


def _creations(
    readings: Mapping[int, TableReading], published: Iterable[PublicationReading], begun: int
) -> Iterator[tuple[int, int]]:
    """Yield each table that came into being while a publication of all tables was captured with all that shows it.

    Such a publication lists what there is: a table that it does not list, and whose creation it does not see, came
    later. Subtransactions are no part of a snapshot: one that is in doubt counts as seen. A table that was ever
    excluded (FOR ALL TABLES EXCEPT) does not count: rows may have been written while it was.

    What was read before the log was ``begun`` anew proves nothing: a table may be from the time of which changes are
    missing.
    """
    published = list(published)
    seen = {oid for reading in published if reading.captured for oid in reading.excluded}
    for reading in published:
        seen |= reading.tables.keys()
        if reading.captured and reading.all_tables and reading.seq > begun:
            later = [oid for oid in readings if oid not in seen]
            created = np.array([readings[oid].created for oid in later], np.int64)
            is_new = reading.snapshot.invisible(created).tolist()
            yield from ((oid, reading.seq) for oid, new in zip(later, is_new, strict=True) if new)


def _published(readings: Iterable[PublicationReading]) -> set[int]:
    """Return what is published now."""
    return {oid for reading in _captured_now(readings) for oid in reading.tables}


def _captured_now(readings: Iterable[PublicationReading]) -> list[PublicationReading]:
    """Return the latest reading of each publication that is captured."""
    latest = {reading.name: reading for reading in readings}
    return [reading for reading in latest.values() if reading.captured]


def _sent_as_root(published: Iterable[PublicationReading], readings: Mapping[int, TableReading]) -> set[int]:
    """Return the partitions that one publication has, and of which the server sends all as changes of a table above.

    Another publication has that table, and publishes via the root: then the stream names it (get_rel_sync_entry()).
    """
    tables = {oid: table for reading in _captured_now(published) for oid, table in reading.tables.items()}
    roots = {oid for oid in tables if oid in readings and readings[oid].is_partitioned and not readings[oid].gone}
    leaves = {leaf for root in roots for leaf in readings[root].filenodes}
    return {oid for oid, table in tables.items() if oid in leaves or table.ancestors & roots}
