"""The seeds' Mermaid graphs: blocks as subgraphs, fields as nodes joined by arrows, dashed comments."""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from tools.protocol_docs.document import Block, Document, Row, Structure

__all__ = ["graph", "graphs"]

_COMMENT = "classDef comment fill:#f0f0f0,stroke:#666,stroke-dasharray: 5 5;"


def graphs(document: Document) -> str:
    """Return the graph of every message and part, each in a fence under its name."""
    fences = (f"--- {s.name} ---\n```mermaid\n{graph(s)}\n```\n" for s in (*document.messages, *document.parts))
    return "\n".join(fences)


def graph(structure: Structure) -> str:
    """Return the graph of one structure."""
    lines = ["graph TD", f"  subgraph {_id(structure.name)} [{_text(structure.name)}]"]
    ids = [f"{block.kind}_{number}" for number, block in enumerate(structure.blocks)]
    for name, block in zip(ids, structure.blocks, strict=True):
        lines += _block(name, block)
    lines += [f"    {a} --> {b}" for a, b in pairwise(ids)]
    return "\n".join([*lines, "  end", "", *_comments(structure.rows())])


def _block(name: str, block: Block) -> Iterator[str]:
    yield f"    subgraph {name} [{_text(block.kind.capitalize())}]"
    yield from _chain(block.rows, "      ")
    for number, alternative in enumerate(block.alternatives or (), 1):
        yield f"      subgraph {name}_choice_{number} [{_text(f'Choice_{number}')}]"
        yield from _chain(alternative, "        ")
        yield "      end"
    yield "    end"


def _chain(rows: Iterable[Row], indent: str) -> Iterator[str]:
    before = None
    for row in rows:
        name = _id(row.label)
        yield f"{indent}{name}[{_text(row.label)}]"
        if before:
            yield f"{indent}{before} --> {name}"
        before = name


def _comments(rows: Iterable[Row]) -> Iterator[str]:
    described = [row for row in rows if row.description]
    for row in described:
        yield f"    {_id(row.label)} -.- desc_{_id(row.label)}[{_text(row.description)}]"
    if described:
        yield f"  {_COMMENT}"
        yield f"  class {','.join(f'desc_{_id(row.label)}' for row in described)} comment;"


def _id(label: str) -> str:
    return re.sub(r"\W", "_", label)


def _text(text: str) -> str:
    return '"' + text.replace('"', "#quot;") + '"'
