"""The layouts of released protocol versions: PostgreSQL's releases have frozen them, and a specification keeps them.

``spec/released.json`` has a line for each field, choice, branch, repeat and option, without the names of fields, which
may change. ``python -m tools.language.released 4`` prints it for the versions up to one; ``breakage`` compares a
specification with it.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from tools.language import conditions
from tools.language.conditions import VERSION, Since, Term, Until
from tools.language.elements import Choice, Element, Repeat, Structure
from tools.language.fields import Field
from tools.language.model import Message, Spec

__all__ = ["FILE", "OPTIONS", "Entry", "layouts"]

FILE: Final = "released.json"
OPTIONS: Final = "options"
"""The key of the options of the version's server; those of messages are their tags."""


class Entry(NamedTuple):
    """The wire format of something."""

    text: str
    line: int
    """Its line in the specification."""
    name: str
    """Its path in the message or part; of an option its name."""


def layouts(spec: Spec, version: int) -> dict[str, list[Entry]]:
    """Return the layouts of messages, parts and options in a protocol version."""
    found: dict[str, list[Entry]] = {}
    used = _parts_in(spec, version)
    for named in spec.named:
        is_message = isinstance(named, Message)
        if is_message and version < (named.needs or 0):  # type: ignore[union-attr]
            continue
        if not is_message and named.name not in used:
            continue
        key = named.tag.decode("latin-1") if isinstance(named, Message) else f"part {named.name}"
        found[key] = list(_entries(named, version, "", ""))
    server = max((row.server for row in spec.versions if row.version <= version), default=0)
    found[OPTIONS] = [
        Entry(text, row.line, text)
        for option in spec.options
        for text, row in [(option.name, option), *((f"{option.name} = {value.name}", value) for value in option.values)]
        if spec.came_with(option.server, option.since) <= server and spec.came_with(row.server, row.since) <= server
    ]
    return found


def _parts_in(spec: Spec, version: int) -> set[str]:
    """Return the names of the parts that some message has in a protocol version."""
    found = set[str]()
    todo: list[Structure] = [message for message in spec.messages if version >= (message.needs or 0)]
    while todo:
        names = set(_referred(todo.pop(), version)) - found
        found |= names
        todo += [spec.part(name) for name in names]
    return found


def _referred(structure: Structure, version: int) -> Iterator[str]:
    for element in structure.elements:
        if isinstance(element, Field):
            yield from (f.part for f in element.variants or (element,) if f.part and _can_be(f.term, version))
        elif isinstance(element, Repeat) and _can_be(element.term, version):
            yield from _referred(element.item, version)
        for branch in element.alternatives if isinstance(element, Choice) else ():
            if isinstance(branch.then, Structure) and _can_be(branch.term, version):
                yield from _referred(branch.then, version)
            elif branch.then is not None and not isinstance(branch.then, Structure) and _can_be(branch.term, version):
                yield branch.then


def _entries(structure: Structure, version: int, indent: str, path: str) -> Iterator[Entry]:
    for element in structure.elements:
        for entry in _element(structure, element, version, path + element.name):
            yield entry._replace(text=indent + entry.text)


def _element(structure: Structure, element: Element, version: int, path: str) -> Iterator[Entry]:
    if isinstance(element, Field):
        for each in element.variants or (element,):
            if _can_be(each.term, version):
                yield Entry(f"{each.notation}{_codes(each)}{_rule(each.term, version)}", each.line, path)
    elif not _can_be(element.term, version):
        return
    elif isinstance(element, Repeat):
        yield Entry(f"repeat {_times(structure, element)}{_rule(element.term, version)}", element.line, path)
        yield from _entries(element.item, version, "  ", f"{path}[].")
    elif isinstance(element, Choice):
        yield Entry("one of these, or none" if element.optional else "one of these", element.line, path)
        for branch in element.alternatives:
            if _can_be(branch.term, version):
                then = f" {branch.then}" if isinstance(branch.then, str) else ""
                text = f"  {branch.notation}{then}{_rule(branch.term, version)}"
                yield Entry(text, branch.line, f"{path}={branch.name}")
                if isinstance(branch.then, Structure):
                    yield from _entries(branch.then, version, "    ", f"{path}={branch.name}.")


def _times(structure: Structure, repeat: Repeat) -> str:
    """Return the number of items, without the name of a count: lists with one count refer to the first of them."""
    if repeat.count is None:
        return repeat.times
    if repeat.name not in structure.alike:
        return "counted"
    repeats = [each.name for each in structure.elements if isinstance(each, Repeat)]
    return f"counted, with repeat {repeats.index(structure.alike[repeat.name]) + 1}"


def _codes(field: Field) -> str:
    known: Mapping[Any, str] = field.values or field.bits or {}
    sign = " signed" if field.type is not None and field.type.signed and field.type.python == "int" else ""
    sign += " with a length" * field.is_area
    return sign + (f" {'bits' if field.bits else 'values'} {', '.join(map(str, known))}" if known else "")


def _can_be(term: Term | None, version: int) -> bool:
    return any(conditions.holds(term, {**given, VERSION: version}, found) for given, found in _cases(term))


def _cases(term: Term | None) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
    return conditions.cases([term], [1])


def _rule(term: Term | None, version: int) -> str:
    """Return a condition without its versions, which are known."""
    rest = _without_versions(term)
    return f" if {conditions.text(rest)}" if rest is not None else ""


def _without_versions(term: Term | None) -> Term | None:
    if isinstance(term, conditions.Every):
        return conditions.every(*map(_without_versions, term.terms))
    return None if isinstance(term, Since | Until) else term


if __name__ == "__main__":
    from tools.language.released_command import main

    sys.exit(main())
