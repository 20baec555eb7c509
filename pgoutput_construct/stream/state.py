"""The state machine of a stream: the specification's transition table, executed.

``TRANSITIONS`` maps each message class to the states in which it is permitted, each with the state that follows.
``STATES`` maps each state to the layout parameters that it sets. The first state is the initial one, in which no
transaction and no stream is open.

A consumer of a whole connection knows the exact state. A reader that starts in the middle, as a log's reader may, does
not know whether a transaction is open, and need not: layouts depend only on whether a stream is open. Therefore
``StreamState`` tracks a *set* of possible states. Unless it is ``exact``, states with the same layout parameters are
not told apart: an Insert is then permitted after any message, but a Stream Stop only after a Stream Start.
"""

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
"""The messages that are permitted only inside transactions and streams, and do not end them: changes, for example."""

CHANGES_SCOPE: Final = frozenset(
    message
    for message, steps in TRANSITIONS.items()
    if any(STATES[before] != STATES[after] for before, after in steps.items())
)
"""The messages that change the layout of those after them: Stream Start and Stream Stop."""


_RESTARTS: Final = frozenset(cls for cls in BEGINS if _INITIAL in TRANSITIONS[cls])
"""The messages that can start a connection: they open a transaction or a stream, not a part of one."""


class ControlMessage(NamedTuple):
    """A message that is not a row, with its position."""

    seq: int
    """Its seq in the log, strictly increasing."""
    stream_xid: int | None
    """The top-level xid of the stream that it is in, None outside; a Stream Start is outside, a Stream Stop inside."""
    message: PgoutputMessage
    """The message itself."""


class StreamState:
    """The state of one connection's stream; ``advance`` it by every message, in order."""

    def __init__(self, exact: bool = False) -> None:
        """Start at the begin of a connection; ``exact`` also refuses, say, an Insert between transactions."""
        self._exact = exact
        self._possible = _together(_INITIAL, exact)
        self.opener: PgoutputMessage | None = None
        """The message that opened the stream, None outside of streams."""

    @property
    def parameters(self) -> dict[str, bool]:
        """The layout parameters of the next message: a value for each of STATE_PARAMETERS."""
        return dict(_parameters(self._possible))

    @property
    def in_stream(self) -> bool:
        """Whether the next message is between Stream Start and Stream Stop."""
        return _parameters(self._possible)["in_stream"]

    @property
    def stream_xid(self) -> int | None:
        """The top-level xid of the open stream, None outside of streams."""
        bound = BOUNDS.get(type(self.opener)) if self.opener else None
        return None if bound is None else bound.get(self.opener, "xid")

    @property
    def between(self) -> bool:
        """Whether it is certain that no transaction and no stream is open; always False unless ``exact``."""
        return self._possible == {_INITIAL}

    def permits(self, message: type) -> bool:
        """Return whether the state permits a message of this class."""
        return bool(_reached(self._possible, message, self._exact))

    def advance(self, message: PgoutputMessage) -> None:
        """Move to the state after a message; if it is not permitted, raise ProtocolError and keep the state."""
        cls: type = type(message)
        reached = _reached(self._possible, cls, self._exact)
        if not reached:
            raise ProtocolError(self._contradiction(cls))
        before, self._possible = self._possible, reached
        if cls in CHANGES_SCOPE and _parameters(before)["in_stream"] != self.in_stream:
            self.opener = message if self.in_stream else None

    def follow(self, message: PgoutputMessage) -> None:
        """Move to the state after a message of a log, in which the connection may have been lost before any message.

        A message that opens a transaction or a stream restarts from the initial state if it is not permitted; any other
        message that is not permitted leaves the state unchanged.
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
        now = " or ".join(sorted(self._possible))
        return f"{cls.__name__} in the state {now}: it is permitted only in the state {needed}"


@cache
def _together(state: str, exact: bool) -> frozenset[str]:
    """Return the states equivalent to a state: itself if ``exact``, else all with the same layout parameters."""
    return frozenset({state} if exact else (s for s, sets in STATES.items() if sets == STATES[state]))


@cache
def _reached(possible: frozenset[str], cls: type, exact: bool) -> frozenset[str]:
    if cls not in TRANSITIONS:
        raise ProtocolError(f"{cls.__name__} is not a message: give an object of a message class")
    steps = TRANSITIONS[cls]
    return frozenset().union(*(_together(steps[state], exact) for state in possible if state in steps))


@cache
def _parameters(possible: frozenset[str]) -> dict[str, bool]:
    sets = STATES[min(possible)]
    return {name: name in sets for name in STATE_PARAMETERS}
