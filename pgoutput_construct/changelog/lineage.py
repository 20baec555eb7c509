"""Which column of a table is which through renames and new columns, and which tables the log no longer has as they are.

A reader asks ``lineage_of``; it derives all from what the capture read from the catalog (``changelog/facts.py``).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

from pgoutput_construct.changelog.copies import Snapshot, TableCopy, copies_of
from pgoutput_construct.changelog.events import BEGUN_ANEW, events_of
from pgoutput_construct.changelog.facts import TableReading, covers, publication_readings, table_readings
from pgoutput_construct.changelog.index import SegmentIndex
from pgoutput_construct.changelog.numbering import find_numbers
from pgoutput_construct.changelog.planning import relation_history
from pgoutput_construct.changelog.stale import (
    Stale,
    lost_histories,
    partition_changes,
    publication_changes,
    rewrites,
    stale_table,
)
from pgoutput_construct.changelog.uses import uses_of
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.wire import Lsn

__all__ = ["Lineage", "Stale", "lineage_of"]


@dataclass(frozen=True)
class Lineage:
    """What a log knows of its tables beyond their descriptions."""

    stale: Mapping[int, Stale]
    """The tables whose rows in the log are not those of the server, by OID; those that a later copy repaired, and those
    that are gone, are not among them."""
    _numbers: Mapping[int, tuple[int, ...]]
    _missing: Mapping[tuple[int, int], str]

    def numbers(self, description: Description) -> tuple[int, ...] | None:
        """Return the attribute number of each column of a description.

        Two columns of a table are the same one when they have the same number, whatever their names are. None where
        the log does not say: then columns are told apart by their names.
        """
        return self._numbers.get(description.seq)

    def missing(self, relation_oid: int, number: int) -> str | None:
        """Return the text that rows have in a column that was added after them; None for NULL."""
        return self._missing.get((relation_oid, number))


def lineage_of(index: SegmentIndex) -> Lineage:
    """Derive the lineage of all tables from the index of a log."""
    readings, published = table_readings(index), [*publication_changes(publication_readings(index))]
    if not readings:
        return Lineage({}, {}, {})
    copies: dict[int, list[TableCopy]] = {}
    for copy in copies_of(index):
        copies.setdefault(copy.relation_oid, []).append(copy)
    numbers, found = _all_numbers(index, readings)
    for oid, of_table in readings.items():
        found += [(oid, stale) for stale in (*rewrites(of_table), *partition_changes(of_table))]
    found += [*published, *lost_histories(events_of(index, BEGUN_ANEW), readings)]
    gone = {oid for oid, of_table in readings.items() if of_table[-1].gone}
    left = [(oid, each) for oid, each in found if oid not in gone and not _is_repaired(each, copies.get(oid, ()))]
    can_copy = {oid: each.published for oid, each in published}
    stale = {oid: replace(each, published=can_copy.get(oid, True)) for oid, each in _combined(left)}
    return Lineage(stale, numbers, _all_missing(readings))


def _combined(found: Iterable[tuple[int, Stale]]) -> Iterator[tuple[int, Stale]]:
    """Yield one for each table: it begins with the first, and what repairs the last one repairs them all."""
    for oid, together in groupby(sorted(found, key=lambda pair: (pair[0], pair[1].seq)), itemgetter(0)):
        of_table = [each for _, each in together]
        reasons = "; ".join(dict.fromkeys(each.reason for each in of_table))
        lost = any(each.lost for each in of_table)
        yield oid, replace(of_table[-1], seq=of_table[0].seq, reason=reasons, lost=lost)


def _is_repaired(stale: Stale, copies: Iterable[TableCopy]) -> bool:
    return any(covers(copy.snapshot, stale.snapshot) for copy in copies)


def _all_missing(readings: Mapping[int, Sequence[TableReading]]) -> dict[tuple[int, int], str]:
    """Return what older rows have in each column: as it was first read, for a rewrite puts it into the rows."""
    found: dict[tuple[int, int], str | None] = {}
    for oid, of_table in readings.items():
        for column in (column for reading in of_table for column in reading.columns if not column.dropped):
            found.setdefault((oid, column.number), column.missing)
    return {place: missing for place, missing in found.items() if missing is not None}


def _all_numbers(
    index: SegmentIndex, readings: Mapping[int, Sequence[TableReading]]
) -> tuple[dict[int, tuple[int, ...]], list[tuple[int, Stale]]]:
    """Return the numbers of the columns of each description that rows have, and where they are not certain."""
    numbers: dict[int, tuple[int, ...]] = {}
    unknown: list[tuple[int, Stale]] = []
    first = min(of_table[0].seq for of_table in readings.values())
    used = uses_of(index)
    for description in relation_history(index).descriptions:
        oid, use = description.relation.relation_oid, used.get(description.seq)
        of_table = [reading for reading in readings.get(oid, ()) if not reading.gone]
        if use is None or not of_table or description.seq < first:
            continue
        window, is_closed = _window(of_table, description.seq, use.last)
        if (found := find_numbers(description.relation.columns, window, use.precedes)) is not None:
            numbers[description.seq] = found
        elif is_closed and (description.seq > of_table[0].seq or not index.first_seq):
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
    known = tuple(column for column in first.columns if not column.recent and seq > first.seq)
    return [replace(first, columns=known), *readings[:end]], bool(after)


def _precedes(reading: TableReading, moment: Lsn | Snapshot) -> bool:
    if isinstance(moment, Snapshot):
        return covers(moment, reading.snapshot)
    return reading.snapshot.lsn <= moment


def _unknown(description: Description, reading: TableReading) -> Stale:
    reason = "was altered several times in a row, and it is not certain which of its columns is which"
    return replace(stale_table(reading, (reading.namespace, reading.name), reason), seq=description.seq)
