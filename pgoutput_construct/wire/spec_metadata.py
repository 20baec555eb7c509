"""What the rows of the generated tables are: of options, and of places in a message."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

__all__ = ["Bound", "Described", "Option", "OptionValue"]


class OptionValue(NamedTuple):
    """One value of an option."""

    server: int
    """The first PostgreSQL (major version) that has it."""
    since: int
    """The first protocol version that has it."""
    sets: tuple[str, ...] = ()
    """The parameters of the layouts that it sets."""


class Option(NamedTuple):
    """One option of START_REPLICATION."""

    default: object
    """What holds where the option is not given; None where it must be given."""
    values: Mapping[object, OptionValue]
    """The values it can have, empty for those that are numbers or names."""
    server: int
    """The first PostgreSQL (major version) that has it."""
    description: str
    """One line."""


class Bound(NamedTuple):
    """What a message does that begins or ends a transaction, or a part of one."""

    effect: str
    """A word of the specification language: begin, commit, abort_streamed, ..."""
    roles: Mapping[str, tuple[str, ...]]
    """Its fields by what they say: xid, subxid, gid, lsn, end_lsn, time, first; of several one is there."""

    def get(self, message: object, role: str) -> Any:
        """Return what a message says in a role, None where it says nothing."""
        values = (getattr(message, name) for name in self.roles.get(role, ()))
        return next((value for value in values if value is not None), None)


_NONE: Final[Mapping[int | str, str]] = MappingProxyType({})


class Described(NamedTuple):
    """One field, part, repeat or message, in the words of the specification."""

    notation: str
    """The documents' notation; of a message, its name there; ``Byte1`` for the tag of a choice."""
    description: str
    """One line, with units."""
    values: Mapping[int | str, str] = _NONE
    """The only values, each with its meaning."""
    bits: Mapping[int | str, str] = _NONE
    """The only bits, each with its meaning."""

    def meaning(self, value: object) -> str:
        """Return what a value of the field stands for; nothing where every value is only itself."""
        if self.bits and isinstance(value, int):
            return ", ".join(meaning for bit, meaning in self.bits.items() if value & int(bit)) or "none"
        return self.values.get(value, "") if isinstance(value, int | str) else ""
