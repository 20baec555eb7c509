"""Old segments are removed, as far as nobody needs them: no transaction, and no registered reader.

The plan is noted (in ``pruned.json``) before readers are looked for a last time, and from where the log is kept before
the first segment goes. Segments that a crash leaves behind are no longer part of the log; the next prune removes them.
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from pgoutput_construct.changelog._facts.completeness import begun_without_copy, present_copies
from pgoutput_construct.changelog._facts.copies import TableCopy, latest_copies
from pgoutput_construct.changelog._index.indexes import indexes_of
from pgoutput_construct.changelog._index.listing import Listing, Pruned, list_log, read_pruned, write_pruned
from pgoutput_construct.changelog._index.log_index import LogIndex
from pgoutput_construct.changelog._index.manifest import manifest_names
from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.changelog._segment.footer import chosen
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.store import Address, LogLock, LogStore
from pgoutput_construct.changelog.compact import lock_for_maintenance
from pgoutput_construct.changelog.registry import RegisteredReader, readers
from pgoutput_construct.changelog.timeline import NOTHING_ENDED, first_uncontained, last_ends, lasting_transactions
from pgoutput_construct.columnar.descriptions import copy_scope
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.wire import Lsn, Timestamp

__all__ = ["Prune", "needs_of", "prune"]


@dataclass(frozen=True)
class Prune:
    """What a prune removes, or would remove, and what keeps the rest."""

    first_seq: int = 0
    """The first seq that is kept."""
    lsn: Lsn = field(default_factory=Lsn)
    """Everything that ended before this position goes."""
    segments: int = 0
    """Segments that go."""
    rows: int = 0
    """Rows in them."""
    size: int = 0
    """Bytes of them, and of what earlier compactions and prunes left behind."""
    kept: int = 0
    """Segments that stay."""
    holds: tuple[str, ...] = ()
    """What retains the segments that stay, the first of them last; and which readers are not waited for any more."""
    removed: int = 0
    """Files that were removed so far: none in a dry run."""


OnProgress = Callable[[Prune], None]


def prune(
    address: Address | LogStore,
    before: Lsn | Timestamp | datetime,
    *,
    states: bool = True,
    dry_run: bool = False,
    on_progress: OnProgress | None = None,
) -> Prune:
    """Remove the segments that hold only what ended before a position, and that nobody needs.

    A segment stays, and all after it, when a transaction that ended later, is open, or is prepared has changes in it,
    or a registered reader has not read it, or the state of a table is built from it: that needs the latest copy of the
    table, and what came after it. The newest segment always stays. What stays is decoded without what went.

    Args:
        address: The log's.
        before: A position in the WAL, or a time of commits.
        states: Keep what the state of tables is built from; without it only who has older changes elsewhere has that.
            A capture does not copy the tables again for that reason; ``postgres.snapshot`` does.
        dry_run: Say what would be removed, and remove nothing.
        on_progress: Called after each file that is removed.

    Raises:
        ChangeLogError: There is no log, it is damaged, another compaction or prune is at it, or a reader was registered
            meanwhile that needs what was about to go.
    """
    store = open_store(address)
    if isinstance(before, datetime):
        before = Timestamp.from_datetime(before)
    with lock_for_maintenance(store) as lock:
        listing, known = list_log(store), readers(store)
        done = _planned(listing, known, before, time.time(), states)
        done = replace(done, size=sum(_files(store, done.first_seq).values()))
        return done if dry_run else _remove(store, lock, listing, done, on_progress or (lambda done: None))


def _planned(
    listing: Listing, known: tuple[RegisteredReader, ...], before: Lsn | Timestamp, now: float, states: bool
) -> Prune:
    waited_for = [reader for reader in known if not reader.has_expired(now)]
    index = indexes_of(listing)
    cut = _find_cut(index, before, waited_for, list(needs_of(index)) if states else ())
    gone, kept = listing[: cut.segments], listing[cut.segments :]
    first_seq = kept[0].first_seq
    silent = [_silent(each) for each in known if each not in waited_for and each.next_seq < first_seq]
    lsn = gone[-1].position.complete_lsn if gone else Lsn(0)
    rows = first_seq - listing[0].first_seq
    return Prune(first_seq, lsn, len(gone), rows, kept=len(kept), holds=(*cut.holds, *silent))


def _silent(reader: RegisteredReader) -> str:
    since = datetime.fromtimestamp(reader.time, UTC).isoformat(timespec="seconds")
    return (
        f"reader {reader.name!r} needs seq {reader.next_seq}, but has said nothing since {since}: it asked "
        f"to be waited for {reader.seconds:.0f} seconds, and is waited for no longer"
    )


def _files(store: LogStore, first_seq: int) -> dict[str, int]:
    """Return the segments' files that hold nothing from a seq on, oldest first, and their sizes."""
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
    """Note from where the log is kept, once no reader needs more: one that registers now sees the plan, or is seen.

    A plan hides nothing: a prune that is killed before it has looked for readers takes nothing from them.
    """
    earlier = replace(read_pruned(store), planned=0)
    index = indexes_of(listing[: done.segments])
    copied = sorted({*earlier.copied, *latest_copies(index)})
    last = int(last_ends(index, "commit_time").max(initial=NOTHING_ENDED))
    last = earlier.time if last == NOTHING_ENDED else Timestamp(last)
    write_pruned(store, replace(earlier, planned=done.first_seq))
    for reader in readers(store):
        if reader.next_seq < done.first_seq and not reader.has_expired(time.time()):
            write_pruned(store, earlier)
            raise ChangeLogError(
                f"{store}: reader {reader.name!r}, who needs seq {reader.next_seq}, came meanwhile: try again"
            )
    write_pruned(store, Pruned(done.first_seq, done.lsn, Timestamp(last), copied=tuple(copied)))


