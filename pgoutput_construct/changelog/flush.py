"""What the writer hands over becomes durable: a segment with its index, or a note where only the position moved."""

from dataclasses import dataclass, field, replace

from pgoutput_construct.changelog.build import IndexBuilder
from pgoutput_construct.changelog.claim import Claim, overtaken
from pgoutput_construct.changelog.columns import segment_table
from pgoutput_construct.changelog.described import Sent
from pgoutput_construct.changelog.footer import Position, Segment
from pgoutput_construct.changelog.identity import ensure_id
from pgoutput_construct.changelog.indexes import builder_after
from pgoutput_construct.changelog.keeper import ManifestKeeper
from pgoutput_construct.changelog.listing import list_log
from pgoutput_construct.changelog.note import Note, note_after, write_note
from pgoutput_construct.changelog.options import LogOptions
from pgoutput_construct.changelog.parts import Part, coalesced
from pgoutput_construct.changelog.segments import write_segment
from pgoutput_construct.changelog.store import LogStore

__all__ = ["Durable", "Flush", "Handed"]

_GROUP_ROWS = 32768  # rows that can be read, or are damaged, alone: fewer cost more CPU to write


@dataclass(frozen=True)
class Handed:
    """What is to become durable."""

    parts: list[Part]
    """The payloads and events, from ``first_seq`` on."""
    first_seq: int
    rows: int
    """How many payloads these are; without any, only the position is written down."""
    size: int
    """Bytes of the payloads."""
    options: LogOptions | None
    position: Position
    """How far the log is complete with them."""
    last: Segment | None
    """The segment before them; None at the begin of the log."""
    noted: Note
    """What was noted last."""


@dataclass(frozen=True)
class Durable:
    """What has become durable, and may be confirmed to the server."""

    position: Position
    """How far the log is complete with it."""
    segment: Segment | None
    """The segment; None where only the position moved."""
    note: Note
    """The note that is in force with it."""


@dataclass
class Flush:
    """Makes one thing after another durable; nothing else changes the log meanwhile, but for compaction and prune."""

    store: LogStore
    claim: Claim
    manifests: ManifestKeeper
    open_transactions: int = 0
    """How many transactions of the log had not ended at the end of the last segment that this one wrote."""
    _has_id: bool = False
    _builder: IndexBuilder | None = None
    _sent: dict[int, Sent] = field(default_factory=dict)

    def write(self, handed: Handed) -> Durable:
        """Return once all is durable; raises ChangeLogError when it may not be confirmed."""
        self.claim.take(handed.last)
        segment, note = None, handed.noted
        if handed.rows and handed.options is not None:
            if not self._has_id:
                ensure_id(self.store)
                self._has_id = True
            segment = self._write_segment(handed, handed.options)
            note = note.including(handed.position.complete_lsn)
        elif handed.position.complete_lsn and handed.position.complete_lsn not in note.told:
            note = self._write_note(handed)
        self.claim.check()  # else it went elsewhere, and may not be confirmed
        return Durable(handed.position, segment, note)

    def _write_note(self, handed: Handed) -> Note:
        next_seq = handed.last.last_seq + 1 if handed.last else 0
        note = note_after(max(handed.position.complete_lsn, handed.noted.confirmed_lsn), next_seq, handed.options)
        note = replace(note, told=handed.noted.told, told_from=handed.noted.told_from).including(
            handed.position.complete_lsn
        )
        write_note(self.store, note)
        return note

    def _write_segment(self, handed: Handed, options: LogOptions) -> Segment:
        builder = self._builder or builder_after(list_log(self.store), self._sent)
        if builder.next_seq != handed.first_seq:
            raise overtaken(self.store, handed.first_seq)
        # It goes on: where the segment cannot be written, another one begins where this one did.
        self._builder, self._sent = None, builder.sent
        parts = list(coalesced(handed.parts))
        for part in parts:
            builder.add(part)
        index = builder.finish(handed.position.complete_lsn)
        table = segment_table(parts, handed.first_seq)
        segment = write_segment(self.store, table, options, handed.position, index, _GROUP_ROWS)
        self.manifests.add(segment, index)
        self._builder, self.open_transactions = builder, len(index.open)
        return segment
