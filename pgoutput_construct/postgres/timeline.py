"""Whether a server's history is the log's: after a failover or a restore a position may mean another change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pgoutput_construct.postgres.gaps import LogGapError
from pgoutput_construct.postgres.queries import Connection, fetch_row
from pgoutput_construct.wire import Lsn

__all__ = ["Timeline", "check_timeline", "parse_history", "read_timeline"]

_REMEDY = (
    "; begin a new log in an empty directory, with a new slot and an initial copy of the tables, or have all tables "
    "copied again into this one (--on-lost-slot snapshot, on_lost_slot='snapshot'; to keep standbys ahead of the "
    "readers of slots, name their physical slots in synchronized_standby_slots, PostgreSQL 17)"
)


@dataclass(frozen=True)
class Timeline:
    """One line of a cluster's WAL: a promotion, or a restore to an earlier moment, begins a new one."""

    number: int
    """The timeline on which the server is."""
    ends: Mapping[int, Lsn] = field(default_factory=dict)
    """The timelines from which it descends, and where it left each of them."""


def read_timeline(connection: Connection, number: int) -> Timeline:
    """Ask a replication connection for the history of timeline ``number``, which is its server's (IDENTIFY_SYSTEM).

    Source: PostgreSQL documentation, "Streaming Replication Protocol", TIMELINE_HISTORY. The first timeline has none.
    """
    if number <= 1:
        return Timeline(number)
    doing = f"the history of timeline {number} cannot be read; restore its file (pg_wal/*.history)"
    return Timeline(number, parse_history(fetch_row(connection, f"TIMELINE_HISTORY {number}", doing=doing)[1]))


def parse_history(content: Any) -> dict[int, Lsn]:
    """Read a history file: a line per earlier timeline, with its number, where it was left, and the reason."""
    text = bytes(content).decode("utf-8", "replace") if isinstance(content, bytes | memoryview) else str(content)
    lines = (line.split() for line in text.splitlines())
    return {int(words[0]): Lsn(words[1]) for words in lines if len(words) > 1 and not words[0].startswith("#")}


def check_timeline(server: Timeline, logged: int | None, position: Lsn, log: object) -> None:
    """Raise LogGapError unless ``position``, which ``log`` reached on timeline ``logged``, is in the server's past.

    ``logged`` is None for a log that does not say: then only positions can be compared.
    """
    if logged is None or logged == server.number:
        return
    end = server.ends.get(logged)
    if end is None:
        raise LogGapError(
            f"the log in {log} is on timeline {logged}, from which the server's timeline {server.number} does not "
            f"descend: it is not the server that was captured, such as an old primary after a failover{_REMEDY}",
            void_after=Lsn(0),
        )
    if position > end:
        raise LogGapError(
            f"the log in {log} ends at {position} on timeline {logged}, but the server left that timeline at {end} for "
            f"timeline {server.number}: it was promoted or restored before it had received {position - end} bytes that "
            f"the log holds, and wrote other changes in their place{_REMEDY}",
            void_after=end,
        )
