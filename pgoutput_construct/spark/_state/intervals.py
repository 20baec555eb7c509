"""What changes do to rows: one ordered replay, and the intervals that it finds.

An *interval* is a row, as it was, from the event by which it came to the one by which it went. The replay alone
says what a change does to a row; everything else is read from its intervals:

- the state of a table is its open intervals;
- net changes are the difference between these and the rows before;
- the history is all intervals;
- the changes of missing rows are the events that should end an interval and find none.

An *event* is what a change does. A row goes (delete), comes (insert), or both (update): one goes, and another replaces
it. Rows from before all changes are events, too, by which they come. Events are in the order in which rows saw
them: by the position of their transactions' commits, and in a transaction as they were sent. PostgreSQL itself changed
the rows in another order across transactions, but never those of one row: its lock lasts until the commit.

Which row goes is found by a *code*, a number for the values by which rows are told apart (``row_replay``):

- With a key, it is the key. At most one row has it at any event: an index that can be a replica identity is unique and
  not deferrable (RelationGetIndexAttrBitmap, RelationGetReplicaIndex), so PostgreSQL looks for another row of the key
  at each change. Where a row comes under a key that has one, changes are missing, or a batch is applied again: the
  earlier row ends.
- Where the full row is the identity, equal rows have one code. Nothing tells them apart, so the first that came is the
  first that goes.
- Rows that were described with other columns than the event (a column was added or dropped in between) are compared
  by the columns that both have; a row that has more of these in common is taken before others. PostgreSQL gives an old
  row all columns of now in its message, and what it has in the added ones is not always known.
- Without an identity, rows come only: PostgreSQL refuses to update or delete (CheckCmdReplicaIdentity).

A *truncate* ends all rows that came before it. Truncates are no events, because they have no code; each event has the
number of truncates before it (``epochs``), and a row whose number is lower has ended by the next one.

A value that an update does not send (a TOASTed value that it did not change) is that of the row which goes by the same
event. ``sources`` is the event that sent each such value; -1 where no row went: the value is unknown.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.compiled.jit import inlined, kernel

OPEN: Final = -1
"""Instead of the event that ended a row: it still exists."""


class Events(NamedTuple):
    """Events; those of one code are in their order. Arrays of two dimensions have a column for each event."""

    goes: Flags
    """Whether a row goes."""
    comes: Flags
    """Whether a row comes; if another goes, it replaces that one."""
    old: Numbers
    """The code of the row that goes, by the number of the comparison (see Alike)."""
    new: Numbers
    """The code of the row that comes."""
    shapes: Numbers
    """Which columns it was described with, by number."""
    epochs: Numbers
    """How many truncates are before it."""
    unsent: Flags
    """Whether it did not send the value of a column; by the number of the column."""


class Intervals(NamedTuple):
    """What the replay found for each event."""

    ended: Numbers
    """The event that ended the row of this one; OPEN for none, or see ``truncate_of``."""
    found: Numbers
    """The event that made the row which this one ended; -1 if it found none, or ends none."""
    sources: Numbers
    """The events that sent the values of the new row, by column that some did not send; -1 for unknown values."""


def truncate_of(ended: Numbers) -> Numbers:
    """Return the number of the truncate that ended rows; negative where none did."""
    return -2 - ended


class RowMatching(NamedTuple):
    """How rows are told apart: as numbers, for the kernel."""

    compared: tuple[frozenset[str], ...]
    """The columns of each comparison; codes have its number."""
    lists: Numbers
    """For a shape of events, and one of rows: the number of the list in which the events look for the rows."""
    order: Numbers
    """For a shape of events: the lists in which they look, in order; -1 after the last."""
    of_list: Numbers
    """The number of the comparison for each list."""
    sizes: Numbers
    """How many columns it compares."""
    unique: bool
    """Whether one row at most has a code."""

    @classmethod
    def by_key(cls, keys: Sequence[str]) -> "RowMatching":
        """Return the matching of rows with a key."""
        nothing = np.zeros((1, 1), np.int64)
        return cls((frozenset(keys),), nothing, nothing, nothing[0], nothing[0], unique=True)

    @classmethod
    def by_rows(cls, shapes: Sequence[frozenset[str]]) -> "RowMatching":
        """Return the matching of full rows, which were described with different columns."""
        compared = list(dict.fromkeys(one & other for one in shapes for other in shapes))
        lists = list(dict.fromkeys((now, now_has & has) for now, now_has in enumerate(shapes) for has in shapes))
        found = np.array(
            [[lists.index((now, one & has)) for has in shapes] for now, one in enumerate(shapes)], np.int64
        )
        order = np.full((len(shapes), len(shapes)), -1, np.int64)
        for now in range(len(shapes)):
            mine = sorted(set(found[now].tolist()), key=lambda number: -len(lists[number][1]))
            order[now, : len(mine)] = mine
        of_list = np.array([compared.index(columns) for _, columns in lists], np.int64)
        sizes = np.array([len(columns) for _, columns in lists], np.int64)
        return cls(tuple(compared), found, order, of_list, sizes, unique=False)


def find_intervals(events: Events, matching: RowMatching, truncates: int) -> Intervals:
    """Replay events.

    Args:
        events: The events, in order.
        matching: How their rows are told apart.
        truncates: How many truncates the events belong to, see ``epochs``.
    """
    count, lists = len(events.goes), len(matching.of_list)
    codes = 1 + max(events.old.max(initial=-1), events.new.max(initial=-1))
    ended, found = np.full(count, OPEN, np.int64), np.full(count, -1, np.int64)
    sources = np.full(events.unsent.shape, -1, np.int64)
    ends = np.full((2, lists, codes), -1, np.int64)
    following = np.full((len(matching.lists), count), -1, np.int64)
    _replay(*events, *matching[1:], ends[0], ends[1], following, ended, found, sources)
    left = (ended == OPEN) & events.comes & (events.epochs < truncates)
    return Intervals(np.where(left, -2 - events.epochs, ended), found, sources)


@inlined
def _first(heads: Any, following: Any, ended: Any, epochs: Any, number: int, shape: int, code: int, epoch: int) -> int:
    """Return the first row of a list that exists at an epoch; those before it are removed from the list."""
    row = heads[number, code]
    while row >= 0 and (ended[row] != OPEN or epochs[row] != epoch):
        if ended[row] == OPEN:
            ended[row] = -2 - epochs[row]
        row = following[shape, row]
    heads[number, code] = row
    return row


@inlined
def _taken(
    heads: Any,
    following: Any,
    ended: Any,
    epochs: Any,
    order: Any,
    of_list: Any,
    sizes: Any,
    old: Any,
    event: int,
    shape: int,
) -> int:
    """Return the row that an event ends, -1 for none: the first of those that have most columns in common with it."""
    taken, size = -1, 0
    for index in range(order.shape[1]):
        number = order[shape, index]
        if number < 0 or (taken >= 0 and sizes[number] < size):
            break
        code, size = old[of_list[number], event], sizes[number]
        row = _first(heads, following, ended, epochs, number, shape, code, epochs[event])
        if row >= 0 and (taken < 0 or row < taken):
            taken = row
    return taken


@kernel
def _replay(
    goes: Any,
    comes: Any,
    old: Any,
    new: Any,
    shapes: Any,
    epochs: Any,
    unsent: Any,
    lists: Any,
    order: Any,
    of_list: Any,
    sizes: Any,
    unique: bool,
    heads: Any,
    tails: Any,
    following: Any,
    ended: Any,
    found: Any,
    sources: Any,
) -> None:
    """Replay events; each row is in one list for each shape, linked by ``following``, and removed once it has ended."""
    for event in range(len(goes)):
        shape, taken = shapes[event], -1
        if goes[event]:
            taken = _taken(heads, following, ended, epochs, order, of_list, sizes, old, event, shape)
            found[event] = taken
        if taken >= 0:
            ended[taken] = event
        if not comes[event]:
            continue
        for column in range(unsent.shape[0]):
            if not unsent[column, event]:
                sources[column, event] = event
            elif taken >= 0:
                sources[column, event] = sources[column, taken]
        for later in range(lists.shape[0]):
            number = lists[later, shape]
            code = new[of_list[number], event]
            if unique and _first(heads, following, ended, epochs, number, later, code, epochs[event]) >= 0:
                ended[heads[number, code]] = event
                heads[number, code] = -1
            if heads[number, code] < 0:
                heads[number, code] = event
            else:
                following[later, tails[number, code]] = event
            tails[number, code] = event
