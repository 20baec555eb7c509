"""Layouts that PostgreSQL does not have yet: whatever a specification combines, people's side of it follows.

Parts that extend parts, conditions that overlap, choices of values of any type, choices that a version brings, signs,
and fields with the names of what generated code uses.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from itertools import product
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.vendor.pretty import pretty

import pgoutput_construct as pgo
from pgoutput_construct import wire
from pgoutput_construct.testing.strategies import any_of
from pgoutput_construct.wire import jsonable
from pgoutput_construct.wire.reference import Reference
from tools.generate.python.definitions import emit_definitions
from tools.generate.python.messages import emit_messages
from tools.generate.vectors.golden_vectors import vectors
from tools.generate.vectors.vectors_settings import Setting
from tools.language import load_text

pytestmark = pytest.mark.slow

SPEC = """\
protocol: odd
title: Odd
source: nowhere
versions: [{version: 1, server: 10}, {version: 2, server: 14}, {version: 3, server: 15}]
parameters: {proto_version: {type: int}, in_stream: {type: bool}, wide: {type: bool}}
messages:
  - name: First
    blocks:
      - type: header
        fields:
          - {field: Byte1('F'), name: tag}
          - {field: Nested, name: nested}
          - {field: Nested, name: more, when: wide}
          - {field: Int8, signed: true, name: cls, values: {1: one, 2: two}}
          - {field: Int16, signed: true, name: this, bits: {1: one, 2: two}}
      - type: choice_1
        name: either
        alternatives:
          - {field: Byte1('A'), name: one, then: Pair}
          - {field: Byte1('B'), name: two, then: Triple}
          - {field: Byte1('C'), name: three, then: Nested, since: 2}
          - {field: Byte1('D'), name: four}
          - field: Byte1('E')
            name: five
            then: [{field: Int64 (XLogRecPtr), name: number}]
      - type: choice_2
        name: late
        optional: true
        alternatives:
          - {field: Byte1('P'), name: pair, then: Pair, since: 3}
          - {field: Byte1('Q'), name: number, then: Number, since: 3}
      - type: body
        fields: [{field: Byte1('!'), name: stop}, {field: Names, name: names}, {field: Byten, name: rest}]
parts:
  - name: Nested
    blocks: [{type: header, fields: [{field: Inner, name: inner}, {field: Int8, name: depth, when: wide}]}]
  - name: Inner
    blocks:
      - type: header
        fields:
          - {field: Int8, name: a, since: 2}
          - {field: Int32, name: b}
          - {field: String, name: c, when: in_stream, since: 3}
  - name: Pair
    blocks: [{type: header, fields: [{field: Int32, name: x}, {field: String, name: y}]}]
  - name: Triple
    blocks:
      - type: header
        fields: [{field: Int32, name: x}, {field: String, name: y}, {field: Int8, name: z, since: 3}]
  - name: Number
    blocks: [{type: header, fields: [{field: Int16, name: n}]}]
  - name: Names
    blocks:
      - type: header
        fields: [{field: Int8, name: count_of_names}]
      - type: repeat_1
        name: names
        count: count_of_names
        class: Name
        blocks:
          - type: choice_1
            name: tail
            optional: true
            alternatives: [{field: Byte1('t'), name: tail, then: Number, since: 2}]
          - {type: body, fields: [{field: Byte1('.'), name: dot}, {field: Pair, name: pair}]}
