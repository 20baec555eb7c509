"""The description (Relation and Types) of each of many rows, without a Python loop over the rows."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pgoutput_construct.columnar.batch_arrays import all_same
from pgoutput_construct.stream.relations import RelationHistory

__all__ = ["OUTSIDE", "UNDESCRIBED", "copy_scope", "find_descriptions", "group_rows"]

Numbers = NDArray[np.int64]

OUTSIDE: Final = -1
"""The scope of rows outside of streams; inside, it is the stream's xid. Lower numbers are ``copy_scope``s."""
UNDESCRIBED: Final = -1
"""The index of the description of rows without a Relation."""


def copy_scope(number: int) -> int:
    """Return the scope of a chunk of copied rows: the Relation in a chunk describes the rows of that chunk alone."""
    return OUTSIDE - 1 - number


def group_rows(
    history: RelationHistory, oids: Numbers, scopes: Numbers, rows: Numbers, first: int
) -> Iterator[tuple[int, slice | Numbers]]:
    """Yield each description (its index in the history, or UNDESCRIBED) with the positions in ``rows`` that have it.

    Args:
        history: The descriptions of all scopes.
        oids: The relation OID of each row.
        scopes: The scope of each payload of the batch.
        rows: The indexes of the rows' payloads, ascending.
        first: The seq of the first payload.
    """
    if len(rows) and all_same(oids) and all_same(scopes):
        starts, known = _changes(history, int(oids[0]), int(scopes[rows[0]]))
        last = bisect_right(starts, first + int(rows[-1]))
        if bisect_right(starts, first + int(rows[0])) == last:
            yield known[last - 1] if last else UNDESCRIBED, slice(None)
            return
    found = find_descriptions(history, oids, scopes[rows], rows + first)
    for index in np.unique(found).tolist():
        yield index, np.flatnonzero(found == index)


def find_descriptions(history: RelationHistory, oids: Numbers, scopes: Numbers, seqs: Numbers) -> Numbers:
    """Return the index of each row's description in the history, UNDESCRIBED if it has none.

    Args:
        history: The descriptions of all scopes.
        oids: The relation OID of each row.
        scopes: The scope of each row: the top-level xid of its stream, or OUTSIDE.
        seqs: The seq of each row.
    """
    descriptions = np.full(len(oids), UNDESCRIBED, np.int64)
    for scope, oid, mine in _together(scopes, oids):
        starts, known = _changes(history, oid, scope)
        if starts:
            found = np.searchsorted(np.asarray(starts, np.int64), seqs[mine], "right") - 1
            descriptions[mine] = np.where(found >= 0, np.asarray(known, np.int64)[found], UNDESCRIBED)
    return descriptions


def _changes(history: RelationHistory, oid: int, scope: int) -> tuple[Sequence[int], Sequence[int]]:
    return history.changes(oid, None if scope == OUTSIDE else scope)


def _together(scopes: Numbers, oids: Numbers) -> Iterator[tuple[int, int, slice | Numbers]]:
    """Yield each pair of scope and OID with its rows."""
    if not len(oids):
        return
    if all_same(oids) and all_same(scopes):
        yield int(scopes[0]), int(oids[0]), slice(None)
        return
    for scope in np.unique(scopes).tolist():
        of_scope = scopes == scope
        for oid in np.unique(oids[of_scope]).tolist():
            yield scope, oid, np.flatnonzero(of_scope & (oids == oid))
