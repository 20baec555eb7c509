"""What the specification records about documents: its shape and its rules."""

import pytest

from tests.language.sound import assert_refused
from tools.language import load_text

SOUND = """\
protocol: demo
title: Demo
source: demo-formats
versions:
  - {version: 1, server: 10}
parameters:
  proto_version: {type: int}
  wide: {type: bool, documented: present only in wide messages}
messages:
  - name: First
    blocks:
      - type: header
        fields:
          - {field: Byte1('F'), name: tag}
          - {field: Int32, name: xid, when: wide, documented: the number}
options:
  - {name: colour, server: 10, since: 1, values: [{name: blue, server: 10}, {name: red, server: 11, sets: wide}]}
documents:
  - section: demo-formats
    title: Demo Formats
    annotated: 15
    deviations:
      - {kind: type, message: First, at: xid, says: Int64, from: 11, to: 12, reason: A slip.}
"""

BROKEN = {
    "a kind that is none": ("kind: type", "kind: colour", "is not one of the permitted words"),
    "no reason": (", reason: A slip.", "", "'reason' is missing"),
    "a message that is none": ("message: First", "message: Last", "neither a message nor a part"),
    "versions in disorder": ("from: 11, to: 12", "from: 12, to: 11", "is from 12 to 11"),
    "an unknown key": ("annotated: 15", "annotation: 15", "'annotation' is not a key here: did you mean 'annotated'?"),
    "an option without a server": ("{name: colour, server: 10,", "{name: colour,", "'server' is missing"),
    "an option of no version": ("since: 1, values", "since: 7, values", "not a protocol version"),
}


def test_records_are_loaded() -> None:
    """Documents, deviations, options and the documents' words are in the model."""
    spec = load_text(SOUND)
    (section,) = spec.documents
    (deviation,) = section.deviations
    assert (section.annotated, deviation.first, deviation.last) == (15, 11, 12)
    assert [deviation.concerns(pg) for pg in (10, 11, 12, 13)] == [False, True, True, False]
    assert spec.options[0].values[1].server == 11
    assert spec.messages[0].blocks[0].fields[1].documented == "the number"  # type: ignore[union-attr]
    assert spec.parameters[1].documented == "present only in wide messages"


@pytest.mark.parametrize("case", BROKEN)
def test_broken_record_names_line_and_remedy(case: str) -> None:
    """Each broken rule is a SpecError with file, line, problem and remedy."""
    assert_refused(*BROKEN[case], SOUND)
