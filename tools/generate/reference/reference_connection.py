"""The reference's sections on a connection: which side can send what in which state, and how to identify messages."""

from collections.abc import Iterator, Sequence

from tools.generate.reference.reference_text import code, link, markdown, mermaid, table
from tools.language import Message, Spec
from tools.language.model import State

__all__ = ["FRAMING", "ORDER", "arrows", "order_table"]

FRAMING = """
Messages have a length, which counts itself and what follows it but not the tag; some messages are a tag alone. A
message is identified by its tag, if the messages of the state have tags; if several have the same tag or none, by the
constant after the length; otherwise by the state of the connection.
"""
ORDER = """
Which messages are permitted depends on the state of the connection and on the sender. An arrow is a message that leads
to another state; the table also has those that keep the state.
"""


def arrows(messages: Sequence[Message]) -> str:
    """Return the label of an arrow in the diagram: the messages and their senders."""
    senders = dict.fromkeys(message.sender for message in messages)
    named = {sender: ", ".join(mermaid(m.name) for m in messages if m.sender == sender) for sender in senders}
    return ", ".join(f"{names} ({sender or 'both'})" for sender, names in named.items())


def order_table(spec: Spec) -> str:
    """Return the table of states: what each side can send, and the state that follows."""
    return table(("State", "Meaning", "From the server", "From the client"), _rows(spec))


def _rows(spec: Spec) -> Iterator[Sequence[str]]:
    for state in spec.places:
        sides = (", ".join(_steps(spec, state, sender)) for sender in ("server", "client"))
        yield code(state.name), markdown(state.description), *sides


def _steps(spec: Spec, state: State, sender: str) -> Iterator[str]:
    for message in spec.messages:
        if (following := spec.following(message, sender, state)) is not None:
            ignored = " (ignored)" if sender == "client" and state.innermost in message.ignored else ""
            leads = f" to {code(following)}" if following != state.name else ""
            yield link(message.name) + leads + ignored
