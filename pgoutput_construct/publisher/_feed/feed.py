"""The pace of a stream: what is served stays as far apart as it was when it was committed."""

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pgoutput_construct.publisher.faults import Fault
from pgoutput_construct.publisher.published_tables import ListedTable, PublishedScope, described_tables
from pgoutput_construct.stream.relations import Description, RelationHistory
from pgoutput_construct.stream.transaction_reader import COMMITTED, EndedTransaction
from pgoutput_construct.wire.messages import PgoutputMessage
from pgoutput_construct.wire.types import Lsn

__all__ = ["COPIED", "FINISHED", "PREPARED", "About", "Fed", "Feed", "Missed", "Order", "Pace", "served"]


class Pace:
    """Tells when each transaction is due, for one client: the first one at once."""

    def __init__(self) -> None:
        self._begun: float | None = None
        """When the clock would have to show 2000-01-01 for all to be on time."""

    def wait(self, ended: EndedTransaction) -> float:
        """Return the seconds until a transaction is due, 0 for one that is; copies of tables have no time, and wait."""
        if not ended.time:
            return 0.0
        committed, now = ended.time / 1e6, time.monotonic()
        if self._begun is None:
            self._begun = now - committed
        return max(self._begun + committed - now, 0.0)


COPIED: Final = "copied"
"""The outcome of what is no transaction of the server: the rows of a table that was copied, served as one."""
PREPARED: Final = "prepared"
"""The outcome of a transaction at the place where it was prepared; its positions and time are those of its PREPARE."""
FINISHED: Final = "finished"
"""The outcome of a transaction that was served as prepared before: its COMMIT PREPARED, or ROLLBACK PREPARED."""


class Order(ABC):
    """What is served, in the order of its ends in the WAL; more may come behind it."""

    copies: Sequence[EndedTransaction] = ()
    """Those of the items that are copies of tables."""
    copied_until: int = -1
    """The seq of the latest copy of a table."""
    generation: int = 0
    """It is another one where the items are not what they were, with more behind them."""
    begins: int = 0
    """What ended up to this position is no longer there."""
    first_seq: int = 0
    """The seq of the first message that is there."""

    @abstractmethod
    def __len__(self) -> int:
        """Return how many items there are now."""

    @abstractmethod
    def __getitem__(self, place: int) -> EndedTransaction:
        """Return the item at a place; raise IndexError where there is none."""

    def __iter__(self) -> Iterator[EndedTransaction]:
        return (self[place] for place in range(len(self)))

    @abstractmethod
    def behind(self, position: int) -> int:
        """Return the place of the first item that ends behind a position, the number of items where none does."""

    def has_prepared(self, place: int) -> bool:
        """Return whether a transaction is prepared before a place, and ends behind it."""
        return False

    @property
    def end(self) -> int:
        """Where the last item ends, 0 for none."""
        return self[len(self) - 1].end_lsn or 0 if len(self) else 0

    @property
    def last_xid(self) -> int:
        """The greatest top-level xid, 0 for none."""
        return max((ended.transaction.xid for ended in self), default=0)


def served(
    ended: EndedTransaction, prepare: EndedTransaction | None, two_phase_at: int | None
) -> Iterator[EndedTransaction]:
    """Yield what is served at the place where a transaction ended, or was prepared.

    What was prepared before the slot knew of two phases is served completely before its COMMIT PREPARED, as
    ReorderBufferFinishPrepared() does; so is a transaction without changes, of which PostgreSQL 15 to 17 send nothing
    else (ReorderBufferReplay()).

    Args:
        ended: Where it ended, or was prepared.
        prepare: Of one that ended: where it was prepared; None where that is not known, or it never was.
        two_phase_at: The position behind which what is prepared is served as such; None: nowhere.
    """
    if two_phase_at is None or ended.transaction.gid is None:
        yield from (ended,) if ended.outcome == COMMITTED else ()
    elif ended.outcome == PREPARED:
        yield from (ended,) if (ended.end_lsn or 0) > two_phase_at else ()
    else:
        if ended.outcome == COMMITTED and (prepare is None or (prepare.end_lsn or 0) <= two_phase_at):
            # In the midst of the record of the commit: what is before that may end where it begins.
            yield ended._replace(outcome=PREPARED, end_lsn=(ended.commit_lsn or 0) + 1)
        yield ended._replace(outcome=FINISHED)


class Fed(NamedTuple):
    """One message, and where it stands."""

    seq: int
    """Its place in the feed."""
    lsn: Lsn
    """Its position in the WAL, 0/0 for a Relation and a Type."""
    message: PgoutputMessage
    scope: int | None = None
    """Where what describes its rows is looked for: in its stream, by the top-level xid; None outside of streams."""


class Missed(NamedTuple):
    """A table of which a client has ignored what it was sent."""

    relation_oid: int
    """The table."""
    copy: EndedTransaction | None
    """The latest copy of it that was sent; None where all of its rows are in transactions."""
    lack: str = ""
    """Why it cannot be served again, with the remedy."""
    name: tuple[str, str] | None = None
    """Schema and name that it has now, where it was renamed after rows of it; None where it was not."""
    renamed_at: int = 0
    """A position before which all transactions ended that have rows of it by another name."""


class CopiedTable(NamedTuple):
    """One table of what is served as a copy."""

    relation_oid: int
    """The table."""
    seq: int
    """The seq of its copy in the feed."""
    title: str
    """The table and the position of its copy, for people."""
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


class Feed(ABC):
    """Something that a publisher serves. It is read by the threads of several clients."""

    about: About
    history: RelationHistory
    """What describes the rows, at each place."""
    repeats = False
    """Whether it can serve again what a client has ignored of a table (``missed``)."""

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

    def committed_behind(self, copy: EndedTransaction | None, passed: int) -> Iterator[EndedTransaction]:
        """Yield the transactions behind a copy that committed up to a position, in the order of their commits.

        Where ``copy`` is None, these are all.
        """
        yield from ()

    def missed(self, relation_oid: int, after: int, two_phase_at: int | None) -> "Missed | None":
        """Return what a client must get again that has ignored a table up to a position; None for nothing."""
        return None

    def emptied(self, ended: EndedTransaction, two_phase_at: int | None) -> Mapping[int, bool]:
        """Return the OIDs of tables that were copied, and whether something of each may have come before its copy."""
        return {}

    def copied_tables(self, ended: EndedTransaction, two_phase_at: int | None) -> Sequence[CopiedTable]:
        """Return the tables of a copy; ``ended`` has the outcome COPIED."""
        return ()

    def is_retained(self, relation_oid: int, seq: int, publications: Collection[str]) -> bool:
        """Return whether the rows of a table outlast those of the source at who subscribes to some publications.

        So it is where these do not publish its deletes and truncates: then no copy may replace the rows either.
        """
        return False

    def next_fault(self, seq: int) -> Fault | None:
        """Return a fault that shows before the message of a seq, on purpose."""
        return None

    def is_copied(
        self, relation_oid: int, ended: EndedTransaction, two_phase_at: int | None, without: Collection[int] = ()
    ) -> bool:
        """Return whether what a transaction did to a table is in a copy of it that was served before.

        The copies of the seqs in ``without`` were not served.
        """
        return False

    def description(self, relation_oid: int, seq: int, stream_xid: int | None) -> Description:
        """Return what describes the rows of an OID at a place; raise ProtocolError where nothing does."""
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
        """Look for more; tell whether it may still come."""
        return False
