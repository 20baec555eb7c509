"""What a newer document has and the specification lacks, as YAML to add to the specification."""

import copy
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from tools.language import Spec
from tools.protocol_docs.cells import Cell
from tools.protocol_docs.check import choose
from tools.protocol_docs.compare import Comparison, Known
from tools.protocol_docs.differences import is_known
from tools.protocol_docs.document import Document, DocumentError, Structure
from tools.protocol_docs.drafts import Drafter
from tools.protocol_docs.options import options
from tools.protocol_docs.yaml_text import yaml_text

__all__ = ["Proposal", "propose"]

Data = dict[str, Any]


class Proposal:
    """The YAML to add, and the differences that it does not resolve."""

    def __init__(self, document: Document, spec: Spec, pg: int, comparison: Comparison, raw: Data) -> None:
        self.document = document
        self.spec = spec
        self.pg = pg
        self.comparison = comparison
        self.raw = raw
        self.drafter = Drafter(spec, pg)
        self.by_hand: list[str] = []
        self.data: Data = {}

    def fill(self, known_names: set[str]) -> None:
        """Draft everything; ``known_names`` are messages that are known not to belong to the specification."""
        for structure, named in self.comparison.pairs:
            if named is None and structure.name not in known_names:
                kind = "messages" if structure.is_message else "parts"
                self.data.setdefault(kind, []).append(self.drafter.structure(structure))
            elif named is not None:
                self._changed(structure, named)
        self._versions()
        self._options()

    def text(self) -> str:
        """Return the proposal; comments explain the marks, and name the decisions to make."""
        if not self.data:
            return "".join(f"# {line}\n" for line in ["Nothing to add.", *self.by_hand])
        lines = [
            f"For spec/{self.spec.file}, from PostgreSQL {self.pg}, {self.document.section or self.document.form}.",
            "A message or part that the specification has is printed in full, with the new lines: replace it.",
            "Append the others. Replace each FILL_IN_ mark, then run: python -m tools.generate",
            "",
            *(f"{mark}: {remark}" for mark, remark in self.drafter.marks.items()),
            *(f"By hand: {line}" for line in self.by_hand),
        ]
        return "".join(f"# {line}".rstrip() + "\n" for line in lines) + yaml_text(self.data)

    def _changed(self, structure: Structure, named: Known) -> None:
        kind = "parts" if any(part is named for part in self.spec.parts) else "messages"
        whole = copy.deepcopy(next(row for row in self.raw[kind] if row["name"] == named.name))
        pairs = self.comparison.rows(structure, named)
        added = False
        for number, (said, wanted) in enumerate(pairs):
            run = _run(pairs, number) if wanted is None else []
            if run and run[0] is said:
                before = next((known for _, known in reversed(pairs[:number]) if known), None)
                added |= self._insert(whole, run, before)
        if added:
            self.data.setdefault(kind, []).append(whole)

    def _insert(self, whole: Data, run: Sequence[Cell], before: Cell | None) -> bool:
        """Insert a run of new fields after the known field before it; return whether one was found."""
        name = whole["name"]
        places = {place.at: place for place in _places(whole["blocks"], "")}
        place = places.get(before.at) if before else None
        if before is None or place is None:
            self.by_hand.append(f"{name}: {run[0].at}: {run[0].notation} stands in front of all known fields")
            return False
        if run[0].under and isinstance(run[0].constant, bytes):
            choice = places[place.alternative] if place.alternative else place
            python = any("python" in row for row in choice.rows)
            choice.rows.insert(choice.index() + 1, self.drafter.alternative(name, run, python))
        elif run[0].repeated and not before.repeated:
            block = next(i for i, block in enumerate(whole["blocks"]) if block.get("fields") is place.rows)
            count = sum(block["type"].startswith("repeat") for block in whole["blocks"]) + 1
            whole["blocks"].insert(block + 1, self.drafter.repeat(name, run, place.rows, count))
        else:
            at = place.index() + 1
            place.rows[at:at] = self.drafter.fields(name, run, place.rows[:at])
        return True

    def _versions(self) -> None:
        known = {version.version for version in self.spec.versions}
        new = sorted(since for since in _sinces(self.data) if since not in known)
        for version in new:
            mark = f"FILL_IN_version_{version}_brings"
            self.drafter.marks[mark] = f"what protocol version {version} is for"
            self.data = {"versions": [], **self.data}
            self.data["versions"].append({"version": version, "server": self.pg, "brings": mark})

    def _options(self) -> None:
        for difference in options(self.document, self.spec, self.pg):
            if difference.says == "extra":
                description, kind = (f"FILL_IN_option_{difference.at}_{what}" for what in ("description", "type"))
                self.drafter.marks[description] = self.document.entries[difference.at]
                self.drafter.marks[kind] = "number, names or switch; or its values instead, as streaming has them"
                row = {"name": difference.at, "server": self.pg, "type": kind, "description": description}
                self.data.setdefault("options", []).append(row)


