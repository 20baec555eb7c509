"""How a verification proceeds: how long it waits, and how large the parts are that it compares."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from pgoutput_construct.changelog._notes.confirmation_note import read_note
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.wire import Lsn

__all__ = ["PAUSE", "Pace", "wait_for_log"]

PAUSE: Final = 0.5
"""Seconds between two looks at what is waited for."""


@dataclass(frozen=True)
class Pace:
    """How a verification proceeds."""

    wait: float = 600.0
    """For how many seconds it waits for the log, and for the warehouse, to come far enough."""
    rows: int = 50_000
    """How many rows a part has."""
    parts: int = 1000
    """How many ranges are compared before that is written down."""
    tell: Callable[[str], None] = field(default=lambda text: None)
    """Called with what is being waited for."""
    compared: Callable[[str, int, int], None] = field(default=lambda table, rows, total: None)
    """Called with a table, how many of its rows were compared, and how many rows the warehouse has of it."""


def wait_for_log(address: Address, lsn: Lsn, pace: Pace) -> None:
    """Wait until the log has all that the server committed before a position."""
    deadline = time.monotonic() + pace.wait
    while (reached := _reached(address)) < lsn:
        if time.monotonic() >= deadline:
            raise PgoutputError(
                f"the log has all up to {reached}, the server's snapshot is at {lsn}, and that was not reached in "
                f"{pace.wait:g} seconds: is its capture running? Give it more time with --wait"
            )
        pace.tell(f"the log is at {reached}, waiting for {lsn}")
        time.sleep(PAUSE)


def _reached(address: Address) -> Lsn:
    # The note first: segments that come between both say more, not less.
    note, log = read_note(open_store(address)), ChangeLog(address)
    return note.reached(log.segments[-1])
