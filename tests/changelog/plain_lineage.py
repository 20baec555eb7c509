"""The lineage of a log by its plain definition: from scratch, and in any order. What readers use must agree with it."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise, product
from operator import attrgetter, itemgetter
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._facts.catalog_readings import (
    CatalogColumn,
    CatalogType,
    PublicationReading,
    TableReading,
    covers,
    publication_readings,
    snapshot_of,
)
from pgoutput_construct.changelog._facts.copies import TableCopy, copies_of
from pgoutput_construct.changelog._facts.description_usage import DescriptionUse
from pgoutput_construct.changelog._facts.stale_tables import (
    StaleTable,
    _difference,
    _effective,
    _has_new_files,
    _PublishedState,
    _retyped,
    _rows_of_catalog,
    _unpublished,
    stale_table,
)
from pgoutput_construct.changelog._facts.successive_texts import SharedColumns
from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.changelog._index.planning import relation_history, run_spans
from pgoutput_construct.changelog._index.row_counts import COPIED
from pgoutput_construct.changelog._segment.events import BEGUN_ANEW, TABLE_FACTS, LogEvent, events_of
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.wire import Lsn
from pgoutput_construct.wire.messages import RelationColumn

__all__ = ["plain_lineage", "plain_numbers"]

Found: TypeAlias = tuple[dict[int, StaleTable], dict[int, tuple[int, ...]], dict[tuple[int, int], str]]
Numbers: TypeAlias = tuple[int, ...]
Shape: TypeAlias = tuple[str, int, int]
Precedes: TypeAlias = Callable[[int], bool | None]

_XIDS: Final = 2**32


def plain_lineage(index: SegmentIndex) -> Found:
    """Return the stale tables, the numbers of descriptions, and what older rows have, by the index of a log."""
    readings, published = _table_readings(index), [*_publication_changes(publication_readings(index))]
    if not readings:
        return {}, {}, {}
    copies: dict[int, list[TableCopy]] = {}
    for copy in copies_of(index):
        copies.setdefault(copy.relation_oid, []).append(copy)
    numbers, found = _all_numbers(index, readings)
    for oid, of_table in readings.items():
        changes = (*_rewrites(of_table), *_type_changes(of_table), *_late_values(of_table))
        found += [(oid, stale) for stale in (*changes, *_partition_changes(of_table))]
    found += [*published, *_lost_histories(events_of(index, BEGUN_ANEW), readings)]
    gone = {oid for oid, of_table in readings.items() if of_table[-1].gone}
    begun = [event.seq for event in events_of(index, BEGUN_ANEW)]
    left = [
        (oid, each) for oid, each in found if oid not in gone and not _is_repaired(each, copies.get(oid, ()), begun)
    ]
    can_copy = {oid: each.published for oid, each in published}
    stale = {oid: replace(each, published=can_copy.get(oid, True)) for oid, each in _combined(left)}
    return stale, numbers, _all_missing(readings)


def _table_readings(index: SegmentIndex) -> dict[int, list[TableReading]]:
    found: dict[int, list[TableReading]] = {}
    for event in events_of(index, TABLE_FACTS):
        told = event.details
        reading = TableReading(
            seq=event.seq,
            snapshot=snapshot_of(event),
            since=told["since"],
            unchanged=told["unchanged"],
            oid=told["oid"],
            namespace=told["schema"],
            name=told["name"],
            gone=told.get("gone", False),
            replica_identity=told.get("replica_identity", ""),
            created=told.get("created", 0),
            filenodes=dict(told.get("filenodes", ())),
            attached=frozenset(told.get("attached", ())),
            truncated=frozenset(told.get("truncated", ())),
            rewritten=dict(told.get("rewritten", ())),
            columns=SharedColumns(CatalogColumn(**column) for column in told.get("columns", ())),
            types=tuple(map(CatalogType.parse, told.get("types", ()))),
        )
        found.setdefault(reading.oid, []).append(reading)
    return found


def _combined(found: Iterable[tuple[int, StaleTable]]) -> Iterator[tuple[int, StaleTable]]:
    """Yield one for each table: it begins with the first, and what repairs the last one repairs them all."""
    for oid, together in groupby(sorted(found, key=lambda pair: (pair[0], pair[1].seq)), itemgetter(0)):
        of_table = [each for _, each in together]
        reasons = "; ".join(dict.fromkeys(each.reason for each in of_table))
        lost = any(each.lost for each in of_table)
        yield oid, replace(of_table[-1], seq=of_table[0].seq, reason=reasons, lost=lost)


def _is_repaired(stale: StaleTable, copies: Iterable[TableCopy], begun: Sequence[int]) -> bool:
    """Snapshots are compared within one history of the server; a copy of a later one has all of what was before."""
    for copy in copies:
        if any(stale.seq < seq < copy.seq for seq in begun):
            return True
        if not any(copy.seq < seq <= stale.seq for seq in begun) and covers(copy.snapshot, stale.snapshot):
            return True
    return False


def _all_missing(readings: Mapping[int, Sequence[TableReading]]) -> dict[tuple[int, int], str]:
    """Return what older rows have in each column: as it was first read, for a rewrite puts it into the rows."""
    found: dict[tuple[int, int], str | None] = {}
    for oid, of_table in readings.items():
        for column in (column for reading in of_table for column in reading.columns if not column.dropped):
            found.setdefault((oid, column.number), column.missing)
    return {place: missing for place, missing in found.items() if missing is not None}


def _all_numbers(
    index: SegmentIndex, readings: Mapping[int, Sequence[TableReading]]
) -> tuple[dict[int, tuple[int, ...]], list[tuple[int, StaleTable]]]:
    """Return the numbers of the columns of each description that rows have, and where they are not certain."""
    numbers: dict[int, tuple[int, ...]] = {}
    unknown: list[tuple[int, StaleTable]] = []
    first = min(of_table[0].seq for of_table in readings.values())
    used = _uses_of(index)
    for description in relation_history(index).descriptions:
        oid, use = description.relation.relation_oid, used.get(description.seq)
        of_table = [reading for reading in readings.get(oid, ()) if not reading.gone]
        if use is None or not of_table or description.seq < first:
            continue
        window, is_closed = _window(of_table, description.seq, use.last)
        if (found := plain_numbers(description.relation.columns, window, use.precedes)) is not None:
            numbers[description.seq] = found
            continue
        is_unknown = is_closed or len(_alike(description.relation.columns, window)) > 1
        if is_unknown and (description.seq > of_table[0].seq or not index.first_seq):
            unknown.append((oid, _unknown(description, window[-1])))
    return numbers, unknown


def _window(readings: Sequence[TableReading], seq: int, moment: Lsn | Snapshot) -> tuple[list[TableReading], bool]:
    """Return the readings before, between and after which a table was as it is described, and whether there is a last.

    ``moment`` is when rows had the description for the last time: while rows have it, the table is as it says, since
    PostgreSQL sends another one after each change. An ALTER TABLE waits for the transactions that wrote, so the
    position of their commit is that of their rows.
    """
    before = [place for place, reading in enumerate(readings) if _precedes(reading, moment)][-1:]
    next_unchanged = [*(reading.unchanged for reading in readings[1:]), -1]
    after = [place for place, reading in enumerate(readings) if max(reading.since, next_unchanged[place]) > seq][:1]
    end = 1 + max(*(after or [len(readings) - 1]), *before, 0)
    if before:
        return [*readings[before[0] : end]], bool(after)
    # Before all readings: what no transaction changed that the slot had yet to send then, was there.
    first = readings[0]
    known = SharedColumns(column for column in first.columns if not column.recent and seq > first.seq)
    return [replace(first, columns=known), *readings[:end]], bool(after)


def _precedes(reading: TableReading, moment: Lsn | Snapshot) -> bool:
    if isinstance(moment, Snapshot):
        return covers(moment, reading.snapshot)
    return reading.snapshot.lsn <= moment


def _unknown(description: Description, reading: TableReading) -> StaleTable:
    reason = "was altered several times in a row, and its columns cannot be matched with certainty"
    return replace(stale_table(reading, (reading.namespace, reading.name), reason), seq=description.seq)


def _alike(columns: Sequence[RelationColumn], readings: Sequence[TableReading]) -> set[Numbers]:
    """Return the numbers of columns that look like these, at each of the readings."""
    shapes = [(column.name, column.type_oid, column.type_modifier) for column in columns]
    published = [{c.shape: c.number for c in reading.columns if c.published} for reading in readings]
    return {tuple(found.values()) for found in published if [*found] == shapes}


def plain_numbers(
    columns: Sequence[RelationColumn], readings: Sequence[TableReading], precedes: Precedes
) -> Numbers | None:
    """Return the numbers of a description's columns; None where they are not certain.

    ``readings`` are consecutive: the table was as it is described at the first one, at the last one, or at some time
    between. PostgreSQL gives a new column the next number, and a Relation has the columns in their order: so how many
    there are may leave one answer. Else what looks as a whole like one of the readings is that one, unless a name in it
    is another column's in another reading, or columns that it has or lacks were dropped too early or too late:
    ``precedes`` tells whether all rows with the description were written before the transaction of an xid changed the
    table, None where it does not know.
    """
    candidates = {numbers for pair in pairwise(readings) for numbers in _between(len(columns), *pair)}
    if len(candidates) != 1:
        shapes = [(column.name, column.type_oid, column.type_modifier) for column in columns]
        published = [{c.shape: c.number for c in reading.columns if c.published} for reading in readings]
        alike = _alike(columns, readings)
        candidates = {n for n in alike if not any(_contradicts(found, shapes, n) for found in published)}
        candidates = {n for n in candidates if _is_in_time(n, readings[0], readings[-1], precedes)}
        candidates = candidates if len(alike) == 1 else set()
    return candidates.pop() if len(candidates) == 1 else None


def _contradicts(found: Mapping[Shape, int], shapes: Sequence[Shape], numbers: Numbers) -> bool:
    return any(found.get(shape, number) != number for shape, number in zip(shapes, numbers, strict=True))


def _is_in_time(numbers: Numbers, before: TableReading, after: TableReading, precedes: Precedes) -> bool:
    """Return whether columns that were dropped between two readings were still, or no longer, there."""
    old, known = _live(before), {column.number for column in before.columns}
    for column in (column for column in after.columns if column.dropped and column.number not in known - old.keys()):
        is_there, was_there = column.number in numbers, precedes(column.xmin)
        if column.number in old:
            if old[column.number].published and is_there != was_there:
                return False
        elif is_there != was_there and (is_there or numbers[-1:] > (column.number,)):  # it had come already
            return False
    return True


def _between(count: int, before: TableReading, after: TableReading) -> Iterator[Numbers]:
    """Yield the numbers that so many columns may have had between two readings, at least two of them if not certain."""
    old, new = _live(before), _live(after)
    known = {column.number for column in before.columns}
    must = sorted(number for number in old.keys() & new.keys() if old[number].published and new[number].published)
    optional = sorted(number for number in known - {*must} if _is_published(number, old, new))
    added = sorted(column.number for column in after.columns if column.number not in known)
    for end in range(len(added) + 1):
        there = [number for number in added[:end] if number in new and new[number].published]
        # What came and went nobody has seen.
        unseen = [number for number in added[:end] if number not in new]
        yield from _chosen(count, [*must, *there], [*optional, *unseen])


def _chosen(count: int, must: list[int], optional: list[int]) -> Iterator[Numbers]:
    """Yield the ways to have so many numbers, two of them where there are more."""
    missing = count - len(must)
    if 0 <= missing <= len(optional):
        yield tuple(sorted([*must, *optional[:missing]]))
        yield tuple(sorted([*must, *optional[len(optional) - missing :]]))


def _live(reading: TableReading) -> Mapping[int, CatalogColumn]:
    live = {column.number: column for column in reading.columns if not column.dropped}
    if any(column.published for column in live.values()):
        return live
    # It is not published any more: what was, is not known.
    return {number: replace(column, published=True) for number, column in live.items()}


def _is_published(number: int, *sides: Mapping[int, CatalogColumn]) -> bool:
    return any(number in side and side[number].published for side in sides)


def _uses_of(index: SegmentIndex) -> dict[int, DescriptionUse]:
    """Return the uses of descriptions, by their seqs, from the index of a log."""
    rows = index.entries("rows")
    copied, sent = rows.filter(pc.equal(rows["span"], COPIED)), rows.filter(pc.not_equal(rows["span"], COPIED))
    found = dict(_sent_uses(index, sent))
    copies = sorted(copies_of(index), key=lambda copy: (copy.first_chunk, copy.last_chunk))
    firsts = [copy.first_chunk for copy in copies]
    for number, description in zip(copied["xid"].to_pylist(), copied["description"].to_pylist(), strict=True):
        place = bisect_right(firsts, number) - 1
        if place >= 0 and number <= copies[place].last_chunk:
            found[description] = DescriptionUse(copies[place].snapshot)
    return found


def _sent_uses(index: SegmentIndex, rows: pa.Table) -> Iterator[tuple[int, DescriptionUse]]:
    spans = run_spans(index)
    if not len(rows) or not len(spans.first_seq):
        return
    first, last, lsn, top = (
        np.asarray(each) for each in (spans.first_seq, spans.last_seq, spans.commit_lsn, spans.xid)
    )
    seqs, xids, described = (rows[name].to_numpy() for name in ("last_seq", "xid", "description"))
    places = np.searchsorted(first, seqs, "right") - 1
    counts = (places >= 0) & (seqs <= last[places])
    for place, aborted in spans.aborted.items():
        counts &= ~((places == place) & np.isin(xids, list(aborted)))
    places = places[counts]
    known, some, which = np.unique(described[counts], return_index=True, return_inverse=True)
    latest = np.zeros(len(known), np.int64)
    np.maximum.at(latest, which, lsn[places])
    # Xids wrap around: they are compared as distances from one that is near.
    base = top[places][some]
    distances = (top[places] - base[which] + _XIDS // 2) % _XIDS - _XIDS // 2
    oldest, newest = np.zeros((2, len(known)), np.int64)
    np.minimum.at(oldest, which, distances)
    np.maximum.at(newest, which, distances)
    ends = zip(((base + oldest) % _XIDS).tolist(), ((base + newest) % _XIDS).tolist(), strict=True)
    for seq, position, both in zip(known.tolist(), latest.tolist(), ends, strict=True):
        yield seq, DescriptionUse(Lsn(position), both)


def _rewrites(readings: Iterable[TableReading]) -> Iterator[StaleTable]:
    """Yield where the rows of a table changed without messages, as ALTER TABLE does it.

    VACUUM FULL, CLUSTER, TRUNCATE and SET TABLESPACE make another file, too, but change no column.
    """
    for before, after in pairwise(readings):
        if before.gone or after.gone:
            continue
        if _has_new_files(before, after) and _rows_of_catalog(before.columns) != _rows_of_catalog(after.columns):
            yield stale_table(
                after, (after.namespace, after.name), "was rewritten while its columns changed (ALTER TABLE)"
            )
        elif changed := _retyped(before.columns, after.columns):
            yield stale_table(
                after, (after.namespace, after.name), f"has other types in {', '.join(changed)} (ALTER TABLE)"
            )


def _type_changes(readings: Iterable[TableReading]) -> Iterator[StaleTable]:
    """Yield where labels of enums were renamed, or composite types altered, of which a table has values."""
    for before, after in pairwise(readings):
        changed = {
            number
            for was, now in product(before.types, after.types)
            if was.oid == now.oid
            and (was.attributes != now.attributes or {*was.labels.items()} - {*now.labels.items()})
            for number in {*was.columns} & {*now.columns}
        }
        if names := [c.name for c in after.columns if c.published and c.number in changed]:
            what = f"has values of an altered type in {', '.join(names)} (ALTER TYPE: labels, or attributes)"
            ended = replace(after.snapshot, xmin=after.snapshot.xmax, xip=())
            yield replace(stale_table(after, (after.namespace, after.name), what), snapshot=ended)


def _late_values(readings: Iterable[TableReading]) -> Iterator[StaleTable]:
    """Yield where generated columns that were not published came to be."""
    for before, after in pairwise(readings):
        found = {c.number for c in before.columns if c.generated and not c.published}
        if names := [c.name for c in after.columns if c.published and c.number in found]:
            what = (
                f"has values in {', '.join(names)} that were never published (generated columns, as of DROP EXPRESSION)"
            )
            yield stale_table(after, (after.namespace, after.name), what)


def _lost_histories(
    events: Iterable[LogEvent], tables: Mapping[int, list[TableReading]]
) -> Iterator[tuple[int, StaleTable]]:
    """Yield the OIDs of tables of whose changes some are missing, since the log was begun anew, and where."""
    for event in events:
        for oid, readings in tables.items():
            before = [reading for reading in readings if reading.seq < event.seq][-1:]
            if before and any(column.published for column in before[0].columns):
                stale = stale_table(
                    before[0], (before[0].namespace, before[0].name), "lacks changes: " + event.details["reason"]
                )
                yield oid, replace(stale, seq=event.seq, snapshot=snapshot_of(event), lost=True)


def _partition_changes(readings: Iterable[TableReading]) -> Iterator[StaleTable]:
    """Yield where rows came or went with partitions of a table that is published as a whole."""
    for before, after in pairwise(readings):
        if before.gone or after.gone or not after.is_partitioned:
            continue
        old, new = before.filenodes.keys(), after.filenodes.keys()
        if old - new:
            yield stale_table(after, (after.namespace, after.name), "lost a partition (DETACH or DROP)")
        elif (new - old) & after.attached:
            yield stale_table(after, (after.namespace, after.name), "was given a table as a partition (ATTACH)")
        elif _is_emptied_in_part(before, after):
            yield stale_table(after, (after.namespace, after.name), "has a partition that was truncated by itself")


def _is_emptied_in_part(before: TableReading, after: TableReading) -> bool:
    """Return whether some leaf was truncated, and not with all others that were there: in one transaction."""
    stored = [leaf for leaf in after.filenodes if after.filenodes[leaf]]
    has_new_file = {leaf: after.filenodes[leaf] != before.filenodes.get(leaf, leaf) for leaf in stored}
    if not any(has_new_file[leaf] and leaf in after.truncated for leaf in stored):
        return False
    is_left = any(leaf in before.filenodes and not has_new_file[leaf] for leaf in stored)
    return is_left or len({after.rewritten.get(leaf) for leaf in stored if has_new_file[leaf]}) > 1


def _publication_changes(readings: Iterable[PublicationReading]) -> Iterator[tuple[int, StaleTable]]:
    """Yield the OIDs of tables whose changes were not, or are no longer, all published, and since where."""
    in_force: dict[str, PublicationReading] = {}
    seen: dict[int, _PublishedState] = {}
    for _, together in groupby(readings, attrgetter("snapshot")):
        for reading in together:
            in_force[reading.name] = reading
        now = _effective(in_force.values())
        for oid, before in seen.items():
            after = now.get(oid)
            if reason := _difference(before, after or replace(before, operations=frozenset())):
                yield oid, _unpublished(reading, before) if after is None else stale_table(reading, after.table, reason)
        seen |= {oid: replace(before, operations=frozenset()) for oid, before in seen.items()} | now
