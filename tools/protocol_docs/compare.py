"""Compares the structures of a document with those of the specification for one PostgreSQL version."""

from collections.abc import Iterator

from tools.language import Choice, Message, Part, Spec
from tools.protocol_docs import document as read
from tools.protocol_docs.align import Pair, align
from tools.protocol_docs.cells import Cell, documented_cells, phrases, specified_cells
from tools.protocol_docs.differences import Difference
from tools.protocol_docs.prose import EITHER, MULTIPLE

__all__ = ["Comparison"]

Known = Message | Part


class Comparison:
    """A document and a specification; ``pairs`` maps each structure of the document to its counterpart.

    A part that the document does not name is inlined where the specification refers to it.
    """

    def __init__(self, document: read.Document, spec: Spec, pg: int, annotated: bool) -> None:
        self.document = document
        self.spec = spec
        self.pg = pg
        self.annotated = annotated
        known = (named for named in spec.named if spec.came_with(named.server, _since(named)) <= pg)
        self.named = document.named
        self.expected: list[Known] = [n for n in known if isinstance(n, Message) or n.name in self.named]
        self.pairs = self._pair()

    def absent(self) -> list[Known]:
        """Return the structures of the specification that the document does not have."""
        found = {named.name for _, named in self.pairs if named}
        return [named for named in self.expected if named.name not in found]

    def differences(self) -> Iterator[Difference]:
        """Yield every difference in layout, in the order of the document."""
        for structure, named in self.pairs:
            if named is None:
                text = f"the document has it ({_tag(structure)}), the specification for PostgreSQL {self.pg} does not"
                yield Difference("extra message", structure.name, "", _tag(structure), text)
            else:
                yield from self._names(structure, named)
                yield from self._rows(structure, named)
                yield from self._notes(structure, named)
        if not self.document.partial:
            for named in self.absent():
                server = self.spec.came_with(named.server, _since(named))
                text = f"the specification has it from PostgreSQL {server} on, the document does not"
                yield Difference("missing message", named.name, "", "nothing", text, named.line)

    def rows(self, structure: read.Structure, named: Known) -> list[Pair]:
        """Return the aligned fields of a structure."""
        cells = documented_cells(structure, phrases(self.spec))
        expected = specified_cells(named, self.spec, self.pg, not structure.alternatives, self.named)
        return align(cells, expected, structure.open_start)

    def _pair(self) -> list[tuple[read.Structure, Known | None]]:
        """Find the counterpart of each structure: by its name, then by its tag."""
        by_name = {_key(named.name): named for named in self.expected}
        pairs: list[tuple[read.Structure, Known | None]] = []
        for structure in self.document.structures:
            named = by_name.get(_key(structure.name))
            pairs.append((structure, named))
        taken = {named.name for _, named in pairs if named}
        return [(s, named or self._by_tag(s, taken)) for s, named in pairs]

    def _by_tag(self, structure: read.Structure, taken: set[str]) -> Known | None:
        key = structure.tag, structure.sender
        messages = [named for named in self.expected if isinstance(named, Message) and named.name not in taken]
        alike = [message for message in messages if (message.tag_text, message.sender) == key]
        return alike[0] if len(alike) == 1 else None

    def _names(self, structure: read.Structure, named: Known) -> Iterator[Difference]:
        def difference(kind: str, says: object, wants: object) -> Difference:
            text = f"the document says {says}, the specification {wants}"
            return Difference(kind, named.name, "", str(says), text, named.line)

        if _key(structure.name) != _key(named.name):
            yield difference("name", structure.name, named.name)
        sender = named.sender if isinstance(named, Message) else None
        if structure.sender and sender and structure.sender != sender:
            yield difference("sender", structure.sender, sender)
        stated = structure.since or self.document.form != "yaml"
        if structure.since != _since(named) and not structure.open_start and stated:
            yield difference("version", _version(structure.since), _version(_since(named)))

    def _rows(self, structure: read.Structure, named: Known) -> Iterator[Difference]:
        pairs = self.rows(structure, named)
        if structure.open_start:
            pairs = _without_front(pairs)
        if structure.open_end:
            pairs = _without_front(pairs[::-1])[::-1]
        moved = _moved(pairs)
        for said, expected in pairs:
            if said is None or expected is None:
                yield from self._alone(named, said, expected, moved)
            else:
                yield from _Cells(named.name, said, expected, self.annotated).differences()

    def _alone(
        self, named: Known, said: Cell | None, expected: Cell | None, moved: dict[Cell, Cell]
    ) -> Iterator[Difference]:
        if expected is not None and expected in moved:
            text = f"the document has {expected.notation} at {moved[expected].at}, the specification in another place"
            yield Difference("moved field", named.name, expected.at, moved[expected].at, text, expected.line)
        elif expected is not None:
            text = f"the specification has {expected.notation}, the document does not"
            yield Difference("missing field", named.name, expected.at, "nothing", text, expected.line)
        elif said is not None and said not in moved.values():
            words = said.row.description if said.row else ""
            text = f"the document has {said.notation} ({words!r}), the specification does not"
            kind = "alternative" if said.under and isinstance(said.constant, bytes) else "extra field"
            yield Difference(kind, named.name, said.at, said.notation, text, named.line)

    def _notes(self, structure: read.Structure, named: Known) -> Iterator[Difference]:
        said = next((_either(note) for note in structure.notes if EITHER.search(note)), "nothing")
        expected = "nothing"
        for choice in named.elements:
            if isinstance(choice, Choice) and not structure.alternatives:
                there = (a for a in choice.alternatives if self.spec.came_with(a.server, a.since) <= self.pg)
                tags = [alternative.letter for alternative in there]
                expected = "one of " + ", ".join(tags) + (" or none" if choice.optional else "")
        unsaid = said == "nothing" and (self.document.partial or self.document.form == "yaml")
        if said != expected and not unsaid:
            text = f"the document says that {said} may come, the specification {expected}"
            yield Difference("choice", named.name, "", said, text, named.line)
        for note in structure.notes:
            if multiple := MULTIPLE.search(note):
                text = "the document says that several may come in one transaction, the specification one"
                yield Difference("occurrence", multiple["name"], "", "several in one transaction", text, named.line)


