"""Emits the construct definitions: one Struct a message, in the order of the specification, one field a line."""

from collections.abc import Iterator
from textwrap import wrap

from tools.generate.text import WIRE, constant, docstring, python_module
from tools.generate.words import in_words
from tools.language import Choice, Field, Message, Part, Repeat, Spec
from tools.language.conditions import VERSION, Bit, Every, Flag, Not, Since, Some, Term, Until
from tools.language.elements import Alternative, Element, Structure

__all__ = ["emit_definitions"]

IMPORTS = """
from collections.abc import Mapping
from typing import Final

from construct import FocusedSeq, Struct, Switch, this

from {package} import {messages} as m
from pgoutput_construct.wire.areas import Area, AreaSize
from pgoutput_construct.wire.structures import (
    Closed, Composed, Counted, Extending, HasBit, Kind, Length, Record, Reserved, SizeOf, Terminated, ToEnd, Valued,
    when
)
from pgoutput_construct.wire.parameters import ParameterDefaults
from pgoutput_construct.wire.primitives import (
    Absent, Bits, Constant, Data, End, Float64, FullXid, Letter, Oid, OneOf, SInt8, SInt16, SInt32, SInt64, Since,
    String, TimestampTz, UInt8, UInt16, UInt32, UInt64, Xid, XLogRecPtr,
)
"""


def emit_definitions(spec: Spec, messages: str, package: str = WIRE) -> str:
    """Return the module of definitions; ``messages`` is the module of ``package`` with their classes."""
    public = [named.class_name for named in spec.named]
    return python_module(
        spec,
        [f"{spec.title}: the construct definitions, which parse and build.", "", *_about(spec)],
        IMPORTS.format(package=package, messages=messages),
        f"__all__ = {['DEFINITIONS', *sorted(public)]!r}",
        _parameter_defaults(spec),
        *(_part(part) for part in spec.parts_in_order),
        *(_message(message) for message in spec.messages),
        _table(spec),
    )


def _about(spec: Spec) -> Iterator[str]:
    if spec.parameters:
        names = ", ".join(f"{p.name} ({p.type})" for p in spec.parameters)
        yield from wrap(f"Every parse and build takes the parameters as keywords: {names}.", 115)
    yield f"Source: {spec.described_in}."


def _parameter_defaults(spec: Spec) -> str:
    oldest = spec.versions[0].version if spec.versions else 1
    defaults = (f"{p.name}={oldest if p.type == 'int' else False}" for p in spec.parameters)
    text = "The parameters, and what holds where one is left out."
    return f"parameters: Final = ParameterDefaults({', '.join(defaults)})\n" + docstring([text], "")


def _part(part: Part) -> str:
    return f"{part.name} = {_structure(part)}"


def _message(message: Message) -> str:
    since = [f"Since({message.needs})"] if message.needs else []
    lines = [
        *since,
        *_lines(message),
        f"Closed({len(message.tag)}, {_type(message.length)})" if message.length else "End",
    ]
    return f"{message.class_name} = parameters.definition(\n" + "".join(f"{line},\n" for line in lines) + ")"


def _structure(structure: Structure) -> str:
    """Return a nested structure: its single field, a record of its class, or either of them."""
    single = structure.single
    if single is not None and len(structure.elements) == 1:
        return _construct(single)
    lines = "".join(f"{line},\n" for line in _lines(structure))
    if single is not None:
        return f'FocusedSeq("{single.name}", \n{lines})'
    if structure.extended:
        return f"Extending({_this(structure.extension)}, m.{structure.class_name}, Struct(\n{lines}))"
    return f"Record(m.{structure.class_name}, Struct(\n{lines}))"


def _this(term: Term | None) -> str:
    """Return a condition as a construct expression."""
    match term:
        case Flag(name):
            return f"parameters.{name}"
        case Since(version):
            return f"parameters.{VERSION} >= {version}"
        case Until(version):
            return f"parameters.{VERSION} <= {version}"
        case Bit(field, mask):
            return f'HasBit("{field}", {mask})'
        case Not(inner):
            return f"~({_this(inner)})"
        case Every(terms):
            return " & ".join(f"({_this(each)})" for each in terms)
        case Some(terms):
            return " | ".join(f"({_this(each)})" for each in terms)
    raise TypeError(term)


def _lines(structure: Structure) -> Iterator[str]:
    for element in structure.elements:
        if isinstance(element, Choice) and not element.valued:
            yield from _kind_lines(element, structure)
        else:
            measured = structure.sizes.get(element.name) or structure.alike.get(element.name)
            yield f'"{element.name}" / {_construct(element, measured, element.name in structure.areas)}'


