"""Fields of the specification and of a document in one form, so that they can be compared."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from tools.language import Choice, Field, Message, Part, Repeat, Spec, conditions
from tools.language.conditions import Bit, Flag
from tools.language.elements import Alternative, Structure
from tools.language.notation import parse_notation
from tools.protocol_docs import document as read
from tools.protocol_docs.prose import stated, words

__all__ = ["Cell", "documented_cells", "phrases", "specified_cells"]


@dataclass(frozen=True)
class Cell:
    """One field. ``at`` is its path in the specification, or its position in the document.

    ``size`` is the length of a message, for the field with it, if it is always the same; ``letters`` are the only
    permitted ones, and ``absent`` is the length that stands for no value.
    """

    at: str
    base: str
    annotation: str | None = None
    constant: bytes | int | None = None
    conditions: frozenset[str] = frozenset()
    since: int | None = None
    until: int | None = None
    repeated: bool = False
    ended: bool = False
    letters: frozenset[str] = frozenset()
    absent: bool = False
    size: int | None = None
    under: str | None = None
    chosen: bool = False
    documented: str | None = None
    description: str = ""
    whole: bool = True
    line: int = 0
    row: read.Row | None = None

    @property
    def notation(self) -> str:
        """The notation as written."""
        if isinstance(self.constant, bytes):
            return f"Byte1('{self.constant.decode()}')"
        base = self.base if self.constant is None else f"{self.base}({self.constant})"
        return f"{base} ({self.annotation})" if self.annotation else base

    @property
    def constants(self) -> tuple[bytes | int | None, ...]:
        """The constants that a document may write for it."""
        return (None, self.size) if self.size is not None else (self.constant,)

    def is_written(self, said: "Cell") -> bool:
        """Return whether a document's field has this one's type: a letter may be an Int8 or a Byte1."""
        return said.base == self.base or (bool(self.letters) and (said.base, said.constant) == ("Byte1", None))


def phrases(spec: Spec) -> dict[str, str]:
    """Return the phrases by which documents state each parameter."""
    return {parameter.name: parameter.documented for parameter in spec.parameters if parameter.documented}


def documented_cells(structure: read.Structure, known: Mapping[str, str]) -> list[Cell]:
    """Return the fields of a document's structure, each with its version, unless stated for the whole structure."""
    cells = [_documented(row, block, tag, known) for block in structure.blocks for row, tag in _tagged(block)]
    said: dict[str | None, int] = {}
    for number, cell in enumerate(cells):
        floor = said.get(cell.under, structure.since or 1)
        if cell.under and isinstance(cell.constant, bytes):
            said[cell.under] = max(floor, cell.since or 1)
        if cell.since and cell.since <= floor:
            cells[number] = replace(cell, since=None)
    return cells


def _tagged(block: read.Block) -> Iterator[tuple[read.Row, str | None]]:
    """Yield each row with the letter of its alternative."""
    yield from ((row, None) for row in block.rows)
    for alternative in block.alternatives or ():
        letter = alternative[0].notation[7:8] if alternative[0].notation.startswith("Byte1('") else "?"
        yield from ((row, letter) for row in alternative)


def _documented(row: read.Row, block: read.Block, tag: str | None, known: Mapping[str, str]) -> Cell:
    says = stated(row.description, known)
    bare, annotation = read.split(row.notation)
    bare, array, _ = bare.partition("[")
    notation = parse_notation(bare)
    constant = 0 if says.zero and notation.constant is None else notation.constant
    repeated = says.repeated or block.kind.startswith("repeat") or bool(array)
    return Cell(
        row.label,
        notation.base,
        annotation,
        constant,
        says.conditions,
        says.since,
        says.until,
        repeated,
        ended=block.ended,
        letters=says.letters,
        absent=says.absent,
        under=tag,
        description=words(row.description),
        whole=row.whole and bool(row.description),
        row=row,
    )


def specified_cells(structure: Message | Part, spec: Spec, pg: int, flat: bool, named: AbstractSet[str]) -> list[Cell]:
    """Return the fields that the document of a PostgreSQL version should list.

    Documents without "Or" list a choice ``flat``: its tags, then the fields after any of them. Parts that the document
    has not ``named`` are inlined.
    """
    cells = _Layout(spec, pg, flat, named).cells(structure, "", False, None)
    length = structure.length.name if isinstance(structure, Message) and structure.length else None
    return [replace(cell, size=_length(structure)) if cell.at == length else cell for cell in cells]


