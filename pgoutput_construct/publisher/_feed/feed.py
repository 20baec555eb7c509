"""What a publisher serves: its items in their order, the messages of each, and what describes their rows."""

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from pgoutput_construct.changelog.decoding_order import PlacedCopies
from pgoutput_construct.publisher.faults import Fault
from pgoutput_construct.publisher.published_tables import ListedTable, PublishedScope, described_tables
from pgoutput_construct.stream.relations import Description, RelationHistory
from pgoutput_construct.stream.transaction_reader import EndedTransaction
from pgoutput_construct.wire.messages import PgoutputMessage  # noqa: TC001 - typing.get_type_hints() finds it
from pgoutput_construct.wire.options import LAYOUT_OPTIONS
from pgoutput_construct.wire.protocol import OPTIONS
from pgoutput_construct.wire.types import Lsn

__all__ = ["About", "CopiedTable", "Fed", "Feed", "Missed", "Order", "OrderItem", "Pace"]


class Pace:
    """Says when each transaction is due, for one client: the first one at once, the others as far apart as they were.

    The commit times of the feed's server decide.
    """

    def __init__(self) -> None:
        self._begun: tuple[float, int] | None = None
        """The time of the clock when the first one was due, in seconds, and its commit time, in microseconds."""

    def wait(self, item: "OrderItem") -> float:
        """Return the seconds until an item is due, 0 for one that is; copies of tables have no time, and are due."""
        if isinstance(item, PlacedCopies) or not item.time:
            return 0.0
        now = time.monotonic()
        begun, first = self._begun = self._begun or (now, item.time)
        # Times are subtracted as integers: those of two floats that are nearly equal would not be 0.
        return max(begun + (item.time - first) / 1e6 - now, 0.0)


OrderItem: TypeAlias = EndedTransaction | PlacedCopies
"""What is served as one transaction. The outcome of an EndedTransaction is COMMITTED, PREPARED or FINISHED."""


class Order(Protocol):
    """What is served, in its order (``changelog/timeline.py``); more items may follow later."""

    @property
    def copies(self) -> Sequence[PlacedCopies]:
        """The items that are copies of tables."""
        return ()

    @property
    def copied_until(self) -> int:
        """The seq of the latest copy of a table, -1 for none."""
        return -1

    @property
    def generation(self) -> int:
        """Changes when earlier items are replaced, not merely when more are appended."""
        return 0

    @property
    def begins(self) -> int:
        """The LSN up to which what ended was pruned."""
        return 0

    @property
    def first_seq(self) -> int:
        """The seq of the first message."""
        return 0

    def __len__(self) -> int:
        """Return how many items there are now."""

    def __getitem__(self, index: int) -> OrderItem:
        """Return the item at an index; raise IndexError where there is none."""

    def __iter__(self) -> Iterator[OrderItem]:
        return (self[index] for index in range(len(self)))

    def after(self, lsn: int) -> int:
        """Return the index of the first item that ends after an LSN, the number of items where none does."""

    def has_prepared(self, index: int) -> bool:
        """Return whether a transaction is prepared before an item, and ends with it or after it."""
        return False

    @property
    def end(self) -> int:
        """The LSN at which the last item ends, 0 for none."""
        return self[len(self) - 1].end_lsn or 0 if len(self) else 0

    @property
    def last_xid(self) -> int:
        """The greatest top-level xid, 0 for none."""
        return max((item.transaction.xid for item in self if isinstance(item, EndedTransaction)), default=0)


class Fed(NamedTuple):
    """One message of a feed."""

    seq: int
    """Its seq."""
    lsn: Lsn
    """Its LSN, 0/0 for a Relation and a Type."""
    message: "PgoutputMessage"
    scope: int | None = None
    """Where what describes its rows is looked up: in its stream, by the top-level xid; None outside of streams."""


class Missed(NamedTuple):
    """A table whose changes were sent, but ignored by the client."""

    relation_oid: int
    """The table."""
    copy: PlacedCopies | None
    """The latest copy of it that was sent; None where all of its rows are in transactions."""
    lack: str = ""
    """Why it cannot be served again, with the remedy."""
    name: tuple[str, str] | None = None
    """Schema and name that it has now, where it was renamed after rows of it; None where it was not."""
    renamed_at: int = 0
    """An LSN before which all transactions ended that have rows of it by another name."""


class CopiedTable(NamedTuple):
    """One table of what is served as a copy."""

    relation_oid: int
    """The table."""
    seq: int
    """The seq of its copy in the feed."""
    title: str
    """The table and the LSN of its copy, for people."""
    came_before: bool
    """Whether rows of the table may have been served before."""


@dataclass(frozen=True)
class About:
    """The server that a feed comes from, or that it stands for."""

    server_version: int
    """Such as 180004 for 18.4."""
    system_identifier: str
    database: str
    timeline: int
    publications: tuple[str, ...]
    """Names of the publications; empty: of any name."""
    layout: dict[str, Any]
    """The options under which its messages were laid out: the keywords of Session."""

    def is_laid_out_by(self, options: Mapping[str, Any]) -> bool:
        """Return whether its messages were laid out under the options of a client, who gets them as they were sent."""
        own = {name: self.layout.get(name, OPTIONS[name].default) for name in LAYOUT_OPTIONS}
        return bool(self.layout) and own == {name: options[name] for name in LAYOUT_OPTIONS}


