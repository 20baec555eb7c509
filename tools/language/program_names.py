"""The names of a specification that programs use: classes and their arguments, words of enums, options.

``spec/released-names.json`` has those that programs of today may use; ``python -m tools.language.released --names``
prints it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tools.language.elements import Choice, Element, Repeat, Structure
from tools.language.fields import Field
from tools.language.model import Spec
from tools.language.public_names import member_name
from tools.language.wire_names import renamed

__all__ = ["DEFAULT", "KEYWORD", "Names", "by_position", "program_names"]

DEFAULT = " = None"
"""Ends an argument that may be omitted."""
KEYWORD = "*"
"""Begins an argument that is passed by keyword only; these may be omitted, too."""


@dataclass(frozen=True)
class Names:
    """The names in a class, an enum or an option: arguments in their order, members, values."""

    line: int
    names: dict[str, int] = field(default_factory=dict)
    """Each with its line."""
    former: dict[str, str] = field(default_factory=dict)
    """The present name by each former one."""


def by_position(element: Element, structure: Structure) -> bool:
    """Return whether programs may pass a conditional element by position: it says so, or was once always present."""
    was_required = element.until is not None and not (element.since or element.when or structure.extended)
    return element.positional or was_required


def program_names(spec: Spec) -> dict[str, Names]:
    """Return the names by what they belong to: ``class Begin``, ``enum Message.flags``, ``option streaming``."""
    found: dict[str, Names] = {}
    for top in spec.named:
        for name, line, structure in _classes(top.class_name, top.line, top):
            if name and (structure.single is None or structure in spec.messages):
                found[f"class {name}"] = _arguments(structure, line)
            found |= _enums(name or top.class_name, structure)
            found |= _values(structure)
    for option in spec.options if not spec.carries else ():
        found[f"option {option.name}"] = Names(option.line, {value.name: value.line for value in option.values})
    former = {now: name for name, now in renamed(spec).items()}
    return found | {_called(owner, former): names for owner, names in found.items()}


def _called(owner: str, former: Mapping[str, str]) -> str:
    """Return what something is in the class or enum of a message that has another name now, under its former name."""
    kind, _, path = owner.partition(" ")
    name, dot, rest = path.partition(".")
    return f"{kind} {former.get(name, name)}{dot}{rest}"


def _classes(name: str | None, line: int, structure: Structure) -> Iterator[tuple[str | None, int, Structure]]:
    """Yield a structure and the items of the repeats in it, each with the name of its class."""
    yield name, line, structure
    for inner in structure.inside():
        for element in inner.elements:
            if isinstance(element, Repeat):
                yield element.class_name, element.line, element.item


def _arguments(structure: Structure, line: int) -> Names:
    found = Names(line)
    for element in structure.exposed:
        positional = by_position(element, structure)
        optional = positional or (isinstance(element, Choice) and element.optional)
        keyword = element.conditional and not positional
        names = [element.kind_name] if isinstance(element, Choice) and not element.valued else []
        for name in [*names, element.name]:
            found.names[f"{KEYWORD * keyword}{name}{DEFAULT * (optional and not keyword)}"] = element.line
        if isinstance(element, Field):
            found.former.update(dict.fromkeys(element.formerly, element.name))
    return found


def _enums(owner: str, structure: Structure) -> dict[str, Names]:
    """Return the members of the enums of a structure's values, bits and branches."""
    found: dict[str, Names] = {}
    for element in structure.elements:
        words: dict[str, int] = {}
        if isinstance(element, Choice) and not element.valued:
            words = {branch.name: branch.line for branch in element.alternatives}
        elif isinstance(element, Field):
            words = dict.fromkeys((element.values or element.bits or {}).values(), element.line)
        if words:
            members = {member_name(word): line for word, line in words.items()}
            names = [element.name, *(element.formerly if isinstance(element, Field) else ())]
            found |= {f"enum {owner}.{name}": Names(element.line, members) for name in names}
    return found


def _values(structure: Structure) -> dict[str, Names]:
    """Return the constants and classes of values, with the attributes of each."""
    branches = [
        branch
        for inner in structure.inside()
        for element in inner.elements
        if isinstance(element, Choice) and element.valued
        for branch in element.alternatives
    ]
    return {
        f"class {name}": Names(branch.line, {f"{KEYWORD}{extra.name}": extra.line for extra in branch.extras})
        for branch in branches
        for name in branch.defines
    }
