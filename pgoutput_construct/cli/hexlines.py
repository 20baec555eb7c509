"""Lines of hexadecimal digits: a payload a line, comments and empty lines between, options in the first comment."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pgoutput_construct.cli.source import ByteSource
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.wire.protocol import OPTIONS

__all__ = ["HexLine", "hex_lines", "payload_of"]


class HexLine(NamedTuple):
    """One line with a payload."""

    place: str
    """The input and the line, for errors."""
    number: int
    payload: bytes
    known: Mapping[str, Any]
    """The options in the comments before the first payload: ``# {"proto_version": 4, "streaming": "parallel"}``."""
    before: list[str]
    """The comments and empty lines since the payload before."""


def hex_lines(source: ByteSource) -> Iterator[HexLine]:
    """Iterate over the payloads of an input; raise PgoutputError with the place of any other line."""
    known: Mapping[str, Any] = {}
    before: list[str] = []
    begun = False
    for number, line in enumerate(source.lines(), 1):
        digits = line.strip()
        if not digits or digits.startswith(b"#"):
            known = known if begun else known or _header(digits, f"{source.name}: line {number}")
            before.append(line.decode("utf-8", "surrogateescape"))
            continue
        place = f"{source.name}: line {number}"
        yield HexLine(place, number, payload_of(digits, place), known, before)
        begun, before = True, []


def payload_of(digits: bytes, place: str) -> bytes:
    """Return the bytes of hexadecimal digits, as psql prints them too (``\\x``); raise PgoutputError with the place."""
    try:
        return bytes.fromhex(digits.strip().removeprefix(b"\\x").decode("ascii"))
    except ValueError:
        raise PgoutputError(f"{place}: not an even number of hexadecimal digits (a comment begins with #)") from None


def _header(comment: bytes, place: str) -> Mapping[str, Any]:
    try:
        value = json.loads(comment.lstrip(b"#"))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    if unknown := [name for name in value if name not in OPTIONS]:
        raise PgoutputError(f"{place}: {unknown[0]!r:.80} is no option: the options are {', '.join(OPTIONS)}")
    return value