def _length(structure: Message | Part) -> int | None:
    """Return the length of a message if it is always the same."""
    fields = [each.size if isinstance(each, Field) else None for each in structure.elements]
    sizes = [size for size in fields if size is not None]
    return sum(sizes) - len(structure.tag) if isinstance(structure, Message) and len(sizes) == len(fields) else None


class _Layout:
    """Walks a structure of the specification in the order in which documents list it."""

    def __init__(self, spec: Spec, pg: int, flat: bool, named: AbstractSet[str]) -> None:
        self.spec = spec
        self.pg = pg
        self.flat = flat
        self.named = named

    def cells(self, structure: Structure, path: str, repeated: bool, under: str | None) -> Iterator[Cell]:
        for element in structure.elements:
            at = path + element.name
            if isinstance(element, Field):
                for each in filter(self._is_there, element.rows):
                    if each.part and each.part not in self.named:
                        part = self.cells(self.spec.part(each.part), f"{at}.", repeated, under)
                        yield from self._under_conditions(each, part)
                        continue
                    cell = self._specified(each, at, repeated, under)
                    yield replace(cell, absent=element.signed and element.name in structure.sizes)
            elif isinstance(element, Repeat):
                if self._is_there(element):
                    items = self._under_conditions(element, self.cells(element.item, f"{at}.", True, under))
                    yield from (replace(cell, ended=cell.ended or element.terminated) for cell in items)
            else:
                yield from self._choice(element, at, repeated)

    def _under_conditions(self, around: Field | Repeat, cells: Iterator[Cell]) -> Iterator[Cell]:
        """Yield the fields of a part or of an item, each with the conditions of what they are in."""
        for cell in cells:
            since = max(filter(None, (cell.since, around.since)), default=None)
            until = min(filter(None, (cell.until, self._until(around))), default=None)
            yield replace(cell, since=since, until=until, conditions=cell.conditions | _conditions(around))

    def _is_there(self, element: Field | Repeat | Alternative) -> bool:
        return self.spec.came_with(element.server, element.since) <= self.pg

    def _until(self, element: Field | Repeat | Alternative) -> int | None:
        """Return the last protocol version of something, if the document's PostgreSQL has a later one."""
        last = element.until
        is_over = any(row.version > (last or 0) and row.server <= self.pg for row in self.spec.versions)
        return last if is_over else None

    def _choice(self, choice: Choice, at: str, repeated: bool) -> Iterator[Cell]:
        alternatives = [alternative for alternative in choice.alternatives if self._is_there(alternative)]
        listed = frozenset({"optional choice" if choice.optional else "choice"}) if self.flat else frozenset[str]()
        for number, alternative in enumerate(alternatives):
            under = None if self.flat else alternative.letter
            path = f"{at}.{alternative.name}"
            since, until, line = alternative.since, self._until(alternative), alternative.line
            rules = listed | _conditions(alternative)
            base, tag = ("Int8", alternative.tag[0]) if alternative.numeric else ("Byte1", alternative.tag)
            yield Cell(path, base, None, tag, rules, since, until, repeated, under=under, line=line)
            following = alternatives[number + 1].then if number + 1 < len(alternatives) else None
            if alternative.then != following or not self.flat:
                yield from self._then(alternative, path, repeated, under)

    def _then(self, alternative: Alternative, at: str, repeated: bool, under: str | None) -> Iterator[Cell]:
        then, line = alternative.then, alternative.line
        if isinstance(then, str):
            yield Cell(f"{at}.{then}", then, repeated=repeated, under=under, chosen=self.flat, line=line)
        elif then is not None:
            yield from self.cells(then, f"{at}.", repeated, under)

    def _specified(self, field: Field, at: str, repeated: bool, under: str | None) -> Cell:
        bare, annotation = read.split(field.notation)
        limits = {value: conditions.range_of(term)[0] for value, term in field.limits.items()}
        values = [value for value in field.values or () if self.spec.came_with(None, limits.get(value)) <= self.pg]
        return Cell(
            at,
            parse_notation(bare).base,
            annotation,
            field.constant,
            _conditions(field),
            field.since,
            self._until(field),
            repeated,
            letters=frozenset(map(str, values)) if field.is_letter else frozenset(),
            under=under,
            documented=words(field.documented) if field.documented else None,
            line=field.line,
        )


def _conditions(element: Field | Repeat | Alternative) -> frozenset[str]:
    """Return the part of a condition that documents state: the parameters, and the bits."""
    leaves = list(conditions.leaves(element.when))
    bits = {f"bit {leaf.mask} of {leaf.field}" for leaf in leaves if isinstance(leaf, Bit)}
    return frozenset(bits | {leaf.name for leaf in leaves if isinstance(leaf, Flag)})
