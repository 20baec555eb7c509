"""Mistakes that people make in a specification: each is reported with its line, and what to write instead."""

import re

import pytest

from pgoutput_construct import SpecError
from tests.language.sound import SOUND
from tools.language import load_text
from tools.language.source import read

LABEL = "{field: String, name: label}"
FLAGS = "{field: Int8, name: flags, bits: {1: one}}"
MISTAKES = {
    # what is replaced, what people write, words of the problem, words of the remedy
    "a key in short": (
        LABEL,
        "{field: String, name: label, desc: x}",
        "'desc' is not a key here: did you mean 'description'?",
        "The keys are field, name",
    ),
    "a key in the plural": (
        "    in: [idle]\n    blocks",
        "    in: [idle]\n    group: change\n    block",
        "'block' is not a key here: did you mean 'blocks'?",
        "The keys are",
    ),
    "a key in capitals": (
        "protocol: demo",
        "Protocol: demo",
        "'Protocol' is not a key here: did you mean 'protocol'?",
        "The keys are protocol",
    ),
    "a key of another language": (
        LABEL,
        "{type: String, name: label}",
        "'type' is not a key here",
        "The keys are field",
    ),
    "a key of another place": (
        "  - {name: idle}",
        "  - {name: idle, since: 2}",
        "'since' is not a key here",
        "The keys are name, sets",
    ),
    "a key with hyphens": (
        "proto_version: {type: int}",
        "proto-version: {type: int}",
        "'proto-version' is not written like that",
        "lower case with underscores",
    ),
    "a name that is on": ("name: label", "name: on", "YAML reads on, yes and true as true", 'Quote it: "on"'),
    "a name that is no": ("name: label", "name: no", "YAML reads off, no and false as false", "Quote it"),
    "a name that is null": ("name: label", "name: null", "there is no value", 'quote the word "null"'),
    "a name that is a number": ("name: label", "name: 7", "YAML reads 7 as a number", 'Quote it: "7"'),
    "a name in capitals": (
        "name: label",
        "name: Label",
        "'Label' is not written like that",
        "lower case with underscores",
    ),
    "a name with a hyphen": (
        "name: label",
        "name: the-label",
        "is not written like that",
        "lower case with underscores",
    ),
    "a name with spaces": ("name: label", "name: the label", "is not written like that", "lower case with underscores"),
    "a message in lower case": (
        "name: Second",
        "name: second",
        "is not written like that",
        "words with capital letters",
    ),
    "a part with spaces": ("- name: Row", "- name: Row Data", "is not written like that", "words with capital letters"),
    "a class in lower case": (
        "class: FirstRow",
        "class: first_row",
        "is not written like that",
        "words with capital letters",
    ),
    "a title with a colon": (
        "title: Demo",
        "title: Demo: one",
        "not plain YAML",
        'Quote text that has a colon in it: "a: b"',
    ),
    "a description with a colon": (
        LABEL,
        "{field: String, name: label, description: a: b}",
        "not plain YAML",
        "Quote text",
    ),
    "a description with a comma": (
        LABEL,
        "{field: String, name: label, description: one, two}",
        "'two' is not a key here",
        'quote text that has one, "a, b"',
    ),
    "a description with brackets": (
        LABEL,
        "{field: String, name: label, description: [one]}",
        "is not text",
        "Quote text that has one of [ ]",
    ),
    "a description that begins with a percent sign": (
        "title: Demo",
        "title: '%'\nsource2: %x",
        "not plain YAML",
        "Quote text that begins with one of",
    ),
    "a tag that is a bracket": ("Byte1('S')", "Byte1('[')", "not plain YAML", "Quote text that has one of [ ]"),
    "a tag that is a brace": ("Byte1('S')", "Byte1('}')", "not plain YAML", ""),
    "a tag in double quotes": ("Byte1('S')", 'Byte1("S")', "unknown notation", "such as Byte1('X')"),
    "a tag of two letters": ("Byte1('S')", "Byte1('SS')", "unknown notation", "a tag such as Byte1('X')"),
    "a tab": ("  - {name: idle}", "\t- {name: idle}", "not plain YAML", "Write spaces instead of tabs"),
    "a brace that is not closed": (
        LABEL,
        "{field: String, name: label",
        "not plain YAML",
        "Quote text that has one of",
    ),
    "a quote that is not closed": ("title: Demo", "title: 'Demo", "not plain YAML", "close quotes"),
    "an entry that is not indented": (
        "  - name: Second\n    in: [idle]",
        "  - name: Second\n   in: [idle]",
        "not plain YAML",
        "below each other",
    ),
    "a description that begins with #": (
        LABEL,
        "{field: String, name: label, description: #1 of two}",
        "YAML reads no further than #1 of two}",
        "Quote text that has a # in it",
    ),
    "a description with a number sign": (
        "title: Demo",
        "title: Demo of #41",
        "YAML reads no further than #41, which begins a comment",
        'Quote text that has a # in it: "a #1"',
    ),
    "a part whose name is misspelt": (
        "{field: Row, name: row}",
        "{field: Rwo, name: row}",
        "unknown notation 'Rwo': did you mean 'Row'?",
        "or the name of a part: Row.",
    ),
    "a state that is misspelt": (
        "in: [idle]",
        "in: [idel]",
        "'idel' is not a state: did you mean 'idle'?",
        "Write one of",
    ),
    "an effect in another word": (
        "in: [idle]\n",
        "in: [idle]\n    effect: start\n",
        "did you mean 'begin'?",
        "Write one of begin",
    ),
    "versions out of order": (
        "  - {version: 2, server: 14}",
        "  - {version: 2, server: 9}",
        "mine.yaml:6: version 2 of PostgreSQL 9 follows 1 of 10",
        "the oldest first",
    ),
    "a list without its hyphen": ("  - {name: idle}", "  {name: idle}", "is not a list", "Write"),
    "a version that is text": ("since: 2}", 'since: "2"}', "'2' is text, not a whole number", "without quotes"),
    "a version that is a fraction": ("since: 2}", "since: 2.0}", "2.0 is not a whole number", "Write a whole number"),
    "a version with a letter": ("since: 2}", "since: v2}", "'v2' is text, not a whole number", "without quotes"),
    "a version of none": ("since: 2}", "since: 0}", "0 is less than 1", "a whole number from 1 on"),
    "a version that is not there": (
        "since: 2}",
        "since: 5}",
        "since: 5 is not a protocol version",
        "add it to versions",
    ),
    "an octal number": ("bits: {1: one}", "bits: {010: one}", "YAML reads 010 as the number 8", "Write 8"),
    "a number of minutes": (
        "bits: {1: one}",
        "bits: {1:30: one}",
        "YAML reads 1:30 as the number 90",
        'quote text: "1:30"',
    ),
    "a bit by its place": ("bits: {1: one}", "bits: {0: one, 1: two}", "0 is not a bit of flags", "Write 1, 2, 4, 8"),
    "a bit that is yes": ("bits: {1: one}", "bits: {yes: one}", "YAML reads the key yes as true", 'Quote it: "yes"'),
    "bits as a list": ("bits: {1: one}", "bits: [one]", "is not a mapping", "such as {1: key}"),
    "an optional that is text": ("optional: true", 'optional: "true"', "is text, not true or false", "without quotes"),
    "a group of another word": (
        "in: [idle]\n",
        "in: [idle]\n    group: changes\n",
        "did you mean 'change'?",
        "Write one of change",
    ),
    "a type of parameter": (
        "in_stream: {type: bool}",
        "in_stream: {type: boolean}",
        "did you mean 'bool'?",
        "Write one of int, bool",
    ),
    "a parameter without braces": ("in_stream: {type: bool}", "in_stream: bool", "is not a mapping", "Write"),
    "a state without brackets": ("in: [idle]", "in: idle", "is not a list", "Write"),
    "a notation in lower case": (
        "field: Int16, name: row_count",
        "field: int16, name: row_count",
        "unknown notation 'int16'",
        "Int16",
    ),
    "a notation of C": (
        "field: Int16, name: row_count",
        "field: uint16, name: row_count",
        "unknown notation 'uint16'",
        "Int16",
    ),
    "a part of another name": ("then: Row}", "then: Rows}", "there is no part Rows", "Write one of ['Row']"),
    "a count of something later": (
        "count: row_count",
        "count: rows_count",
        "is not an earlier field",
        "Name an earlier integer",
    ),
    "a block without a number": ("type: repeat_1", "type: repeat", "is not written like that", "repeat_1"),
    "a repeat without its count": (
        "        count: row_count\n",
        "",
        "none of count, until, while is there",
        "Write one of count, until",
    ),
    "a field without a name": ("Byte1('N'), name: new_tag", "Byte1('N')", "'name' is missing", "Write name: "),
    "a field without its notation": (LABEL, "{name: label}", "'field' is missing", "Write field: "),
    "two notations in one": (LABEL, "{field: String String, name: label}", "unknown notation", "Write one of"),
    "two keys of one name": (LABEL, "{field: String, name: label, name: text}", "written twice", "Keep one"),
    "a comment for a value": (
        LABEL,
        "{field: String, name: label, description: #1\n              }",
        "there is no value",
        "begins with #",
    ),
    "an empty list": ("in: [idle]", "in: []", "has fewer entries than 1", "Write"),
    "a date": ("title: Demo", "title: 2026-01-01", "as a number or a date", 'Quote it: "2026-01-01"'),
    "an empty text": ("title: Demo", 'title: ""', "has fewer letters than 1", "text of one line"),
    "text of two lines": ("title: Demo", "title: |\n  Demo\n  one", "is not written like that", "text of one line"),
    "a control character": ("title: Demo", "title: De\x07mo", "not plain YAML", "without control characters"),
    "two documents": ("states:", "---\nstates:", "not plain YAML", "Write"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_told(mistake: str) -> None:
    """File, line, what is wrong, and what to write."""
    old, new, problem, remedy = MISTAKES[mistake]
    assert old in SOUND
    with pytest.raises(SpecError) as caught:
        load_text(SOUND.replace(old, new, 1), "mine.yaml")
    text = str(caught.value)
    assert re.match(r"mine\.yaml:\d+: ", text), text
    assert problem in text
    assert remedy in text


COMMENTS = {
    "after text": "title: Demo # of #41\n",
    "after quotes": 'title: "Demo" #41\n',
    "after brackets": "title: Demo\nstates: [{name: idle}] #41\n",
    "in quotes of two lines": 'title: "Demo\n  of #41"\n',
    "in a block": "title: |\n  Demo of #41\n",
}


@pytest.mark.parametrize("where", COMMENTS)
def test_what_is_no_mistake(where: str) -> None:
    """Comments after which nothing is missing, and what is no comment."""
    assert read(COMMENTS[where], "mine.yaml").data["title"].startswith("Demo")


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("title: Demo # of two\n\tstates: []", "spaces instead of tabs"),
        ("a: Demo # x\nb: {c: d: e} # y", "a colon in it"),
    ],
)
def test_comments_are_not_the_mistake_next_to_them(text: str, remedy: str) -> None:
    """The remedy is that of the mistake."""
    with pytest.raises(SpecError) as caught:
        read(text, "mine.yaml")
    assert remedy in str(caught.value) and "#" not in str(caught.value)


def test_long_lines_are_read_at_once() -> None:
    """Twice as much text takes twice as long."""
    with pytest.raises(SpecError, match="reads no further than #41"):
        read(f'title: "{"#" * 1_000_000}"\nmore: Demo #41', "mine.yaml")
