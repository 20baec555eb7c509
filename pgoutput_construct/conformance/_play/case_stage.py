"""What is known of a client while a case is played: its connections, what it confirmed, and what it did wrong."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from pgoutput_construct.conformance.conformance_case import ConformanceCase, Play
from pgoutput_construct.wire.types import Lsn

__all__ = ["CaseStage", "StreamLog"]


@dataclass
class StreamLog:
    """One START_REPLICATION of a client."""

    start: Lsn
    """The LSN from which it was sent the script."""
    sent: int = 0
    """The number of steps that were taken, or skipped."""
    dropped: bool = False
    """Whether the publisher ended it."""
    left: bool = False
    """Whether the client ended it."""


@dataclass
class CaseStage:
    """What is known of a client; written in the publisher's thread, and read in the one that judges."""

    case: ConformanceCase
    count_reported: Callable[[], int]
    """Returns the number of transactions that the client has reported completely, reading all that it has written."""
    connections: int = 0
    """The number of connections that were accepted, queries included."""
    streams: list[StreamLog] = field(default_factory=list)
    taken: set[int] = field(default_factory=set)
    """The indexes of steps that are taken once, and were."""
    sent: Counter[int] = field(default_factory=Counter)
    """How often each unit was sent completely."""
    problems: list[str] = field(default_factory=list)
    """What the client has done wrong so far, apart from what it reported."""
    inapplicable: str = ""
    """Why the case says nothing about this client."""
    refused_on_purpose: int = 0
    """The number of sessions and streams that the case's server refused."""
    refusals: list[str] = field(default_factory=list)
    """Errors that the client was sent."""
    is_played: bool = False
    """Whether the script has been played to its end."""
    confirmed: int = 0
    """What the client has confirmed."""
    last_drop: float = 0.0
    """When the publisher ended a connection last, by the monotonic clock."""

    @property
    def play(self) -> Play:
        """What is played."""
        return self.case.play

    def dropped(self, stream: StreamLog) -> None:
        """Note that the publisher ends a connection."""
        stream.dropped = True
        self.last_drop = time.monotonic()

    def status(self, flush: Lsn) -> None:
        """Note what a client confirms, and whether it may."""
        if flush <= self.confirmed:
            return
        self.confirmed = flush
        if not self.play.stores:
            return
        ended = [each for each in self.play.transactions if self.play.ends[each.unit] <= flush]
        if len(ended) > (reported := self.count_reported()):
            self.problems.append(
                f"it confirmed {flush} when it had reported {reported} of the {len(ended)} transactions up to there: a "
                "crash at this point would lose the others"
            )

    def problem(self, text: str) -> None:
        """Note what the client has done wrong."""
        self.problems.append(text)
