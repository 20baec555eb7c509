"""Specifications that carry messages of another one, whose versions and options they have instead of their own."""

from collections.abc import Iterator, Mapping
from typing import Any

from tools.language.source import Source

__all__ = ["carried", "check_own", "is_conditional"]

_OWN = ("versions", "parameters", "states", "options")


def is_conditional(data: Any) -> bool:
    """Return whether anything in a specification depends on a protocol version or a parameter."""
    return any(True for _ in _conditions(data))


def check_own(source: Source) -> None:
    """Raise SpecError if a specification that carries another one defines what it has from there."""
    for word in _OWN if "carries" in source.data else ():
        if word in source.data:
            problem = f"the envelope has {word} of its own, and carries {source.data['carries']}, which has them"
            raise source.error((word,), problem, f"Remove {word}.")


def carried(source: Source, inner: Source) -> dict[str, Any]:
    """Return the data of an envelope, with the versions, parameters and options of what it carries.

    Without the parameters that states set: a frame is parsed before the state of its message is known.

    """
    rows = inner.data.get("states", ())
    by_states = {name for row in rows for name in _list(row.get("sets", ()))}
    named = {name: row for name, row in inner.data.get("parameters", {}).items() if name not in by_states}
    return {
        **source.data,
        "versions": inner.data.get("versions", []),
        "parameters": named,
        "options": [row for row in inner.data.get("options", ()) if _decides_layout(row)],
    }


def _decides_layout(option: Mapping[str, Any]) -> bool:
    sets = (row.get("sets") for row in (option, *option.get("values", ())))
    return option["name"] == "proto_version" or any(sets)


def _list(names: Any) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _conditions(data: Any) -> Iterator[str]:
    if isinstance(data, list):
        for each in data:
            yield from _conditions(each)
    elif isinstance(data, Mapping):
        yield from (key for key in ("since", "when") if key in data)
        if isinstance(data.get("until"), int):
            yield "until"
        for key, each in data.items():
            if key not in ("documents", "options", "versions"):
                yield from _conditions(each)
