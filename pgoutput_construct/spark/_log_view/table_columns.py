"""The columns of a table over all its alterations, told apart by attribute number where the log has it; and the
defaults that older rows have in columns that were added later.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._facts.catalog_readings import TableReading
from pgoutput_construct.changelog._facts.lineage import Lineage
from pgoutput_construct.changelog._facts.numbering import ColumnId, column_ids
from pgoutput_construct.columnar import AS_USUAL, Choices, columns_schema, unify
from pgoutput_construct.pgtypes.arrow_types import UNTYPED
from pgoutput_construct.pgtypes.column_reader import ColumnReader
from pgoutput_construct.pgtypes.family import CannotHold
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.stream.rows import OPERATIONS, SNAPSHOT
from pgoutput_construct.wire.messages import Delete, Relation, RelationColumn, Truncate, Type

_NEXT: Final = 2**63 - 1


class UsedDescription(NamedTuple):
    """Equal descriptions of a table that describe some of its rows."""

    seqs: dict[int, int]
    """Their seqs in the log, by their indexes in the history; empty for what the catalog says."""
    description: Description
    """The first of them in the log."""
    numbers: tuple[int, ...] | None
    """The attribute numbers of the columns, None where they are unknown."""
    copied: bool
    """Whether the rows are of a table copy."""

    @property
    def oid(self) -> int:
        """The OID of the table."""
        return self.description.relation.relation_oid

    @property
    def columns(self) -> tuple[RelationColumn, ...]:
        """The columns as they were described."""
        return self.description.relation.columns


class ColumnDefault(NamedTuple):
    """The default that rows have in a column that was added after them."""

    column: RelationColumn
    """The column as it was described first."""
    types: Mapping[int, Type]
    text: str
    """The value as PostgreSQL's text."""


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table."""

    schema: pa.Schema
    """All that it ever had in the log, typed; the present ones come first, in their order."""
    current: tuple[str, ...]
    """The present ones."""
    names: Mapping[int, tuple[str, ...]]
    """The names of the columns of each description in ``schema``, by its index in the history."""
    missing: Mapping[int, Mapping[str, ColumnDefault]]
    """The defaults that the rows of a description have in columns that were added later, by name."""
    numbers: Mapping[str, int]
    """The attribute numbers of the latest description's columns, where they are known."""


def group_descriptions(
    descriptions: Iterable[tuple[int, Description, bool]], lineage: Lineage
) -> list[UsedDescription]:
    """Group equal descriptions; each is given by its index, and whether its rows are of a copy.

    Groups are in the order of their first members.
    """
    found: dict[tuple[object, ...], UsedDescription] = {}
    for index, description, copied in descriptions:
        relation, types = description.relation, sorted(description.types.items())
        numbers = lineage.numbers(description)
        content = relation.relation_oid, relation.namespace, relation.name, relation.replica_identity, relation.columns
        known = found.setdefault((*content, *types, numbers, copied), UsedDescription({}, description, numbers, copied))
        known.seqs[index] = description.seq
        if description.seq < known.description.seq:
            found[*content, *types, numbers, copied] = known._replace(description=description)
    return list(found.values())


def catalog_description(reading: TableReading, known: Sequence[UsedDescription]) -> UsedDescription:
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
    return UsedDescription({}, Description(_NEXT, relation, types), tuple(column.number for column in columns), False)


def find_columns(used: Sequence[UsedDescription], lineage: Lineage, choices: Choices = AS_USUAL) -> TableColumns:
    """Return the columns of a table.

    A renamed column has its latest name. A dropped one, whose name another column has now, is called
    ``name_dropped_number``. Tables that had the same name share columns of equal names. Types become wide enough for
    all values.

    Args:
        used: The descriptions of its rows, the latest first.
        lineage: Tells columns apart by attribute number.
        choices: The types chosen for columns.
    """
    names: dict[int, tuple[str, ...]] = {}
    missing: dict[int, dict[str, ColumnDefault]] = {}
    numbers: dict[str, int] | None = None
    named: list[tuple[UsedDescription, tuple[str, ...]]] = []
    for oid in dict.fromkeys(each.oid for each in used):
        mine = [each for each in used if each.oid == oid]
        identities = _identities(mine)
        called = _column_names(mine, identities)
        if numbers is None:
            numbers = {name: number for number, name in called.items() if isinstance(number, int)}
        missing |= _missing(mine, identities, called, lineage)
        for each, own in zip(mine, identities, strict=True):
            named.append((each, tuple(called[one] for one in own)))
            names |= dict.fromkeys(each.seqs, named[-1][1])
    return TableColumns(_unified_schema(named, choices), named[0][1], names, missing, numbers or {})


