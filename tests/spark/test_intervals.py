"""The replay against a model that says the same in a few lines of plain Python, on random events."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pgoutput_construct.spark._state.intervals import OPEN, Events, Intervals, RowMatching, find_intervals

SHAPES = (frozenset("ab"), frozenset("abc"), frozenset("bc"))
UNSENT = 2


class Event(NamedTuple):
    """An event as the model has it; rows are values by column."""

    goes: bool
    comes: bool
    old: dict[str, int]
    new: dict[str, int]
    shape: int
    truncates: int
    """How many truncates come right before it."""
    unsent: tuple[bool, ...]


_VALUE = st.integers(0, 2)
_ROW = st.fixed_dictionaries(dict.fromkeys("abc", _VALUE))
_EVENT = st.builds(
    Event,
    st.booleans(),
    st.booleans(),
    _ROW,
    _ROW,
    st.integers(0, len(SHAPES) - 1),
    st.sampled_from([0, 0, 0, 0, 0, 0, 1, 2]),
    st.tuples(*[st.booleans()] * UNSENT),
)


def _model(events: list[Event], keyed: bool) -> tuple[list[Any], list[int], list[list[int]]]:
    """Return what ended each row, which row each event found, and where unsent values are from."""
    there: list[int] = []
    ended: list[Any] = [None] * len(events)
    found, sources, truncates = [-1] * len(events), [[-1] * len(events) for _ in range(UNSENT)], 0

    def in_common(row: int, event: Event) -> frozenset[str]:
        return frozenset("a") if keyed else SHAPES[events[row].shape] & SHAPES[event.shape]

    def first(event: Event, values: dict[str, int]) -> int:
        same = [r for r in there if all(events[r].new[name] == values[name] for name in in_common(r, event))]
        return max(same, key=lambda row: (len(in_common(row, event)), -row), default=-1)

    def end(row: int, by: Any) -> None:
        there.remove(row)
        ended[row] = by

    for number, event in enumerate(events):
        for _ in range(event.truncates):
            for row in list(there):
                end(row, ("truncate", truncates))
            truncates += 1
        if event.goes:
            found[number] = first(event, event.old)
            if found[number] >= 0:
                end(found[number], number)
        if event.comes:
            for column in range(UNSENT):
                before = -1 if found[number] < 0 else sources[column][found[number]]
                sources[column][number] = before if event.unsent[column] else number
            if keyed and (other := first(event, event.new)) >= 0:
                end(other, number)
            there.append(number)
    return ended, found, sources


def _codes(rows: list[dict[str, int]], compared: tuple[frozenset[str], ...]) -> Any:
    codes = [
        [sum(3**place * row[name] for place, name in enumerate(sorted(each))) for row in rows] for each in compared
    ]
    return np.array(codes, np.int64).reshape(len(compared), len(rows))


def _intervals(events: list[Event], alike: RowMatching) -> Intervals:
    epochs = np.cumsum([event.truncates for event in events], dtype=np.int64)
    arrays = Events(
        np.array([event.goes for event in events], np.bool_),
        np.array([event.comes for event in events], np.bool_),
        _codes([event.old for event in events], alike.compared),
        _codes([event.new for event in events], alike.compared),
        np.array([0 if alike.unique else event.shape for event in events], np.int64),
        epochs,
        np.array([event.unsent for event in events], np.bool_).reshape(-1, UNSENT).T.copy(),
    )
    return find_intervals(arrays, alike, int(epochs[-1]) if len(events) else 0)


def _check(events: list[Event], alike: RowMatching) -> None:
    ended, found, sources = _model(events, alike.unique)
    intervals = _intervals(events, alike)
    said = [OPEN if by is None else -2 - by[1] if isinstance(by, tuple) else by for by in ended]
    assert intervals.ended.tolist() == said
    assert intervals.found.tolist() == found
    assert intervals.sources.tolist() == sources


@given(st.lists(_EVENT, max_size=30))
def test_rows_with_a_key(events: list[Event]) -> None:
    """Any events, also such as PostgreSQL does not send: keys that move, that are taken already, that are not there."""
    _check(events, RowMatching.by_key("a"))


def _comes(shape: int) -> Event:
    return Event(False, True, _ZEROS, _ZEROS, shape, 0, (False, False))


_ZEROS = dict.fromkeys("abc", 0)
_GOES = Event(True, False, _ZEROS, _ZEROS, 1, 0, (False, False))


# Rows of two shapes that have as many columns in common with the event: the one that came first goes.
@example([_comes(0), _comes(2), _GOES])
@example([_comes(2), _comes(0), _GOES])
@given(st.lists(_EVENT, max_size=30))
def test_full_rows(events: list[Event]) -> None:
    """Equal rows go as they came; those that were described otherwise are compared by what is common."""
    _check(events, RowMatching.by_rows(SHAPES))


@pytest.mark.slow
def test_all_short_histories_of_a_key() -> None:
    """Every sequence of up to three events of two keys."""
    row = [{"a": key, "b": 0, "c": 0} for key in (0, 1)]
    kinds = [
        Event(goes, comes, row[old], row[new], 0, truncates, (unsent, False))
        for goes, comes in ((True, False), (False, True), (True, True))
        for old, new in ((0, 0), (0, 1), (1, 0))
        for truncates in (0, 1)
        for unsent in (False, True)
        if (old == new or (goes and comes)) and (goes or not unsent) and (comes or not unsent)
    ]
    sequences: list[list[Event]] = [[]]
    for _ in range(3):
        sequences += [[*before, kind] for before in sequences if len(before) == len(sequences[-1]) for kind in kinds]
    for events in sequences:
        _check(events, RowMatching.by_key("a"))
