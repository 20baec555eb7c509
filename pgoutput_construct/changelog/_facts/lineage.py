"""Lineage: which column of a table is which through renames and new columns, and which tables are stale in the log.

A reader calls ``lineage_of``, which derives everything from readings of the catalog (``catalog_readings``). A process
that follows a log, as a capture does, has a ``LineageTracker`` and gives it the index of the log again when that has
grown.

How the attribute numbers of a description are found: the rows with the description were written in some interval, from
the Relation's seq to the last commit of such rows. The readings of the catalog at and around that interval are a window
(``_TableHistory.window``), found by binary search. The table was as described at the first reading of the window, at
the last, or between two, and ``numbering`` decides whether that leaves one answer. Once there is a reading after the
interval, nothing that is appended later changes the answer, except more rows with the same description.

As of an earlier point (``LogIndex.as_of``), the readings after it are used in the same way, since they show what
happened before them: a column that was renamed just before has its number from the next reading. But what they find
of a table counts only if it happened by then, and where the log does not know that, the table is among the stale ones
with this reason (``undated_changes``).
"""

import gc
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import Final

import numpy as np
import pyarrow as pa

from pgoutput_construct.changelog._facts.catalog_readings import (
    ColumnDifference,
    PublicationReading,
    Reading,
    TableFactsReader,
    TableReading,
    altered_columns,
    covers,
    dated_events,
)
from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._facts.description_usage import DescriptionUses, uses_of
from pgoutput_construct.changelog._facts.numbering import ReadingWindow
from pgoutput_construct.changelog._facts.stale_tables import (
    PublicationChanges,
    StaleTable,
    late_values,
    lost_history,
    partition_change,
    rewrite,
    stale_table,
    type_change,
)
from pgoutput_construct.changelog._facts.successive_texts import RelationReader, SharedColumns
from pgoutput_construct.changelog._facts.undated_changes import ChangeDates
from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.changelog._index.log_index import LogIndex
from pgoutput_construct.changelog._index.row_counts import COPIED
from pgoutput_construct.changelog._segment.events import (
    BEGUN_ANEW,
    COPIED_TABLE,
    PUBLICATION_FACTS,
    TABLE_FACTS,
    EventRow,
)
from pgoutput_construct.changelog._segment.segment_index import BinaryValues, SegmentIndex
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.wire import Lsn
from pgoutput_construct.wire.messages import RelationColumn

__all__ = ["Lineage", "LineageTracker", "StaleTable", "lineage_of"]

_EVENTS: Final = frozenset({TABLE_FACTS, PUBLICATION_FACTS, BEGUN_ANEW, COPIED_TABLE})
_WINDOWS: Final = 64
"""Cached windows of a table: mostly, consecutive descriptions have the same one."""
_UNKNOWN, _REWRITTEN, _TYPES, _VALUES, _PARTITIONS, _PUBLISHED, _LOST, _UNDATED = range(8)
"""The order of the findings of one event."""


@dataclass(frozen=True)
class Lineage:
    """What a log knows of its tables beyond their descriptions; an empty one: nothing."""

    stale: Mapping[int, StaleTable] = field(default_factory=dict)
    """The stale tables by OID, without those that a later copy repaired, and without dropped tables."""
    _numbers: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    _missing: Mapping[tuple[int, int], str] = field(default_factory=dict)
    _partial_keys: frozenset[int] = frozenset()
    """The seqs of descriptions whose replica identity is not completely published."""
    _uses: DescriptionUses = field(default_factory=lambda: DescriptionUses(*np.empty((4, 0), np.int64)))

    def has_rows(self, description: Description) -> bool:
        """Return whether rows have a description that were committed, or copied completely."""
        return self._uses.last_lsn(description.seq) is not None

    def follows(self, reading: TableReading, description: Description) -> bool:
        """Return whether a reading was made after the last rows with a description."""
        last = self._uses.last_lsn(description.seq)
        return reading.seq > description.seq if last is None else reading.snapshot.lsn >= last

    def numbers(self, description: Description) -> tuple[int, ...] | None:
        """Return the attribute number of each column of a description; None if the log does not determine them.

        Two columns of a table are the same column if they have the same number, whatever their names. Without numbers,
        columns are identified by name.
        """
        return self._numbers.get(description.seq)

    def has_whole_key(self, description: Description) -> bool:
        """Return whether the key columns of a description are the whole replica identity, as far as the log knows."""
        return description.seq not in self._partial_keys

    def missing(self, relation_oid: int, number: int) -> str | None:
        """Return the text of a column in rows that are older than the column; None for NULL."""
        return self._missing.get((relation_oid, number))


