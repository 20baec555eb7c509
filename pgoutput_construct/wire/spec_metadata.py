"""Records of the generated tables: options, transaction bounds, and descriptions of fields."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

__all__ = ["Bound", "Described", "Option", "OptionValue"]


class OptionValue(NamedTuple):
    """One value of an option."""

    server: int
    """The first PostgreSQL major version that supports it."""
    since: int
    """The first protocol version that supports it."""
    sets: tuple[str, ...] = ()
    """The layout parameters that it turns on."""


class Option(NamedTuple):
    """One option of START_REPLICATION."""

    default: object
    """The value if the option is not given; None if it is required."""
    values: Mapping[object, OptionValue]
    """The permitted values; empty for numbers and names."""
    server: int
    """The first PostgreSQL major version that supports it."""
    description: str
    """One line."""
    since: int = 1
    """The first protocol version that supports it."""


class Bound(NamedTuple):
    """The role of a message that begins or ends a transaction, or a part of one."""

    effect: str
    """What it does, a word of the specification language: begin, commit, abort_streamed, ..."""
    roles: Mapping[str, tuple[str, ...]]
    """Its fields by role (xid, subxid, gid, lsn, end_lsn, time, first); of several fields, one has a value."""

    def get(self, message: object, role: str) -> Any:
        """Return the value of the field with a role; None if the message has none."""
        values = (getattr(message, name) for name in self.roles.get(role, ()))
        return next((value for value in values if value is not None), None)


_NONE: Final[Mapping[int | str, str]] = MappingProxyType({})


class Described(NamedTuple):
    """The specification's description of one field, part, repeat or message."""

    notation: str
    """The documents' notation; of a message, its name there; ``Byte1`` for the tag of a choice."""
    description: str
    """One line, with units."""
    values: Mapping[int | str, str] = _NONE
    """The permitted values and their meanings; empty if any value is permitted."""
    bits: Mapping[int | str, str] = _NONE
    """The permitted bits and their meanings; empty for fields that are no flags."""

    versions: tuple[tuple[int, int, str], ...] = ()
    """The notation by protocol version, if it differs: the first and the last version of each."""

    def at(self, version: int) -> "Described":
        """Return the description as of a protocol version, with the notation that the field has there."""
        found = [notation for first, last, notation in self.versions if first <= version <= last]
        return self._replace(notation=found[0]) if len(found) == 1 else self

    def meaning(self, value: object) -> str:
        """Return the meaning of a value, such as the names of its bits; "" if the specification gives none."""
        if self.bits and isinstance(value, int):
            return ", ".join(meaning for bit, meaning in self.bits.items() if value & int(bit)) or "none"
        return self.values.get(value, "") if isinstance(value, int | str) else ""
