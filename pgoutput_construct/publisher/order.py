"""What a client is served, one after the other: transactions at the places of their ends, what is prepared, copies."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Final

from pgoutput_construct.stream.logged import COMMITTED, EndedTransaction

__all__ = ["COPIED", "FINISHED", "PREPARED", "Order", "served"]

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
        """Tell whether a transaction is prepared before a place, and ends behind it."""
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