def lineage_of(index: SegmentIndex) -> Lineage:
    """Derive the lineage of all tables from the index of a log."""
    return LineageTracker().follow(index)


class LineageTracker:
    """The lineage of a growing log: each event and description is read once, in the order of the log."""

    _first_seq: int
    _last_seq: int

    def __init__(self) -> None:
        """Begin with no log."""
        self.lookups = 0
        """The number of times that the numbers of a description were computed."""
        self._forget()

    def follow(self, index: SegmentIndex) -> Lineage:
        """Return the lineage of a log as of an index, which must be the previous one or a later one.

        If the log was pruned since, everything is derived again.
        """
        if not len(index):
            return Lineage()
        if index.first_seq != self._first_seq or index.last_seq < self._last_seq:
            self._forget()
            self._first_seq = index.first_seq
        with _collector_disabled():
            for event, is_true in dated_events(index, _EVENTS, self._last_seq):
                self._read(event, is_true)
            if self._later:
                assert isinstance(index, LogIndex)
                self._date_changes(ChangeDates(index, self._read_lsn))
            sent = _SentRelations(index)
            self._use(uses_of(index), sent)
            self._last_seq = index.last_seq
            if self._first_reading < 0:
                return Lineage(_uses=self._uses)
            for table in self._tables.values():
                if table.due and table.readings:
                    self._number(table, sent)
        return Lineage(
            self._stale(), dict(self._numbers), dict(self._missing), frozenset(self._partial_keys), self._uses
        )

    def _forget(self) -> None:
        self._first_seq = self._last_seq = self._first_reading = -1
        self._reader = TableFactsReader()
        self._tables: dict[int, _TableHistory] = {}
        self._begun: list[int] = []
        """The seqs of events BEGUN_ANEW."""
        self._publications = PublicationChanges()
        self._can_copy: dict[int, bool] = {}
        self._uses = DescriptionUses(*np.empty((4, 0), np.int64))
        self._numbers: dict[int, tuple[int, ...]] = {}
        self._missing: dict[tuple[int, int], str] = {}
        self._partial_keys: set[int] = set()
        self._read_lsn = 0
        """The LSN of the last reading."""
        self._later: list[tuple[Reading, TableReading | None]] = []
        """The first readings after the point of the index, which have one snapshot, with those of the tables before
        them."""
        self._undated: tuple[ChangeDates, PublicationReading] | None = None
        """The reading of publications among these, if it may have been true by then."""

    def _table(self, oid: int) -> "_TableHistory":
        if oid not in self._tables:
            self._tables[oid] = _TableHistory(self._begun)
        return self._tables[oid]

    def _read(self, event: EventRow, is_true: bool) -> None:
        """Read the next event; of a reading, ``is_true`` is whether it was true by the end of the index."""
        if event.name == TABLE_FACTS:
            self._read_table(self._reader.read(event), is_true)
        elif event.name == PUBLICATION_FACTS:
            reading = PublicationReading.from_event(event.read())
            if is_true:
                self._read_lsn = reading.snapshot.lsn
                self._read_publication(reading)
            else:
                self._read_later(reading)
        elif event.name == COPIED_TABLE:
            copy = TableCopy.of(event.read())
            self._table(copy.relation_oid).repair(copy)
        else:
            begun = event.read()
            self._begun.append(begun.seq)
            self._read_lsn = 0
            for table in self._tables.values():
                if table.latest is not None:
                    table.find(_LOST, lost_history(begun, table.latest))

    def _read_publication(self, reading: PublicationReading) -> None:
        for oid, stale in self._publications.read(reading):
            self._can_copy[oid] = stale.published
            self._table(oid).find(_PUBLISHED, stale)

    def _read_later(self, reading: Reading, before: TableReading | None = None) -> None:
        if not self._later or self._later[0][0].snapshot == reading.snapshot:
            self._later.append((reading, before))

    def _read_table(self, reading: TableReading, is_true: bool) -> None:
        if self._first_reading < 0:
            self._first_reading = reading.seq
        table = self._table(reading.oid)
        old, new = altered_columns(table.latest, reading)
        if not is_true:
            self._read_later(reading, table.latest)
        else:
            self._read_lsn = reading.snapshot.lsn
            for kind, stale in _findings(table.latest, reading, (old, new)):
                table.find(kind, stale)
        # The first reading counts for older rows: a later rewrite stores the value in the rows.
        for column in new:
            if not column.dropped and column.number not in table.numbers:
                table.numbers.add(column.number)
                if column.missing is not None:
                    self._missing[reading.oid, column.number] = column.missing
        table.read(reading, (old, new), self._uses, is_true)

    def _date_changes(self, dates: ChangeDates) -> None:
        """Find what the first readings after the point show of tables, as far as it may have happened by then."""
        for reading, before in self._later:
            if dates.is_later(reading):
                continue
            if isinstance(reading, PublicationReading):
                self._read_publication(reading)
                self._undated = dates, reading
            elif isinstance(reading, TableReading) and before is not None:
                self._date_change(dates, before, reading)

    def _date_change(self, dates: ChangeDates, before: TableReading, after: TableReading) -> None:
        found = [*_findings(before, after, altered_columns(before, after))]
        was_altered = dates.was_altered(before, after)
        if was_altered is None:
            what = "was dropped" if after.gone else "was altered"
            if after.title != before.title:
                what = f"was renamed to {after.title}"
            other = stale_table(after, (before.namespace, before.name), what)
            is_altered = dates.differs(before, after)
            unknown = [stale for _, stale in found] or ([other] if is_altered else [])
            found = [(_UNDATED, dates.undated(after, stale)) for stale in unknown]
        for kind, stale in found if was_altered is not False else ():
            self._table(after.oid).find(kind, stale)

    def _use(self, uses: DescriptionUses, sent: "_SentRelations") -> None:
        """Record the descriptions whose rows have changed since the last index."""
        if lost := {*uses.lost(self._uses)}:
            for table in self._tables.values():
                table.forget(table.in_use & lost)
            self._partial_keys -= lost
            for seq in lost:
                self._numbers.pop(seq, None)
        for oid, some in sent.by_table(uses.since(self._uses)):
            self._table(oid).use(some)
        self._uses = uses

    def _number(self, table: "_TableHistory", sent: "_SentRelations") -> None:
        """Compute the numbers of the descriptions of a table that are due."""
        due, table.due = sorted(table.due), set()
        due = due[bisect_left(due, self._first_reading) :]
        for (seq, use), (payload, keywords) in zip(self._uses.of(due), sent.of(due), strict=True):
            self.lookups += 1
            columns = table.parse(payload, keywords)
            window, last, is_closed = table.window(seq, use.last)
            numbers = window.find(columns, use.precedes)
            table.unknowns.pop(seq, None)
            self._partial_keys.discard(seq)
            if numbers is not None:
                self._numbers[seq] = numbers
                if not window.has_whole_key(columns, numbers):
                    self._partial_keys.add(seq)
            else:
                self._numbers.pop(seq, None)
                is_unknown = is_closed or window.is_ambiguous(columns)
                if is_unknown and (seq > table.readings[0].seq or not self._first_seq):
                    table.unknowns[seq] = _unknown(seq, last)
            (table.open.discard if is_closed else table.open.add)(seq)

    def _stale(self) -> dict[int, StaleTable]:
        latest: dict[int, list[StaleTable]] = {}
        for oid, stale in self._publications.latest():
            dates = self._undated
            latest.setdefault(oid, []).append(stale if dates is None else dates[0].undated(dates[1], stale))
        can_copy = self._can_copy | {oid: several[-1].published for oid, several in latest.items()}
        suspects = {oid for oid, table in self._tables.items() if table.has_findings} | latest.keys()
        found = {oid: self._table(oid).stale(latest.get(oid, ())) for oid in sorted(suspects)}
        return {
            oid: replace(stale, published=can_copy.get(oid, True)) for oid, stale in found.items() if stale is not None
        }


