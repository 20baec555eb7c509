"""What the log has and its slot sends again, compared: positions may agree where histories do not.

A server that was put back to a snapshot of its volume, or restored without a new timeline, has an older slot. Once it
has written more than it had lost its positions pass the log's end, and only its transactions tell it from the server
that was captured. So where a slot is before the end of its log, the stream begins a little before that end, and what
the log has already is compared before it is dropped.

**One transaction proves all before it.** WAL is written from one end to the other. A server that has the log's last
transaction, with its xid, the end of its record and its time of commit in microseconds, has all that came before it,
too. So the stream begins at the record of the last transaction in the log (the witness) and not at the slot: what is
sent twice is that one and what followed it, whatever the slot has.

- The witness must come. What comes with the same end must have the same xid and time. A commit that the log, complete
  up to its end, does not have belongs to another history.
- A slot that is past the witness has proved it: the server had it when it was confirmed. That holds for the slot that
  was confirmed, not for one that was created, or advanced, by hand since, which PostgreSQL does not tell from it. So
  the slot must be at a position that this log's capture has told it (``Note.told``). Else nothing shows which history
  the server has, and it is refused. Not so before the position at which the log begins, or begins again after a gap or
  a prune: what a slot was told by then the log need not know.
- A transaction that ends before the position from which a server sends is not streamed (ReorderBufferCanStartStreaming
  compares what is being read with that position). What ends there or later may be streamed a second time: a prepared
  transaction, streams without a row, and the witness, too, at its own commit record, when that gives a new snapshot of
  the catalog to transactions that run (SnapBuildDistributeNewCatalogSnapshot). These streams are dropped.
- Only what was captured under one set of publications and options can be expected to come again. The comparison does
  not reach before the last change of these, nor before a gap of the log (BEGUN_ANEW) or what is left after a prune.
- A streamed transaction of which no row was committed may be sent or not: it proves nothing, and is no contradiction.
- So may a transaction that was running while a publication was altered. pgoutput keeps what is published of a table
  (RelationSyncCache) as the transaction saw it that was decoded first, and decodes by it what had begun earlier and
  ended later. A stream that begins in between finds another one first.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._facts.catalog_readings import PublicationReading, publication_readings
from pgoutput_construct.changelog._facts.events import BEGUN_ANEW, CONNECTED, events_of
from pgoutput_construct.changelog._index.indexes import index_of
from pgoutput_construct.changelog._index.listing import Listing, list_log, read_pruned
from pgoutput_construct.changelog._index.segment_index import SegmentIndex
from pgoutput_construct.changelog._notes.confirmation_note import Note
from pgoutput_construct.changelog._segment.footer import Position, Segment
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.postgres._capture.gaps import REMEDY, LogGapError
from pgoutput_construct.stream.bounds import effect_of, said
from pgoutput_construct.stream.transaction_reader import ABORTED, COMMITTED
from pgoutput_construct.wire import Lsn, Timestamp
from pgoutput_construct.wire.messages import PgoutputMessage

__all__ = ["Overlap", "find_overlap", "is_sent_alike"]

_LOG = logging.getLogger("pgoutput_construct")

_XID: Final = 0xFFFFFFFF
"""Streams have the lower 32 bits of a transaction's id, snapshots all 64."""
_COMMITS: Final = ("commit", "commit_streamed", "commit_prepared")


class _Known(NamedTuple):
    """What the log has of a transaction."""

    xid: int
    time: int | None = None
    """When it ended; None for one that is prepared."""


