"""Comparing what the slot sends again with the log: LSNs may agree although the histories differ.

A server that was reset to a snapshot of its volume, or restored without a new timeline, has an older slot. Once it has
written more WAL than it had lost, its LSNs pass the log's end, and only its transactions distinguish it from the server
that was captured. So if a slot is before the end of its log, the stream begins shortly before that end, and what the
log already has is compared before it is dropped.

**One transaction proves all before it.** WAL is sequential: a server that has the log's last transaction, with the same
xid, end LSN and commit time (microseconds), has everything before it too. So the stream begins at the commit record of
the log's last transaction (the witness), not at the slot's LSN; only the witness and what follows it is sent twice.

- The witness must come. A transaction with the same end LSN must have the same xid and commit time. A commit within the
  log's range that the log does not have belongs to another history.
- A slot past the witness proves it: the server had the witness when its LSN was confirmed. That holds for the slot
  that this capture confirmed, but not for one that was created or advanced by hand since, and PostgreSQL does not
  distinguish them. So the slot must be at an LSN that this log's capture has confirmed (``Note.told``); otherwise
  nothing shows which history the server has, and the capture refuses it. This does not apply before the LSN where the
  log begins, or begins again after a gap or a prune: the log does not record what was confirmed before.
- A transaction that ends before the LSN from which the server decodes is not streamed
  (``ReorderBufferCanStartStreaming`` compares the LSN being read with it). What ends there or later may be streamed a
  second time: a prepared transaction, streams without a row, and the witness itself, if its commit record distributes a
  new catalog snapshot to running transactions (``SnapBuildDistributeNewCatalogSnapshot``). These streams are dropped.
- The server sends the same transactions again only under the same publications and options. The comparison does not
  reach back before their last change, a gap of the log (``BEGUN_ANEW``), or the start of a pruned log.
- A streamed transaction without committed rows may be sent or not: either is consistent, and proves nothing. The
  witness is the last transaction that is sure to come. One that is sent only the second time is appended to the log
  after transactions that committed later; it has no row whose order would matter.
- Nor is anything proved by a transaction that was running while a publication was altered. pgoutput caches what it
  publishes of a table (``RelationSyncCache``) as the first decoded transaction saw it, and decodes by it transactions
  that began earlier and ended later. A stream that begins in between decodes another transaction first.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._facts.catalog_readings import PublicationReading, publication_readings
from pgoutput_construct.changelog._index.indexes import index_of
from pgoutput_construct.changelog._index.listing import Listing, list_log
from pgoutput_construct.changelog._notes.confirmation_note import Note
from pgoutput_construct.changelog._segment.events import BEGUN_ANEW, CONNECTED, events_of
from pgoutput_construct.changelog._segment.footer import Position, Segment
from pgoutput_construct.changelog._segment.prune_note import read_pruned
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.postgres._capture.gaps import REMEDY, LogGapError
from pgoutput_construct.stream.bounds import effect_of, said
from pgoutput_construct.stream.transaction_reader import ABORTED, COMMITTED
from pgoutput_construct.wire import Lsn, Timestamp
from pgoutput_construct.wire.messages import PgoutputMessage

__all__ = ["Overlap", "find_overlap", "sends_same_transactions"]

_LOG = logging.getLogger("pgoutput_construct")

_XID: Final = 0xFFFFFFFF
"""Messages have the lower 32 bits of a transaction's id, snapshots all 64."""
_INDEXES: Final = 16
"""How many indexes of segments are at hand: many transactions that prove nothing may be in the same ones."""
_COMMITS: Final = ("commit", "commit_streamed", "commit_prepared")


class _LoggedTransaction(NamedTuple):
    """A transaction as the log has it."""

    xid: int
    time: int | None = None
    """Its commit time in microseconds since 2000-01-01; None while it is prepared."""