"""
PARAMETERS = [
    {"proto_version": version, "in_stream": in_stream, "wide": wide}
    for version, in_stream, wide in product((1, 2, 3), (False, True), (False, True))
]


@pytest.fixture(scope="module")
def generated() -> Iterator[dict[str, ModuleType]]:
    """Generate modules from the specification, and import them."""
    spec = load_text(SPEC)
    texts = {
        "odd_messages": (wire, emit_messages(spec, union="PgoutputMessage")),
        "odd_definitions": (wire, emit_definitions(spec, messages="odd_messages")),
    }
    modules = {}
    for name, (package, text) in texts.items():
        modules[name] = module = ModuleType(f"{package.__name__}.{name}")
        sys.modules[module.__name__] = module
        setattr(package, name, module)
        exec(compile(text, name, "exec"), vars(module))
    yield modules
    for name, (package, _) in texts.items():
        delattr(package, name)
        del sys.modules[f"{package.__name__}.{name}"]


def types(value: Any) -> Any:
    """Return the types of a value and of all that it holds."""
    if is_dataclass(value):
        return type(value), [types(getattr(value, field.name)) for field in fields(value)]
    return (type(value), [types(item) for item in value]) if isinstance(value, tuple) else type(value)


def same(found: Any, expected: Any) -> bool:
    """Return whether two messages are equal, the types of all values included."""
    return bool(found == expected) and types(found) == types(expected)


@pytest.mark.parametrize("parameters", PARAMETERS, ids=lambda given: "-".join(map(str, given.values())))
def test_every_message_survives(parameters: dict[str, int], generated: dict[str, ModuleType]) -> None:
    """Bytes, JSON and what Hypothesis prints give the message back; cut bytes are refused."""
    messages = generated["odd_messages"]
    definitions = generated["odd_definitions"].DEFINITIONS
    reference = Reference(messages.BY_TAG, definitions)
    form = jsonable.JsonFormat([messages.First], {}).object_form(messages.First)

    @settings(max_examples=40)
    @given(any_of(messages.First, definitions[messages.First], parameters), st.data())
    def check(message: Any, draw: st.DataObject) -> None:
        data = reference.build(message, parameters)
        assert same(reference.parse(data, parameters), message)
        assert same(form.from_json(json.loads(json.dumps(form.to_json(message, "First"))), "First"), message)
        assert same(eval(pretty(message), vars(messages) | {"Lsn": pgo.Lsn}), message)
        with pytest.raises(pgo.DecodeError):
            reference.parse(data[: draw.draw(st.integers(0, len(data) - len(message.rest) - 1))], parameters)

    check()


@pytest.mark.parametrize("parameters", PARAMETERS, ids=lambda given: "-".join(map(str, given.values())))
def test_vectors_say_what_the_definitions_read(parameters: dict[str, int], generated: dict[str, ModuleType]) -> None:
    """The fields of a golden vector are those of the message, and what it refuses is refused at the same place."""
    messages = generated["odd_messages"]
    reference = Reference(messages.BY_TAG, generated["odd_definitions"].DEFINITIONS)
    form = jsonable.JsonFormat([messages.First], {}).object_form(messages.First)

    def read(vector: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"fields": form.to_json(reference.parse(bytes.fromhex(vector["hex"]), parameters), "First")}
        except pgo.DecodeError as error:
            return {"refuse": {"reason": vector.get("refuse", {}).get("reason"), "offset": error.offset}}

    found = list(vectors(load_text(SPEC), [Setting({}, parameters)]))
    assert sum("fields" in vector for vector in found) > 40
    assert [vector for vector in found if not read(vector).items() <= vector.items()] == []


def test_what_the_parameters_decide_is_checked(generated: dict[str, ModuleType]) -> None:
    """A bare value where an object belongs, and an object where a bare value does, are refused with their path."""
    m = generated["odd_messages"]
    reference = Reference(m.BY_TAG, generated["odd_definitions"].DEFINITIONS)
    old, new, newest = ({"proto_version": version, "in_stream": False, "wide": version == 3} for version in (1, 2, 3))
    bare = m.First(5, 1, 0, "D", None, (), b"")
    extended = m.First(m.Inner(5, a=1), 1, 0, "D", None, (), b"")
    nested = m.First(
        m.Nested(m.Inner(5, a=1), depth=2), 1, 0, "D", None, (), b"", more=m.Nested(m.Inner(6, a=1), depth=3)
    )
    right = [(bare, old), (extended, new), (nested, newest)]
    assert all(reference.build(message, parameters) for message, parameters in right)
    for message, parameters in product((bare, extended, nested), (old, new, newest)):
        if (message, parameters) not in right:
            with pytest.raises(pgo.EncodeError) as caught:
                reference.build(message, parameters)
            assert caught.value.path.startswith("First.nested")
