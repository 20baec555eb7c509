"""The table of PostgreSQL's built-in types: reading and checking it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.language.load import check_shape, read_text
from tools.language.source import Source, read

__all__ = ["BuiltinType", "TypeTable", "load_types"]


@dataclass(frozen=True)
class BuiltinType:
    """One row of pg_type; ``size`` is -1 where it varies, ``array_oid`` 0 where there is no array of it."""

    name: str
    oid: int
    array_oid: int = 0
    size: int = -1
    arrow: str = "string"
    subtype: str | None = None
    delimiter: str = ","
    sends_text: str = ""


@dataclass(frozen=True)
class TypeTable:
    """The rows, and the name of the file they came from."""

    file: str
    types: tuple[BuiltinType, ...]


def load_types(path: Path) -> TypeTable:
    """Read the table; raise SpecError with file, line and remedy for a wrong shape, or a name or OID used twice."""
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


def _identities(row: BuiltinType) -> Iterator[str | int]:
    """Return what no two types may share: names and OIDs, those of the array type too."""
    yield from (row.name, row.oid)
    if row.array_oid:
        yield from (f"_{row.name}", row.array_oid)
