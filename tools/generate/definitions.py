"""Emits the construct definitions: one Struct a message, in the order of the specification, one field a line."""

from collections.abc import Iterator
from textwrap import wrap

from tools.generate.text import constant, docstring, python_module
from tools.language import Choice, Field, Message, Part, Repeat, Spec
from tools.language.elements import Alternative, Element, Structure

__all__ = ["emit_definitions"]

IMPORTS = """
from collections.abc import Mapping
from typing import Final

from construct import FocusedSeq, Struct, Switch, this

from pgoutput_construct.wire import {messages} as m
from pgoutput_construct.wire.composites import Counted, Extending, Kind, Record, SizeOf, Terminated, Valued, when
from pgoutput_construct.wire.framing import Closed, Length
from pgoutput_construct.wire.given import Given
from pgoutput_construct.wire.primitives import (
    Absent, Bits, Constant, Data, End, FullXid, Letter, Oid, OneOf, SInt8, SInt16, SInt32, SInt64, Since, String,
    TimestampTz, UInt8, UInt16, UInt32, UInt64, Xid, XLogRecPtr,
)
"""


def emit_definitions(spec: Spec, messages: str) -> str:
    """Return the module of definitions; ``messages`` is the module that holds their classes."""
    public = [named.class_name for named in spec.named]
    return python_module(
        spec,
        [f"{spec.title}: the construct definitions, which parse and build.", "", *_about(spec)],
        IMPORTS.format(messages=messages),
        f"__all__ = {['DEFINITIONS', *sorted(public)]!r}",
        _given(spec),
        *(_part(part) for part in spec.parts_in_order),
        *(_message(message) for message in spec.messages),
        _table(spec),
    )


def _about(spec: Spec) -> Iterator[str]:
    if spec.parameters:
        names = ", ".join(f"{p.name} ({p.type})" for p in spec.parameters)
        yield from wrap(f"Every parse and build takes the parameters as keywords: {names}.", 115)
    yield f"Source: PostgreSQL's documentation, {spec.source}."


def _given(spec: Spec) -> str:
    oldest = spec.versions[0].version if spec.versions else 1
    defaults = (f"{p.name}={oldest if p.type == 'int' else False}" for p in spec.parameters)
    text = "The parameters, and what holds where one is left out."
    return f"given: Final = Given({', '.join(defaults)})\n" + docstring([text], "")


def _part(part: Part) -> str:
    return f"{part.name} = {_structure(part)}"


def _message(message: Message) -> str:
    since = [f"Since({message.needs})"] if message.needs else []
    lines = [
        *since,
        *_lines(message),
        f"Closed({len(message.tag)}, {_type(message.length)})" if message.length else "End",
    ]
    return f"{message.class_name} = given.layout(\n" + "".join(f"{line},\n" for line in lines) + ")"


def _structure(structure: Structure) -> str:
    """Return a structure inside another: known by its one field, a record of its class, or the one or the other."""
    single = structure.single
    if single is not None and len(structure.elements) == 1:
        return _construct(single)
    lines = "".join(f"{line},\n" for line in _lines(structure))
    if single is not None:
        return f'FocusedSeq("{single.name}", \n{lines})'
    if structure.extended:
        return f"Extending({_extension(structure)}, m.{structure.class_name}, Struct(\n{lines}))"
    return f"Record(m.{structure.class_name}, Struct(\n{lines}))"


def _extension(structure: Structure) -> str:
    several = len(structure.conditions) > 1
    return " | ".join(f"({_this(each)})" if several else _this(each) for each in structure.conditions)


def _this(condition: str) -> str:
    """Return a condition of the model as construct evaluates it."""
    terms = [f"given.{term}" for term in condition.split(" and ")]
    return " & ".join(f"({term})" for term in terms) if len(terms) > 1 else terms[0]


def _lines(structure: Structure) -> Iterator[str]:
    for element in structure.elements:
        if isinstance(element, Choice) and not element.valued:
            yield from _kind_lines(element, structure)
        elif isinstance(element, Field) and element.name in structure.sizes:
            absent = ", absent=-1" * element.signed
            yield f'"{element.name}" / SizeOf("{structure.sizes[element.name]}", {_construct(element)}{absent})'
        else:
            yield f'"{element.name}" / {_construct(element)}'


def _kind_lines(choice: Choice, structure: Structure) -> Iterator[str]:
    tags = "".join(a.letter for a in choice.alternatives)
    following = structure.elements[structure.elements.index(choice) + 1] if choice.optional else None
    before = f", before={following.constant!r}" if isinstance(following, Field) else ""
    yield f'"{choice.kind_name}" / Kind({tags!r}{before}{_since(choice)})'
    cases = ", ".join(f"{a.letter!r}: {_then(a)}" for a in choice.alternatives)
    yield f'"{choice.name}" / Switch(this.{choice.kind_name}, {{{cases}}}, default=Absent)'


def _since(choice: Choice) -> str:
    newer = {a.letter: a.since for a in choice.alternatives if a.since}
    return f", since={newer!r}" if newer else ""


def _then(alternative: Alternative) -> str:
    if alternative.then is None:
        return "Absent"
    return alternative.then if isinstance(alternative.then, str) else _structure(alternative.then)


def _construct(element: Element) -> str:
    if isinstance(element, Repeat):
        item = _structure(element.item)
        return f"Counted(this.{element.count}, {item})" if element.count else f"Terminated({item})"
    if isinstance(element, Choice):
        return _valued(element)
    construct = _primitive(element)
    return f"when({_this(element.condition)}, {construct})" if element.conditional else construct


def _valued(choice: Choice) -> str:
    values = "".join(f"{a.letter!r}: {a.value},\n" for a in choice.alternatives)
    cases = "".join(f"{a.letter!r}: {_then(a)},\n" for a in choice.alternatives if a.then)
    return f"Valued({{\n{values}}}, {{\n{cases}}}{_since(choice)})"


def _primitive(field: Field) -> str:
    if field.constant_bytes is not None:
        return f"Constant({field.constant_bytes!r})"
    if field.frames:
        return f"Length({_type(field)})"
    return field.part or _value(field)


def _value(field: Field) -> str:
    if field.is_letter:
        return f'Letter("{"".join(map(str, field.values or ()))}")'
    if field.values:
        return f"OneOf({_type(field)}, {', '.join(map(str, field.values))})"
    if field.bits:
        return f"Bits({_type(field)}, {field.mask:#x})"
    return _data(field) if field.python == "bytes" else _type(field)


def _data(field: Field) -> str:
    absent = ", absent=-1" if field.absent is not None else ""
    return f"Data({f'this.{field.length}' if field.length else ''}{absent})"


def _type(field: Field) -> str:
    assert field.type is not None
    return field.type.construct


def _table(spec: Spec) -> str:
    rows = (f"m.{message.class_name}: {message.class_name}" for message in spec.messages)
    return constant("DEFINITIONS: Final[Mapping[type, Struct]]", rows, "The definition of each message class.")
