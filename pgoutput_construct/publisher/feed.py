"""What a publisher serves: messages in their order, the transactions among them, and what describes their rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pgoutput_construct.publisher.order import Order
from pgoutput_construct.stream.logged import EndedTransaction
from pgoutput_construct.stream.relations import Description, RelationHistory
from pgoutput_construct.wire.messages import PgoutputMessage
from pgoutput_construct.wire.types import Lsn

if TYPE_CHECKING:
    from pgoutput_construct.publisher.faults import Fault

__all__ = ["About", "Fed", "Feed"]


class Fed(NamedTuple):
    """One message, and where it stands."""

    seq: int
    """Its place in the feed."""
    lsn: Lsn
    """Its position in the WAL, 0/0 for a Relation and a Type."""
    message: PgoutputMessage
    scope: int | None = None
    """Where what describes its rows is looked for: in its stream, by the top-level xid; None outside of streams."""


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


class Feed(ABC):
    """Something that a publisher serves. It is read by the threads of several clients."""

    about: About
    history: RelationHistory
    """What describes the rows, at each place."""

    @abstractmethod
    def order(self, two_phase_at: int | None = None) -> Order:
        """Return what is served of it, as it is now.

        Args:
            two_phase_at: What was prepared behind this position is served as prepared; None: when it has committed.
        """

    @property
    @abstractmethod
    def position(self) -> Lsn:
        """All transactions that ended before this position are there."""

    @property
    @abstractmethod
    def last_seq(self) -> int:
        """The seq of the last message that is there, -1 for none."""

    @abstractmethod
    def read(self, first: int, last: int) -> Iterator[Fed]:
        """Yield the messages from one seq to another, both included."""

    def copied(self, ended: EndedTransaction, two_phase_at: int | None) -> Iterator[Fed]:
        """Yield the rows of tables that were copied, as Inserts; ``ended`` has the outcome COPIED."""
        yield from ()

    def committed_behind(self, copy: EndedTransaction, passed: int) -> Iterator[EndedTransaction]:
        """Yield the transactions behind a copy that committed up to a position, in the order of their commits."""
        yield from ()

    def emptied(self, ended: EndedTransaction, two_phase_at: int | None) -> Mapping[int, bool]:
        """Return the OIDs of tables that were copied, and whether something of each may have come before its copy."""
        return {}

    def next_fault(self, seq: int) -> "Fault | None":
        """Return a fault that shows before the message of a seq, on purpose."""
        return None

    def is_copied(self, relation_oid: int, ended: EndedTransaction, two_phase_at: int | None) -> bool:
        """Tell whether what a transaction did to a table is in a copy of it that was served before."""
        return False

    def description(self, relation_oid: int, seq: int, stream_xid: int | None) -> Description:
        """Return what describes the rows of an OID at a place; raise ProtocolError where nothing does."""
        history = self.history  # which may be exchanged meanwhile
        return history.descriptions[history.index(relation_oid, seq, stream_xid)]

    def tables(self) -> Sequence[tuple[str, str, Sequence[str]]]:
        """Return the tables that it has: schema, name and columns, as they were described last.

        Of tables that had one name one after the other, the last one has it.
        """
        latest = {each.relation.relation_oid: each for each in self.history.descriptions}
        in_order = (each.relation for each in sorted(latest.values(), key=lambda each: each.seq))
        named = {(r.namespace or "pg_catalog", r.name): [column.name for column in r.columns] for r in in_order}
        return [(namespace, name, columns) for (namespace, name), columns in named.items()]

    def lacks(self) -> Sequence[str]:
        """Return what its tables lack, in words, with the remedy."""
        return ()

    def refresh(self) -> bool:
        """Look for more; tell whether it may still come."""
        return False
