"""Emits the message classes: frozen, slotted dataclasses in wire order, with units and source."""

from collections.abc import Iterator

from tools.generate.text import docstring, formatted, header, python_class
from tools.language import Choice, Field, Message, Repeat, Spec
from tools.language.model import Alternative, Element, Structure

__all__ = ["emit_messages"]

IMPORTS = """
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

from pgoutput_construct.wire.types import FormattedBytes, Lsn, Marker, Timestamp
"""


def emit_messages(spec: Spec, union: str) -> str:
    """Return the module of message classes; ``union`` names the type of any of them."""
    chunks = [
        header(spec),
        docstring([f"{spec.title}: the message classes, fields in wire order.", "", *_about(spec)], ""),
        IMPORTS,
        f"__all__ = {sorted(_public(spec, union))!r}",
        *_values(spec),
        *_support(spec),
        *(_message_class(spec, message) for message in spec.messages),
        f"{union}: TypeAlias = {' | '.join(m.class_name for m in spec.messages)}\n"
        + docstring(["Any of the messages."], ""),
        _by_tag(spec, union),
    ]
    return formatted("\n\n".join(chunks))


def _about(spec: Spec) -> Iterator[str]:
    yield "Constants, counts and lengths are on the wire and not here; what is absent on the wire is None."
    yield f"Source: PostgreSQL's documentation, {spec.source}."


def _public(spec: Spec, union: str) -> set[str]:
    """Return what a user imports: classes and constants; the tables are for the engines."""
    names = {union, *(m.class_name for m in spec.messages), *(p.name for p in spec.parts)}
    names |= {e.class_name for s in _all_structures(spec) for e in s.elements if isinstance(e, Repeat) and e.class_name}
    for alternative in _valued_alternatives(spec):
        python = str(alternative.python)
        names |= {python, python.capitalize()} if python.isupper() else {c for c in (python_class(python),) if c}
    return names


def _valued_choices(spec: Spec) -> Iterator[Choice]:
    for structure in _all_structures(spec):
        yield from (e for e in structure.elements if isinstance(e, Choice) and e.valued)


def _valued_alternatives(spec: Spec) -> list[Alternative]:
    return [alternative for choice in _valued_choices(spec) for alternative in choice.alternatives]


def _all_structures(spec: Spec) -> Iterator[Structure]:
    todo: list[Structure] = [*spec.parts, *spec.messages]
    while todo:
        structure = todo.pop(0)
        yield structure
        todo += [e.item for e in structure.elements if isinstance(e, Repeat)]


def _values(spec: Spec) -> Iterator[str]:
    alternatives = _valued_alternatives(spec)
    for alternative in alternatives:
        python = str(alternative.python)
        if python.isupper() and python != "None":
            yield _marker(alternative)
        elif python_class(python):
            yield f"class {python}(FormattedBytes):\n{docstring([alternative.description])}\n\n    __slots__ = ()"
    if alternatives:
        rows = "".join(f'"{a.name}": {a.python},\n' for a in alternatives)
        yield f"VALUES: Final[Mapping[str, object]] = {{\n{rows}}}\n" + docstring(
            ["What each kind of value is in Python: a constant, or a class of bytes."], ""
        )


def _marker(alternative: Alternative) -> str:
    name = str(alternative.python)
    cls = name.capitalize()
    return (
        f'class {cls}(Marker):\n{docstring([alternative.description])}\n\n    {name} = "{alternative.name}"\n\n\n'
        f"{name}: Final = {cls}.{name}\n" + docstring([alternative.description], "")
    )


def _support(spec: Spec) -> Iterator[str]:
    """Yield the aliases and classes that messages need, each after those that it needs itself."""
    for part in spec.parts_in_order:
        yield from _item_classes(part)
        if part.single is None:
            yield _data_class(part.name, part.description, part)
        else:
            yield f"{part.name}: TypeAlias = {_annotation(part.single)}\n" + docstring([part.description], "")
    for message in spec.messages:
        yield from _item_classes(message)


def _item_classes(structure: Structure) -> Iterator[str]:
    for element in structure.elements:
        if isinstance(element, Repeat):
            yield from _item_classes(element.item)
            if element.item.single is None:
                yield _data_class(str(element.class_name), element.description, element.item)


def _data_class(name: str, description: str, structure: Structure) -> str:
    return f"@dataclass(frozen=True, slots=True)\nclass {name}:\n{docstring([description])}\n\n" + _body(structure)


def _message_class(spec: Spec, message: Message) -> str:
    lines = [message.description, "", f"Source: {spec.source}, {message.name}.", f"{_availability(message)}."]
    return (
        f"@dataclass(frozen=True, slots=True)\nclass {message.class_name}:\n{docstring(lines)}\n\n"
        f"    TAG: ClassVar[bytes] = {message.tag!r}\n\n{_body(message)}"
    )


def _availability(message: Message) -> str:
    server = f"PostgreSQL {message.server} and newer" if message.server else "Any PostgreSQL"
    version = f", protocol version {message.since} and newer" if message.since else ""
    sender = f", sent by the {message.sender}" if message.sender else ""
    return server + version + sender


def _body(structure: Structure) -> str:
    lines = []
    for index, element in enumerate(structure.exposed):
        if isinstance(element, Choice) and not element.valued:
            tags = ", ".join(f"{a.tag.decode()} ({a.name})" for a in element.alternatives)
            lines += [
                f"    {element.kind_name}: str{_or_none(element)}",
                docstring([f"What {element.name} is: {tags}."]),
            ]
        rest = structure.exposed[index:]
        default = " = None" if all(isinstance(e, Field) and e.conditional for e in rest) else ""
        lines += [
            f"    {element.name}: {_annotation(element)}{default}",
            docstring([element.description or element.name]),
        ]
    return "\n".join(lines)


def _or_none(element: Element) -> str:
    optional = element.conditional if isinstance(element, Field) else isinstance(element, Choice) and element.optional
    return " | None" if optional else ""


def _annotation(element: Element) -> str:
    if isinstance(element, Repeat):
        single = element.item.single
        return f"tuple[{_annotation(single) if single is not None else element.class_name}, ...]"
    if isinstance(element, Choice):
        return _choice_annotation(element)
    if element.part:
        return element.part + _or_none(element)
    assert element.type is not None
    letters = element.values and all(isinstance(value, str) for value in element.values)
    return ("str" if letters else element.type.python) + _or_none(element)


def _choice_annotation(choice: Choice) -> str:
    if choice.valued:
        names = [str(a.python) for a in choice.alternatives]
        types = [name.capitalize() if name.isupper() else name for name in names if name != "None"]
        return " | ".join([*types, *(["None"] if "None" in names else [])])
    contents = [_then_annotation(a) for a in choice.alternatives]
    return " | ".join(dict.fromkeys([*contents, *(["None"] if choice.optional else [])]))


def _then_annotation(alternative: Alternative) -> str:
    if alternative.then is None:
        return "None"
    if isinstance(alternative.then, str):
        return alternative.then
    assert alternative.then.single is not None
    return _annotation(alternative.then.single)


def _by_tag(spec: Spec, union: str) -> str:
    rows = "".join(f"{m.tag!r}: {m.class_name},\n" for m in spec.messages)
    return f"BY_TAG: Final[Mapping[bytes, type[{union}]]] = {{\n{rows}}}\n" + docstring(
        ["The class of each first byte."], ""
    )
