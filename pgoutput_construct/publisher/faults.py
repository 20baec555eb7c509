"""Faults that a publisher shows on purpose: what a real server or network does once a year."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pgoutput_construct.errors import PgoutputError

__all__ = ["FAULTS", "Fault"]

FAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "cut": {},
    "cut inside a message": {},
    "stall": {"seconds": 5.0},
    "keepalive storm": {"count": 1000},
    "keepalive that demands a reply": {},
    "empty payload": {},
    "clock going back": {"seconds": -3600.0},
    "error": {"sqlstate": "XX000", "message": "an error on purpose"},
}
"""The faults by name, each with its arguments and their defaults; ``walsender`` implements them."""


@dataclass
class Fault:
    """A fault at one point of a feed; it is shown once.

    Raises:
        PgoutputError: The fault, or one of its arguments, does not exist.
    """

    name: str
    """One of FAULTS."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """The arguments that differ from the defaults."""
    shown: bool = False

    def __post_init__(self) -> None:
        if self.name not in FAULTS:
            raise PgoutputError(f"there is no fault {self.name!r}: choose from {', '.join(FAULTS)}")
        known = FAULTS[self.name]
        if unknown := [name for name in self.arguments if name not in known]:
            raise PgoutputError(
                f"the fault {self.name!r} has no argument {unknown[0]!r}: it has {', '.join(known) or 'none'}"
            )
        self.arguments = {**known, **self.arguments}
