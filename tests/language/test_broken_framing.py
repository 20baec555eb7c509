"""The rules for messages with a length: the error of a broken one has file, line and remedy."""

import pytest

from tests.language.sound import FRAMED, SOUND, assert_refused
from tools.language import load_text

LENGTH = "{field: Int32, name: length, measures: rest}"
ROW = "{field: Byte1('R'), name: tag}\n          - "
SIZED = (
    "{field: Int32, name: size, signed: true}\n              - {field: Byten, name: value, length: size, absent: -1}"
)
SETTING = "{field: String, name: label}\n              - {field: String, name: value}"
MORE = "then: [{field: String, name: more}]"

BROKEN = {
    "a message without a length": (f"{ROW}{LENGTH}", f"{ROW}{{field: Int32, name: x}}", "Row has no length, but others have one"),
    "a message without states": ("    sender: server\n    in: [ready]\n", "    sender: server\n", "names no states"),
    "a message of a server that is ignored": (
        "    sender: server\n    in: [ready]\n",
        "    sender: server\n    in: [ready]\n    ignored: [ready]\n",
        "no client sends it",
    ),
    "a message that is ignored in no state": (
        "    sender: server\n    in: [ready]\n",
        "    sender: client\n    in: [ready]\n    ignored: [nowhere]\n",
        "'nowhere' is not a state",
    ),
    "lengths of two types": (f"{ROW}{LENGTH}", f"{ROW}{LENGTH.replace('Int32', 'Int16')}", "has another type"),
    "a parameter": ("states:\n", "parameters: {parallel: {type: bool}}\nstates:\n", "depend on versions, parameters"),
    "an option": (
        "states:\n",
        "options: [{name: names, server: 10, type: names}]\nstates:\n",
        "depend on versions, parameters or options",
    ),
    "a field with a condition": (
        "{field: Int16, name: value_count}",
        "{field: Int16, name: value_count}\n          - {field: Int8, name: more, when: parallel}",
        "not a bool parameter",
    ),
    "a field of a version": (
        "{field: Int16, name: value_count}",
        "{field: Int16, name: value_count}\n          - {field: Int8, name: more, since: 2}",
        "not a protocol version",
    ),
    "a length after another field": (
        f"{ROW}{LENGTH}",
        f"{ROW}{{field: Int8, name: flags}}\n          - {LENGTH}",
        "Row has no length, but others have one",
    ),
    "a second length": (f"{ROW}{LENGTH}", f"{ROW}{LENGTH}\n          - {LENGTH.replace('length', 'again')}", "again cannot"),
    "a length in a part": ("{field: String, name: text}", LENGTH, "length cannot hold the length of a message"),
    "a length in an item": (SETTING, f"{SETTING}\n              - {LENGTH}", "length cannot hold the length"),
    "a length in a branch": (MORE, f"then: [{LENGTH}, {{field: String, name: more}}]", "length cannot hold the length"),
    "a length of a constant": (f"{ROW}{LENGTH}", f"{ROW}{LENGTH.replace('Int32', 'Int32(4)')}", "length cannot hold"),
    "a length with a sign": (
        f"{ROW}{LENGTH}",
        f"{ROW}{{field: Int32, name: length, measures: rest, signed: true}}",
        "length cannot hold the length",
    ),
    "a length of text": (f"{ROW}{LENGTH}", f"{ROW}{LENGTH.replace('Int32', 'String')}", "length cannot hold the length"),
    "a length that is a part": (f"{ROW}{LENGTH}", f"{ROW}{LENGTH.replace('Int32', 'Detail')}", "length cannot hold"),
    "a length of some values": (
        f"{ROW}{LENGTH}",
        f"{ROW}{{field: Int32, name: length, measures: rest, values: {{4: four}}}}",
        "length cannot hold the length",
    ),
    "a length that is also a count": ("count: value_count", "count: length", "not a plain unsigned integer"),
    "a length of something else": (f"{ROW}{LENGTH}", f"{ROW}{LENGTH.replace('rest', 'row')}", "'row' is not one of the permitted words"),
    "two messages that begin alike": ("Int32(80877102)", "Int32(196608)", "Cancel and Hello begin alike"),
    "a constant that begins another": ("Int16(3)", "Int8(4)", "Cancel and Hello begin alike"),
    "a message that no constant tells apart": ("{field: Int32(80877102), name: code}", "{field: Int32, name: code}", "begin alike"),
    "a tag next to none": (
        "{field: Int32, name: length, measures: rest}\n          - {field: Int32(80877102), name: code}",
        "{field: Byte1('C'), name: tag}",
        "Cancel and Hello begin alike and are both permitted in the state 'start' of a client",
    ),
    "a value without a length": ("length: size, absent: -1", "absent: -1", "has no length"),
    "a number that may be absent": ("{field: Int16, name: value_count}", "{field: Int16, name: value_count, absent: -1}", "has no length that could"),
    "absent that is another number": ("absent: -1", "absent: -2", "-2 is not one of the permitted words"),
    "a value that may be absent without a sign": (", signed: true}", "}", "not a plain signed integer"),
    "a sign for a value that is always there": (", absent: -1", "", "not a plain unsigned integer"),
    "a branch whose content may be absent": (
        MORE,
        "then: [{field: Int32, name: size, signed: true}, {field: Byten, name: more, length: size, absent: -1}]",
        "what follows the tag of the alternative some may be absent",
    ),
    "a branch whose part may be absent": (
        f"{MORE}}}\n          - {{field: Byte1('Z'), name: nothing}}\nparts:\n",
        "then: Whole}\nparts:\n  - name: Whole\n    blocks: [{type: header, fields: [{field: Nullable, name: inner}]}]\n"
        "  - name: Nullable\n    blocks: [{type: header, fields: [{field: Int32, name: size, signed: true}, "
        "{field: Byten, name: value, length: size, absent: -1}]}]\n",
        "what follows the tag of the alternative some may be absent",
    ),
    "a repeat without an end": ("        until: Int8(0)\n        class: Setting\n", "        class: Setting\n", "none of count, until, while is there"),
    "a repeat with two ends": ("        until: Int8(0)\n", "        until: Int8(0)\n        count: length\n", "count and until are both present"),
    "a repeat that ends with something else": ("until: Int8(0)", "until: Int8(1)", "did you mean 'Int8(0)'?"),
    "an item that begins with a number": (SETTING, SETTING.replace("String", "Int16", 1), "can begin with the byte that ends"),
    "an item that begins with a length": (SETTING, SIZED, "can begin with the byte that ends"),
    "an item that begins with a choice": (
        "blocks:\n          - {type: header, fields: [{field: Detail, name: detail}]}\n",
        "class: Item\n        blocks:\n          - {type: choice_1, name: detail, alternatives: [{field: Byte1('A'), name: some}]}\n",
        "can begin with the byte that ends",
    ),
    "an item whose part begins with a number": (
        "{field: Int8, name: kind, values: {S: severity, M: message}}",
        "{field: Int8, name: kind, values: {0: zero, 1: one}}",
        "can begin with the byte that ends",
    ),
    "a repeat in a branch": (
        MORE,
        "then: [{type: repeat_1, name: more, until: Int8(0), blocks: []}]",
        "messages/4/blocks/2/alternatives/0",
    ),
}  # fmt: skip

