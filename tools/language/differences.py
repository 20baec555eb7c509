"""What two protocol versions, or two releases of PostgreSQL, do not have in common.

``items`` lists everything in a specification that can come or end; ``differences`` compares two selections of it. The
page of what changed and ``python -m tools.language.released --diff`` print the same differences.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from tools.language import conditions
from tools.language.conditions import Since, Term, every, some
from tools.language.elements import Choice, Element, Repeat, Structure
from tools.language.fields import Field
from tools.language.model import Message, Option, Part, Spec

__all__ = [
    "CHANGED",
    "ENDED",
    "NEW",
    "Difference",
    "Item",
    "Selection",
    "differences",
    "in_release",
    "in_version",
    "items",
]

NEW: Final = "new"
ENDED: Final = "ended"
CHANGED: Final = "changed"
"""Both have it, under different conditions."""


@dataclass(frozen=True)
class Item:
    """Something that a protocol version or a release can bring: a message, a field, a value, an option, ..."""

    kind: str
    """What it is, in words."""
    owner: str
    """The message, part or option that it is, or is in."""
    path: str = ""
    """Its path in the owner; empty for the owner itself."""
    text: str = ""
    """Its notation, its number of items, or its value with the meaning."""
    description: str = ""
    line: int = 0
    term: Term | None = None
    """Its own condition, to which that of ``parent`` adds."""
    server: int = 0
    """The PostgreSQL version that introduced it; 0: any."""
    parent: "Item | None" = None
    part: str | None = None
    """The part that it refers to."""
    is_option: bool = False
    """Whether it is an option, or a value of one."""

    @property
    def name(self) -> str:
        """Its path with the owner."""
        return f"{self.owner}.{self.path}" if self.path else self.owner

    @property
    def when(self) -> Term | None:
        """Its own condition without the protocol versions."""
        return conditions.range_of(self.term)[2]


@dataclass(frozen=True)
class Difference:
    """An item that one of two selections lacks, or has under another condition."""

    mark: str
    """NEW, ENDED or CHANGED."""
    item: Item


Selection = Callable[[Item], Any]
"""Returns what of an item is selected, regardless of its parent: a false value for nothing."""


def in_version(version: int) -> Selection:
    """Return the selection of a protocol version: of each item the parameters and bits under which it is present."""

    def cases(item: Item) -> frozenset[tuple[tuple[str, int], ...]]:
        found = conditions.cases([item.term], [version])
        return frozenset(
            tuple(sorted((name, value) for name, value in {**given, **bits}.items() if name != conditions.VERSION))
            for given, bits in found
            if conditions.holds(item.term, given, bits)
        )

    return cases


def in_release(server: int) -> Selection:
    """Return the selection of a PostgreSQL version: what it supports in any protocol version."""
    return lambda item: item.server <= server


def differences(spec: Spec, before: Selection, after: Selection) -> Iterator[Difference]:
    """Yield what differs between two selections of a specification, in its order.

    What is inside of something that is new or has ended is not listed separately.

    Args:
        spec: The specification.
        before: The first selection, such as ``in_version(3)``.
        after: The second selection.
    """
    for item in items(spec):
        was, now = before(item), after(item)
        if was != now and all(selected(each) for selected in (before, after) for each in _enclosing(item)):
            yield Difference(CHANGED if was and now else NEW if now else ENDED, item)


def _enclosing(item: Item) -> Iterator[Item]:
    while item.parent is not None:
        item = item.parent
        yield item


def items(spec: Spec) -> list[Item]:
    """Return everything in a specification that can come or end, each once; options only where they are defined."""
    found = [item for message in spec.messages for item in _message(spec, message)]
    for part in reversed(spec.parts_in_order):
        found += _part(spec, part, [item for item in found if item.part == part.name])
    order = {named.name: index for index, named in enumerate(spec.named)}
    found.sort(key=lambda item: order[item.owner])
    return [*_distinct(found), *(() if spec.carries else (row for each in spec.options for row in _option(spec, each)))]


def _distinct(found: list[Item]) -> Iterator[Item]:
    """Yield each item once: variants of a field may have a notation, or values, in common."""
    groups: dict[_Key, list[Item]] = {}
    for item in found:
        groups.setdefault(_key(item), []).append(item)
    known: dict[_Key, Item] = {}
    for key, (first, *others) in groups.items():  # what encloses an item is before it
        known[key] = replace(
            first,
            term=some([first.term, *(each.term for each in others)]),
            server=min(each.server for each in (first, *others)),
            parent=known[_key(first.parent)] if first.parent else None,
        )
        yield known[key]


_Key = tuple[str, str, str]


def _key(item: Item) -> _Key:
    return item.kind, item.name, item.text


def _message(spec: Spec, message: Message) -> Iterator[Item]:
    server, since = spec.came_with(message.server, message.since), Since(message.since) if message.since else None
    top = Item("message", message.name, "", "", message.description, message.line, since, server)
    yield top
    yield from _inside(spec, message, top)


def _part(spec: Spec, part: Part, users: list[Item]) -> Iterator[Item]:
    """Yield a part, which comes with the first that refers to it, and what is in it."""
    term = some(every(*(each.term for each in (user, *_enclosing(user)))) for user in users)
    server = max(part.server or 0, min((user.server for user in users), default=0))
    top = Item("part", part.name, "", "", part.description, part.line, term, server)
    yield top
    yield from _inside(spec, part, top)


def _option(spec: Spec, option: Option) -> Iterator[Item]:
    top = _of_option(spec, option, "option", option.name, None)
    yield top
    for value in option.values:
        yield _of_option(spec, value, "value", f"{option.name} = {value.name}", top)


def _of_option(spec: Spec, option: Option, kind: str, name: str, parent: Item | None) -> Item:
    server, since = spec.came_with(option.server, option.since), Since(option.since) if option.since else None
    text, line = option.type or "", option.line
    return Item(kind, name, "", text, option.description, line, since, server, parent, is_option=True)


def _inside(spec: Spec, structure: Structure, parent: Item, prefix: str = "") -> Iterator[Item]:
    for element in structure.elements:
        yield from _element(spec, element, parent, prefix + element.name)


def _element(spec: Spec, element: Element, parent: Item, path: str) -> Iterator[Item]:
    match element:
        case Field():
            for row in element.rows:
                yield from _field(spec, row, parent, path)
        case Repeat():
            times = f"{element.kind}, {element.times}"
            top = _inner("repeat", element, parent, path, times, spec.came_with(element.server, element.since))
            yield top
            yield from _inside(spec, element.item, top, f"{path}[].")
        case Choice():
            top = _inner("choice", element, parent, path, "one of these" + ", or none" * element.optional)
            yield top
            for branch in element.alternatives:
                server = spec.came_with(branch.server, branch.since)
                then = branch.then if isinstance(branch.then, str) else None
                text = branch.notation + (f", {then}" if then else "")
                item = _inner("branch", branch, top, f"{path}={branch.name}", text, server, then)
                yield item
                if isinstance(branch.then, Structure):
                    yield from _inside(spec, branch.then, item, f"{path}={branch.name}.")


def _field(spec: Spec, field: Field, parent: Item, path: str) -> Iterator[Item]:
    sign = ", signed" if field.signed and "(" not in field.notation else ""
    sign += ", with a length" * field.is_area
    server = spec.came_with(field.server, field.since)
    top = _inner("field", field, parent, path, f"{field.notation}{sign}", server, field.part)
    yield top
    for kind, meanings in (("value", field.values), ("bit", field.bits)):
        for value, meaning in (meanings or {}).items():
            # Variants of a field may have the same notation, and are then one item: values keep their variant's term.
            limit = every(field.term, field.limits.get(value))
            since = conditions.range_of(limit)[0] or None
            server = max(top.server, spec.came_with(None, since))
            yield Item(kind, parent.owner, path, f"{value}: {meaning}", "", field.line, limit, server, top)


def _inner(
    kind: str, element: Any, parent: Item, path: str, text: str, server: int = 0, part: str | None = None
) -> Item:
    """Return an item of a message or part, which comes no earlier than what it is in."""
    came = max(parent.server, server)
    return Item(kind, parent.owner, path, text, element.description, element.line, element.term, came, parent, part)
