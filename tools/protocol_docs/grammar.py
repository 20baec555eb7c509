"""From terms and paragraphs to messages and parts."""

import re
from collections.abc import Iterable

from tools.protocol_docs.document import Block, Document, Entry, Node, Prose, Row, Structure, is_notation
from tools.protocol_docs.prose import ENDED, GROUP, OR, REPEAT, REPEATED, SHARED, WHOSE, names
from tools.protocol_docs.recognise import gaps_in, without_gaps

__all__ = ["Grammar"]

_SENDER = re.compile(r"(?P<name>.+?) \((?P<letters>[BF](?: & [BF])?)\)")
_SENDERS = {"B": "server", "F": "client"}


class Grammar:
    """Parses the nodes of one section into a document, and records what is missing."""

    def __init__(self, document: Document, cut_start: bool = False) -> None:
        self.document = document
        self.cut_start = cut_start
        self.group: tuple[list[str], int] | None = None
        self.orphan: Structure | None = None

    def read(self, nodes: Iterable[Node]) -> None:
        """Parse nodes outside of structures."""
        for node in nodes:
            if isinstance(node, Prose):
                self._prose(node.text)
            elif _is_structure(node):
                self._structure(node)
            elif is_notation(node.term) or self.orphan:
                self._orphan(node)
            else:
                if node.term:
                    text = " ".join(without_gaps(part.text) for part in node.body if isinstance(part, Prose))
                    self.document.entries.setdefault(node.term, text)
                self.read(node.body)

    def _prose(self, text: str) -> None:
        plain = without_gaps(text)
        if self.orphan and (whose := WHOSE.search(plain)):
            self._name_orphan(whose["name"], plain)
        self.orphan = None
        if found := GROUP.search(plain):
            self.group = (names(found["names"] or ""), int(found["since"]))
        elif SHARED.search(plain):
            self.group = None
        if plain:
            self.document.prose.append(plain)
        elif text:
            self._miss(f"between the lists: {_lines(gaps_in(text))}")

    def _orphan(self, entry: Entry) -> None:
        if self.orphan is None:
            self.orphan = Structure(f"UNNAMED_{len(self.document.structures) + 1}", [Block("header")], open_start=True)
            self.document.structures.append(self.orphan)
        self._row(self.orphan, entry)

    def _name_orphan(self, name: str, evidence: str) -> None:
        assert self.orphan is not None
        self.orphan.name = name
        self.orphan.notes.append(evidence)
        self._miss(
            f"{name}: the document starts inside it: its name, its first fields and every message before it "
            "are cut off; the name is taken from the paragraph after it"
        )

    def _structure(self, entry: Entry) -> None:
        self.orphan = None
        name, sender = entry.term, None
        if match := _SENDER.fullmatch(name):
            senders = {_SENDERS[letter] for letter in match["letters"].split(" & ")}
            name, sender = match["name"], senders.pop() if len(senders) == 1 else None
        structure = Structure(name, [Block("header")], sender)
        if self.group and (name in self.group[0] or not self.group[0]):
            structure.since = self.group[1]
        self.document.structures.append(structure)
        for node in entry.body:
            if isinstance(node, Prose):
                self._inside(structure, node.text)
            elif not _is_structure(node):
                self._row(structure, node)
        self._swallowed(structure, entry)

    def _swallowed(self, structure: Structure, entry: Entry) -> None:
        """Parse structures nested in another one, or in a field of it, because an end tag is missing."""
        fields = [node for node in entry.body if isinstance(node, Entry)]
        inner = [node for field in fields for node in field.body if isinstance(node, Entry) and is_notation(field.term)]
        for node in (*fields, *inner):
            if _is_structure(node):
                self._miss(f"{structure.name}: its end is missing; {node.term}, which stands in it, is read by itself")
                self._structure(node)

    def _inside(self, structure: Structure, text: str) -> None:
        """Parse a paragraph between the fields of a structure."""
        plain = without_gaps(text)
        if GROUP.search(plain) or SHARED.search(plain):  # in plain text nothing else ends a structure
            self._prose(text)
        elif repeat := REPEAT.search(plain):
            number = sum(block.kind.startswith("repeat") for block in structure.blocks) + 1
            block = Block(f"repeat_{number}", alternatives=[] if repeat["one"] else None, intro=plain)
            block.ended = ENDED.search(plain) is not None
            structure.blocks.append(block)
        elif REPEATED.search(plain):
            structure.blocks.append(Block("body", intro=plain))
        elif OR.fullmatch(plain):
            structure.blocks[-1].intro = "Or"
        elif plain:
            structure.notes.append(plain)
        if gaps_in(text):
            where = f"in {plain!r}" if plain else f"between its fields, after {_last(structure)}"
            self._miss(f"{structure.name}: {_lines(gaps_in(text))} {where}")

    def _row(self, structure: Structure, entry: Entry) -> None:
        prose = [node.text for node in entry.body if isinstance(node, Prose)]
        if any(isinstance(node, Entry) and is_notation(node.term) for node in entry.body):
            self._miss(f"{structure.name}, {entry.term}: the list under this field was not read")
        text = " ".join(prose)
        row = Row(entry.term, without_gaps(text), gaps_in(text))
        block = structure.blocks[-1]
        if block.alternatives is None:
            block.rows.append(row)
        elif row.notation.startswith("Byte1('"):
            if block.alternatives and block.intro != "Or":
                self._miss(
                    f"{structure.name}: no 'Or' before {row.notation}, read as an alternative because it is a tag"
                )
            block.alternatives.append([row])
            block.intro = ""
        elif block.alternatives:
            block.alternatives[-1].append(row)
        else:
            self._miss(f"{structure.name}: {row.notation} stands where the tag of an alternative should")
            block.alternatives.append([row])

    def _miss(self, text: str) -> None:
        self.document.missing.append(text)


def _is_structure(entry: Entry) -> bool:
    first = next((node for node in entry.body if isinstance(node, Entry)), None)
    return first is not None and is_notation(first.term) and not is_notation(entry.term)


def _last(structure: Structure) -> str:
    rows = list(structure.rows())
    return rows[-1].notation if rows else "its name"


def _lines(gaps: tuple[int, ...]) -> str:
    numbers = ", ".join(map(str, gaps))
    return f"line{'s' if len(gaps) > 1 else ''} {numbers} of the file {'are' if len(gaps) > 1 else 'is'} missing"
