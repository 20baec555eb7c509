"""The public names of pgoutput's messages, which programs and the package itself use: a specification keeps them.

A field may be renamed if ``formerly`` has its old name; other names must not change.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from tools.language.elements import Choice, Element, Repeat, Structure
from tools.language.fields import Field
from tools.language.model import Message, Part, Spec

__all__ = ["PUBLIC_MESSAGE_RULES", "PUBLIC_NAME_RULES", "member_name"]

Raise = Callable[[int, str, str], Exception]

_PROTOCOL: Final = "pgoutput"

_NAMES: Final[Mapping[str, str]] = {
    "Begin": "",
    "Message": "flags",
    "Commit": "",
    "Origin": "",
    "Relation": "relation_oid namespace name replica_identity columns",
    "Relation.columns": "flags name type_oid type_modifier",
    "Type": "type_oid namespace name",
    "Insert": "relation_oid new",
    "Update": "relation_oid old new",
    "Delete": "relation_oid old",
    "Truncate": "options relation_oids",
    "Stream Start": "",
    "Stream Stop": "",
    "Stream Commit": "",
    "Stream Abort": "",
    "Begin Prepare": "",
    "Prepare": "",
    "Stream Prepare": "",
    "Commit Prepared": "",
    "Rollback Prepared": "",
    "TupleData": "columns",
}
"""The fields, choices and repeats of each message and part, and of the items of a repeat, that the package uses by
name; the fields of begins and ends of transactions are found by their roles instead."""

_TAGS: Final = dict(
    zip([name for name in _NAMES if "." not in name and name != "TupleData"], "BMCORYIUDTSEcAbPpKr", strict=True)
)
"""The tags of the messages, which are of the released versions and do not change."""

_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "Message.flags": ("transactional",),
    "Relation.replica_identity": ("default", "nothing", "full", "index"),
    "Relation.columns.flags": ("key",),
    "Update.old": ("key", "row"),
    "Delete.old": ("key", "row"),
    "Truncate.options": ("cascade", "restart identity"),
}
"""The meanings of values and bits, and the names of branches: the members of public enums."""


def _is_public(spec: Spec) -> bool:
    """Return whether it is PostgreSQL's: somebody's own protocol may have that name, too."""
    return spec.protocol == _PROTOCOL and spec.is_postgresql


def _public_messages(spec: Spec, error: Raise) -> None:
    """Renaming a message or a part breaks programs, and the package, with an AttributeError."""
    known = {named.name for named in spec.named}
    for name in _NAMES if _is_public(spec) else ():
        if "." not in name and name not in known:
            now = _renamed(spec, name)
            problem = f"there is no {name} any more, which programs use{f': write {now.name} instead' if now else ''}"
            raise error(now.line if now else 1, problem, f"Call it {name}, as before.")


def _public_names(spec: Spec, error: Raise) -> None:
    """So does renaming what is in them."""
    if not _is_public(spec):
        return
    known: dict[str, Message | Part] = {named.name: named for named in spec.named}
    for owner, names in _NAMES.items():
        top, _, inner = owner.partition(".")
        structure, line = _inside(known[top], inner), known[top].line
        for name in names.split():
            element = _found(structure, name)
            if element is None:
                problem = f"{owner} has no {name} any more, which programs use"
                keeping = f"Call it {name}, or write formerly: {name} at the field that it is now; until: ends it."
                raise error(line, problem, keeping)
            _check_words(f"{owner}.{name}", element, error)


def _renamed(spec: Spec, name: str) -> Message | Part | None:
    """Return what has another name now: the message with the tag, or the only part that nobody knows."""
    if name in _TAGS:
        return next((message for message in spec.messages if message.tag.decode("latin-1") == _TAGS[name]), None)
    unknown = [part for part in spec.parts if part.name not in _NAMES]
    return unknown[0] if len(unknown) == 1 else None


def _inside(structure: Structure, name: str) -> Structure:
    element = _found(structure, name) if name else None
    return element.item if isinstance(element, Repeat) else structure


def _found(structure: Structure, name: str) -> Element | None:
    """Return the current and former names of something."""
    return next((each for each in structure.exposed if name in _names_of(each)), None)


def _names_of(element: Element) -> tuple[str, ...]:
    return (element.name, *element.formerly) if isinstance(element, Field) else (element.name,)


def _check_words(path: str, element: Element, error: Raise) -> None:
    found = {member_name(word) for word in _words(element)}
    for word in _WORDS.get(path, ()):
        if member_name(word) not in found:
            problem = f"nothing of {path} is called {word!r} any more, which programs use"
            raise error(element.line, problem, f"Call it {word!r}, as before.")


def _words(element: Element) -> Iterator[str]:
    if isinstance(element, Choice):
        yield from (branch.name for branch in element.alternatives)
    elif isinstance(element, Field):
        yield from (element.values or element.bits or {}).values()


def member_name(word: str) -> str:
    """Return a word as the name of an enum member."""
    return re.sub(r"\W+", "_", word, flags=re.ASCII).strip("_").upper()


PUBLIC_MESSAGE_RULES = (_public_messages,)
PUBLIC_NAME_RULES = (_public_names,)
