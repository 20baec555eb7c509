"""Finds stale tables: those that changed in a way that the stream does not send, so that the log differs from them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from pgoutput_construct.changelog._facts.catalog_readings import (
    CatalogColumn,
    CatalogType,
    PublicationReading,
    Reading,
    TableReading,
    snapshot_of,
)
from pgoutput_construct.changelog._facts.copies import snapshot_command
from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.changelog._segment.events import LogEvent
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES
from pgoutput_construct.stream.identifiers import qualified_name

__all__ = [
    "PublicationChanges",
    "StaleTable",
    "late_values",
    "lost_history",
    "partition_change",
    "rewrite",
    "stale_table",
    "type_change",
]

_TEXTS: Final = frozenset(oid for oid, builtin in BUILTIN_TYPES.items() if builtin.name in ("text", "varchar"))


@dataclass(frozen=True)
class StaleTable:
    """A table whose rows in the log differ from those on the server."""

    seq: int
    """The seq from which on they differ, at the latest."""
    table: tuple[str, str]
    """Schema and name of the table at that time."""
    reason: str
    """What happened, with the table's name at that time."""
    remedy: str
    """What to do."""
    snapshot: Snapshot
    """The snapshot in which it was noticed: a copy whose snapshot sees all that this one sees repairs it."""
    published: bool = True
    """Whether the table can be copied, as it is published now."""
    lost: bool = False
    """Whether changes were lost (BEGUN_ANEW): it is then copied whatever the policy for other stale tables is."""


def rewrite(
    before: TableReading, after: TableReading, old: Iterable[CatalogColumn], new: Iterable[CatalogColumn]
) -> StaleTable | None:
    """Return whether ALTER TABLE changed the rows of a table without messages between two readings.

    VACUUM FULL, CLUSTER, TRUNCATE and SET TABLESPACE assign a new file, too, but change no column.

    Args:
        before: The earlier reading.
        after: The later reading.
        old: The columns in which they differ (``altered_columns``), as of the earlier one.
        new: The same as of the later one.
    """
    if before.gone or after.gone:
        return None
    if _has_new_files(before, after) and _rows_of_catalog(old) != _rows_of_catalog(new):
        return stale_table(
            after, (after.namespace, after.name), "was rewritten while its columns changed (ALTER TABLE)"
        )
    if changed := _retyped(old, new):
        what = f"has other types in {', '.join(changed)} (ALTER TABLE)"
        return stale_table(after, (after.namespace, after.name), what)
    return None


def late_values(
    before: TableReading, after: TableReading, old: Iterable[CatalogColumn], new: Iterable[CatalogColumn]
) -> StaleTable | None:
    """Return whether generated columns that were not published are published now; arguments as for ``rewrite``."""
    unpublished = {column.number for column in old if column.generated and not column.published}
    names = [column.name for column in new if column.published and column.number in unpublished]
    if before.gone or after.gone or not names:
        return None
    what = f"has values in {', '.join(names)} that were never published (generated columns, as of DROP EXPRESSION)"
    return stale_table(after, (after.namespace, after.name), what)


def type_change(before: TableReading, after: TableReading) -> StaleTable | None:
    """Return whether existing values have another text or binary format since ALTER TYPE changed their type.

    An added label is in no row yet, and names of attributes are in no value. ALTER TYPE takes no lock that waits for
    writers: a transaction in progress may have sent rows with the old labels. So a copy repairs this only if its
    snapshot sees all of them ended, as requested copies do.
    """
    types = {each.oid: each for each in before.types}
    changed = {
        number
        for now in after.types
        if (was := types.get(now.oid)) is not None and _has_other_texts(was, now)
        for number in was.columns & now.columns
    }
    names = [each.name for each in after.columns if each.number in changed and each.published] if changed else []
    if not names:
        return None
    what = f"has values of an altered type in {', '.join(names)} (ALTER TYPE: labels, or attributes)"
    stale = stale_table(after, (after.namespace, after.name), what)
    return replace(stale, snapshot=replace(after.snapshot, xmin=after.snapshot.xmax, xip=()))


def lost_history(event: LogEvent, before: TableReading) -> StaleTable | None:
    """Return whether changes of a table were lost at an event BEGUN_ANEW, given the last reading before that."""
    if not any(column.published for column in before.columns):
        return None
    stale = stale_table(before, (before.namespace, before.name), "lacks changes: " + event.details["reason"])
    return replace(stale, seq=event.seq, snapshot=snapshot_of(event), lost=True)


