"""The rules of names, values and YAML itself: what is no word of the language, would hide one, or is code."""

import pytest

from tests.language.sound import SOUND, assert_refused
from tools.language import load_text

BROKEN = {
    "an unknown key": ("optional: true", "optionally: true", "is not a key here"),
    "a missing name": ("Byte1('N'), name: new_tag", "Byte1('N')", "'name' is missing"),
    "a name in the wrong case": ("name: label", "name: theLabel", "is not written like that"),
    "a keyword as a name": ("name: label", "name: class", "a word of Python"),
    "a container method as a name": ("name: rows\n", "name: items\n", "a word of Python or of construct"),
    "a name used twice": ("name: flags", "name: xid", "two fields called xid can be present at once"),
    "a name hidden by a choice's kind": ("name: new_tag", "name: old_kind", "used twice"),
    "two messages of one name": ("name: Second", "name: First", "two classes"),
    "a field that classes refer to": ("name: label", "name: tuple", "a word of Python"),
    "a constant whose class hides another": ("python: None", "python: FIRST", "two classes would be called First"),
    "a type of block that is none": ("type: repeat_1", "type: loop_1", "is not written like that"),
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
    "a name with a line's end": ("name: label", 'name: "label\\n"', "is not written like that"),
    "a class that hides a name": ("class: FirstRow", "class: Struct", "would hide a name"),
    "a message that hides a name": ("name: Second", "name: Any", "would hide a name"),
    "a message that hides a class": ("name: Second", "name: Session", "would hide a name"),
    "a message that hides an error": ("name: Second", "name: Decode Error", "would hide a name"),
    "a message that hides a type": ("name: Second", "name: Streaming", "would hide a name"),
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
    "a meaning that is not text": (
        "bits: {1: one}",
        "bits: {1: [one]}",
        "matches no permitted form. Write text, or",
    ),
    "code in a name": ("name: label", "name: \"label); __import__('os').system('true'\"", "is not written like that"),
    "code in a class": ("class: FirstRow", 'class: "FirstRow: pass\\nimport os"', "is not written like that"),
    "code in a value": ("bits: {1: one}", "values: {'\") or exit(\"': one}", "not all letters"),
    "code in a python value": ("python: None", "python: \"exec('x')\"", "is not written like that"),
    "code in a condition": ("when: in_stream", 'when: "in_stream or exit()"', "is not written like that"),
    "no messages": (SOUND[SOUND.index("messages:") :], "messages: []\n", "messages"),
    "not a mapping": (SOUND, "- 1\n", "the file"),
    "nothing at all": (SOUND, "", "the file"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", BROKEN)
def test_broken_word_names_line_and_remedy(case: str) -> None:
    """Each broken rule is a SpecError with file, line, problem and remedy."""
    assert_refused(*BROKEN[case])


def test_words_of_a_description_stay_words() -> None:
    """Quotes and backslashes in a description cannot end the docstring that they are put into."""
    from tools.generate.python.messages import emit_messages

    wicked = SOUND.replace("name: label", 'name: label, description: \'""" + exit() + """ \\\'')
    scope: dict[str, object] = {}
    exec(compile(emit_messages(load_text(wicked), "Any"), "generated", "exec"), scope)
    assert "FirstRow" in scope
