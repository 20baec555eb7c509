"""What determines the layouts in Rust besides the bytes: the structs Layout, Options and Session."""

from collections.abc import Iterator

from tools.generate.rust.rust_code import COPIED, RustCode
from tools.generate.rust.rust_names import ELIDED, requested, rust_name, struct_literal
from tools.generate.typed_layouts import asked_option, pascal
from tools.language import Option
from tools.language.model import Parameter

__all__ = ["RustSettings"]


class RustSettings:
    """Writes the structs of the parameters, of the options, and of the messages of one connection."""

    def __init__(self, code: RustCode) -> None:
        self.code, self.spec, self.write = code, code.spec, code.write
        asked = [asked_option(self.spec, message) for message in self.spec.messages]
        self._asked = [option for option in self.spec.layout_options if option in asked]
        """The options without which parse refuses some message."""

    def all(self) -> None:
        """Write those that the specification has."""
        self._layout()
        if self.spec.versions and self.spec.states:
            self._options()
            self._states()
            self._session()

    def _layout(self) -> None:
        self.code.derived("What determines the layout of a message besides its bytes.", traits=COPIED)
        if not self.spec.parameters:
            self.write("pub struct Layout;", "")
            return
        with self.write.block("pub struct Layout {"):
            for each in self.spec.parameters:
                self._member(each.name, "u32" if each.type == "int" else "bool", each.description or each.name)
            for option in self._asked:
                self._member(requested(option), "bool", f"Whether the option {option.name} was requested.")
        self.write("")

    def _member(self, name: str, type_name: str, about: str) -> None:
        self.code.about(about)
        self.write(f"pub {rust_name(name)}: {type_name},")

    # The options.

    def _options(self) -> None:
        options = self.spec.layout_options
        for option in options:
            if option.values:
                members = ((value.name, value.description or value.name) for value in option.values)
                self.code.plain_enum(pascal(option.name), option.description, members)
        self.code.derived("The options on which layouts depend.", traits=COPIED)
        with self.write.block("pub struct Options {"):
            self._member("proto_version", "u32", "The protocol version.")
            for option in options:
                self._member(option.name, pascal(option.name) if option.values else "bool", option.description)
        self.write("")
        self._default()
        with self.write.block("impl Options {"):
            self._new_options()
            self.write("")
            self._set()
            self.write("")
            self._check()
            self.write("")
            self._layout_of_options()
        self.write("")

    def _default(self) -> None:
        with self.write.block("impl Default for Options {"), self.write.block("fn default() -> Self {"):
            self.write(f"Self::new({self.spec.versions[0].version})")
        self.write("")

    def _new_options(self) -> None:
        options = self.spec.layout_options
        fields = ["proto_version", *(f"{rust_name(each.name)}: {_default_value(each)}" for each in options)]
        self.code.about("Return the options of a protocol version, all others by default.")
        with self.write.block("pub fn new(proto_version: u32) -> Self {"):
            self.write(*struct_literal("Self", fields))

    def _set(self) -> None:
        """Write the method that sets an option as text, which is how commands and configurations have it."""
        self.code.about(
            "Set an option by its name. A name that determines no layout, or a value that the "
            "option does not have, is an error; whether a server accepts them together, `check` says."
        )
        with self.code.function("pub fn set", ["&mut self", "name: &str", "value: &str"], "()"):
            with self.write.block("match (name, value) {"):
                self.write('("proto_version", _) => self.proto_version = rt::option_number(name, value)?,')
                for option in self.spec.layout_options:
                    own = f"self.{rust_name(option.name)}"
                    if not option.values:
                        self.write(f'("{option.name}", _) => {own} = rt::option_flag(name, value)?,')
                    for each in option.values:
                        kind = f"{pascal(option.name)}::{pascal(each.name)}"
                        self.write(f'("{option.name}", "{each.name}") => {own} = {kind},')
                self.write("_ => return Err(rt::unknown_option(name)),")
            self.write("Ok(())")

    def _check(self) -> None:
        versions = [each.version for each in self.spec.versions]
        self.code.about("Check that a server accepts them: each version knows some options and values only.")
        with self.code.function("pub fn check", ["&self"], "()"):
            self.write(f"rt::known_version(self.proto_version, &{versions})?;")
            for option in self.spec.layout_options:
                for test, since in _uses(option):
                    if since and since > versions[0]:
                        with self.write.block(f"if {test} {{"):
                            self.write(f'rt::option_since("{option.name}", self.proto_version, {since})?;')
            self.write("Ok(())")

    def _layout_of_options(self) -> None:
        fields = [self._parameter(each) for each in self.spec.parameters]
        fields += [f"{requested(each)}: {_is_requested(each)}" for each in self._asked]
        sets = "sets" if self.spec.state_parameters else "_"
        self.code.about(
            "Return the layout of messages under these options, in a state of the stream: `sets` are the parameters "
            "that it sets, as bits; 0 if it sets none."
        )
        with self.write.block(f"pub fn layout(&self, {sets}: u64) -> Layout {{"):
            self.write(*struct_literal("Layout", fields))

    def _parameter(self, parameter: Parameter) -> str:
        """Return a parameter with its value: that of the state, that of the option, or whether an option sets it."""
        name = rust_name(parameter.name)
        if parameter in self.spec.state_parameters:
            return f"{name}: sets & {_bit(parameter)} != 0"
        if parameter.type == "int":
            return f"{name}: self.{name}"
        tests = [test for option in self.spec.options for test in _setting(option, parameter.name)]
        return f"{name}: {' || '.join(tests) or 'false'}"

    # The states.

    def _states(self) -> None:
        """Write the tables of the states, of what they set, and of the messages that lead from one to another."""
        write, spec = self.write, self.spec
        bits = {each.name: 1 << number for number, each in enumerate(spec.state_parameters)}
        sets = [sum(bits[name] for name in place.sets) for place in spec.places]
        numbers = {place.name: number for number, place in enumerate(spec.places)}
        self.code.about("The states of a stream, the initial one first.")
        with write.block("pub const STATES: &[&str] = &[", "];"):
            for place in spec.places:
                write(f"// {place.description or place.name}", f'"{place.name}",')
        write("")
        for each in spec.state_parameters:
            self.code.about(f"The bit of a parameter that states set. {each.description or ''}".strip())
            write(f"pub const {_bit(each)}: u64 = {bits[each.name]};", "")
        names = ", ".join(f'"{name}"' for name in bits)
        self.code.about("The names of these parameters, by the number of their bits.")
        write(f"pub const STATE_PARAMETERS: &[&str] = &[{names}];", "")
        self.code.about("The parameters that each state sets, as bits.")
        write(f"const SETS: &[u64] = &{sets};", "")
        self.code.about("The states in which each message is permitted, each with the one that follows.")
        with write.block("const TRANSITIONS: &[&[(u8, u8)]] = &[", "];"):
            for message in spec.messages:
                steps = [(numbers[before], numbers[after]) for before, after in spec.steps(message).items()]
                write(f"// {message.class_name}", f"&{steps},")
        write("")

    def _session(self) -> None:
        about = "The messages of one connection in their order: parses and builds them by the state of the stream."
        self.code.derived(about, traits="Clone, Debug")
        with self.write.block("pub struct Session {"):
            self.write("options: Options,", "state: rt::StreamState,")
        self.write("")
        with self.write.block("impl Session {"):
            self._new()
            self.write("")
            self._layout_of_session()
            self.write("")
            self._parse()
            self.write("")
            self._build()
        self.write("")

    def _new(self) -> None:
        self.code.about("Start a session; options that a server refuses are an error.")
        with self.code.function("pub fn new", ["options: Options"], "Self"):
            self.write("options.check()?;", "let state = rt::StreamState::new(SETS, TRANSITIONS);")
            self.write(*struct_literal("Ok(Self", ["options", "state"], ")"))

    def _layout_of_session(self) -> None:
        self.code.about("Return the layout of the next message.")
        with self.write.block("pub fn layout(&self) -> Layout {"):
            self.write("self.options.layout(self.state.sets())")

    def _parse(self) -> None:
        self.code.about("Parse the next message; an error leaves the state unchanged.")
        types, union = self.code.types, self.code.union
        generic = types.generic(union)
        parameters = ["&mut self", "payload: &'a [u8]" if generic else "payload: &[u8]"]
        with self.code.function(f"pub fn parse{generic}", parameters, types.named(union)):
            self.write("let message = parse(payload, &self.layout())?;")
            self.write("self.state.advance(message.index(), message.name())?;", "Ok(message)")

    def _build(self) -> None:
        self.code.about("Build the next message; an error leaves the state unchanged.")
        parameters = ["&mut self", f"message: &{self.code.types.named(self.code.union, ELIDED)}"]
        with self.code.function("pub fn build", parameters, "Vec<u8>"):
            self.write("let payload = build(message, &self.layout())?;")
            self.write("self.state.advance(message.index(), message.name())?;", "Ok(payload)")


def _bit(parameter: Parameter) -> str:
    return parameter.name.upper()


def _default_value(option: Option) -> str:
    return f"{pascal(option.name)}::default()" if option.values else "false"


def _is_requested(option: Option) -> str:
    own = f"self.{rust_name(option.name)}"
    return f"{own} != {_default_value(option)}" if option.values else own


def _is_chosen(option: Option, value: Option) -> str:
    return f"self.{rust_name(option.name)} == {pascal(option.name)}::{pascal(value.name)}"


def _uses(option: Option) -> Iterator[tuple[str, int | None]]:
    """Yield the test for each use of an option, with the first version that permits it."""
    if option.values:
        yield from ((_is_chosen(option, value), value.since) for value in option.values)
    else:
        yield f"self.{rust_name(option.name)}", option.since


def _setting(option: Option, parameter: str) -> Iterator[str]:
    """Yield the tests for whether an option sets a parameter."""
    if parameter in option.sets:
        yield f"self.{rust_name(option.name)}"
    yield from (_is_chosen(option, value) for value in option.values if parameter in value.sets)
