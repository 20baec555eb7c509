"""What determines layouts besides the bytes, in Go: Layout has the parameters, and Options the options."""

from collections.abc import Iterator

from tools.generate.go.go_module import GoModule
from tools.generate.go.go_names import asked_flag, exported
from tools.generate.go.go_session import GoSession
from tools.generate.typed_layouts import asked_option, pascal
from tools.language import Option

__all__ = ["GoSettings"]


class GoSettings:
    """Writes the settings of parsing and building."""

    def __init__(self, module: GoModule) -> None:
        self.module, self.spec, self.write = module, module.spec, module.write
        self.options = self.spec.layout_options
        asked = [asked_option(self.spec, message) for message in self.spec.messages]
        self.asked = [option for option in self.options if option in asked]
        """The options without which some messages are refused."""

    def all(self) -> None:
        """Write Layout; and Options and Session, if there are versions and states."""
        self.write.about("Layout is what determines the layout of a message besides its bytes.")
        self.write.struct("Layout", self._parameters())
        if self.spec.versions and self.spec.states:
            for option in self.options:
                self._values(option)
            self._options()
            self._set()
            self._check()
            self._layout()
            GoSession(self.module).all()

    def _parameters(self) -> Iterator[tuple[str, str]]:
        """Yield the fields of Layout."""
        for each in self.spec.parameters:
            yield each.description or each.name, f"{exported(each.name)} {'int' if each.type == 'int' else 'bool'}"
        for option in self.asked:
            yield f"Whether the option {option.name} was requested.", f"{asked_flag(option)} bool"

    def _values(self, option: Option) -> None:
        """Write the type of an option that has values, and their constants."""
        if not option.values:
            return
        write, kind = self.write, pascal(option.name)
        write.about(f"{kind} is the option {option.name}: {option.description}")
        write(f"type {kind} string", "")
        for value in option.values:
            name = _constant(option, value)
            write.constant(f"{name}: {value.description or value.name}", f"{name} {kind}", f'"{value.name}"')

    def _options(self) -> None:
        fields = [(each.description, f"{exported(each.name)} {_type(each)}") for each in self.options]
        self.write.about("Options are the options on which layouts depend.")
        self.write.struct("Options", [("The protocol version.", "ProtoVersion int"), *fields])

    def _set(self) -> None:
        """Write the method that sets an option as text, which is how commands and configurations have it."""
        write = self.write
        write.about(
            "Set sets an option by its name. A name that determines no layout, or a value that "
            "the option does not have, is an error; whether a server accepts them together, Check says."
        )
        with write.definition("func (o *Options) Set(name, value string) error {"):
            with write.block("switch name {"):
                write.case('case "proto_version"')
                write("return wire.SetNumber(&o.ProtoVersion, name, value)")
                for option in self.options:
                    write.case(f'case "{option.name}"')
                    if option.values:
                        names = ", ".join(f'"{each.name}"' for each in option.values)
                        write(f"return wire.SetValue(&{_given(option)}, name, value, {names})")
                    else:
                        write(f"return wire.SetFlag(&{_given(option)}, name, value)")
            write("return wire.UnknownOption(name)")

    def _check(self) -> None:
        write = self.write
        write.about("Check returns an error for options that a server refuses.")
        with write.definition("func (o *Options) Check() error {"):
            known = ", ".join(str(each.version) for each in self.spec.versions)
            with write.block(f"if !wire.IsOneOf(o.ProtoVersion, {known}) {{"):
                write(_refusal("proto_version"))
            for option in self.options:
                if option.values:
                    self._check_value(option)
                elif self._came_later(option):
                    with write.block(f"if {_given(option)} {{"):
                        self._check_version(option, option)
            write("return nil")

    def _check_value(self, option: Option) -> None:
        """Write the statement that checks an option with values, of which the first one is its default."""
        write = self.write
        with write.block(f"switch {_given(option)} {{"):
            for number, value in enumerate(option.values):
                write.case(f"case {_constant(option, value)}" + ', ""' * (number == 0))
                if self._came_later(value):
                    self._check_version(option, value)
            write.case("default")
            write(_refusal(option.name))

    def _came_later(self, option: Option) -> bool:
        """Return whether the first protocol version is without an option or a value of one."""
        return option.since is not None and option.since > self.spec.versions[0].version

    def _check_version(self, option: Option, value: Option) -> None:
        with self.write.block(f"if o.ProtoVersion < {value.since} {{"):
            self.write(_refusal(option.name))

    def _layout(self) -> None:
        """Write the method that returns the parameters under some options, in a state."""
        write, states = self.write, [each.name for each in self.spec.state_parameters]
        write.about(
            "Layout returns the layout of messages under these options, in a state of the stream: sets are the "
            "parameters that it sets, as bits; 0 if it sets none."
        )
        with write.definition(f"func (o *Options) Layout({'sets' if states else '_'} uint64) *Layout {{"):
            write("layout := new(Layout)")
            for each in self.spec.parameters:
                if each.name in states:
                    value = f"sets&{exported(each.name)} != 0"
                elif each.type == "int":
                    value = f"o.{exported(each.name)}"
                else:
                    value = " || ".join(self._setters(each.name)) or "false"
                write(f"layout.{exported(each.name)} = {value}")
            for option in self.asked:
                write(f"layout.{asked_flag(option)} = {_is_on(option)}")
            write("return layout")

    def _setters(self, parameter: str) -> Iterator[str]:
        """Yield the tests for the options and the values that set a parameter."""
        for option in self.spec.options:
            if parameter in option.sets:
                yield _given(option)
            for value in option.values:
                if parameter in value.sets:
                    yield f"{_given(option)} == {_constant(option, value)}"


def _type(option: Option) -> str:
    return pascal(option.name) if option.values else "bool"


def _given(option: Option) -> str:
    """Return what a method of Options has for an option."""
    return f"o.{exported(option.name)}"


def _constant(option: Option, value: Option) -> str:
    """Return the constant for a value of an option."""
    return pascal(option.name) + pascal(value.name)


def _is_on(option: Option) -> str:
    """Return the test whether an option is on: the first one of its values is off."""
    given = _given(option)
    return f'{given} != "" && {given} != {_constant(option, option.values[0])}' if option.values else given


def _refusal(name: str) -> str:
    return f'return wire.RefusedOption("{name}")'
