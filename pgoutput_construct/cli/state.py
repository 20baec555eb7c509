"""The stream state without a session: for files where connections were made again, and lines without an order."""

from typing import Final

from pgoutput_construct.wire.messages import PgoutputMessage
from pgoutput_construct.wire.protocol import STATES, TRANSITIONS

__all__ = ["can_come", "in_stream_after"]

_INSIDE: Final = frozenset(state for state, sets in STATES.items() if "in_stream" in sets)


def can_come(message: PgoutputMessage, in_stream: bool) -> bool:
    """Tell whether a message can come inside a stream, or outside of one."""
    return any((state in _INSIDE) == in_stream for state in TRANSITIONS[type(message)])


def in_stream_after(message: PgoutputMessage, in_stream: bool) -> bool:
    """Tell whether the message after this one stands inside a stream."""
    entered = {after for before, after in TRANSITIONS[type(message)].items() if before != after}
    return bool(entered & _INSIDE) if entered else in_stream