def _identities(used: Sequence[UsedDescription]) -> list[tuple[ColumnId, ...]]:
    """Return which column is which in descriptions of one table, in their order."""
    order = sorted(range(len(used)), key=lambda number: used[number].description.seq)
    ids = column_ids((tuple(column.name for column in used[each].columns), used[each].numbers) for each in order)
    return [found for _, found in sorted(zip(order, ids, strict=True))]


def _column_names(used: Sequence[UsedDescription], identities: Sequence[tuple[ColumnId, ...]]) -> dict[ColumnId, str]:
    """Return the name of each column, which no other has."""
    called: dict[ColumnId, str] = {}
    for each, own in zip(used, identities, strict=True):
        for column, identity in zip(each.columns, own, strict=True):
            if identity not in called:
                called[identity] = _unique_name(column.name, identity, set(called.values()))
    return called


def _unique_name(name: str, identity: ColumnId, taken: set[str]) -> str:
    found = name if name not in taken else f"{name}_dropped_{identity}"
    while found in taken:
        found += "_"
    return found


def _missing(
    used: Sequence[UsedDescription],
    identities: Sequence[tuple[ColumnId, ...]],
    called: Mapping[ColumnId, str],
    lineage: Lineage,
) -> dict[int, dict[str, ColumnDefault]]:
    """Return the defaults that the rows of each description have in columns that were added later."""
    first: dict[ColumnId, tuple[int, ColumnDefault]] = {}
    for each, own in sorted(zip(used, identities, strict=True), key=lambda pair: pair[0].description.seq):
        for column, number in zip(each.columns, own, strict=True):
            text = lineage.missing(each.oid, number) if isinstance(number, int) and number not in first else None
            if text is not None:
                first[number] = each.description.seq, ColumnDefault(column, each.description.types, text)
    found: dict[int, dict[str, ColumnDefault]] = {}
    for each, own in zip(used, identities, strict=True):
        # Rows that are copied under an older snapshot come into the log after the column.
        given = identities[0] if each.copied else ()
        others = {one: value for one, value in first.items() if one not in own}
        for index, here in each.seqs.items():
            late = {called[one]: value for one, (seq, value) in others.items() if here < seq or one in given}
            found |= {index: late} if late else {}
    return found


def _unified_schema(named: Iterable[tuple[UsedDescription, tuple[str, ...]]], choices: Choices) -> pa.Schema:
    kinds: dict[str, pa.DataType] = {}
    for each, names in named:
        for field, name in zip(columns_schema(each.description, choices), names, strict=True):
            kinds[name] = unify(kinds.get(name, field.type), field.type)
    return pa.schema(list(kinds.items()))


_WITHOUT_ROW: Final = (OPERATIONS[Delete], OPERATIONS[Truncate])


def with_column_defaults(batch: pa.RecordBatch, missing: Mapping[str, ColumnDefault]) -> pa.RecordBatch:
    """Put defaults into the new rows of a batch, by column; these are null there.

    PostgreSQL stores such a value in pg_attribute.attmissingval, and rewrites no row for it.
    """
    if not missing:
        return batch
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    # Not a constant: an array of Python objects imports pandas, which processes that only plan do not need.
    has_row = pc.invert(pc.is_in(batch.column("_op"), pa.array(_WITHOUT_ROW)))
    texts: dict[str, str] = {}
    for name, given in missing.items():
        kind = batch.schema.field(name).type
        reader = ColumnReader(given.column, given.types, kind)
        try:
            value = pa.scalar(reader.load(given.text.encode()), kind)
            columns[name] = pc.if_else(has_row, value, pa.scalar(None, kind))
        except CannotHold:
            texts[name] = reader.text(given.text.encode())
    if texts:
        columns["_untyped"] = _with_texts(columns["_untyped"], texts, has_row.to_pylist())
    return pa.RecordBatch.from_arrays([columns[name] for name in batch.schema.names], schema=batch.schema)


def default_row(columns: pa.Schema, missing: Mapping[str, ColumnDefault]) -> pa.RecordBatch | None:
    """Return one row of the columns that have defaults, and ``_untyped``; None for no columns."""
    if not missing:
        return None
    schema = pa.schema([*(columns.field(name) for name in missing), ("_op", pa.string()), ("_untyped", UNTYPED)])
    nothing = pa.RecordBatch.from_pylist([{"_op": SNAPSHOT}], schema)
    return with_column_defaults(nothing, missing).drop_columns("_op")


def _with_texts(untyped: pa.Array, texts: Mapping[str, str], chosen: Sequence[bool]) -> pa.Array:
    rows = zip(untyped.to_pylist(), chosen, strict=True)
    return pa.array([[*(row or ()), *texts.items()] if more else row for row, more in rows], untyped.type)
