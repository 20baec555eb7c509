"""A transaction as a log has it: where it stands, what of it was rolled back, and how it ended."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

__all__ = [
    "ABORTED",
    "COMMITTED",
    "FINISHED",
    "PREPARED",
    "ROLLED_BACK",
    "EndedTransaction",
    "LoggedTransaction",
    "decoded",
]


@dataclass(slots=True)
class LoggedTransaction:
    """A transaction of a log, as far as it has been read."""

    xid: int
    """Top-level transaction ID."""
    streamed: bool = False
    """Whether it came in streams, before its end."""
    final_lsn: int | None = None
    """What its Begin says of its commit record; None for one that was streamed or prepared."""
    gid: str | None = None
    """The name under which it is prepared, or is being prepared."""
    spans: list[tuple[int, int]] = field(default_factory=list)
    """Where it stands in the log: the first and last positions of each piece."""
    aborted: set[int] = field(default_factory=set)
    """Its subtransactions that were rolled back."""
    since: int | None = None
    """Where the piece begins that is open now; None between two of them."""

    @property
    def stream_xid(self) -> int:
        """The top-level xid of its streams, -1 for one that was not streamed."""
        return self.xid if self.streamed else -1

    @property
    def first_seq(self) -> int:
        """Where it begins in the log."""
        return min(first for first, _ in (*self.spans, *([] if self.since is None else [(self.since, 0)])))


COMMITTED: Final = "committed"
ABORTED: Final = "aborted"
ROLLED_BACK: Final = "rolled back"
PREPARED: Final = "prepared"
"""The outcome of a transaction where it was prepared; its LSNs and time are those of its PREPARE."""
FINISHED: Final = "finished"
"""The outcome of a transaction that was sent as prepared before: its COMMIT PREPARED, or ROLLBACK PREPARED."""


class EndedTransaction(NamedTuple):
    """A transaction whose outcome the log says."""

    seq: int
    """Position of the message that says it."""
    outcome: str
    """COMMITTED; ABORTED for one that was rolled back; ROLLED_BACK for one that was prepared before. What a slot sends
    of one that was prepared (``decoded``): PREPARED, then FINISHED."""
    transaction: LoggedTransaction
    """What ended."""
    commit_lsn: int | None
    """LSN of the commit record; of what ended it otherwise, None where the server does not say."""
    end_lsn: int | None
    """End of that record."""
    time: int | None
    """When it ended: microseconds since 2000-01-01 UTC."""


def decoded(
    ended: EndedTransaction, prepare: EndedTransaction | None, two_phase_at: int | None
) -> Iterator[EndedTransaction]:
    """Yield what a slot sends where a transaction ended, or was prepared.

    What was prepared before the slot had two phases is sent completely before its COMMIT PREPARED, as
    ReorderBufferFinishPrepared() does; so is a transaction without changes, of which PostgreSQL 15 to 17 send nothing
    else (ReorderBufferReplay()).

    Args:
        ended: The end of the transaction, or where it was prepared.
        prepare: Of one that ended: where it was prepared; None where that is not known, or it never was.
        two_phase_at: The LSN after which what is prepared is sent as prepared; None: nothing is.
    """
    if two_phase_at is None or ended.transaction.gid is None:
        yield from (ended,) if ended.outcome == COMMITTED else ()
    elif ended.outcome == PREPARED:
        yield from (ended,) if (ended.end_lsn or 0) > two_phase_at else ()
    else:
        if ended.outcome == COMMITTED and (prepare is None or (prepare.end_lsn or 0) <= two_phase_at):
            # Within the record of the commit: what is before that may end where it begins.
            yield ended._replace(outcome=PREPARED, end_lsn=(ended.commit_lsn or 0) + 1)
        yield ended._replace(outcome=FINISHED)