@dataclass
class Overlap:
    """The last of what a log has, which the server is about to send again."""

    slot_lsn: Lsn
    """Where the slot is: before the end of the log."""
    start_lsn: Lsn
    """From where the server is to send."""
    options: LogOptions
    """Under which options it was captured: under others the server sends other transactions."""
    log: str = ""
    """Its address, for errors."""
    known: Mapping[int, _Known] = field(default_factory=dict)
    """The transactions of the log in this range, by the ends of their records."""
    witness: int | None = None
    """The end of the one that must come; None where none is sure to, or it has come."""
    streams: frozenset[int] = frozenset()
    """The xids of those that may be streamed again."""
    listing: Listing | None = None
    """The segments of the log."""

    def compare(self, end: PgoutputMessage, lsn: int, xid: int) -> None:
        """Compare what the log has with what was sent; raise LogGapError where they are of two histories.

        ``end`` is the message that ends or prepares a transaction, ``lsn`` the end of its record, and ``xid`` the
        transaction.
        """
        time = said(end, "time")
        if lsn <= self.start_lsn:  # from before what was asked for
            return
        self.pass_over(Lsn(lsn - 1))
        known = self.known.get(lsn)
        if known is None:
            if effect_of(end) in _COMMITS and not self._may_differ(lsn, xid):
                raise self._gap(f"the server sends transaction {xid}, which ended at {Lsn(lsn)}, and the log lacks it")
        elif known.xid != xid or known.time not in (None, int(time)):
            sent = _described(_Known(xid, int(time)))
            raise self._gap(f"at {Lsn(lsn)} the log has transaction {_described(known)}, the server {sent}")
        elif self.witness == lsn:
            self.witness = None

    def pass_over(self, lsn: Lsn) -> None:
        """Note that all that ended up to a position was sent; raise LogGapError where the witness was not."""
        if self.witness is not None and self.witness <= lsn:
            known = self.known[self.witness]
            if self._may_differ(self.witness, known.xid):
                self.witness = None
                return
            raise self._gap(f"the log has transaction {_described(known)} at {Lsn(self.witness)}, the server does not")

    def _may_differ(self, end: int, xid: int) -> bool:
        """Return whether a publication was altered while a transaction ran that ended at ``end``, or soon after."""
        for reading in _alterations(self.listing or ()):
            running = {each & _XID for each in reading.snapshot.xip}
            if self.slot_lsn < reading.snapshot.lsn and (end <= reading.snapshot.lsn or xid in running):
                text = "transaction %d is not compared with the log: publication %r was altered while it ran"
                _LOG.warning(text, xid, reading.name)
                return True
        return False

    def _gap(self, difference: str) -> LogGapError:
        return LogGapError(
            f"the server's history is not that of the log in {self.log}: {difference}; the server was put back to an "
            f"earlier state, as by a snapshot of its volume, and has written other changes since; {REMEDY}",
            void_after=self.slot_lsn,
        )


def find_overlap(store: LogStore, slot_lsn: Lsn, position: Position, note: Note) -> Overlap | None:
    """Return what a slot sends again of a log that is complete up to ``position``, None where it is not before that.

    ``note`` is what the slot's reader has confirmed. Raises LogGapError where nothing can be compared and the slot is
    at a position that it never did, ChangeLogError for a damaged segment.
    """
    if slot_lsn >= position.complete_lsn and note.may_have_told(slot_lsn):
        return None
    listing = list_log(store)
    if slot_lsn >= position.complete_lsn or not listing:
        _check_told(store, listing, slot_lsn, note)
        return None
    pruned_lsn = read_pruned(store).lsn if listing[0].first_seq else Lsn(0)
    walk = _Walk(listing, slot_lsn, pruned_lsn)
    known, streams, ended = dict[int, _Known](), set[int](), list[dict[str, Any]]()
    for row in walk.ended():  # from the last one on
        if _is_empty(row):
            known[row["end_lsn"]] = _Known(row["xid"], row["commit_time"])
            streams.add(row["xid"])
            continue
        ended.append(row)
        if len(ended) > 1 or (row["outcome"] == COMMITTED and row["commit_lsn"] >= walk.start_lsn):
            break
    prepared = _prepared(listing[-1], position)
    start, witness = _witness(walk, listing, ended, prepared, position)
    for row in ended:
        if row["end_lsn"] > start:
            known[row["end_lsn"]] = _Known(row["xid"], row["commit_time"])
            streams.add(row["xid"])
    for end, xid in prepared.items():
        if end > start:
            known[end] = _Known(xid)
            streams.add(xid)
    if witness is None and slot_lsn >= walk.begins:  # else the log need not know what the slot was told
        _check_told(store, listing, slot_lsn, note)
    return Overlap(slot_lsn, Lsn(start), listing[-1].options, str(store), known, witness, frozenset(streams), listing)


def _check_told(store: LogStore, listing: Listing, slot_lsn: Lsn, note: Note) -> None:
    if note.may_have_told(slot_lsn):
        return
    if all(slot_lsn != segment.position.complete_lsn for segment in listing):
        raise LogGapError(
            f"the slot is at {slot_lsn}, up to which the capture of the log in {store} has never confirmed: the slot "
            "was re-created, or moved by another reader, and no transaction of the log comes after that with which the "
            f"server's history could be compared; {REMEDY}",
            void_after=slot_lsn,
        )


def is_sent_alike(one: LogOptions, other: LogOptions) -> bool:
    """Return whether a server sends the same transactions under two sets of options."""
    return sorted(one.publications) == sorted(other.publications) and (
        one.replication_options() == other.replication_options()
    )


