"""How far a client has been sent what a publisher serves: chunks of bytes, ready for its socket."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from pgoutput_construct.publisher.feed import Feed
from pgoutput_construct.publisher.rendering import Outgoing, Renderer
from pgoutput_construct.wire.connection import build_connection
from pgoutput_construct.wire.connection_messages import CopyData
from pgoutput_construct.wire.engine import build_frame, engine
from pgoutput_construct.wire.frames import XLogData
from pgoutput_construct.wire.options import LAYOUT_OPTIONS
from pgoutput_construct.wire.protocol import CHANGES, ReplicationOptions
from pgoutput_construct.wire.types import Lsn, Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgoutput_construct.publisher.faults import Fault

__all__ = ["Chunk", "Cursor"]

_BYTES: Final = 64 << 10
"""Bytes of a chunk, or one message where that is larger."""


class Chunk(NamedTuple):
    """What is sent next."""

    data: bytes
    """CopyData messages."""
    changes: int
    """How many changes of rows are in it."""
    position: Lsn
    """End of the last transaction that is wholly sent with it."""
    fault: "Fault | None" = None
    """What shows behind it, on purpose."""


class Cursor:
    """Goes through a feed for one client."""

    def __init__(self, feed: Feed, options: ReplicationOptions, after: int) -> None:
        """Begin behind the transactions that ended at, or before, the position ``after``."""
        self._feed = feed
        self._renderer = Renderer(feed, options)
        self._after = after
        self._place = 0
        layout = {name: getattr(options, name) for name in LAYOUT_OPTIONS}
        self._engines = {inside: engine(**layout, in_stream=inside) for inside in (False, True)}
        self._current: Iterator[Outgoing] = iter(())
        self._fault: Fault | None = None
        self.position = Lsn(after)
        """End of the last transaction that was wholly sent."""
        self.clock = 0.0
        """Seconds by which the server's clock is wrong."""

    def next_chunk(self, most_changes: int | None = None) -> Chunk | None:
        """Return what comes next; None where nothing more is there now."""
        pieces: list[bytes] = []
        size = changes = 0
        while size < _BYTES and (most_changes is None or changes < most_changes):
            outgoing = next(self._current, None)
            if outgoing is None:
                if not self._begin_next():
                    break
                continue
            pieces.append(self._encoded(outgoing))
            size += len(pieces[-1])
            changes += type(outgoing.message) in CHANGES
        fault, self._fault = self._fault, None
        return Chunk(b"".join(pieces), changes, self.position, fault) if pieces or fault else None

    def _begin_next(self) -> bool:
        """Begin the next transaction; tell whether there is one."""
        ended = self._feed.ended
        if self._place:
            self.position = max(self.position, Lsn(ended[self._place - 1].end_lsn or 0))
        while self._place < len(ended):
            following = ended[self._place]
            self._fault = self._feed.next_fault(following.seq)
            if self._fault is not None:
                return False
            self._place += 1
            if (following.end_lsn or 0) > self._after:
                self._current = self._renderer.render(following)
                return True
        return False

    def _encoded(self, outgoing: Outgoing) -> bytes:
        payload = self._engines[outgoing.in_stream].build(outgoing.message)
        now = Timestamp.from_datetime(datetime.now(UTC) + timedelta(seconds=self.clock))
        frame = XLogData(outgoing.lsn, outgoing.lsn, now, payload)
        return build_connection(CopyData(build_frame(frame)))
