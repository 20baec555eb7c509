"""From YAML to the model: the shape by JSON Schema, then the model, then the rules that a schema cannot express."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from tools.language.carried import carried, check_own, is_conditional
from tools.language.conditions import Flag, Term, condition_of, every, some
from tools.language.elements import Alternative, Block, Choice, Item, Repeat, Structure
from tools.language.errors import SpecError
from tools.language.fields import Field, Fields, Type
from tools.language.model import Message, Parameter, Part, Spec, State, Version
from tools.language.near import meant
from tools.language.notation import Notation, parse_notation
from tools.language.notation_table import notations
from tools.language.records import Deviation, Document, Option
from tools.language.rules import check
from tools.language.shapes import shape_problems
from tools.language.source import Place, Source, read
from tools.language.variants import gathered, implied

__all__ = ["SPEC", "check_shape", "load", "load_notations", "load_text", "read_text", "types_file"]

SPEC = Path(__file__).parents[2] / "spec"
"""The directory of the specifications."""


def load(path: Path) -> Spec:
    """Read a specification file; raise SpecError, with file, line and remedy, if it breaks a rule."""
    return load_text(read_text(path), path.name, path.parent)


def load_text(text: str, file: str = "spec.yaml", folder: Path = SPEC) -> Spec:
    """Parse a specification; see ``load``. A carried specification and the notations are files of the directory."""
    source = read(text, file)
    _check_marks(text, source)
    check_shape(source)
    check_own(source)
    if "carries" in source.data and is_conditional(source.data):
        source = Source(file, carried(source, _carried(source, folder)), source.lines)
    spec = _Loader(source, load_notations(types_file(folder))).spec()
    check(spec, source)
    return spec


def _carried(source: Source, folder: Path) -> Source:
    name = source.data["carries"]
    if not (folder / name).is_file() or name == source.file:
        remedy = "Name the file of the messages inside, which is in the same folder."
        raise source.error(("carries",), f"carries: {name} is not another specification", remedy)
    inner = read(read_text(folder / name), name)
    check_shape(inner)
    return inner


def read_text(path: Path) -> str:
    """Read a file of the specification; raise SpecError if it is missing or not UTF-8."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read: {error}. Give a UTF-8 YAML file.") from None


@cache
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((SPEC / schema).read_text("utf-8")))


def types_file(folder: Path) -> Path:
    """Return the notations of a directory's specifications: its own, or those of the project."""
    own = folder / "types.yaml"
    return own if own.is_file() else SPEC / own.name


def load_notations(path: Path) -> tuple[Type, ...]:
    """Read the notations; raise SpecError for a wrong shape, or a row that contradicts itself."""
    return _notations(read_text(path), path.name)


@cache
def _notations(text: str, file: str) -> tuple[Type, ...]:
    source = read(text, file)
    check_shape(source, "types.schema.json")
    return notations(source)


