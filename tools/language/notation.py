"""The documents' notation of one field: ``Int32 (Oid)``, ``Byte1('B')``, ``Int8(0)``, ``Byten``, ``TupleData``."""

import re
from dataclasses import dataclass

__all__ = ["Notation", "parse_notation"]

_POSITION = re.compile(r"(?P<block>[1-9][0-9]{0,3})_(?P<field>[1-9][0-9]{0,3})_(?P<rest>.+)")
_LETTER = re.compile(r"Byte1\('(?P<letter>[ -&(-~])'\)")
_NUMBER = re.compile(r"(?P<base>Int(?:8|16|32|64))\((?P<value>[0-9]{1,20})\)")


@dataclass(frozen=True)
class Notation:
    """A parsed notation; ``base`` is the key in spec/types.yaml, or a part."""

    base: str
    constant: bytes | int | None = None
    position: tuple[int, int] | None = None


def parse_notation(text: str) -> Notation:
    """Parse a notation, without looking up its base."""
    position = None
    if match := _POSITION.fullmatch(text):
        position = int(match["block"]), int(match["field"])
        text = match["rest"]
    if match := _LETTER.fullmatch(text):
        return Notation("Byte1", match["letter"].encode("ascii"), position)
    if match := _NUMBER.fullmatch(text):
        return Notation(match["base"], int(match["value"]), position)
    return Notation(text, None, position)
