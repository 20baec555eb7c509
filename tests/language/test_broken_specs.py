"""The report of a broken specification: every broken rule, each with its line."""

import pytest

from pgoutput_construct import SpecError
from tests.language.sound import SOUND
from tools.language import load_text


def test_the_sound_specification_loads() -> None:
    """What the broken ones are made from is whole."""
    assert [message.class_name for message in load_text(SOUND).messages] == ["First", "Second"]


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
    with pytest.raises(
        SpecError, match=r"title: YAML reads 5 as a number.*\n.*optional: 'maybe' is text, not true or false"
    ):
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
