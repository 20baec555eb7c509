"""A table whose replica identity changes inside the log: replayed in phases, each by the identity it had then."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import groupby, pairwise
from typing import Final, Literal, TypeAlias, get_args

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.changelog.copies import snapshot_command
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark.change_frames import BEFORE_ALL, Seen, at_place, column, place
from pgoutput_construct.spark.counting import counting
from pgoutput_construct.spark.execution import AS_IT_COMES, Demand, as_leaf, plain_errors, refuse
from pgoutput_construct.spark.outcomes import unfound
from pgoutput_construct.spark.replicated_tables import Identity, Place, Table
from pgoutput_construct.spark.schema_evolution import shapes_of, stored_rows, with_shapes
from pgoutput_construct.spark.state import Step, stepped
from pgoutput_construct.wire.protocol import RelationReplicaIdentity

__all__ = [
    "OnMissing",
    "Within",
    "advance",
    "check_on_missing",
    "demand_of",
    "find_phases",
    "missing_rows",
    "phases_of",
    "placed",
    "with_keys",
]

OnMissing: TypeAlias = Literal["error", "report"]
"""What becomes of a change of a row that must be there and is not."""

Within: TypeAlias = Callable[[Place | None, Place | None], DataFrame]
"""Reads the changes from one place up to another, None for no limit; there may be more than these."""

_WORDS: Final[Mapping[str, str]] = {
    RelationReplicaIdentity.DEFAULT: "primary key",
    RelationReplicaIdentity.INDEX: "index",
    RelationReplicaIdentity.FULL: "full row",
    RelationReplicaIdentity.NOTHING: "nothing",
}
_NO_CHANGE: Final = Identity(RelationReplicaIdentity.NOTHING, (), (0, 0), (0, 0))
"""What tells rows apart where no change of them counts."""
_REMEDY: Final = "the changes can still be read; to have the state, copy the table: {}"


def advance(
    before: DataFrame | None,
    changes: DataFrame,
    table: Table,
    on_missing: OnMissing = "error",
    seen: Seen | None = None,
    is_small: bool = False,
    is_whole: bool = False,
    within: Within | None = None,
) -> DataFrame:
    """Return the rows of a table after ``changes``: its columns, ``_untyped``, ``_commit_lsn`` and ``_seq``.

    The last two are of the change that a row is from; of a copied row, the snapshot's LSN and its position in the log.
    ``before`` are the rows before, as this function returns them, None for no row; ``changes`` are then those that
    came since. Rows that they do not touch are not shuffled where the changes are few. A column that was added has
    its default in the rows before. Anything else needs a start from scratch, without ``before``: a new
    copy, other types, renamed columns, another table under the name (``Table.relation_oid``).

    Without ``before`` the rows are those of the latest copy, and what the changes that count made of them. Changes
    are applied in phases, each by the identity the table had then. An action fails when the log does not have the new
    key of a row: when its columns were renamed, or got their values from ALTER TABLE, and the log does not say so;
    and when a change leaves a value open that no row has. Where ``is_whole`` says that the rows before and the
    changes, each of them once, are all that the table had (``OpenLog.is_whole``), it fails for every update and
    delete of a row that is not there. With ``on_missing`` ``report`` these do not fail: a value that no row has is
    null, and they are among ``missing_rows``. ``seen`` is what is known of the changes already. ``is_small`` says
    that the rows before are so few that shuffling them all costs less than looking for those that are touched.
    ``within`` reads the changes of a phase, where that costs less than to read all of them for each. Raises
    ChangeLogError as ``counting`` does.
    """
    demand = demand_of(table, on_missing, is_whole)
    rows, _ = _walk(before, changes, table, seen, demand, within, is_small=is_small)
    return rows


def check_on_missing(on_missing: str) -> None:
    """Raise PgoutputError for what is no OnMissing."""
    if on_missing not in get_args(OnMissing):
        raise PgoutputError(f"on_missing is {on_missing!r}: it is one of {', '.join(get_args(OnMissing))}")


def demand_of(table: Table, on_missing: OnMissing, is_whole: bool) -> Demand:
    """Return what is asked of the changes of a table."""
    return Demand(rows=is_whole, table=table.qualified) if on_missing == "error" else AS_IT_COMES


def missing_rows(
    before: DataFrame | None,
    changes: DataFrame,
    table: Table,
    within: Within | None = None,
) -> DataFrame:
    """Return the changes of rows that must be there and are not, as ``advance`` with the same arguments meets them.

    They are updates and deletes, by ``_commit_lsn, _seq, _op``; ``_row`` is the key that they name, or the whole old
    row, as JSON; ``_unchanged`` are the columns that were left out, and so are not known. A row that an update
    changes is there from then on.
    """
    _, steps = _walk(before, changes, table, None, AS_IT_COMES, within)
    found = (unfound(step.stored, step.counted, step.replay(), step.survey) for step in steps)
    return reduce(lambda one, other: as_leaf(one).unionAll(other), found)


def _walk(
    before: DataFrame | None,
    changes: DataFrame,
    table: Table,
    seen: Seen | None,
    demand: Demand,
    within: Within | None,
    is_small: bool = False,
) -> tuple[DataFrame, list[Step]]:
    """Return the rows after changes, and the steps that lead to them, one a phase."""

    def events_of(read: DataFrame) -> DataFrame:
        counted = counting(read, table)
        return with_shapes(counted if before is None else counted.where(F.col("_commit_lsn") != BEFORE_ALL), table)

    shapes, events = shapes_of(table, before), events_of(changes)
    phases = phases_of(events, table, before, within and (lambda *ends: events_of(within(*ends))))
    left, steps = None if before is None else stored_rows(before, table, events), list[Step]()
    for number, (phase, mine) in enumerate(phases, 1):
        rows = None if left is None else with_keys(left, table, phase)
        is_last = number == len(phases)
        columns = table.current if is_last else tuple(table.columns.names)
        keys, identity = phase.key_columns, phase.replica_identity
        steps.append(Step(rows, mine, keys, identity, columns, tuple(shapes), seen, is_small))
        left = stepped(steps[-1], demand)
        left = left if is_last else as_leaf(with_shapes(left, table))
    assert left is not None
    return placed(left, table), steps


def phases_of(
    events: DataFrame, table: Table, before: DataFrame | None, within: Within | None = None
) -> list[tuple[Identity, DataFrame]]:
    """Return the phases of a table, each with its changes: those of ``events``, or such as ``within`` reads them."""
    phases = find_phases(_in_force(events, table, before)) or (_NO_CHANGE,)
    bounds = pairwise([None, *(phase.first for phase in phases[1:]), None])
    read = within if within is not None else lambda *_: events
    return [(phase, _between(read(*ends), *ends)) for phase, ends in zip(phases, bounds, strict=True)]


def find_phases(identities: Sequence[Identity]) -> tuple[Identity, ...]:
    """Return the phases of a table, in order: changes that one identity tells apart; one when it never changed.

    ``identities`` are those of the changes that count. Each phase goes up to the first change of the next one: they do
    not overlap, since ALTER TABLE waits for all who write the table, and these wait for it.
    """
    return tuple(_together(list(run)) for _, run in groupby(identities, lambda each: frozenset(each.key_columns)))


def _in_force(events: DataFrame, table: Table, before: DataFrame | None) -> tuple[Identity, ...]:
    """Return the identities of the changes that count."""
    if before is None and table.base is None:
        return table.identities
    known = table.columns.names if table.base is None else table.base.columns
    kinds = {(each.replica_identity, each.key_columns) for each in table.identities}
    if len(kinds) == 1 and set(table.identities[0].key_columns) <= set(known):
        return table.identities
    begin = F.min(place()).alias("begin")
    with plain_errors():
        (row,) = events.where(F.col("_commit_lsn") != BEFORE_ALL).agg(begin).collect()
    if row["begin"] is None:
        return ()
    return tuple(identity for identity in table.identities if identity.last >= tuple(row["begin"]))


def placed(rows: DataFrame, table: Table) -> DataFrame:
    """Say of copied rows where they are from."""
    if table.base is None:
        return rows
    lsn, snapshot = F.col("_commit_lsn"), F.lit(int(table.base.copy.snapshot.lsn)).cast("bigint")
    return rows.withColumn("_commit_lsn", F.when(lsn == BEFORE_ALL, snapshot).otherwise(lsn))


def _together(run: Sequence[Identity]) -> Identity:
    """Return one identity for those that tell rows apart by the same; the full row is one where any of them is."""
    found = run[-1]._replace(first=run[0].first)
    is_full = any(identity.replica_identity == RelationReplicaIdentity.FULL for identity in run)
    return found._replace(replica_identity=RelationReplicaIdentity.FULL) if is_full else found


def _between(changes: DataFrame, first: Place | None, end: Place | None) -> DataFrame:
    # Positions are asked for by themselves, too: Parquet is read by these, not by structs.
    lsn = F.col("_commit_lsn")
    if first is not None:
        changes = changes.where((lsn >= first[0]) & (place() >= at_place(first)))
    return changes if end is None else changes.where((lsn <= end[0]) & (place() < at_place(end)))


def with_keys(rows: DataFrame, table: Table, phase: Identity) -> DataFrame:
    """Refuse, once an action reads them, rows that do not have the key by which the changes of a phase find them.

    As columns, not as a filter: that would be asked of rows, too, which a join removes. And as columns that Spark
    takes for random: of others it infers from a join that they are not null, and asks that of rows that went, before
    (FilterExec.generatePredicateCode() tests that a field of a struct is there after all else).
    """
    is_always = F.monotonically_increasing_id() >= 0
    kinds = {field.name: field.dataType for field in rows.schema}
    for name in phase.key_columns:
        known = column(name).isNotNull() | F.array_contains(F.map_keys("_untyped"), name)
        refused = _refuse(table, phase, name).cast(kinds[name])
        rows = rows.withColumn(name, F.when(known, column(name)).otherwise(F.when(is_always, refused)))
    return rows


def _refuse(table: Table, phase: Identity, name: str) -> Column:
    # A key is never NULL in PostgreSQL.
    keys = ", ".join(phase.key_columns)
    text = (
        f"{table.qualified}: its replica identity became {_WORDS[phase.replica_identity]} ({keys}), and the log does "
        f"not have the value of {name!r} in a row that was there before: the column was renamed, or its value is from "
        f"ALTER TABLE; {_REMEDY.format(snapshot_command(table.qualified))}"
    )
    return refuse(text)