@contextmanager
def _collector_disabled() -> Iterator[None]:
    """Disable the garbage collector: it would take a quarter of the time, and there are no cycles to find.

    A hundred thousand objects are created and stay: the collector would visit them, and all others in the process,
    again and again.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _SentRelations:
    """The Relations in the index of a log, including inherited ones from before a pruned log begins."""

    def __init__(self, index: SegmentIndex) -> None:
        inherited = index.entries("inherited")
        older, first = np.unique(inherited["seq"].to_numpy(), return_index=True)
        older = inherited.take(first[: older.searchsorted(index.first_seq)])
        self._sent = pa.concat_tables([older, index.entries("descriptions")])
        self._seqs = self._sent["seq"].to_numpy()

    def by_table(self, uses: DescriptionUses) -> Iterator[tuple[int, DescriptionUses]]:
        """Yield the OID of each table with descriptions among these, and their uses."""
        if not len(self._seqs):
            return
        rows = self._seqs.searchsorted(uses.descriptions).clip(max=len(self._seqs) - 1)
        is_known = self._seqs[rows] == uses.descriptions
        oids = self._sent["oid"].to_numpy()[rows[is_known]]
        order = oids.argsort(kind="stable")
        oids, uses = oids[order], uses.take(np.flatnonzero(is_known)[order])
        bounds = [0, *(np.flatnonzero(np.diff(oids)) + 1).tolist(), len(oids)]
        for begin, end in pairwise(bounds) if len(oids) else ():
            yield int(oids[begin]), uses.take(slice(begin, end))

    def of(self, seqs: Sequence[int]) -> Iterator[tuple[bytes, str]]:
        """Yield the payloads of some, each with the keywords of ``parse`` as JSON."""
        for row in self._seqs.searchsorted(np.array(seqs, np.int64)).tolist():
            yield bytes(self._payloads[row]), str(self._keywords[row], "utf-8")

    @cached_property
    def _payloads(self) -> BinaryValues:
        return BinaryValues(self._sent["payload"])

    @cached_property
    def _keywords(self) -> BinaryValues:
        return BinaryValues(self._sent["keywords"])


class _TableHistory:
    """The readings, descriptions and findings of one table (by OID)."""

    def __init__(self, begun: Sequence[int]) -> None:
        """Take the seqs of events BEGUN_ANEW, a list that grows."""
        self._begun = begun
        self.latest: TableReading | None = None
        self.exists = True
        """Whether it was not dropped by the end of the index."""
        self.readings: list[TableReading] = []
        """The readings while it existed."""
        self.numbers: set[int] = set()
        """The numbers of all columns that it had."""
        self.open: set[int] = set()
        """The seqs of descriptions in use after which there is no reading yet: the next one may determine them."""
        self.in_use: set[int] = set()
        """The seqs of its descriptions that are in use."""
        self.unknowns: dict[int, StaleTable] = {}
        """Findings for descriptions whose numbers are uncertain, by seq."""
        self.due: set[int] = set()
        """The seqs of descriptions whose numbers must be computed (again): there are other rows, or another reading."""
        self._altered: list[ColumnDifference | None] = []
        """For each reading, the columns that differ from the one before; None if the table was dropped between."""
        self._findings: list[tuple[int, int, StaleTable]] = []
        self._copies: list[TableCopy] = []
        self._lsns, self._xmaxes = _Rising(), _Rising()
        self._reach: list[int] = []
        self._last_lsn = self._last_xmax = -1
        self._relations: dict[str, RelationReader] = {}
        self._windows: dict[tuple[int, int, bool], ReadingWindow] = {}

    def read(
        self,
        reading: TableReading,
        altered: ColumnDifference,
        uses: DescriptionUses,
        is_true: bool,
    ) -> None:
        """Add the next reading.

        Args:
            reading: The reading.
            altered: The columns in which it differs from the latest one.
            uses: The uses of descriptions, including this table's.
            is_true: Whether it was true by the end of the index.
        """
        is_next = bool(self.readings) and self.latest is self.readings[-1]
        self.latest = reading
        if is_true:
            self.exists = not reading.gone
        if reading.gone:
            return
        self._altered.append(altered if is_next else None)
        if self._reach:
            # That nothing had changed extends the range of the reading before this one.
            self._reach[-1] = max(self._reach[-1], reading.unchanged)
        self._reach.append(max([reading.since, *self._reach[-1:]]))
        self.readings.append(reading)
        self._lsns.append(reading.snapshot.lsn)
        self._xmaxes.append(reading.snapshot.xmax)
        if reading.snapshot.lsn <= self._last_lsn or reading.snapshot.xmax <= self._last_xmax:
            self.due |= {seq for seq, use in uses.of(sorted(self.in_use)) if _precedes(reading, use.last)}
        self.due |= self.open

    def use(self, uses: DescriptionUses) -> None:
        """Record the new uses of some of its descriptions."""
        seqs, is_copied = uses.descriptions.tolist(), uses.oldest == COPIED
        self.in_use.update(seqs)
        self.due.update(seqs)
        self._last_lsn = int(uses.last[~is_copied].max(initial=self._last_lsn))
        copies = (uses.copies[seq] for seq in uses.last[is_copied].tolist())
        self._last_xmax = max([self._last_xmax, *(copy.xmax for copy in copies)])

    def forget(self, seqs: Collection[int]) -> None:
        """Record that some of its descriptions are no longer in use."""
        self.in_use.difference_update(seqs)
        self.open.difference_update(seqs)
        self.due.difference_update(seqs)
        for seq in seqs:
            self.unknowns.pop(seq, None)

    def parse(self, payload: bytes, keywords: str) -> Sequence[RelationColumn]:
        """Return the columns of a Relation.

        A server sends it again over each connection, mostly unchanged: then this returns the same object, for which
        ``ReadingWindow`` has cached the answer.

        Args:
            payload: The message.
            keywords: The keywords of ``parse``, as JSON.
        """
        if keywords not in self._relations:
            self._relations[keywords] = RelationReader(keywords)
        return self._relations[keywords].columns(payload)

    def find(self, kind: int, stale: StaleTable | None) -> None:
        """Record a finding, if there is one and no copy has repaired it."""
        if stale is not None and not self._is_repaired(stale):
            self._findings.append((stale.seq, kind, stale))

    def repair(self, copy: TableCopy) -> None:
        """Record a copy, and discard the findings that it repairs."""
        self._copies.append(copy)
        self._findings = [finding for finding in self._findings if not self._repairs(copy, finding[2])]

    def stale(self, latest: Iterable[StaleTable] = ()) -> StaleTable | None:
        """Return all findings as one, together with those of the ``latest`` publications; None for none.

        Its seq is that of the first finding; whatever repairs the last one repairs all.
        """
        more = [(seq, _UNKNOWN, stale) for seq, stale in self.unknowns.items()]
        more += [(stale.seq, _PUBLISHED, stale) for stale in latest]
        found = [*self._findings, *(each for each in more if not self._is_repaired(each[2]))]
        if not found or not self.exists:
            return None
        together = [stale for _, _, stale in sorted(found, key=itemgetter(0, 1))]
        reasons = "; ".join(dict.fromkeys(each.reason for each in together))
        lost = any(each.lost for each in together)
        return replace(together[-1], seq=together[0].seq, reason=reasons, lost=lost)

    @property
    def has_findings(self) -> bool:
        """Whether there are findings since the last copy."""
        return bool(self._findings or self.unknowns)

    def window(self, seq: int, last_use: Lsn | Snapshot) -> tuple[ReadingWindow, TableReading, bool]:
        """Return the window of readings around the use of a description.

        While rows have the description, the table is as described, since PostgreSQL sends another one after each
        change. ALTER TABLE waits for the transactions that wrote to the table, so the LSN of their commit counts.

        Args:
            seq: The seq of the description.
            last_use: The LSN of the last commit of rows with it; or the snapshot, if they were copied.

        Returns:
            The window, its last reading, and whether that is one after the rows.
        """
        before = self._before(last_use)
        after = bisect_right(self._reach, seq)
        is_closed = after < len(self.readings)
        end = 1 + max(after if is_closed else after - 1, before, 0)
        is_new = before < 0 and seq > self.readings[0].seq
        key = before, end, is_new
        if key not in self._windows:
            if len(self._windows) >= _WINDOWS:
                self._windows.clear()
            altered = self._altered[end - 1] if before == end - 2 else None
            self._windows[key] = ReadingWindow(self._between(*key), altered)
        return self._windows[key], self.readings[end - 1], is_closed

    def _between(self, before: int, end: int, is_new: bool) -> list[TableReading]:
        if before >= 0:
            return self.readings[before:end]
        # Before all readings: the columns that no transaction changed that the slot had yet to send existed already.
        first = self.readings[0]
        known = SharedColumns(column for column in first.columns if not column.recent and is_new)
        return [replace(first, columns=known), *self.readings[:end]]

    def _before(self, last_use: Lsn | Snapshot) -> int:
        """Return the index of the last reading that precedes the last use of a description; -1 for none."""
        if not isinstance(last_use, Snapshot):
            return self._lsns.last_until(last_use)
        for index in range(self._xmaxes.last_until(last_use.xmax), -1, -1):
            if _precedes(self.readings[index], last_use):
                return index
        return -1

    def _is_repaired(self, stale: StaleTable) -> bool:
        return any(self._repairs(copy, stale) for copy in reversed(self._copies))

    def _repairs(self, copy: TableCopy, stale: StaleTable) -> bool:
        """Return whether a copy contains the change of a finding.

        Snapshots of two histories of the server cannot be compared: the one with fewer transactions would seem to be
        contained in the other. So after an event BEGUN_ANEW no earlier copy repairs anything, and any later copy
        repairs everything that happened before.
        """
        copied, happened = (bisect_right(self._begun, seq) for seq in (copy.seq, stale.seq))
        return copied > happened or (copied == happened and covers(copy.snapshot, stale.snapshot))


class _Rising:
    """A sequence of mostly rising numbers, in which binary search finds the last one that is at most a limit."""

    def __init__(self) -> None:
        self._count = 0
        self._numbers: list[int] = []
        self._indexes: list[int] = []

    def append(self, number: int) -> None:
        """Append a number; earlier ones that are not lower can no longer be the answer."""
        while self._numbers and self._numbers[-1] >= number:
            self._numbers.pop()
            self._indexes.pop()
        self._numbers.append(number)
        self._indexes.append(self._count)
        self._count += 1

    def last_until(self, limit: int) -> int:
        """Return the index of the last appended number that is at most ``limit``; -1 for none."""
        found = bisect_right(self._numbers, limit)
        return self._indexes[found - 1] if found else -1


def _findings(
    before: TableReading | None, after: TableReading, altered: ColumnDifference
) -> Iterator[tuple[int, StaleTable]]:
    """Yield the findings between two readings of a table, given the columns in which they differ."""
    if before is not None:
        found = {
            _REWRITTEN: rewrite(before, after, *altered),
            _TYPES: type_change(before, after),
            _VALUES: late_values(before, after, *altered),
            _PARTITIONS: partition_change(before, after),
        }
        yield from ((kind, stale) for kind, stale in found.items() if stale is not None)


def _precedes(reading: TableReading, last_use: Lsn | Snapshot) -> bool:
    if isinstance(last_use, Snapshot):
        return covers(last_use, reading.snapshot)
    return reading.snapshot.lsn <= last_use


def _unknown(seq: int, reading: TableReading) -> StaleTable:
    reason = "was altered several times in a row, and its columns cannot be matched with certainty"
    return replace(stale_table(reading, (reading.namespace, reading.name), reason), seq=seq)