class _Cells:
    """A field of the document and that of the specification."""

    def __init__(self, message: str, said: Cell, expected: Cell, annotated: bool) -> None:
        self.message = message
        self.said = said
        self.expected = expected
        self.annotated = annotated

    def differences(self) -> Iterator[Difference]:
        said, expected = self.said, self.expected
        if not expected.is_written(said):
            yield self._one("type", said.notation, expected.notation)
        elif said.constant not in expected.constants:
            yield self._one("literal", said.notation, expected.notation)
        elif said.annotation != expected.annotation and (self.annotated or said.annotation):
            yield self._one("annotation", said.notation, expected.notation)
        if (said.repeated, said.ended) != (expected.repeated, expected.ended):
            yield self._one("repeat", _repeated(said), _repeated(expected))
        if said.under != expected.under:
            yield self._one("alternative", f"under {said.under}", f"under {expected.under}")
        yield from self._conditions()
        yield from self._values()

    def _conditions(self) -> Iterator[Difference]:
        """Compare the description's statements, unless part of the description is missing."""
        said, expected = self.said, self.expected
        conditions = said.conditions - {"choice"} if expected.chosen else said.conditions
        if conditions != expected.conditions and (said.whole or conditions):
            yield self._one("condition", _when(conditions), _when(expected.conditions))
        if said.since != expected.since and (said.whole or said.since):
            yield self._one("version", _version(said.since), _version(expected.since))
        if said.until != expected.until and (said.whole or said.until):
            yield self._one("version", _last(said.until), _last(expected.until))
        if expected.documented and said.whole and expected.documented not in said.description:
            yield self._one("meaning", repr(said.description), f"a description with {expected.documented!r}")

    def _values(self) -> Iterator[Difference]:
        """Compare the description's statements about values: the letters, and whether a length can be -1."""
        said, expected = self.said, self.expected
        if expected.letters and said.letters and said.letters != expected.letters:
            yield self._one("values", _letters(said), _letters(expected))
        if said.absent != expected.absent and said.whole:
            yield self._one("values", _absent(said), _absent(expected))

    def _one(self, kind: str, says: str, wants: str) -> Difference:
        place = "" if self.said.at == self.said.notation else f" at {self.said.at}"
        text = f"the document says {says}{place}, the specification {wants}"
        return Difference(kind, self.message, self.expected.at, says, text, self.expected.line)


def _key(name: str) -> str:
    return name.casefold().removesuffix(" message").replace(" ", "")


def _since(named: Known) -> int | None:
    return named.since if isinstance(named, Message) else None


def _tag(structure: read.Structure) -> str:
    return f"Byte1('{structure.tag}')" if structure.tag else "a part"


def _version(since: int | None) -> str:
    return f"since protocol version {since}" if since else "in every protocol version"


def _last(until: int | None) -> str:
    return f"until protocol version {until}" if until else "in every later protocol version"


def _when(conditions: frozenset[str]) -> str:
    return " and ".join(sorted(conditions)) or "always"


def _repeated(cell: Cell) -> str:
    return ("repeated up to a zero byte" if cell.ended else "repeated") if cell.repeated else "once"


def _either(note: str) -> str:
    match = EITHER.search(note)
    assert match is not None
    tags = [match["first"], *(part[1] for part in match["more"].split(" '")[1:] for part in [f"'{part}"])]
    return "one of " + ", ".join(tags) + (" or none" if match["none"] else "")


def _letters(cell: Cell) -> str:
    return ", ".join(sorted(cell.letters))


def _absent(cell: Cell) -> str:
    return "-1 where there is no value" if cell.absent else "a length that is never -1"


def _without_front(pairs: list[Pair]) -> list[Pair]:
    first = next((i for i, (said, _) in enumerate(pairs) if said), len(pairs))
    return pairs[first:]


def _moved(pairs: list[Pair]) -> dict[Cell, Cell]:
    """Return the fields that have moved in the document: missing in one place, added in another, otherwise the same."""
    gone = [expected for said, expected in pairs if expected and said is None]
    come = [said for said, expected in pairs if said and expected is None]
    moved: dict[Cell, Cell] = {}
    for expected in gone:
        for said in come:
            alike = expected.is_written(said) and said.constant in expected.constants and said.under == expected.under
            if alike and said not in moved.values():
                moved[expected] = said
                break
    return moved
