"""Drafts of fields, blocks and structures in the specification language, with marks for open decisions."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tools.language import Spec
from tools.language.model import Parameter
from tools.protocol_docs.cells import Cell, documented_cells, phrases
from tools.protocol_docs.document import Structure
from tools.protocol_docs.suggest import suggestion

__all__ = ["Drafter"]

Data = dict[str, Any]

_SIGNED = re.compile(r"\bsigned\b|\bnegative\b|(?<!\w)-1\b|\batttypmod\b", re.I)
"""Phrases for a number that may be negative; only for timestamps the notation says so."""


class Drafter:
    """Writes drafts for the document of one PostgreSQL version; ``marks`` explains each mark."""

    def __init__(self, spec: Spec, pg: int) -> None:
        self.spec = spec
        self.pg = pg
        self.known = {named.name for named in spec.named}
        self.marks: dict[str, str] = {}

    def structure(self, structure: Structure) -> Data:
        """Return a complete new message or part."""
        data: Data = {
            "name": structure.name,
            "description": self._mark(structure.name, "", "description", "what it is"),
        }
        data["server"] = self.pg
        if structure.since:
            data["since"] = structure.since
        if structure.sender:
            data["sender"] = structure.sender
        if structure.is_message and self.spec.states:
            states = ", ".join(state.name for state in self.spec.states)
            remark = f"where it can come: {states}; add enters or returns, group and option where they apply"
            remark += " (spec/README.md)"
            data["in"] = [self._mark(structure.name, "", "state", remark)]
        data["blocks"] = self._blocks(structure)
        return data

    def fields(self, name: str, cells: Iterable[Cell], before: Sequence[Data] = ()) -> list[Data]:
        """Return consecutive fields; ``before`` are the existing fields before them."""
        drafts: list[Data] = []
        for cell in cells:
            drafts.append(self._field(name, cell, [*before, *drafts]))
        return drafts

    def alternative(self, name: str, cells: Sequence[Cell], python: bool) -> Data:
        """Return an alternative: its tag, and the fields that follow it."""
        tag, then = cells[0], cells[1:]
        data: Data = {"field": tag.notation, "name": self._name(name, tag)}
        if python:
            remark = "bytes or the name of a class of bytes" if then else "None or the NAME of a constant"
            data["python"] = self._mark(name, tag.at, "python", remark)
        data |= self._conditions(name, tag)
        if then:
            data["then"] = [_without(field, "server") for field in self.fields(name, then)]
        return data

    def repeat(self, name: str, cells: Sequence[Cell], before: Sequence[Data], number: int) -> Data:
        """Return a repeat; its count, if any, is the last integer before it that has no other meaning."""
        plain = [field["name"] for field in before if re.fullmatch(r"Int\d+", field["field"]) and "bits" not in field]
        place = f"repeat_{number}"
        data: Data = {"type": place, "name": self._mark(name, place, "name", "what is repeated, such as columns")}
        if cells[0].ended:
            data["until"] = "Int8(0)"
        else:
            data["count"] = plain[-1] if plain else self._mark(name, place, "count", "the field that counts them")
        if cells[0].under is None and len(cells) > 1:
            data["class"] = self._mark(name, place, "Class", "the class of one item, such as RelationColumn")
        data["description"] = self._mark(name, place, "description", "what one item is")
        data["blocks"] = [self._items(name, cells)]
        return data

    def _items(self, name: str, cells: Sequence[Cell]) -> Data:
        if cells[0].under is None:
            return {"type": "header", "fields": self.fields(name, cells)}
        mark = self._mark(name, "choice_1", "name", "what the alternatives are of, such as value")
        return {
            "type": "choice_1",
            "name": mark,
            "alternatives": [self.alternative(name, rows, True) for rows in _by_tag(cells)],
        }

    def _blocks(self, structure: Structure) -> list[Data]:
        blocks: list[Data] = []
        before: list[Data] = []
        repeats = 0
        for repeated, cells in _runs(documented_cells(structure, phrases(self.spec))):
            if repeated:
                repeats += 1
                blocks.append(self.repeat(structure.name, cells, before, repeats))
            else:
                fields = self.fields(structure.name, cells, before)
                before += fields
                blocks.append({"type": "body" if blocks else "header", "fields": fields})
        return blocks

    def _field(self, name: str, cell: Cell, before: Sequence[Data]) -> Data:
        if self.spec.framed and cell.base == "Int32" and _at_length(cell, before):
            description = "Length of the message, itself included."
            return {"field": "Int32", "name": "length", "measures": "rest", "description": description}
        data: Data = {"field": cell.notation, "name": self._name(name, cell)}
        if cell.base == "Byte1" and cell.constant is None:
            remark = "what it stands for"
            values = {letter: self._mark(name, cell.at, letter, remark) for letter in sorted(cell.letters)}
            data |= {"field": "Int8", "values": values or self._mark(name, cell.at, "values", "its letters")}
        if cell.base == "Byten" and before and before[-1]["field"] in ("Int32", "Int16", "Int8"):
            data["length"] = before[-1]["name"]
            data |= {"absent": -1} if before[-1].get("signed") else {}
        if cell.row and re.fullmatch(r"Int\d+", cell.notation) and _SIGNED.search(cell.row.description):
            data["signed"] = True
        return data | self._conditions(name, cell)

    def _conditions(self, name: str, cell: Cell) -> Data:
        data: Data = {}
        said = sorted(cell.conditions)
        if len(said) == 1 and said[0] in _bools(self.spec.parameters):
            data["when"] = said[0]
        elif said:
            remark = f"a parameter for: {'; '.join(said)}; {{all: [A, B]}} for several; or none"
            data["when"] = self._mark(name, cell.at, "when", remark)
        if cell.since:
            data["since"] = cell.since
        if cell.until:
            data["until"] = cell.until
        if name in self.known:
            data["server"] = self.pg
        data["description"] = self._mark(name, cell.at, "description", "one line, in your words")
        return data

    def _name(self, name: str, cell: Cell) -> str:
        if isinstance(cell.constant, bytes) and cell.at.startswith("1_1_"):
            return "tag"
        said = cell.row.description if cell.row else ""
        return self._mark(name, cell.at, "name", f"{cell.notation}: {said} Perhaps {suggestion(cell)}")

    def _mark(self, name: str, at: str, what: str, remark: str) -> str:
        position = re.match(r"\d+_\d+|\w+", at)
        parts = ["FILL_IN", name.replace(" ", "_"), position[0] if position else "", what]
        mark = "_".join(part for part in parts if part)
        self.marks[mark] = remark
        return mark


def _at_length(cell: Cell, before: Sequence[Data]) -> bool:
    """Return whether a field is in the place of a connection message's length: first, or after its tag."""
    tag = before[0]["field"].startswith("Byte1('") if before else True
    return tag and len(before) < 2 and cell.at.startswith(f"1_{len(before) + 1}_")


def _runs(cells: Iterable[Cell]) -> Iterator[tuple[bool, list[Cell]]]:
    """Yield runs of cells that are repeated, and of cells that are not."""
    run: list[Cell] = []
    for cell in cells:
        if run and run[-1].repeated != cell.repeated:
            yield run[-1].repeated, run
            run = []
        run.append(cell)
    if run:
        yield run[-1].repeated, run


def _by_tag(cells: Iterable[Cell]) -> list[list[Cell]]:
    found: dict[str | None, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.under, []).append(cell)
    return list(found.values())


def _without(data: Data, key: str) -> Data:
    """Return a draft without what the alternative before it has stated already."""
    return {each: value for each, value in data.items() if each != key}


def _bools(parameters: Iterable[Parameter]) -> Mapping[str, Parameter]:
    return {parameter.name: parameter for parameter in parameters if parameter.type == "bool"}
