"""The Mermaid graph of a structure: blocks as subgraphs, fields as nodes joined by arrows, descriptions beside them."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tools.generate.reference_text import condition, mermaid, notation
from tools.language import Alternative, Block, Choice, Field, Fields, Repeat
from tools.language.model import Structure

__all__ = ["graph"]

SPACES = {"subGraphTitleMargin": {"top": 0, "bottom": 20}, "wrappingWidth": 190, "nodeSpacing": 30, "rankSpacing": 40}
"""Mermaid's own would draw arrows over the titles of blocks, and wide graphs wider."""

COMMENT = "  classDef comment fill:#f0f0f0,stroke:#666,color:#333,stroke-dasharray: 5 5;"


def graph(name: str, structure: Structure) -> str:
    """Return the graph of a message or part, without the fence around it."""
    drawing = _Drawing()
    lines = [
        f"%%{{init: {json.dumps({'flowchart': SPACES})}}}%%",
        "graph TD",
        f'  subgraph {_identifier("whole", name)} ["{mermaid(name)}"]',
        *(f"    {line}" for line in drawing.blocks(structure.blocks, "")),
        "  end",
        *(f"  {line}" for line in (*drawing.arrows, *drawing.comments)),
    ]
    if drawing.commented:
        lines += [COMMENT, f"  class {','.join(drawing.commented)} comment;"]
    return "\n".join(lines)


class _End(NamedTuple):
    """A node from which the next arrow starts, its block, and what the arrow says."""

    node: str
    block: str
    says: str = ""


class _Drawing:
    """Draws blocks; arrows from block to block and comments are collected, since they stand outside of the blocks."""

    def __init__(self) -> None:
        self.arrows: list[str] = []
        self.comments: list[str] = []
        self.commented: list[str] = []
        self.block = ""
        self.ends: list[_End] = []

    def blocks(self, blocks: Sequence[Block], prefix: str) -> Iterator[str]:
        """Yield the subgraphs of blocks that follow each other."""
        for number, block in enumerate(blocks, 1):
            self.block = _identifier(block.kind, f"{prefix}{number}")
            yield f'subgraph {self.block} ["{_title(block)}"]'
            yield from (f"  {line}" for line in self._inside(block, f"{prefix}{number}_"))
            yield "end"

    def _inside(self, block: Block, prefix: str) -> Iterator[str]:
        if isinstance(block, Fields):
            yield from self._fields(block.fields, prefix)
        elif isinstance(block, Repeat):
            yield from self._item(block.item, prefix)
        else:
            yield from self._choice(block, prefix)

    def _item(self, item: Structure, prefix: str) -> Iterator[str]:
        only = item.blocks[0]
        if len(item.blocks) == 1 and isinstance(only, Fields):
            yield from self._fields(only.fields, prefix)
        else:
            yield from self.blocks(item.blocks, prefix)

    def _choice(self, choice: Choice, prefix: str) -> Iterator[str]:
        before, after = self.ends, list[_End]()
        for number, alternative in enumerate(choice.alternatives, 1):
            self.ends = before
            yield from self._alternative(alternative, f"{prefix}{number}")
            after += self.ends
        absent = [end._replace(says="none of them") for end in before] if choice.optional else []
        self.ends = after + absent

    def _alternative(self, alternative: Alternative, position: str) -> Iterator[str]:
        tag = f"Byte1('{alternative.tag.decode('ascii')}')"
        yield from self._node(position, tag, [tag, alternative.name], alternative.description)
        if isinstance(alternative.then, str):
            yield from self._node(f"{position}_1", alternative.then, [alternative.then], "")
        elif alternative.then is not None:
            fields = [element for element in alternative.then.elements if isinstance(element, Field)]
            yield from self._fields(fields, f"{position}_")

    def _fields(self, fields: Sequence[Field], prefix: str) -> Iterator[str]:
        for number, field in enumerate(fields, 1):
            lines = [notation(field), field.name, *_remarks(field)]
            yield from self._node(f"{prefix}{number}", field.notation, lines, field.description)

    def _node(self, position: str, notation: str, lines: Sequence[str], description: str) -> Iterator[str]:
        """Yield a node and the arrows to it from the same block."""
        node = _identifier(position, notation)
        text = "<br/>".join(map(mermaid, [f"{position}_{lines[0]}", *lines[1:]]))
        yield f'{node}["{text}"]'
        for end in self.ends:
            arrow = f"{end.node} {_arrow(end.says)} {node}"
            if end.block == self.block:
                yield arrow
            else:
                self.arrows.append(arrow)
        self.ends = [_End(node, self.block)]
        if description:
            self.comments.append(f'{node} -.- desc_{node}["{mermaid(description)}"]')
            self.commented.append(f"desc_{node}")


def _arrow(says: str) -> str:
    return f'-- "{mermaid(says)}" -->' if says else "-->"


def _title(block: Block) -> str:
    if isinstance(block, Fields):
        return mermaid(block.kind.capitalize())
    if isinstance(block, Repeat):
        return mermaid(f"{block.kind.capitalize()}: {block.name}, {block.count} times")
    many = "one or none" if block.optional else "one"
    return mermaid(f"{block.kind.capitalize()}: {block.name}, {many} of these")


def _remarks(field: Field) -> Iterator[str]:
    if field.conditional:
        yield f"only if {condition(field)}"
    if field.length:
        yield f"{field.length} bytes"


def _identifier(*parts: str) -> str:
    return re.sub(r"\W", "_", "_".join(parts), flags=re.ASCII)
