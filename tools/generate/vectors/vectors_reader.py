"""Parses bytes by the specification, for the vectors: a message's fields as JSON, or why and where it is refused.

It shares no code with the engines, so that vectors can reveal an error that all of them have.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from tools.generate.vectors.vectors_forms import NUMBERS, text, utf8
from tools.generate.vectors.vectors_settings import NOT_ASKED, TOO_OLD, Setting
from tools.language import Choice, Field, Message, Repeat, Spec, conditions
from tools.language.elements import Alternative, Element, Structure

__all__ = ["LENGTH", "REASONS", "Piece", "Reader", "RefusedError"]

LENGTH = "length"
REASONS = {
    "empty": "There are no bytes.",
    "tag": "The first byte is the tag of no message.",
    TOO_OLD: "The message, or a branch of a choice in it, is not one of this protocol version.",
    NOT_ASKED: "The message, or a branch of a choice in it, comes only under other options or in another state.",
    LENGTH: "The length is not that of the bytes from its own first one on.",
    "truncated": "The bytes end before the field does; of a text that is its NUL.",
    "constant": "A field that is always the same is not.",
    "value": "A value that is not defined.",
    "bits": "A bit is set that is not defined.",
    "kind": "The tag of no branch of a choice.",
    "trailing": "Bytes follow the end of the message.",
}
"""Reasons for refusal, each with the meaning of its offset: the first byte of the field, or the end of the message."""


class RefusedError(Exception):
    """Bytes that are not a message under a setting."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason, offset)
        self.reason = reason
        self.offset = offset


class Piece(NamedTuple):
    """The bytes of one field, or of the tag of a branch."""

    path: str
    start: int
    end: int
    element: Element
    size: bool = False
    """Whether it is the count or length of something."""

    @property
    def place(self) -> tuple[str, int]:
        """Identifies its field, whichever item of a repeat it is in."""
        return re.sub(r"\d+", "", self.path), id(self.element)


