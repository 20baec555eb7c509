"""A table whose replica identity changes inside the log: replayed in phases, each by the identity it had then."""

from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark.counting import BEFORE_ALL, at_place, counting, with_shapes
from pgoutput_construct.spark.failures import plain_errors
from pgoutput_construct.spark.schemas import CHANGE, column
from pgoutput_construct.spark.state import rebuilt
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
    "the changes can still be read; to have the state, copy the table: pgoutput snapshot DSN LOG --table {}"
)


def find_phases(table: Table, begin: Place | None = None) -> tuple[Identity, ...]:
    """Return the phases of a table, in order: changes that one identity tells apart; one when it never changed.

    Each goes up to the first change of the next one. A re-created table begins with its first own change; ``begin``
    is where the changes begin that count. Raises ChangeLogError for identities that are in use at the same time, as
    when two tables had one name.
    """
    counting = [identity for identity in table.identities if begin is None or identity.last >= begin]
    runs = [list(run) for _, run in groupby(counting, _by_what)]
    for before, after in pairwise(runs):
        if max(identity.last for identity in before) >= after[0].first:
            raise _mixed(table, before[-1], after[0])
    own = [run for run in runs if run[0].relation_oid == table.relation_oid]
    return tuple(map(_together, own))


def state_over(changes: DataFrame, table: Table, reach: tuple[int, int] | None = None) -> DataFrame:
    """Return the current rows of a table: those of its latest copy, and what the changes that count made of them.

    It is replayed over all phases: what one leaves enters the next one as inserts before its changes. ``reach`` is as
    ``near`` returns it. An action fails when the log does not have the new key of such a row: when its columns were
    renamed, or got their values from ALTER TABLE, and the log does not say so. Raises ChangeLogError as
    ``find_phases`` does.
    """
    events = with_shapes(counting(changes, table.base, reach), table.shapes)
    first = table.base.columns if table.base else frozenset(table.columns.names)
    shapes = [first, *(names for _, names in table.shapes)]
    begin, phases = _begin(events, table), tuple[Identity, ...]()
    if table.base is None or begin is not None:
        phases = find_phases(table, begin)
    left = _before(events, table, phases, shapes)
    # Else there may be older changes than the log has: a reader took them before they were pruned.
    is_begun_anew = table.base is None and bool(phases) and phases[0].first != table.identities[0].first
    ends = [*(phase.first for phase in phases[1:]), None]
    for number, (phase, end) in enumerate(zip(phases, ends, strict=False)):
        mine = _between(events, phase.first if number or is_begun_anew else None, end)
        if left is not None:
            mine = mine.unionAll(_as_inserts(left, events, table, phase))
        columns = table.current if end is None else table.columns.names
        left = rebuilt(mine, phase.key_columns, phase.replica_identity, columns, shapes)
    assert left is not None
    return left.drop("_shape")


def _begin(events: DataFrame, table: Table) -> Place | None:
    """Return where the changes begin that count beside a copy, None for nowhere; it is known without where all do."""
    if table.base is None or not table.identities:
        return None
    place = F.min(F.struct("_commit_lsn", "_seq")).alias("place")
    with plain_errors():
        (row,) = events.where(F.col("_commit_lsn") != BEFORE_ALL).agg(place).collect()
    return None if row["place"] is None else tuple(row["place"])


def _before(
    events: DataFrame, table: Table, phases: Sequence[Identity], shapes: Sequence[frozenset[str]]
) -> DataFrame | None:
    """Return the rows of a copy where no change counts; with any, they are the first events of the first phase."""
    return None if phases else rebuilt(events, (), RelationReplicaIdentity.NOTHING, table.current, shapes)


def _together(run: Sequence[Identity]) -> Identity:
    """Return one identity for those that tell rows apart by the same; the full row is one where any of them is."""
    found = run[-1]._replace(first=run[0].first)
    is_full = any(identity.replica_identity == RelationReplicaIdentity.FULL for identity in run)
    return found._replace(replica_identity=RelationReplicaIdentity.FULL) if is_full else found


def _by_what(identity: Identity) -> tuple[int, frozenset[str]]:
    return identity.relation_oid, frozenset(identity.key_columns)


def _between(changes: DataFrame, first: Place | None, end: Place | None) -> DataFrame:
    place = F.struct("_commit_lsn", "_seq")
    if first is not None:
        changes = changes.where(place >= at_place(first))
    return changes if end is None else changes.where(place < at_place(end))


def _as_inserts(rows: DataFrame, changes: DataFrame, table: Table, phase: Identity) -> DataFrame:
    """Return the rows that a phase left as changes that stand before those of the next phase."""
    given = {
        "_op": F.lit("insert"),
        "_commit_lsn": F.lit(BEFORE_ALL),
        "_seq": F.lit(0),
        "_unchanged": F.array(),
        "_untyped": F.col("_untyped"),
        "_shape": F.col("_shape"),
    }
    kinds = {field.name: field.dataType for field in changes.schema}
    values = {name: given.get(name, F.lit(None)) if name in (*CHANGE, "_shape") else column(name) for name in kinds}
    for name in phase.key_columns:
        known = column(name).isNotNull() | F.array_contains(F.map_keys("_untyped"), name)
        values[name] = F.when(known, column(name)).otherwise(_refuse(table, phase, name).cast(kinds[name]))
    return rows.select(*(value.cast(kinds[name]).alias(name) for name, value in values.items()))


def _mixed(table: Table, one: Identity, other: Identity) -> ChangeLogError:
    return ChangeLogError(
        f"{table.qualified}: its changes by {_described(one)} and by {_described(other)} are mixed, as when two "
        f"tables had this name: its state cannot be rebuilt; {_REMEDY.format(table.qualified)}"
    )


def _refuse(table: Table, phase: Identity, name: str) -> Column:
    # A key is never NULL in PostgreSQL. Named as an error of an executor is, so that plain_errors finds it.
    keys = ", ".join(phase.key_columns)
    text = (
        f"{table.qualified}: its replica identity became {_WORDS[phase.replica_identity]} ({keys}), and the log does "
        f"not have the value of {name!r} in a row that was there before: the column was renamed, or its value is from "
        f"ALTER TABLE; {_REMEDY.format(table.qualified)}"
    )
    return F.raise_error(F.lit(f"{ChangeLogError.__module__}.{ChangeLogError.__name__}: {text}"))


def _described(identity: Identity) -> str:
    words = _WORDS.get(identity.replica_identity, identity.replica_identity)
    keys = f" ({', '.join(identity.key_columns)})" if identity.key_columns else ""
    return f"{words}{keys} of the table with OID {identity.relation_oid}"
