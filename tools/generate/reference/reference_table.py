"""Emits the table of fields: the specification's description of each field, for tools that display bytes.

The keys match the paths that ``trace`` records: a name per step, ``[]`` for an item, ``:`` and a tag for a branch.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.generate.text import constant, python_module
from tools.language import Choice, Field, Repeat, Spec
from tools.language.elements import Element, Structure

__all__ = ["FieldRow", "emit_fields", "field_rows"]

IMPORTS = """
from collections.abc import Mapping
from typing import Final

from pgoutput_construct.wire.spec_metadata import Described
"""


@dataclass(frozen=True)
class FieldRow:
    """What the specification says of a message, a field, a group of fields, or the tag of a choice."""

    key: str
    notation: str
    description: str
    values: Mapping[Any, str] = field(default_factory=dict)
    bits: Mapping[Any, str] = field(default_factory=dict)
    element: Element | None = None
    """The element that it is; None for a message, and for an item of a repeat."""
    versions: tuple[tuple[int, int, str], ...] = ()
    """The first and the last version of each notation of a field that has several."""


def emit_fields(spec: Spec) -> str:
    """Return the module with the table."""
    rows = (f"{row.key!r}: {_described(row)}" for row in field_rows(spec))
    table = constant("FIELDS: Final[Mapping[str, Described]]", rows, "The rows by key, in wire order.")
    about = f"{spec.title}: what the specification says of each place in a message."
    return python_module(spec, [about], IMPORTS, '__all__ = ["FIELDS"]', table)


def field_rows(spec: Spec) -> Iterator[FieldRow]:
    """Yield the rows of all messages in wire order."""
    for message in spec.messages:
        yield FieldRow(message.class_name, message.name, message.description)
        yield from _inside(spec, message, message.class_name)


def _inside(spec: Spec, structure: Structure, key: str) -> Iterator[FieldRow]:
    """Yield the rows of a structure, as the definitions nest it: parts are expanded inline."""
    for element in structure.elements:
        yield from _element(spec, element, f"{key}.{element.name}")


def _nested(spec: Spec, structure: Structure | str, key: str) -> Iterator[FieldRow]:
    """Yield the rows of a nested structure or part: a single element takes its place."""
    structure = spec.part(structure) if isinstance(structure, str) else structure
    alone = structure.single is not None and len(structure.elements) == 1
    yield from _element(spec, structure.elements[0], key) if alone else _inside(spec, structure, key)


def _element(spec: Spec, element: Element, key: str) -> Iterator[FieldRow]:
    match element:
        case Field(part=str(part)):
            yield FieldRow(key, part, element.description, element=element)
            yield from _nested(spec, part, key)
        case Field():
            values, bits = element.values or {}, element.bits or {}
            versions = tuple(_versions(spec, element))
            yield FieldRow(key, element.notation, element.description, values, bits, element, versions)
        case Repeat():
            yield FieldRow(key, element.kind, element.description, element=element)
            if element.item.single is None:
                yield FieldRow(f"{key}[]", "", element.description)
            yield from _nested(spec, element.item, f"{key}[]")
            if element.terminated:
                yield FieldRow(f"{key}.end", "Int8(0)", f"Ends {element.name}.")
        case Choice():
            yield from _choice(spec, element, key)


def _versions(spec: Spec, field: Field) -> Iterator[tuple[int, int, str]]:
    """Yield the first and the last version of each notation of a field that has several."""
    known = [version.version for version in spec.versions]
    if known and len({each.notation for each in field.rows}) > 1:
        yield from ((each.since or known[0], each.until or known[-1], each.notation) for each in field.rows)


def _choice(spec: Spec, choice: Choice, key: str) -> Iterator[FieldRow]:
    """Yield the row of the tag, and those of the branches."""
    tags = {a.key: a.description or a.name for a in choice.alternatives}
    notation = "Int8" if choice.numeric else "Byte1"
    if choice.valued:
        yield FieldRow(key, notation, choice.description, tags, element=choice)
    else:
        tag = f"{key.removesuffix(choice.name)}{choice.kind_name}"
        yield FieldRow(tag, notation, choice.description, tags, element=choice)
        yield FieldRow(key, choice.kind, choice.description, element=choice)
    for alternative in choice.alternatives:
        if alternative.then is not None:
            yield from _nested(spec, alternative.then, f"{key}:{alternative.letter}")


def _described(row: FieldRow) -> str:
    named = "".join(f", {name}={dict(rows)!r}" for name, rows in (("values", row.values), ("bits", row.bits)) if rows)
    named += f", versions={row.versions!r}" if row.versions else ""
    return f"Described({row.notation!r}, {row.description!r}{named})"
