"""Which columns a table has over all its alterations: told apart by attribute number, where the log knows it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from pgoutput_construct.changelog._facts.catalog_readings import TableReading
from pgoutput_construct.columnar import AS_USUAL, Choices, columns_schema, unify
from pgoutput_construct.spark.replicated_tables import Missing
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.wire.messages import Relation, RelationColumn

__all__ = ["BY_NAME", "Columns", "Numbering", "Used", "find_columns", "read_one", "used_ones"]

_NEXT: Final = 2**63 - 1

_Attribute: TypeAlias = int | str
"""What a column is, among those of one OID: its attribute number, or its name where that is not known."""


class Numbering(Protocol):
    """What is known of columns besides their names (changelog/lineage.py)."""

    def numbers(self, description: Description) -> tuple[int, ...] | None:
        """Return the attribute number of each column, None where they are not known."""

    def has_whole_key(self, description: Description) -> bool:
        """Return whether the key that a description marks is the whole replica identity."""

    def missing(self, relation_oid: int, number: int) -> str | None:
        """Return the text of what a column has in rows that are older than it; None for NULL."""


class _ByName:
    """What a log without facts of the catalog knows of columns."""

    def numbers(self, description: Description) -> None:
        """Know no attribute number."""

    def has_whole_key(self, description: Description) -> bool:
        """Take every key for a whole one."""
        return True

    def missing(self, relation_oid: int, number: int) -> None:
        """Know no default."""


BY_NAME: Final = _ByName()
"""Of columns nothing is known but their names."""


class Used(NamedTuple):
    """Descriptions of a table that say the same, and describe some of its rows."""

    seqs: dict[int, int]
    """Where they stand in the log, by their indexes in the history; nowhere for what the catalog says."""
    description: Description
    """The first of them in the log."""
    numbers: tuple[int, ...] | None
    """The attribute numbers of its columns, None where they are not known."""
    copied: bool
    """Whether the rows were copied from the table."""

    @property
    def oid(self) -> int:
        """The OID of the table."""
        return self.description.relation.relation_oid

    @property
    def columns(self) -> tuple[RelationColumn, ...]:
        """The columns as they were described."""
        return self.description.relation.columns


@dataclass(frozen=True)
class Columns:
    """The columns of a table."""

    schema: pa.Schema
    """All that it ever had in the log, typed; those it has now come first, in their order."""
    current: tuple[str, ...]
    """Those that it has now."""
    names: Mapping[int, tuple[str, ...]]
    """What the columns of each description are called here, by its index in the history."""
    missing: Mapping[int, Mapping[str, Missing]]
    """What the rows of a description have in columns that came later, by the names of these."""
    numbers: Mapping[str, int]
    """The attribute numbers of those of the latest description's table, where they are known."""


def used_ones(descriptions: Iterable[tuple[int, Description, bool]], numbering: Numbering) -> list[Used]:
    """Put descriptions together that say the same; each is given by its index, and whether its rows were copied.

    They stay in their order, each where the first of it is.
    """
    found: dict[tuple[object, ...], Used] = {}
    for index, description, copied in descriptions:
        relation, types = description.relation, sorted(description.types.items())
        numbers = numbering.numbers(description)
        said = relation.relation_oid, relation.namespace, relation.name, relation.replica_identity, relation.columns
        known = found.setdefault((*said, *types, numbers, copied), Used({}, description, numbers, copied))
        known.seqs[index] = description.seq
        if description.seq < known.description.seq:
            found[*said, *types, numbers, copied] = known._replace(description=description)
    return list(found.values())


def read_one(reading: TableReading, known: Sequence[Used]) -> Used:
    """Return what the catalog says of a table as the description of the rows that come next."""
    columns = [column for column in reading.columns if column.published and not column.dropped]
    types = {oid: kind for each in reversed(known) for oid, kind in each.description.types.items()}
    relation = Relation(
        None,
        reading.oid,
        reading.namespace,
        reading.name,
        reading.replica_identity,
        tuple(RelationColumn(0, *column.shape) for column in columns),
    )
    return Used({}, Description(_NEXT, relation, types), tuple(column.number for column in columns), False)


