"""The rules for layouts that a JSON Schema cannot express: choices, repeats, values, states; ends are in end_rules."""

from collections.abc import Callable, Iterable, Iterator

from tools.language import conditions
from tools.language.elements import Alternative, Choice, Element, Repeat, Structure
from tools.language.end_rules import END_RULES
from tools.language.fields import Field
from tools.language.model import Spec

__all__ = ["LAYOUT_RULES"]

Raise = Callable[[int, str, str], Exception]


def _choices(spec: Spec, error: Raise) -> None:
    for choice, following in _choices_with_followers(spec):
        for what in ("tag", "name", "python"):
            values = [v for a in choice.alternatives if (v := getattr(a, what)) is not None]
            if len(set(values)) < len(values):
                problem = f"two alternatives of {choice.name} have the same {what}"
                raise error(choice.line, problem, f"Give each a {what} of its own.")
        if any(a.python for a in choice.alternatives) and not choice.valued:
            remedy = "Say it of all of them, or of none."
            raise error(choice.line, f"only some alternatives of {choice.name} say python", remedy)
        if len({a.numeric for a in choice.alternatives}) > 1:
            problem = f"some tags of {choice.name} are letters, others are numbers"
            raise error(choice.line, problem, "Write all of them as Byte1('X'), or all as Int8(16).")
        for alternative in choice.alternatives:
            _check_alternative(alternative, spec, error)
        if choice.optional:
            _check_optional(choice, following, error)


def _choices_with_followers(spec: Spec) -> Iterator[tuple[Choice, Element | None]]:
    for structure in spec.structures():
        followers: list[Element | None] = [*structure.elements[1:], None]
        for element, following in zip(structure.elements, followers, strict=True):
            if isinstance(element, Choice):
                yield element, following


def _check_alternative(alternative: Alternative, spec: Spec, error: Raise) -> None:
    python, then = alternative.python, alternative.then
    constant = python is not None and (python == "None" or python.isupper())
    if python is not None and constant != (then is None):
        remedy = "Without then write None or a NAME; with then write bytes or a ClassName."
        raise error(alternative.line, f"the alternative {alternative.name} has the python value {python}", remedy)
    if alternative.form is not None and (python is None or then is None):
        problem = f"the alternative {alternative.name} has a form, but its values hold no bytes"
        raise error(alternative.line, problem, "Remove form.")
    if python == "bytes" and alternative.format != "text":
        problem = f"the alternative {alternative.name} has the python value bytes and the form {alternative.form}"
        raise error(alternative.line, problem, "Write a ClassName instead of bytes, which are text.")
    if alternative.content is not None:
        _check_extras(alternative, error)
        return
    if isinstance(then, Structure) and then.single is None:
        remedy = "Make a part of them, and name it"
        if python is not None:
            remedy += "; remove python from all alternatives, whose values would have to hold bytes alone"
        raise error(alternative.line, f"the alternative {alternative.name} has several fields", f"{remedy}.")
    if python is not None and then is not None and not _is_bytes(then, spec):
        problem = f"the alternative {alternative.name} has the python value {python}, but holds no bytes alone"
        raise error(alternative.line, problem, "Remove python from all alternatives, or let a Byten follow the tag.")


def _check_extras(alternative: Alternative, error: Raise) -> None:
    """A value with several fields is bytes with attributes: plain fields that are always present."""
    if alternative.python == "bytes":
        problem = f"the alternative {alternative.name} has more than bytes, and the python value bytes"
        raise error(alternative.line, problem, "Write a ClassName.")
    for field in alternative.extras:
        if field.part or field.conditional or field.variants or field.name in {*dir(bytes), "cls", "data"}:
            problem = f"{field.name} cannot be an attribute of the bytes of the alternative {alternative.name}"
            remedy = "Let it be a plain field that is always there, whose name bytes do not have, and not data."
            raise error(field.line, problem, remedy)


def _is_bytes(then: Structure | str, spec: Spec) -> bool:
    """Return whether the content of a branch is bytes, and always has them."""
    single = (spec.part(then) if isinstance(then, str) else then).single
    if not isinstance(single, Field) or single.conditional or single.is_area:
        return False
    return _is_bytes(single.part, spec) if single.part else single.python == "bytes"


def _check_optional(choice: Choice, following: Element | None, error: Raise) -> None:
    constant = following.constant_bytes if isinstance(following, Field) and following.size == 1 else None
    if choice.valued or constant is None:
        problem = f"the optional choice {choice.name} is not followed by a tag"
        raise error(choice.line, problem, "Follow it by a field such as Byte1('N') or Int8(16).")
    if constant in {alternative.tag for alternative in choice.alternatives}:
        problem = f"the optional choice {choice.name} is followed by one of its own tags"
        raise error(choice.line, problem, "Use another tag after it.")


