"""Emits a specification as a Kaitai Struct file, from which readers in a dozen languages can be generated."""

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

import yaml

from tools.generate.reserved import distinct, escaped, identifier, members
from tools.generate.text import COMMAND, GENERATED, snake_case
from tools.generate.words import in_words
from tools.language import Choice, Field, Message, Repeat, Spec, conditions
from tools.language.elements import Alternative, Element, Structure

__all__ = ["emit_kaitai"]

Entry = dict[str, Any]

KAITAI = "0.11"
"""The first version of Kaitai Struct with everything that is used: ``in-enum``."""
PARAMETER_TYPES = {"int": "u4", "bool": "bool"}
TEXT: Entry = {
    "doc": "Text that ends with a NUL.",
    "to-string": "text",
    "seq": [{"id": "raw", "terminator": 0, "doc": "Its bytes; PostgreSQL does not promise that they are UTF-8."}],
    "instances": {"text": {"value": 'raw.to_s("UTF-8")'}},
}


def emit_kaitai(spec: Spec) -> str:
    """Return the file; its first line names the specification."""
    mark = f"# {GENERATED}{spec.file} by: {COMMAND}. Do not edit.\n"
    return mark + yaml.safe_dump(_File(escaped(spec)).content(), sort_keys=False, allow_unicode=True, width=120)


