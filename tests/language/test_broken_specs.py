"""Every rule of the language: a broken specification names its file, its line and the remedy."""

import re

import pytest

from pgoutput_construct import SpecError
from tools.language import SPEC, load_text

SOUND = """\
protocol: demo
title: Demo
source: nowhere
versions:
  - {version: 1, server: 10}
  - {version: 2, server: 14}
parameters:
  proto_version: {type: int}
  in_stream: {type: bool}
states:
  - {name: idle}
messages:
  - name: First
    in: [idle]
    blocks:
      - type: header
        fields:
          - {field: Byte1('F'), name: tag}
          - {field: Int32, name: xid, when: in_stream, since: 2}
          - {field: Int8, name: flags, bits: {1: one}}
          - {field: Int16, name: row_count}
      - type: repeat_1
        name: rows
        count: row_count
        class: FirstRow
        blocks:
          - type: header
            fields:
              - {field: String, name: label}
              - {field: Row, name: row}
  - name: Second
    in: [idle]
    blocks:
      - type: header
        fields:
          - {field: Byte1('S'), name: tag}
      - type: choice_1
        name: old
        optional: true
        alternatives:
          - {field: Byte1('K'), name: key, then: Row}
          - {field: Byte1('O'), name: row, then: Row}
      - type: body
        fields:
          - {field: Byte1('N'), name: new_tag}
          - {field: Row, name: new}
parts:
  - name: Row
    blocks:
      - type: choice_1
        name: value
        alternatives:
          - {field: Byte1('n'), name: "null", python: None}
          - field: Byte1('t')
            name: text
            python: bytes
            then: [{field: Int32, name: length}, {field: Byten, name: data, length: length}]
"""

