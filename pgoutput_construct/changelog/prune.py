"""Old segments are removed, as far as nobody needs them: no transaction, and no registered reader.

The plan is noted (in ``pruned.json``) before readers are looked for a last time, and from where the log is kept before
the first segment goes. Segments that a crash leaves behind are no longer part of the log; the next prune removes them.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pyarrow.compute as pc

from pgoutput_construct.changelog.address import open_store
from pgoutput_construct.changelog.compact import lock_for_maintenance
from pgoutput_construct.changelog.copies import latest_copies
from pgoutput_construct.changelog.cut import find_cut
from pgoutput_construct.changelog.indexes import indexes_of
from pgoutput_construct.changelog.listed import Listing
from pgoutput_construct.changelog.listing import list_log
from pgoutput_construct.changelog.manifest import manifest_names
from pgoutput_construct.changelog.names import chosen
from pgoutput_construct.changelog.needed import needs_of
from pgoutput_construct.changelog.pruned import Pruned, read_pruned, write_pruned
from pgoutput_construct.changelog.registry import RegisteredReader, readers
from pgoutput_construct.changelog.store import Address, LogLock, LogStore
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire import Lsn, Timestamp

__all__ = ["Prune", "prune"]


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
    cut = find_cut(index, before, waited_for, list(needs_of(index)) if states else ())
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
    times = [pc.max(part.transactions["commit_time"]).as_py() for _, part in index.parts()]
    copied = sorted({*earlier.copied, *latest_copies(index)})
    last = max((time for time in times if time is not None), default=earlier.time)
    write_pruned(store, replace(earlier, planned=done.first_seq))
    for reader in readers(store):
        if reader.next_seq < done.first_seq and not reader.has_expired(time.time()):
            write_pruned(store, earlier)
            raise ChangeLogError(
                f"{store}: reader {reader.name!r}, who needs seq {reader.next_seq}, came meanwhile: try again"
            )
    write_pruned(store, Pruned(done.first_seq, done.lsn, Timestamp(last), copied=tuple(copied)))