class _File:
    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.types: dict[str, Entry] = {"text": TEXT}
        self.enums: dict[str, Mapping[int, Any]] = {}
        names = list(dict.fromkeys(spec.class_names()))
        self.classes = dict(zip(names, distinct(map(snake_case, names), ["text"]), strict=True))
        """The name of the type of each class."""
        self.taken = set(self.classes.values())
        self.version = next((each.name for each in spec.parameters if each.type == "int"), conditions.VERSION)
        """The name of the parameter for the protocol version."""

    def content(self) -> Entry:
        """Return the whole document."""
        for named in self.spec.named:
            self._type(self.classes[named.class_name], named, named.description)
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
        """Add the type of a structure, without a message's tag, which is read before to choose the type."""
        elements = structure.elements
        checks = []
        if isinstance(structure, Message):
            elements = elements[1:]
            (version,) = distinct(["version"], structure.field_names)
            newer = conditions.Since(structure.needs or 0, self.version)
            said = f"Protocol version {structure.needs} and newer."
            checks = [_check(version, conditions.text(newer), said)] if structure.needs else []
        doc = {"doc": _harmless(about)} if about else {}
        seq = [*checks, *(each for element in elements for each in self._element(name, structure, element))]
        entry = doc | self._parameters([structure]) | {"seq": seq} | self._instances(structure, elements)
        self.types[name] = entry

    def _instances(self, structure: Structure, elements: Iterable[Element]) -> Entry:
        """Return computed instances: the single bits of flags, and a field with variants under any version."""
        fields = [each for each in elements if isinstance(each, Field)]
        taken = {name for element in elements for name in (element.name, *element.names)}
        found: Entry = {}
        for field in fields:
            if value := _whole(structure, field):
                found[field.name] = {"value": value} | _condition(field) | _doc(field)
            names = (f"{field.name}_{identifier(meaning)}" for meaning in (field.bits or {}).values())
            for bit, name in zip(field.bits or {}, distinct(names, taken | found.keys()), strict=True):
                found[name] = {"value": f"({field.name} & {bit}) != 0"} | _condition(field)
        return {"instances": found} if found else {}

    def _element(self, owner: str, structure: Structure, element: Element) -> Iterator[Entry]:
        if isinstance(element, Repeat):
            yield self._repeat(owner, element)
        elif isinstance(element, Field) and element.variants:
            for each, name in zip(element.variants, _variant_names(structure, element), strict=True):
                yield {"id": name, **self._field(owner, each), **_condition(each), **_doc(each)}
        elif isinstance(element, Choice):
            names = {name for each in structure.elements for name in (each.name, *each.names)}
            yield from self._choice(owner, element, _next(structure, element), names)
        else:
            before = _before(structure, element)
            tag = f"{owner}_{before.kind_name}::{_after(before, element)}" if before else ""
            there = {"if": f"{before.kind_name} != {tag}"} if before else {}
            yield {"id": element.name, **self._field(owner, element), **_condition(element), **there, **_doc(element)}

    def _repeat(self, owner: str, repeat: Repeat) -> Entry:
        alone = repeat.item.elements[0] if len(repeat.item.elements) == 1 else None
        if isinstance(alone, Field) and not alone.conditional and not alone.variants:
            item = self._field(owner, alone)
        else:
            name = self.classes.get(repeat.class_name or "") or self._free(f"{owner}_{repeat.name}_item")
            self._type(name, repeat.item, repeat.description)
            item = {"type": self._reference(repeat.item, name)}
        number = repeat.count or repeat.fixed
        times = {"repeat": "expr", "repeat-expr": number} if number else {"repeat": "eos"}
        return {"id": repeat.name, **item, **times, **_condition(repeat), **_doc(repeat)}

    def _choice(self, owner: str, choice: Choice, following: Field | None, names: Set[str]) -> Iterator[Entry]:
        """Yield the tag of a choice and its content; the tag of an optional choice may be the constant after it."""
        enum = f"{owner}_{choice.kind_name}"
        (kind,) = distinct([choice.kind_name], names) if choice.valued else (choice.kind_name,)
        tags = {branch.tag[0]: _named(branch.name, branch.description) for branch in choice.alternatives}
        if following is not None:
            about = "None of them: this is the next field."
            tags[following.constant_number or 0] = _named(_after(choice, following), about)
        self.enums[enum] = tags
        yield _enumerated(kind, enum) | _doc(choice)
        for branch in choice.alternatives:
            if branch.term:
                (name,) = distinct([f"{branch.name}_version"], names)
                test = f"{kind} != {enum}::{branch.name} or ({branch.condition})"
                about = in_words(branch.term)
                yield _check(name, test, f"{about[0].upper()}{about[1:]}.")
        cases = {f"{enum}::{b.name}": self._then(owner, b) for b in choice.alternatives if b.then is not None}
        if cases:
            yield {"id": choice.name, "type": {"switch-on": kind, "cases": cases}}

    def _free(self, name: str) -> str:
        """Return a unique name for a type or an enum: in some languages both become classes."""
        (free,) = distinct([name], self.taken | self.types.keys() | self.enums.keys())
        return free

    def _then(self, owner: str, branch: Alternative) -> str:
        if isinstance(branch.then, str):
            return self._reference(self.spec.part(branch.then), self.classes[branch.then])
        structure, name = branch.then or Structure(()), self._free(f"{owner}_{branch.name}")
        self._type(name, structure, branch.description)
        return self._reference(structure, name)

    def _field(self, owner: str, field: Field) -> Entry:
        """Return how a field is read."""
        if field.constant_bytes is not None:
            return {"contents": list(field.constant_bytes)}
        if field.part:
            size = {"size": field.length} if field.length else {}
            return {**size, "type": self._reference(self.spec.part(field.part), self.classes[field.part])}
        if field.is_text:
            return {"type": "text"}
        if field.is_block:
            return {"size": field.size}
        if field.size is None:
            return {"size": field.length} if field.length else {"size-eos": True}
        kind = "f" if field.is_float else "s" if field.signed else "u"
        return {"type": f"{kind}{field.size}", **self._valid(owner, field)}

    def _valid(self, owner: str, field: Field) -> Entry:
        if field.bits:
            others = (1 << 8 * (field.size or 0)) - 1 & ~field.mask
            return {"valid": {"expr": f"(_ & {others:#x}) == 0"}}
        if not field.values:
            return {}
        if max(field.codes) >= 1 << 63:  # Kaitai's compiler rejects enum values of 2**63 and more
            # As text, which the compiler parses as an expression: a number above 2**53 would be rounded in JavaScript.
            return {"valid": {"any-of": [str(code) for code in field.codes]}}
        enum = self._free(f"{owner}_{field.name}")
        self.enums[enum] = dict(zip(field.codes, members(field.values.values()), strict=True))
        return {"enum": enum, "valid": {"in-enum": True}}

    def _reference(self, structure: Structure, name: str = "") -> str:
        """Return a type with its parameters."""
        names = self._needed([structure])
        return (name or self.classes[str(structure.class_name)]) + (f"({', '.join(names)})" if names else "")

    def _parameters(self, structures: Iterable[Structure]) -> Entry:
        needed = self._needed(structures)
        found = [each for each in self.spec.parameters if each.name in needed]
        entries = [{"id": e.name, "type": PARAMETER_TYPES[e.type], **_doc(e)} for e in found]
        return {"params": entries} if entries else {}

    def _needed(self, structures: Iterable[Structure]) -> list[str]:
        """Return the parameters on which the layouts of structures depend, in order."""
        words: set[str] = set()
        for structure in structures:
            words |= {self.version} if isinstance(structure, Message) and structure.needs else set()
            for element in (each for inside in self.spec.reached(structure) for each in inside.elements):
                branches = element.alternatives if isinstance(element, Choice) else ()
                variants = element.variants if isinstance(element, Field) else ()
                for each in (element, *branches, *variants):
                    words |= conditions.parameters(each.term)
        return [parameter.name for parameter in self.spec.parameters if parameter.name in words]


