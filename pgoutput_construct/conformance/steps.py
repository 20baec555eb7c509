"""The steps of a case's script: what a publisher sends, and what it waits for, in order.

Messages belong to a *unit*: what is confirmed as a whole, such as a transaction, or the part of it up to its PREPARE.
On each connection the script is played from its beginning: messages of units that end at or before the LSN from which
the client reads are skipped, as a server does (``SnapBuildXactNeedsSkip()``), and every other step is taken once, on
the first connection that comes to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, Literal, TypeAlias

from pgoutput_construct.wire.types import Lsn

__all__ = [
    "DropConnection",
    "ExpectConfirmed",
    "ExpectHeld",
    "ExpectReply",
    "ExpectReported",
    "SendBytes",
    "SendCopyData",
    "SendKeepalive",
    "SendMessage",
    "SplitWrites",
    "StaySilent",
    "Step",
    "step_from_json",
    "step_to_json",
]

_NOWHERE: Final = Lsn(0)


@dataclass(frozen=True, slots=True)
class SendMessage:
    """An XLogData frame with a message, or with bytes that are none."""

    KIND: ClassVar = "message"
    payload: bytes
    lsn: Lsn = _NOWHERE
    """The frame's wal_start and wal_end: 0/0 for what describes tables, as a server has it."""
    unit: int | None = None
    """The unit that it belongs to; None: it is sent on each connection."""
    needs: tuple[str, ...] = ()
    """The descriptions that precede it, unless the last of their table on this connection are the same."""
    only: Literal["", "first", "later"] = ""
    """Whether only the first connection gets it, or only the later ones."""


@dataclass(frozen=True, slots=True)
class SendKeepalive:
    """A primary keepalive."""

    KIND: ClassVar = "keepalive"
    wal_end: Lsn
    reply_requested: bool = False


@dataclass(frozen=True, slots=True)
class SendCopyData:
    """A CopyData message with any content."""

    KIND: ClassVar = "copy_data"
    data: bytes
    again: bool = False
    """Whether each connection gets it, not only the first one that comes to it."""


@dataclass(frozen=True, slots=True)
class SendBytes:
    """Bytes on the connection, outside of any frame."""

    KIND: ClassVar = "bytes"
    data: bytes
    again: bool = False
    """As of SendCopyData."""


@dataclass(frozen=True, slots=True)
class DropConnection:
    """The end of a connection."""

    KIND: ClassVar = "drop"
    how: Literal["reset", "close", "copy_done"] = "reset"
    """By a TCP reset, in order, or after CopyDone and CommandComplete as a server does that is shut down."""
    forgets: bool = False
    """Whether the slot returns to its first LSN, as in a crash: what clients confirm is durable at a checkpoint."""


@dataclass(frozen=True, slots=True)
class StaySilent:
    """Nothing is sent for some seconds; a client may leave, and connect again."""

    KIND: ClassVar = "silence"
    seconds: float
    until_left: bool = False
    """Whether the client must leave within these seconds: the link is half open."""


@dataclass(frozen=True, slots=True)
class SplitWrites:
    """From here on, bytes are sent in pieces of a size, each in a segment of its own; 0 ends that."""

    KIND: ClassVar = "split"
    size: int


@dataclass(frozen=True, slots=True)
class ExpectReported:
    """The client reports a number of transactions within some seconds."""

    KIND: ClassVar = "reported"
    transactions: int
    seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class ExpectHeld:
    """After some seconds the client has reported no more than a number of transactions."""

    KIND: ClassVar = "held"
    transactions: int
    seconds: float = 0.25


@dataclass(frozen=True, slots=True)
class ExpectReply:
    """A status of the client comes within some seconds after the keepalive that asked for it."""

    KIND: ClassVar = "reply"
    seconds: float = 3.0


@dataclass(frozen=True, slots=True)
class ExpectConfirmed:
    """The client confirms an LSN within some seconds."""

    KIND: ClassVar = "confirmed"
    lsn: Lsn
    seconds: float = 6.0


Step: TypeAlias = (
    SendMessage
    | SendKeepalive
    | SendCopyData
    | SendBytes
    | DropConnection
    | StaySilent
    | SplitWrites
    | ExpectReported
    | ExpectHeld
    | ExpectReply
    | ExpectConfirmed
)

_KINDS: Final[Mapping[str, type[Step]]] = {kind.KIND: kind for kind in Step.__args__}


def step_to_json(step: Step) -> dict[str, Any]:
    """Return a step as JSON has it: bytes in hexadecimal, LSNs as PostgreSQL writes them, defaults left out."""
    shown: dict[str, Any] = {"step": step.KIND}
    for field in fields(step):
        value = getattr(step, field.name)
        if value == field.default:
            continue
        if isinstance(value, bytes):
            value = value.hex()
        shown[field.name] = str(value) if isinstance(value, Lsn) else list(value) if type(value) is tuple else value
    return shown


def step_from_json(shown: Mapping[str, Any]) -> Step:
    """Return the step that ``step_to_json`` wrote."""
    kind = _KINDS[shown["step"]]
    return kind(**{field.name: _value(field.type, shown[field.name]) for field in fields(kind) if field.name in shown})


def _value(kind: Any, shown: Any) -> Any:
    if kind is bytes:
        return bytes.fromhex(shown)
    if kind is Lsn:
        return Lsn(shown)
    return tuple(shown) if isinstance(shown, list) else shown