class _Place:
    """The location of a field or an alternative in the data of a specification."""

    def __init__(self, at: str, rows: list[Data], row: Data, alternative: str | None) -> None:
        self.at = at
        self.rows = rows
        self.row = row
        self.alternative = alternative

    def index(self) -> int:
        """Return its current index; rows may have been inserted before it."""
        return next(i for i, row in enumerate(self.rows) if row is self.row)


def propose(document: Document, specs: Sequence[Spec], folder: Path) -> str:
    """Return the proposal for a document as text; raise DocumentError if it cannot be compared."""
    spec, section = choose(document, specs)
    if document.pg is None:
        raise DocumentError("the document does not tell its PostgreSQL version: give --pg, such as --pg 20")
    annotated = section.annotated is not None and section.annotated <= document.pg
    comparison = Comparison(document, spec, document.pg, annotated)
    raw = yaml.safe_load((folder / spec.file).read_text("utf-8"))
    proposal = Proposal(document, spec, document.pg, comparison, raw)
    found = list(comparison.differences())
    deviations = [deviation for deviation in section.deviations if deviation.concerns(document.pg)]
    ours = [each for each in found if not any(is_known(each, deviation) for deviation in deviations)]
    not_ours = {each.message for each in found if each.kind == "extra message" and each not in ours}
    additions = ("extra message", "extra field", "alternative")
    proposal.by_hand += [each.text(spec.file) for each in ours if each.kind not in additions]
    proposal.fill(not_ours)
    return proposal.text()


def _run(pairs: Sequence[tuple[Cell | None, Cell | None]], number: int) -> list[Cell]:
    """Return the consecutive new fields around one, all of the same alternative, repeat, or list."""

    def alike(at: int) -> Cell | None:
        said, wanted = pairs[at] if 0 <= at < len(pairs) else (None, None)
        first = pairs[number][0]
        same = said and first and (said.under, said.repeated) == (first.under, first.repeated)
        return said if same and wanted is None else None

    start = end = number
    while alike(start - 1):
        start -= 1
    while alike(end + 1):
        end += 1
    return [said for said, _ in pairs[start : end + 1] if said]


def _places(blocks: Iterable[Data], path: str, alternative: str | None = None) -> Iterator[_Place]:
    for block in blocks:
        yield from (_Place(path + row["name"], block["fields"], row, alternative) for row in block.get("fields", ()))
        if "blocks" in block:
            yield from _places(block["blocks"], f"{path}{block['name']}.", alternative)
        for row in block.get("alternatives", ()):
            at = f"{path}{block['name']}.{row['name']}"
            yield _Place(at, block["alternatives"], row, None)
            if isinstance(row.get("then"), list):
                yield from _places([{"fields": row["then"]}], f"{at}.", at)
            elif "then" in row:
                yield _Place(f"{at}.{row['then']}", block["alternatives"], row, None)


def _sinces(data: Any) -> set[int]:
    if isinstance(data, list):
        return set().union(*map(_sinces, data))
    if not isinstance(data, dict):
        return set()
    own = {data["since"]} if isinstance(data.get("since"), int) else set()
    return own | set().union(*(_sinces(value) for value in data.values()))
