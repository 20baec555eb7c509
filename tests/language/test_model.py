"""Properties of fields and structures in the model, on which every emitter relies."""

import struct

import pytest

from tools.language import SPEC, Choice, Field, Repeat, Spec, load, load_text
from tools.language.conditions import text
from tools.language.elements import Structure

HEAD = """\
protocol: demo
title: Demo
source: nowhere
versions: [{version: 1, server: 10}, {version: 2, server: 14}]
parameters: {proto_version: {type: int}, inside: {type: bool}}
messages:
  - name: First
    blocks:
      - type: header
        fields:
          - {field: Byte1('F'), name: tag}
"""
PART = "parts:\n  - name: Part\n    blocks:\n      - type: header\n        fields:\n"


def structure(*fields: str) -> Structure:
    """Return a part of these fields."""
    lines = "".join(f"          - {{{field}}}\n" for field in fields)
    return load_text(HEAD + PART + lines).parts[0]


@pytest.fixture(scope="module")
def spec() -> Spec:
    """The specification of the messages."""
    return load(SPEC / "pgoutput.yaml")


def test_sizes_are_those_of_the_struct_codes(spec: Spec) -> None:
    """Whatever has a size has a code of that size; a String has neither."""
    sized = [field for field in spec.fields() if field.size is not None]
    assert all(struct.calcsize(">" + field.code) == field.size for field in sized)
    assert {field.name for field in spec.fields() if field.is_text} >= {"gid", "namespace"}
    assert all(field.size is None for field in spec.fields() if field.is_text or field.part)


def test_facts_of_a_field() -> None:
    """Letters, bits, constants and conditions are said once, on the field."""
    kinds = structure(
        "field: Byte1('F'), name: tag",
        "field: Int8, name: letter, values: {d: default, f: full}",
        "field: Int8, name: number, values: {1: one, 2: two}",
        "field: Int16, name: flags, bits: {1: one, 4: four}",
        "field: Int32(7), name: seven",
        "field: Int64 (TimestampTz), name: time, when: inside, since: 2",
    )
    tag, letter, number, flags, seven, time = (e for e in kinds.elements if isinstance(e, Field))
    assert (tag.constant_number, tag.constant_bytes, tag.python, tag.size) == (70, b"F", "bytes", 1)
    assert (letter.is_letter, letter.codes, letter.python) == (True, (100, 102), "str")
    assert (number.is_letter, number.codes, number.python) == (False, (1, 2), "int")
    assert (flags.mask, flags.constant_number, flags.constant_bytes, flags.condition) == (5, None, None, "")
    assert (seven.constant_bytes, seven.code, seven.size) == (b"\0\0\0\7", "I", 4)
    assert (time.condition, time.code, time.python) == ("proto_version >= 2 and inside", "q", "Timestamp")


def test_structure_known_by_its_principal() -> None:
    """One field stands for all; conditional ones extend it; two that are always there make a record."""
    alone = structure("field: Int32, name: a")
    extended = structure(
        "field: Int8, name: b, since: 2", "field: Int32, name: a", "field: Int8, name: c, when: inside"
    )
    record = structure("field: Int32, name: a", "field: Int8, name: b")
    assert (alone.single, alone.principal, alone.extended) == (alone.elements[0], alone.elements[0], False)
    assert extended.single is None and extended.principal is extended.elements[1] and extended.extended
    assert text(extended.extension) == "(proto_version >= 2 or inside)"
    assert (record.single, record.principal, record.extended) == (None, None, False)
    assert extended.field_names == ("b", "a", "c")


def test_names_of_an_object_include_kinds(spec: Spec) -> None:
    """A choice that does not show in its value keeps its tag alongside."""
    update = next(message for message in spec.messages if message.name == "Update")
    assert update.field_names == ("xid", "relation_oid", "old_kind", "old", "new")
    assert all(not element.conditional for element in update.elements if isinstance(element, Choice | Repeat))


def test_parameters_as_generated_functions_take_them(spec: Spec) -> None:
    """Signature and arguments have the parameters in the specification's order."""
    assert spec.arguments == tuple(parameter.name for parameter in spec.parameters)
    assert spec.signature[0] == "proto_version: int"
