"""Finds changes of tables of which a log does not know whether they came before the point as of which it is read.

What a reading of the catalog shows was true by its LSN; since when, the log does not say. A change that it shows
committed

- after the LSN of the reading before it, since each one reads all tables;
- after the commits that had been received when a poll still found the table unchanged (``Reading.unchanged``);
- after commits of rows that are as the table was before, and before commits of rows that are as it is afterwards: a
  table that has rows exists, and ALTER TABLE waits for the transactions that wrote to it.

While a capture runs, that is within a second, or within a few commits. A change that was made while none ran may be
anywhere in that time. So only the first reading after the point, with those of its snapshot, is in doubt: what later
ones show was changed after it.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

from pgoutput_construct.changelog._facts.catalog_readings import Reading, TableReading
from pgoutput_construct.changelog._facts.description_usage import DescriptionUse, uses_of
from pgoutput_construct.changelog._facts.stale_tables import StaleTable
from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.changelog._index.log_index import LogIndex
from pgoutput_construct.changelog._index.planning import last_commit, sent_by_seq
from pgoutput_construct.changelog._segment.segment_descriptions import described
from pgoutput_construct.wire import Lsn

__all__ = ["ChangeDates"]

_Shape: TypeAlias = tuple[str, str, tuple[tuple[str, int, int], ...]]


class ChangeDates:
    """What a log knows of when tables were altered, as of a point."""

    def __init__(self, index: LogIndex, read_lsn: int) -> None:
        """Prepare to look.

        Args:
            index: The index of the log as of the point.
            read_lsn: The LSN of the last reading by then.
        """
        assert index.as_of is not None
        self._index, self._as_of, self._read_lsn = index, index.as_of, read_lsn

    def is_later(self, reading: Reading) -> bool:
        """Return whether all that a reading shows was changed after the point."""
        return self._begin(reading) >= self._as_of.certain_lsn

    def was_altered(self, before: TableReading, after: TableReading) -> bool | None:
        """Return whether a table was altered by then, given the readings before and after; None if it is not known.

        What has no Relation of its own, such as a rewrite or the labels of an enum, is known to have been altered only
        with what has one.
        """
        former, latter = _shape_of_reading(before), _shape_of_reading(after)
        ever = self._uses(after.oid, self._ever)
        if after.gone:
            return False if any(ever.values()) else None
        if former == latter:
            return None
        if latter in self._uses(after.oid, self._then):
            return True
        return False if ever.get(former) else None

    def differs(self, before: TableReading, after: TableReading) -> bool:
        """Return whether a Relation would describe a table in another way, or it was dropped."""
        return after.gone or _shape_of_reading(before) != _shape_of_reading(after)

    def undated(self, reading: Reading, stale: StaleTable) -> StaleTable:
        """Return what a reading shows of a table, saying that it may have happened by the point."""
        begin, end = Lsn(self._begin(reading)), reading.snapshot.lsn
        reason = (
            f"{stale.reason} after {begin} and by {end}, and the log does not say whether that was by "
            f"{Lsn(self._as_of.certain_lsn)}"
        )
        return replace(stale, reason=reason, remedy=f"read it as of {begin} or earlier, or as of {end} or later")

    def _begin(self, reading: Reading) -> int:
        """Return an LSN after which all that a reading shows was changed."""
        received = last_commit(self._as_of.log, reading.unchanged - 1)
        is_known = received is not None and received["seq"] in self._as_of.history
        return max(self._read_lsn, received["commit_lsn"] if received is not None and is_known else 0)

    def _uses(self, oid: int, uses: Iterable[tuple[int, DescriptionUse]]) -> dict[_Shape, bool]:
        """Return what a table looked like in some uses of descriptions, and whether also after the point."""
        found, shapes = dict[_Shape, bool](), self._shapes.get(oid, {})
        for seq, use in uses:
            if seq in shapes:
                lsn = use.last.lsn if isinstance(use.last, Snapshot) else use.last
                found[shapes[seq]] = found.get(shapes[seq], False) or lsn > self._as_of.certain_lsn
        return found

    @cached_property
    def _then(self) -> list[tuple[int, DescriptionUse]]:
        return [*uses_of(self._index)]

    @cached_property
    def _ever(self) -> list[tuple[int, DescriptionUse]]:
        return [*uses_of(self._as_of.log)]

    @cached_property
    def _shapes(self) -> dict[int, dict[int, _Shape]]:
        """What the descriptions of each table look like, by OID and seq."""
        found = dict[int, dict[int, _Shape]]()
        for each in described(sent_by_seq(self._as_of.log).values()):
            relation = each.relation
            columns = ((column.name, column.type_oid, column.type_modifier) for column in relation.columns)
            shape = relation.namespace or "pg_catalog", relation.name, tuple(columns)
            found.setdefault(relation.relation_oid, {})[each.seq] = shape
        return found


def _shape_of_reading(reading: TableReading) -> _Shape:
    published = (column.shape for column in reading.columns if column.published and not column.dropped)
    return reading.namespace, reading.name, tuple(published)
