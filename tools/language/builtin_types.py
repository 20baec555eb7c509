"""The table of PostgreSQL's built-in types: parsing and validation."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.language.load import check_shape, read_text
from tools.language.source import Place, Source, read

__all__ = ["BuiltinType", "TypeTable", "load_types"]


@dataclass(frozen=True)
class BuiltinType:
    """One row of pg_type; ``size`` is -1 if it varies, ``array_oid`` 0 if there is no array type."""

    name: str
    oid: int
    array_oid: int = 0
    size: int = -1
    arrow: str = "string"
    subtype: str | None = None
    delimiter: str = ","
    sends_text: str = ""
    like: str | None = None

    @property
    def text_like(self) -> str | None:
        """The type whose text format it shares; None: it has its own."""
        alike = self.like or _OF_ARROW.get(self.arrow)
        return alike if alike != self.name else None


@dataclass(frozen=True)
class TypeTable:
    """The rows, and the name of the file."""

    file: str
    types: tuple[BuiltinType, ...]


_OF_ARROW: Final[Mapping[str, str]] = {
    "bool": "bool",
    "int16": "int2",
    "int32": "int4",
    "int64": "int8",
    "float32": "float4",
    "float64": "float8",
    "binary": "bytea",
    "date32": "date",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
}
"""The built-in type whose text each Arrow type is parsed from, unless a type is like another one."""


def load_types(path: Path) -> TypeTable:
    """Read the table; raise SpecError, with file, line and remedy, for a wrong shape, or a duplicate name or OID."""
    source = read(read_text(path), path.name)
    check_shape(source, "builtin_types.schema.json")
    table = TypeTable(source.file, tuple(BuiltinType(**row) for row in source.data["types"]))
    _check(table.types, source)
    return table


def _check(types: tuple[BuiltinType, ...], source: Source) -> None:
    taken: dict[str | int, str] = {}
    for index, row in enumerate(types):
        for identity in _identities(row):
            if identity in taken:
                problem = f"{row.name}: {identity} is already that of {taken[identity]}"
                raise source.error(("types", index), problem, "Write what pg_type has.")
            taken[identity] = row.name
    for index, row in enumerate(types):
        if row.subtype is not None and row.subtype not in taken:
            problem = f"{row.name}: the subtype {row.subtype} is not in the table"
            raise source.error(("types", index, "subtype"), problem, "Write the name of a row, or add the row.")
        _check_like(row, index, {row.name: row for row in types}, source)


def _check_like(row: BuiltinType, index: int, types: Mapping[str, BuiltinType], source: Source) -> None:
    """A type's values can be decoded into its Arrow type."""
    place: Place = ("types", index, "like" if row.like else "arrow")
    if row.like is None:
        if row.arrow == "decimal" and row.name != "numeric":
            problem = f"{row.name}: nothing says how its values become a decimal"
            raise source.error(
                place, problem, "Write like: numeric where it has numeric's formats and modifiers, or another arrow."
            )
        if row.text_like not in types and row.text_like is not None:
            problem = f"{row.name}: its text would be read as that of {row.text_like}, which is not in the table"
            raise source.error(place, problem, f"Add the row {row.text_like}, or write arrow: string.")
        return
    alike = types.get(row.like)
    if alike is None or alike.like or alike is row:
        known = "is like another one itself" if alike else "is not in the table"
        raise source.error(place, f"{row.name} is like {row.like}, which {known}", "Write the name of another row.")
    if (alike.arrow, alike.size) != (row.arrow, row.size):
        problem = f"{row.name} is like {row.like}, but their arrow or size differs"
        raise source.error(place, problem, f"Write arrow: {alike.arrow} and size: {alike.size}, or remove like.")


def _identities(row: BuiltinType) -> Iterator[str | int]:
    """Return what must be unique: names and OIDs, also of array types."""
    yield from (row.name, row.oid)
    if row.array_oid:
        yield from (f"_{row.name}", row.array_oid)
