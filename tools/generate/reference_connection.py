"""What the reference says of a connection: who can send what in which state, and how messages are told apart."""

from collections.abc import Iterator, Sequence

from tools.generate.reference_text import code, link, markdown, mermaid, table
from tools.language import Message, Spec
from tools.language.model import State

__all__ = ["FRAMING", "ORDER", "arrows", "order_table"]

FRAMING = """
A message says how long it is: its length counts the bytes from its own first one to the end; some are a tag alone. The
tag tells which message it is, where the messages of the state have one; where several have the same, or none, the
constant behind the length; where that does not either, the state of the connection.
"""
ORDER = """
Which message may come depends on the state of the connection and on who sends it. An arrow is a message that leads into
another state; the table has those that leave the state as it is, too.
"""


def arrows(messages: Sequence[Message]) -> str:
    """Return what stands at an arrow of the diagram: the messages, and behind them who sends them."""
    senders = dict.fromkeys(message.sender for message in messages)
    named = {sender: ", ".join(mermaid(m.name) for m in messages if m.sender == sender) for sender in senders}
    return ", ".join(f"{names} ({sender or 'both'})" for sender, names in named.items())


def order_table(spec: Spec) -> str:
    """Return the table of the states: what each side can send, and where that leads."""
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
