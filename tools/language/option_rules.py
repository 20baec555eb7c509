"""The rules for what determines layouts besides the bytes: parameters, and the states and options that set them."""

import keyword
from collections import Counter
from collections.abc import Callable

from tools.language.model import Spec
from tools.language.names import LINE_KEYS, RESERVED_OPTIONS, RESERVED_PARAMETERS
from tools.language.records import Option

__all__ = ["OPTION_RULES"]

Raise = Callable[[int, str, str], Exception]


def _flags(spec: Spec) -> list[str]:
    return [parameter.name for parameter in spec.parameters if parameter.type == "bool"]


def _parameters(spec: Spec, error: Raise) -> None:
    by_states = {name for state in spec.states for name in state.sets}
    by_options = {name for option in spec.options for row in (option, *option.values) for name in row.sets}
    for parameter in spec.parameters:
        if parameter.name in RESERVED_PARAMETERS:
            problem = f"the parameter {parameter.name!r} is a name that generated code uses"
            raise error(1, problem, "Choose another name.")
        if parameter.type == "int" and parameter.name != "proto_version":
            raise error(1, f"the parameter {parameter.name!r} is an int", "Only proto_version is: write bool.")
        if spec.options and parameter.type == "bool" and parameter.name not in by_states | by_options:
            remedy = "Let a state, an option or an option's value set it."
            raise error(1, f"nothing sets the parameter {parameter.name!r}", remedy)
        if parameter.name in by_states & by_options:
            remedy = "Keep one of them, and make another parameter for the other."
            raise error(1, f"states and options set the parameter {parameter.name!r}", remedy)


def _states(spec: Spec, error: Raise) -> None:
    known = [state.name for state in spec.states]
    if len(set(known)) < len(known):
        raise error(1, f"the states {known} are not distinct", "List each state once.")
    for message in spec.messages:
        for name in (*message.within, *message.ignored, *([message.enters] if message.enters else [])):
            if name not in known:
                raise error(message.line, f"{name!r} is not a state", f"Write one of {known}, or add it to states.")
    for state in spec.states:
        _check_sets(spec, f"the state {state.name}", state.sets, 1, error)
    if spec.states and spec.states[0].sets:
        problem = f"the first state, {known[0]}, sets {', '.join(spec.states[0].sets)}"
        raise error(1, problem, "Let it set nothing: a stream begins there.")


def _check_sets(spec: Spec, what: str, sets: tuple[str, ...], line: int, error: Raise) -> None:
    for name in sets:
        if name not in _flags(spec):
            raise error(line, f"{what} sets {name!r}, which is not a bool parameter", f"Write one of {_flags(spec)}.")


def _options(spec: Spec, error: Raise) -> None:
    for name, count in Counter(option.name for option in spec.options).items():
        if count > 1:
            raise error(1, f"two options are called {name!r}", "List each option once.")
    taken = RESERVED_OPTIONS | {"in_stream"} | {parameter.name for parameter in spec.state_parameters}
    for option in spec.options:
        if keyword.iskeyword(option.name) or option.name in taken:
            raise error(option.line, f"the option {option.name!r} is a word that programs cannot use", "Rename it.")
        if option.values and option.name in {parameter.name for parameter in spec.parameters}:
            problem = f"the option {option.name!r} has values, and a parameter has its name"
            raise error(option.line, problem, "Rename the parameter; only a switch may be called like what it sets.")
        _check_type(spec, option, error)
        _check_values(spec, option, error)


def _check_type(spec: Spec, option: Option, error: Raise) -> None:
    if bool(option.type) == bool(option.values):
        problem = f"the option {option.name!r} has {'values and a type' if option.type else 'no values and no type'}"
        raise error(option.line, problem, "Write its values, or type: number, names or switch.")
    if option.sets and option.type != "switch":
        problem = f"the option {option.name!r} sets a parameter but is not a switch"
        raise error(option.line, problem, "Write sets at one of its values, or type: switch.")
    _check_sets(spec, f"the option {option.name!r}", option.sets, option.line, error)


def _check_values(spec: Spec, option: Option, error: Raise) -> None:
    names = [value.name for value in option.values]
    if len(set(names)) < len(names):
        raise error(option.line, f"two values of the option {option.name!r} are the same", "List each value once.")
    for value in option.values:
        _check_sets(spec, f"the value {value.name!r} of {option.name!r}", value.sets, value.line, error)
        if value is not option.values[0] and (value.since or 0) < (option.since or 0):
            problem = f"the value {value.name!r} has since: {value.since}, and its option since: {option.since}"
            raise error(value.line, problem, f"Write since: {option.since} or newer, or none: it has its option's.")
    first = option.values[0] if option.values else None
    oldest = spec.versions[0].version if spec.versions else 1
    if first is not None and (first.sets or (first.since or oldest) > oldest):
        problem = f"the first value of the option {option.name!r}, its default, sets a parameter or needs a version"
        raise error(first.line, problem, "List first what holds when the option is not given.")


def _option_of_messages(spec: Spec, error: Raise) -> None:
    known = [option.name for option in spec.options if option.type == "switch" or option.values]
    for message in spec.messages:
        if message.option is not None and message.option not in known:
            problem = f"option: {message.option} is not an option that can be off"
            raise error(message.line, problem, f"Write one of {known}, or add it to options.")


def _keys_of_lines(spec: Spec, error: Raise) -> None:
    said = LINE_KEYS | {parameter.name for parameter in spec.state_parameters}
    said |= {option.name for option in spec.layout_options}
    for message in spec.messages if spec.options and not spec.carries else ():
        for element in message.elements:
            if element.name in said:
                problem = f"{message.name} has a field {element.name!r}, which is another key of its JSON line"
                raise error(element.line, problem, "Choose another name.")


OPTION_RULES = (_parameters, _states, _options, _option_of_messages, _keys_of_lines)
