"""Emits a specification as a Kaitai Struct file, from which its compiler makes readers in a dozen languages."""

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

import yaml

from tools.generate.reserved import distinct, escaped, identifier, members
from tools.generate.text import COMMAND, GENERATED, snake_case
from tools.language import Choice, Field, Message, Repeat, Spec
from tools.language.elements import Alternative, Element, Structure
from tools.language.errors import SpecError

__all__ = ["emit_kaitai"]

Entry = dict[str, Any]

KAITAI = "0.11"
"""The first version of Kaitai Struct that knows all that is used: ``in-enum``."""
PARAMETER_TYPES = {"int": "u4", "bool": "bool"}
TEXT: Entry = {
    "doc": "Text that ends with a NUL.",
    "to-string": "text",
    "seq": [{"id": "raw", "terminator": 0, "doc": "Its bytes; PostgreSQL does not promise that they are UTF-8."}],
    "instances": {"text": {"value": 'raw.to_s("UTF-8")'}},
}


def emit_kaitai(spec: Spec) -> str:
    """Return the file; its first line says what it was generated from."""
    mark = f"# {GENERATED}{spec.file} by: {COMMAND}. Do not edit.\n"
    return mark + yaml.safe_dump(_File(escaped(spec)).content(), sort_keys=False, allow_unicode=True, width=120)


class _File:
    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.types: dict[str, Entry] = {"text": TEXT}
        self.enums: dict[str, Mapping[int, Any]] = {}

    def content(self) -> Entry:
        """Return the whole of it."""
        for named in self.spec.named:
            self._type(snake_case(named.class_name), named, named.description)
        tags = members(snake_case(message.class_name) for message in self.spec.messages)
        tagged = list(zip(tags, self.spec.messages, strict=True))
        self.enums["tag"] = {m.tag[0]: _named(tag, m.description) for tag, m in tagged}
        cases = {f"tag::{tag}": self._reference(m) for tag, m in tagged}
        body = {"id": "body", "type": {"switch-on": "tag", "cases": cases}}
        return {
            "meta": {"id": self.spec.protocol, "title": self.spec.title, "ks-version": KAITAI, "endian": "be"},
            "doc": f"One message. Source: PostgreSQL's documentation, {self.spec.source}.",
            **self._parameters(self.spec.messages),
            "seq": [_enumerated("tag", "tag"), body, _check("end", "_io.eof", "Nothing follows.")],
            "types": self.types,
            "enums": self.enums,
        }

    def _type(self, name: str, structure: Structure, about: str) -> None:
        """Add the type of a structure, without the tag of a message: that is read to know which message it is."""
        elements = structure.elements
        checks = []
        if isinstance(structure, Message):
            elements = elements[1:]
            (version,) = distinct(["version"], structure.field_names)
            checks = [_since(version, "", structure.needs)] if structure.needs else []
        doc = {"doc": about} if about else {}
        seq = [*checks, *(each for element in elements for each in self._element(name, structure, element))]
        entry = doc | self._parameters([structure]) | {"seq": seq} | self._instances(elements)
        if self.types.setdefault(name, entry) is not entry:
            raise SpecError(f"Kaitai Struct would have two types {name!r}. Rename a part, or a branch of a choice.")

    def _instances(self, elements: Iterable[Element]) -> Entry:
        """Return what tells the bits of flags from each other."""
        flags = [each for each in elements if isinstance(each, Field) and each.bits]
        taken = {name for element in elements for name in (element.name, *element.names)}
        found: Entry = {}
        for field in flags:
            names = (f"{field.name}_{identifier(meaning)}" for meaning in (field.bits or {}).values())
            for bit, name in zip(field.bits or {}, distinct(names, taken | found.keys()), strict=True):
                found[name] = {"value": f"({field.name} & {bit}) != 0"} | _condition(field)
        return {"instances": found} if found else {}

    def _element(self, owner: str, structure: Structure, element: Element) -> Iterator[Entry]:
        if isinstance(element, Repeat):
            yield self._repeat(owner, element)
        elif isinstance(element, Choice):
            names = {name for each in structure.elements for name in (each.name, *each.names)}
            yield from self._choice(owner, element, _next(structure, element), names)
        else:
            before = _before(structure, element)
            there = {"if": f"{before.kind_name} != {owner}_{before.kind_name}::{element.name}"} if before else {}
            yield {"id": element.name, **self._field(owner, element), **_condition(element), **there, **_doc(element)}

    def _repeat(self, owner: str, repeat: Repeat) -> Entry:
        alone = repeat.item.elements[0] if len(repeat.item.elements) == 1 else None
        if isinstance(alone, Field) and not alone.conditional:
            item = self._field(owner, alone)
        else:
            name = snake_case(repeat.class_name) if repeat.class_name else f"{owner}_{repeat.name}_item"
            self._type(name, repeat.item, repeat.description)
            item = {"type": self._reference(repeat.item, name)}
        return {"id": repeat.name, **item, "repeat": "expr", "repeat-expr": repeat.count, **_doc(repeat)}

    def _choice(self, owner: str, choice: Choice, following: Field | None, names: Set[str]) -> Iterator[Entry]:
        """Yield the tag and what follows it; where no branch need come, the tag can be that of what stands behind."""
        enum = f"{owner}_{choice.kind_name}"
        tags = {branch.tag[0]: _named(branch.name, branch.description) for branch in choice.alternatives}
        if following is not None:
            tags[following.constant_number or 0] = _named(following.name, "None of them: this is the next field.")
        self.enums[enum] = tags
        yield _enumerated(choice.kind_name, enum) | _doc(choice)
        for branch in choice.alternatives:
            if branch.since:
                (name,) = distinct([f"{branch.name}_version"], names)
                yield _since(name, f"{choice.kind_name} != {enum}::{branch.name} or ", branch.since)
        cases = {f"{enum}::{b.name}": self._then(owner, b) for b in choice.alternatives if b.then is not None}
        if cases:
            yield {"id": choice.name, "type": {"switch-on": choice.kind_name, "cases": cases}}

    def _then(self, owner: str, branch: Alternative) -> str:
        if isinstance(branch.then, str):
            return self._reference(self.spec.part(branch.then), snake_case(branch.then))
        structure, name = branch.then or Structure(()), f"{owner}_{branch.name}"
        self._type(name, structure, branch.description)
        return self._reference(structure, name)

    def _field(self, owner: str, field: Field) -> Entry:
        """Return how a field is read."""
        if field.constant_bytes is not None:
            return {"contents": list(field.constant_bytes)}
        if field.part:
            return {"type": self._reference(self.spec.part(field.part), snake_case(field.part))}
        if field.is_text:
            return {"type": "text"}
        if field.size is None:
            return {"size": field.length} if field.length else {"size-eos": True}
        return {"type": f"{'s' if field.signed else 'u'}{field.size}", **self._valid(owner, field)}

    def _valid(self, owner: str, field: Field) -> Entry:
        if field.bits:
            others = (1 << 8 * (field.size or 0)) - 1 & ~field.mask
            return {"valid": {"expr": f"(_ & {others:#x}) == 0"}}
        if not field.values:
            return {}
        enum = f"{owner}_{field.name}"
        self.enums[enum] = dict(zip(field.codes, members(field.values.values()), strict=True))
        return {"enum": enum, "valid": {"in-enum": True}}

    def _reference(self, structure: Structure, name: str = "") -> str:
        """Return a type with the parameters that it takes."""
        names = self._needed([structure])
        return (name or snake_case(str(structure.class_name))) + (f"({', '.join(names)})" if names else "")

    def _parameters(self, structures: Iterable[Structure]) -> Entry:
        needed = self._needed(structures)
        found = [each for each in self.spec.parameters if each.name in needed]
        entries = [{"id": e.name, "type": PARAMETER_TYPES[e.type], **_doc(e)} for e in found]
        return {"params": entries} if entries else {}

    def _needed(self, structures: Iterable[Structure]) -> list[str]:
        """Return the parameters that the layout of structures depends on, in their order."""
        words: set[str] = set()
        for structure in structures:
            words |= {"proto_version"} if isinstance(structure, Message) and structure.needs else set()
            for element in (each for inside in self.spec.reached(structure) for each in inside.elements):
                branches = element.alternatives if isinstance(element, Choice) else ()
                conditions = [element.condition, *(branch.condition for branch in branches)]
                words.update(re.findall(r"\w+", " ".join(conditions)))
        return [parameter.name for parameter in self.spec.parameters if parameter.name in words]


