"""Python values as Lua source."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import indent
from typing import Any

from tools.generate.reserved import RESERVED

__all__ = ["lua"]

WIDTH = 110


def lua(value: Any) -> str:
    """Return a value as a Lua expression; None, False and empty values in a mapping are omitted.

    The keys of a mapping are numbers or text.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return _quoted(value)
    items = list(_pairs(value) if isinstance(value, Mapping) else map(lua, value))
    line = "{" + ", ".join(items) + "}"
    if len(line) <= WIDTH and "\n" not in line:
        return line
    return "{\n" + "".join(indent(item, "  ") + ",\n" for item in items) + "}"


def _pairs(rows: Mapping[Any, Any]) -> Iterator[str]:
    for key, value in rows.items():
        if value is None or value is False or (isinstance(value, Mapping | Sequence) and not value):
            continue
        yield f"{key if _is_name(key) else f'[{lua(key)}]'} = {lua(value)}"


def _is_name(key: Any) -> bool:
    return isinstance(key, str) and key.isidentifier() and key not in RESERVED["lua"].split()


def _quoted(text: str) -> str:
    """Return a string literal, escaped: the text comes from a specification."""
    safe = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(letter if letter.isprintable() else _bytes(letter) for letter in safe) + '"'


def _bytes(letter: str) -> str:
    return "".join(f"\\{byte:03}" for byte in letter.encode("utf-8", "replace"))