def partition_change(before: TableReading, after: TableReading) -> StaleTable | None:
    """Return whether partitions with rows were attached, detached or truncated between two readings of a root table."""
    if before.gone or after.gone or not after.is_partitioned:
        return None
    old, new = before.filenodes.keys(), after.filenodes.keys()
    if old - new:
        return stale_table(after, (after.namespace, after.name), "lost a partition (DETACH or DROP)")
    if _has_attached_leaf(before, after):
        return stale_table(after, (after.namespace, after.name), "was given a table as a partition (ATTACH)")
    if _has_emptied_leaf(before, after):
        return stale_table(after, (after.namespace, after.name), "has a partition that was truncated by itself")
    return None


def _has_attached_leaf(before: TableReading, after: TableReading) -> bool:
    """Return whether leaf partitions may have rows from before they, or partitions above them, were attached.

    A leaf that is created below a partition which was attached has the attachments that other leaves have there.
    """
    was, now = before.joined, after.joined
    old, new = before.filenodes.keys(), after.filenodes.keys()
    there = {None, *was.values()}
    if any(leaf in after.attached or now.get(leaf) not in there for leaf in new - old):
        return True
    return any(now.get(leaf) != was.get(leaf) for leaf in old & new)


def _has_emptied_leaf(before: TableReading, after: TableReading) -> bool:
    """Return whether some leaf partitions were truncated by themselves, which the stream does not send.

    A TRUNCATE of the whole table, which the stream sends, assigns new files to all leaves in one transaction. If all
    rows of pg_class of a leaf were written again since, another transaction is named for it: it then counts as
    truncated by itself, and the table is copied unnecessarily. A leaf is created with the file that its OID names
    (heap_create()); a foreign table has none.
    """
    nodes = {leaf: node for leaf, node in after.filenodes.items() if node}
    moved = {leaf for leaf, node in nodes.items() if before.filenodes.get(leaf, leaf) != node}
    if not moved & after.truncated:
        return False
    writers = {after.rewritten.get(leaf) for leaf in moved}
    return not moved >= nodes.keys() & before.filenodes.keys() or len(writers) > 1


class PublicationChanges:
    """Follows readings of publications, and finds tables that were not published completely at all times.

    Readings of several publications with the same snapshot were made together, and count together.
    """

    def __init__(self) -> None:
        self._in_force: dict[str, PublicationReading] = {}
        self._seen: dict[int, _PublishedState] = {}
        self._open: list[PublicationReading] = []

    def read(self, reading: PublicationReading) -> list[tuple[int, StaleTable]]:
        """Add the next reading; return the OIDs of tables found stale by the readings before it, and why."""
        found = []
        if self._open and self._open[-1].snapshot != reading.snapshot:
            found = self.latest()
            self._in_force, now = self._now()
            self._seen |= {oid: replace(was, operations=frozenset()) for oid, was in self._seen.items()} | now
            self._open = []
        self._open.append(reading)
        return found

    def latest(self) -> list[tuple[int, StaleTable]]:
        """Return the same for the last readings of one snapshot, to which more may still be added."""
        return [*self._changes(self._now()[1], self._open[-1])] if self._open else []

    def _now(self) -> tuple[dict[str, PublicationReading], dict[int, "_PublishedState"]]:
        in_force = self._in_force | {reading.name: reading for reading in self._open}
        return in_force, _effective(in_force.values())

    def _changes(
        self, now: Mapping[int, "_PublishedState"], reading: PublicationReading
    ) -> Iterator[tuple[int, StaleTable]]:
        for oid, before in self._seen.items():
            after = now.get(oid)
            if reason := _difference(before, after or replace(before, operations=frozenset())):
                yield oid, _unpublished(reading, before) if after is None else stale_table(reading, after.table, reason)


class _Inclusion(NamedTuple):
    """How a publication publishes a table: what differs was altered meanwhile, even if it was changed back."""

    publication: str
    operations: frozenset[str]
    written: int
    """PublicationReading.written."""
    member: int | str | None
    """PublicationMember.member, or one of those within; None if it publishes all tables."""


@dataclass(frozen=True)
class _PublishedState:
    """What all captured publications together publish of a table."""

    table: tuple[str, str]
    operations: frozenset[str]
    """Empty if it is no longer published."""
    columns: frozenset[int] | None
    filters: frozenset[str] | None
    members: frozenset[int | None]
    joined: frozenset[str | None]
    unsent: frozenset[int]
    """Its partitions that the server does not replicate."""
    ancestors: frozenset[int]
    """The OIDs of the tables that it is a partition of."""
    via_root: bool
    """Whether its changes are published as those of the topmost published table."""
    inclusions: frozenset[_Inclusion]
    """Those of publications of which it is known when they were written."""