def _kind_lines(choice: Choice, structure: Structure) -> Iterator[str]:
    tags = _tags(choice)
    following = structure.elements[structure.elements.index(choice) + 1] if choice.optional else None
    before = f", before={following.constant_bytes!r}" if isinstance(following, Field) else ""
    yield f'"{choice.kind_name}" / Kind({tags}{before}{_since(choice)})'
    cases = ", ".join(f"{a.key!r}: {_then(a)}" for a in choice.alternatives)
    yield f'"{choice.name}" / Switch(this.{choice.kind_name}, {{{cases}}}, default=Absent)'


def _tags(choice: Choice) -> str:
    """Return the tags as the argument of a Kind: letters as one str, numbers as a tuple."""
    keys = [a.key for a in choice.alternatives]
    return repr(tuple(keys)) if choice.numeric else repr("".join(map(str, keys)))


def _since(choice: Choice) -> str:
    newer = {a.key: a.since for a in choice.alternatives if isinstance(a.term, Since)}
    others = {a.key: a.term for a in choice.alternatives if a.term and a.key not in newer}
    only = ", ".join(f"{key!r}: ({_this(term)}, {in_words(term)!r})" for key, term in others.items())
    return (f", since={newer!r}" if newer else "") + (f", only={{{only}}}" if only else "")


def _then(alternative: Alternative) -> str:
    if alternative.then is None:
        return "Absent"
    if alternative.content is not None and isinstance(alternative.then, Structure):
        lines = "".join(f"{line},\n" for line in _lines(alternative.then))
        return f'Composed({alternative.value}, "{alternative.content.name}", Struct(\n{lines}))'
    return alternative.then if isinstance(alternative.then, str) else _structure(alternative.then)


def _construct(element: Element, measured: str | None = None, of_area: bool = False) -> str:
    """Return an element; ``measured`` is what a count or a length measures, or the list that has as many items.

    ``of_area`` says that it is the length of a part.
    """
    if isinstance(element, Choice):
        return _valued(element)
    if isinstance(element, Field) and element.variants:
        return _variants(element, measured, of_area)
    construct = _repeat(element, measured) if isinstance(element, Repeat) else _primitive(element)
    if of_area:
        construct = f"AreaSize({construct})"
    elif isinstance(element, Field) and measured:
        construct = f'SizeOf("{measured}", {construct}{", absent=-1" * element.signed})'
    return f"when({_this(element.term)}, {construct})" if element.term else construct


def _repeat(repeat: Repeat, alike: str | None) -> str:
    item = _structure(repeat.item)
    if repeat.count:
        return f"Counted(this.{repeat.count}, {item}{f', alike={alike!r}' if alike else ''})"
    if repeat.fixed:
        return f"Counted({repeat.fixed}, {item})"
    return f"{'ToEnd' if repeat.to_end else 'Terminated'}({item})"


def _variants(field: Field, measured: str | None, of_area: bool) -> str:
    """Return a field with variants: the first one that is present."""
    *variants, last = field.variants
    construct = _variant(field, last, measured, of_area)
    if not field.complete:
        construct = f"when({_this(last.term)}, {construct})"
    for each in reversed(variants):
        construct = f"when({_this(each.term)}, {_variant(field, each, measured, of_area)}, {construct})"
    return construct


def _variant(field: Field, variant: Field, measured: str | None, of_area: bool) -> str:
    construct = _construct(variant.always, measured, of_area)
    return f"Reserved({construct})" if variant.hidden and not field.hidden else construct


def _valued(choice: Choice) -> str:
    values = "".join(f"{a.key!r}: {a.value},\n" for a in choice.alternatives)
    cases = "".join(f"{a.key!r}: {_then(a)},\n" for a in choice.alternatives if a.then)
    return f"Valued({{\n{values}}}, {{\n{cases}}}{_since(choice)})"


def _primitive(field: Field) -> str:
    if field.constant_bytes is not None:
        return f"Constant({field.constant_bytes!r})"
    if field.frames:
        return f"Length({_type(field)})"
    if field.is_area:
        return f'Area("{field.length}", {field.part})'
    return field.part or _value(field)


def _value(field: Field) -> str:
    if field.is_letter:
        return f'Letter("{"".join(map(str, field.values or ()))}")'
    if field.values:
        return f"OneOf({_type(field)}, {', '.join(map(str, field.values))})"
    if field.bits:
        return f"Bits({_type(field)}, {field.mask:#x})"
    return _data(field) if field.python == "bytes" and not field.is_block else _type(field)


def _data(field: Field) -> str:
    absent = ", absent=-1" if field.absent is not None else ""
    return f"Data({f'this.{field.length}' if field.length else ''}{absent})"


def _type(field: Field) -> str:
    assert field.type is not None
    return field.type.construct


def _table(spec: Spec) -> str:
    rows = (f"m.{message.class_name}: {message.class_name}" for message in spec.messages)
    return constant("DEFINITIONS: Final[Mapping[type, Struct]]", rows, "The definition of each message class.")
