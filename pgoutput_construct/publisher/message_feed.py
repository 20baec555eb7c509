"""Messages in memory as a feed: a scenario, the lines of ``decode``, or what a test commits."""

from collections.abc import Iterable, Iterator, Sequence

from pgoutput_construct.publisher.feed import About, Fed, Feed
from pgoutput_construct.stream.logged import EndedTransaction
from pgoutput_construct.stream.relations import RelationHistory
from pgoutput_construct.stream.state import ControlMessage, StreamState
from pgoutput_construct.stream.transactions import TransactionReader
from pgoutput_construct.wire.messages import PgoutputMessage
from pgoutput_construct.wire.types import Lsn

__all__ = ["MessageFeed"]


class MessageFeed(Feed):
    """Serves messages that are in memory; more may be added while it is served."""

    def __init__(
        self, about: About, messages: Iterable[tuple[Lsn, PgoutputMessage]] = (), growing: bool = False
    ) -> None:
        """Begin with some messages.

        Args:
            about: The server that it stands for.
            messages: The messages in the order of a connection, each with its position in the WAL.
            growing: Whether more may come.
        """
        self.about = about
        self.growing = growing
        self._fed: list[Fed] = []
        self._count = 0
        self._state = StreamState()
        self._reader = TransactionReader()
        self.history = RelationHistory()
        self._position = Lsn(0)
        for lsn, message in messages:
            self.add(lsn, message)

    def add(self, lsn: Lsn, message: PgoutputMessage) -> None:
        """Add the next message; raise ProtocolError where it cannot come."""
        seq, stream_xid = self._count, self._state.stream_xid
        control = ControlMessage(seq, stream_xid, message)
        # In this order, since other threads read meanwhile: what has ended is there, and described.
        del self._fed[seq:]
        self._fed.append(Fed(seq, lsn, message, stream_xid))
        self.history.read(control)
        self._reader.read(control)
        self._state.follow(message)
        self._count += 1
        self._position = max(self._position, lsn, *(Lsn(each.end_lsn or 0) for each in self._reader.ended[-1:]))

    def __len__(self) -> int:
        return self._count

    @property
    def ended(self) -> Sequence[EndedTransaction]:
        """See Feed."""
        return self._reader.ended

    @property
    def position(self) -> Lsn:
        """See Feed."""
        return self._position

    def read(self, first: int, last: int) -> Iterator[Fed]:
        """See Feed."""
        yield from self._fed[first : last + 1]

    def refresh(self) -> bool:
        """See Feed."""
        return self.growing