def _effective(readings: Iterable[PublicationReading]) -> dict[int, _PublishedState]:
    found: dict[int, _PublishedState] = {}
    for reading in readings:
        as_all = _inclusions(reading, [None])
        for oid, table in reading.tables.items() if reading.captured else ():
            own_members: set[int | str | None] = {table.member, *table.within} - {None}
            filters = None if table.filter is None else frozenset({table.filter})
            unsent = frozenset(each.oid for each in reading.unsent if each.root == oid)
            own = _PublishedState(
                (table.namespace, table.name),
                reading.operations,
                table.columns,
                filters,
                frozenset({table.member}),
                frozenset({table.joined}),
                unsent,
                table.ancestors,
                reading.via_root,
                _inclusions(reading, own_members) if own_members else as_all,
            )
            found[oid] = _together(found[oid], own) if oid in found else own
    return found


def _inclusions(reading: PublicationReading, members: Iterable[int | str | None]) -> frozenset[_Inclusion]:
    if reading.written is None:
        return frozenset()
    return frozenset(_Inclusion(reading.name, reading.operations, reading.written, member) for member in members)


def _together(one: _PublishedState, other: _PublishedState) -> _PublishedState:
    columns = None if one.columns is None or other.columns is None else one.columns | other.columns
    filters = None if one.filters is None or other.filters is None else one.filters | other.filters
    return _PublishedState(
        one.table,
        one.operations | other.operations,
        columns,
        filters,
        one.members | other.members,
        one.joined | other.joined,
        one.unsent | other.unsent,
        one.ancestors | other.ancestors,
        one.via_root or other.via_root,
        one.inclusions | other.inclusions,
    )


def _difference(before: _PublishedState, after: _PublishedState) -> str | None:
    """Return why the rows of a table differ from what was published of them so far; None if they do not."""
    reasons = {
        "was not published for a time": not before.operations and after.operations,
        "is no longer published": before.operations and not after.operations,
        f"is published with {_listed(after)}, before with {_listed(before)}": before.operations != after.operations,
        "has another row filter in the publication": before.filters != after.filters,
        "has more columns in the publication's list": before.columns is not None
        and (after.columns is None or after.columns - before.columns),
        "was taken out of the publication and added again": not before.members & after.members,
        "was detached from a published table and attached again": None not in before.joined | after.joined
        and not before.joined & after.joined,
        "has a partition that is only replicated from now on": before.unsent - after.unsent,
        # Between a time when it was published by itself and one when it was not, or the reverse.
        "may have been sent as a partition of another table for a time": before.via_root != after.via_root
        and before.ancestors != after.ancestors,
        "may lack changes: a publication was altered, and may have published less of it for a time (ALTER PUBLICATION, "
        "SET SCHEMA)": _was_interrupted(before, after),
    }
    return next((reason for reason, happened in reasons.items() if happened), None)


def _was_interrupted(before: _PublishedState, after: _PublishedState) -> bool:
    """Return whether no publication surely published some operation of a table at all times in between.

    Only publications that published it in both readings count.
    """
    if before.inclusions == after.inclusions:
        return False
    was, now = (
        {(each.publication, name) for each in state.inclusions for name in each.operations} for state in (before, after)
    )
    kept = {name for each in before.inclusions & after.inclusions for name in each.operations}
    return any(name not in kept for _, name in was & now)


def _listed(table: _PublishedState) -> str:
    return ", ".join(sorted(table.operations))


def _has_new_files(before: TableReading, after: TableReading) -> bool:
    return any(after.filenodes.get(oid, node) != node for oid, node in before.filenodes.items())


def _rows_of_catalog(columns: Iterable[CatalogColumn]) -> dict[int, int]:
    return {column.number: column.xmin for column in columns}


def _retyped(before: Iterable[CatalogColumn], after: Iterable[CatalogColumn]) -> list[str]:
    """Return the names of columns whose type changed without a rewrite, so that the values have another text."""
    old = {column.number: column.type for column in before if not column.dropped}
    types = ((column, old.get(column.number, column.type)) for column in after if not column.dropped)
    return [column.name for column, was in types if column.type != was and not {column.type, was} <= _TEXTS]


def _has_other_texts(was: CatalogType, now: CatalogType) -> bool:
    renamed = any(now.labels.get(oid) != label for oid, label in was.labels.items())
    return renamed or was.attributes != now.attributes


def stale_table(reading: Reading, table: tuple[str, str], what: str) -> StaleTable:
    """Return a stale table.

    Args:
        reading: The reading in which it was noticed.
        table: Schema and name of the table.
        what: What happened, such as ``was rewritten``.
    """
    title = qualified_name(*table)
    remedy = f"copy it again: {snapshot_command(title)}"
    return StaleTable(reading.seq, table, f"{title} {what}", remedy, reading.snapshot)


def _unpublished(reading: Reading, before: _PublishedState) -> StaleTable:
    title = qualified_name(*before.table)
    remedy = f"publish it again (ALTER PUBLICATION), then: {snapshot_command(title)}"
    return StaleTable(
        reading.seq, before.table, f"{title} is no longer published", remedy, reading.snapshot, published=False
    )
