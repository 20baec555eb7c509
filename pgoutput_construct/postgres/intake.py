"""From frames to what the log appends: taken apart, walked once, and without what the log has already."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pgoutput_construct.changelog.block import NO_XID, Block
from pgoutput_construct.changelog.footer import Position
from pgoutput_construct.columnar.envelope import FrameBatch, Frames, split_frames
from pgoutput_construct.columnar.scopes import ScopeReader
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.postgres.overlap import Overlap
from pgoutput_construct.postgres.transactions import Admission, TransactionTracker
from pgoutput_construct.stream.session import Session
from pgoutput_construct.wire import PrimaryKeepalive

__all__ = ["Intake", "Taken"]


@dataclass(frozen=True)
class Taken:
    """What some frames brought."""

    block: Block
    """The payloads that belong into the log."""
    payload_bytes: int
    """Their bytes."""
    empty: int
    """Frames without a payload."""
    reply_requested: bool
    """Whether the server asked for a status."""
    quiet: int | None
    """Behind how many of the payloads of the block, at most, no transaction and no stream is open; None: nowhere."""
    error: PgoutputError | None
    """Why the stream cannot be read further; what came before is in the block."""


class Intake:
    """Takes in the frames of one connection, in their order."""

    def __init__(self, layout: Mapping[str, Any], position: Position, overlap: Overlap | None = None) -> None:
        """Begin a connection under options (``StreamOptions.layout``) where the log is complete up to ``position``.

        ``overlap`` is what the server was asked to send again.
        """
        self._scopes = ScopeReader(Session(**layout))
        self._open_xid = NO_XID
        self.tracker = TransactionTracker(position, overlap)
        """Which transactions came completely."""

    def take(self, frames: Frames) -> Taken:
        """Take in frames, at least one; nothing is raised for what they hold."""
        batch = split_frames(frames, self._scopes.session.options)
        block, admission = self._admit(batch)
        asked = False
        for place, frame in batch.others:
            if isinstance(frame, PrimaryKeepalive) and place <= len(admission.kept):
                asked = asked or bool(frame.reply_requested)
                if admission.is_quiet(place):
                    self.tracker.keepalive(frame.wal_end)
        quiet, error = admission.last_quiet(), self.tracker.gap or admission.error or batch.error
        if self.tracker.gap is not None:
            block, quiet = block.take(slice(0, 0)), None
        return Taken(block, block.payload_bytes, batch.empty, asked, quiet, error)

    def _admit(self, batch: FrameBatch) -> tuple[Block, Admission]:
        scopes, states, refused = self._scopes.read(batch.payloads)
        columns = batch.wal_start, batch.send_time, self._scopes.session.options, states, scopes
        block = Block.of(batch.payloads, *columns, open_xid=self._open_xid)
        self._open_xid = block.open_xid
        admission = self.tracker.admit(block.index, refused[0] if refused else None)
        if len(admission.kept) == len(block) and admission.kept.all():
            return block, admission
        return block.take(admission.kept.nonzero()[0]), admission