def find_columns(used: Sequence[Used], numbering: Numbering, choices: Choices = AS_USUAL) -> Columns:
    """Return the columns of a table, given the descriptions of its rows, the latest first.

    A column that was renamed has its latest name. One that was dropped, whose name another one has now, is called
    ``name_dropped_number``. Tables that had one name after the other share columns of equal names. Types become wide
    enough for all values; ``choices`` are those that the reader wants.
    """
    names: dict[int, tuple[str, ...]] = {}
    missing: dict[int, dict[str, Missing]] = {}
    numbers: dict[str, int] | None = None
    named: list[tuple[Used, tuple[str, ...]]] = []
    for oid in dict.fromkeys(each.oid for each in used):
        mine = [each for each in used if each.oid == oid]
        identities = [_identities(each, mine) for each in mine]
        called = _called(mine, identities)
        if numbers is None:
            numbers = {name: number for number, name in called.items() if isinstance(number, int)}
        missing |= _missing(mine, identities, called, numbering)
        for each, own in zip(mine, identities, strict=True):
            named.append((each, tuple(called[one] for one in own)))
            names |= dict.fromkeys(each.seqs, named[-1][1])
    return Columns(_united(named, choices), named[0][1], names, missing, numbers or {})


def _identities(used: Used, all_used: Iterable[Used]) -> tuple[_Attribute, ...]:
    """Return what columns are; of which only the names are known, what had them last, or has them next."""
    if used.numbers is not None:
        return used.numbers
    seq, numbers = used.description.seq, dict[str, _Attribute]()
    for other in sorted(all_used, key=lambda other: _distance(other.description.seq, seq)):
        for column, number in zip(other.columns, other.numbers or (), strict=False):
            numbers.setdefault(column.name, number)
    return tuple(numbers.get(column.name, column.name) for column in used.columns)


def _distance(seq: int, here: int) -> tuple[bool, int]:
    return seq > here, abs(seq - here)


def _called(used: Sequence[Used], identities: Sequence[tuple[_Attribute, ...]]) -> dict[_Attribute, str]:
    """Return the name of each column, which is that of no other."""
    called: dict[_Attribute, str] = {}
    for each, own in zip(used, identities, strict=True):
        for column, identity in zip(each.columns, own, strict=True):
            if identity not in called:
                called[identity] = _free(column.name, identity, set(called.values()))
    return called


def _free(name: str, identity: _Attribute, taken: set[str]) -> str:
    found = name if name not in taken else f"{name}_dropped_{identity}"
    while found in taken:
        found += "_"
    return found


def _missing(
    used: Sequence[Used],
    identities: Sequence[tuple[_Attribute, ...]],
    called: Mapping[_Attribute, str],
    numbering: Numbering,
) -> dict[int, dict[str, Missing]]:
    """Return what the rows of each description have in the columns that came later."""
    first: dict[_Attribute, tuple[int, Missing]] = {}
    for each, own in sorted(zip(used, identities, strict=True), key=lambda pair: pair[0].description.seq):
        for column, number in zip(each.columns, own, strict=True):
            text = numbering.missing(each.oid, number) if isinstance(number, int) and number not in first else None
            if text is not None:
                first[number] = each.description.seq, Missing(column, each.description.types, text)
    found: dict[int, dict[str, Missing]] = {}
    for each, own in zip(used, identities, strict=True):
        # Rows that are copied under an older snapshot come into the log after the column.
        given = identities[0] if each.copied else ()
        others = {one: value for one, value in first.items() if one not in own}
        for index, here in each.seqs.items():
            late = {called[one]: value for one, (seq, value) in others.items() if here < seq or one in given}
            found |= {index: late} if late else {}
    return found


def _united(named: Iterable[tuple[Used, tuple[str, ...]]], choices: Choices) -> pa.Schema:
    kinds: dict[str, pa.DataType] = {}
    for each, names in named:
        for field, name in zip(columns_schema(each.description, choices), names, strict=True):
            kinds[name] = unify(kinds.get(name, field.type), field.type)
    return pa.schema(list(kinds.items()))
