"""The rules of layouts: a field, tag, count or condition that cannot be names its file, its line and the remedy."""

import pytest

from pgoutput_construct import SpecError
from tests.language.sound import SOUND, assert_refused
from tools.language import load_text

BROKEN = {
    "a form of what holds no bytes": ("python: None}", "python: None, form: text}", "its values hold no bytes"),
    "a form of what has no python value": (
        "name: key, then",
        "name: key, form: text, then",
        "its values hold no bytes",
    ),
    "bytes that are no text": (
        "python: bytes\n",
        "python: bytes\n            form: binary\n",
        "the python value bytes and the form",
    ),
    "a form that is none": (
        "python: bytes\n",
        "python: bytes\n            form: hex\n",
        "not one of the permitted words",
    ),
    "a branch of an option that sets nothing": (
        "name: key, then",
        "name: key, option: mode, then",
        "option: mode does not follow from parameters",
    ),
    "an unknown notation": ("field: Int16,", "field: Int24,", "unknown notation 'Int24'"),
    "two messages of one tag": ("Byte1('S')", "Byte1('F')", "has the tag"),
    "a message without a tag": ("{field: Byte1('S'), name: tag}", "{field: Int8, name: tag}", "start with its tag"),
    "two alternatives of one tag": ("Byte1('O')", "Byte1('K')", "the same tag"),
    "a message whose tag is larger than a byte": ("Byte1('S')", "Int16(16)", "start with its tag"),
    "a branch whose tag is larger than a byte": ("field: Byte1('O')", "field: Int16(16)", "starts with 'Int16(16)'"),
    "a branch whose tag does not fit": ("field: Byte1('O')", "field: Int8(256)", "starts with 'Int8(256)'"),
    "tags that are letters and numbers": ("field: Byte1('O')", "field: Int8(16)", "are letters, others are numbers"),
    "a number and a letter that are one tag": ("Byte1('S')", "Int8(70)", "has the tag"),
    "an alternative without a tag": ("field: Byte1('O')", "field: Int8", "starts with 'Int8'"),
    "an optional choice before nothing": ("Byte1('N'), name: new_tag", "Int8, name: new_tag", "not followed by a tag"),
    "an optional choice before its own tag": ("Byte1('N')", "Byte1('K')", "one of its own tags"),
    "a count that is nowhere": ("count: row_count", "count: row_total", "not an earlier field"),
    "a count that is a flag": ("count: row_count", "count: flags", "not a plain unsigned integer"),
    "a count that may be absent": ("count: row_count", "count: xid", "which has another condition"),
    "a length on a number": (
        "name: flags, bits: {1: one}}",
        "name: size}\n          - {field: Int8, name: flags, length: size}",
        "neither a Byten nor a part",
    ),
    "a length for two": (
        "length: length}]",
        "length: length}, {field: Byten, name: more, length: length}]",
        "measures two",
    ),
    "a count of a list and of bytes": (
        "{field: Row, name: row}\n  - name: Second",
        "{field: Row, name: row}\n      - {type: body, fields: [{field: Byten, name: more, length: row_count}]}\n"
        "  - name: Second",
        "measures two",
    ),
    "a number of items that is none": ("count: row_count", "count: 0", "is less than 1"),
    "a second list under other conditions than its count": (
        "{field: Row, name: row}\n  - name: Second",
        "{field: Row, name: row}\n      - {type: repeat_2, name: more, count: xid, blocks: "
        "[{type: header, fields: [{field: Int8, name: one}]}]}\n  - name: Second",
        "which has another condition",
    ),
    "bytes without an end": ("name: data, length: length", "name: data", "has no length"),
    "a condition that is no parameter": ("when: in_stream", "when: streaming", "not a bool parameter"),
    "a condition on a number": ("when: in_stream", "when: proto_version", "not a bool parameter"),
    "a field that can never be present": (
        "- {name: idle}",
        "- {name: idle}\n  - {name: busy, sets: in_stream}",
        "never be present",
    ),
    "a change without a table": (
        "  - name: Second\n",
        "  - name: Second\n    group: change\n",
        "do not find the tables",
    ),
    "a version that is none": ("since: 2", "since: 7", "not a protocol version"),
    "versions in disorder": ("{version: 2, server: 14}", "{version: 1, server: 14}", "not in order"),
    "a state that is none": ("in: [idle]", "in: [busy]", "not a state"),
    "a part that is none": (
        "name: old\n        optional: true\n        alternatives:\n          - {field: Byte1('K'), name: key, then: Row}",
        "name: old\n        optional: true\n        alternatives:\n          - {field: Byte1('K'), name: key, then: Gone}",
        "no part Gone",
    ),
    "a part in itself": ("length: length}]", "length: length}, {field: Row, name: again}]", "contains itself"),
    "a part around itself": (
        "name: text\n            python: bytes\n            then: [{field: Int32, name: length}, {field: Byten, name: data, length: length}]",
        "name: text\n            python: Text\n            then: Row",
        "contains itself",
    ),
    "an item without a class": ("        class: FirstRow\n", "", "no class"),
    "an item that gains a field and has no class": (
        "        class: FirstRow\n        blocks:\n          - type: header\n            fields:\n"
        "              - {field: String, name: label}\n",
        "        blocks:\n          - type: header\n            fields:\n"
        "              - {field: String, name: label, since: 2}\n",
        "or one with a condition, and no class",
    ),
    "a value that gains a field": (
        "length: length}]",
        "length: length}, {field: Int8, name: more, since: 2}]",
        "has more than bytes, and the python value bytes",
    ),
    "a value that is no bytes": (
        "then: [{field: Int32, name: length}, {field: Byten, name: data, length: length}]",
        "then: [{field: Int32, name: number}]",
        "holds no bytes alone",
    ),
    "an item that can be empty": (
        "{field: String, name: label}\n              - {field: Row, name: row}",
        "{field: Int8, name: label, when: in_stream}",
        "can be empty",
    ),
    "a bit that is none": ("bits: {1: one}", "bits: {3: one}", "not a bit"),
    "values that do not fit": ("bits: {1: one}", "values: {256: much}", "not all letters"),
    "values of two kinds": ("bits: {1: one}", "values: {1: one, d: two}", "not all letters"),
    "values and bits": ("bits: {1: one}", "bits: {1: one}, values: {1: one}", "values and bits"),
    "values of a text": (
        "{field: String, name: label}",
        "{field: String, name: label, values: {a: b}}",
        "not a plain integer",
    ),
    "a constant too large": (
        "field: Int8, name: flags, bits: {1: one}",
        "field: Int8(256), name: flags",
        "does not fit",
    ),
    "a conditional tag after an optional choice": (
        "Byte1('N'), name: new_tag",
        "Byte1('N'), name: new_tag, when: in_stream",
        "which has a condition",
    ),
    "a positional field that is always there": ("name: label", "name: label, positional: true", "is positional"),
    "bytes of no length": (
        "field: Int16, name: row_count",
        "field: Byte0, name: row_count",
        "unknown notation 'Byte0'",
    ),
    "a length of bytes that have one": (
        "{field: Byten, name: data, length: length}",
        "{field: Byte4, name: data, length: length}",
        "is neither a Byten nor a part",
    ),
    "a wrong position": ("field: Int8, name: flags", "field: 1_2_Int8, name: flags", "stands at position 1_3"),
    "python for some": ('name: "null", python: None', 'name: "null"', "only some alternatives"),
    "python that cannot be": ("python: None", "python: bytes", "python"),
    "a sign on an OID": (
        "field: Int8, name: flags, bits: {1: one}",
        "field: Int32 (Oid), signed: true, name: flags",
        "unknown notation 'Int32 (Oid)' (signed)",
    ),
    "the sign as a bit": (
        "field: Int8, name: flags, bits: {1: one}",
        "field: Int8, signed: true, name: flags, bits: {128: one}",
        "128 is not a bit",
    ),
    "letters with a sign": (
        "field: Int8, name: flags, bits: {1: one}",
        "field: Int8, signed: true, name: flags, values: {d: one}",
        "not all letters",
    ),
    "a constant beyond the sign": (
        "field: Int8, name: flags, bits: {1: one}",
        "field: Int8(128), signed: true, name: flags",
        "does not fit",
    ),
    "a sign on a tag": (
        "{field: Byte1('S'), name: tag}",
        "{field: Byte1('S'), name: tag, signed: true}",
        "unknown notation",
    ),
    "a state twice": ("- {name: idle}", "- {name: idle}\n  - {name: idle}", "not distinct"),
    "a state that sets a number": ("- {name: idle}", "- {name: idle, sets: proto_version}", "not a bool parameter"),
    "a constant of a thousand digits": (
        "field: Int8, name: flags, bits: {1: one}",
        "field: Int8(" + "9" * 5000 + "), name: flags",
        "unknown notation",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_layout_names_line_and_remedy(case: str) -> None:
    """Each broken rule is a SpecError with file, line, problem and remedy."""
    assert_refused(*BROKEN[case])


def test_a_field_of_a_part_is_there_where_one_of_its_messages_is() -> None:
    """A part's field needs one message, of those that hold the part, that comes in the state."""
    states = SOUND.replace("- {name: idle}", "- {name: idle}\n  - {name: busy, sets: in_stream}")
    first = states.replace("    in: [idle]", "    in: [idle, busy]\n    enters: busy", 1)
    part = first.replace(
        "length: length}]",
        "length: length}]\n      - {type: body, fields: [{field: Int8, name: more, when: in_stream}]}",
    )
    assert load_text(part).parts[0].extended
    with pytest.raises(SpecError, match="more can never be present"):
        load_text(part.replace("{field: Row, name: row}", "{field: Int8, name: row}"))
