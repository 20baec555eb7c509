"""Emits the table of fields: the specification's description of each field, for tools that display bytes.

The keys match the paths that ``trace`` records: a name per step, ``[]`` for an item, ``:`` and a tag for a branch.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tools.generate.text import constant, python_module
from tools.language import Choice, Field, Repeat, Spec
from tools.language.elements import Element, Structure

__all__ = ["emit_fields"]

IMPORTS = """
from collections.abc import Mapping
from typing import Final

from pgoutput_construct.wire.spec_metadata import Described
"""

Row = tuple[str, str]


def emit_fields(spec: Spec) -> str:
    """Return the module with the table."""
    lines: list[Row] = []
    for message in spec.messages:
        lines.append((message.class_name, _described(message.name, message.description)))
        lines += _inside(spec, message, message.class_name)
    rows = (f"{key!r}: {described}" for key, described in lines)
    table = constant("FIELDS: Final[Mapping[str, Described]]", rows, "The rows by key, in wire order.")
    about = f"{spec.title}: what the specification says of each place in a message."
    return python_module(spec, [about], IMPORTS, '__all__ = ["FIELDS"]', table)


def _inside(spec: Spec, structure: Structure, key: str) -> Iterator[Row]:
    """Yield the rows of a structure, as the definitions nest it: parts are expanded inline."""
    for element in structure.elements:
        yield from _element(spec, element, f"{key}.{element.name}")


def _nested(spec: Spec, structure: Structure | str, key: str) -> Iterator[Row]:
    """Yield the rows of a nested structure or part: a single element takes its place."""
    structure = spec.part(structure) if isinstance(structure, str) else structure
    alone = structure.single is not None and len(structure.elements) == 1
    yield from _element(spec, structure.elements[0], key) if alone else _inside(spec, structure, key)


def _element(spec: Spec, element: Element, key: str) -> Iterator[Row]:
    match element:
        case Field(part=str(part)):
            yield key, _described(part, element.description)
            yield from _nested(spec, part, key)
        case Field():
            yield key, _described(element.notation, element.description, element.values, element.bits)
        case Repeat():
            yield key, _described(element.kind, element.description)
            if element.item.single is None:
                yield f"{key}[]", _described("", element.description)
            yield from _nested(spec, element.item, f"{key}[]")
            if not element.count and not element.to_end:
                yield f"{key}.end", _described("Int8(0)", f"Ends {element.name}.")
        case Choice():
            yield from _choice(spec, element, key)


def _choice(spec: Spec, choice: Choice, key: str) -> Iterator[Row]:
    """Yield the row of the tag, and those of the branches."""
    tags = {a.letter: a.description or a.name for a in choice.alternatives}
    if choice.valued:
        yield key, _described("Byte1", choice.description, tags)
    else:
        yield f"{key.removesuffix(choice.name)}{choice.kind_name}", _described("Byte1", choice.description, tags)
        yield key, _described(choice.kind, choice.description)
    for alternative in choice.alternatives:
        if alternative.then is not None:
            yield from _nested(spec, alternative.then, f"{key}:{alternative.letter}")


def _described(
    notation: str, description: str, values: Mapping[Any, str] | None = None, bits: Mapping[Any, str] | None = None
) -> str:
    named = "".join(f", {name}={dict(rows)!r}" for name, rows in (("values", values), ("bits", bits)) if rows)
    return f"Described({notation!r}, {description!r}{named})"
