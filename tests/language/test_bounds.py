"""The rules of begins and ends: their effects on transactions, and the roles of their fields."""

import pytest

from tests.language.sound import assert_refused
from tools.language import load_text
from tools.language.bounds import effect_of, roles_of

SOUND = """\
protocol: demo
title: Demo
source: nowhere
parameters:
  in_block: {type: bool}
states:
  - {name: idle}
  - {name: open}
  - {name: block, sets: in_block}
messages:
  - name: Start
    in: [idle]
    enters: open
    group: begin
    blocks:
      - {type: header, fields: [{field: Byte1('B'), name: tag}, {field: Int32 (TransactionId), name: number}]}
  - name: Stop
    in: [open]
    enters: idle
    group: end
    blocks:
      - type: header
        fields:
          - {field: Byte1('C'), name: tag}
          - {field: Int64 (XLogRecPtr), name: place}
          - {field: Int64 (XLogRecPtr), name: end_lsn}
          - {field: Int64 (TimestampTz), name: moment}
  - name: Block
    in: [open]
    enters: block
    group: begin
    blocks:
      - {type: header, fields: [{field: Byte1('X'), name: tag}]}
  - name: Block End
    in: [block]
    enters: open
    group: end
    blocks:
      - {type: header, fields: [{field: Byte1('x'), name: tag}]}
  - name: Row
    in: [open, block]
    group: change
    blocks:
      - type: header
        fields: [{field: Byte1('I'), name: tag}, {field: Int32, name: relation_oid}, {field: Values, name: new}]
parts:
  - name: Values
    blocks:
      - {type: header, fields: [{field: Int16, name: cell_count}]}
      - type: repeat_1
        name: cells
        count: cell_count
        blocks:
          - type: choice_1
            name: value
            alternatives: [{field: Byte1('n'), name: "null", python: None}]
"""

