"""What a change of the specification breaks: a released protocol version, or programs that use the package.

``spec/released.json`` has the wire formats of the released versions, ``spec/released-names.json`` the names that
programs use. Each change is classified by the levels that it breaks, as ``buf breaking`` does for Protocol Buffers.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from tools.language.errors import SpecError
from tools.language.load import read_text
from tools.language.model import Spec
from tools.language.program_names import DEFAULT, KEYWORD, Names, program_names
from tools.language.released import FILE, layouts
from tools.language.released_tree import Finding, compared

__all__ = ["MEANINGS", "NAMES_FILE", "Break", "Level", "breaks", "check_released"]

NAMES_FILE: Final = "released-names.json"


class Level(StrEnum):
    """Who is affected by a change."""

    READ = "wire-read"
    WRITE = "wire-write"
    SOURCE = "source"


WIRE: Final = (Level.READ, Level.WRITE)
MEANINGS: Final[Mapping[Level, str]] = {
    Level.READ: "reads old bytes: what was sent in a released version is no longer read as it was meant",
    Level.WRITE: "writes for old readers: it sends, in a released version, what its readers do not expect",
    Level.SOURCE: "source of programs: names of classes, arguments, enum members or options that programs use",
}
"""What each level promises, and what a change breaks."""


@dataclass(frozen=True)
class Break:
    """A change, the levels that it breaks, and what to write instead."""

    line: int
    problem: str
    levels: tuple[Level, ...]
    remedy: str

    def text(self, file: str) -> str:
        """Return it as an error."""
        return f"{file}:{self.line}: {self.problem}: this breaks {' and '.join(self.levels)}. {self.remedy}"


def check_released(spec: Spec, folder: Path) -> None:
    """Raise SpecError, with every line, if a specification changes the wire format of a released version.

    Args:
        spec: The specification.
        folder: The folder with released.json; without the file nothing is checked.
    """
    if found := breaks(spec, folder, WIRE):
        raise SpecError("\n".join(each.text(spec.file) for each in found))


def breaks(spec: Spec, folder: Path, levels: Collection[Level] = tuple(Level)) -> list[Break]:
    """Return the changes that break one of some levels, by line.

    Args:
        spec: The specification.
        folder: The folder with the files of what was released; what has no file is not compared.
        levels: The levels to check.
    """
    names = _read(folder / NAMES_FILE).get(spec.file, {})
    found = [*_of_wire(spec, _read(folder / FILE) if spec.versions and not spec.carries else {})]
    found += _of_source(program_names(spec), names) if Level.SOURCE in levels else []
    return sorted((each for each in found if set(each.levels) & set(levels)), key=lambda each: each.line)


def _read(path: Path) -> Any:
    return json.loads(read_text(path)) if path.is_file() else {}


def _of_wire(spec: Spec, released: Mapping[str, Mapping[str, list[str]]]) -> Iterator[Break]:
    """Yield the changes of released versions, each once with the versions in which it counts."""
    versions: dict[Finding, list[int]] = {}
    for version, known in released.items():
        for finding in compared(spec, layouts(spec, int(version)), known):
            versions.setdefault(finding, []).append(int(version))
    for finding, where in versions.items():
        problem = f"{finding.problem} in protocol version{_numbers(where)} released (spec/{FILE})"
        levels = tuple(level for level, breaks in zip(WIRE, (finding.reads, finding.writes), strict=True) if breaks)
        yield Break(finding.line, problem, levels, _remedy(spec, finding, max(map(int, released))))


def _numbers(versions: list[int]) -> str:
    if len(versions) == 1:
        return f" {versions[0]}, which is"
    return f"s {', '.join(map(str, versions[:-1]))} and {versions[-1]}, which are"


def _remedy(spec: Spec, finding: Finding, last: int) -> str:
    """Return what to write instead of a change of a released version."""
    newer = [version.version for version in spec.versions if version.version > last]
    new = min(newer, default=last + 1)
    until = min(last, new - 1)
    text = finding.remedy.replace("{since}", f"since: {new}").replace("{until}", f"until: {until}")
    return text if newer else f"{text} First add version {new} to versions."


def _of_source(found: Mapping[str, Names], known: Mapping[str, list[str]]) -> Iterator[Break]:
    for owner, names in known.items():
        if owner not in found:
            what = owner.partition(" ")[2]
            near = found.get(f"class {what.partition('.')[0]}", Names(1)).line
            yield _broken(near, f"nothing is called {what} any more", f"Call it {what}, as before.")
        elif owner.startswith("class "):
            yield from _of_class(owner, found[owner], names)
        else:
            for name in names:
                if name not in found[owner].names:
                    problem = f"{owner.partition(' ')[2]} has no {name} any more"
                    yield _broken(found[owner].line, problem, f"Call it {name}, as before.")


def _broken(line: int, problem: str, remedy: str) -> Break:
    return Break(line, f"{problem}, which programs use", (Level.SOURCE,), remedy)


def _of_class(owner: str, found: Names, known: list[str]) -> Iterator[Break]:
    """Yield what programs cannot do any more with a class: read an attribute, or pass arguments as they do."""
    cls = owner.partition(" ")[2]
    present = {_bare(name): name for name in found.names}
    missing = [name for name in map(_bare, known) if found.former.get(name, name) not in present]
    for name in missing:
        remedy = f"Call it {name}, or write formerly: {name} at the field that it is now; until: ends it."
        yield _broken(found.line, f"{cls} has no {name} any more", remedy)
    if missing:
        return  # what follows from a name that is missing is reported with it
    before = [found.former.get(_bare(name), _bare(name)) for name in known if not name.startswith(KEYWORD)]
    after = [_bare(name) for name in found.names if not name.startswith(KEYWORD)]
    if after[: len(before)] != before:
        problem = f"{cls} does not take its arguments by position as before: {', '.join(before)}"
        yield _broken(
            found.line, problem, "Leave them in that order, and always present up to a version: until: ends them."
        )
    required = {_bare(name) for name in known if not name.startswith(KEYWORD) and not name.endswith(DEFAULT)}
    for name, line in found.names.items():
        may_be_omitted = name.startswith(KEYWORD) or name.endswith(DEFAULT)
        if not may_be_omitted and name not in {found.former.get(each, each) for each in required}:
            problem = f"{cls} needs {name}, without which programs build it"
            yield Break(line, problem, (Level.SOURCE,), "Write since: or when: at it, so that it may be omitted.")


def _bare(name: str) -> str:
    return name.removeprefix(KEYWORD).removesuffix(DEFAULT)
