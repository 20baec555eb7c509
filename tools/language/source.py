"""YAML as data that remembers its lines, for error messages."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from tools.language.errors import SpecError

__all__ = ["Place", "Source", "read"]

Place = tuple[str | int, ...]

PLAIN_REMEDY = "Write mappings, lists, strings and numbers only."
PLAIN = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
"""The default tags of mappings and lists; SafeLoader resolves those of scalars."""

_QUICKEST: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""LibYAML takes an eighth of the time, where PyYAML was built with it."""


class Source:
    """The data of one YAML file, and the line of every node."""

    def __init__(self, file: str, data: Any, lines: Mapping[Place, int]) -> None:
        self.file = file
        self.data = data
        self.lines = lines

    def line(self, place: Sequence[str | int]) -> int:
        """Return the line where a node starts, or that of the nearest enclosing node."""
        at = tuple(place)
        while at not in self.lines and at:
            at = at[:-1]
        return self.lines.get(at, 1)

    def error(self, place: Sequence[str | int] | int, problem: str, remedy: str) -> SpecError:
        """Return the error to raise for a place (or a line)."""
        line = place if isinstance(place, int) else self.line(place)
        return SpecError(f"{self.file}:{line}: {problem}{'' if problem.endswith('?') else '.'} {remedy}")


def read(text: str, file: str) -> Source:
    """Read YAML text; raise SpecError for bad YAML, tags, aliases in a circle, duplicate keys and cut-off text."""
    try:
        return _read(text, file, _QUICKEST)
    except yaml.YAMLError:  # PyYAML's own parser says more of it
        try:
            return _read(text, file, yaml.SafeLoader)
        except yaml.YAMLError as error:
            raise _yaml_error(error, text, file) from None


def _read(text: str, file: str, loader: type[yaml.SafeLoader]) -> Source:
    reader = _Reader(text, file)
    try:
        reader.loader = loader(text)
        node = reader.loader.get_single_node()
        data = None if node is None else reader.plain(node, ())
    except SpecError:
        raise
    except (ValueError, KeyError, RecursionError) as error:  # 2024-99-99, !!bool maybe, a thousand brackets
        raise SpecError(f"{file}:{reader.line}: not plain YAML: {error!r:.200}. {PLAIN_REMEDY}") from None
    return Source(file, data, reader.lines)


_COMMENT = re.compile(r"[ \t]+(#\S[^\n]{0,40})")
"""A comment that people may have written as text: without a space after its #."""


def _comment_error(text: str, file: str, end: yaml.Mark) -> SpecError | None:
    """Return an error if a comment follows text without quotes, or a colon: it may have been meant as part of it."""
    if not (comment := _COMMENT.match(text, end.index)):
        return None
    problem = f"YAML reads no further than {comment[1]}, which begins a comment"
    remedy = 'Quote text that has a # in it: "a #1"; write a space after the # of a comment.'
    return SpecError(f"{file}:{end.line + 1}: {problem}. {remedy}")


_REMEDIES = {
    "'\\t'": "Write spaces instead of tabs.",
    "mapping values are not allowed": 'Quote text that has a colon in it: "a: b".',
    "but got ':'": 'Quote text that has a colon in it: "a: b".',
    "but got": "Quote text that has one of [ ] { } , : in it, and close what is open.",
    "<block end>": "Begin the entries of a list, and the keys of a mapping, below each other; close quotes.",
    "found undefined alias": 'Quote text that begins with * or &: "*".',
    "unknown escape": "Write the backslash twice, or single quotes.",
    "cannot start any token": 'Quote text that begins with one of @ ` % : "@x".',
    "while scanning a quoted": "Close the quotes on the same line.",
    "unexpected end of stream": "Close the quotes.",
    "special characters": "Write text without control characters.",
}
"""Remedies for errors of the YAML parser, by words in its text."""


def _yaml_error(error: yaml.YAMLError, text: str, file: str) -> SpecError:
    mark = getattr(error, "problem_mark", None)
    line = mark.line if mark else text.count("\n", 0, getattr(error, "position", 0))
    problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
    for token in _tokens(text):
        is_plain = isinstance(token, yaml.ScalarToken) and token.plain
        is_near = isinstance(token, yaml.ValueToken) and line - 1 <= token.end_mark.line <= line
        if (is_plain or is_near) and (found := _comment_error(text, file, token.end_mark)):
            return found
    remedy = next((remedy for words, remedy in _REMEDIES.items() if words in problem), PLAIN_REMEDY)
    return SpecError(f"{file}:{line + 1}: not plain YAML: {problem}. {remedy}")


def _tokens(text: str) -> Iterator[yaml.Token]:
    """Yield the tokens before the first error."""
    try:
        yield from yaml.scan(text, _QUICKEST)
    except yaml.YAMLError:
        return


class _Reader:
    """Converts YAML nodes into data; SafeLoader refuses tags such as !!python/object."""

    loader: yaml.SafeLoader

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.lines: dict[Place, int] = {}
        self.line = 1
        self._seen: set[int] = set()

    def plain(self, node: yaml.Node, place: Place) -> Any:
        self.line = self.lines[place] = node.start_mark.line + 1
        if id(node) in self._seen and not isinstance(node, yaml.ScalarNode):  # aliases of aliases have no bound
            raise self._error(node, "not plain YAML: an alias of a block", "Write the block out.")
        self._seen.add(id(node))
        if not isinstance(node, yaml.ScalarNode) and node.tag not in PLAIN:
            raise self._error(node, f"not plain YAML: the tag {node.tag}", "Remove the tag.")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.plain(item, (*place, i)) for i, item in enumerate(node.value)]
        return self._scalar(node)

    def _scalar(self, node: yaml.Node) -> Any:
        """Return a word or a number; refuse numbers and comments that YAML reads differently than people do."""
        is_plain = isinstance(node, yaml.ScalarNode) and node.value and not node.style
        if is_plain and (error := _comment_error(self.text, self.file, node.end_mark)):
            raise error
        value = self.loader.construct_object(node)
        if isinstance(value, float):
            raise self._error(node, f"{node.value} is not a whole number", "Write a whole number, or quote text.")
        if isinstance(value, int) and not isinstance(value, bool) and node.value.lstrip("-") != str(abs(value)):
            remedy = f'Write {value}, or quote text: "{node.value}".'
            raise self._error(node, f"YAML reads {node.value} as the number {value}", remedy)
        return value

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[Any, Any]:
        data: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = self._scalar(key_node)
            if isinstance(key, bool):
                problem = f"YAML reads the key {key_node.value} as {str(key).lower()}"
                raise self._error(key_node, problem, f'Quote it: "{key_node.value}".')
            if not isinstance(key, str | int):
                raise self._error(key_node, f"the key {key!r} is not a word", "Write a word, quoted if need be.")
            if key in data:
                raise self._error(key_node, f"the key {key!r} is written twice", "Keep one of them.")
            data[key] = self.plain(value_node, (*place, key))
            self.lines[*place, key] = key_node.start_mark.line + 1
        return data

    def _error(self, node: yaml.Node, problem: str, remedy: str) -> SpecError:
        return SpecError(f"{self.file}:{node.start_mark.line + 1}: {problem}. {remedy}")
