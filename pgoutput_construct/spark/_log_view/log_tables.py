"""The tables of a log as of a seq, from its index: which Relations describe committed rows, and the tables of these."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.changelog._facts.catalog_readings import TableReading, table_readings
from pgoutput_construct.changelog._facts.completeness import present_copies
from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._facts.lineage import Lineage, lineage_of
from pgoutput_construct.changelog._index.log_index import LogIndex, LogPoint
from pgoutput_construct.changelog._index.row_counts import COPIED
from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.changelog.reader import ChangeLog, explain, index_as_of
from pgoutput_construct.columnar import AS_USUAL, Choices, chosen_types
from pgoutput_construct.columnar.descriptions import UNDESCRIBED
from pgoutput_construct.errors import ChangeLogError, EngineError, PgoutputError
from pgoutput_construct.spark._log_view.committed_rows import LogPlan, log_plan, run_bounds
from pgoutput_construct.spark._log_view.replicated_tables import BaseCopy, ChangePosition, ColumnsSince, Identity, Table
from pgoutput_construct.spark._log_view.table_columns import (
    TableColumns,
    catalog_description,
    find_columns,
    group_descriptions,
)
from pgoutput_construct.stream.identifiers import full_name, normal_name
from pgoutput_construct.stream.relations import Description, RelationHistory
from pgoutput_construct.wire.engine import parse
from pgoutput_construct.wire.messages import Relation
from pgoutput_construct.wire.protocol import RelationColumnFlags, RelationReplicaIdentity


class Usage(NamedTuple):
    """How many committed rows of one segment one Relation describes, and where."""

    segment_index: int
    """Index of the segment in the log."""
    description: int
    """Index in the history's descriptions."""
    rows: int
    """Number of rows (a truncate counts as one)."""
    first: ChangePosition
    """Position of the first of them."""
    last: ChangePosition
    """Position of the last of them."""
    copied: bool = False
    """Whether they are of a table copy."""


class UnreadableTable(NamedTuple):
    """A published table that cannot be read, such as one with a column whose name is not UTF-8."""

    relation_oid: int
    """The OID of the table that has the name now."""
    relation_oids: tuple[int, ...]
    """The OIDs of the tables that had the name last."""
    dropped: bool
    """Whether it was dropped."""
    error: PgoutputError
    """Why it cannot be read."""


@dataclass(frozen=True)
class LogTables:
    """The tables of a log as of a seq."""

    log: ChangeLog
    point: LogPoint
    """As of when they are."""
    index: LogIndex
    plan: LogPlan
    tables: Mapping[str, Table]
    """The tables that can be read, by qualified name."""
    types: str = ""
    """The types chosen for columns, as they were given."""
    refused: Mapping[str, UnreadableTable] = field(default_factory=dict)
    """The tables that cannot be read, by name."""
    lineage: Lineage = field(default_factory=Lineage)
    """What the log knows of columns besides their names."""

    @classmethod
    def from_log(
        cls, log: ChangeLog, as_of: LogPoint | int | None = None, types: str = "", *, allow_undescribed: bool = False
    ) -> "LogTables":
        """Find the tables of a log; raises as ``spark.open_log`` does.

        Args:
            log: The log.
            as_of: The point as of which it is read, or its last seq; None for all of it.
            types: The types chosen for columns, as in ``open_log``.
            allow_undescribed: Whether rows that no Relation describes, such as those that are malformed before they
                name their table, are no error.
        """
        choices = chosen_types(types)
        end = log.index.last_seq
        point = as_of if isinstance(as_of, LogPoint) else LogPoint(end if as_of is None else as_of)
        point = point if point.known is not None else point._replace(known=end)
        index = index_as_of(log, point)
        plan = log_plan(log, index)
        runs = committed_runs(index, plan)
        is_known = runs.column("description") != UNDESCRIBED
        for run in np.flatnonzero(~is_known).tolist() if not allow_undescribed else ():
            raise _undescribed(log, plan, int(runs.column("first_seq")[run]), int(runs.column("oid")[run]))
        found = present_copies(index), lineage_of(index), table_readings(index)
        refused: dict[str, UnreadableTable] = {}
        tables = find_tables(plan.history, find_usages(runs.take(is_known), plan), *found, choices, refused)
        return cls(log, point, index, plan, tables, types, refused, found[1])

    @property
    def as_of(self) -> int:
        """The last seq: everything that ended by it is included."""
        return self.point.seq

    def table(self, name: str) -> Table:
        """Return what is known of a table, named as in SQL; raise ChangeLogError where the log does not have it.

        Raises another PgoutputError where it cannot be read.
        """
        known = normal_name(name)
        if known in self.refused:
            raise self.refused[known].error
        if known not in self.tables:
            raise ChangeLogError(f"the log has no table {known}: it has {', '.join(self.tables) or 'none'}")
        return self.tables[known]


