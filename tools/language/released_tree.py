"""Compares the layouts of a released protocol version, as they were and as a specification has them now.

The lines of ``spec/released.json`` are a tree by their indentation. What differs is found element by element, with
whether old bytes are still read, and whether old readers read what is written.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from typing import Final

from tools.language.model import Spec
from tools.language.released import OPTIONS, Entry, layouts

__all__ = ["Finding", "compared"]

_TEXT: Final = re.compile(
    r"(?P<head>.+?)(?:, or (?P<optional>none))?(?: (?P<kind>bits|values) (?P<codes>.+?))?(?: if (?P<rule>.+))?"
)
_NEW: Final = "Write {since} at it."
_GONE: Final = "Write it again, with {until}."
_OTHER: Final = "Write both, one after the other: the old one with {until}, the new one with {since}."
_CHOICE: Final = "Leave the choice as it was; new branches may have {since}."


@dataclass(frozen=True)
class Finding:
    """A difference, and which side no longer understands the other one."""

    line: int
    problem: str
    remedy: str
    """With ``{since}`` and ``{until}`` for what to write."""
    reads: bool = True
    """Whether it breaks reading old bytes."""
    writes: bool = True
    """Whether it breaks writing for old readers."""


@dataclass
class _Node:
    """A line of a layout, and those that are indented below it."""

    text: str
    line: int = 0
    name: str = ""
    inside: "list[_Node]" = field(default_factory=list)

    @cached_property
    def parts(self) -> Mapping[str, str]:
        """What the line says: the notation, whether a choice may be absent, its values or bits, its condition."""
        match = _TEXT.fullmatch(self.text)
        return {name: text or "" for name, text in match.groupdict().items()} if match else {"head": self.text}

    @property
    def head(self) -> str:
        """The notation, without a part that follows a tag."""
        return self.parts["head"]

    @property
    def codes(self) -> list[str]:
        """Its values or bits."""
        return self.parts["codes"].split(", ") if self.parts["codes"] else []

    @property
    def is_choice(self) -> bool:
        """Whether the lines below are branches."""
        return self.head == "one of these"


def compared(spec: Spec, found: Mapping[str, Sequence[Entry]], known: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    """Yield the differences of a released version.

    Args:
        spec: The specification, for names.
        found: Its layouts in that version.
        known: The released ones.
    """
    tags = {message.tag.decode("latin-1"): message for message in spec.messages}
    parts = {f"part {part.name}": part for part in spec.parts}
    for key in [*known, *(key for key in found if key in tags and key not in known)]:
        if key == OPTIONS:
            yield from _options(found.get(key, ()), known[key])
        elif key not in found:
            owner = tags.get(key) or parts.get(key)
            what = owner.name if owner else key if key.startswith("part ") else f"the message {key!r}"
            remedy = "Write the since: that it had." if owner else "Write it again."
            yield Finding(owner.line if owner else 1, f"{what} is missing", remedy, writes=False)
        elif key not in known:
            yield Finding(tags[key].line, f"{tags[key].name} is new", _NEW, reads=False)
        else:
            owner = tags.get(key) or parts[key]
            before = _tree(Entry(text, 0, "") for text in known[key])
            yield from _Comparison(spec, key, owner.name, owner.line).of(before, _tree(found[key]))


def _tree(entries: Iterable[Entry]) -> list[_Node]:
    top: list[_Node] = []
    opened = [(-1, top)]
    for entry in entries:
        text = entry.text.lstrip(" ")
        depth = len(entry.text) - len(text)
        while opened[-1][0] >= depth:
            opened.pop()
        node = _Node(text, entry.line, entry.name)
        opened[-1][1].append(node)
        opened.append((depth, node.inside))
    return top


def _options(found: Sequence[Entry], known: Sequence[str]) -> Iterator[Finding]:
    """Yield differences of options, which clients write and servers read; the protocol version is always one."""
    lines = {entry.text: entry.line for entry in found}
    for text in known:
        if text not in lines:
            option, first = text.partition(" = ")[0], min((entry.line for entry in found), default=1)
            line = next((entry.line for entry in found if entry.text == option), first)
            yield Finding(line, f"the option {text} is missing", "Write it again.", writes=False)
    for text, line in lines.items():
        if text not in known:
            yield Finding(line, f"the option {text} is new", _NEW, reads=False)


class _Comparison:
    """Compares the elements of one message or part."""

    def __init__(self, spec: Spec, key: str, owner: str, line: int) -> None:
        self.spec = spec
        self.key = key
        self.owner = owner
        self.line = line

    def of(self, before: Sequence[_Node], after: Sequence[_Node]) -> Iterator[Finding]:
        """Yield the differences of elements that follow each other."""
        matcher = SequenceMatcher(None, [each.head for each in before], [each.head for each in after], autojunk=False)
        for _, low, high, first, last in matcher.get_opcodes():
            old, new = before[low:high], after[first:last]
            if len(old) == len(new):
                for was, now in zip(old, new, strict=True):
                    yield from self._pair(was, now)
            else:
                at = after[min(first, len(after) - 1)].line if after else self.line
                yield from (self._missing(each, after, at) for each in old)
                yield from (Finding(each.line, f"{self._named(each)} is new", _NEW) for each in new)

    def _named(self, node: _Node) -> str:
        return f"{self.owner}.{node.name} ({node.head})"

    def _missing(self, node: _Node, after: Sequence[_Node], line: int, *, is_branch: bool = False) -> Finding:
        """Return what is missing, with its name and line if another version still has it."""
        known = {each.name for each in after}
        others = (e for v in self.spec.versions for e in layouts(self.spec, v.version).get(self.key, ()))
        entry = next((e for e in others if _Node(e.text.strip()).head == node.head and e.name not in known), None)
        what = f"{self.owner}.{entry.name} ({node.head})" if entry else f"{node.head} of {self.owner}"
        return Finding(entry.line if entry else line, f"{what} is missing", _GONE, writes=not is_branch)

    def _pair(self, was: _Node, now: _Node) -> Iterator[Finding]:
        """Yield the differences of an element that both have."""
        if was.head != now.head:
            yield Finding(now.line, f"{self._named(now)} was {was.head}", _OTHER)
            return
        name = self._named(now)
        if was.parts["rule"] != now.parts["rule"]:
            rules = [
                f"present if {rule}" if rule else "always present" for rule in (was.parts["rule"], now.parts["rule"])
            ]
            yield Finding(now.line, f"{name} is {rules[1]}, not {rules[0]},", _OTHER)
        if was.parts["optional"] != now.parts["optional"]:
            becomes = "may be absent" if now.parts["optional"] else "may no longer be absent"
            optional = bool(now.parts["optional"])
            yield Finding(now.line, f"{name} {becomes}", _CHOICE, reads=not optional, writes=optional)
        yield from self._codes(was, now, name)
        yield from (self._branches if was.is_choice else self.of)(was.inside, now.inside)

    def _codes(self, was: _Node, now: _Node, name: str) -> Iterator[Finding]:
        """Yield the values or bits that only one of them has; without any, a field may have all."""
        if was.parts["kind"] != now.parts["kind"]:
            if not now.parts["kind"]:
                yield Finding(now.line, f"{name} may have any value", _OTHER, reads=False)
            elif not was.parts["kind"]:
                yield Finding(now.line, f"{name} may no longer have any value", _OTHER, writes=False)
            else:
                yield Finding(now.line, f"{name} has {now.parts['kind']}, not {was.parts['kind']}", _OTHER)
            return
        kind = now.parts["kind"].removesuffix("s")
        for code in now.codes:
            if code not in was.codes:
                remedy = f"Write {code}: {{meaning: …, {{since}}}}."
                yield Finding(now.line, f"{name} has the {kind} {code} in addition", remedy, reads=False)
        for code in was.codes:
            if code not in now.codes:
                remedy = f"Write {code}: {{meaning: …, {{until}}}}."
                yield Finding(now.line, f"{name} lacks the {kind} {code}", remedy, writes=False)

    def _branches(self, before: Sequence[_Node], after: Sequence[_Node]) -> Iterator[Finding]:
        """Yield the differences of the branches of a choice, whose order has no meaning."""
        known, found = ({each.text.partition(")")[0]: each for each in nodes} for nodes in (before, after))
        for tag, was in known.items():
            if tag in found:
                yield from self._pair(was, found[tag])
            else:
                yield self._missing(was, after, after[0].line if after else self.line, is_branch=True)
        for tag, now in found.items():
            if tag not in known:
                yield Finding(now.line, f"{self._named(now)} is new", _NEW, reads=False)
