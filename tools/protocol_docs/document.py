"""The content of a document, independent of its format."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["Block", "Document", "DocumentError", "Entry", "Node", "Prose", "Row", "Structure", "is_notation", "split"]

_NOTATION = re.compile(r"(?:Byte1\('.'\)|Byte\d*n?|String|Int\d+(?:\(\d+\)|\[[A-Z]\])?)(?: \([A-Za-z]\w*\))?")
_ANNOTATED = re.compile(r"(?P<base>.+?) \((?P<annotation>[A-Za-z]\w*)\)")


class DocumentError(ValueError):
    """A document that cannot be used; the text says what to do."""


@dataclass(frozen=True)
class Prose:
    """A paragraph, with white space normalised."""

    text: str


@dataclass(frozen=True)
class Entry:
    """A term of a list, and its content."""

    term: str
    body: tuple["Node", ...] = ()


Node = Prose | Entry


@dataclass
class Row:
    """A field as a document lists it; ``gaps`` are the lines that are missing in its description."""

    notation: str
    description: str = ""
    gaps: tuple[int, ...] = ()
    cut: bool = False
    position: tuple[int, int] | None = None

    @property
    def whole(self) -> bool:
        """Whether the description is complete."""
        return not self.gaps and not self.cut

    @property
    def label(self) -> str:
        """The notation with its position as prefix, as the seeds write it."""
        return f"{self.position[0]}_{self.position[1]}_{self.notation}" if self.position else self.notation


@dataclass
class Block:
    """A run of rows, or tagged alternatives, each a list of rows that starts with its tag.

    A repeat that is ``ended`` has no count: a zero byte follows the last item.
    """

    kind: str
    rows: list[Row] = field(default_factory=list)
    alternatives: list[list[Row]] | None = None
    intro: str = ""
    ended: bool = False

    def all_rows(self) -> Iterator[Row]:
        """Yield the rows in the order of the document."""
        yield from self.rows
        for alternative in self.alternatives or ():
            yield from alternative


@dataclass
class Structure:
    """A message or a part; ``open_start`` and ``open_end`` mean that the document is cut within it."""

    name: str
    blocks: list[Block] = field(default_factory=list)
    sender: str | None = None
    since: int | None = None
    notes: list[str] = field(default_factory=list)
    open_start: bool = False
    open_end: bool = False

    def rows(self) -> Iterator[Row]:
        """Yield every row in the order of the document."""
        for block in self.blocks:
            yield from block.all_rows()

    @property
    def is_message(self) -> bool:
        """Whether it starts with a tag or has a sender, as messages do and parts do not."""
        first = next(self.rows(), None)
        tagged = first is not None and first.notation.startswith("Byte1('")
        return self.open_start or self.sender is not None or tagged

    @property
    def alternatives(self) -> bool:
        """Whether it has alternatives in the list itself, with "Or" between them."""
        return any(block.alternatives is not None for block in self.blocks)

    @property
    def tag(self) -> str | None:
        """The letter of a message."""
        first = next(self.rows(), None)
        is_tag = first is not None and not self.open_start and first.notation.startswith("Byte1('")
        return first.notation[7] if is_tag and first else None


@dataclass
class Document:
    """One section: its structures, the paragraphs and entries between them, and what is missing."""

    form: str
    title: str = ""
    section: str = ""
    url: str | None = None
    pg: int | None = None
    structures: list[Structure] = field(default_factory=list)
    entries: dict[str, str] = field(default_factory=dict)
    prose: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    partial: bool = False

    @property
    def messages(self) -> list[Structure]:
        """The structures that are messages."""
        return [structure for structure in self.structures if structure.is_message]

    @property
    def named(self) -> set[str]:
        """The names of its structures, and all notations, including those of parts that are described elsewhere."""
        return {name for s in self.structures for name in (s.name, *(row.notation for row in s.rows()))}

    @property
    def parts(self) -> list[Structure]:
        """The structures that messages refer to."""
        return [structure for structure in self.structures if not structure.is_message]


def is_notation(text: str) -> bool:
    """Return whether a term is a field's notation, except names of parts, which are not known here."""
    return _NOTATION.fullmatch(text) is not None


def split(notation: str) -> tuple[str, str | None]:
    """Split a notation from its annotation: ``Int32 (Oid)`` is ``Int32`` and ``Oid``."""
    match = _ANNOTATED.fullmatch(notation)
    return (match["base"], match["annotation"]) if match else (notation, None)
