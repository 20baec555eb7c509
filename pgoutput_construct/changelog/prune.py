"""Prune: removes the oldest segments that nobody needs, while a capture and readers run.

What a prune may remove. Whole segments, from the beginning of the log up to one of them, never the newest. A segment
stays, and with it every later one, if

- it contains an end after the requested LSN or time (``timeline.last_ends``): the request says how much history to
  retain;
- a transaction that ended later, or has not ended, has changes in it (``timeline.lasting_transactions``). A streamed or
  prepared transaction may begin many segments before it commits, and removing its first half would falsify it. So the
  cut is at a segment boundary that no transaction crosses;
- a registered reader has not read it (``registry``). A reader registers, or reports, with the first seq that it needs;
  one that promised to report within some time and did not has expired, and is ignored, which the result says;
- the state of a table is built from it (``needs_of``, unless ``states`` is False). The state of a table is its latest
  complete copy and the changes that count in addition to it. A copy contains the transactions that its snapshot sees
  (``_facts.visibility``), so what is needed is: the rows of the copy, from its first chunk on; and every transaction
  that the snapshot does not see. Those may begin before the first chunk, since they were running when the snapshot was
  taken: hence ``timeline.first_uncontained``, the first seq of the earliest commit that any of the latest copies does
  not contain. A table without a copy that the log has from its first row on needs everything since that row. A table
  that the log does not have completely needs nothing: its state cannot be built anyway. But its first copy may be in
  progress, and would begin again without what was read of it.

Why the rest stays readable. A row is decoded with the Relation (and Types) in force, which may have been sent in a
removed segment. The index of each segment therefore contains the descriptions that its rows inherit from earlier
segments (``inherited``, ``in_force``), with their payloads. So no segment depends on an earlier one to be decoded.
Events do not depend on earlier ones either: the capture writes the whole of what it read from the catalog. But what a
publication did not publish for a time shows only in the difference of two readings: a table that is added again is not
known to lack changes without the reading that had it before. So ``pruned.json`` has the readings of publications that
were in force at the cut, and an index of the log inherits them (``SegmentIndex.inherited_events``).

How a concurrent reader and a crash are handled. A new reader writes its file, then checks that what it needs is still
promised (``Pruned.promised``). A prune writes its plan to ``pruned.json`` first, then looks for readers a
last time, and withdraws if one needs more. Whichever writes first, the other one sees it. Then ``pruned.json`` records
the new first seq, and only then files are removed, the oldest first. From then on the removed part does not belong
to the log, whether or not its files still exist: after a crash, readers ignore them and the next prune removes them. A
plan that was not carried out removes nothing and is reset by the next prune.
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from pgoutput_construct.changelog._facts.completeness import begun_without_copy, copies_in_progress, present_copies
from pgoutput_construct.changelog._facts.copies import TableCopy, latest_copies
from pgoutput_construct.changelog._facts.partial_copies import PartialCopy, attempts_of
from pgoutput_construct.changelog._facts.visibility import Visibility
from pgoutput_construct.changelog._index.indexes import indexes_of
from pgoutput_construct.changelog._index.listing import Listing
from pgoutput_construct.changelog._index.log_index import LogIndex
from pgoutput_construct.changelog._index.manifest import manifest_names
from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.changelog._segment.events import PUBLICATION_FACTS, LogEvent, events_of
from pgoutput_construct.changelog._segment.footer import chosen
from pgoutput_construct.changelog._segment.prune_note import Pruned, read_pruned, write_pruned
from pgoutput_construct.changelog._segment.segment_index import InheritedEvent, SegmentIndex
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.store import Address, LogLock, LogStore
from pgoutput_construct.changelog.compact import lock_for_maintenance
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.changelog.registry import RegisteredReader, readers
from pgoutput_construct.changelog.timeline import first_uncontained, last_ends, lasting_transactions
from pgoutput_construct.columnar.descriptions import copy_scope
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.wire import Lsn, Timestamp

__all__ = ["Prune", "needs_of", "prune"]


@dataclass(frozen=True)
class Prune:
    """What a prune removes, or would remove, and what retains the rest."""

    first_seq: int = 0
    """The first seq that is retained."""
    lsn: Lsn = field(default_factory=Lsn)
    """All transactions that ended before this LSN are removed."""
    segments: int = 0
    """The number of segments to remove."""
    rows: int = 0
    """Rows in them."""
    size: int = 0
    """The sum of their sizes, and of files that earlier compactions and prunes left, in bytes."""
    kept: int = 0
    """The number of segments that stay."""
    holds: tuple[str, ...] = ()
    """What retains the segments that stay, the decisive reason last; then the readers that expired and are ignored."""
    removed: int = 0
    """The number of files removed so far; 0 in a dry run."""


OnProgress = Callable[[Prune], None]


def prune(
    address: Address | LogStore,
    before: Lsn | Timestamp | datetime,
    *,
    states: bool = True,
    dry_run: bool = False,
    on_progress: OnProgress | None = None,
) -> Prune:
    """Remove the oldest segments that contain only what ended before an LSN or a time, and that nobody needs.

    A segment stays, with all after it, if a transaction that ended later, is open, or is prepared has changes in it, if
    a registered reader has not read it, or if the state of a table is built from it: that needs the latest copy of the
    table and the changes since. The newest segment always stays. The rest is decoded without the removed segments.

    Args:
        address: The address of the log: a path, a URL, or a store.
        before: An LSN, or a commit time.
        states: Retain what the state of tables is built from. If False, only a reader that has the older changes can
            build it: a capture does not copy the tables again for this reason, ``postgres.snapshot`` does.
        dry_run: Return what would be removed, and remove nothing.
        on_progress: Called after each file that is removed.

    Returns:
        What was removed, and what retains the rest.

    Raises:
        ChangeLogError: There is no log, it is damaged, another compaction or prune is running, or a reader that needs
            what was about to be removed was registered meanwhile.
    """
    store = open_store(address)
    if isinstance(before, datetime):
        before = Timestamp.from_datetime(before)
    with lock_for_maintenance(store) as lock:
        listing, known = ChangeLog(store).segments, readers(store)
        done = _planned(listing, known, before, time.time(), states)
        done = replace(done, size=sum(_files(store, done.first_seq).values()))
        return done if dry_run else _remove(store, lock, listing, done, on_progress or (lambda done: None))


def _planned(
    listing: Listing, known: tuple[RegisteredReader, ...], before: Lsn | Timestamp, now: float, states: bool
) -> Prune:
    active = [reader for reader in known if not reader.has_expired(now)]
    index = indexes_of(listing)
    cut = _find_cut(index, before, active, list(needs_of(index)) if states else ())
    removed, retained = listing[: cut.segments], listing[cut.segments :]
    first_seq = retained[0].first_seq
    expired = [_expired(each) for each in known if each not in active and each.next_seq < first_seq]
    lsn = removed[-1].position.complete_lsn if removed else Lsn(0)
    rows = first_seq - listing[0].first_seq
    return Prune(first_seq, lsn, len(removed), rows, kept=len(retained), holds=(*cut.holds, *expired))


def _expired(reader: RegisteredReader) -> str:
    since = datetime.fromtimestamp(reader.time, UTC).isoformat(timespec="seconds")
    return (
        f"reader {reader.name!r} needs seq {reader.next_seq}, but last reported at {since}: it was registered to "
        f"expire after {reader.seconds:.0f} seconds, and is ignored"
    )


def _files(store: LogStore, first_seq: int) -> dict[str, int]:
    """Return the segments' files that contain nothing from a seq on, oldest first, with their sizes in bytes."""
    files = store.files()
    counted, covered = chosen(files)
    ends = dict(zip(counted, [each.first_seq for each in counted[1:]], strict=False))
    old = [each for each in counted if ends.get(each, first_seq + 1) <= first_seq]
    old += [each for each in covered if each.last_seq < first_seq]
    return {each.name: files[each.name] for each in sorted(old)}