_OPEN = 2**63 - 1
"""The last seq of a transaction without an outcome."""


class _Cut(NamedTuple):
    """How many segments can go."""

    segments: int
    """The number of the oldest segments that nobody needs."""
    holds: tuple[str, ...]
    """What retains the others, the first of them last."""


def _find_cut(
    index: LogIndex, before: Lsn | Timestamp, readers: Sequence[RegisteredReader], needs: "Sequence[_Need]" = ()
) -> _Cut:
    """Find the segments that hold only what ended before a position, and what retains the first of the others."""
    starts = index.table["first_seq"].to_pylist()
    latest = last_ends(index, "commit_time" if isinstance(before, Timestamp) else "end_lsn")
    late = np.flatnonzero(latest > int(before))
    old = min(int(late[0]) if len(late) else len(index), len(index) - 1)
    cut, holds = old, list[str]()
    for reader in readers:
        if reader.next_seq < starts[cut]:
            holds.append(f"reader {reader.name!r} has read all before seq {reader.next_seq} only")
            cut = _place(starts, reader.next_seq)
    needed_first = min(needs, default=None)
    if needed_first is not None and needed_first.seq < starts[cut]:
        more = sum(need.seq < starts[cut] for need in needs) - 1
        others = f"; so it is with {more:,} more tables" if more else ""
        holds.append(f"{needed_first.words}: all from seq {needed_first.seq} on{others}")
        cut = _place(starts, needed_first.seq)
    first, last, names = lasting_transactions(index)
    clean = int(np.flatnonzero(_crossed(starts, first, last)[: cut + 1] == 0)[-1])
    if (needed := _needed(first, last, starts[cut])) is not None:
        end = "is open" if last[needed] == _OPEN else f"ended at seq {last[needed]}"
        holds.append(f"transaction {names[needed].as_py()} began at seq {first[needed]}, and {end}")
        earliest = _needed(first, last, starts[clean + 1])
        if earliest is not None and (more := _place(starts, int(first[needed])) - clean):
            holds.append(
                f"{more:,} segments before it each begin inside of an earlier transaction, the first of which, "
                f"{names[earliest].as_py()}, began at seq {first[earliest]}"
            )
    if clean == old:
        holds.append(_too_new(starts[old], int(latest[old]), before))
    return _Cut(clean, tuple(holds))


def _too_new(seq: int, latest: int, before: Lsn | Timestamp) -> str:
    """Describe a segment that is retained for its own sake; ``latest`` is the last end in it."""
    if latest <= before:
        return f"the newest segment always stays: it begins at seq {seq}"
    return f"the segment from seq {seq} on has changes up to {type(before)(latest)}, which is after {before}"


def _crossed(starts: list[int], first: Numbers, last: Numbers) -> Numbers:
    """Return inside of how many transactions each segment begins."""
    after, end = (np.searchsorted(starts, seqs, "right") for seqs in (first, last))
    steps = np.bincount(after, minlength=len(starts) + 1) - np.bincount(end, minlength=len(starts) + 1)
    return np.cumsum(steps)[: len(starts)]


def _needed(first: Numbers, last: Numbers, cut_seq: int) -> int | None:
    """Return the transaction that began first of those on both sides of a cut."""
    across = np.flatnonzero((first < cut_seq) & (last >= cut_seq))
    return int(across[np.argmin(first[across])]) if len(across) else None


def _place(starts: list[int], seq: int) -> int:
    return max(0, bisect_right(starts, seq) - 1)


class _Need(NamedTuple):
    """What the state of a table is built from."""

    seq: int
    """All from here on."""
    relation_oid: int
    """The table."""
    words: str
    """Why."""


def needs_of(index: LogIndex) -> Iterator[_Need]:
    """Yield from where on the state of each table needs a log; of those that the log does not hold as a whole, nothing.

    With a copy these are the copy's pieces, and the transactions that its snapshot did not see: some may have come
    before the first piece.
    """
    begun = begun_without_copy(index)
    latest = {copy.relation_oid: copy for copy in present_copies(index)}
    firsts = _first_pieces(index, latest)
    unseen = first_uncontained(index, latest.values())
    for oid, copy in latest.items():
        seq = min(firsts.get(oid, copy.seq), unseen[copy.seq])
        name = full_name(copy)
        yield _Need(seq, oid, f"the state of {name} needs its latest copy, and what came after the snapshot of that")
    for oid, (seq, name) in begun.items():
        if oid not in latest:
            yield _Need(seq, oid, f"the state of {name} needs all since its first row")


def _first_pieces(index: LogIndex, copies: dict[int, TableCopy]) -> dict[int, int]:
    """Return where the first piece of each copy stands: it begins with what describes its rows."""
    sent = index.entries("descriptions")
    chunks = copy_scope(0) - sent["stream_xid"].fill_null(0).to_numpy()
    oids, seqs, found = sent["oid"].to_numpy(), sent["seq"].to_numpy(), dict[int, int]()
    for place in np.flatnonzero(chunks >= 0).tolist():
        copy = copies.get(int(oids[place]))
        if copy is not None and copy.first_chunk <= chunks[place] <= copy.last_chunk:
            found.setdefault(copy.relation_oid, int(seqs[place]))
    return found