def _undescribed(log: ChangeLog, plan: LogPlan, seq: int, oid: int) -> ChangeLogError:
    """Return the error of a row that no Relation describes: malformed bytes explain it better."""
    entry = log.entry(seq)
    try:
        parse(entry.payload, **log.segment(seq).options.layout() | entry.states)
        plan.history.index(oid, seq, entry.scope)
    except PgoutputError as error:
        return explain(entry, error)
    raise EngineError(f"seq {seq}: the description of the relation OID {oid} is not found: please report this")


def find_tables(
    history: RelationHistory,
    usages: Iterable[Usage],
    copies: Iterable[TableCopy] = (),
    lineage: Lineage | None = None,
    readings: Mapping[int, Sequence[TableReading]] = MappingProxyType({}),
    choices: Choices = AS_USUAL,
    refused: dict[str, UnreadableTable] | None = None,
) -> dict[str, Table]:
    """Return the tables by qualified name.

    Tables without a committed change or a copy are not included: PostgreSQL also describes what is not published
    itself, such as the partitions of a table that is published as a whole. A table is an OID under the name that it had
    last, so that its changes before a renaming are its own. Where it was dropped and another table has its name now,
    the changes under the name are those of both, the state is that of the present one.

    Args:
        history: The descriptions.
        usages: Which descriptions are used where.
        copies: The complete table copies.
        lineage: Tells columns apart by attribute number; None: by name.
        readings: What the catalog said, by OID.
        choices: The types chosen for columns.
        refused: Takes the tables that cannot be read, by name, whatever the class of the error is; None to raise the
            first error.
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
        # A reading of the catalog after the last rows is the present state of the table.
        later = [each for each in readings.get(oid, ()) if each.snapshot.lsn >= latest[last][0]]
        if later:
            newer[oid] = later[-1]
        # The catalog does not have the last name of a dropped table.
        existing = [each for each in later if not each.gone]
        named[oid] = existing[-1] if existing else history.descriptions[last].relation
        by_name[full_name(named[oid])].update(indexes)
    tables, dropped = {}, {oid for oid, reading in newer.items() if reading.gone}
    for name in sorted(by_name):
        # A table that exists comes before dropped ones with its name, even if these have later rows.
        oids = {index: history.descriptions[index].relation.relation_oid for index in by_name[name]}
        order = sorted(oids, key=lambda index: (oids[index] not in dropped, latest[index]), reverse=True)
        oid = oids[order[0]]
        reading = newer.get(oid)
        try:
            table = _table(history, order, found, copied, (lineage or Lineage(), choices), reading, named[oid])
            tables[name] = replace(table, comments=_comments(readings.get(oid, ())))
        except OSError:  # not of the table: its plan reads no file
            raise
        except Exception as error:  # of any class: the other tables are still read
            if refused is None:
                raise
            is_gone, known = reading is not None and reading.gone, tuple(sorted({*oids.values()}))
            refused[name] = UnreadableTable(oid, known, is_gone, _own_error(name, error))
    return tables


def _comments(readings: Sequence[TableReading]) -> Mapping[int, str] | None:
    """Return the comments of the latest reading of a table that has any facts."""
    existing = [each for each in readings if not each.gone]
    return existing[-1].comments if existing else None


def _own_error(name: str, error: Exception) -> PgoutputError:
    """Return the error of a table that cannot be read: one of this package, or what names another one."""
    if isinstance(error, PgoutputError):
        return error
    unexpected = EngineError(f"{name}: it cannot be read: {type(error).__name__}: {error}: please report this")
    unexpected.__cause__ = error
    return unexpected


def _latest(
    history: RelationHistory, usages: Iterable[Usage], copied: Mapping[int, Sequence[TableCopy]]
) -> dict[int, ChangePosition]:
    """Return the last use of each description; of a table that was copied without a row, those that it has."""
    latest: dict[int, ChangePosition] = {}
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
    known: tuple[Lineage, Choices],
    reading: TableReading | None,
    named: TableReading | Relation,
) -> Table:
    """Return a table, given its descriptions, the latest first, and what has its name."""
    lineage, choices = known
    oids = {index: history.descriptions[index].relation.relation_oid for index in order}
    mine = [usage for usage in usages if usage.description in oids]
    own = [usage for usage in mine if oids[usage.description] == oids[order[0]]]
    of_copies = {usage.description for usage in mine if usage.copied}
    used = group_descriptions([(index, history.descriptions[index], index in of_copies) for index in order], lineage)
    if reading is not None and _has_columns(reading):
        used.insert(0, catalog_description(reading, used))
    columns = find_columns(used, lineage, choices)
    latest = history.descriptions[order[0]]
    relation = latest.relation
    return Table(
        namespace=named.namespace,
        name=named.name,
        columns=columns.schema,
        current=columns.current,
        key_columns=_key_columns(latest, columns.names[order[0]], lineage),
        replica_identity=relation.replica_identity,
        identities=_identities(history, own, columns, lineage),
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
        segment_indexes=tuple(sorted({usage.segment_index for usage in mine})),
        rows=sum(usage.rows for usage in mine),
        dropped=reading is not None and reading.gone,
        numbers=columns.numbers,
    )


def _has_columns(reading: TableReading) -> bool:
    """Return whether a reading has the columns of a table in the log: it is published, or has no column left."""
    has_none = not reading.gone and all(column.dropped for column in reading.columns)
    return has_none or any(column.published for column in reading.columns)


def _key_columns(description: Description, names: Sequence[str], lineage: Lineage) -> tuple[str, ...]:
    """Return the columns of the key: none if it is not published as a whole, or is the full row."""
    relation = description.relation
    if not lineage.has_whole_key(description):
        return ()
    pairs = zip(relation.columns, names, strict=True)
    marked = tuple(name for column, name in pairs if column.flags & RelationColumnFlags.KEY)
    return () if relation.replica_identity == RelationReplicaIdentity.FULL else marked


def _identities(
    history: RelationHistory, usages: Iterable[Usage], columns: TableColumns, lineage: Lineage
) -> tuple[Identity, ...]:
    by_description: dict[int, list[Usage]] = defaultdict(list)
    for usage in usages:
        if not usage.copied:
            by_description[usage.description].append(usage)
    found = []
    for index, used in by_description.items():
        relation = history.descriptions[index].relation
        keys = _key_columns(history.descriptions[index], columns.names[index], lineage)
        first, last = min(usage.first for usage in used), max(usage.last for usage in used)
        found.append(Identity(relation.replica_identity, keys, first, last))
    return tuple(sorted(found, key=lambda identity: identity.first))


def _shapes(usages: Iterable[Usage], columns: TableColumns) -> tuple[ColumnsSince, ...]:
    found = sorted((each.first, each.description) for each in usages if not each.copied)
    named = {index: frozenset(columns.names[index]) for index in {index for _, index in found}}
    shapes = [(first, named[index]) for first, index in found]
    return tuple(shape for number, shape in enumerate(shapes) if not number or shapes[number - 1][1] != shape[1])


def _base(copies: Sequence[TableCopy], usages: Iterable[Usage], columns: TableColumns) -> BaseCopy | None:
    if not copies:
        return None
    copy, after = copies[-1], copies[-2].seq if len(copies) > 1 else -1
    mine = [usage for usage in usages if usage.copied and after < usage.first[1] < copy.seq]
    described = [frozenset(columns.names[usage.description]) for usage in mine]
    return BaseCopy(copy, after, frozenset(columns.schema.names).intersection(*described))


@dataclass(frozen=True)
class CommittedRuns:
    """Runs of committed rows with the same segment, table, Relation and outcome."""

    table: pa.Table
    """Entries of the index's ``rows``."""
    segment_indexes: Numbers
    """Index in the log of the segment of each run."""
    first_origins: Numbers
    """The transaction or copy of the first row of each, see ``LogPlan.origins_at``."""
    last_origins: Numbers
    """The same of its last row."""

    def column(self, name: str) -> Numbers:
        """Return a numeric column of the runs."""
        numbers: Numbers = self.table[name].to_numpy()
        return numbers

    def take(self, mask: NDArray[np.bool_]) -> "CommittedRuns":
        """Return the runs that a mask selects."""
        columns = self.segment_indexes, self.first_origins, self.last_origins
        return CommittedRuns(self.table.filter(pa.array(mask)), *(column[mask] for column in columns))


