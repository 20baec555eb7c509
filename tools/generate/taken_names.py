"""Names that are distinct in a specification, and one name in a language whose codec is generated: they are refused."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from tools.generate.go.go_names import exported
from tools.generate.go.go_names import local as go_local
from tools.generate.rust.rust_names import rust_local
from tools.generate.typed_layouts import Alias, Record, TypedLayouts, Union, pascal
from tools.generate.typescript.typescript_names import camel
from tools.generate.typescript.typescript_names import local as typescript_local
from tools.language import Choice, Field, Spec
from tools.language.elements import Structure
from tools.language.errors import SpecError

__all__ = ["check_names"]

_TAKEN: Final[Mapping[str, str]] = {
    "Rust": "Default Err None Ok Option Self Some String Vec",
    "Go": "BuildMessage ParseMessage ToJSON",
    "TypeScript": "Record Uint8Array",
}
"""The names in each language that generated code uses, or defines, whatever the specification."""
_OF_STREAMS: Final = frozenset({"NewSession", "Options", "Session", "StateParameters"})
"""What the codec of a specification with versions has besides."""
_CONSTANTS: Final[Mapping[str, str]] = {
    "Rust": "SETS STATES STATE_PARAMETERS TRANSITIONS",
    "TypeScript": "INDEXES NAMES SETS STATE_PARAMETERS TRANSITIONS",
}
"""The constants of such a codec, besides those of the parameters that states set."""
_OF_CONNECTIONS: Final = frozenset({"NextState", "Sender", "SenderClient", "SenderServer", "State", "States"})
"""What the codec of a connection has besides."""
_METHODS: Final = frozenset({"MessageName"})
"""The exported methods of messages in Go, which no field may be called like."""

_Named = tuple[str, str, int]
"""A name in a language, what has it, and its line."""


def check_names(spec: Spec, union: str) -> None:
    """Raise SpecError if two things have one name in a language, or one has a name that generated code uses.

    Args:
        spec: The specification.
        union: The name of the type of all its messages.
    """
    typed = TypedLayouts(spec)
    types = [*_types(spec, typed)]
    own = {"Layout", union, *(_OF_STREAMS if spec.versions else ()), *(_OF_CONNECTIONS if spec.framed else ())}
    for each in types:
        _check_free(spec, each, {"each codec": own, **{key: names.split() for key, names in _TAKEN.items()}})
    settings, constants = [*_go_settings(spec)], [*_constants(spec)]
    for each in settings:
        _check_free(spec, each, {"Go": own | {*_TAKEN["Go"].split()}})
    units = {each.name for each in typed.records if not each.attributes}
    values = [*constants, *(each for each in types if each[0] in units)]
    for language, names in _CONSTANTS.items() if spec.versions else ():
        for each in values if language == "Rust" else constants:
            _check_free(spec, each, {language: names.split()})
    _check_distinct(spec, values, "Rust")
    _check_distinct(spec, types, "each codec")
    _check_distinct(spec, [*settings, *types, *_go_constants(typed, types)], "Go")
    _check_distinct(spec, [*_typescript_constants(typed)], "TypeScript")
    for structure in spec.structures():
        _check_fields(spec, structure)
    parameters = [(exported(each.name), f"the parameter {each.name}", each.line) for each in spec.parameters]
    asked = [(f"Has{exported(each.name)}", f"whether the option {each.name} is on", each.line) for each in spec.options]
    _check_distinct(spec, [*parameters, *asked], "Go")
    options = [(exported(each.name), f"the option {each.name}", each.line) for each in spec.options]
    _check_distinct(spec, options, "Go")
    states = [(pascal(each.name), f"the state {each.name}", each.line) for each in spec.places if spec.framed]
    _check_distinct(spec, states, "each codec")


def _check_free(spec: Spec, named: _Named, taken: Mapping[str, Collection[str]]) -> None:
    """Raise SpecError for a name that generated code uses in a language."""
    name, what, line = named
    for language, names in taken.items():
        if name in names:
            problem = f"{what} would be called {name}, which generated code uses in {language}"
            raise _error(spec, line, problem)


def _types(spec: Spec, typed: TypedLayouts) -> Iterator[_Named]:
    lines = {named.class_name: named.line for named in spec.named}
    lines |= {str(each.class_name): each.line for named in spec.named for each in named.records()}
    for each in typed.types:
        match each:
            case Record(name=name) | Alias(name=name):
                yield name, f"the type {name}", lines.get(name, _line_of(each))
            case Union(name=name, choice=choice):
                yield name, f"the type of {choice.name}", choice.line
    for option in spec.layout_options:
        if option.values:
            yield pascal(option.name), f"the type of the option {option.name}", option.line


def _line_of(each: Record | Alias) -> int:
    structure = each.structure if isinstance(each, Record) else each.part
    return structure.elements[0].line


def _go_constants(typed: TypedLayouts, types: list[_Named]) -> Iterator[_Named]:
    """Yield the constants of choices, values and bits in Go, which are in one scope with the types."""
    lines = {name: line for name, _, line in types}
    for each in typed.types:
        if isinstance(each, Union):
            for branch in each.branches:
                yield f"{each.name}{branch.name}", f"the branch {branch.alternative.name}", branch.alternative.line
        elif isinstance(each, Record):
            for attribute in each.attributes:
                element = attribute.element
                known = (element.values or element.bits or {}) if isinstance(element, Field) else {}
                for name in sorted({exported(meaning) for meaning in known.values()}):
                    what = f"a constant of {attribute.name}"
                    yield f"{each.name}{exported(attribute.name)}{name}", what, element.line or lines[each.name]


def _constants(spec: Spec) -> Iterator[_Named]:
    """Yield the constants of the parameters that states set, in Rust and TypeScript."""
    for parameter in spec.state_parameters:
        yield parameter.name.upper(), f"the parameter {parameter.name}", parameter.line


def _go_settings(spec: Spec) -> Iterator[_Named]:
    """Yield the constants of options and states in Go, which are in that scope, too."""
    for option in spec.layout_options:
        for value in option.values:
            yield f"{pascal(option.name)}{pascal(value.name)}", f"the value {value.name}", option.line
    for parameter in spec.state_parameters:
        yield exported(parameter.name), f"the parameter {parameter.name}", parameter.line
    for state in spec.places if spec.framed else ():
        yield f"State{pascal(state.name)}", f"the state {state.name}", state.line


def _typescript_constants(typed: TypedLayouts) -> Iterator[_Named]:
    for each in typed.types:
        for attribute in each.attributes if isinstance(each, Record) else ():
            element = attribute.element
            if isinstance(element, Field) and (element.values or element.bits):
                yield f"{each.name}{pascal(attribute.name)}", f"the constants of {attribute.name}", element.line


_NAMES: Final[Mapping[str, tuple[Callable[[str], str], ...]]] = {
    "Go": (exported, go_local),
    "Rust": (rust_local,),
    "TypeScript": (camel, typescript_local),
}
"""The names of fields in each language: as members, and as variables."""


def _check_fields(spec: Spec, structure: Structure) -> None:
    for language, namings in _NAMES.items():
        for naming in namings:
            fields = [(naming(name), f"the field {name}", line) for name, line in _fields(structure)]
            _check_distinct(spec, fields, language)
            for name, what, line in fields:
                if language == "Go" and name in _METHODS:
                    raise _error(spec, line, f"{what} would be called {name} in Go, like a method of messages")


def _fields(structure: Structure) -> Iterator[tuple[str, int]]:
    for element in structure.elements:
        names = element.names if isinstance(element, Choice) else (element.name,)
        yield from ((name, element.line) for name in dict.fromkeys(names))


def _check_distinct(spec: Spec, named: list[_Named], language: str) -> None:
    seen: dict[str, str] = {}
    for name, what, line in named:
        if name in seen:
            problem = f"{what} would be called {name} in {language}, as {seen[name]} is"
            raise _error(spec, line, problem)
        seen[name] = what


def _error(spec: Spec, line: int, problem: str) -> SpecError:
    return SpecError(f"{spec.file}:{line}: {problem}. Choose another name.")
