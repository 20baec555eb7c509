"""The note of a capture about the LSNs that it has confirmed to the server, some of which no segment records.

On an idle server the capture confirms positions without writing a segment. When it starts again, the note says whether
the slot is where this capture left it, or was moved or re-created by somebody else.

The note also has the seqs of segments that did not move the position, such as those of events alone: if these are lost,
the slot does not show that they existed, and readers may have read them.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final, Self

from pgoutput_construct.changelog._segment.footer import Segment
from pgoutput_construct.changelog._store.json_notes import read_note as read_json
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire import Lsn

__all__ = [
    "NOTE_NAME",
    "Note",
    "note_after",
    "reached_lsn",
    "read_note",
    "write_note",
]

NOTE_NAME = ".confirmed.json"

_TOLD: Final = 4096
"""The number of LSNs retained: eleven hours on an idle server, at one every ten seconds. After a crash a slot is where
the last checkpoint saved it, by default at most five minutes earlier (checkpoint_timeout)."""


@dataclass(frozen=True)
class Note:
    """The confirmed LSNs: detects a slot that was moved, and segments that were lost after they were confirmed."""

    confirmed_lsn: Lsn = field(default_factory=Lsn)
    """The highest confirmed LSN."""
    next_seq: int = 0
    """The durable segments ended before this seq: a log that ends earlier has lost some."""
    timeline: int | None = None
    """The server's timeline then; None for an empty log."""
    timeline_origin: str | None = None
    """Where that timeline began (``LogOptions.timeline_origin``)."""
    slot: str | None = None
    """The slot that the capture of an empty log is about to create or has created; None once the log has begun."""
    told: tuple[int, ...] = ()
    """The last LSNs that were confirmed to the server: a slot that is at none of them was moved by somebody else. The
    LSNs of segments written after the note are added when they are read."""
    told_from: int | None = None
    """``told`` has all confirmed LSNs from this one on; None in the note of a log that had none: from the last one on.
    """

    def including(self, lsn: int) -> Self:
        """Return the note with one more confirmed LSN."""
        if not lsn or lsn in self.told:
            return self
        told = (*self.told, int(lsn))
        since = self.told_from if len(told) <= _TOLD else max(self.told_from or 0, told[-_TOLD])
        return replace(self, told=told[-_TOLD:], told_from=since)

    def may_have_told(self, lsn: int) -> bool:
        """Return whether an LSN may have been confirmed: it was, or it is older than what the note retains."""
        return lsn in self.told or self.told_from is None or lsn < self.told_from

    def reached(self, last: Segment | None) -> Lsn:
        """Return the highest confirmed LSN, by this note or by the newest segment."""
        return max(self.confirmed_lsn, last.position.complete_lsn) if last else self.confirmed_lsn

    def check_end(self, next_seq: int, log: object) -> None:
        """Raise ChangeLogError if the log ends, before ``next_seq``, earlier than the note says; ``log`` names it."""
        if next_seq < self.next_seq:
            raise ChangeLogError(
                f"{log}: the log ends at seq {next_seq - 1}, but it had seq {next_seq} to {self.next_seq - 1} when "
                f"{self.confirmed_lsn} was confirmed: the server may not send them again, and readers may have read "
                "them; restore the removed segments, or begin a new log in an empty directory, with a new slot and an "
                "initial copy of the tables"
            )


def reached_lsn(store: LogStore, segments: Sequence[Segment]) -> Lsn:
    """Return the LSN before which nothing that the server sends is lacking in a log.

    It is the log's ``complete_lsn``, or further: on an idle server, or one whose changes are not published, a capture
    confirms positions that no segment records. Raises ChangeLogError if the note of them is damaged.
    """
    return read_note(store).reached(segments[-1] if segments else None)


def read_note(store: LogStore) -> Note:
    """Read the note of a log; without one, nothing was confirmed. Raises ChangeLogError if it is damaged."""
    remedy = "remove it to continue: it only serves to notice that the slot was moved"
    note = read_json(store, NOTE_NAME, Note, remedy=remedy)
    if note is None:
        return Note()
    since = note.confirmed_lsn if note.told_from is None else note.told_from
    return replace(note, told_from=int(since)).including(note.confirmed_lsn)


def note_after(position: Lsn, next_seq: int, options: LogOptions | None) -> Note:
    """Return the note for a confirmed LSN.

    Args:
        position: The LSN.
        next_seq: The seq after the last durable row.
        options: The options of the log, which have the server's timeline; None for an empty log.
    """
    timeline, origin = (options.timeline, options.timeline_origin) if options else (None, None)
    return Note(position, next_seq, timeline, origin, told_from=int(position)).including(position)


def write_note(store: LogStore, note: Note) -> None:
    """Write the note durably."""
    store.write(NOTE_NAME, json.dumps(asdict(note)).encode("ascii"))
