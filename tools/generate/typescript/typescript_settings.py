"""What determines the layouts besides the bytes, in the TypeScript module: the layout, options, and the session."""

from string import Template
from typing import Final

from tools.generate.typed_layouts import asked_option
from tools.generate.typescript.typescript_context import TypeScriptContext
from tools.generate.typescript.typescript_names import camel, requested
from tools.language import Option
from tools.language.model import Parameter

__all__ = ["TypeScriptSettings"]

_SESSION: Final = Template("""\
/** Parses and builds the messages of one connection in their order, by the state of the stream. */
export class Session {
  private readonly state = new wire.StreamState(SETS, TRANSITIONS);
  private sets = -1;
  private known!: Layout;

  /** Start a session; options that a server refuses throw a WireError. */
  constructor(private readonly options: Options) {
    checkOptions(options);
  }

  /** The layout of the next message. */
  get layout(): Layout {
    const sets = this.state.sets;
    if (sets !== this.sets) this.known = layoutOf(this.options, sets);
    this.sets = sets;
    return this.known;
  }

  /** Parse the next message; an error leaves the state unchanged. */
  parse(payload: Uint8Array): $union {
    const message = parse(payload, this.layout);
    this.state.advance(INDEXES[message.message], message.message);
    return message;
  }

  /** Build the next message; an error leaves the state unchanged. */
  build(message: $union): Uint8Array {
    const payload = build(message, this.layout);
    this.state.advance(INDEXES[message.message], message.message);
    return payload;
  }
}
""")
"""The class of sessions, and an empty line after it."""