def _next(structure: Structure, choice: Choice) -> Field | None:
    """Return the constant behind an optional choice."""
    following = structure.elements[structure.elements.index(choice) + 1] if choice.optional else None
    return following if isinstance(following, Field) else None


def _before(structure: Structure, field: Field) -> Choice | None:
    """Return the optional choice in front of a constant, which has read it where none of its branches came."""
    index = structure.elements.index(field)
    before = structure.elements[index - 1] if index else None
    return before if isinstance(before, Choice) and before.optional else None


def _enumerated(name: str, enum: str) -> Entry:
    return {"id": name, "type": "u1", "enum": enum, "valid": {"in-enum": True}}


def _since(name: str, unless: str, version: int) -> Entry:
    return _check(name, f"{unless}proto_version >= {version}", f"Protocol version {version} and newer.")


def _check(name: str, expression: str, about: str) -> Entry:
    """Return a field without bytes that is only there to be checked."""
    return {"id": name, "size": 0, "valid": {"expr": expression}, "doc": about}


def _condition(field: Field) -> Entry:
    return {"if": field.condition} if field.conditional else {}


def _doc(described: Any) -> Entry:
    return {"doc": described.description} if described.description else {}


def _named(name: str, about: str) -> Mapping[str, str]:
    return {"id": name, "doc": about} if about else {"id": name}
