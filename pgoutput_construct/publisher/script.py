"""A script: messages and faults in one order."""

from pgoutput_construct.publisher.faults import Fault
from pgoutput_construct.publisher.feed import About
from pgoutput_construct.publisher.message_feed import MessageFeed

__all__ = ["Script"]


class Script(MessageFeed):
    """Messages in memory, with faults between them."""

    def __init__(self, about: About) -> None:
        """Begin an empty one, which grows."""
        super().__init__(about, growing=True)
        self._faults: dict[int, list[Fault]] = {}

    def fault(self, fault: Fault) -> None:
        """Let a fault show before whatever is added next."""
        self._faults.setdefault(len(self), []).append(fault)

    def next_fault(self, seq: int) -> Fault | None:
        """Return a fault that shows before the message of a seq, and has not been shown."""
        due = (each for at in sorted(self._faults) if at <= seq for each in self._faults[at])
        return next((each for each in due if not each.shown), None)
