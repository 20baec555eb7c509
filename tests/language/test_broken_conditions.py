"""The rules for conditions: the error of a broken one has file, line and remedy."""

import pytest

from pgoutput_construct import SpecError
from tests.language.sound import FRAMED, SOUND, assert_refused
from tools.language import load_text

XID = "{field: Int32, name: xid, when: in_stream, since: 2}"
FLAGS = "{field: Int8, name: flags, bits: {1: one}}"
TEXT = "name: text\n            python: bytes\n"
LATER = f"{FLAGS}\n          - {{field: Int8, name: later, "

BROKEN = {
    "an unknown last version": (XID, "{field: Int32, name: xid, until: 7}", "until: 7 is not a protocol version"),
    "versions that contradict": (XID, "{field: Int32, name: xid, since: 2, until: 1}", "can never be present"),
    "terms that contradict": (
        XID,
        "{field: Int32, name: xid, when: {all: [in_stream, {not: in_stream}]}}",
        "contradicts itself",
    ),
    "an expression": (XID, "{field: Int32, name: xid, when: not in_stream}", "'not in_stream'"),
    "an unknown parameter inside": (XID, "{field: Int32, name: xid, when: {not: gone}}", "gone is not a bool parameter"),
    "all of one": (XID, "{field: Int32, name: xid, when: {all: [in_stream]}}", "has fewer entries than 2"),
    "two words at once": (XID, "{field: Int32, name: xid, when: {not: in_stream, any: [in_stream]}}", "any"),
    "too many terms": (
        XID,
        f"{{field: Int32, name: xid, when: {{all: [{', '.join(f'{{bit: {1 << i}, of: flags}}' for i in range(8))}, in_stream]}}}}",
        "has more entries than 8",
    ),
    "a bit of a later field": (XID, "{field: Int32, name: xid, when: {bit: 1, of: flags}}", "not an earlier field with bits"),
    "a bit that a field does not have": (FLAGS, LATER + "when: {bit: 2, of: flags}}", "which is not a bit of flags"),
    "a bit of a field without bits": (
        FLAGS,
        "{field: Int8, name: flags}\n          - {field: Int8, name: later, when: {bit: 1, of: flags}}",
        "not an earlier field with bits",
    ),
    "an alternative by a bit": (
        "{field: Byte1('K'), name: key, then: Row}",
        "{field: Byte1('K'), name: key, then: Row, when: {bit: 1, of: flags}}",
        "which only fields and repeats may",
    ),
    "a value by a bit": (
        FLAGS,
        "{field: Int8, name: flags, bits: {1: one, 2: {meaning: two, when: {bit: 1, of: flags}}}}",
        "which only fields and repeats may",
    ),
    "a value of an unknown version": (
        FLAGS,
        "{field: Int8, name: flags, bits: {1: one, 2: {meaning: two, since: 3}}}",
        "since: 3 is not a protocol version",
    ),
    "a conditional tag of a message": ("Byte1('F'), name: tag}", "Byte1('F'), name: tag, since: 2}", "the tag of First"),
    "a former name that is taken": (FLAGS, "{field: Int8, name: flags, formerly: xid}", "used twice"),
    "a former name that is no name": (FLAGS, "{field: Int8, name: flags, formerly: Old}", "formerly"),
    "a former name that Python has": (FLAGS, "{field: Int8, name: flags, formerly: class}", "a word of Python"),
    "a former name of a tag": ("Byte1('N'), name: new_tag", "Byte1('N'), name: new_tag, formerly: n", "is no field of an object"),
    "a former name of a count": (
        "name: row_count}",
        "name: row_count, formerly: [rows_, count_]}",
        "row_count has former names, but is no field of an object",
    ),
    "a text of several fields": (
        "then: [{field: Int32, name: length},",
        "then: [{field: Int32, name: raw}, {field: Int32, name: length},",
        "has more than bytes, and the python value bytes",
    ),
    "a value whose field bytes have": (
        "python: bytes\n            then: [{field: Int32, name: length},",
        "python: Packed\n            then: [{field: Int32, name: count}, {field: Int32, name: length},",
        "count cannot be an attribute of the bytes of the alternative text",
    ),
    "a value with a field that may be absent": (
        "python: bytes\n            then: [{field: Int32, name: length},",
        "python: Packed\n            then: [{field: Int32, name: raw, since: 2}, {field: Int32, name: length},",
        "raw cannot be an attribute",
    ),
    "variants at once": (
        XID,
        "{field: Int32, name: xid, until: 2}\n          - {field: Int64, name: xid, since: 2}",
        "two fields called xid can be present at once",
    ),
    "variants that are always there": (
        XID,
        "{field: Int32, name: xid}\n          - {field: Int64, name: xid}",
        "two fields called xid can be present at once",
    ),
    "variants of two kinds": (
        XID,
        "{field: Int32, name: xid, until: 1}\n          - {field: String, name: xid, since: 2}",
        "xid is a number in one version and str in another",
    ),
    "variants apart from each other": (
        f"{XID}\n          - {FLAGS}",
        "{field: Int32, name: xid, until: 1}\n"
        f"          - {FLAGS}\n          - {{field: Int64, name: xid, since: 2}}",
        "follow each other",
    ),
    "a count under another condition": ("count: row_count", "count: row_count\n        since: 2", "another condition"),
    "a repeat of an unknown version": ("count: row_count", "count: row_count\n        until: 9", "until: 9"),
    "an alternative of an unknown parameter": (TEXT, TEXT + "            when: gone\n", "gone is not a bool parameter"),
    "an alternative that can never come": (TEXT, TEXT + "            since: 2\n            until: 1\n", "contradicts itself"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_broken_condition_names_line_and_remedy(case: str) -> None:
    """Each rule refuses what breaks it."""
    assert_refused(*BROKEN[case])


def test_words_that_need_versions_are_refused_without() -> None:
    """A connection has no versions; a field there may depend on a bit."""
    with pytest.raises(SpecError, match="until: 1 is not a protocol version"):
        load_text(FRAMED.replace("name: value_count}", "name: value_count, until: 1}"))
    by_bit = "name: flags, bits: {1: one}}\n          - {field: Int8, name: more, when: {bit: 1, of: flags}}\n"
    row = "          - {field: Int32, name: length, measures: rest}\n          - {field: Int16, name: value_count}"
    added = row.replace("rest}\n", "rest}\n          - {field: Int8, " + by_bit)
    assert load_text(FRAMED.replace(row, added)).framed


def test_what_is_sound() -> None:
    """Each keyword where it is permitted."""
    text = (
        SOUND.replace(XID, "{field: Int32, name: xid, until: 1}\n          - {field: Int64, name: xid, since: 2}")
        .replace(FLAGS, "{field: Int8, name: flags, bits: {1: one, 2: {meaning: two, since: 2, when: in_stream}}}")
        .replace("name: row_count}", "name: row_count, when: {bit: 1, of: flags}}")
        .replace("count: row_count", "count: row_count\n        when: {bit: 1, of: flags}")
        .replace(TEXT, TEXT + "            when: {any: [{not: in_stream}, in_stream]}\n")
    )
    first = load_text(text).messages[0]
    xid, flags, _, rows = first.elements[1:5]
    assert (xid.condition, [each.condition for each in xid.variants]) == (  # type: ignore[union-attr]
        "",
        ["proto_version <= 1", "proto_version >= 2"],
    )
    assert len(flags.variants) == 3  # type: ignore[union-attr]
    assert rows.condition == "(flags & 1) != 0"
    assert first.field_names == ("xid", "flags", "rows")


@pytest.mark.parametrize(
    "field",
    [
        "name: flags, bits: {1: one}, when: {any: [{any: [NAMES]}, flag_i]}",
        "name: flags, bits: {1: {meaning: one, when: {any: [NAMES]}}, 2: {meaning: two, when: flag_i}}",
        "name: flags, when: {any: [NAMES]}}\n          - {field: Int8, name: flags, when: flag_i",
    ],
)
def test_too_many_parameters(field: str) -> None:
    """What is tried in all combinations has a limit, for the conditions of all variants and values of a field."""
    names = [f"flag_{letter}" for letter in "abcdefghi"]
    parameters = "".join(f"  {name}: {{type: bool}}\n" for name in names)
    spec = SOUND.replace("  in_stream: {type: bool}\n", f"  in_stream: {{type: bool}}\n{parameters}")
    assert_refused(
        FLAGS,
        f"{{field: Int8, {field.replace('NAMES', ', '.join(names[:-1]))}}}",
        "depends on 9 parameters and bits",
        spec,
    )
