"""Which message may follow which: a Mermaid state diagram and a table, from the states of the specification."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from textwrap import wrap

from tools.generate.reference_text import code, link, markdown, mermaid, table
from tools.language import Message, Spec
from tools.language.model import State

__all__ = ["order_table", "state_diagram"]

NOTE_WIDTH = 40
UNBROKEN = "\N{NO-BREAK SPACE}"


def state_diagram(spec: Spec) -> str:
    """Return the diagram, without the fence around it; the messages that change no state stand in notes."""
    return "\n".join(["stateDiagram-v2", "  direction LR", *(f"  {line}" for line in _lines(spec))])


def _lines(spec: Spec) -> Iterator[str]:
    for state in spec.states:
        yield f'state "{mermaid(state.name)}" as {_identifier(state)}'
    if spec.states:
        yield f"[*] --> {_identifier(spec.states[0])}"
    for first, second in combinations(spec.states, 2):
        yield from _arrow(spec, first, second)
        yield from _arrow(spec, second, first)
    for state in spec.states:
        yield from _note(state, _staying(spec, state))


def _arrow(spec: Spec, state: State, following: State) -> Iterator[str]:
    names = [_label(message) for message in _coming(spec, state) if message.enters == following.name]
    if names:
        yield f"{_identifier(state)} --> {_identifier(following)}: {', '.join(names)}"


def _note(state: State, messages: Sequence[Message]) -> Iterator[str]:
    if messages:
        names = ", ".join(_label(message).replace(" ", UNBROKEN) for message in messages)
        yield f"note right of {_identifier(state)}"
        yield from (f"  {line.replace(UNBROKEN, ' ')}" for line in wrap(names, NOTE_WIDTH))
        yield "end note"


def _label(message: Message) -> str:
    return mermaid(message.name)


def _coming(spec: Spec, state: State) -> list[Message]:
    return [message for message in spec.messages if state.name in message.within]


def _staying(spec: Spec, state: State) -> list[Message]:
    return [message for message in _coming(spec, state) if message.enters in (None, state.name)]


def _identifier(state: State) -> str:
    return f"state_{state.name}"


def order_table(spec: Spec) -> str:
    """Return the same as a table: the messages of each state, and where they lead."""
    return table(("State", "Meaning", "Messages that keep it", "Messages that end it"), _rows(spec))


def _rows(spec: Spec) -> Iterator[Sequence[str]]:
    for state in spec.states:
        staying = _staying(spec, state)
        leaving = [message for message in _coming(spec, state) if message not in staying]
        ends = ", ".join(f"{link(message.name)} to {code(str(message.enters))}" for message in leaving)
        keeps = ", ".join(link(message.name) for message in staying)
        sets = f" Sets {', '.join(map(code, state.sets))}." if state.sets else ""
        yield code(state.name), markdown(state.description) + sets, keeps, ends
