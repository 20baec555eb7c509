"""What the messages do that begin and end transactions, and what they say of them: by the specification, not by name.

A *piece* is what stands between a begin and its end: a transaction, one that is being prepared, or a segment of a
stream. A begin and an end inside of pieces (``begin_inner``, ``end_inner``) enclose a part of one.
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
    """Return what a message does to a transaction, None for one that neither begins nor ends anything."""
    bound = BOUNDS.get(type(message))
    return None if bound is None else bound.effect


def said(message: PgoutputMessage, role: str) -> Any:
    """Return what a begin or an end says in a role (xid, subxid, gid, lsn, end_lsn, time, first); None for nothing."""
    return BOUNDS[type(message)].get(message, role)


def having(*effects: str) -> frozenset[type[PgoutputMessage]]:
    """Return the messages that have one of some effects."""
    return frozenset(cls for cls, bound in BOUNDS.items() if bound.effect in effects)


def _closes(end: type[PgoutputMessage]) -> frozenset[type[PgoutputMessage]]:
    """Return the begins of the pieces that a message ends: it can come in a state that they lead to."""
    return frozenset(cls for cls in OPENERS if _leads_to(TRANSITIONS[cls].values()) & TRANSITIONS[end].keys())


def _leads_to(entered: Iterable[str]) -> set[str]:
    """Return the states that a piece can be in, beginning with those that its begin enters."""
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
"""The messages that end a piece, each with those that can begin it."""
PLAIN_BEGIN: Final = next(cls for cls, bound in BOUNDS.items() if bound.effect == "begin" and "lsn" in bound.roles)
"""The message that begins a transaction which has committed, and says where: the first of the specification, Begin."""
PLAIN_COMMIT: Final = next(
    cls
    for cls, bound in BOUNDS.items()
    if bound.effect == "commit" and PLAIN_BEGIN in CLOSES[cls] and "end_lsn" in bound.roles
)
"""The message that ends it: Commit."""
