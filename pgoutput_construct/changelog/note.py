"""The note beside the segments: how far the server was told that all is durable, where no segment says so."""

import json
from dataclasses import asdict, dataclass, field

from pgoutput_construct.changelog.footer import Segment
from pgoutput_construct.changelog.store import LogStore, MissingFileError
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire import Lsn

__all__ = ["NOTE_NAME", "Note", "read_note", "write_note"]

NOTE_NAME = ".confirmed.json"


@dataclass(frozen=True)
class Note:
    """What an idle server was told; it guards against a slot that moved, and vouches for the segments before it."""

    confirmed_lsn: Lsn = field(default_factory=Lsn)
    """The position that was confirmed."""
    next_seq: int = 0
    """The durable segments end before this seq: a log that ends earlier has lost some."""
    timeline: int | None = None
    """The timeline of the server that was told; None in a note that does not say."""

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
        timeline = content.get("timeline")
        seq = int(content.get("next_seq", 0))
        return Note(Lsn(content["confirmed_lsn"]), seq, None if timeline is None else int(timeline))
    except MissingFileError:
        return Note()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        place = store.place(NOTE_NAME)
        raise ChangeLogError(f"{place}: damaged; it only guards against a moved slot: remove it to go on") from error


def write_note(store: LogStore, note: Note) -> None:
    """Write the note, durably."""
    store.write(NOTE_NAME, json.dumps(asdict(note)).encode("ascii"))
