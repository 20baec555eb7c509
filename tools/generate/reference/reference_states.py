"""The order of messages: a Mermaid state diagram and a table, from the states of the specification."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from textwrap import wrap

from tools.generate.reference.reference_connection import arrows
from tools.generate.reference.reference_text import code, link, markdown, mermaid, table
from tools.language import Message, Spec
from tools.language.model import State

__all__ = ["order_table", "state_diagram"]

NOTE_WIDTH = 40
UNBROKEN = "\N{NO-BREAK SPACE}"


def state_diagram(spec: Spec) -> str:
    """Return the diagram, without the fence.

    Messages that change no state are in notes; a connection has too many of them, so they are in the table instead.
    """
    return "\n".join(["stateDiagram-v2", "  direction LR", *(f"  {line}" for line in _lines(spec))])


def _lines(spec: Spec) -> Iterator[str]:
    for state in spec.places:
        yield f'state "{mermaid(state.name)}" as {_identifier(state)}'
    if spec.states:
        yield f"[*] --> {_identifier(spec.states[0])}"
    for one, other in combinations(spec.places, 2):
        for state, following in ((one, other), (other, one)):
            if messages := [m for m in _leaving(spec, state) if spec.steps(m)[state.name] == following.name]:
                label = arrows(messages) if spec.framed else ", ".join(mermaid(m.name) for m in messages)
                yield f"{_identifier(state)} --> {_identifier(following)}: {label}"
    for state in () if spec.framed else spec.places:
        if names := [mermaid(m.name).replace(" ", UNBROKEN) for m in _staying(spec, state)]:
            yield f"note right of {_identifier(state)}"
            yield from (f"  {line.replace(UNBROKEN, ' ')}" for line in wrap(", ".join(names), NOTE_WIDTH))
            yield "end note"


def _leaving(spec: Spec, state: State) -> list[Message]:
    return [m for m in spec.messages if m.within and spec.steps(m).get(state.name, state.name) != state.name]


def _staying(spec: Spec, state: State) -> list[Message]:
    return [m for m in spec.messages if m.within and spec.steps(m).get(state.name) == state.name]


def _identifier(state: State) -> str:
    if "/" in state.name:
        return "nested_" + state.name.replace("_", "_u").replace("/", "_s")
    return f"state_{state.name}"


def order_table(spec: Spec) -> str:
    """Return the same as a table: the messages of each state, and the states that follow."""
    return table(("State", "Meaning", "Messages that keep it", "Messages that end it"), _rows(spec))


def _rows(spec: Spec) -> Iterator[Sequence[str]]:
    for state in spec.places:
        ends = ", ".join(f"{link(m.name)} to {code(spec.steps(m)[state.name])}" for m in _leaving(spec, state))
        keeps = ", ".join(link(m.name) for m in _staying(spec, state))
        sets = f" Sets {', '.join(map(code, state.sets))}." if state.sets else ""
        yield code(state.name), markdown(state.description) + sets, keeps, ends