BROKEN = {
    "an unknown notation": ("field: Int16,", "field: Int24,", "unknown notation 'Int24'"),
    "an unknown key": ("optional: true", "optionally: true", "additionalProperties"),
    "a missing name": ("Byte1('N'), name: new_tag", "Byte1('N')", "'name' is a required property"),
    "a name in the wrong case": ("name: label", "name: theLabel", "does not match"),
    "a keyword as a name": ("name: label", "name: class", "a word of Python"),
    "a container method as a name": ("name: rows\n", "name: items\n", "a word of Python or of construct"),
    "a name used twice": ("name: flags", "name: xid", "used twice"),
    "a name hidden by a choice's kind": ("name: new_tag", "name: old_kind", "used twice"),
    "two messages of one tag": ("Byte1('S')", "Byte1('F')", "has the tag"),
    "two messages of one name": ("name: Second", "name: First", "two classes"),
    "a message without a tag": ("{field: Byte1('S'), name: tag}", "{field: Int8, name: tag}", "start with its tag"),
    "two alternatives of one tag": ("Byte1('O')", "Byte1('K')", "the same tag"),
    "an alternative without a tag": ("field: Byte1('O')", "field: Int8", "starts with 'Int8'"),
    "an optional choice before nothing": ("Byte1('N'), name: new_tag", "Int8, name: new_tag", "not followed by a tag"),
    "an optional choice before its own tag": ("Byte1('N')", "Byte1('K')", "one of its own tags"),
    "a count that is nowhere": ("count: row_count", "count: row_total", "no earlier field"),
    "a count that is a flag": ("count: row_count", "count: flags", "not a plain unsigned integer"),
    "a count that may be absent": ("count: row_count", "count: xid", "not a plain unsigned integer"),
    "a length on a number": (
        "name: flags, bits: {1: one}}",
        "name: size}\n          - {field: Int8, name: flags, length: size}",
        "no Byten",
    ),
    "a length for two": (
        "length: length}]",
        "length: length}, {field: Byten, name: more, length: length}]",
        "measures two",
    ),
    "bytes without an end": ("name: data, length: length", "name: data", "has no length"),
    "a condition that is no parameter": ("when: in_stream", "when: streaming", "no bool parameter"),
    "a condition on a number": ("when: in_stream", "when: proto_version", "no bool parameter"),
    "a field that can never be there": (
        "- {name: idle}",
        "- {name: idle}\n  - {name: busy, sets: in_stream}",
        "never be there",
    ),
    "a change without a table": (
        "  - name: Second\n",
        "  - name: Second\n    group: change\n",
        "do not find the tables",
    ),
    "a version that is none": ("since: 2", "since: 7", "no protocol version"),
    "versions in disorder": ("{version: 2, server: 14}", "{version: 1, server: 14}", "not in order"),
    "a state that is none": ("in: [idle]", "in: [busy]", "no state"),
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
        "has several fields",
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
    "a bit that is none": ("bits: {1: one}", "bits: {3: one}", "no bit"),
    "values that do not fit": ("bits: {1: one}", "values: {256: much}", "not all letters"),
    "values of two kinds": ("bits: {1: one}", "values: {1: one, d: two}", "not all letters"),
    "values and bits": ("bits: {1: one}", "bits: {1: one}, values: {1: one}", "values and bits"),
    "values of a text": (
        "{field: String, name: label}",
        "{field: String, name: label, values: {a: b}}",
        "no plain integer",
    ),
    "a constant too large": (
        "field: Int8, name: flags, bits: {1: one}",
        "field: Int8(256), name: flags",
        "does not fit",
    ),
    "a conditional constant": (
        "Byte1('N'), name: new_tag",
        "Byte1('N'), name: new_tag, when: in_stream",
        "is conditional",
    ),
    "a positional field that is always there": ("name: label", "name: label, positional: true", "is positional"),
    "a field that classes refer to": ("name: label", "name: tuple", "a word of Python"),
    "a constant whose class hides another": ("python: None", "python: FIRST", "two classes would be called First"),
    "a wrong position": ("field: Int8, name: flags", "field: 1_2_Int8, name: flags", "stands at position 1_3"),
    "python for some": ('name: "null", python: None', 'name: "null"', "only some alternatives"),
    "python that cannot be": ("python: None", "python: bytes", "python"),
    "a type of block that is none": ("type: repeat_1", "type: loop_1", "does not match"),
    "a key written twice": (
        "    in: [idle]\n    blocks:\n      - type: header\n        fields:\n          - {field: Byte1('S')",
        "    in: [idle]\n    in: [idle]\n    blocks:\n      - type: header\n        fields:\n          - {field: Byte1('S')",
        "written twice",
    ),
    "broken YAML": ("title: Demo", "title: [Demo", "not plain YAML"),
    "a tag of Python": ("title: Demo", "title: !!python/object/apply:os.system ['true']", "not plain YAML"),
    "a circle of aliases": ("title: Demo", "title: &t [*t]", "an alias"),
    "an alias of a block": ("states:\n  - {name: idle}", "states: [&s {name: idle}, *s]", "an alias"),
    "a date that is none": ("title: Demo", "title: 2024-99-99", "not plain YAML"),
    "a number that is none": ("title: Demo", "title: !!int abc", "not plain YAML"),
    "a thousand brackets": ("title: Demo", "title: " + "[" * 5000, "not plain YAML"),
    "a name with a line's end": ("name: label", 'name: "label\\n"', "does not match"),
    "a class that hides a name": ("class: FirstRow", "class: Struct", "would hide a name"),
    "a message that hides a name": ("name: Second", "name: Any", "would hide a name"),
    "a part that is a notation": (
        "parts:\n",
        "parts:\n  - name: Int8\n    blocks: [{type: header, fields: [{field: Int16, name: x}]}]\n",
        "would hide a name",
    ),
    "a field called mro": ("name: label", "name: mro", "a word of Python or of construct"),
    "a parameter that generated code uses": (
        "in_stream: {type: bool}",
        "in_stream: {type: bool}\n  data: {type: bool}",
        "generated code uses",
    ),
    "a sign on an OID": (
        "field: Int8, name: flags, bits: {1: one}",
        "field: Int32 (Oid), signed: true, name: flags",
        "unknown notation 'Int32 (Oid)' (signed)",
    ),
    "the sign as a bit": (
        "field: Int8, name: flags, bits: {1: one}",
        "field: Int8, signed: true, name: flags, bits: {128: one}",
        "128 is no bit",
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
    "a state that sets a number": ("- {name: idle}", "- {name: idle, sets: proto_version}", "no bool parameter"),
    "a meaning that is no text": ("bits: {1: one}", "bits: {1: [one]}", "not of type"),
    "a constant of a thousand digits": (
        "field: Int8, name: flags, bits: {1: one}",
        "field: Int8(" + "9" * 5000 + "), name: flags",
        "unknown notation",
    ),
    "code in a name": ("name: label", "name: \"label); __import__('os').system('true'\"", "does not match"),
    "code in a class": ("class: FirstRow", 'class: "FirstRow: pass\\nimport os"', "does not match"),
    "code in a value": ("bits: {1: one}", "values: {'\") or exit(\"': one}", "not all letters"),
    "code in a python value": ("python: None", "python: \"exec('x')\"", "does not match"),
    "code in a condition": ("when: in_stream", 'when: "in_stream or exit()"', "does not match"),
    "no messages": (SOUND[SOUND.index("messages:") :], "messages: []\n", "messages"),
    "not a mapping": (SOUND, "- 1\n", "the file"),
    "nothing at all": (SOUND, "", "the file"),
}


def test_the_sound_specification_loads() -> None:
    """What the broken ones are made from is whole."""
    assert [message.class_name for message in load_text(SOUND).messages] == ["First", "Second"]


@pytest.mark.parametrize("case", BROKEN)
def test_broken_specification_names_line_and_remedy(case: str) -> None:
    """Each broken rule is a SpecError with file, line, problem and remedy."""
    old, new, problem = BROKEN[case]
    assert old in SOUND
    with pytest.raises(SpecError) as caught:
        load_text(SOUND.replace(old, new, 1), "broken.yaml")
    text = str(caught.value)
    assert re.match(r"broken\.yaml:\d+: .+\. .+", text, re.DOTALL), text
    assert problem in text


def test_a_field_of_a_part_is_there_where_one_of_its_messages_is() -> None:
    """A part's field needs one message, of those that hold the part, that comes in the state."""
    states = SOUND.replace("- {name: idle}", "- {name: idle}\n  - {name: busy, sets: in_stream}")
    first = states.replace("    in: [idle]", "    in: [idle, busy]", 1)
    part = first.replace(
        "length: length}]",
        "length: length}]\n      - {type: body, fields: [{field: Int8, name: more, when: in_stream}]}",
    )
    assert load_text(part).parts[0].extended
    with pytest.raises(SpecError, match="more can never be there"):
        load_text(part.replace("{field: Row, name: row}", "{field: Int8, name: row}"))


CHANGES = {
    "a row that is repeated": (
        "name: new_tag, description: Announces the new row.}\n"
        '          - {field: TupleData, name: new, description: "Values of the new row, in the order of the Relation\'s columns."}\n',
        "name: new_tag}\n          - {field: Int16, name: row_count}\n"
        "      - {type: repeat_1, name: new, count: row_count, blocks: "
        "[{type: header, fields: [{field: TupleData, name: row}]}]}\n",
        "of the change Insert",
    ),
    "an old row that is none": (
        '        description: "The removed row: whole, or its key."\n        alternatives:\n',
        "        alternatives:\n"
        "          - {field: Byte1('R'), name: number, then: [{field: Int64, name: row_number}]}\n",
        "of the change Delete",
    ),
    "a row beside old and new": (
        "{field: Byte1('N'), name: new_tag, description: Announces the new row.}",
        "{field: TupleData, name: other}\n          - {field: Byte1('N'), name: new_tag}",
        "of the change Insert",
    ),
    "a row beside a list of tables": (
        "- {field: Int32, name: relation_count, description: Number of tables that follow.}",
        "- {field: TupleData, name: old}\n          - {field: Int32, name: relation_count}",
        "of the change Truncate",
    ),
    "a table that may be absent": (
        "name: relation_oid, description: OID of a table that a Relation has described.}\n"
        "          - {field: Byte1('N')",
        "name: relation_oid, when: in_stream}\n          - {field: Byte1('N')",
        "of the change Insert",
    ),
    "two layouts of rows": (
        "parts:\n",
        "parts:\n"
        "  - name: Cells\n"
        "    blocks:\n"
        "      - {type: header, fields: [{field: Int16, name: cell_count}]}\n"
        "      - type: repeat_1\n"
        "        name: cells\n"
        "        count: cell_count\n"
        "        blocks:\n"
        "          - {type: choice_1, name: cell, alternatives: [{field: Byte1('n'), name: none, python: None}]}\n",
        "another layout of rows",
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_rows_that_their_readers_would_lose_are_refused(case: str) -> None:
    """A change of rows has them where they are looked for, and nothing else there."""
    old, new, problem = CHANGES[case]
    text = (SPEC / "pgoutput.yaml").read_text("utf-8")
    assert old in text
    with pytest.raises(SpecError, match=rf"^grown\.yaml:\d+: .*{problem}"):
        load_text(text.replace(old, new, 1), "grown.yaml")


def test_all_broken_rules_and_unfilled_marks_are_listed() -> None:
    """One line for each rule that is broken, and all marks of a proposal at once; marks in comments are words."""
    broken = (
        SOUND.replace("when: in_stream", "when: nothing")
        .replace("in: [idle]", "in: [gone]")
        .replace("since: 2", "since: 9")
    )
    with pytest.raises(SpecError) as caught:
        load_text(broken, "s.yaml")
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == ["s.yaml"] * 3
    shapes = SOUND.replace("title: Demo", "title: 5").replace("optional: true", "optional: maybe")
    with pytest.raises(SpecError, match=r"title: 5 is not of type.*\n.*optional: 'maybe' is not of type"):
        load_text(shapes, "s.yaml")
    marks = "# FILL_IN_ignored\n" + SOUND.replace("name: label", "name: FILL_IN_a").replace(
        "name: flags", "name: FILL_IN_b"
    )
    with pytest.raises(
        SpecError, match=r"^s\.yaml:\d+: not filled in: FILL_IN_b \(line \d+\), FILL_IN_a \(line \d+\)\. Write"
    ):
        load_text(marks, "s.yaml")


def test_line_is_that_of_the_fault() -> None:
    """The line is the field's own, not that of its message."""
    line = SOUND[: SOUND.index("Int16")].count("\n") + 1
    with pytest.raises(SpecError, match=rf"^s\.yaml:{line}: unknown notation"):
        load_text(SOUND.replace("Int16", "Int17", 1), "s.yaml")


def test_words_of_a_description_stay_words() -> None:
    """Quotes and backslashes in a description cannot end the docstring that they are put into."""
    from tools.generate.messages import emit_messages

    wicked = SOUND.replace("name: label", 'name: label, description: \'""" + exit() + """ \\\'')
    scope: dict[str, object] = {}
    exec(compile(emit_messages(load_text(wicked), "Any"), "generated", "exec"), scope)
    assert "FirstRow" in scope
