"""Which messages begin and end transactions, and in which fields they identify them; taken from the specification.

A *piece* is everything from a begin to its end: a transaction, a transaction up to its PREPARE, or one segment of a
streamed transaction. A begin and an end within a piece (``begin_inner``, ``end_inner``) enclose a part of it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pgoutput_construct.wire.messages import PgoutputMessage
from pgoutput_construct.wire.protocol import BOUNDS, STATES, TRANSITIONS

__all__ = ["CLOSES", "OPENERS", "PLAIN_BEGIN", "PLAIN_COMMIT", "effect_of", "having", "said"]

_INITIAL: Final = next(iter(STATES))
_PIECES: Final = ("begin", "begin_prepared", "begin_segment")
_PIECE_ENDS: Final = ("commit", "prepare", "abort", "end_segment")


def effect_of(message: PgoutputMessage) -> str | None:
    """Return the effect of a message on transactions (BOUNDS), None if it neither begins nor ends anything."""
    bound = BOUNDS.get(type(message))
    return None if bound is None else bound.effect


def said(message: PgoutputMessage, role: str) -> Any:
    """Return the value that a begin or an end has for a role (xid, subxid, gid, lsn, end_lsn, time, first), or None."""
    return BOUNDS[type(message)].get(message, role)


def having(*effects: str) -> frozenset[type[PgoutputMessage]]:
    """Return the message classes with one of these effects."""
    return frozenset(cls for cls, bound in BOUNDS.items() if bound.effect in effects)


def _closes(end: type[PgoutputMessage]) -> frozenset[type[PgoutputMessage]]:
    """Return the begins of the pieces that a message can end: those that lead to a state in which it is permitted."""
    return frozenset(cls for cls in OPENERS if _leads_to(TRANSITIONS[cls].values()) & TRANSITIONS[end].keys())


def _leads_to(entered: Iterable[str]) -> set[str]:
    """Return the states that are reachable within a piece from the states that its begin enters."""
    found = set(entered)
    steps = [step for table in TRANSITIONS.values() for step in table.items()]
    while more := {after for before, after in steps if before in found and after != _INITIAL} - found:
        found |= more
    return found


OPENERS: Final = having(*_PIECES)
"""The messages that begin a piece."""
CLOSES: Final[Mapping[type[PgoutputMessage], frozenset[type[PgoutputMessage]]]] = {
    end: _closes(end) for end in having(*_PIECE_ENDS)
}
"""The messages that end a piece, each with the messages that can begin it."""
PLAIN_BEGIN: Final = next(cls for cls, bound in BOUNDS.items() if bound.effect == "begin" and "lsn" in bound.roles)
"""Begin: the first message of the specification that begins a committed transaction and has its commit LSN."""
PLAIN_COMMIT: Final = next(
    cls
    for cls, bound in BOUNDS.items()
    if bound.effect == "commit" and PLAIN_BEGIN in CLOSES[cls] and "end_lsn" in bound.roles
)
"""The message that ends such a transaction: Commit."""
