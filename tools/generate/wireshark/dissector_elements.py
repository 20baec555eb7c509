"""The fields, choices and repeats of the specifications as rows of the dissector's tables."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from tools.generate.text import snake_case
from tools.language import Alternative, Choice, Field, Part, Repeat
from tools.language.conditions import Bit, Every, Flag, Not, Since, Some, Term, Until
from tools.language.elements import Element, Structure

__all__ = ["Names", "elements", "structure"]

Row = dict[str, Any]

TYPES = {"Lsn": "lsn", "Timestamp": "time", "Float": "double"}
"""Number types that are not displayed as plain numbers, by their Python type."""


class Names:
    """Filter names: fields of the same name share one, unless Wireshark could not compare their values."""

    def __init__(self) -> None:
        self._kinds = {"message": "string", "state": "string", "malformed": "expert", "unexpected": "expert"}

    def of(self, owner: str, name: str, kind: str) -> str:
        """Return the filter name of a field; if another type has the plain one, with the owner's name as prefix."""
        common = kind.rstrip("0123456789") if kind not in ("uint64", "int64") else kind
        for each in (name, f"{owner}.{name}", f"{owner}.{name}_{common}"):
            if self._kinds.setdefault(each, common) == common:
                return f"pgoutput.{each}"
        raise AssertionError(f"{owner}.{name}: no name is left for a field of the kind {kind}")


def structure(inside: Structure, names: Names, owner: str = "") -> Row:
    """Return a nested structure; it is ``alone`` if it consists of a single element, whose value is its own."""
    if isinstance(inside, Part):
        owner = snake_case(inside.name)
    only = inside.elements[0]
    alone = inside.single is not None and len(inside.elements) == 1 and not getattr(only, "variants", ())
    return {"alone": alone, "elements": list(_elements(inside, names, owner))}


def elements(message: Structure, names: Names) -> Sequence[Row]:
    """Return the rows of a message's elements."""
    return list(_elements(message, names, snake_case(str(message.class_name))))


def _elements(inside: Structure, names: Names, owner: str) -> Iterator[Row]:
    for element, following in zip_longest(inside.elements, inside.elements[1:]):
        optional = isinstance(element, Choice) and element.optional
        before = following.constant_number if optional and isinstance(following, Field) else None
        for each in (element.variants if isinstance(element, Field) else ()) or (element,):
            yield _element(each, names, owner) | {"before": before}


def _element(element: Element, names: Names, owner: str) -> Row:
    about: Row = {"name": element.name, "about": element.description}
    match element:
        case Field(part=str(part)):
            node = {
                "kind": "part",
                **about,
                "part": part,
                "length": element.length,
                "abbr": names.of(owner, element.name, "none"),
            }
            return node | _condition(element)
        case Field():
            return _field(element, names, owner) | _condition(element)
        case Repeat():
            node = {"kind": "repeat", **about, "count": element.count, "times": element.fixed}
            node["abbr"] = names.of(owner, element.name, "none")
            return node | {"item": structure(element.item, names, f"{owner}.{element.name}")} | _condition(element)
        case Choice():
            return {"kind": "choice", **about, **_choice(element, names, owner)}


def _condition(element: Field | Repeat | Alternative) -> Row:
    return {"only": _only(element.term)}


def _only(term: Term | None) -> Row | None:
    """Return a condition as a row: its kind, and its name, its version, or the conditions that it combines."""
    match term:
        case Flag(name):
            return {"is": "set", "name": name}
        case Since(version):
            return {"is": "since", "version": version}
        case Until(version):
            return {"is": "until", "version": version}
        case Bit(field, mask):
            return {"is": "bit", "name": field, "mask": mask}
        case Not(inner):
            return {"is": "not", "terms": [_only(inner)]}
        case Every(terms):
            return {"is": "all", "terms": [_only(each) for each in terms]}
        case Some(terms):
            return {"is": "any", "terms": [_only(each) for each in terms]}
    return None


def _field(field: Field, names: Names, owner: str) -> Row:
    kind = _type(field)
    about = {"name": field.name, "about": field.description, "abbr": names.of(owner, field.name, kind)}
    if field.size is None or field.is_block:
        return {"kind": kind, **about, "length": field.length, "size": field.size}
    if kind in ("time", "double"):
        return {"kind": kind, **about, "size": field.size}
    bits = [{"mask": mask, "name": meaning} for mask, meaning in (field.bits or {}).items()]
    meanings = dict(zip(field.codes, (field.values or {}).values(), strict=True))
    number = {"kind": "number", **about, "type": kind, "size": field.size, "values": meanings, "bits": bits}
    return number | {"constant": field.constant_number}


def _type(field: Field) -> str:
    """Return the type of a field's values: one of TYPES in the Lua code, time, string or bytes."""
    if field.size is None or field.is_block:
        return "string" if field.is_text else "bytes"
    if isinstance(field.constant, bytes) or field.is_letter:
        return "char"
    return TYPES.get(field.python, f"{'' if field.signed else 'u'}int{8 * field.size}")


def _choice(choice: Choice, names: Names, owner: str) -> Row:
    tag = choice.name if choice.valued else choice.kind_name
    row = {
        "valued": choice.valued,
        "tag_name": tag,
        "tag_abbr": names.of(owner, tag, "uint8" if choice.numeric else "char"),
        "tag_type": "uint8" if choice.numeric else "char",
        "alternatives": [_alternative(a, names, owner) for a in choice.alternatives],
    }
    return row | {"abbr": names.of(owner, f"{choice.name}_content" if choice.valued else choice.name, "none")}


def _alternative(alternative: Alternative, names: Names, owner: str) -> Row:
    row = {"tag": alternative.tag[0], "name": alternative.name, "about": alternative.description}
    row |= _condition(alternative)
    if isinstance(alternative.then, str):
        return row | {"part": alternative.then}
    return row | ({"content": structure(alternative.then, names, owner)} if alternative.then else {})
