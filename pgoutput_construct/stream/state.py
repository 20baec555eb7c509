"""Where in the stream the next message stands: the specification's transition table, executed."""

from functools import cache
from typing import Final, NamedTuple

from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.wire.messages import PgoutputMessage
from pgoutput_construct.wire.options import STATE_PARAMETERS
from pgoutput_construct.wire.protocol import BEGINS, BOUNDS, STATES, TRANSITIONS

__all__ = ["CHANGES_SCOPE", "INSIDE_ONLY", "ControlMessage", "StreamState"]

_INITIAL: Final = next(iter(STATES))

INSIDE_ONLY: Final = frozenset(
    message
    for message, steps in TRANSITIONS.items()
    if _INITIAL not in steps and all(before == after for before, after in steps.items())
)
"""The messages of which transactions and streams consist: they come inside only, and end nothing."""

CHANGES_SCOPE: Final = frozenset(
    message
    for message, steps in TRANSITIONS.items()
    if any(STATES[before] != STATES[after] for before, after in steps.items())
)
"""The messages after which others are laid out: Stream Start and Stream Stop."""


_RESTARTS: Final = frozenset(cls for cls in BEGINS if _INITIAL in TRANSITIONS[cls])
"""The messages that a new connection can begin with: they open a transaction or a stream, not a part of one."""


class ControlMessage(NamedTuple):
    """A message other than a row's, and where it stands."""

    seq: int
    """Its place in the log, strictly increasing."""
    stream_xid: int | None
    """The top-level xid of the stream around it, None outside; a Stream Start is outside, a Stream Stop inside."""
    message: PgoutputMessage
    """The message itself."""


class StreamState:
    """The state of one connection's stream; ``advance`` it by every message, in order.

    A reader that begins in the middle of a connection cannot know whether it is in a transaction. So, unless it is
    ``exact``, only what decides layouts is followed: whether the next message stands inside a stream.
    """

    def __init__(self, exact: bool = False) -> None:
        """Stand at the begin of a connection; ``exact`` also refuses, say, an Insert between transactions."""
        self._exact = exact
        self._possible = _together(_INITIAL, exact)
        self.opener: PgoutputMessage | None = None
        """The message that opened the stream, None outside."""

    @property
    def parameters(self) -> dict[str, bool]:
        """How the next message is laid out: a value for each of STATE_PARAMETERS."""
        return dict(_parameters(self._possible))

    @property
    def in_stream(self) -> bool:
        """Whether the next message stands between Stream Start and Stream Stop."""
        return _parameters(self._possible)["in_stream"]

    @property
    def stream_xid(self) -> int | None:
        """The top-level xid of the stream that is open, None outside a stream."""
        bound = BOUNDS.get(type(self.opener)) if self.opener else None
        return None if bound is None else bound.get(self.opener, "xid")

    @property
    def between(self) -> bool:
        """Whether no transaction and no stream is open (never sure unless exact)."""
        return self._possible == {_INITIAL}

    def permits(self, message: type) -> bool:
        """Whether a message of a class can come here."""
        return bool(_reached(self._possible, message, self._exact))

    def advance(self, message: PgoutputMessage) -> None:
        """Go on to the state after a message; raise ProtocolError, and stay, where it cannot come."""
        cls: type = type(message)
        reached = _reached(self._possible, cls, self._exact)
        if not reached:
            raise ProtocolError(self._contradiction(cls))
        before, self._possible = self.in_stream, reached
        if self.in_stream != before:
            self.opener = message if self.in_stream else None

    def follow(self, message: PgoutputMessage) -> None:
        """Go on to the state after a message of a log, in which a connection may have been lost at any place.

        What opens a transaction or a stream where it cannot come begins again; anything else leaves the state.
        """
        cls: type = type(message)
        if not self.permits(cls) and cls in _RESTARTS:
            self._possible, self.opener = _together(_INITIAL, self._exact), None
        if self.permits(cls):
            self.advance(message)

    def _contradiction(self, cls: type) -> str:
        needed = " or ".join(TRANSITIONS[cls])
        inside = {_parameters(frozenset({state}))["in_stream"] for state in TRANSITIONS[cls]}
        if self.in_stream and inside == {False}:
            return f"{cls.__name__} inside the stream of xid {self.stream_xid}: a Stream Stop must come before it"
        if not self.in_stream and inside == {True}:
            return f"{cls.__name__} outside a stream: a Stream Start must come before it"
        return f"{cls.__name__} in the state {' or '.join(sorted(self._possible))}: it comes in the state {needed} only"


@cache
def _together(state: str, exact: bool) -> frozenset[str]:
    """Return the states that are not told apart from a state: itself, or all in which messages are laid out alike."""
    return frozenset({state} if exact else (s for s, sets in STATES.items() if sets == STATES[state]))


@cache
def _reached(possible: frozenset[str], cls: type, exact: bool) -> frozenset[str]:
    if cls not in TRANSITIONS:
        raise ProtocolError(f"{cls.__name__} is no message: give an object of a message class")
    steps = TRANSITIONS[cls]
    return frozenset().union(*(_together(steps[state], exact) for state in possible if state in steps))


@cache
def _parameters(possible: frozenset[str]) -> dict[str, bool]:
    sets = STATES[min(possible)]
    return {name: name in sets for name in STATE_PARAMETERS}
