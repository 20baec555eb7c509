"""The rules for where things end: lists and bytes while bytes remain, and parts with a length of their own."""

import pytest

from tests.language.sound import SOUND, assert_refused
from tools.language import load_text
from tools.language.differences import items
from tools.language.released import layouts

REST = "{field: Byten, name: rest}"
AREA = SOUND.replace(
    "              - {field: Row, name: row}\n",
    "              - {field: Row, name: row}\n"
    "              - {field: Int16, name: notes_size}\n"
    "              - {field: Notes, name: notes, length: notes_size}\n",
) + (f"  - name: Notes\n    blocks:\n      - type: header\n        fields: [{{field: Int8, name: version}}, {REST}]\n")
"""A part with a length in the item of a list."""
LIST = "{type: repeat_1, name: words, while: bytes remain, blocks: [{type: header, fields: [{field: String, name: word}]}]}"
LISTED = AREA.replace(f", {REST}]", f"]\n      - {LIST}")
"""The same with a list up to the end of the part."""
SECOND = "          - {field: Row, name: new}\n"

BROKEN = {
    "a list that something follows": (
        LISTED,
        f"      - {LIST}",
        f"      - {LIST}\n      - {{type: body, fields: [{{field: Int8, name: more}}]}}",
        "words goes on while bytes remain, and something follows it",
    ),
    "a list in an item": (
        AREA,
        "count: row_count\n        class: FirstRow\n        blocks:\n          - type: header\n",
        "count: row_count\n        class: FirstRow\n        blocks:\n          - type: header\n"
        f"            fields: [{{field: Int8, name: one}}]\n          - {LIST}\n          - type: body\n",
        "words goes on while bytes remain, and something follows it",
    ),
    "a list whose end is unknown": (
        SOUND,
        "        count: row_count\n        class: FirstRow\n        blocks:\n",
        "        count: row_count\n        class: FirstRow\n        blocks:\n"
        "          - {type: header, fields: [{field: Int8, name: one}]}\n"
        f"          - {LIST}\n      - type: repeat_2\n        name: others\n        count: row_count\n"
        "        class: Other\n        blocks:\n",
        "nothing says where the item or the branch with it ends",
    ),
    "a list whose items can be empty": (
        LISTED,
        "{field: String, name: word}",
        "{field: Empty, name: word}",
        "an item of words can be empty",
    ),
    "an open part that something follows": (
        AREA,
        SECOND,
        f"          - {{field: Notes, name: notes}}\n{SECOND}",
        "notes goes on while bytes remain, and something follows it",
    ),
    "an open part in a branch": (
        AREA,
        "{field: Byte1('O'), name: row, then: Row}",
        "{field: Byte1('O'), name: row, then: Notes}",
        "a branch of old is a Notes, which goes on while bytes remain",
    ),
    "bytes that something follows": (AREA, REST, f"{REST}, {{field: Int8, name: more}}", "rest has no length"),
    "a part with a length and no rest": (
        AREA,
        f", {REST}]",
        "]",
        "notes has a length, and nothing in Notes holds the bytes after its known fields",
    ),
    "a rest that is not always there": (
        AREA,
        "name: rest}",
        "name: rest, when: in_stream}",
        "nothing in Notes holds the bytes after its known fields",
    ),
    "a length with a sign": (
        AREA,
        "{field: Int16, name: notes_size}",
        "{field: Int16, name: notes_size, signed: true}",
        "not a plain unsigned integer",
    ),
    "a length that comes later": (AREA, "length: notes_size", "length: notes_sizes", "not an earlier field"),
    "a shared length": (
        AREA,
        "{field: Notes, name: notes, length: notes_size}",
        "{field: Notes, name: notes, length: notes_size}\n"
        "              - {field: Notes, name: others, length: notes_size}",
        "measures two fields",
    ),
    "a length of a part under a condition": (
        AREA,
        "length: notes_size}",
        "length: notes_size, when: in_stream}",
        "which has another condition",
    ),
    "a row of values up to the end": (
        SOUND,
        "blocks: [{type: header, fields: [{field: Byten, name: rest}]}]",
        "blocks: [{type: repeat_1, name: columns, while: bytes remain, blocks: [{type: choice_1, name: value, "
        "alternatives: [{field: Byte1('a'), name: same, python: SAME}, {field: Byte1('b'), name: other, python: OTHER}]"
        "}]}]",
        "the values of the row Empty go on while bytes remain",
    ),
    "a value that is a part with a length": (
        AREA,
        "then: [{field: Int32, name: length}, {field: Byten, name: data, length: length}]",
        "then: [{field: Int32, name: length}, {field: Bytes, name: data, length: length}]",
        "but holds no bytes alone",
    ),
    "a list with a count, too": (
        SOUND,
        "count: row_count",
        "count: row_count\n        while: bytes remain",
        "both present",
    ),
    "a list while something else": (
        SOUND,
        "count: row_count",
        "while: items remain",
        "is not one of the permitted words",
    ),
}
PARTS = """\
  - name: Empty
    blocks: [{type: header, fields: [{field: Byten, name: rest}]}]
  - name: Bytes
    blocks: [{type: header, fields: [{field: Byten, name: data}]}]
"""


@pytest.mark.parametrize("case", BROKEN)
def test_broken_end_names_line_and_remedy(case: str) -> None:
    """Each broken rule is a SpecError with file, line, problem and remedy."""
    sound, old, new, problem = BROKEN[case]
    assert_refused(old, new, problem, sound + PARTS)


@pytest.mark.parametrize("sound", [SOUND, AREA, LISTED], ids=["sound", "area", "listed"])
def test_sound_ends(sound: str) -> None:
    """What the broken ones are made from, and an open part at the end of a message, are accepted."""
    assert load_text(sound + PARTS)
    assert load_text(sound.replace(SECOND, f"{SECOND}          - {{field: Empty, name: rest}}\n") + PARTS)


def test_a_length_is_part_of_the_layout() -> None:
    """What was released, and what a version brings, say that a part has a length and how a list ends."""
    spec = load_text(LISTED)
    entries = [entry.text for each in layouts(spec, 1).values() for entry in each]
    assert "  Notes with a length" in entries and "repeat while bytes remain" in entries
    assert "Notes, with a length" in {item.text for item in items(spec)}
