"""The note of what was pruned: from which seq on a log is kept. It is durable before the first segment goes."""

import json
from dataclasses import asdict, dataclass, field
from typing import Final

from pgoutput_construct.changelog.store import LogStore, MissingFileError
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire import Lsn, Timestamp

__all__ = ["Pruned", "first_kept", "first_promised", "read_pruned", "write_pruned"]

_FILE: Final = "pruned.json"


@dataclass(frozen=True)
class Pruned:
    """What is no longer in a log: all before a position."""

    first_seq: int = 0
    """The first seq that is kept."""
    lsn: Lsn = field(default_factory=Lsn)
    """The position up to which all transactions that ended were removed."""
    time: Timestamp = field(default_factory=Timestamp)
    """When the last of them was committed."""
    planned: int = 0
    """The first seq that a prune under way wants to keep: the log has what is before it, new readers must not need it.
    A prune that was killed leaves it; the next one forgets it."""
    copied: tuple[int, ...] = ()
    """The OIDs of tables whose copies were removed: a capture does not copy them again unless that is requested."""


def read_pruned(store: LogStore) -> Pruned:
    """Return what was pruned from a log, of a log that was not: nothing; raises ChangeLogError for a damaged note."""
    try:
        note = json.loads(store.read(_FILE))
        lsn, time, planned = Lsn(note.get("lsn", 0)), Timestamp(note.get("time", 0)), int(note.get("planned", 0))
        return Pruned(int(note["first_seq"]), lsn, time, planned, tuple(map(int, note.get("copied", ()))))
    except MissingFileError:
        return Pruned()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        place = store.place(_FILE)
        raise ChangeLogError(f"{place}: damaged: it says from which seq on the log is kept: {error}") from error


def write_pruned(store: LogStore, pruned: Pruned) -> None:
    """Note what is about to be removed, durably."""
    store.write(_FILE, json.dumps(asdict(pruned)).encode())


def first_kept(store: LogStore) -> int:
    """Return the seq at which a log begins: 0, or more where older segments were pruned."""
    return read_pruned(store).first_seq


def first_promised(store: LogStore) -> int:
    """Return the first seq that a new reader may need: no prune that is under way removes it."""
    pruned = read_pruned(store)
    return max(pruned.first_seq, pruned.planned)
