"""Names that are one name in a language of the codecs: refused with file, line and remedy; all others compile."""

import re

import pytest

from pgoutput_construct import SpecError
from tools.generate.outputs import CODECS
from tools.generate.taken_names import check_names
from tools.language import SPEC, load, load_text

TEXT = """\
protocol: taken
title: Taken
source: nowhere
versions:
  - {version: 1, server: 10}
parameters:
  proto_version: {type: int}
messages:
  - name: First
    blocks:
      - type: header
        fields:
          - {field: Byte1('F'), name: tag}
          - {field: Int8, name: xid}
          - {field: Int8, name: flags, bits: {1: one}}
      - type: choice_1
        name: old
        alternatives:
          - {field: Byte1('K'), name: key, then: Row}
          - {field: Byte1('O'), name: row, then: Row}
  - name: Second
    blocks: [{type: header, fields: [{field: Byte1('S'), name: tag}]}]
parts:
  - name: Row
    blocks: [{type: header, fields: [{field: Int8, name: a}, {field: Int8, name: b}]}]
options:
  - {name: proto_version, type: number, server: 10}
"""
SECOND = "  - name: Second\n"
FLAGS = "          - {field: Int8, name: flags,"
REFUSED = {
    "a field in Go": (FLAGS, "          - {field: Int8, name: x_id}\n" + FLAGS, "x_id would be called XID in Go", 15),
    "a method in Go": ("name: xid}", "name: message_name}", "would be called MessageName in Go, like a method", 14),
    "a variable in Rust": (
        "name: xid}",
        "name: r}\n          - {field: Int8, name: r_}",
        "the field r_ would be called R in Go, as the field r is",
        15,
    ),
    "what each codec has": (
        SECOND,
        "  - name: Layout\n",
        "would be called Layout, which generated code uses in each",
        21,
    ),
    "the type of all": (SECOND, "  - name: All Of Them\n", "AllOfThem, which generated code uses in each codec", 21),
    "what codecs with options have": (
        SECOND,
        "  - name: Options\n",
        "Options, which generated code uses in each codec",
        21,
    ),
    "a function in Go": (SECOND, "  - name: Parse Message\n", "ParseMessage, which generated code uses in Go", 21),
    "the prelude of Rust": (SECOND, "  - name: Vec\n", "Vec, which generated code uses in Rust", 21),
    "a branch in Go": (SECOND, "  - name: First Old Key\n", "the branch key would be called FirstOldKey in Go", 19),
    "a constant in Go": (
        SECOND,
        "  - name: First Flags One\n",
        "a constant of flags would be called FirstFlagsOne",
        15,
    ),
}
"""What is replaced, by what, the problem, and the line."""


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    """The line is that of the name that can be changed."""
    old, new, problem, line = REFUSED[case]
    assert old in TEXT
    with pytest.raises(SpecError, match=rf"^taken\.yaml:{line}: .*{re.escape(problem)}.*\. Choose another name\.$"):
        check_names(load_text(TEXT.replace(old, new, 1), "taken.yaml"), "AllOfThem")


@pytest.mark.parametrize("name", ["Error", "Box", "Result", "Copy", "State", "Message Name", "Number", "First Old"])
def test_accepted(name: str) -> None:
    """What compiles is accepted: a module has names of its own, and a choice gives way."""
    check_names(load_text(TEXT.replace("name: Second", f"name: {name}", 1), "taken.yaml"), "AllOfThem")


def test_of_the_project() -> None:
    """The specifications themselves take no such name."""
    for name, union in CODECS.values():
        check_names(load(SPEC / name), union)
