"""Emits the Hypothesis strategies: one function a message, under given options."""

from tools.generate.text import constant, docstring, python_module, snake_case
from tools.language import Choice, Field, Message, Part, Repeat, Spec
from tools.language.elements import Alternative, Element, Structure

__all__ = ["emit_strategies"]

IMPORTS = """
from collections.abc import Callable, Mapping
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pgoutput_construct.testing.primitives import (
    absent_or, bits, blobs, branches, lsns, record, several, signed, strings, timestamps, unsigned
)
from pgoutput_construct.wire import {messages} as m
"""

LEAVES = {"Lsn": "lsns()", "Timestamp": "timestamps()", "str": "strings()", "bytes": "blobs()"}


def emit_strategies(spec: Spec, messages: str) -> str:
    """Return the module of strategies for the classes of the module ``messages``."""
    return python_module(
        spec,
        [f"{spec.title}: Hypothesis strategies for every message, under given options."],
        IMPORTS.format(messages=messages),
        f"__all__ = {_public(spec)!r}",
        *(_part(part, spec) for part in spec.parts_in_order),
        *(_message(message, spec) for message in spec.messages),
        _table(spec),
    )


def _public(spec: Spec) -> list[str]:
    return [
        "STRATEGIES",
        *sorted([*(_name(part) for part in spec.parts), *(_name(message) for message in spec.messages)]),
    ]


def _name(named: Message | Part) -> str:
    return _any(named.class_name if isinstance(named, Message) else named.name)


def _any(class_name: str) -> str:
    return f"any_{snake_case(class_name)}"


def _message(message: Message, spec: Spec) -> str:
    name = message.class_name
    return _function(name, f"m.{name}", _name(message), _record(message, name), spec)


def _part(part: Part, spec: Spec) -> str:
    cls = "Any" if part.extended else f"m.{part.name}"
    return _function(part.name, cls, _name(part), _inside(part, part.name), spec)


def _function(title: str, cls: str, name: str, body: str, spec: Spec) -> str:
    body = body.replace("(PARAMETERS)", f"({', '.join(spec.arguments)})")
    head = f"def {name}({', '.join(spec.signature)}) -> SearchStrategy[{cls}]:"
    text = f"Return any {title} that these options can carry."
    return f"{head}\n{docstring([text])}\n    return {body}\n"


def _inside(structure: Structure, class_name: str | None) -> str:
    """Return the strategy of a structure inside another: of its principal, of its class, or of one of them."""
    principal = _strategy(structure.principal) if structure.principal is not None else ""
    if structure.single is not None:
        return principal
    record = _record(structure, str(class_name))
    return f"({record} if {structure.extension} else {principal})" if structure.extended else record


def _record(structure: Structure, class_name: str) -> str:
    fields = "".join(f"{element.name}={_strategy(element)},\n" for element in structure.exposed)
    return f"record(m.{class_name}, {fields})" if fields else f"st.builds(m.{class_name})"


def _strategy(element: Element) -> str:
    if isinstance(element, Repeat):
        return f"several({_inside(element.item, element.class_name)})"
    if isinstance(element, Choice):
        return _choice(element)
    primitive = _primitive(element)
    return f"absent_or({element.condition}, {primitive})" if element.conditional else primitive


def _primitive(field: Field) -> str:
    if field.part:
        return f"{_any(field.part)}(PARAMETERS)"
    assert field.type is not None
    if field.values:
        return f"st.sampled_from({list(field.values)!r})"
    if field.bits:
        return f"bits({field.mask:#x})"
    if field.type.python in LEAVES:
        return LEAVES[field.type.python]
    return f"{'signed' if field.signed else 'unsigned'}({field.size})"


def _choice(choice: Choice) -> str:
    if choice.valued:
        return f"st.one_of({', '.join(_guarded(a, _value(a)) for a in choice.alternatives)})"
    cases = ", ".join(f"{a.letter!r}: {_guarded(a, _then(a))}" for a in choice.alternatives)
    return f"branches({{{cases}}}{', optional=True' if choice.optional else ''})"


def _guarded(alternative: Alternative, strategy: str) -> str:
    """Return the strategy of an alternative that came with a version: nothing at all before it."""
    return f"({strategy} if {alternative.condition} else st.nothing())" if alternative.condition else strategy


def _value(alternative: Alternative) -> str:
    python = str(alternative.python)
    if alternative.then is None:
        return "st.none()" if python == "None" else f"st.just(m.{python})"
    content = _then(alternative)
    return content if python == "bytes" else f"{content}.map(m.{python})"


def _then(alternative: Alternative) -> str:
    if alternative.then is None:
        return "st.none()"
    if isinstance(alternative.then, str):
        return f"{_any(alternative.then)}(PARAMETERS)"
    return _inside(alternative.then, None)


def _table(spec: Spec) -> str:
    rows = (f"m.{m.class_name}: ({m.needs or 1}, {_name(m)})" for m in spec.messages)
    kind = "Final[Mapping[type, tuple[int, Callable[..., SearchStrategy[Any]]]]]"
    text = "The protocol version that each message class needs, and its strategy."
    return constant(f"STRATEGIES: {kind}", rows, text)
