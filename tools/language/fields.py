"""The fields of messages and parts, and their types."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["Field", "Fields", "Type", "since_version"]


@dataclass(frozen=True)
class Type:
    """One row of spec/types.yaml: a notation, and what it is on the wire, in Python and in Arrow."""

    notation: str
    construct: str
    python: str
    arrow: str
    signed: bool = False
    bytes: int | None = None


@dataclass(frozen=True)
class Field:
    """One field. It has a type, or refers to a part, or is a constant."""

    name: str
    notation: str
    description: str = ""
    type: Type | None = None
    part: str | None = None
    constant: bytes | int | None = None
    when: str | None = None
    since: int | None = None
    server: int | None = None
    length: str | None = None
    values: Mapping[str | int, str] | None = None
    bits: Mapping[int, str] | None = None
    documented: str | None = None
    positional: bool = False
    measures: str | None = None
    absent: int | None = None
    role: str | None = None
    line: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields of an object that it fills: its own."""
        return (self.name,)

    @property
    def conditional(self) -> bool:
        """Whether the field may be absent."""
        return self.when is not None or self.since is not None

    @property
    def condition(self) -> str:
        """When it is there, as a Python expression of the parameters; empty when it always is."""
        return " and ".join(part for part in (since_version(self.since), self.when) if part)

    @property
    def size(self) -> int | None:
        """Its bytes on the wire while it is there; None when they vary: a String, a Byten, a part."""
        if isinstance(self.constant, bytes):
            return len(self.constant)
        return self.type.bytes if self.type else None

    @property
    def signed(self) -> bool:
        """Whether it is a number that can be negative."""
        return self.type is not None and self.type.signed

    @property
    def code(self) -> str:
        """Its code in a struct format; a field whose size varies has none (KeyError)."""
        letter = _STRUCT_CODES[self.size or 0]
        return letter.lower() if self.signed else letter

    @property
    def frames(self) -> bool:
        """Whether it holds how many bytes the message takes from this field's own first one on."""
        return self.measures is not None

    @property
    def is_letter(self) -> bool:
        """Whether it is one byte that stands for a letter: a str of one character in Python."""
        return bool(self.values) and all(isinstance(value, str) for value in self.values or ())

    @property
    def is_text(self) -> bool:
        """Whether it is a String: bytes up to a NUL."""
        return self.type is not None and self.type.notation == "String"

    @property
    def python(self) -> str:
        """The name of its Python type, where it is there."""
        if self.part or self.type is None:
            return self.part or "bytes"
        return "str" if self.is_letter else self.type.python

    @property
    def codes(self) -> tuple[int, ...]:
        """The only numbers that it has on the wire: the codes of its letters, or its values; empty for any."""
        return tuple(ord(value) if isinstance(value, str) else value for value in self.values or ())

    @property
    def mask(self) -> int:
        """All of its bits; 0 when it has none of its own."""
        return sum(self.bits or ())

    @property
    def constant_number(self) -> int | None:
        """The number that a constant is on the wire; None for other fields."""
        return self.constant[0] if isinstance(self.constant, bytes) else self.constant

    @property
    def constant_bytes(self) -> bytes | None:
        """The bytes that a constant is on the wire; None for other fields."""
        if self.constant_number is None:
            return None
        return self.constant_number.to_bytes(self.size or 1, "big")


_STRUCT_CODES: Final[Mapping[int, str]] = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""The code of an unsigned integer of so many bytes in a struct format."""


def since_version(version: int | None) -> str:
    """Return what is true from a protocol version on, as a Python expression of the parameters; empty for None."""
    return f"proto_version >= {version}" if version else ""


@dataclass(frozen=True)
class Fields:
    """A run of fields: the block types ``header`` and ``body``, and the list under ``then``."""

    kind: str
    fields: tuple[Field, ...]
    line: int = 0