BROKEN = {
    "an end without a time": ("          - {field: Int64 (TimestampTz), name: moment}\n", "", "says the time of"),
    "an end without a position": ("Int64 (XLogRecPtr), name: place", "Int64, name: place", "says the lsn of"),
    "a begin without a transaction": ("Int32 (TransactionId), name: number", "Int32, name: number", "says the xid of"),
    "an effect of the other group": (
        "enters: open\n    group: begin",
        "enters: open\n    group: begin\n    effect: commit",
        "the effect commit, which is none",
    ),
    "an effect without a group": (
        "in: [open, block]\n    group: change",
        "in: [open, block]\n    group: change\n    effect: commit",
        "is neither a begin nor an end",
    ),
    "an end of nothing": (
        "    in: [open]\n    enters: idle\n    group: end",
        "    in: [idle]\n    group: end",
        "does not follow from its states and fields",
    ),
    "a role of a row": ("name: relation_oid}", "name: relation_oid, role: xid}", "is not a field of a begin or an end"),
    "a role of another type": ("name: place}", "name: place, role: time}", "it is no Int64 (TimestampTz)"),
    "a role twice": (
        "name: end_lsn}",
        "name: end_lsn, role: lsn}\n          - {field: Int64 (XLogRecPtr), name: more, role: lsn}",
        "have the role lsn at once",
    ),
    "rows outside of transactions": (
        "in: [open, block]",
        "in: [idle, open, block]",
        "which no begin of a transaction opens",
    ),
    "rows in a state that nothing begins": (
        "    enters: open\n    group: begin",
        "    enters: open",
        "comes in the state 'open', which no begin",
    ),
    "a state without a way back": (
        "in: [block]\n    enters: open",
        "in: [block]\n    enters: idle",
        "no message leads back to 'open'",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_bound_names_line_and_remedy(case: str) -> None:
    """Each broken rule is a SpecError with file, line, problem and remedy."""
    assert_refused(*BROKEN[case], sound=SOUND)


UNDO = """\
  - name: Undo
    in: [open]
    enters: idle
    group: end
    blocks:
      - type: header
        fields:
          - {field: Byte1('Z'), name: tag}
          - {field: Int64 (XLogRecPtr), name: place}
          - {field: Int64 (TimestampTz), name: moment}
"""
STOP, ROW = "  - name: Stop\n", "  - name: Row\n"


@pytest.mark.parametrize(("before", "second"), [(STOP, "Stop"), (ROW, "Undo")])
def test_a_second_end_of_a_state_says_its_effect(before: str, second: str) -> None:
    """What takes a transaction back has the fields of what commits it; the one that says it may come first."""
    both = SOUND.replace(before, UNDO + before)
    with pytest.raises(ValueError, match=f"{second} ends something in the state 'open', and so does"):
        load_text(both)
    undone = both.replace("name: Undo", "name: Undo\n    effect: abort")
    with pytest.raises(ValueError, match="Stop ends something in the state 'open', and so does Undo"):
        load_text(undone)
    spec = load_text(undone.replace("name: Stop", "name: Stop\n    effect: commit"))
    assert {each.name: effect_of(each, spec) for each in spec.messages if each.group == "end"} == {
        "Undo": "abort",
        "Stop": "commit",
        "Block End": "end_inner",
    }


def test_an_abort_of_a_part_is_refused() -> None:
    """It takes back all that its begin opened, which a part or a segment is not."""
    undo = UNDO.replace("group: end", "group: end\n    effect: abort")
    said = SOUND.replace("name: Stop", "name: Stop\n    effect: commit")
    said = said.replace("name: Block End", "name: Block End\n    effect: end_inner")
    load_text(said.replace(ROW, undo + ROW))
    with pytest.raises(ValueError, match="Undo has the effect abort, and comes in the state 'block', which no begin"):
        load_text(said.replace(ROW, undo.replace("in: [open]", "in: [open, block]") + ROW))


VERSIONED = (
    SOUND.replace(
        "parameters:\n",
        """\
versions:
  - {version: 1, server: 10}
  - {version: 2, server: 14}
options:
  - {name: proto_version, type: number, server: 10}
  - {name: wide, type: switch, server: 14, since: 2, sets: wide}
parameters:
  proto_version: {type: int}
  wide: {type: bool}
""",
    )
    .replace(
        "group: begin\n    blocks:\n      - {type: header, fields: [{field: Byte1('B'), name: tag}, {field",
        """\
group: begin
    blocks:
      - type: header
        fields:
          - {field: Byte1('B'), name: tag}
          - {field""",
    )
    .replace("name: number}]}", "name: number}")
)

UNSAID = {
    "a role until a version": (
        "TransactionId), name: number",
        "TransactionId), name: number, until: 1",
        "says the xid of the transaction at protocol version 2.",
    ),
    "a role from a version on": (
        "XLogRecPtr), name: place",
        "XLogRecPtr), name: place, since: 2",
        "says the lsn of the transaction at protocol version 1.",
    ),
    "a role with a parameter": (
        "TimestampTz), name: moment",
        "TimestampTz), name: moment, when: {not: wide}",
        "says the time of the transaction at protocol version 2 with wide.",
    ),
}


@pytest.mark.parametrize("case", UNSAID)
def test_a_role_that_is_not_always_said_is_refused(case: str) -> None:
    """It is needed in each version, and with all parameters, with which the message comes."""
    assert_refused(*UNSAID[case], sound=VERSIONED)


def test_a_role_can_have_a_field_for_each_version() -> None:
    """Or for each parameter, as far as options and states set it; what a begin says its end need not."""
    xid = "          - {field: Int32 (TransactionId), name: number}"
    wide = "since: 2, when: wide"  # it can be on at version 2 alone
    later = f"{xid[:-1]}, role: xid, when: {{not: wide}}}}\n{xid[:-7]}xid, role: xid, {wide}}}"
    place = "          - {field: Int64 (XLogRecPtr), name: until_lsn, role: lsn, until: 1}"
    versioned = VERSIONED.replace(xid, f"{later}\n{place}").replace("name: place", "name: place, since: 2")
    load_text(versioned)
    load_text(versioned.replace("TimestampTz), name: moment", "TimestampTz), name: moment, when: {not: in_block}"))


def test_a_state_that_is_left_from_two_is_refused() -> None:
    """Behind a state that others with other parameters lead to, none of them is known."""
    both = SOUND.replace("name: block, sets: in_block}", "name: block, sets: in_block}\n  - {name: deep}")
    both = both.replace("parts:", DEEP + "parts:")
    with pytest.raises(ValueError, match="'open', 'block': none of them is known after it"):
        load_text(both)


DEEP = """\
  - name: Deep
    in: [open, block]
    enters: deep
    blocks:
      - {type: header, fields: [{field: Byte1('Y'), name: tag}]}
  - name: Deep End
    in: [deep]
    enters: open
    blocks:
      - {type: header, fields: [{field: Byte1('y'), name: tag}]}
"""


def test_effects_and_roles_follow_from_states_and_types() -> None:
    """What is not written follows where only one thing can be meant."""
    spec = load_text(SOUND)
    start, stop, *_ = spec.messages
    assert [effect_of(each, spec) for each in spec.messages] == ["begin", "commit", "begin_inner", "end_inner", None]
    assert {role: [field.name for field in fields] for role, fields in roles_of(stop).items()} == {
        "lsn": ["place"],
        "end_lsn": ["end_lsn"],
        "time": ["moment"],
    }
    assert roles_of(start)["xid"][0].name == "number"
