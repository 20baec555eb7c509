"""Which description each of many rows has, without a loop over the rows."""

from bisect import bisect_right
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pgoutput_construct.columnar.gather import all_same
from pgoutput_construct.stream.relations import RelationHistory

__all__ = ["OUTSIDE", "UNDESCRIBED", "find_descriptions"]

Numbers = NDArray[np.int64]

OUTSIDE: Final = -1
"""The scope of rows outside streams; inside it is the stream's xid."""
UNDESCRIBED: Final = -1
"""The description of rows that no Relation has described."""


def find_descriptions(history: RelationHistory, oids: Numbers, scopes: Numbers, seqs: Numbers) -> Numbers:
    """Return for each row the index of its description in the history, UNDESCRIBED where there is none.

    A row is given by its relation OID, its scope (the top-level xid of its stream, or OUTSIDE), and its position.
    """
    descriptions = np.full(len(oids), UNDESCRIBED, np.int64)
    if not len(oids):
        return descriptions
    # An OID has 32 bits and a scope 33: together they are one number to sort by.
    same = all_same(oids) and all_same(scopes)
    keys = (scopes[:1] + 1 if same else scopes + 1) << 32 | (oids[:1] if same else oids)
    for key in keys if same else np.unique(keys):
        mine = slice(None) if same else np.flatnonzero(keys == key)
        scope = int(key >> 32) - 1
        starts, known = history.changes(int(key & 0xFFFFFFFF), None if scope == OUTSIDE else scope)
        if same and bisect_right(starts, int(seqs.min())) == (last := bisect_right(starts, int(seqs.max()))):
            descriptions.fill(known[last - 1] if last else UNDESCRIBED)
        elif starts:
            found = np.searchsorted(np.asarray(starts, np.int64), seqs[mine], "right") - 1
            descriptions[mine] = np.where(found >= 0, np.asarray(known, np.int64)[found], UNDESCRIBED)
    return descriptions