def _repeats(spec: Spec, error: Raise) -> None:
    for structure in spec.structures():
        for element in structure.elements:
            if not isinstance(element, Repeat):
                continue
            if element.item.single is None and element.class_name is None:
                problem = f"an item of {element.name} has several fields, or one with a condition, and no class"
                raise error(element.line, problem, "Add class: SomeName.")
            if not _takes_bytes(element.item, spec):
                remedy = "Give it a field that is always there."
                raise error(element.line, f"an item of {element.name} can be empty", remedy)


def _takes_bytes(structure: Structure, spec: Spec) -> bool:
    """Return whether a structure takes at least a byte: a count of items without bytes would be unbounded."""
    return any(_element_takes_bytes(element, spec) for element in structure.elements)


def _element_takes_bytes(element: Element, spec: Spec) -> bool:
    if isinstance(element, Choice):
        return not element.optional
    if isinstance(element, Field) and element.variants:
        return element.complete and all(_element_takes_bytes(each.always, spec) for each in element.variants)
    if element.conditional:
        return False
    if isinstance(element, Repeat):
        return element.fixed is not None and _takes_bytes(element.item, spec)
    if element.part:
        return _takes_bytes(spec.part(element.part), spec)
    return element.length is None and not element.is_open


def _annotations(spec: Spec, error: Raise) -> None:
    for field in (each for merged in spec.fields() for each in merged.variants or (merged,)):
        plain = field.type is not None and field.type.python == "int" and field.constant is None
        if (field.values or field.bits) and not plain:
            problem = f"{field.name} is not a plain integer, so it has no values or bits"
            raise error(field.line, problem, "Remove them.")
        if field.values and field.bits:
            raise error(field.line, f"{field.name} has values and bits", "Keep one of them.")
        limit = 1 << max(8 * (field.size or 0) - field.signed, 0)
        if isinstance(field.constant, int) and field.constant >= limit:
            remedy = f"Write one below {limit}."
            raise error(field.line, f"the constant {field.constant} does not fit {field.notation}", remedy)
        _check_values(field, limit, error)
        _check_bits(field, limit, error)


def _check_values(field: Field, limit: int, error: Raise) -> None:
    values = list(field.values or ())
    one_byte = field.size == 1 and not field.signed
    letters = [v for v in values if isinstance(v, str) and len(v) == 1 and v.isascii() and v.isalnum() and one_byte]
    numbers = [v for v in values if type(v) is int and 0 <= v < limit]
    if values and len(values) not in (len(letters), len(numbers)):
        problem = f"the values {values} of {field.name} are not all letters or all numbers that fit"
        raise error(field.line, problem, "Write letters for an Int8, or numbers.")


def _check_bits(field: Field, limit: int, error: Raise) -> None:
    for bit in field.bits or ():
        if type(bit) is not int or bit <= 0 or bit & (bit - 1) or bit >= limit:
            raise error(field.line, f"{bit!r} is not a bit of {field.name}", "Write 1, 2, 4, 8 and so on.")


def _states(spec: Spec, error: Raise) -> None:
    """A field that depends on a state is in a message that is permitted in that state."""
    by_states = {name for state in spec.states for name in state.sets}
    never = {id(each): each for each in _conditioned(spec.structures()) if _only_in(each, by_states)}
    for message in spec.messages:
        steps = spec.steps(message)
        given = {name for place in spec.places if place.name in steps for name in place.sets}
        for each in _conditioned(spec.reached(message)):
            if given & conditions.parameters(each.term):
                never.pop(id(each), None)
    for each in never.values():
        names = ", ".join(sorted(by_states & conditions.parameters(each.term)))
        problem = f"{each.name} can never be present: no message that holds it comes in a state that sets {names}"
        raise error(each.line, problem, "Remove the field or its condition, or add such a state to in.")


def _conditioned(structures: Iterable[Structure]) -> Iterator[Field | Repeat | Alternative]:
    """Yield the elements with conditions: fields, repeats and alternatives."""
    for structure in structures:
        for element in structure.elements:
            match element:
                case Choice(alternatives=alternatives):
                    yield from alternatives
                case Field(variants=variants) if variants:
                    yield from variants
                case Field() | Repeat():
                    yield element


def _only_in(each: Field | Repeat | Alternative, by_states: set[str]) -> bool:
    """Return whether an element is present only while a state sets a parameter."""
    term = conditions.outside(each.term)
    off = [given | dict.fromkeys(by_states, 0) for given, _ in conditions.cases([term], ())]
    return term is not None and not any(conditions.holds(term, given, {}) for given in off)


LAYOUT_RULES = (*END_RULES, _choices, _repeats, _annotations, _states)
