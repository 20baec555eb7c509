"""Faults that a publisher shows on purpose: what a real server or network shows once a year."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.wire.connection import build_connection
from pgoutput_construct.wire.connection_messages import CopyData
from pgoutput_construct.wire.engine import build_frame
from pgoutput_construct.wire.frames import XLogData
from pgoutput_construct.wire.types import Lsn, Timestamp

if TYPE_CHECKING:
    from pgoutput_construct.publisher.walsender import WalSender

__all__ = ["FAULTS", "Fault"]


@dataclass
class Fault:
    """One fault, at one place of what is served; it shows once."""

    name: str
    """One of FAULTS."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    shown: bool = False

    def __post_init__(self) -> None:
        if self.name not in FAULTS:
            raise PgoutputError(f"there is no fault {self.name!r}: the faults are {', '.join(FAULTS)}")

    async def show(self, sender: "WalSender") -> None:
        """Show it to a client."""
        self.shown = True
        await FAULTS[self.name](sender, **self.arguments)


async def _cut(sender: "WalSender") -> None:
    """Close the connection, as a network does."""
    sender.abort()


async def _cut_inside(sender: "WalSender") -> None:
    """Send half of a message, then close the connection."""
    frame = XLogData(Lsn(0), Lsn(0), Timestamp.now(), bytes(100))
    data = build_connection(CopyData(build_frame(frame, **sender.layout)))
    await sender.write(data[: len(data) // 2])
    sender.abort()


async def _stall(sender: "WalSender", seconds: float = 5.0) -> None:
    """Send nothing for a while, not even keepalives."""
    await sender.stall(seconds)


async def _storm(sender: "WalSender", count: int = 1000) -> None:
    """Send many keepalives at once."""
    for _ in range(count):
        await sender.keepalive(asks=False)


async def _demand(sender: "WalSender") -> None:
    """Send a keepalive that asks for a reply at once."""
    await sender.keepalive(asks=True)


async def _empty(sender: "WalSender") -> None:
    """Send a frame without a payload, as PostgreSQL 13 could."""
    frame = XLogData(Lsn(0), Lsn(0), Timestamp.now(), b"")
    await sender.write(build_connection(CopyData(build_frame(frame, **sender.layout))))


async def _clock(sender: "WalSender", seconds: float = -3600.0) -> None:
    """Move the clock of the server: from here on its times are others."""
    sender.move_clock(seconds)


async def _error(sender: "WalSender", sqlstate: str = "XX000", message: str = "an error on purpose") -> None:
    """End the connection with an error."""
    raise Refusal(sqlstate, message, fatal=True)


FAULTS: Final[Mapping[str, Callable[..., Awaitable[None]]]] = {
    "cut": _cut,
    "cut inside a message": _cut_inside,
    "stall": _stall,
    "keepalive storm": _storm,
    "keepalive that demands a reply": _demand,
    "empty payload": _empty,
    "clock going back": _clock,
    "error": _error,
}
"""What each fault does to the connection of a client."""
