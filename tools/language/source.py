"""YAML as data that remembers its lines, so that every complaint can name one."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import yaml

from tools.language.errors import SpecError

__all__ = ["Place", "Source", "read"]

Place = tuple[str | int, ...]


class Source:
    """The plain data of one YAML file, and the line of every place in it."""

    def __init__(self, file: str, data: Any, lines: Mapping[Place, int]) -> None:
        self.file = file
        self.data = data
        self.lines = lines

    def line(self, place: Sequence[str | int]) -> int:
        """Return the line where a place starts, or that of the nearest place around it."""
        at = tuple(place)
        while at not in self.lines and at:
            at = at[:-1]
        return self.lines.get(at, 1)

    def error(self, place: Sequence[str | int] | int, problem: str, remedy: str) -> SpecError:
        """Return the error to raise for a place (or a line)."""
        line = place if isinstance(place, int) else self.line(place)
        return SpecError(f"{self.file}:{line}: {problem}. {remedy}")


class _PlainLoader(yaml.SafeLoader):
    """SafeLoader builds plain data only: a tag such as !!python/object is refused, never followed."""


def read(text: str, file: str) -> Source:
    """Read YAML text; raise SpecError for bad YAML, tags, aliases in a circle and duplicate keys."""
    lines: dict[Place, int] = {}
    try:
        loader = _PlainLoader(text)
        node = loader.get_single_node()
        data = _plain(loader, node, (), lines, file, ()) if node is not None else None
    except yaml.YAMLError as error:
        raise _yaml_error(error, file) from None
    return Source(file, data, lines)


def _yaml_error(error: yaml.YAMLError, file: str) -> SpecError:
    mark = getattr(error, "problem_mark", None)
    line = mark.line + 1 if mark else 1
    problem = getattr(error, "problem", None) or str(error)
    return SpecError(
        f"{file}:{line}: not plain YAML: {problem}. Write mappings, lists, strings and numbers only."
    )


def _plain(
    loader: _PlainLoader,
    node: yaml.Node,
    place: Place,
    lines: dict[Place, int],
    file: str,
    above: tuple[yaml.Node, ...],
) -> Any:
    lines[place] = node.start_mark.line + 1
    if node in above:
        raise SpecError(f"{file}:{lines[place]}: an alias contains itself. Write the block out.")
    inside = (*above, node)
    if isinstance(node, yaml.MappingNode):
        return _mapping(loader, node, place, lines, file, inside)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(loader, item, (*place, i), lines, file, inside) for i, item in enumerate(node.value)]
    return loader.construct_object(node)


def _mapping(
    loader: _PlainLoader,
    node: yaml.MappingNode,
    place: Place,
    lines: dict[Place, int],
    file: str,
    above: tuple[yaml.Node, ...],
) -> dict[Hashable, Any]:
    data: dict[Hashable, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node)
        line = key_node.start_mark.line + 1
        if not isinstance(key, str | int):
            raise SpecError(
                f"{file}:{line}: the key {key!r} is not a word. Write a word or a number, quoted if need be."
            )
        if key in data:
            raise SpecError(f"{file}:{line}: the key {key!r} is written twice. Keep one of them.")
        data[key] = _plain(loader, value_node, (*place, key), lines, file, above)
        lines[(*place, key)] = line
    return data