def _witness(
    walk: "_Walk", listing: Listing, ended: list[dict[str, Any]], prepared: Mapping[int, int], position: Position
) -> tuple[int, int | None]:
    """Return from where the server is to send, and the end of what must come then."""
    prepares = [end for end in (*prepared, *position.finished) if end <= position.complete_lsn]
    ends = {*prepares, *(row["end_lsn"] for row in ended)}
    last = max(ends, default=0)
    if ended and ended[0]["outcome"] == COMMITTED and ended[0]["end_lsn"] == last:
        return ended[0]["commit_lsn"], last if _comes_again(ended[0], listing) else None
    # Where the record of a PREPARE or ROLLBACK PREPARED begins is not known: it is after all others of the log.
    is_known = last in prepared or (bool(ended) and ended[0]["end_lsn"] == last)
    start = max(walk.start_lsn, *(ends - {last} if is_known else ends), 0)
    return start, last if last > start else None


class _Walk:
    """Goes through the transactions of a log backwards, as far as they can be compared."""

    def __init__(self, listing: Listing, slot_lsn: Lsn, pruned_lsn: Lsn) -> None:
        self._listing = listing
        self.start_lsn = max(slot_lsn, pruned_lsn)
        """The position before which nothing can be compared."""
        self.begins = pruned_lsn
        """Where the log begins, as far as that is known."""

    def ended(self) -> Iterator[dict[str, Any]]:
        """Yield the transactions that ended, but for those that were streamed and rolled back; the last one first.

        A crash may put a slot before the position from which its log has all, as what was confirmed is saved at
        checkpoints only: ``start_lsn`` is not before that position at the end.
        """
        last, began, begun = self._listing[-1], Lsn(0), -1
        for segment in reversed(self._listing):
            if not is_sent_alike(segment.options, last.options):
                self.start_lsn = max(self.start_lsn, segment.position.complete_lsn)
                return
            if segment.position.complete_lsn <= self.start_lsn:
                return
            index = index_of(segment)
            begun = max((event.seq for event in events_of(index, BEGUN_ANEW)), default=-1)
            began = next((event.lsn for event in events_of(index, CONNECTED) if event.seq > begun), began)
            transactions = index.transactions
            for number in range(len(transactions) - 1, -1, -1):
                row = transactions.slice(number, 1).to_pylist()[0]
                if row["seq"] < begun:
                    break
                if row["end_lsn"] is None or row["end_lsn"] <= self.start_lsn:
                    return
                if row["outcome"] != ABORTED:
                    yield row
            if begun >= 0:
                break
        is_pruned = bool(self._listing[0].first_seq) and begun < 0
        self.begins = max(self.begins, began)
        self.start_lsn = max(self.start_lsn, began or (Lsn(0) if is_pruned else last.position.complete_lsn))


def _prepared(last: Segment, position: Position) -> dict[int, int]:
    """Return the ends of the prepares of what is prepared at the end of the log, each with its xid."""
    opened = index_of(last).open.to_pylist()
    xids = {row["gid"]: row["xid"] for row in opened if row["gid"] is not None}
    return {end: xids[gid] for gid, end in position.prepared.items() if gid in xids}


def _is_empty(row: Mapping[str, Any]) -> bool:
    """Return whether a transaction is one of streams alone in which nothing is."""
    is_streamed = row["streamed"] and row["gid"] is None
    return is_streamed and all(span["last"] - span["first"] == 1 for span in row["spans"])


def _comes_again(row: Mapping[str, Any], listing: Listing) -> bool:
    """Return whether the server sends a committed transaction whenever it is asked to.

    One that was streamed it sends only if it has a row that was not rolled back with a subtransaction.
    """
    if not row["streamed"] or row["gid"] is not None:
        return True
    spans, aborted = {span["first"] for span in row["spans"]}, set(row["aborted"])
    segments = listing[listing.place(min(spans)) : listing.place(row["seq"]) + 1]
    return any(_has_rows(index_of(segment), spans, aborted) for segment in reversed(segments))


def _has_rows(index: SegmentIndex, spans: set[int], aborted: set[int]) -> bool:
    runs = index.entries("rows")
    runs = runs.filter(pc.is_in(runs["span"], pa.array(sorted(spans), pa.int64())))
    return bool(set(runs["xid"].to_pylist()) - aborted)


def _alterations(listing: Iterable[Segment]) -> Iterator[PublicationReading]:
    """Yield the readings in a log that differ from those before in more than tables of FOR ALL TABLES."""
    said = dict[str, tuple[object, ...]]()
    for segment in listing:
        for each in publication_readings(index_of(segment)):
            tables = each.excluded if each.all_tables else each.tables
            now = (each.captured, each.all_tables, each.operations, each.via_root, each.generated, tables)
            if said.get(each.name, now) != now:
                yield each
            said[each.name] = now


def _described(known: _Known) -> str:
    return str(known.xid) if known.time is None else f"{known.xid} of {Timestamp(known.time)}"