class TypeScriptSettings:
    """Writes the types of layouts and options, and the class of sessions."""

    def __init__(self, context: TypeScriptContext) -> None:
        self.context, self.spec, self.write = context, context.spec, context.write
        self.states = self.spec.state_parameters
        """The parameters that the states of a stream set."""
        asked = [asked_option(self.spec, message) for message in self.spec.messages]
        self.asked = [option for option in self.spec.layout_options if option in asked]
        """The options without which parse refuses a message."""

    def all(self) -> None:
        """Write the layout, and what a stream has: options, and the session."""
        self._layout()
        if self.spec.versions and self.spec.states:
            self._options()
            self._set()
            self._check()
            self._layout_of()
            self._tables()
            self.write(_SESSION.substitute(union=self.context.union))

    def _layout(self) -> None:
        self.context.about("What determines the layout of a message besides its bytes.")
        with self.context.declaration("export interface Layout {"):
            for each in self.spec.parameters:
                self.context.about(each.description or each.name)
                self.write(f"{camel(each.name)}: {'number' if each.type == 'int' else 'boolean'};")
            for option in self.asked:
                self.context.about(f"Whether the option {option.name} was requested.")
                self.write(f"{requested(option)}: boolean;")

    def _options(self) -> None:
        self.context.about("The options on which layouts depend.")
        with self.context.declaration("export interface Options {"):
            self.context.about("The protocol version.")
            self.write("protoVersion: number;")
            for option in self.spec.layout_options:
                self.context.about(option.description)
                values = " | ".join(f'"{value.name}"' for value in option.values)
                self.write(f"{camel(option.name)}?: {values or 'boolean'};")

    def _set(self) -> None:
        """Write the function that sets an option as text, which is how commands and configurations have it."""
        self.context.about(
            "Set an option by its name. A name that determines no layout, or a value that the "
            "option does not have, throws a WireError; whether a server accepts them together, checkOptions says."
        )
        head = "export function setOption(options: Options, name: string, value: string): void {"
        with self.context.declaration(head), self.write.block("switch (name) {"):
            self._case("proto_version", "options.protoVersion = wire.optionNumber(name, value);")
            for option in self.spec.layout_options:
                names = ", ".join(f'"{each.name}"' for each in option.values)
                found = f"wire.optionValue(name, value, [{names}])" if names else "wire.optionFlag(name, value)"
                self._case(option.name, f"{_given(option)} = {found};")
            self.write("default:", "  throw wire.unknownOption(name);")

    def _case(self, name: str, statement: str) -> None:
        self.write(f'case "{name}":', f"  {statement}", "  break;")

    def _check(self) -> None:
        """Write the function that refuses what needs a newer version: an option, or one of its values."""
        versions = [each.version for each in self.spec.versions]
        self.context.about("Throw a WireError for options that a server refuses.")
        with self.context.declaration("export function checkOptions(options: Options): void {"):
            self.write(f'wire.check({versions}.includes(options.protoVersion), "proto_version");')
            for option in self.spec.layout_options:
                self.write(f'wire.check({_is_known(option)}, "{option.name}");')
                for each in option.values or (option,):
                    if each.since and each.since > versions[0]:
                        unused = f'{_given(option)} !== "{each.name}"' if option.values else f"!{_given(option)}"
                        test = f"{unused} || options.protoVersion >= {each.since}"
                        self.write(f'wire.check({test}, "{option.name}");')

    def _layout_of(self) -> None:
        """Write the function that returns the layout under options and parameters of states."""
        for bit, each in enumerate(self.states):
            self.context.about(f"The bit of a parameter that states of a stream set. {each.description or ''}".strip())
            self.write(f"export const {_bit(each)} = {1 << bit};", "")
        names = ", ".join(f'"{each.name}"' for each in self.states)
        self.context.about("The names of these parameters, by the number of their bits.")
        self.write(f"export const STATE_PARAMETERS: readonly string[] = [{names}];", "")
        self.context.about(
            "Return the layout of messages under options, in a state of the stream: `sets` are the parameters that it "
            "sets, as bits; 0 if it sets none."
        )
        head = f"export function layoutOf(options: Options, {'sets' if self.states else '_sets'}: number): Layout {{"
        with self.context.declaration(head), self.write.block("return {", "};"):
            self.write(*(f"{self._parameter(each)}," for each in self.spec.parameters))
            self.write(*(f"{requested(option)}: {_is_on(option)}," for option in self.asked))

    def _parameter(self, parameter: Parameter) -> str:
        """Return a parameter as a property of the layout."""
        name = camel(parameter.name)
        if parameter in self.states:
            return f"{name}: (sets & {_bit(parameter)}) !== 0"
        return f"{name}: options.{name}" if parameter.type == "int" else f"{name}: {self._is_set(parameter)}"

    def _is_set(self, parameter: Parameter) -> str:
        """Return the test whether an option, or one of its values, sets a parameter."""
        found = []
        for option in self.spec.options:
            if parameter.name in option.sets:
                found.append(f"{_given(option)} === true")
            found += [f'{_given(option)} === "{each.name}"' for each in option.values if parameter.name in each.sets]
        return " || ".join(found) or "false"

    def _tables(self) -> None:
        """Write the tables with which a session follows the stream, both by the numbers of states."""
        write, spec = self.write, self.spec
        places = [place.name for place in spec.places]
        bits = {each.name: 1 << bit for bit, each in enumerate(self.states)}
        sets = [sum(bits[name] for name in place.sets) for place in spec.places]
        self.context.about(f"The parameters that each state of a stream sets, as bits: {', '.join(places)}.")
        write(f"const SETS: readonly number[] = {sets};", "")
        self.context.about("The states in which each message is permitted, each with the one that follows.")
        head = "const TRANSITIONS: readonly (readonly (readonly [number, number])[])[] = ["
        write("// prettier-ignore")
        with self.context.declaration(head, "];"):
            for message in spec.messages:
                steps = [[places.index(before), places.index(after)] for before, after in spec.steps(message).items()]
                write(f"{steps}, // {message.class_name}")


def _bit(parameter: Parameter) -> str:
    return parameter.name.upper()


def _given(option: Option) -> str:
    return f"options.{camel(option.name)}"


def _is_known(option: Option) -> str:
    """Return the test whether an option has a value of its type, which a program without types may ignore."""
    if not option.values:
        return f'["boolean", "undefined"].includes(typeof {_given(option)})'
    values = ", ".join(f'"{each.name}"' for each in option.values)
    return f"[{values}, undefined].includes({_given(option)})"


def _is_on(option: Option) -> str:
    """Return the test whether an option was requested: with another value than the first one, its default."""
    if not option.values:
        return f"{_given(option)} === true"
    default = f'"{option.values[0].name}"'
    return f"({_given(option)} ?? {default}) !== {default}"
