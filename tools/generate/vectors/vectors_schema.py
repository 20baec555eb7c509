"""Emits the JSON Schema of a line of the vectors, including the fields of each message."""

import json
from collections.abc import Iterator
from typing import Any

from tools.generate.text import COMMAND, GENERATED
from tools.generate.vectors.vectors_reader import LENGTH, REASONS
from tools.generate.vectors.vectors_settings import settings
from tools.language import Choice, Field, Repeat, Spec
from tools.language.elements import Alternative, Element, Structure

__all__ = ["emit_vectors_schema"]

Schema = dict[str, Any]

HEX: Schema = {"type": "string", "pattern": "^([0-9a-f]{2})*$"}
NULL: Schema = {"type": "null"}


def emit_vectors_schema(spec: Spec) -> str:
    """Return the schema; its first line names the specification."""
    mark = {"$comment": f"{GENERATED}{spec.file} by: {COMMAND}. Do not edit."}
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **_Lines(spec).schema()}
    return json.dumps(mark | schema, indent=1, ensure_ascii=False).replace("{\n ", "{", 1) + "\n"


class _Lines:
    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def schema(self) -> Schema:
        """Return the schema of a line: the first one, or a vector that is accepted or refused."""
        names = [message.class_name for message in self.spec.messages]
        head = {
            "case": {"type": "string", "description": "What it is about, in words."},
            **self._options(),
            "message": {
                "enum": [*names, None],
                "description": "The message that the bytes begin, null where they begin none.",
            },
            "hex": {**HEX, "description": "The bytes of one message, all of them."},
        }
        first = _object({"generated": {"type": "string"}, "title": {"type": "string"}})
        accepted = _object({**head, "fields": {"type": "object"}}) | {"allOf": [*self._messages()]}
        refused = _object({**head, "refuse": {"$ref": "#/$defs/refuse"}})
        return {
            "title": f"{self.spec.title}: a line of the vectors",
            "oneOf": [first, accepted, refused],
            "$defs": {**_LEAVES, "refuse": self._refuse(), **{name: self._object_of(name) for name in names}},
        }

    def _options(self) -> Schema:
        said = [setting.said for setting in settings(self.spec)]
        return {name: {"enum": list(dict.fromkeys(each[name] for each in said))} for name in said[0]}

    def _messages(self) -> Iterator[Schema]:
        for message in self.spec.messages:
            name = message.class_name
            found = {"properties": {"message": {"const": name}}}
            yield {"if": found, "then": {"properties": {"fields": {"$ref": f"#/$defs/{name}"}}}}

    def _refuse(self) -> Schema:
        known = {reason: text for reason, text in REASONS.items() if reason != LENGTH or self.spec.framed}
        reasons = [{"const": reason, "description": text} for reason, text in known.items()]
        offset = "Where, in bytes: the first byte of the field, the end of the message for trailing bytes."
        return _object({"reason": {"oneOf": reasons}, "offset": {**_integer(0), "description": offset}})

    def _object_of(self, message: str) -> Schema:
        return self._fields(next(each for each in self.spec.messages if each.class_name == message))

    def _fields(self, structure: Structure) -> Schema:
        return _object({name: schema for element in structure.exposed for name, schema in self._named(element)})

    def _named(self, element: Element) -> Iterator[tuple[str, Schema]]:
        if isinstance(element, Choice) and not element.valued:
            letters = [branch.key for branch in element.alternatives] + [None] * element.optional
            yield element.kind_name, {"enum": letters}
            yield element.name, self._content(element)
        else:
            schema = self._element(element)
            about = {"description": element.description} if element.description else {}
            yield element.name, about | (_any(schema, NULL) if element.conditional else schema)

    def _content(self, choice: Choice) -> Schema:
        """Return the schema of the content after the tags, if it is the same for all of them."""
        found = [each.then for each in choice.alternatives]
        if None in found or any(then != found[0] for then in found):
            return {}
        content = self._inside(self.spec.part(found[0]) if isinstance(found[0], str) else found[0] or Structure(()))
        return _any(content, NULL) if choice.optional else content

    def _element(self, element: Element) -> Schema:
        if isinstance(element, Repeat):
            return {"type": "array", "items": self._inside(element.item)}
        if isinstance(element, Choice):
            return _any(*map(_branch, element.alternatives))
        if element.variants:
            return _any_of([self._element(each.always) for each in element.variants if not each.hidden])
        schema = self._inside(self.spec.part(element.part)) if element.part else _leaf(element)
        return schema if element.absent is None else _any(schema, NULL)

    def _inside(self, structure: Structure) -> Schema:
        if structure.single is not None:
            return self._element(structure.single)
        if not structure.extended or structure.principal is None:
            return self._fields(structure)
        return _any(self._element(structure.principal), _object({str(structure.class_name): self._fields(structure)}))


def _branch(branch: Alternative) -> Schema:
    """Return the schema of a value whose kind is implied by the value."""
    if branch.python == "None":
        return NULL
    if branch.then is None:
        return _object({branch.name: {"const": True}})
    if branch.content is not None:
        return _object({branch.name: _object({"data": HEX, **{each.name: _leaf(each) for each in branch.extras}})})
    formatted = _object({branch.name: HEX})
    return _any({"type": "string"}, formatted) if branch.python == "bytes" else formatted


def _leaf(field: Field) -> Schema:
    if field.values:
        return {"enum": list(field.values)}
    if field.bits:
        return _integer(0, field.mask)
    if field.python in _LEAVES:
        return {"$ref": f"#/$defs/{field.python}"}
    half = 1 << 8 * (field.size or 0) - 1
    return _integer(-half, half - 1) if field.signed else _integer(0, 2 * half - 1)


def _integer(least: int, most: int | None = None) -> Schema:
    return {"type": "integer", "minimum": least} | ({} if most is None else {"maximum": most})


def _any(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def _any_of(schemas: list[Schema]) -> Schema:
    """Return a schema for any of several, without duplicates."""
    distinct = [each for number, each in enumerate(schemas) if each not in schemas[:number]]
    return distinct[0] if len(distinct) == 1 else _any(*distinct)


def _object(properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_LEAVES: Schema = {
    "Lsn": {"type": "string", "pattern": "^[0-9A-F]{1,8}/[0-9A-F]{1,8}$", "description": "As pg_lsn prints it."},
    "Timestamp": {
        "type": "string",
        "pattern": r"^(-?infinity|-?\d+|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?\+00:00)$",
        "description": "ISO 8601; microseconds since 2000-01-01 UTC where the year is not one of 1 to 9999.",
    },
    "Float": {
        **_any({"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}, _object({"hex": HEX})),
        "description": "A number, or the digits of a NaN with other bits than PostgreSQL's own.",
    },
    "str": {**_any({"type": "string"}, _object({"hex": HEX})), "description": "Text, or bytes that are not UTF-8."},
    "bytes": _object({"hex": HEX}),
}
"""The schemas of types that are not plain numbers, by their Python type."""
