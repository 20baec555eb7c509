"""The stream state without a session: for files where connections were made again, and lines without an order."""

from typing import Final

from pgoutput_construct.wire.messages import ENTERS, STATES, WITHIN, PgoutputMessage

__all__ = ["can_come", "in_stream_after"]

_INSIDE: Final = frozenset(state for state, sets in STATES.items() if sets == "in_stream")


def can_come(message: PgoutputMessage, in_stream: bool) -> bool:
    """Tell whether a message can come inside a stream, or outside of one."""
    return any((state in _INSIDE) == in_stream for state in WITHIN[type(message)])


def in_stream_after(message: PgoutputMessage, in_stream: bool) -> bool:
    """Tell whether the message after this one stands inside a stream."""
    entered = ENTERS.get(type(message))
    return in_stream if entered is None else entered in _INSIDE