UNFRAMED = {
    "a state of a plain COPY": ("{name: idle}", "{name: idle, plain_copy: true}", "Remove plain_copy"),
    "until": ("count: row_count", "until: Int8(0)", "rows needs messages with a length"),
    "absent": (
        "{field: Int16, name: row_count}",
        "{field: Int32, name: size, signed: true}\n          - {field: Byten, name: value, length: size, absent: -1}\n"
        "          - {field: Int16, name: row_count}",
        "value needs messages with a length",
    ),
    "one message that says its length": (
        "{field: Byte1('F'), name: tag}",
        f"{{field: Byte1('F'), name: tag}}\n          - {LENGTH}",
        "Second has no length, but others have one",
    ),
}


def test_the_framed_specification_is_whole() -> None:
    """What the broken ones are made from loads, and its messages are known by tag, length and constant."""
    spec = load_text(FRAMED)
    assert spec.framed
    assert [(m.tag, m.length is not None, m.code_bytes) for m in spec.messages] == [
        (b"", True, b"\0\3"),
        (b"", True, (80877102).to_bytes(4, "big")),
        (b"N", False, b""),
        (b"R", True, b""),
        (b"N", True, b""),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("case", BROKEN)
def test_broken_framing_names_line_and_remedy(case: str) -> None:
    """Each broken rule is a SpecError with file, line, problem and remedy."""
    assert_refused(*BROKEN[case], sound=FRAMED)


@pytest.mark.parametrize("case", UNFRAMED)
def test_words_of_framing_need_messages_with_lengths(case: str) -> None:
    """What only messages with lengths can have is refused in a specification whose messages have none."""
    assert_refused(*UNFRAMED[case], sound=SOUND)
