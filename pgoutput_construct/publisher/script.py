"""A script: messages and faults in one order."""

from collections.abc import Collection, Sequence

from pgoutput_construct.publisher.faults import Fault
from pgoutput_construct.publisher.feed import About
from pgoutput_construct.publisher.message_feed import MessageFeed
from pgoutput_construct.publisher.published_tables import ListedTable, described_tables, listed_tables
from pgoutput_construct.wire.messages import Relation

__all__ = ["Script"]


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
