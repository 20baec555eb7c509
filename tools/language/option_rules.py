"""The rules for what determines layouts besides the bytes: parameters, and the states and options that set them."""

import keyword
from collections.abc import Callable, Iterable, Iterator

from tools.language import conditions
from tools.language.conditions import Flag, Term
from tools.language.elements import Choice, Element
from tools.language.fields import Field
from tools.language.model import Parameter, Spec
from tools.language.names import LINE_KEYS, RESERVED_OPTIONS, RESERVED_PARAMETERS
from tools.language.near import meant
from tools.language.records import Option

__all__ = ["OPTION_RULES", "USE_RULES", "unused"]

Raise = Callable[[int, str, str], Exception]


def _flags(spec: Spec) -> list[str]:
    return [parameter.name for parameter in spec.parameters if parameter.type == "bool"]


def _parameters(spec: Spec, error: Raise) -> None:
    by_states = {name for state in spec.states for name in state.sets}
    by_options = {name for option in spec.options for row in (option, *option.values) for name in row.sets}
    for parameter in spec.parameters:
        if parameter.name in RESERVED_PARAMETERS:
            problem = f"the parameter {parameter.name!r} is a name that generated code uses"
            raise error(parameter.line, problem, "Choose another name.")
        if parameter.type == "int" and parameter.name != "proto_version":
            raise error(
                parameter.line, f"the parameter {parameter.name!r} is an int", "Only proto_version is: write bool."
            )
        if spec.options and parameter.type == "bool" and parameter.name not in by_states | by_options:
            remedy = "Let a state, an option or an option's value set it."
            raise error(parameter.line, f"nothing sets the parameter {parameter.name!r}", remedy)
        if parameter.name in by_states & by_options:
            remedy = "Keep one of them, and make another parameter for the other."
            raise error(parameter.line, f"states and options set the parameter {parameter.name!r}", remedy)


def _states(spec: Spec, error: Raise) -> None:
    known = [state.name for state in spec.states]
    for index, state in enumerate(spec.states):
        if state.name in known[:index]:
            raise error(state.line, f"two states are called {state.name!r}: they are not distinct", "List it once.")
    for message in spec.messages:
        for name in (*message.within, *message.ignored, *([message.enters] if message.enters else [])):
            if name not in known:
                problem = f"{name!r} is not a state{meant(name, known)}"
                raise error(message.line, problem, f"Write one of {known}, or add it to states.")
    for state in spec.states:
        _check_sets(spec, f"the state {state.name}", state.sets, state.line, error)
    if spec.states and spec.states[0].sets:
        problem = f"the first state, {known[0]}, sets {', '.join(spec.states[0].sets)}"
        raise error(spec.states[0].line, problem, "Let it set nothing: a stream begins there.")


def _check_sets(spec: Spec, what: str, sets: tuple[str, ...], line: int, error: Raise) -> None:
    for name in sets:
        if name not in _flags(spec):
            problem = f"{what} sets {name!r}, which is not a bool parameter{meant(name, _flags(spec))}"
            raise error(line, problem, f"Write one of {_flags(spec)}.")


def _options(spec: Spec, error: Raise) -> None:
    seen = set[str]()
    for option in spec.options:
        if option.name in seen:
            raise error(option.line, f"two options are called {option.name!r}", "List each option once.")
        seen.add(option.name)
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
            problem = f"option: {message.option} is not an option that can be off{meant(message.option, known)}"
            raise error(message.line, problem, f"Write one of {known}, or add it to options.")


def _keys_of_lines(spec: Spec, error: Raise) -> None:
    said = LINE_KEYS | {parameter.name for parameter in spec.state_parameters}
    said |= {option.name for option in spec.layout_options}
    for message in spec.messages if spec.options and not spec.carries else ():
        for element in message.elements:
            if element.name in said:
                problem = f"{message.name} has a field {element.name!r}, which is another key of its JSON line"
                raise error(element.line, problem, "Choose another name.")


def unused(spec: Spec, others: Iterable[Spec]) -> Parameter | None:
    """Return the first parameter of a specification on which nothing depends: here, or in an envelope that carries it.

    Those that states set have another use: readers tell the states apart by them.
    """
    known = {parameter.name for parameter in spec.state_parameters}
    for each in (spec, *(other for other in others if other.carries == spec.file)):
        for element in (element for structure in each.structures() for element in structure.elements):
            leaves = (leaf for term in _terms(element) for leaf in conditions.leaves(term))
            known |= {leaf.name for leaf in leaves if isinstance(leaf, Flag)}
    left = (parameter for parameter in spec.parameters if parameter.type == "bool" and parameter.name not in known)
    return next(left, None) if not spec.carries else None


def _reached(spec: Spec, error: Raise) -> None:
    """Each state is entered: otherwise a name is wrong, or a message is missing."""
    first = spec.states[:1]
    entered = {state.name for state in first}
    while (
        more := {
            after.rpartition("/")[2]
            for message in spec.messages
            for before, after in spec.steps(message).items()
            if before.rpartition("/")[2] in entered
        }
        - entered
    ):
        entered |= more
    for state in spec.states:
        if state.name not in entered:
            remedy = f"Write enters: {state.name} at the message after which it is, or remove the state."
            raise error(state.line, f"no message leads to the state {state.name!r}", remedy)


def _terms(element: Element) -> Iterator[Term | None]:
    if isinstance(element, Choice):
        yield from (branch.term for branch in element.alternatives)
        return
    yield element.term
    if isinstance(element, Field):
        yield from (each.term for each in element.variants)
        yield from element.limits.values()


OPTION_RULES = (_parameters, _states, _options, _option_of_messages, _keys_of_lines)
USE_RULES = (_reached,)
