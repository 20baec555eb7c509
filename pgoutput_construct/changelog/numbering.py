"""Which number each column of a description has: what the catalog said before and after leaves one answer, or none."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, TypeAlias

from pgoutput_construct.changelog.facts import Column, TableReading
from pgoutput_construct.wire.messages import RelationColumn

__all__ = ["find_numbers"]

Shape: TypeAlias = tuple[str, int, int]
Numbers: TypeAlias = tuple[int, ...]

_MANY: Final = 2


@dataclass(frozen=True)
class _Choice:
    """A number that a column of the description may have."""

    number: int
    must: bool
    """It was published all the time: the description has it."""
    shapes: frozenset[Shape]
    """What it looked like before and after."""
    unseen: bool
    """It came and went between: nobody knows what it looked like."""


def find_numbers(columns: Sequence[RelationColumn], readings: Sequence[TableReading]) -> Numbers | None:
    """Return the numbers of a description's columns; None where they are not certain.

    ``readings`` are consecutive: the table was as it is described at the first one, at the last one, or at some time
    between.
    """
    shapes = [(column.name, column.type_oid, column.type_modifier) for column in columns]
    pairs = list(pairwise(readings)) or [(readings[0], readings[0])]
    # A name or a type that was there for a moment only, between two readings, leaves the numbers certain all the same.
    for strict in (True, False)[: len(readings)]:
        found = {numbers for pair in pairs for numbers in _assignments(shapes, _choices(*pair), strict)}
        if found:
            return found.pop() if len(found) == 1 else None
    return None


def _choices(before: TableReading, after: TableReading) -> list[_Choice]:
    """Return the numbers that a description may have which was made between two readings."""
    old, new = _by_number(before), _by_number(after)
    found = []
    for number in sorted({*old, *new}):
        sides = [side[number] for side in (old, new) if number in side]
        live = [column for column in sides if not column.dropped]
        unseen = number not in old and not live
        if unseen or any(column.published for column in live):
            must = len(live) == _MANY and all(column.published for column in live)
            found.append(_Choice(number, must, frozenset(column.shape for column in live), unseen))
    return found


def _by_number(reading: TableReading) -> Mapping[int, Column]:
    if any(column.published for column in reading.columns):
        return {column.number: column for column in reading.columns}
    # It is not published any more: what was, is not known.
    return {column.number: replace(column, published=True) for column in reading.columns}


def _assignments(shapes: Sequence[Shape], choices: Sequence[_Choice], strict: bool) -> Iterator[Numbers]:
    """Yield up to two ways in which choices, in their order, are the columns of a description.

    ``strict``: each column looks as its number did before or after. The numbers of a table only grow, and a Relation
    has its columns in their order.
    """
    columns, count = len(shapes), len(choices)
    fits = [[not strict or choice.unseen or shape in choice.shapes for choice in choices] for shape in shapes]
    ways = [[0] * (count + 1) for _ in range(columns + 1)]
    ways[columns][count] = 1
    for place in range(count - 1, -1, -1):
        for column in range(columns, -1, -1):
            passed = 0 if choices[place].must else ways[column][place + 1]
            taken = ways[column + 1][place + 1] if column < columns and fits[column][place] else 0
            ways[column][place] = min(passed + taken, _MANY)
    for skipping in (False, True)[: ways[0][0]]:
        yield _follow(ways, choices, fits, skipping)


def _follow(
    ways: Sequence[Sequence[int]], choices: Sequence[_Choice], fits: Sequence[Sequence[bool]], skipping: bool
) -> Numbers:
    """Return one way, which takes or (``skipping``) passes a choice wherever both are possible."""
    numbers, column = [], 0
    for place, choice in enumerate(choices):
        can_take = column < len(fits) and fits[column][place] and ways[column + 1][place + 1] > 0
        can_pass = not choice.must and ways[column][place + 1] > 0
        if can_take and not (can_pass and skipping):
            numbers.append(choice.number)
            column += 1
    return tuple(numbers)