def _remove(
    store: LogStore, lock: LogLock, listing: Listing, done: Prune, on_progress: Callable[[Prune], None]
) -> Prune:
    if done.segments:
        _note(store, done, listing)
    elif (note := read_pruned(store)).planned:
        write_pruned(store, replace(note, planned=0))
    for name in _files(store, done.first_seq):
        lock.check()
        store.delete(name)
        done = replace(done, removed=done.removed + 1)
        on_progress(done)
    for manifest in manifest_names(store.files()):
        if manifest.last_seq < done.first_seq:
            store.delete(manifest.name)
    return done


def _note(store: LogStore, done: Prune, listing: Listing) -> None:
    """Record the first retained seq, unless a reader has registered that needs more.

    First the plan is written, then readers are looked for: a reader that registers now sees the plan, or is seen.
    """
    earlier = replace(read_pruned(store), planned=0)
    index = indexes_of(listing[: done.segments])
    copied = sorted({*earlier.copied, *latest_copies(index)})
    last = int(last_ends(index, "commit_time").max(initial=int(earlier.time)))
    write_pruned(store, replace(earlier, planned=done.first_seq))
    for reader in readers(store):
        if reader.next_seq < done.first_seq and not reader.has_expired(time.time()):
            write_pruned(store, earlier)
            raise ChangeLogError(
                f"{store}: reader {reader.name!r}, which needs seq {reader.next_seq}, was registered meanwhile: "
                "try again"
            )
    facts = tuple(_publications_in_force(index))
    write_pruned(store, Pruned(done.first_seq, done.lsn, Timestamp(last), copied=tuple(copied), publications=facts))


