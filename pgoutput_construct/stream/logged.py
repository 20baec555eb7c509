"""A transaction as a log has it: where it stands, what of it was rolled back, and how it ended."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

__all__ = ["ABORTED", "COMMITTED", "ROLLED_BACK", "EndedTransaction", "LoggedTransaction"]


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


class EndedTransaction(NamedTuple):
    """A transaction whose outcome the log says."""

    seq: int
    """Position of the message that says it."""
    outcome: str
    """COMMITTED; ABORTED for one that was rolled back; ROLLED_BACK for one that was prepared before."""
    transaction: LoggedTransaction
    """What ended."""
    commit_lsn: int | None
    """LSN of the commit record; of what ended it otherwise, None where the server does not say."""
    end_lsn: int | None
    """End of that record."""
    time: int | None
    """When it ended: microseconds since 2000-01-01 UTC."""
