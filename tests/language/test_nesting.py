"""States that return to the previous one: how they are unfolded, and that unbounded nesting is refused."""

import pytest

from pgoutput_construct import SpecError
from tests.language.sound import assert_refused
from tools.language import load_text

SOUND = """\
protocol: demo
title: Demo
source: nowhere
parameters:
  in_stream: {type: bool}
  in_block: {type: bool}
states:
  - {name: idle}
  - {name: open}
  - {name: stream, sets: in_stream}
  - {name: block, sets: in_block, description: A block.}
  - {name: note}
messages:
  - {name: Open, in: [idle], enters: open, blocks: [{type: header, fields: [{field: Byte1('O'), name: tag}]}]}
  - {name: Close, in: [open], enters: idle, blocks: [{type: header, fields: [{field: Byte1('C'), name: tag}]}]}
  - {name: Start, in: [idle], enters: stream, blocks: [{type: header, fields: [{field: Byte1('S'), name: tag}]}]}
  - {name: Stop, in: [stream], enters: idle, blocks: [{type: header, fields: [{field: Byte1('E'), name: tag}]}]}
  - {name: Block, in: [open, stream], enters: block, blocks: [{type: header, fields: [{field: Byte1('B'), name: tag}]}]}
  - {name: Unblock, in: [block], returns: true, blocks: [{type: header, fields: [{field: Byte1('b'), name: tag}]}]}
  - {name: Note, in: [open, block], enters: note, blocks: [{type: header, fields: [{field: Byte1('N'), name: tag}]}]}
  - {name: Unnote, in: [note], returns: true, blocks: [{type: header, fields: [{field: Byte1('n'), name: tag}]}]}
  - name: Word
    in: [block]
    blocks:
      - type: header
        fields: [{field: Byte1('W'), name: tag}, {field: Int8, name: in_streams, when: in_stream}]
"""


def test_each_way_in_is_a_state_of_its_own() -> None:
    """A nested state is unfolded by the enclosing ones, whose parameters stay set."""
    spec = load_text(SOUND)
    assert {place.name: place.sets for place in spec.places} == {
        "idle": (),
        "open": (),
        "stream": ("in_stream",),
        "open/block": ("in_block",),
        "stream/block": ("in_stream", "in_block"),
        "open/note": (),
        "open/block/note": ("in_block",),
        "stream/block/note": ("in_stream", "in_block"),
    }
    steps = {message.name: dict(spec.steps(message)) for message in spec.messages}
    assert steps["Unblock"] == {"open/block": "open", "stream/block": "stream"}
    assert steps["Unnote"] == {
        "open/note": "open",
        "open/block/note": "open/block",
        "stream/block/note": "stream/block",
    }
    assert steps["Word"] == {"open/block": "open/block", "stream/block": "stream/block"}
    assert [place.description for place in spec.places if place.innermost == "block"] == ["A block."] * 2


BROKEN = {
    "a state inside of itself": (
        "name: Note, in: [open, block]",
        "name: Note, in: [note, block, open]",
        "'note' inside",
    ),
    "states inside of each other": (
        "Block, in: [open, stream]",
        "Block, in: [open, stream, note]",
        "'note' inside of",
    ),
    "a return and a state": (
        "in: [block], returns: true",
        "in: [block], enters: open, returns: true",
        "enters a state",
    ),
    "a return from anywhere": ("in: [block], returns: true", "returns: true", "does not say from where"),
    "a return from the first state": (
        "in: [note], returns",
        "in: [note, idle], returns",
        "which no state comes before",
    ),
    "a return from what nobody enters": (
        "enters: note",
        "enters: block",
        "returns from 'note', which no message enters",
    ),
    "a state that sets what one around it sets": (
        "name: note}",
        "name: note, sets: in_block}",
        "depends on more than on what was set",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_nesting_names_line_and_remedy(case: str) -> None:
    """What cannot be bounded, or known by who begins to read in the middle, is refused."""
    assert_refused(*BROKEN[case], sound=SOUND)


def test_too_many_states_are_refused() -> None:
    """States that nest in each other in any order are too many to be unfolded."""
    names = [f"s{number}" for number in range(6)]
    states = "".join(f"  - {{name: {name}}}\n" for name in names)
    block = "blocks: [{{type: header, fields: [{{field: Byte1('{}'), name: tag}}]}}]"
    ways = "".join(
        f"  - {{name: In {'ABCDEF'[number]}, in: [open, {', '.join(names[:number])}], enters: {name}, "
        f"{block.format(number)}}}\n"
        f"  - {{name: Out {'ABCDEF'[number]}, in: [{name}], returns: true, {block.format('uvwxyz'[number])}}}\n"
        for number, name in enumerate(names)
    ).replace(", ]", "]")
    text = SOUND.replace("  - {name: note}\n", "  - {name: note}\n" + states) + ways
    with pytest.raises(ValueError, match="more than 64 that readers must distinguish"):
        load_text(text)


STATES = """\
protocol: many
title: Many
source: nowhere
states:
  - {name: first}
STATES
messages:
  - {name: Start, in: [first], enters: s1, blocks: [{type: header, fields: [{field: Byte1('S'), name: tag}]}]}
  - {name: Other, in: [s1], enters: s2, blocks: [{type: header, fields: [{field: Byte1('O'), name: tag}]}]}
"""


def test_more_states_than_readers_distinguish() -> None:
    """Without nesting, too: none of them is lost without a word."""
    text = STATES.replace("STATES", "\n".join(f"  - {{name: s{number}}}" for number in range(1, 65)))
    with pytest.raises(SpecError, match=r"^many\.yaml:69: .* more than 64 that readers must distinguish"):
        load_text(text, "many.yaml")
