"""The note beside the segments: how far the server was told that all is durable, where no segment says so."""

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Final, Self

from pgoutput_construct.changelog._segment.footer import Segment
from pgoutput_construct.changelog._store.store import LogStore, MissingFileError
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire import Lsn

__all__ = [
    "NOTE_NAME",
    "Note",
    "note_after",
    "read_note",
    "write_note",
]

NOTE_NAME = ".confirmed.json"

_TOLD: Final = 4096
"""How many positions are kept: on an idle server those of eleven hours, at one each ten seconds. A crash puts a slot
back to where a checkpoint saved it, by default five minutes before at most (checkpoint_timeout)."""


@dataclass(frozen=True)
class Note:
    """What an idle server was told; it guards against a slot that moved, and vouches for the segments before it."""

    confirmed_lsn: Lsn = field(default_factory=Lsn)
    """The position that was confirmed."""
    next_seq: int = 0
    """The durable segments end before this seq: a log that ends earlier has lost some."""
    timeline: int | None = None
    """The timeline of the server that was told; None in a note that does not say."""
    timeline_origin: str | None = None
    """Where that timeline began (``LogOptions.timeline_origin``)."""
    slot: str | None = None
    """The slot that the capture of an empty log is about to create, or has created; None once the log has begun."""
    told: tuple[int, ...] = ()
    """The last positions that the server was told are durable: a slot that is at none of them was moved by another
    one. Those of segments that followed the note are added as they are read."""
    told_from: int | None = None
    """The position from which on ``told`` has all of them; None in a note that does not say: from the last one on."""

    def including(self, lsn: int) -> Self:
        """Return the note with a position that the server is told."""
        if not lsn or lsn in self.told:
            return self
        told = (*self.told, int(lsn))
        since = self.told_from if len(told) <= _TOLD else max(self.told_from or 0, told[-_TOLD])
        return replace(self, told=told[-_TOLD:], told_from=since)

    def may_have_told(self, lsn: int) -> bool:
        """Return whether the server may have been told a position: it was, or nothing is known of so long ago."""
        return lsn in self.told or self.told_from is None or lsn < self.told_from

    def reached(self, last: Segment | None) -> Lsn:
        """Return the highest position that was confirmed, by this note or with the newest segment."""
        return max(self.confirmed_lsn, last.position.complete_lsn) if last else self.confirmed_lsn

    def check_end(self, next_seq: int, place: object) -> None:
        """Raise ChangeLogError when the log at ``place`` ends, before ``next_seq``, earlier than the note says."""
        if next_seq < self.next_seq:
            raise ChangeLogError(
                f"{place}: the log ends at seq {next_seq - 1}, but it held seq {next_seq} to {self.next_seq - 1} when "
                f"{self.confirmed_lsn} was confirmed, and the server will not send them again: restore the segments "
                "that were removed, or begin a new log in an empty directory, with a new slot and an initial copy of "
                "the tables"
            )


def read_note(store: LogStore) -> Note:
    """Read the note of a log; where there is none, nothing was confirmed. Raises ChangeLogError for a damaged one."""
    try:
        content = json.loads(store.read(NOTE_NAME))
        timeline, seq = content.get("timeline"), int(content.get("next_seq", 0))
        names = {name: content.get(name) for name in ("timeline_origin", "slot")}
        told = tuple(map(int, content.get("told", ())))
        confirmed, number = Lsn(content["confirmed_lsn"]), None if timeline is None else int(timeline)
        since = content.get("told_from")
        known = int(confirmed if since is None else since)
        return Note(confirmed, seq, number, **names, told=told, told_from=known).including(confirmed)
    except MissingFileError:
        return Note()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        place = store.path_of(NOTE_NAME)
        raise ChangeLogError(f"{place}: damaged; it only guards against a moved slot: remove it to go on") from error


def note_after(position: Lsn, next_seq: int, options: LogOptions | None) -> Note:
    """Return the note of a position that was reached under some options, before the log's ``next_seq``."""
    timeline, origin = (options.timeline, options.timeline_origin) if options else (None, None)
    return Note(position, next_seq, timeline, origin, told_from=int(position)).including(position)


def write_note(store: LogStore, note: Note) -> None:
    """Write the note, durably."""
    store.write(NOTE_NAME, json.dumps(asdict(note)).encode("ascii"))
