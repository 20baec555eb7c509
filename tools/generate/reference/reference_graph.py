"""The Mermaid graph of a structure: what its table cannot show, the paths through choices, repeats and conditions."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import NamedTuple

from tools.generate.reference.reference_text import condition, mermaid
from tools.language import Alternative, Choice, Field, Repeat
from tools.language.elements import Element, Structure

__all__ = ["graph"]


def graph(structure: Structure) -> str:
    """Return the graph of a message or part, without the fence; empty if the table shows everything."""
    if all(isinstance(element, Field) for element in structure.elements):
        return ""
    drawing = _Drawing()
    drawing.elements(structure.elements)
    return "\n".join(["graph LR", *(f"  {line}" for line in (*drawing.nodes, *drawing.arrows))])


class _End(NamedTuple):
    """A node from which the next arrow starts, and the arrow's label."""

    node: str
    says: str = ""


class _Drawing:
    """Draws elements in wire order; arrows are collected, because they must be outside of the blocks."""

    def __init__(self) -> None:
        self.nodes: list[str] = []
        self.arrows: list[str] = []
        self.ends: list[_End] = []
        self.depth = 0

    def elements(self, elements: Sequence[Element]) -> None:
        """Draw consecutive elements; plain fields with the same condition share a node."""
        opened = (each for e in elements for each in (e.rows if isinstance(e, Field) else (e,)))
        for _, some in groupby(opened, lambda e: (e.condition, isinstance(e, Field) or id(e))):
            group = list(some)
            first = group[0]
            if isinstance(first, Repeat):
                before, rule = self.ends, condition(first)
                with self._block(f"{first.name}: {first.times}{f', only if {rule}' if rule else ''}"):
                    self.elements(first.item.elements)
                if rule:
                    self.ends = [*self.ends, *(end._replace(says="otherwise") for end in before)]
            elif isinstance(first, Choice):
                self._choice(first)
            else:
                self._fields([field for field in group if isinstance(field, Field)])

    def _fields(self, fields: Sequence[Field]) -> None:
        before = self.ends
        rule = condition(fields[0])
        self._node([", ".join(field.name for field in fields), *([f"only if {rule}"] if rule else [])])
        if rule:
            self.ends = [*self.ends, *(end._replace(says="otherwise") for end in before)]

    def _choice(self, choice: Choice) -> None:
        before, after = self.ends, list[_End]()
        with self._block(f"{choice.name}: one {'or none ' * choice.optional}of these"):
            for alternative in choice.alternatives:
                self.ends = before
                self._alternative(alternative)
                after += self.ends
        self.ends = after + [end._replace(says="none of them") for end in before if choice.optional]

    def _alternative(self, alternative: Alternative) -> None:
        self._node([alternative.notation, alternative.name])
        if isinstance(alternative.then, str):
            self._node([alternative.then])
        elif alternative.then is not None:
            self.elements(alternative.then.elements)

    def _node(self, lines: Sequence[str]) -> None:
        node = f"n{len(self.nodes)}"
        self._line(f'{node}["{"<br/>".join(map(mermaid, lines))}"]')
        for end in self.ends:
            arrow = f'-- "{end.says}" -->' if end.says else "-->"
            self.arrows.append(f"{end.node} {arrow} {node}")
        self.ends = [_End(node)]

    @contextmanager
    def _block(self, title: str) -> Iterator[None]:
        self._line(f'subgraph b{len(self.nodes)} ["{mermaid(title)}"]')
        self.depth += 1
        yield
        self.depth -= 1
        self._line("end")

    def _line(self, text: str) -> None:
        self.nodes.append("  " * self.depth + text)