def _publications_in_force(index: SegmentIndex) -> Iterator[InheritedEvent]:
    """Yield the latest facts of each captured publication, as of the last reading of any.

    Each reading is of all publications, and has events for those that changed. So the facts of the others were read
    then, too; as such they must be taken together (``PublicationChanges``).
    """
    latest: dict[str, LogEvent] = {}
    for event in events_of(index, PUBLICATION_FACTS):
        latest.pop(event.details["publication"], None)
        latest[event.details["publication"]] = event
    for event in latest.values():
        if event.details.get("captured", True):
            last = [*latest.values()][-1]
            now = replace(event, lsn=last.lsn, details={**event.details, "snapshot": last.details["snapshot"]})
            yield InheritedEvent(now.seq, now.name, int(now.lsn), int(now.time), str(now.payload(), "ascii"))


_OPEN = 2**63 - 1
"""The last seq of a transaction without an outcome."""


class _Cut(NamedTuple):
    """The segments that can be removed."""

    segments: int
    """How many of the oldest segments nobody needs."""
    holds: tuple[str, ...]
    """What retains the others, the decisive reason last."""


def _find_cut(
    index: LogIndex, before: Lsn | Timestamp, readers: Sequence[RegisteredReader], needs: "Sequence[_StateNeed]" = ()
) -> _Cut:
    """Find the segments that can be removed, and what retains the first of the others."""
    starts = index.table["first_seq"].to_pylist()
    latest = last_ends(index, "commit_time" if isinstance(before, Timestamp) else "end_lsn")
    late = np.flatnonzero(latest > int(before))
    old = min(int(late[0]) if len(late) else len(index), len(index) - 1)
    cut, holds = old, list[str]()
    for reader in readers:
        if reader.next_seq < starts[cut]:
            holds.append(f"reader {reader.name!r} has not read seq {reader.next_seq} and later")
            cut = _segment_at(starts, reader.next_seq)
    needed_first = min(needs, default=None)
    if needed_first is not None and needed_first.seq < starts[cut]:
        more = sum(need.seq < starts[cut] for need in needs) - 1
        others = f"; the same holds for {more:,} more tables" if more else ""
        holds.append(f"{needed_first.reason}: everything from seq {needed_first.seq} on{others}")
        cut = _segment_at(starts, needed_first.seq)
    first, last, names = lasting_transactions(index)
    clean = int(np.flatnonzero(_crossed(starts, first, last)[: cut + 1] == 0).max(initial=0))
    if (needed := _needed(first, last, starts[cut])) is not None:
        end = "is open" if last[needed] == _OPEN else f"ended at seq {last[needed]}"
        holds.append(f"transaction {names[needed].as_py()} began at seq {first[needed]}, and {end}")
        earliest = _needed(first, last, starts[min(clean + 1, cut)])
        if earliest is not None and (more := _segment_at(starts, int(first[needed])) - clean):
            holds.append(
                f"{more:,} segments before it each begin within an earlier transaction, the first of which, "
                f"{names[earliest].as_py()}, began at seq {first[earliest]}"
            )
    if clean == old:
        holds.append(_too_new(starts[old], int(latest[old]), before))
    return _Cut(clean, tuple(holds))


