"""What the specification says of a place in a message: the rows of the generated tables of fields."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

__all__ = ["Described"]

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
