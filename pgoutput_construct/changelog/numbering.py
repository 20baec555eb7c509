"""Which number each column of a description has: what the catalog said before and after leaves one answer, or none."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

from pgoutput_construct.changelog.facts import Column, TableReading
from pgoutput_construct.wire.messages import RelationColumn

__all__ = ["find_numbers"]

Numbers: TypeAlias = tuple[int, ...]
Shape: TypeAlias = tuple[str, int, int]
Precedes: TypeAlias = Callable[[int], bool | None]


def find_numbers(
    columns: Sequence[RelationColumn], readings: Sequence[TableReading], precedes: Precedes
) -> Numbers | None:
    """Return the numbers of a description's columns; None where they are not certain.

    ``readings`` are consecutive: the table was as it is described at the first one, at the last one, or at some time
    between. PostgreSQL gives a new column the next number, and a Relation has the columns in their order: so how many
    there are may leave one answer. Else what looks as a whole like one of the readings is that one, unless a name in it
    is another column's in another reading, or columns that it has or lacks were dropped too early or too late:
    ``precedes`` tells whether all rows with the description were written before the transaction of an xid changed the
    table, None where it does not know.
    """
    candidates = {numbers for pair in pairwise(readings) for numbers in _between(len(columns), *pair)}
    if len(candidates) != 1:
        shapes = [(column.name, column.type_oid, column.type_modifier) for column in columns]
        published = [{c.shape: c.number for c in reading.columns if c.published} for reading in readings]
        alike = {tuple(found.values()) for found in published if [*found] == shapes}
        candidates = {n for n in alike if not any(_contradicts(found, shapes, n) for found in published)}
        candidates = {n for n in candidates if _is_in_time(n, readings[0], readings[-1], precedes)}
        candidates = candidates if len(alike) == 1 else set()
    return candidates.pop() if len(candidates) == 1 else None


def _contradicts(found: Mapping[Shape, int], shapes: Sequence[Shape], numbers: Numbers) -> bool:
    return any(found.get(shape, number) != number for shape, number in zip(shapes, numbers, strict=True))


def _is_in_time(numbers: Numbers, before: TableReading, after: TableReading, precedes: Precedes) -> bool:
    """Tell whether columns that were dropped between two readings were still, or no longer, there."""
    old, known = _live(before), {column.number for column in before.columns}
    for column in (column for column in after.columns if column.dropped and column.number not in known - old.keys()):
        is_there, was_there = column.number in numbers, precedes(column.xmin)
        if column.number in old:
            if old[column.number].published and is_there != was_there:
                return False
        elif is_there != was_there and (is_there or numbers[-1:] > (column.number,)):  # it had come already
            return False
    return True


def _between(count: int, before: TableReading, after: TableReading) -> Iterator[Numbers]:
    """Yield the numbers that so many columns may have had between two readings, at least two of them if not certain."""
    old, new = _live(before), _live(after)
    known = {column.number for column in before.columns}
    must = sorted(number for number in old.keys() & new.keys() if old[number].published and new[number].published)
    optional = sorted(number for number in known - {*must} if _is_published(number, old, new))
    added = sorted(column.number for column in after.columns if column.number not in known)
    for end in range(len(added) + 1):
        there = [number for number in added[:end] if number in new and new[number].published]
        # What came and went nobody has seen.
        unseen = [number for number in added[:end] if number not in new]
        yield from _chosen(count, [*must, *there], [*optional, *unseen])


def _chosen(count: int, must: list[int], optional: list[int]) -> Iterator[Numbers]:
    """Yield the ways to have so many numbers, two of them where there are more."""
    missing = count - len(must)
    if 0 <= missing <= len(optional):
        yield tuple(sorted([*must, *optional[:missing]]))
        yield tuple(sorted([*must, *optional[len(optional) - missing :]]))


def _live(reading: TableReading) -> Mapping[int, Column]:
    live = {column.number: column for column in reading.columns if not column.dropped}
    if any(column.published for column in live.values()):
        return live
    # It is not published any more: what was, is not known.
    return {number: replace(column, published=True) for number, column in live.items()}


def _is_published(number: int, *sides: Mapping[int, Column]) -> bool:
    return any(number in side and side[number].published for side in sides)
