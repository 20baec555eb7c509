"""How the messages of a connection are told apart in Rust: by their sender and the state."""

from collections.abc import Iterator

from tools.generate.rust.rust_code import COPIED, RustCode
from tools.generate.rust.rust_names import ELIDED, bytes_literal
from tools.generate.rust.rust_reading import RustReading
from tools.generate.typed_layouts import pascal
from tools.language.model import State

__all__ = ["RustConnection"]


class RustConnection:
    """Writes the states of a connection, and the functions that depend on them."""

    def __init__(self, code: RustCode, reading: RustReading) -> None:
        self.code, self.reading, self.spec, self.write = code, reading, code.spec, code.write

    def all(self) -> None:
        """Write the enums of senders and states, the tables of messages, and the functions that use them."""
        self._sender()
        self._state()
        self._following()
        self._next_state()
        self._begins()
        self._parse()

    def _sender(self) -> None:
        self.code.derived("Who sends a message.", traits=COPIED)
        with self.write.block("pub enum Sender {"):
            self.write("/// The server.", "Server,", "/// The client.", "Client,")
        self.write("")

    def _state(self) -> None:
        places = self.spec.places
        members = ((place.name, place.description or place.name) for place in places)
        self.code.plain_enum("State", "The states of a connection, the initial one first.", members)
        with self.write.block("impl State {"):
            self.code.about("All states, each with its name.")
            with self.write.block(f"pub const ALL: [(State, &'static str); {len(places)}] = [", "];"):
                self.write(*(f'(State::{pascal(place.name)}, "{place.name}"),' for place in places))
        self.write("")

    def _following(self) -> None:
        self.code.about("Return the messages that a sender can send in a state, each with the state that follows.")
        with (
            self.write.block("fn following(sender: Sender, state: State) -> &'static [(usize, State)] {"),
            self.write.block("match (sender, state) {"),
        ):
            has_rest = False
            for sender in ("server", "client"):
                for place in self.spec.places:
                    if rows := [*self._rows(sender, place)]:
                        pattern = f"(Sender::{pascal(sender)}, State::{pascal(place.name)})"
                        with self.write.block(f"{pattern} => &[", "],"):
                            self.write(*rows)
                    has_rest |= not rows
            if has_rest:
                self.write("_ => &[],")
        self.write("")

    def _rows(self, sender: str, place: State) -> Iterator[str]:
        """Yield the lines of the messages that a sender can send in a state."""
        for number, message in enumerate(self.spec.messages):
            after = self.spec.following(message, sender, place)
            if after is not None:
                yield f"// {message.class_name}"
                yield f"({number}, State::{pascal(after)}),"

    def _next_state(self) -> None:
        union = self.code.types.named(self.code.union, ELIDED)
        self.code.about("Return the state after a message; an error if the sender cannot send it in this state.")
        parameters = [f"message: &{union}", "sender: Sender", "state: State"]
        with self.code.function("pub fn next_state", parameters, "State"):
            with (
                self.write.block("for &(number, after) in following(sender, state) {"),
                self.write.block("if number == message.index() {"),
            ):
                self.write("return Ok(after);")
            self.write("Err(rt::Error::not_permitted(message.name()))")
        self.write("")

    def _begins(self) -> None:
        messages = self.spec.messages
        self.code.about("The tag of each message, none for one without, and its constant after the length.")
        with self.write.block(f"const BEGINS: [(&[u8], &[u8]); {len(messages)}] = [", "];"):
            self.write(*(f"({bytes_literal(each.tag)}, {bytes_literal(each.code_bytes)})," for each in messages))
        self.write("")

    def _parse(self) -> None:
        messages = self.spec.messages
        size = next(message.length.size for message in messages if message.length)
        self.code.about("Parse a message of a connection, with its tag and length, which fills the bytes exactly.")
        with self.reading.parse("data", "sender: Sender", "state: State"):
            self.write(f"let begins = rt::begins(data, following(sender, state), &BEGINS, {size})?;")
            self.write("let mut r = rt::Reader::new(data);")
            with self.write.block("let message = match begins {", "};"):
                for number, message in enumerate(messages):
                    with self.write.block(f"{'_' if message is messages[-1] else number} => {{"):
                        self.reading.message(message)
