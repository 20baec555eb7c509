"""How the messages of a connection are told apart in Go: by who sends them, and in which state."""

from collections.abc import Iterator
from string import Template
from typing import Final

from tools.generate.go.go_messages import write_parse
from tools.generate.go.go_module import GoModule
from tools.generate.go.go_names import bytes_literal
from tools.generate.typed_layouts import pascal
from tools.language.model import State

__all__ = ["GoConnection"]

_TYPES: Final = """\
// Sender is who sends a message.
type Sender int

// SenderServer is the server.
const SenderServer Sender = 0

// SenderClient is the client.
const SenderClient Sender = 1

// State is a state of a connection; the initial one is 0.
type State int
"""
_SENDERS: Final = ("server", "client")
"""The senders, in the order of their constants."""
_NEXT_STATE: Final = Template("""\
// NextState returns the state after a message; an error if the sender cannot send it in this state.
func NextState(message $union, sender Sender, state State) (State, error) {
	for _, each := range following[sender][state] {
		if each[0] == message.index() {
			return State(each[1]), nil
		}
	}
	return state, wire.NotPermitted(message.MessageName())
}
""")


class GoConnection:
    """Writes the states of a connection, what follows in each, and the functions that use this."""

    def __init__(self, module: GoModule) -> None:
        self.module, self.spec, self.write = module, module.spec, module.write

    def all(self) -> None:
        """Write everything."""
        self.write(_TYPES)
        self._states()
        self._following()
        self._begins()
        self.write(_NEXT_STATE.substitute(union=self.module.union))
        self._parse()

    def _states(self) -> None:
        write, places = self.write, self.spec.places
        for number, place in enumerate(places):
            name = f"State{pascal(place.name)}"
            write.constant(f"{name}: {place.description or place.name}", f"{name} State", number)
        write.about("States are the names of the states.")
        with write.definition("var States = []string{"):
            write(*(f'"{place.name}",' for place in places))

    def _following(self) -> None:
        write = self.write
        write.about("The messages that each sender can send in a state, each with the state that follows.")
        with write.definition("var following = [2][][][2]int{"):
            for sender in _SENDERS:
                with write.block("{", "},"):
                    for place in self.spec.places:
                        write(f"{{{', '.join(self._steps(sender, place))}}},")

    def _steps(self, sender: str, place: State) -> Iterator[str]:
        """Yield the messages that a sender can send in a state, each with the state that follows, as numbers."""
        names = [each.name for each in self.spec.places]
        for number, message in enumerate(self.spec.messages):
            after = self.spec.following(message, sender, place)
            if after is not None:
                yield f"{{{number}, {names.index(after)}}}"

    def _begins(self) -> None:
        write = self.write
        write.about("The tag of each message, none for one without, and its constant after the length.")
        with write.definition("var begins = [][2]string{"):
            for each in self.spec.messages:
                write(f"{{{bytes_literal(each.tag)}, {bytes_literal(each.code_bytes)}}},")

    def _parse(self) -> None:
        length = next(message.length for message in self.spec.messages if message.length)
        about = "parses a message of a connection, with its tag and length, which fills the bytes exactly"
        self.write.about(f"ParseMessage {about}.")
        selector = f"wire.Begins(data, following[sender][state], begins, {length.size})"
        numbers = map(str, range(len(self.spec.messages)))
        write_parse(self.module, "data", "sender Sender, state State", selector, numbers)
