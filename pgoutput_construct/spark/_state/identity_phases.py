"""The phases of a table: runs of changes whose rows one replica identity tells apart.

Phases do not overlap: ALTER TABLE ... REPLICA IDENTITY waits for all transactions that write the table, and later ones
wait for it.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Final, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.changelog._facts.copies import snapshot_command
from pgoutput_construct.spark._execution import error_column, plain_errors
from pgoutput_construct.spark._log_view.change_columns import BEFORE_ALL, column, position, position_at
from pgoutput_construct.spark._log_view.replicated_tables import ChangePosition, Identity, Table
from pgoutput_construct.wire.protocol import RelationReplicaIdentity

PhaseReader: TypeAlias = Callable[[ChangePosition | None, ChangePosition | None], DataFrame]
"""Reads the changes between two positions, None for no limit; it may return more than these."""
_WORDS: Final[Mapping[str, str]] = {
    RelationReplicaIdentity.DEFAULT: "primary key",
    RelationReplicaIdentity.INDEX: "index",
    RelationReplicaIdentity.FULL: "full row",
    RelationReplicaIdentity.NOTHING: "nothing",
}
_NO_CHANGE: Final = Identity(RelationReplicaIdentity.NOTHING, (), (0, 0), (0, 0))
"""The identity of a table of which no change counts."""
_REMEDY: Final = "the changes can still be read; to have the state, copy the table: {}"


def phase_changes(
    events: DataFrame, table: Table, before: DataFrame | None, within: PhaseReader | None = None
) -> list[tuple[Identity, DataFrame]]:
    """Return the phases of a table, in order, each with its changes; one if its identity never changed.

    Each ends at the first change of the next one.

    Args:
        events: The changes that count.
        table: The table.
        before: The rows before, None for none.
        within: Reads the changes of a phase; None to select them from ``events``.
    """
    runs = groupby(_counting_identities(events, table, before), lambda each: frozenset(each.key_columns))
    phases = [_merged_identity([*run]) for _, run in runs] or [_NO_CHANGE]
    bounds = pairwise([None, *(phase.first for phase in phases[1:]), None])
    read = within if within is not None else lambda *_: events
    return [(phase, _between(read(*ends), *ends)) for phase, ends in zip(phases, bounds, strict=True)]


def _counting_identities(events: DataFrame, table: Table, before: DataFrame | None) -> tuple[Identity, ...]:
    """Return the identities of the changes that count."""
    if before is None and table.base is None:
        return table.identities
    known = table.columns.names if table.base is None else table.base.columns
    kinds = {(each.replica_identity, each.key_columns) for each in table.identities}
    if len(kinds) == 1 and set(table.identities[0].key_columns) <= set(known):
        return table.identities
    begin = F.min(position()).alias("begin")
    with plain_errors():
        (row,) = events.where(F.col("_commit_lsn") != BEFORE_ALL).agg(begin).collect()
    if row["begin"] is None:
        return ()
    return tuple(identity for identity in table.identities if identity.last >= tuple(row["begin"]))


def _merged_identity(run: Sequence[Identity]) -> Identity:
    """Return one identity for several with the same columns; it is the full row if one of them is."""
    found = run[-1]._replace(first=run[0].first)
    is_full = any(identity.replica_identity == RelationReplicaIdentity.FULL for identity in run)
    return found._replace(replica_identity=RelationReplicaIdentity.FULL) if is_full else found


def _between(changes: DataFrame, first: ChangePosition | None, end: ChangePosition | None) -> DataFrame:
    # The LSN is compared by itself, too: Parquet's statistics are used for it, not for structs.
    lsn = F.col("_commit_lsn")
    if first is not None:
        changes = changes.where((lsn >= first[0]) & (position() >= position_at(first)))
    return changes if end is None else changes.where((lsn <= end[0]) & (position() < position_at(end)))


def require_keys(rows: DataFrame, table: Table, phase: Identity) -> DataFrame:
    """Make rows fail, once an action reads them, that do not have the key of a phase.

    By columns, not by a filter: that would also fail for rows which a join removes. And by columns that Spark takes for
    non-deterministic: of others it infers from a join that they are not null, and checks that for removed rows, too,
    before the join (FilterExec.generatePredicateCode() tests that a field of a struct is not null after everything
    else).
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
        f"not have the value of {name!r} in an earlier row: the column was renamed, or its value is from "
        f"ALTER TABLE; {_REMEDY.format(snapshot_command(table.qualified))}"
    )
    return error_column(text)
