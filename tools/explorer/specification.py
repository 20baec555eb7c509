"""What the page knows of a specification: the descriptions of all fields, their conditions, and how to change them."""

from collections.abc import Iterator, Mapping
from typing import Any

from tools.generate.reference.reference_table import FieldRow, field_rows
from tools.generate.reference.reference_text import availability
from tools.generate.typed_layouts import TypedLayouts
from tools.generate.typescript.typescript_names import camel, type_of
from tools.generate.words import in_words
from tools.language import Choice, Field, Message, Repeat, Spec
from tools.language.elements import Element, Structure

__all__ = ["described"]


def described(spec: Spec, kind: str, reference: str) -> Mapping[str, Any]:
    """Return what the page knows of a specification, as JSON.

    Args:
        spec: The specification.
        kind: What the page calls its messages: ``message``, ``frame`` or ``connection``.
        reference: The page of the reference, relative to the documentation.
    """
    changes = _Changes(spec).all()
    return {
        "kind": kind,
        "title": spec.title,
        "reference": reference,
        "states": [{"name": each.name, "sets": [*each.sets]} for each in spec.places],
        "messages": {each.class_name: _message(spec, each) for each in spec.messages},
        "fields": {row.key: {**_row(row), **changes.get(row.key, {})} for row in field_rows(spec)},
    }


def _message(spec: Spec, message: Message) -> Mapping[str, Any]:
    return {
        "since": availability(spec, message),
        "sender": message.sender,
        "unasked": message.unasked,
        "steps": {} if spec.framed else dict(spec.steps(message)),
    }


def _row(row: FieldRow) -> Mapping[str, Any]:
    element = row.element
    said = {
        "values": {str(value): meaning for value, meaning in row.values.items()},
        "bits": {str(bit): meaning for bit, meaning in row.bits.items()},
        "condition": in_words(element.term) if element else "",
        "server": element.server if isinstance(element, Field | Repeat) else None,
        "optional": isinstance(element, Choice) and element.optional,
        "python": element.type.python if isinstance(element, Field) and element.type else None,
    }
    known = {name: value for name, value in said.items() if value}
    return {"notation": row.notation, "description": row.description, **known}


class _Changes:
    """Finds where each field is in the object of a message: the codec builds the bytes of what was changed there."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.typed = TypedLayouts(spec)

    def all(self) -> Mapping[str, Mapping[str, Any]]:
        """Return by key the properties that lead to a field, ``[]`` for an item; or what the codec writes itself."""
        return {
            key: found for message in self.spec.messages for key, found in self._inside(message, message.class_name, ())
        }

    def _inside(self, structure: Structure, key: str, at: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for element in structure.elements:
            own = f"{key}.{element.name}"
            if element not in structure.exposed:
                yield own, _written(structure, element)
            elif structure.single is element and not isinstance(structure, Message):
                yield from self._element(element, own, at)
            else:
                yield from self._element(element, own, (*at, camel(element.name)))

    def _nested(
        self, structure: Structure | str, key: str, at: tuple[str, ...]
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        found = self.spec.part(structure) if isinstance(structure, str) else structure
        if found.single is not None and len(found.elements) == 1:
            yield from self._element(found.elements[0], key, at)
        else:
            yield from self._inside(found, key, at)

    def _element(self, element: Element, key: str, at: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        match element:
            case Field(part=str(part)):
                yield from self._nested(part, key, at)
            case Field():
                carries = {"carries": "message"} if self.spec.carries and element.is_open and len(at) == 1 else {}
                yield key, {"change": [*at], **carries}
            case Repeat():
                yield from self._nested(element.item, f"{key}[]", (*at, "[]"))
            case Choice():
                yield from self._choice(element, key, at)

    def _choice(self, choice: Choice, key: str, at: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        branches = self.typed.union(choice).branches
        contents = {each.alternative.letter: type_of(each.kind) if each.kind else "" for each in branches}
        tag = key if choice.valued else f"{key.removesuffix(choice.name)}{choice.kind_name}"
        yield tag, {"change": [*at, "kind"], "contents": contents}
        for each in branches:
            if each.alternative.then is not None:
                yield from self._nested(each.alternative.then, f"{key}:{each.alternative.letter}", (*at, "value"))


def _written(structure: Structure, element: Element) -> Mapping[str, Any]:
    """Return what the codec writes where nothing can be changed."""
    measured = structure.sizes.get(element.name)
    if measured is None:
        is_length = isinstance(element, Field) and element.frames
        return {"written": "the length of the message" if is_length else "a constant"}
    target = next(each for each in structure.elements if each.name == measured)
    return {"written": f"the {'number' if isinstance(target, Repeat) else 'length'} of {measured}"}