class Reader:
    """Parses one message; ``pieces`` are the ranges of its fields."""

    def __init__(self, spec: Spec, data: bytes, setting: Setting) -> None:
        self.spec = spec
        self.data = data
        self.setting = setting
        self.at = 0
        self.end = len(data)
        self.pieces: list[Piece] = []
        self._path: list[str] = []

    def message(self) -> tuple[Message, dict[str, Any]]:
        """Return the message that the bytes are, and its fields; raise RefusedError."""
        if not self.data:
            raise RefusedError("empty", 0)
        message = self.setting.announced(self.spec, self.data)
        if message is None:
            raise RefusedError("tag", 0)
        if refusal := self.setting.refusal(message):
            raise RefusedError(refusal, 0)
        fields = self._fields(message)
        if self.at < len(self.data):
            raise RefusedError("trailing", self.at)
        return message, fields

    def _fields(self, structure: Structure) -> dict[str, Any]:
        """Parse a structure; return the fields of its object by name."""
        found: dict[str, Any] = {}
        for element in structure.elements:
            self._path.append(f".{element.name}")
            found |= self._named(structure, self._here(element, found), found)
            self._path.pop()
        return {name: found[name] for name in structure.field_names}

    def _here(self, element: Element, found: dict[str, Any]) -> Element:
        """Return the variant that is present of a field with variants."""
        if not isinstance(element, Field) or not element.variants:
            return element
        variant = self.setting.variant(element, found)
        return replace(element, variants=()) if variant is None else variant

    def _named(self, structure: Structure, element: Element, found: dict[str, Any]) -> dict[str, Any]:
        match element:
            case Repeat() if not self.setting.has(element, found):
                return {element.name: None}
            case Repeat():
                return {element.name: [self._item(element.item, i) for i in self._places(element, found)]}
            case Choice():
                return self._choice(element, _following(structure, element))
            case Field() if not self.setting.has(element, found):
                return {element.name: None}
            case Field(part=str(part)):
                value = self._area(part, found[element.length]) if element.length else self.value(self.spec.part(part))
                return {element.name: value}
        length = found[element.length] if element.length else None
        return {element.name: self._field(element, length, element.name in structure.sizes)}

    def _area(self, part: str, size: int) -> Any:
        """Parse a part with a length of its own: bytes end where that says."""
        if size > self.end - self.at:
            raise RefusedError("truncated", self.at)
        outer, self.end = self.end, self.at + size
        value = self.value(self.spec.part(part))
        self.end = outer
        return value

    def value(self, structure: Structure) -> Any:
        """Parse a nested structure: the value of its single element, or an object."""
        fields = self._fields(structure)
        if structure.single is not None:
            return fields[structure.single.name]
        if not structure.extended or structure.principal is None:
            return fields
        return {str(structure.class_name): fields} if self._more(structure) else fields[structure.principal.name]

    def _more(self, structure: Structure) -> bool:
        """Return whether an extended structure has more than its principal here, so that it is an object."""
        return any(map(self._there, structure.additions))

    def _there(self, element: Element) -> bool:
        if isinstance(element, Choice):
            return any(map(self.setting.has, element.alternatives))
        return self.setting.has(element)

    def _places(self, repeat: Repeat, found: dict[str, Any]) -> Iterator[int]:
        """Yield the indexes of items: as many as a count says, or up to a zero byte."""
        if repeat.count or repeat.fixed:
            yield from range(found[repeat.count] if repeat.count else repeat.fixed or 0)
            return
        number = 0
        while repeat.to_end and self.at < self.end:
            yield number
            number += 1
        while repeat.terminated and self.data[self.at : self.at + 1] != b"\0":
            if self.at == self.end:
                raise RefusedError("truncated", self.at)
            yield number
            number += 1
        if repeat.terminated:
            self._take(1, repeat)

    def _item(self, item: Structure, number: int) -> Any:
        self._path.append(f"[{number}]")
        value = self.value(item)
        self._path.pop()
        return value

    def _choice(self, choice: Choice, following: bytes | None) -> dict[str, Any]:
        absent = {choice.kind_name: None, choice.name: None}
        if choice.optional and self.data[self.at : self.at + 1] == following:
            return absent
        start = self.at
        tag = self._take(1, choice)
        branch = next((each for each in choice.alternatives if each.tag == tag), None)
        if branch is None:
            raise RefusedError("kind", start)
        if not self.setting.has(branch):
            by_version = not conditions.holds(_versions(branch), self.setting.parameters, {})
            raise RefusedError(TOO_OLD if by_version else NOT_ASKED, start)
        return {choice.kind_name: branch.key, choice.name: self._branch(choice, branch)}

    def _branch(self, choice: Choice, branch: Alternative) -> Any:
        inside = self._inside(branch)
        if branch.content is not None:
            return {branch.name: self._composed(branch, inside)}
        content = self.value(inside) if branch.then else None
        if choice.valued:
            return _value(branch, content)
        kinds = {self._kind(self._inside(each)) for each in choice.alternatives if each.then}
        plain = branch.then is None or len(kinds) == 1 or self._named_already(inside)
        return content if plain else {self._kind(inside): content}

    def _composed(self, branch: Alternative, inside: Structure) -> dict[str, Any]:
        """Parse a value with several fields; its bytes are in hexadecimal digits, like those of other values."""
        found = self._fields(inside)
        name = branch.content.name if branch.content else ""
        extras = {each.name: found[each.name] for each in branch.extras}
        return {"data": found[name]["hex"], **extras}

    def _inside(self, branch: Alternative) -> Structure:
        return self.spec.part(branch.then) if isinstance(branch.then, str) else branch.then or Structure(())

    def _kind(self, structure: Structure) -> str:
        """Return the Python class that JSON names for a structure that can be one of several."""
        element = structure.principal
        if element is None:
            return str(structure.class_name)
        if isinstance(element, Field) and element.part:
            return self._kind(self.spec.part(element.part))
        return element.python if isinstance(element, Field) else "tuple"

    def _named_already(self, structure: Structure) -> bool:
        """Return whether the JSON of a structure names its class, as that of an extended structure does."""
        if structure.extended and self._more(structure):
            return True
        element = structure.principal
        return (
            isinstance(element, Field)
            and element.part is not None
            and self._named_already(self.spec.part(element.part))
        )

    def _field(self, field: Field, length: int | None, size: bool) -> Any:
        if field.constant_bytes is not None:
            start = self.at
            if self._take(len(field.constant_bytes), field) != field.constant_bytes:
                raise RefusedError("constant", start)
            return None
        if field.is_text:
            return text(self._take(self.data.find(0, self.at, self.end) + 1 - self.at, field)[:-1])
        if field.absent is not None and length == field.absent:
            return None
        if field.frames:
            return self._length(field)
        if field.size is None or field.is_block:
            left = self.end - self.at if length is None else length
            return {"hex": self._take(left if field.size is None else field.size, field).hex()}
        return self._number(field, size)

    def _length(self, field: Field) -> None:
        start = self.at
        if int.from_bytes(self._take(field.size or 0, field, True), "big") != len(self.data) - start:
            raise RefusedError(LENGTH, start)

    def _number(self, field: Field, size: bool) -> Any:
        start = self.at
        value = int.from_bytes(self._take(field.size or 0, field, size), "big", signed=field.signed)
        if field.values and value not in field.codes:
            raise RefusedError("value", start)
        if field.bits and value & ~field.mask:
            raise RefusedError("bits", start)
        return chr(value) if field.is_letter else NUMBERS[field.python](value)

    def _take(self, size: int, element: Element, is_size: bool = False) -> bytes:
        start, end = self.at, self.at + size
        if size < 0 or end > self.end:
            raise RefusedError("truncated", start)
        self.at = end
        self.pieces.append(Piece("".join(self._path).removeprefix("."), start, end, element, is_size))
        return self.data[start:end]


def _versions(branch: Alternative) -> conditions.Term | None:
    """Return the part of a branch's condition that is about the protocol version."""
    since = conditions.Since(branch.since) if branch.since else None
    return conditions.every(since, conditions.Until(branch.until) if branch.until else None)


def _following(structure: Structure, choice: Choice) -> bytes | None:
    after = structure.elements[structure.elements.index(choice) + 1 :]
    return after[0].constant_bytes if after and isinstance(after[0], Field) else None


def _value(branch: Alternative, content: Any) -> Any:
    """Return a value whose kind is implied by the value itself."""
    if branch.then is None:
        return None if branch.python == "None" else {branch.name: True}
    plain = utf8(bytes.fromhex(content["hex"])) if branch.python == "bytes" else None
    return {branch.name: content["hex"]} if plain is None else plain
