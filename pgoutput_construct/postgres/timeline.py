"""Whether a server's history is the log's: after a failover or a restore a position may mean another change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.postgres.gaps import REMEDY, LogGapError
from pgoutput_construct.postgres.queries import Connection, fetch_row
from pgoutput_construct.wire import Lsn

__all__ = ["Timeline", "check_timeline", "parse_history", "read_timeline"]

_REMEDY = (
    f"; {REMEDY} (to keep standbys ahead of the readers of slots, name their physical slots in "
    "synchronized_standby_slots, PostgreSQL 17)"
)


@dataclass(frozen=True)
class Timeline:
    """One line of a cluster's WAL: a promotion, or a restore to an earlier moment, begins a new one."""

    number: int
    """The timeline on which the server is."""
    ends: Mapping[int, Lsn] = field(default_factory=dict)
    """The timelines from which it descends, and where it left each of them."""
    problem: ReplicationError | None = None
    """Why the history is not known; None where it is."""

    def origin(self, number: int) -> str | None:
        """Return where a timeline of this history began: the one before it and the position, empty for the first.

        None where the history is not known.
        """
        if self.problem is not None:
            return None
        parent = max((earlier for earlier in self.ends if earlier < number), default=None)
        return "" if parent is None else f"{parent} {self.ends[parent]}"


def read_timeline(connection: Connection, number: int) -> Timeline:
    """Ask a replication connection for the history of timeline ``number``, which is its server's (IDENTIFY_SYSTEM).

    Source: PostgreSQL documentation, "Streaming Replication Protocol", TIMELINE_HISTORY. The first timeline has none. A
    server runs without the file of its own timeline, too: then the history has a ``problem``.
    """
    if number <= 1:
        return Timeline(number)
    doing = f"the history of timeline {number} cannot be read; restore its file (pg_wal/*.history)"
    try:
        return Timeline(number, parse_history(fetch_row(connection, f"TIMELINE_HISTORY {number}", doing=doing)[1]))
    except ReplicationError as error:
        if error.transient:
            raise
        return Timeline(number, problem=error)


def parse_history(content: Any) -> dict[int, Lsn]:
    """Read a history file: a line per earlier timeline, with its number, where it was left, and the reason."""
    text = bytes(content).decode("utf-8", "replace") if isinstance(content, bytes | memoryview) else str(content)
    lines = (line.split() for line in text.splitlines())
    return {int(words[0]): Lsn(words[1]) for words in lines if len(words) > 1 and not words[0].startswith("#")}


def check_timeline(server: Timeline, logged: int, origin: str | None, position: Lsn, log: object) -> None:
    """Check that a position, which a log reached on a timeline, is in the server's past.

    Args:
        server: The history of the server.
        logged: The number of the log's timeline.
        origin: Where that one began (``Timeline.origin``); None for a log that does not have it: numbers alone are
            compared then, though each standby that is promoted takes the next number, whatever others did.
        position: The end of the log.
        log: Its address, for the error.

    Raises:
        LogGapError: It is not.
        ReplicationError: The timelines are different ones, and the server's history is not known.
    """
    if server.problem is not None:
        if logged != server.number:
            raise server.problem
        return
    if logged != server.number and logged not in server.ends:
        raise LogGapError(
            f"the log in {log} is on timeline {logged}, from which the server's timeline {server.number} does not "
            f"descend: it is not the server that was captured, such as an old primary after a failover{_REMEDY}",
            void_after=Lsn(0),
        )
    own = server.origin(logged)
    if origin is not None and own is not None and origin != own:
        raise LogGapError(
            f"the log in {log} is on a timeline {logged} that {_beginning(origin)}, the server's timeline {logged} "
            f"{_beginning(own)}: another standby was promoted, whose changes are not those of the log{_REMEDY}",
            void_after=_common(origin, own),
        )
    end = server.ends.get(logged)
    if end is not None and position > end:
        raise LogGapError(
            f"the log in {log} ends at {position} on timeline {logged}, but the server left that timeline at {end} for "
            f"timeline {server.number}: it was promoted or restored before it had received {position - end} bytes that "
            f"the log holds, and wrote other changes in their place{_REMEDY}",
            void_after=end,
        )


def _beginning(origin: str) -> str:
    """Describe where a timeline began."""
    number, _, lsn = origin.partition(" ")
    return f"left timeline {number} at {lsn}" if origin else "is the first one"


def _common(one: str, other: str) -> Lsn:
    """Return the position up to which two timelines have the same past, 0/0 where that is not known."""
    (number, _, lsn), (same, _, end) = one.partition(" "), other.partition(" ")
    return min(Lsn(lsn), Lsn(end)) if number and number == same else Lsn(0)