def committed_runs(index: SegmentIndex, plan: LogPlan) -> CommittedRuns:
    """Return the runs of rows of committed transactions, and of complete copies."""
    table, segment_indexes = index.located("rows")
    first_seq, last_seq, xids = (table[name].to_numpy() for name in ("first_seq", "last_seq", "xid"))
    chunks = np.where(table["span"].to_numpy() == COPIED, xids, -1)
    origins, found = plan.origins_at(first_seq, xids, chunks)
    last_origins, _ = plan.origins_at(last_seq, xids, chunks)
    return CommittedRuns(table.filter(pa.array(found)), segment_indexes[found], origins[found], last_origins[found])


def find_usages(runs: CommittedRuns, plan: LogPlan) -> Iterator[Usage]:
    """Yield how each description is used in each segment; all rows must be described."""
    if not len(runs.segment_indexes):
        return
    known = np.array([description.seq for description in plan.history.descriptions], np.int64)
    keys = np.stack([runs.segment_indexes, np.searchsorted(known, runs.column("description"))])
    first_lsns, last_lsns = (plan.column("commit_lsn")[each] for each in (runs.first_origins, runs.last_origins))
    first = plan.positions(runs.first_origins, runs.column("first_seq"))
    last = plan.positions(runs.last_origins, runs.column("last_seq"))
    by_first, by_last = np.lexsort((first, first_lsns, *keys)), np.lexsort((last, last_lsns, *keys))
    starts, ends = run_bounds(keys[:, by_first])
    counts = np.add.reduceat(runs.column("count")[by_first], starts)
    head, tail = by_first[starts], by_last[ends]
    numbers = [column.tolist() for column in (*keys[:, head], counts)]
    firsts = zip(first_lsns[head].tolist(), first[head].tolist(), strict=True)
    lasts = zip(last_lsns[tail].tolist(), last[tail].tolist(), strict=True)
    copied = runs.first_origins[head] >= len(plan.spans.xid)
    yield from map(Usage, *numbers, firsts, lasts, copied.tolist())
