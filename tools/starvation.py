"""Processes that compete for the CPUs, and measurements of a client among them."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from pgoutput_construct.demo.processes import running
from pgoutput_construct.demo.server import EmbeddedServer
from tools.background import in_background

__all__ = ["Statuses", "busy_loops", "watched_statuses"]

_SECONDS = 0.02
"""Seconds between two looks at the server."""
# A client that has sent nothing yet has been connected since then.
_SILENT = """SELECT pid, extract(epoch FROM clock_timestamp() - greatest(reply_time, backend_start))::float8
    FROM pg_stat_replication WHERE state = 'streaming' OR reply_time IS NOT NULL OR state = 'catchup'"""


@contextmanager
def busy_loops(per_core: int) -> Iterator[None]:
    """Run processes that never wait, ``per_core`` for each processor, until the block ends."""
    with ExitStack() as loops:
        for _ in range(per_core * (os.cpu_count() or 1)):
            loops.enter_context(running("-c", "while True: pass"))
        yield


@dataclass
class Statuses:
    """The status updates of clients, as the server sees them."""

    longest: float = 0.0
    """The longest silence of a client, in seconds."""
    walsenders: set[int] = field(default_factory=set)
    """The process IDs of those that streamed: one for each connection."""


@contextmanager
def watched_statuses(server: EmbeddedServer) -> Iterator[Statuses]:
    """Look at the walsenders of a server until the block ends (pg_stat_replication.reply_time)."""
    found = Statuses()

    def look(done: threading.Event) -> None:
        with server.connect() as connection:
            while not done.is_set():
                for pid, seconds in connection.execute(_SILENT).fetchall():
                    found.walsenders.add(pid)
                    found.longest = max(found.longest, seconds)
                time.sleep(_SECONDS)

    with in_background(look):
        yield found
