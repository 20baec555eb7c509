"""Finds what a log lacks: tables without an initial snapshot, and tables that were rewritten outside the stream."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pgoutput_construct.changelog._facts.catalog_readings import (
    PublicationReading,
    TableReading,
    covers,
    known_publications,
    known_tables,
    publication_readings,
)
from pgoutput_construct.changelog._facts.copies import TableCopy, copies_of, snapshot_command
from pgoutput_construct.changelog._facts.lineage import lineage_of
from pgoutput_construct.changelog._facts.partial_copies import PartialCopy, partial_copies
from pgoutput_construct.changelog._index.planning import lost_histories, run_spans, sent_by_seq
from pgoutput_construct.changelog._segment.events import BEGUN_ANEW, CREATED_SLOT, events_of
from pgoutput_construct.changelog._segment.segment_descriptions import described
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.columnar.batch_arrays import look_up, tag_table
from pgoutput_construct.stream.identifiers import full_name, quote_identifier
from pgoutput_construct.wire.messages import Truncate

__all__ = [
    "IncompleteTableWarning",
    "Lack",
    "UnpublishedColumns",
    "begins_with_copies",
    "begun_without_copy",
    "copies_in_progress",
    "lacks_of",
    "present_copies",
    "publishes_all_operations",
    "superfluous_copies",
    "tables_without_snapshot",
    "unpublished_columns",
    "whole_tables",
]

_TRUNCATES = tag_table({Truncate})
_OPERATIONS = frozenset({"insert", "update", "delete", "truncate"})


class IncompleteTableWarning(UserWarning):
    """The log does not have all rows of a table, or they differ from those on the server."""


@dataclass(frozen=True)
class Lack:
    """The reason why a table cannot be rebuilt from the log as it is on the server."""

    relation_oid: int
    """The OID of the table."""
    name: str
    """Schema and name."""
    reason: str
    """What is missing, or what happened outside the stream."""
    remedy: str
    """What to do."""
    stale_since: int | None = None
    """The seq from which on the log's rows differ from the table's; None if the log never had all of them."""

    def __str__(self) -> str:
        return f"{self.reason}: {self.remedy}"


@dataclass(frozen=True)
class UnpublishedColumns:
    """Generated columns of a table that are not published, so the log has its rows without them.

    This is not a ``Lack``: the rest of the table is complete.
    """

    relation_oid: int
    """The OID of the table."""
    name: str
    """Schema and name."""
    columns: tuple[str, ...]
    """The names of the columns."""
    reason: str
    """What is missing."""
    remedy: str
    """What to do if they are needed."""

    @classmethod
    def from_generated(cls, relation_oid: int, name: str, generated: Mapping[str, str]) -> "UnpublishedColumns":
        """Describe unpublished columns.

        Args:
            relation_oid: The OID of the table.
            name: Schema and name of the table.
            generated: pg_attribute.attgenerated of the columns, by name.
        """
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
    """Return the generated columns that are not published, ordered by the names of their tables.

    Tables with a column list in a publication are not included: they are published as requested.
    """
    readings, published = _latest(known_tables(index)), publication_readings(index)
    latest = _captured_now(published)
    without_list = {oid for reading in latest for oid, table in reading.tables.items() if table.columns is None}
    found = []
    for oid in without_list & readings.keys() - _sent_as_root(published, readings):
        columns = (column for column in readings[oid].columns if column.generated and not column.published)
        if generated := {column.name: column.generated for column in columns}:
            found.append(UnpublishedColumns.from_generated(oid, readings[oid].title, generated))
    return sorted(found, key=lambda each: each.name)


def lacks_of(index: SegmentIndex) -> list[Lack]:
    """Return what a log lacks of its tables: first those without an initial snapshot, then stale ones, by name.

    A log has a table completely with a complete copy, from a truncate on, or if the table was created while all tables
    were published. Dropped tables are not included.
    """
    readings, published = _latest(known_tables(index)), publication_readings(index)
    names = _names(index, readings)
    lacks = [
        Lack(oid, name, f"the log has no snapshot of {name}", snapshot_command(name))
        for oid, name in tables_without_snapshot(index).items()
    ]
    for oid, stale in lineage_of(index).stale.items():
        if oid not in {lack.relation_oid for lack in lacks}:
            lacks.append(Lack(oid, names.get(oid, str(oid)), stale.reason, stale.remedy, stale.seq))
    lacks += _unsent(published, names)
    return sorted(lacks, key=lambda lack: (lack.stale_since is not None, lack.name))


def tables_without_snapshot(index: SegmentIndex) -> dict[int, str]:
    """Return the names of the tables, by OID, that a log does not have from a copy, a truncate or their creation on."""
    all_readings, published = known_tables(index), publication_readings(index)
    readings = _latest(all_readings)
    begun = {copy.relation_oid for copy in present_copies(index)} | _begun(index, all_readings).keys()
    published_now = {oid for reading in _captured_now(published) for oid in reading.tables}
    known = set(index.counts["oid"].to_pylist()) | (published_now - _sent_as_root(published, readings))
    dropped = {oid for oid, reading in readings.items() if reading.gone}
    return {oid: name for oid, name in _names(index, readings).items() if oid in known - begun - dropped}


def begins_with_copies(index: SegmentIndex) -> bool:
    """Return whether table copies were requested when a log began, complete or not."""
    created = any(event.details["snapshot"] is not None for event in events_of(index, CREATED_SLOT))
    return created or bool(len(index.entries("snapshots")))


def _latest(readings: Mapping[int, Sequence[TableReading]]) -> dict[int, TableReading]:
    return {oid: of_table[-1] for oid, of_table in readings.items()}


def whole_tables(index: SegmentIndex, lacks: Iterable[Lack]) -> frozenset[int]:
    """Return the OIDs of the tables of which a log has every row.

    These are the tables that are not in ``lacks``, if the log knows what is published of them, and if every publication
    with the table publishes inserts and updates: otherwise the table has rows that were never sent. Deletes need not be
    published; then the log may have rows that were deleted.

    Args:
        index: The index of the log.
        lacks: What it lacks (``lacks_of``).
    """
    readings, copies = publication_readings(index), {copy.relation_oid: copy for copy in present_copies(index)}
    known = {oid for reading in readings if reading.captured for oid in reading.tables}
    tables = _latest(known_tables(index))
    found = known - {lack.relation_oid for lack in lacks} - _sent_as_root(readings, tables)
    return frozenset(
        oid
        for oid in found
        if all(each.operations >= {"insert", "update"} for each in _in_force(readings, oid, copies.get(oid)))
    )


def _in_force(readings: Sequence[PublicationReading], oid: int, copy: TableCopy | None) -> Iterator[PublicationReading]:
    """Yield the readings of publications that were in force for a table since a copy of it."""
    for number, reading in enumerate(readings):
        later = (each for each in readings[number + 1 :] if each.name == reading.name)
        is_past = copy is not None and any(covers(copy.snapshot, each.snapshot) for each in later)
        if reading.captured and oid in reading.tables and not is_past:
            yield reading


def present_copies(index: SegmentIndex) -> Iterator[TableCopy]:
    """Yield the complete copies whose rows are all in the log: a pruned log may begin within one."""
    chunks = index.entries("snapshots").sort_by("number")
    numbers, rows = chunks["number"].to_numpy(), chunks["rows"].to_numpy()
    passed = np.append(0, np.cumsum(rows))
    for copy in copies_of(index):
        first = np.searchsorted(numbers, copy.first_chunk)
        end = max(first, np.searchsorted(numbers, copy.last_chunk, "right"))
        if passed[end] - passed[first] == copy.rows + copy.void.rows:
            yield copy


def copies_in_progress(index: SegmentIndex) -> dict[int, PartialCopy]:
    """Return the copies that were begun and are not complete, of tables that are published still, by their OIDs."""
    readings, published = _latest(known_tables(index)), _captured_now(publication_readings(index))
    now = {oid for reading in published for oid in reading.tables}
    dropped = {oid for oid, reading in readings.items() if reading.gone}
    return {oid: copy for oid, copy in partial_copies(index).items() if oid in now - dropped}


def superfluous_copies(index: SegmentIndex) -> frozenset[int]:
    """Return the seqs of copies that are redundant: the log has the same rows as changes since the table's creation.

    Such copies were made because the log had no copy of the table. What follows a copy in the log does not matter,
    except for an exclusion of its table: a redundant copy stays redundant as long as nothing is pruned.
    """
    readings, published, lost = known_tables(index), publication_readings(index), lost_histories(index)
    firsts: dict[int, TableCopy] = {}
    for copy in copies_of(index):
        firsts.setdefault(copy.relation_oid, copy)
    created: dict[int, int] = {}
    for oid, seq in _creations(_firsts(readings), published, _last_begun(index)):
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
    """Return whether all rows and values of a table came through the stream.

    Beyond ``_has_first_files`` no partition was attached, and no column has values that ALTER TABLE gave to rows.
    """
    has_values = any(column.missing is not None for column in reading.columns)
    return not (reading.gone or reading.attached or has_values) and reading.filenodes == {reading.oid: reading.oid}


def _sends_all(reading: PublicationReading, oid: int) -> bool:
    """Return whether a publication publishes a table completely, or does not include it."""
    table = reading.tables.get(oid)
    if table is None or not reading.captured:
        return True
    is_plain = table.columns is None and table.filter is None and not table.ancestors
    return is_plain and reading.operations >= _OPERATIONS


def _unsent(published: Iterable[PublicationReading], names: Mapping[int, str]) -> Iterator[Lack]:
    """Yield the tables that have partitions which are never replicated."""
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
        reason = f"the log lacks the rows of partition {title}, which is never replicated, since it is {what}"
        yield Lack(each.root, root, reason, remedy)


def _names(index: SegmentIndex, readings: Mapping[int, TableReading]) -> dict[int, str]:
    relations = [description.relation for description in described(sent_by_seq(index).values())]
    names = {each.relation_oid: full_name(each) for each in relations}
    return names | {oid: reading.title for oid, reading in readings.items()}


def publishes_all_operations(index: SegmentIndex) -> bool:
    """Return whether all publications, as far as they are known, have published every operation at all times."""
    readings = list(publication_readings(index))
    return bool(readings) and all(each.operations >= _OPERATIONS for each in readings)


def begun_without_copy(index: SegmentIndex) -> dict[int, tuple[int, str]]:
    """Return the tables that a log has completely without a copy: the seq from which on, and the name, by OID.

    The seq is that of a truncate, or of the reading that shows that the table was created after the capture began.
    """
    readings = known_tables(index)
    names = _names(index, _latest(readings))
    return {oid: (seq, names.get(oid, str(oid))) for oid, seq in _begun(index, readings).items()}


def _begun(index: SegmentIndex, readings: Mapping[int, Sequence[TableReading]]) -> dict[int, int]:
    # A table that was rewritten, unlogged, or given a partition with rows, before anybody looked at it may have rows
    # that were never sent.
    first = {
        oid: each
        for oid, each in _firsts(readings).items()
        if _has_first_files(each) and not (each.attached or each.joined)
    }
    return dict(_creations(first, known_publications(index), _last_begun(index))) | _truncated(index)


def _firsts(readings: Mapping[int, Sequence[TableReading]]) -> dict[int, TableReading]:
    """Return the first reading of each table, but of those that were a partition before it: a root had their rows.

    A table that is attached later stays: what was found of it does not depend on that.
    """
    listed: dict[int, int] = {}
    for reading in (each for of_table in readings.values() for each in of_table):
        for leaf in reading.filenodes.keys() - {reading.oid}:
            listed[leaf] = min(reading.seq, listed.get(leaf, reading.seq))
    firsts = {oid: of_table[0] for oid, of_table in readings.items()}
    return {oid: first for oid, first in firsts.items() if listed.get(oid, first.seq) >= first.seq}


def _has_first_files(reading: TableReading) -> bool:
    """Return whether a table, or each of its leaf partitions, has the file that it was created with.

    Its OID names that file (heap_create()). A rewrite assigns another one, and so does ALTER TABLE ... SET LOGGED.
    """
    return all(node in (0, leaf) for leaf, node in reading.filenodes.items())


def _truncated(index: SegmentIndex) -> dict[int, int]:
    """Return the seq of the last committed truncate of each table, from which on the log has it completely."""
    rows = index.entries("rows")
    rows = rows.filter(look_up(rows["tag"].to_numpy(), _TRUNCATES))
    spans = run_spans(index)
    first, last = np.asarray(spans.first_seq), np.asarray(spans.last_seq)
    seqs, xids, oids = (rows[name].to_numpy() for name in ("first_seq", "xid", "oid"))
    span_indexes = np.searchsorted(first, seqs, "right") - 1
    found: dict[int, int] = {}
    for seq, xid, oid, span_index in zip(
        seqs.tolist(), xids.tolist(), oids.tolist(), span_indexes.tolist(), strict=True
    ):
        if span_index >= 0 and seq <= last[span_index] and xid not in spans.aborted.get(span_index, ()):
            found[oid] = max(seq, found.get(oid, 0))
    return found


def _last_begun(index: SegmentIndex) -> int:
    """Return the last seq before which changes are missing, at an event BEGUN_ANEW or by a prune; -1 for none."""
    pruned = index.first_seq - 1 if len(index) else -1
    return max([pruned, *(event.seq for event in events_of(index, BEGUN_ANEW))])


def _creations(
    readings: Mapping[int, TableReading], published: Iterable[PublicationReading], begun: int
) -> Iterator[tuple[int, int]]:
    """Yield each table that was created while a publication FOR ALL TABLES was captured, and the seq of the evidence.

    A reading of such a publication lists all tables: a table that it does not list, and whose creation its snapshot
    does not see, was created later; before the publication was no longer captured, or was altered, if a later reading
    shows that.
    Snapshots have no subtransactions: one in doubt counts as seen. A table that was ever excluded (FOR ALL TABLES
    EXCEPT) is not included, since rows may have been written meanwhile.

    Args:
        readings: A reading of each table.
        published: The readings of publications.
        begun: Readings up to this seq prove nothing (``_last_begun``): a table may have been created while changes were
            lost, or its first rows be pruned.
    """
    published = list(published)
    seen = {oid for reading in published if reading.captured for oid in reading.excluded}
    for reading in published:
        seen |= reading.tables.keys()
        if reading.captured and reading.all_tables and reading.seq > begun:
            later = [oid for oid in readings if oid not in seen]
            created = np.array([readings[oid].created for oid in later], np.int64)
            is_new = reading.snapshot.invisible(created)
            for end in _last_in_force(published, reading):
                is_new &= ~end.snapshot.invisible(created)
            yield from ((oid, reading.seq) for oid, new in zip(later, is_new.tolist(), strict=True) if new)


def _last_in_force(
    published: Sequence[PublicationReading], reading: PublicationReading
) -> Iterator[PublicationReading]:
    """Yield the reading up to which a publication FOR ALL TABLES is known to have been in force, if it was not always.

    That is the first one that shows that it is no longer captured, or not FOR ALL TABLES any more; or the last one
    before it was altered: it may have published less for a time (ALTER PUBLICATION ... SET).
    """
    for each in (each for each in published if each.name == reading.name and each.seq > reading.seq):
        if not (each.captured and each.all_tables):
            yield each
            return
        if None not in (reading.written, each.written) and each.written != reading.written:
            yield reading
            return
        reading = each


def _captured_now(readings: Iterable[PublicationReading]) -> list[PublicationReading]:
    """Return the latest reading of each captured publication."""
    latest = {reading.name: reading for reading in readings}
    return [reading for reading in latest.values() if reading.captured]


def _sent_as_root(published: Iterable[PublicationReading], readings: Mapping[int, TableReading]) -> set[int]:
    """Return the partitions in a publication whose changes the server sends as those of a table above.

    That is so if another publication has that table with publish_via_partition_root (get_rel_sync_entry()).
    """
    tables = {oid: table for reading in _captured_now(published) for oid, table in reading.tables.items()}
    roots = {oid for oid in tables if oid in readings and readings[oid].is_partitioned and not readings[oid].gone}
    leaves = {leaf for root in roots for leaf in readings[root].filenodes}
    return {oid for oid, table in tables.items() if oid in leaves or table.ancestors & roots}
