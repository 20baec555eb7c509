"""Finds the attribute number of each column of a description, from readings of the catalog before and after it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, pairwise
from typing import TypeAlias

from pgoutput_construct.changelog._facts.catalog_readings import CatalogColumn, ColumnDifference, TableReading
from pgoutput_construct.wire.messages import RelationColumn
from pgoutput_construct.wire.protocol import RelationColumnFlags

__all__ = ["ColumnId", "ReadingWindow", "column_ids"]

ColumnId: TypeAlias = int | str
"""A column of a table: its attribute number, which a rename does not change; its name where the log does not have the
number."""
Numbers: TypeAlias = tuple[int, ...]
Shape: TypeAlias = tuple[str, int, int]
Precedes: TypeAlias = Callable[[int], bool | None]


class ReadingWindow:
    """Consecutive readings of a table: a description was in force at the first, at the last, or between them.

    PostgreSQL gives a new column the next number (AddNewAttributeTuples, ATExecAddColumn), and a Relation has the
    columns in that order. So the number of columns may determine the answer. Otherwise, a description whose columns all
    look like those of one reading is that one, unless a name in it belongs to another column in another reading, or
    unless columns that it has or lacks were dropped too early or too late.

    A table has up to 1,600 numbers (MaxHeapAttributeNumber), including dropped columns, and an ALTER TABLE mostly
    concerns one: columns that are the same object in all readings (``TableFactsReader``) are skipped, and what follows
    from the readings alone is computed once for all descriptions between them.
    """

    def __init__(
        self,
        readings: Sequence[TableReading],
        altered: ColumnDifference | None = None,
    ) -> None:
        """Take at least one reading; for two, optionally the columns in which they differ."""
        self._readings = readings
        self._altered = altered
        self._candidates: dict[int, Numbers | None] = {}
        self._certain: tuple[Sequence[RelationColumn], Numbers | None] | None = None

    def find(self, columns: Sequence[RelationColumn], precedes: Precedes) -> Numbers | None:
        """Return the numbers of a description's columns; None if they are uncertain.

        Args:
            columns: The columns of the description.
            precedes: Returns whether all rows with the description were written before the transaction of an xid
                altered the table; None if it does not know.
        """
        if self._certain is not None and self._certain[0] is columns:  # the same Relation was sent again
            return self._certain[1]
        numbers = self._find(columns)
        if numbers is None or len(self._readings) == 1 or self._only_candidate(len(columns)) is not None:
            self._certain = columns, numbers
            return numbers
        return numbers if self._is_in_time(numbers, precedes) else None

    def is_ambiguous(self, columns: Sequence[RelationColumn]) -> bool:
        """Return whether a description looks like several readings, so that a later reading cannot help.

        Called where ``find`` returned None.
        """
        return len(self._alike(columns)) > 1

    def has_whole_key(self, columns: Sequence[RelationColumn], numbers: Numbers) -> bool:
        """Return whether the columns that a description marks as key are the whole replica identity.

        The server marks the published ones (logicalrep_write_attrs()). If others are not published, it rejects updates
        and deletes (CheckCmdReplicaIdentity()), and several rows may have equal marked columns.
        """
        if not self._hides_identity:
            return True
        pairs = zip(numbers, columns, strict=True)
        marked = {number for number, column in pairs if column.flags & RelationColumnFlags.KEY}
        return not all(marked < reading.identity for reading in self._readings if reading.identity)

    @cached_property
    def _hides_identity(self) -> bool:
        return any(reading.hides_identity for reading in self._readings)

    def _find(self, columns: Sequence[RelationColumn]) -> Numbers | None:
        """Return the numbers that are possible, ignoring when columns were dropped."""
        if (numbers := self._only_candidate(len(columns))) is not None:
            return numbers
        alike = self._alike(columns)
        if len(alike) != 1:
            return None
        (numbers,) = alike
        return None if self._contradicts(dict(zip(_shapes(columns), numbers, strict=True))) else numbers

    def _alike(self, columns: Sequence[RelationColumn]) -> Collection[Numbers]:
        return self._published.get(_shapes(columns), ())

    def _only_candidate(self, count: int) -> Numbers | None:
        """Return the only numbers that ``count`` columns can have between two readings; None if there are several."""
        if count not in self._candidates:
            self._candidates[count] = self._candidate(count)
        return self._candidates[count]

    def _candidate(self, count: int) -> Numbers | None:
        common, sides = self._apart
        published = self._readings[0].columns.published
        if common and all(
            _are_as_published(sides[0], side) for side in sides[1:]
        ):  # the usual case: a column was renamed
            return published if count == len(published) else None
        pairs = zip(pairwise(sides), pairwise(self._lives), strict=True)
        found: set[Numbers] = set()
        for candidate in chain.from_iterable(_between(count - common, *both, *live) for both, live in pairs):
            found.add(candidate)
            if len(found) > 1:
                return None
        return self._with_common(found.pop()) if found else None

    @cached_property
    def _apart(self) -> tuple[int, Sequence[Sequence[CatalogColumn]]]:
        """The number of published columns that are the same in all readings, and the other columns of each reading.

        If that number is 0, the others are all columns. Columns that were dropped before all readings, or are published
        in none, are in neither, since they do not matter.
        """
        first, *others = (reading.columns for reading in self._readings)
        if not others:
            return 0, [[]]
        sides: Sequence[Sequence[CatalogColumn]] = self._altered or first.differing(*others)
        common = len(first.published) - sum(column.published for column in sides[0])
        if common:
            return common, sides
        other_numbers = {column.number for column in sides[0]}
        shared = [column for column in first if not column.dropped and column.number not in other_numbers]
        return 0, [[*shared, *side] for side in sides]

    def _with_common(self, others: Numbers) -> Numbers:
        """Return the numbers of all columns, given those of the columns that differ between readings."""
        common, sides = self._apart
        if not common:
            return others
        for reading, side in zip(self._readings, sides, strict=True):
            if others == tuple(sorted(column.number for column in side if column.published)):
                return reading.columns.published
        altered = {column.number for column in sides[0]}
        numbers = (number for number in self._readings[0].columns.published if number not in altered)
        return tuple(sorted([*numbers, *others]))

    @cached_property
    def _lives(self) -> list[Mapping[int, CatalogColumn]]:
        """The other columns that exist at each reading, by number."""
        common, sides = self._apart
        return [_live(side, bool(common)) for side in sides]

    @cached_property
    def _published(self) -> dict[tuple[Shape, ...], set[Numbers]]:
        """The numbers of the columns published at each reading, by the shapes that a description of them has."""
        found: dict[tuple[Shape, ...], set[Numbers]] = {}
        for reading in self._readings:
            published = {column.shape: column.number for column in reading.columns if column.published}
            found.setdefault(tuple(published), set()).add(tuple(published.values()))
        return found

    def _contradicts(self, numbers: Mapping[Shape, int]) -> bool:
        """Return whether a different column has the shape of one of these at one of the readings."""
        published = (column for side in self._apart[1] for column in side if column.published)
        return any(numbers.get(column.shape, column.number) != column.number for column in published)

    def _is_in_time(self, numbers: Numbers, precedes: Precedes) -> bool:
        """Return whether columns dropped between the readings are in the description if and only if it came before."""
        sides, old = self._apart[1], self._lives[0]
        known = {column.number for column in sides[0]} - old.keys()
        for column in (column for column in sides[-1] if column.dropped and column.number not in known):
            exists, existed = column.number in numbers, precedes(column.xmin)
            if column.number in old:
                if old[column.number].published and exists != existed:
                    return False
            elif exists != existed and (exists or numbers[-1:] > (column.number,)):  # it had been added already
                return False
        return True


def _shapes(columns: Sequence[RelationColumn]) -> tuple[Shape, ...]:
    return tuple((column.name, column.type_oid, column.type_modifier) for column in columns)


def _between(
    count: int,
    before: Sequence[CatalogColumn],
    after: Sequence[CatalogColumn],
    old: Mapping[int, CatalogColumn],
    new: Mapping[int, CatalogColumn],
) -> Iterator[Numbers]:
    """Yield the numbers that columns may have had between two readings: at least two candidates if it is uncertain.

    Args:
        count: The number of columns.
        before: The columns at the earlier reading, including dropped ones.
        after: The columns at the later reading.
        old: The existing columns among ``before``, by number.
        new: The existing columns among ``after``, by number.
    """
    known = {column.number for column in before}
    must = sorted(number for number in old.keys() & new.keys() if old[number].published and new[number].published)
    live = (old.keys() | new.keys()) & known
    optional = sorted(number for number in live - {*must} if _is_published(number, old, new))
    added = sorted(column.number for column in after if column.number not in known)
    missing = count - len(must)  # the columns still to be chosen, given the added columns so far
    unseen = 0  # columns that were added and dropped between the readings
    last = -1, 0
    for end in range(len(added) + 1):
        if end and added[end - 1] not in new:
            unseen += 1
        elif end and new[added[end - 1]].published:
            missing -= 1
        chosen = missing, unseen if missing else 0
        if 0 <= missing <= len(optional) + unseen and chosen != last:
            come = [number for number in added[:end] if number in new and new[number].published]
            may = [*optional, *(number for number in added[:end] if number not in new)]
            yield tuple(sorted([*must, *come, *may[:missing]]))
            yield tuple(sorted([*must, *come, *may[len(may) - missing :]]))
            last = chosen


def _are_as_published(before: Sequence[CatalogColumn], after: Sequence[CatalogColumn]) -> bool:
    """Return whether two readings have the same columns, all published: none was added or dropped."""
    return len(before) == len(after) and all(
        old.number == new.number and old.published and new.published for old, new in zip(before, after, strict=True)
    )


def _live(columns: Sequence[CatalogColumn], has_published: bool) -> Mapping[int, CatalogColumn]:
    """Return the existing columns by number; ``has_published``: other columns exist that are published."""
    live = {column.number: column for column in columns if not column.dropped}
    if has_published or any(column.published for column in live.values()):
        return live
    # The table is no longer published: which columns were is unknown.
    return {number: replace(column, published=True) for number, column in live.items()}


def _is_published(number: int, *sides: Mapping[int, CatalogColumn]) -> bool:
    return any(number in side and side[number].published for side in sides)


def column_ids(described: Iterable[tuple[Sequence[str], Numbers | None]]) -> list[tuple[ColumnId, ...]]:
    """Return which column is which in the descriptions of a table, as all readers of a log tell them apart.

    The log does not know the numbers of a description that no row has, or after which the catalog was not read yet,
    among others. There a name is taken for the column that was called so last, else for the one that is called so next,
    unless that is another one of the description, or was dropped in between.

    Args:
        described: The names of the columns of each description, and their numbers, None where these are unknown; in the
            order of the log.
    """
    found = [(names, tuple[ColumnId, ...](names if numbers is None else numbers)) for names, numbers in described]
    if all(isinstance(one, int) for _, ids in found for one in ids[:1]):
        return [ids for _, ids in found]
    for step in (1, -1):
        known, called = dict[str, int](), dict[int, str]()
        for number in range(len(found))[::step]:
            names, ids = found[number]
            if any(isinstance(one, str) for one in ids):
                found[number] = names, (ids := _with_known(names, ids, known, called))
            else:  # what it lacks was dropped, or comes only later
                known = {name: one for name, one in known.items() if one in {*ids}}
            numbered = [(name, one) for name, one in zip(names, ids, strict=True) if isinstance(one, int)]
            known |= dict(numbered)
            called |= {one: name for name, one in numbered}
    return [ids for _, ids in found]


def _with_known(
    names: Sequence[str], ids: tuple[ColumnId, ...], known: Mapping[str, int], called: Mapping[int, str]
) -> tuple[ColumnId, ...]:
    """Return the columns of a description, those without numbers by the columns that are known to have their names.

    Args:
        names: Their names.
        ids: What is known of them.
        known: The columns by all names that they had.
        called: What each is called at last.
    """
    chosen, taken = [*ids], {*ids}
    for is_latest in (True, False):
        for number, name in enumerate(names):
            one = known.get(name)
            if isinstance(chosen[number], int) or one is None or one in taken:
                continue
            if called[one] == name if is_latest else called[one] not in names:
                chosen[number] = one
                taken.add(one)
    return tuple(chosen)