def _check_marks(text: str, source: Source) -> None:
    """Refuse the placeholders that ``propose`` has left, all at once."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if not line.lstrip().startswith("#")]
    marks = [(number, mark) for number, line in lines for mark in re.findall(r"FILL_IN_\w+", line)]
    if marks:
        problem = "not filled in: " + ", ".join(f"{mark} (line {number})" for number, mark in marks)
        raise source.error(marks[0][0], problem, "Write in place of each mark what the comments of propose ask for.")


def check_shape(source: Source, schema: str = "language.schema.json") -> None:
    """Raise SpecError, with every line and rule, for data that does not match a JSON Schema."""
    problems = [
        words for error in _validator(schema).iter_errors(source.data) for words in shape_problems(error, source)
    ]
    if problems:
        raise SpecError("\n".join(problems))


class _Loader:
    """Builds the model from checked data, with the line of every element."""

    def __init__(self, source: Source, types: tuple[Type, ...]) -> None:
        self.source = source
        self.types = types
        self.versions = sorted({row["version"] for row in source.data.get("versions", ())})

    def spec(self) -> Spec:
        data = self.source.data
        return Spec(
            protocol=data["protocol"],
            title=data["title"],
            source=data["source"],
            file=self.source.file,
            carries=data.get("carries"),
            messages=tuple(self._message(m, ("messages", i)) for i, m in enumerate(data["messages"])),
            parts=tuple(self._part(p, ("parts", i)) for i, p in enumerate(data.get("parts", ()))),
            versions=tuple(
                Version(**row, **self._line("versions", i)) for i, row in enumerate(data.get("versions", ()))
            ),
            parameters=tuple(
                Parameter(name, **row, **self._line("parameters", name))
                for name, row in data.get("parameters", {}).items()
            ),
            states=tuple(
                State(**{**row, "sets": _sets(row)}, **self._line("states", i))
                for i, row in enumerate(data.get("states", ()))
            ),
            options=tuple(self._option(row, ("options", i)) for i, row in enumerate(data.get("options", ()))),
            documents=tuple(self._document(row, ("documents", i)) for i, row in enumerate(data.get("documents", ()))),
            types=self.types,
        )

    def _line(self, *place: str | int) -> dict[str, Any]:
        return {"line": self.source.line(place)}

    def _option(self, data: Mapping[str, Any], place: Place) -> Option:
        since = {"since": data["since"]} if "since" in data else {}
        rows = [{**(since if i else {}), **row} for i, row in enumerate(data.get("values", ()))]
        values = tuple(self._option(row, (*place, "values", i)) for i, row in enumerate(rows))
        return Option(**{**data, "values": values, "sets": _sets(data)}, line=self.source.line(place))

    def _document(self, data: Mapping[str, Any], place: Place) -> Document:
        rows = enumerate(data.get("deviations", ()))
        deviations = tuple(self._deviation(row, (*place, "deviations", i)) for i, row in rows)
        return Document(**{**data, "deviations": deviations})

    def _deviation(self, data: Mapping[str, Any], place: Place) -> Deviation:
        known = {key: value for key, value in data.items() if key not in ("from", "to")}
        return Deviation(**known, first=data.get("from"), last=data.get("to"), line=self.source.line(place))

    def _message(self, data: Mapping[str, Any], place: Place) -> Message:
        blocks = self._blocks(data["blocks"], (*place, "blocks"))
        first = Structure(blocks).elements[0]
        tag = _tag(first.constant, first.size) if isinstance(first, Field) else None
        if isinstance(first, Field) and first.frames:
            tag = b""
        if tag is None:
            raise self.source.error(
                place,
                f"message {data['name']} does not start with its tag",
                "Write a first field such as Byte1('X') or Int8(16), or measures: rest at one that holds the message's "
                "length.",
            )
        keys = ("description", "server", "since", "unasked", "sender", "enters", "returns", "group", "effect", "option")
        known = {k: data[k] for k in (*keys, "rows") if k in data}
        return Message(
            blocks=blocks,
            name=data["name"],
            tag=tag,
            within=tuple(data.get("in", ())),
            ignored=tuple(data.get("ignored", ())),
            line=self.source.line(place),
            **known,
        )

    def _part(self, data: Mapping[str, Any], place: Place) -> Part:
        known = {k: data[k] for k in ("name", "description", "server") if k in data}
        return Part(blocks=self._blocks(data["blocks"], (*place, "blocks")), line=self.source.line(place), **known)

    def _blocks(self, data: Sequence[Mapping[str, Any]], place: Place) -> tuple[Block, ...]:
        return implied([self._block(block, (*place, i), i + 1) for i, block in enumerate(data)])

    def _block(self, data: Mapping[str, Any], place: Place, number: int) -> Block:
        line = self.source.line(place)
        if "fields" in data:
            return Fields(data["type"], self._fields(data["fields"], (*place, "fields"), number), line)
        known = {k: data[k] for k in ("name", "description") if k in data}
        if "alternatives" in data:
            branches = enumerate(data["alternatives"])
            alternatives = tuple(self._alternative(a, (*place, "alternatives", i)) for i, a in branches)
            return Choice(
                data["type"],
                alternatives=alternatives,
                optional=data.get("optional", False),
                line=line,
                **known,
            )
        item = Item(self._blocks(data["blocks"], (*place, "blocks")), data.get("class"))
        known |= {"server": data.get("server"), "term": condition_of(data), "to_end": "while" in data}
        count = data.get("count")
        known |= {"count": None, "fixed": count} if isinstance(count, int) else {"count": count}
        return Repeat(data["type"], item=item, line=line, **known)

    def _alternative(self, data: Mapping[str, Any], place: Place) -> Alternative:
        notation = parse_notation(data["field"])
        tag = _tag(notation.constant, 1 if notation.base in ("Byte1", "Int8") else None)
        if tag is None:
            raise self.source.error(
                place,
                f"the alternative {data['name']} starts with {data['field']!r}",
                "Start it with a tag of one byte, such as Byte1('X') or Int8(16).",
            )
        known = {k: data[k] for k in ("name", "description", "server", "python", "form") if k in data}
        known["term"] = every(condition_of(data), self._switched(data, place))
        then = data.get("then")
        if isinstance(then, list):
            then = Structure(implied([Fields("then", self._fields(then, (*place, "then"), 1))]))
        known |= {"numeric": isinstance(notation.constant, int), "then": then}
        return Alternative(tag=tag, line=self.source.line(place), **known)

    def _switched(self, data: Mapping[str, Any], place: Place) -> Term | None:
        """Return the condition that an option is on: a parameter is set that only this option sets."""
        if "option" not in data:
            return None
        name, rows = data["option"], self.source.data.get("options", ())
        option: Mapping[str, Any] = next((row for row in rows if row["name"] == name), {})
        values = option["values"][1:] if option.get("values") else [option]
        found = [_sets(row) for row in values]
        foreign = (on for row in rows if row is not option for on in (row, *row.get("values", ())))
        others = {each for on in foreign for each in _sets(on)}
        if not all(found) or others & {each for sets in found for each in sets}:
            problem = f"option: {name} does not follow from parameters that this option alone sets"
            remedy = "Write sets at the option, if it is a switch, or at each of its values but the first."
            raise self.source.error((*place, "option"), problem, remedy)
        return some(every(*map(Flag, sets)) for sets in found)

    def _fields(self, data: Sequence[Mapping[str, Any]], place: Place, block: int) -> tuple[Field, ...]:
        fields = (self._field(field, (*place, i), (block, i + 1)) for i, field in enumerate(data))
        return gathered(fields, self.versions)

    def _field(self, data: Mapping[str, Any], place: Place, position: tuple[int, int]) -> Field:
        notation = parse_notation(data["field"])
        if notation.position not in (None, position):
            raise self.source.error(
                place,
                f"{data['field']!r} stands at position {position[0]}_{position[1]}",
                f"Write {position[0]}_{position[1]}_ in front, or no position at all.",
            )
        keys = (
            "name",
            "description",
            "server",
            "length",
            "documented",
            "positional",
            "measures",
            "absent",
            "role",
        )
        known = {k: data[k] for k in keys if k in data} | {"term": condition_of(data)}
        known |= {key: _meanings(data[key]) for key in ("values", "bits") if key in data}
        known["formerly"] = _list(data.get("formerly", ()))
        known["limits"] = {name: term for key in ("values", "bits") for name, term in _limits(data.get(key, {}))}
        found = self._lookup(notation, data.get("signed", False), place)
        line = self.source.line(place)
        return Field(notation=_bare(data["field"]), constant=notation.constant, line=line, **found, **known)

    def _lookup(self, notation: Notation, signed: bool, place: Place) -> dict[str, Any]:
        if notation.base == "Byte1" and notation.constant is not None and not signed:
            return {}
        matches = [t for t in self.types if t.notation == notation.base]
        exact = [t for t in matches if t.signed == signed] or [t for t in matches if t.signed and not signed]
        if exact:
            return {"type": exact[0]}
        parts = [part["name"] for part in self.source.data.get("parts", ())]
        if not signed and notation.base in parts:
            return {"part": notation.base}
        if (block := re.fullmatch(r"Byte([2-9]|[1-9][0-9]{1,3})", notation.base)) and not signed:
            size = int(block[1])
            return {"type": Type(notation.base, f"Data({size})", "bytes", "binary", bytes=size)}
        known = [t.notation for t in self.types if not t.signed]
        hint = " (signed)" if signed else meant(notation.base, [*parts, *known])
        raise self.source.error(
            place,
            f"unknown notation {notation.base!r}{hint}",
            f"Write one of {', '.join(known)}, Byte16 for sixteen bytes, a tag such as Byte1('X'), a constant such as "
            f"Int8(0), or the name of a part{': ' * bool(parts)}{', '.join(parts)}.",
        )


def _tag(constant: bytes | int | None, size: int | None) -> bytes | None:
    """Return a constant of one byte as a tag; None for anything else."""
    if isinstance(constant, int):
        return bytes([constant]) if size == 1 and constant < 256 else None
    return constant


def _sets(data: Mapping[str, Any]) -> tuple[str, ...]:
    return _list(data.get("sets", ()))


def _list(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _meanings(data: Mapping[Any, Any]) -> dict[Any, str]:
    """Return the meanings of values or bits, with or without a condition."""
    return {name: row["meaning"] if isinstance(row, Mapping) else row for name, row in data.items()}


def _limits(data: Mapping[Any, Any]) -> Iterator[tuple[Any, Term]]:
    """Yield the conditions of values or bits."""
    for name, row in data.items():
        if isinstance(row, Mapping) and (term := condition_of(row)) is not None:
            yield name, term


def _bare(text: str) -> str:
    notation = parse_notation(text)
    return text.split("_", 2)[2] if notation.position else text
