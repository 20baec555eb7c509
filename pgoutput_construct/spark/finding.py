"""The tables of a log: which names, columns and keys its rows have, over all alterations."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from pgoutput_construct.changelog.copies import TableCopy
from pgoutput_construct.changelog.facts import TableReading
from pgoutput_construct.columnar import AS_USUAL, Choices
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark.columns import Columns, Numbering, find_columns, read_one, used_ones
from pgoutput_construct.spark.tables import Base, Identity, Place, Refused, Shape, Table, Usage
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.relations import Description, RelationHistory
from pgoutput_construct.wire.messages import Relation
from pgoutput_construct.wire.protocol import RelationColumnFlags, RelationReplicaIdentity

__all__ = ["BY_NAME", "find_tables"]


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


def find_tables(
    history: RelationHistory,
    usages: Iterable[Usage],
    copies: Iterable[TableCopy] = (),
    numbering: Numbering = BY_NAME,
    readings: Mapping[int, Sequence[TableReading]] = MappingProxyType({}),
    choices: Choices = AS_USUAL,
    refused: dict[str, Refused] | None = None,
) -> dict[str, Table]:
    """Return the tables by qualified name, given which descriptions are used where, and the complete ``copies``.

    Tables without any committed change or copy are not among them: PostgreSQL also describes what is not published
    by itself, the partitions of a table that is published as a whole. A table is an OID under the name it had last,
    so its changes before a renaming are its own. Where that is dropped, and another one has the name then, the changes
    under the name are those of both, the state is that of the one that has it now. ``numbering`` tells columns apart;
    ``readings`` are those of the catalog, by OID; ``choices`` the types that the reader wants columns to have. Tables
    that cannot be read come into ``refused`` where that is given, by their names.
    """
    found, copied = list(usages), defaultdict[int, list[TableCopy]](list)
    for copy in copies:
        copied[copy.relation_oid].append(copy)
    latest = _latest(history, found, copied)
    by_oid: dict[int, list[int]] = defaultdict(list)
    for index in latest:
        by_oid[history.descriptions[index].relation.relation_oid].append(index)
    by_name: dict[str, set[int]] = defaultdict(set)
    newer: dict[int, TableReading] = {}
    named: dict[int, TableReading | Relation] = {}
    for oid, indexes in by_oid.items():
        last = max(indexes, key=latest.__getitem__)
        # What was read of the catalog after the last rows is how the table is now.
        later = [each for each in readings.get(oid, ()) if each.snapshot.lsn >= latest[last][0]]
        if later:
            newer[oid] = later[-1]
        # Where a table is gone, the catalog does not say which name it had last.
        there = [each for each in later if not each.gone]
        named[oid] = there[-1] if there else history.descriptions[last].relation
        by_name[full_name(named[oid])].update(indexes)
    tables, gone = {}, {oid for oid, reading in newer.items() if reading.gone}
    for name in sorted(by_name):
        # A table that exists comes before those that had its name, also where they have the later rows.
        oids = {index: history.descriptions[index].relation.relation_oid for index in by_name[name]}
        order = sorted(oids, key=lambda index: (oids[index] not in gone, latest[index]), reverse=True)
        oid = oids[order[0]]
        reading = newer.get(oid)
        try:
            tables[name] = _table(history, order, found, copied, (numbering, choices), reading, named[oid])
        except PgoutputError as error:
            if refused is None:
                raise
            refused[name] = Refused(oid, reading is not None and reading.gone, error)
    return tables


def _latest(
    history: RelationHistory, usages: Iterable[Usage], copied: Mapping[int, Sequence[TableCopy]]
) -> dict[int, Place]:
    """Return where each description is used last; of a table that was copied without a row, those that it has."""
    latest: dict[int, Place] = {}
    for usage in usages:
        latest[usage.description] = max(latest.get(usage.description, usage.last), usage.last)
    used = {history.descriptions[index].relation.relation_oid for index in latest}
    for index, description in enumerate(history.descriptions):
        oid = description.relation.relation_oid
        if oid not in used and oid in copied:
            latest[index] = int(copied[oid][-1].snapshot.lsn), description.seq
    return latest


def _table(
    history: RelationHistory,
    order: Sequence[int],
    usages: Iterable[Usage],
    copied: Mapping[int, Sequence[TableCopy]],
    known: tuple[Numbering, Choices],
    reading: TableReading | None,
    named: TableReading | Relation,
) -> Table:
    """Return a table, given its descriptions, the latest first, and what has its name."""
    numbering, choices = known
    oids = {index: history.descriptions[index].relation.relation_oid for index in order}
    mine = [usage for usage in usages if usage.description in oids]
    own = [usage for usage in mine if oids[usage.description] == oids[order[0]]]
    of_copies = {usage.description for usage in mine if usage.copied}
    used = used_ones([(index, history.descriptions[index], index in of_copies) for index in order], numbering)
    if reading is not None and _tells_columns(reading):
        used.insert(0, read_one(reading, used))
    columns = find_columns(used, numbering, choices)
    latest = history.descriptions[order[0]]
    relation = latest.relation
    return Table(
        namespace=named.namespace,
        name=named.name,
        columns=columns.schema,
        current=columns.current,
        key_columns=_key_columns(latest, columns.names[order[0]], numbering),
        replica_identity=relation.replica_identity,
        identities=_identities(history, own, columns, numbering),
        shapes=_shapes(own, columns),
        relation_oid=relation.relation_oid,
        relation_oids=tuple(sorted({*oids.values()})),
        base=_base(copied.get(relation.relation_oid, ()), own, columns),
        names=columns.names,
        missing=columns.missing,
        defaults={
            name: given
            for index, values in columns.missing.items()
            if oids[index] == relation.relation_oid
            for name, given in values.items()
        },
        segments=tuple(sorted({usage.segment for usage in mine})),
        rows=sum(usage.rows for usage in mine),
        dropped=reading is not None and reading.gone,
        numbers=columns.numbers,
    )


def _tells_columns(reading: TableReading) -> bool:
    """Return whether a reading says which columns a table has in the log: it is published, or has none any more."""
    has_none = not reading.gone and all(column.dropped for column in reading.columns)
    return has_none or any(column.published for column in reading.columns)


def _key_columns(description: Description, names: Sequence[str], numbering: Numbering) -> tuple[str, ...]:
    """Return the columns that tell rows apart: none where the key is not published as a whole, or is the full row."""
    relation = description.relation
    if not numbering.has_whole_key(description):
        return ()
    pairs = zip(relation.columns, names, strict=True)
    marked = tuple(name for column, name in pairs if column.flags & RelationColumnFlags.KEY)
    return () if relation.replica_identity == RelationReplicaIdentity.FULL else marked


def _identities(
    history: RelationHistory, usages: Iterable[Usage], columns: Columns, numbering: Numbering
) -> tuple[Identity, ...]:
    by_description: dict[int, list[Usage]] = defaultdict(list)
    for usage in usages:
        if not usage.copied:
            by_description[usage.description].append(usage)
    found = []
    for index, used in by_description.items():
        relation = history.descriptions[index].relation
        keys = _key_columns(history.descriptions[index], columns.names[index], numbering)
        first, last = min(usage.first for usage in used), max(usage.last for usage in used)
        found.append(Identity(relation.replica_identity, keys, first, last))
    return tuple(sorted(found, key=lambda identity: identity.first))


def _shapes(usages: Iterable[Usage], columns: Columns) -> tuple[Shape, ...]:
    found = sorted((each.first, each.description) for each in usages if not each.copied)
    named = {index: frozenset(columns.names[index]) for index in {index for _, index in found}}
    shapes = [(first, named[index]) for first, index in found]
    return tuple(shape for number, shape in enumerate(shapes) if not number or shapes[number - 1][1] != shape[1])


def _base(copies: Sequence[TableCopy], usages: Iterable[Usage], columns: Columns) -> Base | None:
    if not copies:
        return None
    copy, after = copies[-1], copies[-2].seq if len(copies) > 1 else -1
    mine = [usage for usage in usages if usage.copied and after < usage.first[1] < copy.seq]
    described = [frozenset(columns.names[usage.description]) for usage in mine]
    return Base(copy, after, frozenset(columns.schema.names).intersection(*described))
