"""A table whose replica identity changes inside the log: replayed in phases, each by the identity it had then."""

from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark.schemas import CHANGE, column
from pgoutput_construct.spark.state import current_state
from pgoutput_construct.spark.tables import Identity, Place, Table
from pgoutput_construct.wire.protocol import RelationReplicaIdentity

__all__ = ["find_phases", "state_over"]

_WORDS: Final[Mapping[str, str]] = {
    RelationReplicaIdentity.DEFAULT: "primary key",
    RelationReplicaIdentity.INDEX: "index",
    RelationReplicaIdentity.FULL: "full row",
    RelationReplicaIdentity.NOTHING: "nothing",
}
_REMEDY: Final = (
    "the changes can still be read; to have the state, begin a new log in an empty directory with a new slot and an "
    "initial copy of the table"
)


def find_phases(table: Table) -> tuple[Identity, ...]:
    """Return the phases of a table, in order: changes that one identity tells apart; one when it never changed.

    Each goes up to the first change of the next one. A re-created table begins with its first own change. Raises
    ChangeLogError for identities that are in use at the same time, as when two tables had one name.
    """
    runs = [list(run) for _, run in groupby(table.identities, _by_what)]
    for before, after in pairwise(runs):
        if max(identity.last for identity in before) >= after[0].first:
            raise _mixed(table, before[-1], after[0])
    own = [run for run in runs if run[0].relation_oid == runs[-1][0].relation_oid]
    return tuple(run[-1]._replace(first=run[0].first) for run in own)


def state_over(changes: DataFrame, table: Table, phases: Sequence[Identity]) -> DataFrame:
    """Return the current rows of a table, as ``current_state`` does, over all phases.

    What a phase leaves enters the next one as inserts before its changes. An action fails when the log does not have
    the new key of such a row: when its columns were renamed, or got their values from ALTER TABLE.
    """
    left: DataFrame | None = None
    for phase, end in zip(phases, [*(phase.first for phase in phases[1:]), None], strict=True):
        first = None if phase.first == table.identities[0].first else phase.first
        events = _between(changes, first, end)
        if left is not None:
            events = events.unionAll(_as_inserts(left, changes, table, phase))
        columns = table.current if end is None else None
        left = current_state(events, phase.key_columns, phase.replica_identity, columns)
    assert left is not None
    return left


def _by_what(identity: Identity) -> tuple[int, frozenset[str]]:
    return identity.relation_oid, frozenset(identity.key_columns)


def _between(changes: DataFrame, first: Place | None, end: Place | None) -> DataFrame:
    place = F.struct("_commit_lsn", "_seq")
    if first is not None:
        changes = changes.where(place >= _place(first))
    return changes if end is None else changes.where(place < _place(end))


def _place(place: Place) -> Column:
    commit_lsn, seq = (F.lit(number).cast("bigint") for number in place)
    return F.struct(commit_lsn.alias("_commit_lsn"), seq.alias("_seq"))


def _as_inserts(rows: DataFrame, changes: DataFrame, table: Table, phase: Identity) -> DataFrame:
    """Return the rows that a phase left as changes that stand before those of the next phase."""
    given = {
        "_op": F.lit("insert"),
        "_commit_lsn": F.lit(-1),
        "_seq": F.lit(0),
        "_unchanged": F.array(),
        "_untyped": F.col("_untyped"),
    }
    kinds = {field.name: field.dataType for field in changes.schema}
    values = {name: given.get(name, F.lit(None)) if name in CHANGE else column(name) for name in kinds}
    for name in phase.key_columns:
        known = column(name).isNotNull() | F.array_contains(F.map_keys("_untyped"), name)
        values[name] = F.when(known, column(name)).otherwise(_refuse(table, phase, name).cast(kinds[name]))
    return rows.select(*(value.cast(kinds[name]).alias(name) for name, value in values.items()))


def _mixed(table: Table, one: Identity, other: Identity) -> ChangeLogError:
    return ChangeLogError(
        f"{table.qualified}: its changes by {_described(one)} and by {_described(other)} are mixed, as when two "
        f"tables had this name: its state cannot be rebuilt; {_REMEDY}"
    )


def _refuse(table: Table, phase: Identity, name: str) -> Column:
    # A key is never NULL in PostgreSQL. Named as an error of an executor is, so that plain_errors finds it.
    keys = ", ".join(phase.key_columns)
    text = (
        f"{table.qualified}: its replica identity became {_WORDS[phase.replica_identity]} ({keys}), and the log does "
        f"not have the value of {name!r} in a row that was there before: the column was renamed, or its value is from "
        f"ALTER TABLE; {_REMEDY}"
    )
    return F.raise_error(F.lit(f"{ChangeLogError.__module__}.{ChangeLogError.__name__}: {text}"))


def _described(identity: Identity) -> str:
    words = _WORDS.get(identity.replica_identity, identity.replica_identity)
    keys = f" ({', '.join(identity.key_columns)})" if identity.key_columns else ""
    return f"{words}{keys} of the table with OID {identity.relation_oid}"
