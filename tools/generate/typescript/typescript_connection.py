"""How the TypeScript module tells the messages of a connection apart: by their sender and the state."""

from collections.abc import Iterator
from string import Template
from typing import Final

from tools.generate.typescript.typescript_context import TypeScriptContext
from tools.language.model import State

__all__ = ["TypeScriptConnection"]

_NEXT_STATE: Final = Template("""\
/** Return the state after a message; throw a WireError if the sender cannot send it in this state. */
export function nextState(message: $union, sender: Sender, state: State): State {
  const number = INDEXES[message.message];
  const found = FOLLOWING[sender][STATES.indexOf(state)]?.find((each) => each[0] === number);
  if (found === undefined) throw new wire.WireError("state", message.message, null);
  return STATES[found[1]] as State;
}
""")
"""The function that follows a connection, and an empty line after it."""


class TypeScriptConnection:
    """Writes the states, the tables of what can be sent in them, and the functions that use these."""

    def __init__(self, context: TypeScriptContext) -> None:
        self.context, self.spec, self.write = context, context.spec, context.write

    def all(self) -> None:
        """Write everything."""
        self._types()
        self._following()
        self._begins()
        self.write(_NEXT_STATE.substitute(union=self.context.union))
        self._parse()

    def _types(self) -> None:
        self.context.about("Who sends a message.")
        self.write('export type Sender = "server" | "client";', "")
        self.context.about("The states of a connection, the initial one first.")
        self.context.listed("export const STATES = [", [place.name for place in self.spec.places], "] as const;")
        self.context.about("A state of a connection.")
        self.write("export type State = (typeof STATES)[number];", "")

    def _following(self) -> None:
        self.context.about("The messages that each sender can send in a state, each with the state that follows.")
        following = "Record<Sender, readonly (readonly (readonly [number, number])[])[]>"
        self.write("// prettier-ignore")
        with self.context.declaration(f"const FOLLOWING: {following} = {{", "};"):
            for sender in ("server", "client"):
                with self.write.block(f"{sender}: [", "],"):
                    for place in self.spec.places:
                        self.write(f"{[*self._steps(sender, place)]}, // {place.name}")

    def _steps(self, sender: str, place: State) -> Iterator[list[int]]:
        """Yield the numbers of the messages that can be sent in a state, each with that of the next state."""
        names = [each.name for each in self.spec.places]
        for number, message in enumerate(self.spec.messages):
            after = self.spec.following(message, sender, place)
            if after is not None:
                yield [number, names.index(after)]

    def _begins(self) -> None:
        self.context.about("The tag of each message, none for one without, and its constant after the length.")
        head = "const BEGINS: readonly (readonly [readonly number[], readonly number[]])[] = ["
        with self.context.declaration(head, "];"):
            for each in self.spec.messages:
                self.write(f"[{list(each.tag)}, {list(each.code_bytes)}], // {each.class_name}")

    def _parse(self) -> None:
        write, union = self.write, self.context.union
        size = next(each.length.size for each in self.spec.messages if each.length)
        begins = f"wire.begins(data, FOLLOWING[sender][STATES.indexOf(state)] ?? [], BEGINS, {size})"
        self.context.about("Parse a message of a connection, with its tag and length, which fills the bytes exactly.")
        head = f"export function parse(data: Uint8Array, sender: Sender, state: State, trace?: wire.Trace): {union} {{"
        with self.context.declaration(head):
            write("const r = new wire.Reader(data, trace);", f"let message: {union};")
            with write.block(f"switch ({begins}) {{"):
                for number, each in enumerate(self.spec.messages):
                    name = each.class_name
                    with self.context.indented(f"case {number}:"):
                        write(f'r.begin("{name}");', f"message = read{name}(r);", "break;")
                write("default:", "  return r.unknownTag();")
            write("r.end();", "return message;")
