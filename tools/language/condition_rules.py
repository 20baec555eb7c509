"""The rules for conditions: versions, parameters, bits, and fields with variants."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from tools.language import conditions
from tools.language.conditions import VERSION, Flag, Term
from tools.language.elements import Alternative, Choice, Element, Repeat, Structure
from tools.language.fields import Field
from tools.language.model import Spec
from tools.language.near import meant

__all__ = ["CONDITION_RULES", "named_versions"]

Raise = Callable[[int, str, str], Exception]


class Conditioned(NamedTuple):
    """An element with a condition, and the structure that contains it."""

    line: int
    name: str
    term: Term
    owner: "Field | Repeat | Alternative | None"
    """None for a value or bit of a field."""
    structure: Structure
    place: int
    """Its index in the structure, or that of the element it belongs to."""


def _all(spec: Spec) -> Iterator[Conditioned]:
    for structure in spec.structures():
        for place, element in enumerate(structure.elements):
            for line, name, term, owner in _parts(element):
                if term is not None:
                    yield Conditioned(line, name, term, owner, structure, place)


def _parts(element: Element) -> Iterator[tuple[int, str, Term | None, "Field | Repeat | Alternative | None"]]:
    match element:
        case Choice(alternatives=alternatives):
            yield from ((a.line, a.name, a.term, a) for a in alternatives)
        case Repeat():
            yield element.line, element.name, element.term, element
        case Field():
            yield from ((f.line, f.name, f.term, f) for f in element.variants or (element,))
            yield from ((element.line, f"{key} of {element.name}", term, None) for key, term in element.limits.items())


def named_versions(spec: Spec) -> Iterator[tuple[int, str, int]]:
    """Yield each protocol version that something names: its line, and the key."""
    yield from ((message.line, "since", message.since) for message in spec.messages if message.since is not None)
    for each in _all(spec):
        for leaf in conditions.leaves(each.term):
            if isinstance(leaf, conditions.Since | conditions.Until):
                yield each.line, type(leaf).__name__.lower(), leaf.version
    for option in spec.options:
        yield from ((o.line, "since", o.since) for o in (option, *option.values) if o.since is not None)


def _flags(spec: Spec, error: Raise) -> None:
    flags = [parameter.name for parameter in spec.parameters if parameter.type == "bool"]
    for each in _all(spec):
        for leaf in conditions.leaves(each.term):
            if isinstance(leaf, Flag) and leaf.name not in flags:
                more = f": a frame is in no state of {spec.carries}" if spec.carries else ", or add it to parameters"
                remedy = f"Write one of {flags}{more}."
                raise error(each.line, f"when: {leaf.name} is not a bool parameter{meant(leaf.name, flags)}", remedy)


def _possible(spec: Spec, error: Raise) -> None:
    known = [version.version for version in spec.versions]
    for each in _all(spec):
        _check_count(each.name, [each.term], each.line, error)
        tried = sorted({*known, *conditions.versions(each.term)})
        if not any(conditions.holds(each.term, *case) for case in conditions.cases([each.term], tried)):
            problem = f"{each.name} can never be present: its condition contradicts itself"
            raise error(each.line, problem, "Correct since, until or when.")


def _check_count(what: str, terms: Sequence[Term | None], line: int, error: Raise) -> None:
    """Refuse what depends on more parameters and bits than are tried in all combinations."""
    if (count := len(conditions.atoms(terms))) > conditions.MOST:
        raise error(line, f"{what} depends on {count} parameters and bits", f"Write {conditions.MOST} at most.")


def _bits(spec: Spec, error: Raise) -> None:
    for each in _all(spec):
        for bit in conditions.bits(each.term):
            if not isinstance(each.owner, Field | Repeat):
                problem = f"{each.name} depends on a bit, which only fields and repeats may"
                raise error(each.line, problem, "Write a parameter, or since and until.")
            earlier = [e for e in each.structure.elements[: each.place] if isinstance(e, Field) and e.bits]
            field = next((e for e in earlier if e.name == bit.field), None)
            if field is None:
                problem = f"{each.name} depends on a bit of {bit.field!r}, which is not an earlier field with bits"
                known = [e.name for e in earlier]
                remedy = (
                    f"Name one of {known}."
                    if known
                    else "Name an earlier field of the same structure, and give that bits."
                )
                raise error(each.line, problem, remedy)
            if bit.mask not in (field.bits or {}):
                problem = f"{each.name} depends on bit {bit.mask}, which is not a bit of {bit.field}"
                raise error(each.line, problem, f"Write one of {list(field.bits or ())}, or add it to its bits.")


def _constants(spec: Spec, error: Raise) -> None:
    """The tag of a message, and the constant after an optional choice, are always present."""
    for message in spec.messages:
        if message.elements[0].conditional:
            raise error(message.line, f"the tag of {message.name} has a condition", "Write since at the message.")
    for structure in spec.structures():
        for element, following in zip(structure.elements, structure.elements[1:], strict=False):
            if isinstance(element, Choice) and element.optional and following.conditional:
                problem = f"the optional choice {element.name} is followed by {following.name}, which has a condition"
                raise error(following.line, problem, "Remove the condition, or put another tag after the choice.")


def _variants(spec: Spec, error: Raise) -> None:
    known = [version.version for version in spec.versions]
    for field in spec.fields():
        _check_count(field.name, [each.term for each in field.variants], field.line, error)
        for row in field.rows:
            _check_count(f"a value or bit of {field.name}", list(row.limits.values()), row.line, error)
        for one, other in combinations(field.variants, 2):
            cases = conditions.cases([one.term, other.term], known)
            if any(all(conditions.holds(each.term, *case) for each in (one, other)) for case in cases):
                problem = f"two fields called {field.name} can be present at once"
                raise error(other.line, problem, "Write until at the first and since at the second, or rename one.")
        held = [each for each in field.variants if not each.hidden]
        kinds = dict.fromkeys(_kind(each) for each in held)
        if len(kinds) > 1:
            problem = f"{field.name} is {' in one version and '.join(kinds)} in another"
            raise error(field.line, problem, "Rename one of them: what has one name is one thing in Python and Arrow.")
        if len({each.length for each in held}) > 1:
            raise error(field.line, f"{field.name} has another length in another version", "Rename one of them.")
        if any(each.absent is not None or each.frames for each in field.variants):
            raise error(field.line, f"{field.name} has variants, and measures or may be absent", "Rename one of them.")


def _kind(field: Field) -> str:
    """Return the properties of a field that matter to users of its values."""
    if field.part:
        return f"the part {field.part}"
    if field.type is None or field.size is None or field.is_block:
        return field.python
    sign = "a number with a sign" if field.signed else "a number"
    return "a letter" if field.is_letter else sign if field.python == "int" else f"a {field.python}"


def _versions_parameter(spec: Spec, error: Raise) -> None:
    if any(parameter.name == VERSION for parameter in spec.parameters):
        return
    for line, word, _ in named_versions(spec):
        remedy = f"Add {VERSION}: {{type: int}} to parameters."
        raise error(line, f"{word} needs the parameter {VERSION}", remedy)


def _positional(spec: Spec, error: Raise) -> None:
    for structure in spec.structures():
        for element in structure.elements:
            if element.positional and (structure.extended or not element.conditional):
                problem = (
                    f"{element.name} is positional, but always there, or in a structure that one value can stand for"
                )
                raise error(element.line, problem, "Remove positional.")


def _former_names(spec: Spec, error: Raise) -> None:
    for structure in spec.structures():
        for element in structure.elements:
            if isinstance(element, Field) and element.formerly and element not in structure.exposed:
                problem = f"{element.name} has former names, but is no field of an object"
                raise error(element.line, problem, "Remove formerly: nobody has called it by a name.")


CONDITION_RULES = (_versions_parameter, _flags, _possible, _bits, _constants, _variants, _positional, _former_names)