@dataclass
class Overlap:
    """The last transactions of a log, which the server is about to send again."""

    slot_lsn: Lsn
    """The confirmed LSN of the slot, which is before the end of the log."""
    start_lsn: Lsn
    """The LSN from which the stream is requested."""
    options: LogOptions
    """The options of that part of the log: under others the server sends other transactions."""
    log: str = ""
    """The address of the log, for errors."""
    known: Mapping[int, _LoggedTransaction] = field(default_factory=dict)
    """The transactions of the log in this range, by end LSN."""
    witness: int | None = None
    """The end LSN of the transaction that must come; None if none must, or once it has come."""
    streams: frozenset[int] = frozenset()
    """The xids of the transactions that may be streamed again."""
    listing: Listing | None = None
    """The segments of the log."""

    def compare(self, end: PgoutputMessage, lsn: int, xid: int) -> None:
        """Compare a transaction that was sent with the log.

        Args:
            end: The message that ends or prepares the transaction.
            lsn: Its end LSN.
            xid: The top-level xid of the transaction.

        Raises:
            LogGapError: The server's history is not the log's.
        """
        time = said(end, "time")
        if lsn <= self.start_lsn:  # before the requested LSN
            return
        self.advance(Lsn(lsn - 1))
        known = self.known.get(lsn)
        if known is None:
            if effect_of(end) in _COMMITS and not self._may_differ(lsn, xid):
                raise self._gap(f"the server sends transaction {xid}, which ended at {Lsn(lsn)}, and the log lacks it")
        elif known.xid != xid or known.time not in (None, int(time)):
            sent = _describe(_LoggedTransaction(xid, int(time)))
            raise self._gap(f"at {Lsn(lsn)} the log has transaction {_describe(known)}, the server {sent}")
        elif self.witness == lsn:
            self.witness = None

    def advance(self, lsn: Lsn) -> None:
        """Note that the server has sent everything that ends up to ``lsn``.

        Raises LogGapError if the witness should have come and has not.
        """
        if self.witness is not None and self.witness <= lsn:
            known = self.known[self.witness]
            if self._may_differ(self.witness, known.xid):
                self.witness = None
                return
            raise self._gap(f"the log has transaction {_describe(known)} at {Lsn(self.witness)}, the server does not")

    def _may_differ(self, end: int, xid: int) -> bool:
        """Return whether a publication was altered while a transaction was running, or shortly after it ended.

        ``end`` is the transaction's end LSN, ``xid`` its top-level xid.
        """
        for reading in _publication_changes(self.listing or ()):
            running = {each & _XID for each in reading.snapshot.xip}
            if self.slot_lsn < reading.snapshot.lsn and (end <= reading.snapshot.lsn or xid in running):
                text = "transaction %d is not compared with the log: publication %r was altered while it was running"
                _LOG.warning(text, xid, reading.name)
                return True
        return False

    def _gap(self, difference: str) -> LogGapError:
        return LogGapError(
            f"the server's history is not that of the log in {self.log}: {difference}; the server was reset to an "
            f"earlier state, such as a snapshot of its volume, and has written other changes since; {REMEDY}",
            void_after=self.slot_lsn,
        )


def find_overlap(store: LogStore, slot_lsn: Lsn, position: Position, note: Note) -> Overlap | None:
    """Return what the slot sends again of a log; None if it is not before the log's end.

    Args:
        store: The store of the log.
        slot_lsn: The confirmed LSN of the slot.
        position: How far the log is complete.
        note: The LSNs that this log's capture has confirmed.

    Raises:
        LogGapError: No transaction can be compared, and the slot is at an LSN that the capture never confirmed.
        ChangeLogError: A segment is damaged.
    """
    if slot_lsn >= position.complete_lsn and note.may_have_told(slot_lsn):
        return None
    listing = list_log(store)
    if slot_lsn >= position.complete_lsn or not listing:
        _check_confirmed_by_capture(store, listing, slot_lsn, note)
        return None
    pruned_lsn = read_pruned(store).lsn if listing[0].first_seq else Lsn(0)
    scan = _BackwardScan(listing, slot_lsn, pruned_lsn)
    known, streams, ended = dict[int, _LoggedTransaction](), set[int](), list[dict[str, Any]]()
    for row in scan.ended():  # the last one first
        if not scan.is_resent(row):
            known[row["end_lsn"]] = _LoggedTransaction(row["xid"], row["commit_time"])
            streams.add(row["xid"])
            continue
        ended.append(row)
        if len(ended) > 1 or (row["outcome"] == COMMITTED and row["commit_lsn"] >= scan.start_lsn):
            break
    prepared = _prepared_xids(listing[-1], position)
    start, witness = _witness(scan, ended, prepared, position)
    for row in ended:
        if row["end_lsn"] > start:
            known[row["end_lsn"]] = _LoggedTransaction(row["xid"], row["commit_time"])
            streams.add(row["xid"])
    for end, xid in prepared.items():
        if end > start:
            known[end] = _LoggedTransaction(xid)
            streams.add(xid)
    if witness is None and slot_lsn >= scan.log_start:  # the log does not record what was confirmed before it began
        _check_confirmed_by_capture(store, listing, slot_lsn, note)
    return Overlap(slot_lsn, Lsn(start), listing[-1].options, str(store), known, witness, frozenset(streams), listing)


def _check_confirmed_by_capture(store: LogStore, listing: Listing, slot_lsn: Lsn, note: Note) -> None:
    if note.may_have_told(slot_lsn):
        return
    if all(slot_lsn != segment.position.complete_lsn for segment in listing):
        raise LogGapError(
            f"the slot is at {slot_lsn}, an LSN that the capture of the log in {store} never confirmed: the slot was "
            "re-created, or moved by another reader, and the log has no later transaction with which the server's "
            f"history could be compared; {REMEDY}",
            void_after=slot_lsn,
        )


def sends_same_transactions(one: LogOptions, other: LogOptions) -> bool:
    """Return whether a server sends the same transactions under two sets of options."""
    return sorted(one.publications) == sorted(other.publications) and (
        one.replication_options() == other.replication_options()
    )