def _next(structure: Structure, choice: Choice) -> Field | None:
    """Return the constant after an optional choice."""
    following = structure.elements[structure.elements.index(choice) + 1] if choice.optional else None
    return following if isinstance(following, Field) else None


def _after(choice: Choice, following: Field) -> str:
    """Return the enum member, among the tags of an optional choice, for the constant after it."""
    return distinct([following.name], [branch.name for branch in choice.alternatives])[0]


def _before(structure: Structure, field: Field) -> Choice | None:
    """Return the optional choice before a constant, which has read the constant if no branch was present."""
    index = structure.elements.index(field)
    before = structure.elements[index - 1] if index else None
    return before if isinstance(before, Choice) and before.optional else None


def _enumerated(name: str, enum: str) -> Entry:
    return {"id": name, "type": "u1", "enum": enum, "valid": {"in-enum": True}}


def _check(name: str, expression: str, about: str) -> Entry:
    """Return a field without bytes that only carries a check."""
    return {"id": name, "size": 0, "valid": {"expr": expression}, "doc": about}


def _variant_names(structure: Structure, field: Field) -> list[str]:
    """Return the names of the variants of a field; if only one has a value, it has the field's own name."""
    held = [each for each in field.variants if not each.hidden]
    taken = {name for element in structure.elements for name in element.names}
    names = []
    for number, each in enumerate(field.variants, 1):
        name = field.name
        while name in taken and not (name == field.name and held == [each]):
            name = f"{name}_{number}"
        taken.add(name)
        names.append(name)
    return names


def _whole(structure: Structure, field: Field) -> str:
    """Return the value of a field from whichever variant is present; nothing if a reader has no type for it."""
    names = _variant_names(structure, field)
    held = [(each, name) for each, name in zip(field.variants, names, strict=True) if not each.hidden]
    if len(held) < 2 or field.part or field.values:
        return ""
    *others, (_, value) = held
    for each, name in reversed(others):
        value = f"({each.condition}) ? {name} : ({value})"
    return value


def _condition(field: Field | Repeat) -> Entry:
    return {"if": field.condition} if field.conditional else {}


def _doc(described: Any) -> Entry:
    return {"doc": _harmless(described.description)} if described.description else {}


def _harmless(text: str) -> str:
    """Return text that cannot end a comment in any target language, and has no escapes for Python's docstrings."""
    return text.replace("\\", "\\\\").replace('"', "'").replace("*/", "* /")


def _named(name: str, about: str) -> Mapping[str, str]:
    return {"id": name, "doc": _harmless(about)} if about else {"id": name}
