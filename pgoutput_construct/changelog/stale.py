"""Changes of tables that the stream does not send: what the log has of a table is then not what the table has."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Final

from pgoutput_construct.changelog.copies import Snapshot
from pgoutput_construct.changelog.events import LogEvent
from pgoutput_construct.changelog.facts import PublicationReading, Reading, TableReading, snapshot_of
from pgoutput_construct.stream.builtin_types import BUILTIN_TYPES

__all__ = ["Stale", "lost_histories", "partition_changes", "publication_changes", "rewrites", "stale_table"]

_TEXTS: Final = frozenset(oid for oid, builtin in BUILTIN_TYPES.items() if builtin.name in ("text", "varchar"))


@dataclass(frozen=True)
class Stale:
    """A table whose rows in the log are not those of the server."""

    seq: int
    """From here on, at the latest."""
    table: tuple[str, str]
    """Schema and name of the table then."""
    reason: str
    """What happened, with the names that it had."""
    remedy: str
    """What to do."""
    snapshot: Snapshot
    """When it was seen: a copy whose snapshot contains all that this one does repairs it."""
    published: bool = True
    """It can be copied as it is published now."""
    lost: bool = False
    """The log was begun anew: it is copied whatever is to be done about others."""


def rewrites(readings: Iterable[TableReading]) -> Iterator[Stale]:
    """Yield where the rows of a table changed without messages, as ALTER TABLE does it.

    VACUUM FULL, CLUSTER, TRUNCATE and SET TABLESPACE make another file, too, but change no column.
    """
    for before, after in pairwise(readings):
        if before.gone or after.gone:
            continue
        if _has_new_files(before, after) and _rows_of_catalog(before) != _rows_of_catalog(after):
            yield stale_table(
                after, (after.namespace, after.name), "was rewritten while its columns changed (ALTER TABLE)"
            )
        elif changed := _retyped(before, after):
            yield stale_table(
                after, (after.namespace, after.name), f"has other types in {', '.join(changed)} (ALTER TABLE)"
            )


def lost_histories(events: Iterable[LogEvent], tables: Mapping[int, list[TableReading]]) -> Iterator[tuple[int, Stale]]:
    """Yield the OIDs of tables of whose changes some are missing, since the log was begun anew, and where."""
    for event in events:
        for oid, readings in tables.items():
            before = [reading for reading in readings if reading.seq < event.seq][-1:]
            if before and any(column.published for column in before[0].columns):
                stale = stale_table(
                    before[0], (before[0].namespace, before[0].name), "lacks changes: " + event.details["reason"]
                )
                yield oid, replace(stale, seq=event.seq, snapshot=snapshot_of(event), lost=True)


def partition_changes(readings: Iterable[TableReading]) -> Iterator[Stale]:
    """Yield where rows came or went with partitions of a table that is published as a whole."""
    for before, after in pairwise(readings):
        if before.gone or after.gone or not after.is_partitioned:
            continue
        old, new = before.filenodes.keys(), after.filenodes.keys()
        emptied = {leaf for leaf in old & new & after.truncated if before.filenodes[leaf] != after.filenodes[leaf]}
        if old - new:
            yield stale_table(after, (after.namespace, after.name), "lost a partition (DETACH or DROP)")
        elif (new - old) & after.attached:
            yield stale_table(after, (after.namespace, after.name), "was given a table as a partition (ATTACH)")
        elif emptied and emptied != old & new:  # or else the whole table was, which the stream says
            yield stale_table(after, (after.namespace, after.name), "has a partition that was truncated by itself")


def publication_changes(readings: Iterable[PublicationReading]) -> Iterator[tuple[int, Stale]]:
    """Yield the OIDs of tables whose changes were not, or are no longer, all published, and since where."""
    in_force: dict[str, PublicationReading] = {}
    seen: dict[int, _Published] = {}
    for _, together in groupby(readings, attrgetter("snapshot")):
        for reading in together:
            in_force[reading.name] = reading
        now = _effective(in_force.values())
        for oid, before in seen.items():
            after = now.get(oid)
            if reason := _difference(before, after or replace(before, operations=frozenset())):
                yield oid, _unpublished(reading, before) if after is None else stale_table(reading, after.table, reason)
        seen |= {oid: replace(before, operations=frozenset()) for oid, before in seen.items()} | now


@dataclass(frozen=True)
class _Published:
    """What all publications together publish of a table."""

    table: tuple[str, str]
    operations: frozenset[str]
    """None where it is not published any more."""
    columns: frozenset[int] | None
    filters: frozenset[str] | None
    members: frozenset[int | None]
    unsent: frozenset[int]
    """Its partitions of which nothing is sent."""


def _effective(readings: Iterable[PublicationReading]) -> dict[int, _Published]:
    found: dict[int, _Published] = {}
    for reading in readings:
        for oid, table in reading.tables.items() if reading.captured else ():
            filters = None if table.filter is None else frozenset({table.filter})
            unsent = frozenset(each.oid for each in reading.unsent if each.root == oid)
            own = _Published(
                (table.namespace, table.name),
                reading.operations,
                table.columns,
                filters,
                frozenset({table.member}),
                unsent,
            )
            found[oid] = _together(found[oid], own) if oid in found else own
    return found


def _together(one: _Published, other: _Published) -> _Published:
    columns = None if one.columns is None or other.columns is None else one.columns | other.columns
    filters = None if one.filters is None or other.filters is None else one.filters | other.filters
    members, unsent = one.members | other.members, one.unsent | other.unsent
    return _Published(one.table, one.operations | other.operations, columns, filters, members, unsent)


def _difference(before: _Published, after: _Published) -> str | None:
    """Say why the rows of a table are others than what was published of them so far; None where they are not."""
    reasons = {
        "was not published for a time": not before.operations and after.operations,
        "is no longer published": before.operations and not after.operations,
        f"is published with {_listed(after)}, before with {_listed(before)}": before.operations != after.operations,
        "has another row filter in the publication": before.filters != after.filters,
        "has more columns in the publication's list": before.columns is not None
        and (after.columns is None or after.columns - before.columns),
        "was taken out of the publication and added again": not before.members & after.members,
        "has a partition that is only sent from now on": before.unsent - after.unsent,
    }
    return next((reason for reason, happened in reasons.items() if happened), None)


def _listed(table: _Published) -> str:
    return ", ".join(sorted(table.operations))


def _has_new_files(before: TableReading, after: TableReading) -> bool:
    return any(after.filenodes.get(oid, node) != node for oid, node in before.filenodes.items())


def _rows_of_catalog(reading: TableReading) -> dict[int, int]:
    return {column.number: column.xmin for column in reading.columns}


def _retyped(before: TableReading, after: TableReading) -> list[str]:
    """Return the names of columns whose values have another text now although their bytes stayed the same."""
    old = {column.number: column.type for column in before.columns if not column.dropped}
    types = ((column, old.get(column.number, column.type)) for column in after.columns if not column.dropped)
    return [column.name for column, was in types if column.type != was and not {column.type, was} <= _TEXTS]


def stale_table(reading: Reading, table: tuple[str, str], what: str) -> Stale:
    """Return that a table, by schema and name, was seen to be stale; ``what`` happened to it."""
    title = ".".join(table)
    remedy = f"copy it again: pgoutput snapshot DSN LOG --table {title}"
    return Stale(reading.seq, table, f"{title} {what}", remedy, reading.snapshot)


def _unpublished(reading: Reading, before: _Published) -> Stale:
    title = ".".join(before.table)
    remedy = f"publish it again (ALTER PUBLICATION ... ADD TABLE), then: pgoutput snapshot DSN LOG --table {title}"
    return Stale(
        reading.seq, before.table, f"{title} is no longer published", remedy, reading.snapshot, published=False
    )