def _too_new(seq: int, latest: int, before: Lsn | Timestamp) -> str:
    """Return why a segment is not old enough; ``latest`` is the last end in it."""
    if latest <= before:
        return f"the newest segment is never removed: it begins at seq {seq}"
    return f"the segment from seq {seq} on has changes up to {type(before)(latest)}, which is after {before}"


def _crossed(starts: list[int], first: Numbers, last: Numbers) -> Numbers:
    """Return for each segment the number of transactions that cross its beginning."""
    after, end = (np.searchsorted(starts, seqs, "right") for seqs in (first, last))
    steps = np.bincount(after, minlength=len(starts) + 1) - np.bincount(end, minlength=len(starts) + 1)
    return np.cumsum(steps)[: len(starts)]


def _needed(first: Numbers, last: Numbers, cut_seq: int) -> int | None:
    """Return the index of the earliest transaction that crosses a cut; None for none."""
    across = np.flatnonzero((first < cut_seq) & (last >= cut_seq))
    return int(across[np.argmin(first[across])]) if len(across) else None


def _segment_at(starts: list[int], seq: int) -> int:
    return max(0, bisect_right(starts, seq) - 1)


class _StateNeed(NamedTuple):
    """The part of a log that the state of a table is built from."""

    seq: int
    """Everything from this seq on."""
    relation_oid: int
    """The OID of the table."""
    reason: str
    """Why."""


def needs_of(index: LogIndex) -> Iterator[_StateNeed]:
    """Yield the seq from which on the state of each table needs the log; tables that are not complete need nothing.

    A table with a copy needs the chunks of the copy, and the transactions that its snapshot did not see, some of which
    may begin before the first chunk. So does a first copy that is in progress, which otherwise begins again.
    """
    begun = begun_without_copy(index)
    latest = {copy.relation_oid: copy for copy in present_copies(index)}
    firsts = _first_chunks(index, latest)
    attempts = attempts_of(index)
    unseen = first_uncontained(index, latest.values())
    for oid, copy in latest.items():
        events = [each.seq for each in attempts.get((copy.first_chunk, copy.last_chunk), ())]
        seq = min(firsts.get(oid, copy.seq), unseen[copy.seq], *events)
        name = full_name(copy)
        yield _StateNeed(seq, oid, f"the state of {name} needs its latest copy and the changes since its snapshot")
    begun_copies = {oid: _first_attempt(copy) for oid, copy in copies_in_progress(index).items() if oid not in latest}
    unseen = first_uncontained(index, begun_copies.values())
    for oid, attempt in begun_copies.items():
        seq = min(attempt.seq, unseen[attempt.seq])
        reason = f"the copy of {full_name(attempt)}, which is not complete, needs what was read of it"
        yield _StateNeed(seq, oid, f"{reason} (pgoutput capture --snapshot resumes it)")
    for oid, (seq, name) in begun.items():
        if oid not in latest:
            yield _StateNeed(seq, oid, f"the state of {name} needs everything since its first row")


def _first_attempt(copy: PartialCopy) -> TableCopy:
    """Return the first attempt to make a copy, as if it had become one: what it did not see is needed, too."""
    plan, first = copy.plan, copy.attempts[0]
    named = plan.relation_oid, plan.namespace, plan.name
    return TableCopy(
        first.seq, *named, first.snapshot, plan.first_chunk, plan.last_chunk, 0, Visibility.at(first.since)
    )


def _first_chunks(index: LogIndex, copies: dict[int, TableCopy]) -> dict[int, int]:
    """Return the first seq of each copy by OID: that of the Relation of its first chunk."""
    sent = index.entries("descriptions")
    chunks = copy_scope(0) - sent["stream_xid"].fill_null(0).to_numpy()
    oids, seqs, found = sent["oid"].to_numpy(), sent["seq"].to_numpy(), dict[int, int]()
    for row in np.flatnonzero(chunks >= 0).tolist():
        copy = copies.get(int(oids[row]))
        if copy is not None and copy.first_chunk <= chunks[row] <= copy.last_chunk:
            found.setdefault(copy.relation_oid, int(seqs[row]))
    return found
