"""``pruned.json``: from which seq on a log is retained. It is written before the first segment before it is removed."""

import json
from dataclasses import asdict, dataclass, field
from typing import Final

from pgoutput_construct.changelog._segment.segment_index import InheritedEvent
from pgoutput_construct.changelog._store.json_notes import read_note
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.wire import Lsn, Timestamp

__all__ = ["Pruned", "read_pruned", "write_pruned"]

_FILE: Final = "pruned.json"


@dataclass(frozen=True)
class Pruned:
    """What was pruned from a log."""

    first_seq: int
    """The first retained seq: 0, or more if older segments were pruned."""
    lsn: Lsn = field(default_factory=Lsn)
    """All transactions that ended before this LSN were removed."""
    time: Timestamp = field(default_factory=Timestamp)
    """When the last of them was committed: microseconds since 2000-01-01 UTC."""
    planned: int = 0
    """The first seq that a running prune is going to retain; 0 for none. The segments before it still exist, but new
    readers must not need them. A prune that was killed leaves it; the next one resets it."""
    copied: tuple[int, ...] = ()
    """The OIDs of tables whose copies were removed: a capture copies them again only on request."""
    publications: tuple[InheritedEvent, ...] = ()
    """The facts of publications (PUBLICATION_FACTS) that were in force at the end of what was removed."""

    @property
    def promised(self) -> int:
        """The first seq that a new reader may need: the running prune, if any, retains it."""
        return max(self.first_seq, self.planned)


def read_pruned(store: LogStore) -> Pruned:
    """Return what was pruned from a log; raises ChangeLogError if the file that says so is damaged."""
    remedy = 'restore it from a backup, or write {"first_seq": N} with the first seq of the first segment'
    return read_note(store, _FILE, Pruned, remedy=remedy) or Pruned(0)


def write_pruned(store: LogStore, pruned: Pruned) -> None:
    """Record durably what is going to be removed."""
    store.write(_FILE, json.dumps(asdict(pruned)).encode())
