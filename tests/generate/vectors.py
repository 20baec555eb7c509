"""Holds parsers against the golden vectors."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pgoutput_construct.errors import DecodeError

__all__ = ["SPEC", "lines", "problem", "told"]

SPEC = Path(__file__).parents[2] / "spec"

Vector = Mapping[str, Any]
Parse = Callable[[bytes, dict[str, Any]], dict[str, Any]]
"""Returns the message in bytes under some options in the JSON encoding, with ``message`` among its fields."""


def lines(name: str) -> Iterator[dict[str, Any]]:
    """Yield the vectors of a file in spec/, without its first line."""
    _, *found = (SPEC / name).read_text("utf-8").split("\n")[:-1]
    yield from map(json.loads, found)


def told(vector: Vector) -> dict[str, Any]:
    """Return the options and the stream state of a vector, or its sender and state, as parse takes them."""
    names = ("proto_version", "streaming", "in_stream", "sender", "state")
    return {name: value for name, value in vector.items() if name in names}


def problem(vector: Vector, parse: Parse) -> str | None:
    """Return what a parser does wrong with a vector, None where it does nothing wrong."""
    try:
        found = parse(bytes.fromhex(vector["hex"]), told(vector))
    except DecodeError as error:
        if "fields" in vector:
            return f"refused: {error}: {vector!r:.300}"
        right = error.offset == vector["refuse"]["offset"]
        return None if right else f"refused, but at {error.offset}: {error}: {vector!r:.300}"
    if "refuse" in vector:
        return f"accepted: {vector!r:.300}"
    wanted = {"message": vector["message"], **vector["fields"]}
    return None if found == wanted else f"{found!r:.300} instead of {wanted!r:.300}"
