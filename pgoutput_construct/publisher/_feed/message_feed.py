"""Messages in memory as a feed: a scenario, the lines of ``decode``, or what a test commits."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from threading import Lock
from typing import Final

from pgoutput_construct.publisher._feed.feed import About, Fed, Feed, Order
from pgoutput_construct.publisher.faults import Fault
from pgoutput_construct.publisher.published_tables import ListedTable, described_tables, listed_tables
from pgoutput_construct.stream.bounds import effect_of, said
from pgoutput_construct.stream.relations import RelationHistory
from pgoutput_construct.stream.state import ControlMessage, StreamState
from pgoutput_construct.stream.transaction_reader import PREPARED, EndedTransaction, TransactionReader, decoded
from pgoutput_construct.wire.messages import PgoutputMessage, Relation
from pgoutput_construct.wire.types import Lsn

__all__ = ["MessageFeed", "Script"]


_ORDERS: Final = 16
"""Orders that are cached; others are made again."""


class MessageFeed(Feed):
    """Serves messages that are in memory; more may be added while it is served."""

    def __init__(
        self, about: About, messages: Iterable[tuple[Lsn, "PgoutputMessage"]] = (), growing: bool = False
    ) -> None:
        """Begin with some messages.

        Args:
            about: The server that it stands for.
            messages: The messages in the order of a connection, each with its LSN.
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
        self._ends: list[EndedTransaction] = []
        self._prepares = 0
        self._orders = lru_cache(maxsize=_ORDERS)(partial(_MessageOrder, self._ends))
        for lsn, message in messages:
            self.add(lsn, message)

    def add(self, lsn: Lsn, message: "PgoutputMessage") -> None:
        """Add the next message; raise ProtocolError where it cannot come."""
        seq, stream_xid = self._count, self._state.stream_xid
        control = ControlMessage(seq, stream_xid, message)
        # In this order, since other threads read meanwhile: what has ended is there, and described.
        del self._fed[seq:]
        self._fed.append(Fed(seq, lsn, message, stream_xid))
        self.history.read(control)
        self._reader.read(control)
        self._ends += self._reader.ended[len(self._ends) - self._prepares :]
        if effect_of(message) in ("prepare", "prepare_streamed"):
            self._ends.append(self._prepared(seq, message))
            self._prepares += 1
        self._state.follow(message)
        self._count += 1
        self._position = max(self._position, lsn, *(Lsn(each.end_lsn or 0) for each in self._reader.ended[-1:]))

    def __len__(self) -> int:
        return self._count

    @property
    def ended(self) -> Sequence[EndedTransaction]:
        """The transactions that have an outcome, whichever, in the order of their ends."""
        return self._reader.ended

    def order(self, two_phase_at: int | None = None) -> "_MessageOrder":
        """See Feed."""
        return self._orders(two_phase_at)

    @property
    def last_seq(self) -> int:
        """See Feed."""
        return self._count - 1

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

    def _prepared(self, seq: int, message: "PgoutputMessage") -> EndedTransaction:
        transaction = self._reader.prepared(said(message, "gid"))
        numbers = (int(said(message, role)) for role in ("lsn", "end_lsn", "time"))
        return EndedTransaction(seq, PREPARED, transaction, *numbers)


class _MessageOrder(Order):
    """The order of what is in a list, to which more is appended."""

    def __init__(self, ends: Sequence[EndedTransaction], two_phase_at: int | None) -> None:
        self._ends = ends
        self._two_phase_at = two_phase_at
        self._read = 0
        self._prepares: dict[str | None, EndedTransaction] = {}
        self._items: list[EndedTransaction] = []
        self._lock = Lock()

    def __len__(self) -> int:
        with self._lock:
            for ended in self._ends[self._read :]:
                self._take_in(ended)
        return len(self._items)

    def _take_in(self, ended: EndedTransaction) -> None:
        self._read += 1
        gid = ended.transaction.gid
        prepare = self._prepares.pop(gid, None) if gid is not None else None
        if ended.outcome == PREPARED:
            self._prepares[gid] = ended
        self._items += decoded(ended, prepare, self._two_phase_at)

    def __getitem__(self, index: int) -> EndedTransaction:
        return self._items[index]

    def __iter__(self) -> Iterator[EndedTransaction]:
        return (self._items[index] for index in range(len(self)))

    def after(self, lsn: int) -> int:
        """See Order."""
        following = (index for index in range(len(self)) if (self._items[index].end_lsn or 0) > lsn)
        return next(following, len(self._items))


class Script(MessageFeed):
    """Messages in memory, with faults between them."""

    def __init__(self, about: About) -> None:
        """Begin an empty one, which grows."""
        super().__init__(about, growing=True)
        self._faults: dict[int, list[Fault]] = {}
        self._created: list[Relation] = []

    def create(self, table: Relation) -> None:
        """List a table from now on, whether or not the stream describes it: as CREATE TABLE does at a server."""
        self._created.append(table)

    def published(self, publications: Collection[str]) -> Sequence[ListedTable]:
        """See Feed: tables are as the stream described them last, or as they were created."""
        described = described_tables(self.history, publications)
        oids, names = {table.relation_oid for table in described}, {(each.namespace, each.name) for each in described}
        created = listed_tables(list(self._created), publications)
        return [
            *described,
            *(each for each in created if each.relation_oid not in oids and (each.namespace, each.name) not in names),
        ]

    def fault(self, fault: Fault) -> None:
        """Let a fault show before whatever is added next."""
        self._faults.setdefault(len(self), []).append(fault)

    def next_fault(self, seq: int) -> Fault | None:
        """Return a fault that shows before the message of a seq, and has not been shown."""
        due = (each for at in sorted(self._faults) if at <= seq for each in self._faults[at])
        return next((each for each in due if not each.shown), None)
