"""The phases of a table, each with the identity by which its changes tell rows apart."""

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

__all__ = ["PhaseReader", "phase_changes", "require_keys"]

PhaseReader: TypeAlias = Callable[[ChangePosition | None, ChangePosition | None], DataFrame]
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


def phase_changes(
    events: DataFrame, table: Table, before: DataFrame | None, within: PhaseReader | None = None
) -> list[tuple[Identity, DataFrame]]:
    """Return the phases of a table, each with its changes: those of ``events``, or such as ``within`` reads them."""
    phases = find_phases(_counting_identities(events, table, before)) or (_NO_CHANGE,)
    bounds = pairwise([None, *(phase.first for phase in phases[1:]), None])
    read = within if within is not None else lambda *_: events
    return [(phase, _between(read(*ends), *ends)) for phase, ends in zip(phases, bounds, strict=True)]


def find_phases(identities: Sequence[Identity]) -> tuple[Identity, ...]:
    """Return the phases of a table, in order: changes that one identity tells apart; one when it never changed.

    ``identities`` are those of the changes that count. Each phase goes up to the first change of the next one: they do
    not overlap, since ALTER TABLE waits for all who write the table, and these wait for it.
    """
    return tuple(
        _merged_identity(list(run)) for _, run in groupby(identities, lambda each: frozenset(each.key_columns))
    )


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
    """Return one identity for those that tell rows apart by the same; the full row is one where any of them is."""
    found = run[-1]._replace(first=run[0].first)
    is_full = any(identity.replica_identity == RelationReplicaIdentity.FULL for identity in run)
    return found._replace(replica_identity=RelationReplicaIdentity.FULL) if is_full else found


def _between(changes: DataFrame, first: ChangePosition | None, end: ChangePosition | None) -> DataFrame:
    # Positions are asked for by themselves, too: Parquet is read by these, not by structs.
    lsn = F.col("_commit_lsn")
    if first is not None:
        changes = changes.where((lsn >= first[0]) & (position() >= position_at(first)))
    return changes if end is None else changes.where((lsn <= end[0]) & (position() < position_at(end)))


def require_keys(rows: DataFrame, table: Table, phase: Identity) -> DataFrame:
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
    return error_column(text)