def _witness(
    scan: "_BackwardScan",
    ended: list[dict[str, Any]],
    prepared: Mapping[int, int],
    position: Position,
) -> tuple[int, int | None]:
    """Return the LSN from which to request the stream, and the end LSN of the transaction that must come then."""
    prepares = [end for end in (*prepared, *position.finished) if end <= position.complete_lsn]
    ends = {*prepares, *(row["end_lsn"] for row in ended)}
    last = max(ends, default=0)
    if ended and ended[0]["outcome"] == COMMITTED and ended[0]["end_lsn"] == last:
        return ended[0]["commit_lsn"], last
    # The log does not say where the record of a PREPARE or ROLLBACK PREPARED begins, only that it is after all others.
    is_known = last in prepared or (bool(ended) and ended[0]["end_lsn"] == last)
    start = max(scan.start_lsn, *(ends - {last} if is_known else ends), 0)
    return start, last if last > start else None


class _BackwardScan:
    """Iterates over the transactions of a log backwards, as far as they can be compared."""

    def __init__(self, listing: Listing, slot_lsn: Lsn, pruned_lsn: Lsn) -> None:
        self._listing = listing
        self._indexes = dict[int, SegmentIndex]()
        self.start_lsn = max(slot_lsn, pruned_lsn)
        """The LSN before which nothing can be compared."""
        self.log_start = pruned_lsn
        """The LSN at which the log begins, as far as that is known."""

    def ended(self) -> Iterator[dict[str, Any]]:
        """Yield the transactions that ended, other than streamed ones that were rolled back; the last one first.

        A crash may set a slot back to before the LSN at which its log begins, since slots are saved at checkpoints
        only: when the iteration ends, ``start_lsn`` is at least that LSN.
        """
        last, began, begun = self._listing[-1], Lsn(0), -1
        for segment in reversed(self._listing):
            if not sends_same_transactions(segment.options, last.options):
                self.start_lsn = max(self.start_lsn, segment.position.complete_lsn)
                return
            if segment.position.complete_lsn <= self.start_lsn:
                return
            index = self._index_of(segment)
            begun = max((event.seq for event in events_of(index, BEGUN_ANEW)), default=-1)
            began = next((event.lsn for event in events_of(index, CONNECTED) if event.seq > begun), began)
            transactions = index.transactions
            for number in range(len(transactions) - 1, -1, -1):
                row = transactions.slice(number, 1).to_pylist()[0]
                if row["seq"] < begun:
                    break
                if row["outcome"] == ABORTED:
                    continue
                if row["end_lsn"] > self.start_lsn:
                    yield row
                elif self.is_resent(row):  # all before it ended earlier
                    return
            if begun >= 0:
                break
        is_pruned = bool(self._listing[0].first_seq) and begun < 0
        self.log_start = max(self.log_start, began)
        self.start_lsn = max(self.start_lsn, began or (Lsn(0) if is_pruned else last.position.complete_lsn))

    def is_resent(self, row: Mapping[str, Any]) -> bool:
        """Return whether the server is sure to send a transaction again.

        Of a streamed one that is known if it has a row that was not rolled back with a subtransaction.
        """
        if not row["streamed"] or row["gid"] is not None:
            return True
        if all(span["last"] - span["first"] == 1 for span in row["spans"]):  # its streams have no message
            return False
        spans, aborted = {span["first"] for span in row["spans"]}, set(row["aborted"])
        segments = self._listing[self._listing.find(min(spans)) : self._listing.find(row["seq"]) + 1]
        return any(_has_rows(self._index_of(segment), spans, aborted) for segment in reversed(segments))

    def _index_of(self, segment: Segment) -> SegmentIndex:
        """Return the index of a segment; those of the last ones are at hand."""
        if segment.first_seq not in self._indexes:
            while len(self._indexes) >= _INDEXES:
                del self._indexes[next(iter(self._indexes))]
            self._indexes[segment.first_seq] = index_of(segment)
        return self._indexes[segment.first_seq]


def _prepared_xids(last: Segment, position: Position) -> dict[int, int]:
    """Return the end LSNs of the transactions that are prepared at the end of the log, each with its xid."""
    opened = index_of(last).open.to_pylist()
    xids = {row["gid"]: row["xid"] for row in opened if row["gid"] is not None}
    return {end: xids[gid] for gid, end in position.prepared.items() if gid in xids}


def _has_rows(index: SegmentIndex, spans: set[int], aborted: set[int]) -> bool:
    runs = index.entries("rows")
    runs = runs.filter(pc.is_in(runs["span"], pa.array(sorted(spans), pa.int64())))
    return bool(set(runs["xid"].to_pylist()) - aborted)


def _publication_changes(listing: Iterable[Segment]) -> Iterator[PublicationReading]:
    """Yield the readings of publications that differ from the one before in more than the tables of FOR ALL TABLES."""
    said = dict[str, tuple[object, ...]]()
    for segment in listing:
        for each in publication_readings(index_of(segment)):
            tables = each.excluded if each.all_tables else each.tables
            options = (each.all_tables, each.operations, each.via_root, each.generated, each.written)
            now = (each.captured, *options, tables)
            if said.get(each.name, now) != now:
                yield each
            said[each.name] = now


def _describe(known: _LoggedTransaction) -> str:
    return str(known.xid) if known.time is None else f"{known.xid} of {Timestamp(known.time)}"
