"""The layouts of released protocol versions: PostgreSQL's releases have frozen them, and a specification keeps them.

``spec/released.json`` has a line for each field, choice, branch, repeat and option, without the names of fields, which
may change. ``python -m tools.language.released`` prints it for the versions of the specification.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

from tools.language import conditions
from tools.language.conditions import VERSION, Since, Term, Until
from tools.language.elements import Choice, Element, Repeat, Structure
from tools.language.errors import SpecError
from tools.language.fields import Field
from tools.language.load import SPEC, load, read_text
from tools.language.model import Message, Spec

__all__ = ["check_released", "layouts"]

FILE: Final = "released.json"
OPTIONS: Final = "options"
"""The key of the options of the version's server; those of messages are their tags."""
Entry = tuple[str, int]
"""The wire format of something, and its line in the specification."""


def check_released(spec: Spec, folder: Path) -> None:
    """Raise SpecError if a specification changes a released version; without the file nothing is checked."""
    path = folder / FILE
    released = json.loads(read_text(path)) if path.is_file() else {}
    for version, known in ((int(version), known) for version, known in released.items()):
        found = layouts(spec, version)
        for key in [*known, *(key for key in found if len(key) == 1 and key not in known)]:
            if (line := _difference(found.get(key, []), known.get(key, []))) is not None:
                what = "an option" if key == OPTIONS else f"the message {key!r}" if len(key) == 1 else f"the {key}"
                raise SpecError(
                    f"{spec.file}:{line or _line_of(spec, key)}: this changes what {what} has in protocol version "
                    f"{version}, which was released (spec/{FILE}). Write since: {_next(spec)} at what is new, and "
                    f"until: {max(map(int, released))} at what ends."
                )


def _next(spec: Spec) -> int:
    return max([version.version for version in spec.versions], default=1)


def _difference(found: Sequence[Entry], known: Sequence[str]) -> int | None:
    """Return the line of the first entry that differs, 0 if one is missing at the end; None if they are equal."""
    for index, (text, line) in enumerate(found):
        if index >= len(known) or known[index] != text:
            return line
    return 0 if len(found) < len(known) else None


def _line_of(spec: Spec, key: str) -> int:
    tagged = (each.line for each in spec.messages if key == each.tag.decode("latin-1"))
    parts = (each.line for each in spec.parts if key == f"part {each.name}")
    return next(chain(tagged, parts), 1)


def layouts(spec: Spec, version: int) -> dict[str, list[Entry]]:
    """Return the layouts of messages, parts and options in a protocol version."""
    found: dict[str, list[Entry]] = {}
    for named in spec.named:
        is_message = isinstance(named, Message)
        if is_message and version < (named.needs or 0):  # type: ignore[union-attr]
            continue
        key = named.tag.decode("latin-1") if isinstance(named, Message) else f"part {named.name}"
        found[key] = list(_entries(named, version, ""))
    server = max((row.server for row in spec.versions if row.version <= version), default=0)
    found[OPTIONS] = [
        (text, row.line)
        for option in spec.options
        for text, row in [(option.name, option), *((f"{option.name} = {value.name}", value) for value in option.values)]
        if spec.came_with(option.server, option.since) <= server and spec.came_with(row.server, row.since) <= server
    ]
    return found


def _entries(structure: Structure, version: int, indent: str) -> Iterator[Entry]:
    for element in structure.elements:
        for text, line in _element(element, version, indent):
            yield indent + text, line


def _element(element: Element, version: int, indent: str) -> Iterator[Entry]:
    if isinstance(element, Field):
        for each in element.variants or (element,):
            if _can_be(each.term, version):
                yield f"{each.notation}{_codes(each)}{_rule(each.term, version)}", each.line
    elif not _can_be(element.term, version):
        return
    elif isinstance(element, Repeat):
        yield f"repeat {'counted' if element.count else element.times}{_rule(element.term, version)}", element.line
        yield from _entries(element.item, version, "  ")
    elif isinstance(element, Choice):
        yield "one of these, or none" if element.optional else "one of these", element.line
        for branch in element.alternatives:
            if _can_be(branch.term, version):
                then = f" {branch.then}" if isinstance(branch.then, str) else ""
                yield f"  Byte1('{branch.letter}'){then}{_rule(branch.term, version)}", branch.line
                if isinstance(branch.then, Structure):
                    yield from _entries(branch.then, version, "    ")


def _codes(field: Field) -> str:
    known: Mapping[Any, str] = field.values or field.bits or {}
    sign = " signed" if field.type is not None and field.type.signed and field.type.python == "int" else ""
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
    specification = load(SPEC / "pgoutput.yaml")
    data = {
        number: {key: [text for text, _ in rows] for key, rows in layouts(specification, number).items()}
        for number in (version.version for version in specification.versions)
    }
    print(json.dumps(data, indent=1))