class Feed(ABC):
    """Something that a publisher serves. It is read by the threads of several clients."""

    about: About
    history: RelationHistory
    """What describes the rows at each seq."""
    repeats = False
    """Whether it can serve again what a client has ignored of a table (``missed``)."""

    @abstractmethod
    def order(self, two_phase_at: int | None = None) -> Order:
        """Return what is served of it, as it is now.

        Args:
            two_phase_at: What was prepared after this LSN is served as prepared; None: when it has committed.
        """

    @property
    @abstractmethod
    def position(self) -> Lsn:
        """All transactions that ended before this LSN are in the feed."""

    @property
    @abstractmethod
    def last_seq(self) -> int:
        """The seq of the last message, -1 for none."""

    @abstractmethod
    def read(self, first: int, last: int) -> Iterator[Fed]:
        """Yield the messages from one seq to another, both included."""

    def copied(self, item: PlacedCopies) -> Iterator[Fed]:
        """Yield the rows of tables that were copied, as Inserts."""
        yield from ()

    def committed_after(self, copy: PlacedCopies | None, lsn: int) -> Iterator[EndedTransaction]:
        """Yield the transactions after a copy that committed up to an LSN, in the order of their commits.

        Where ``copy`` is None, these are all.
        """
        yield from ()

    def missed(self, relation_oid: int, after: int, two_phase_at: int | None) -> Missed | None:
        """Return what a client must get again that has ignored a table up to an LSN; None for nothing.

        Args:
            relation_oid: The table.
            after: The LSN.
            two_phase_at: That of the client; see ``order``.
        """
        return None

    def emptied(self, item: PlacedCopies) -> Mapping[int, bool]:
        """Return the OIDs of tables that were copied, and whether something of each may have come before its copy."""
        return item.emptied

    def copied_tables(self, item: PlacedCopies, two_phase_at: int | None) -> Sequence[CopiedTable]:
        """Return the tables of a copy, in the order of a client (see ``order``)."""
        return ()

    def is_retained(self, relation_oid: int, seq: int, publications: Collection[str]) -> bool:
        """Return whether the rows of a table outlast those of the source at who subscribes to some publications.

        So it is where these do not publish its deletes and truncates: then no copy may replace the rows either.

        Args:
            relation_oid: The table.
            seq: The seq at which the publications are looked up.
            publications: Their names.
        """
        return False

    def next_fault(self, seq: int) -> Fault | None:
        """Return a fault that shows before the message of a seq, on purpose."""
        return None

    def is_copied(
        self, relation_oid: int, ended: EndedTransaction, two_phase_at: int | None, without: Collection[int] = ()
    ) -> bool:
        """Return whether what a transaction did to a table is in a copy of it that was served before.

        Args:
            relation_oid: The table.
            ended: The transaction.
            two_phase_at: That of the client; see ``order``.
            without: The seqs of copies that the client was not served.
        """
        return False

    def awaited(self, relation_oid: int, ended: EndedTransaction, two_phase_at: int | None) -> int | None:
        """Return the seq of the first copy of a table where it follows, and has what a transaction did to the table.

        Args:
            relation_oid: The table.
            ended: The transaction.
            two_phase_at: That of the client; see ``order``.

        Returns:
            None where no copy follows, or where the feed has the table from its first row on without one.
        """
        return None

    def description(self, relation_oid: int, seq: int, stream_xid: int | None) -> Description:
        """Return what describes the rows of an OID at a seq; raise ProtocolError where nothing does."""
        history = self.history  # which may be exchanged meanwhile
        return history.descriptions[history.index(relation_oid, seq, stream_xid)]

    def published(self, publications: Collection[str]) -> Sequence[ListedTable]:
        """Return the tables of some publications, each as often as a publication lists it."""
        return described_tables(self.history, publications)

    def described_names(self) -> Mapping[int, Collection[tuple[str, str]]]:
        """Return by which schemas and names the rows of each OID are described."""
        found: dict[int, set[tuple[str, str]]] = {}
        for each in list(self.history.descriptions):
            relation = each.relation
            found.setdefault(relation.relation_oid, set()).add((relation.namespace or "pg_catalog", relation.name))
        return found

    def operations(self, publication: str) -> Sequence[str]:
        """Return which of insert, update, delete and truncate a publication publishes."""
        return ("insert", "update", "delete", "truncate")

    def scope(self, publications: Collection[str]) -> PublishedScope | None:
        """Return what some publications publish of what it has; None for all of it.

        Raises Refusal where it cannot be served as these alone would have it.
        """
        return None

    def lacks(self) -> Sequence[str]:
        """Return what its tables lack, in words, with the remedy."""
        return ()

    def refresh(self) -> bool:
        """Look for more; return whether more may come."""
        return False
