"""Rows of a copy that do not count: their seqs as an event has them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgoutput_construct.changelog._facts.void_rows import NO_VOID_ROWS, VoidRows


@given(st.sets(st.integers(0, 300) | st.integers(2**40, 2**40 + 9)), st.lists(st.integers(0, 310), max_size=20))
def test_seqs(seqs: set[int], others: list[int]) -> None:
    """What is stored has these seqs, and no others."""
    void = VoidRows.from_seqs(np.array(sorted(seqs), np.int64))
    assert VoidRows.read(void.details() if seqs else None) == void and void.rows == len(seqs)
    asked = np.array([*seqs, *others], np.int64)
    assert void.has(asked).tolist() == [each in seqs for each in asked.tolist()]
    assert all((each in void) == (each in seqs) for each in others)
    assert (void == NO_VOID_ROWS) == (not seqs)


def test_damage() -> None:
    """What contradicts itself is refused, without an allocation of what it claims."""
    details = VoidRows.from_seqs(np.array([3, 4, 9], np.int64)).details()
    for change in ({"rows": 4}, {"ranges": 3}, {"ranges": 2**40}, {"seqs": "AAAA"}, {"seqs": "?"}, {"seqs": ""}):
        with pytest.raises(ValueError, match="seqs of void rows"):
            VoidRows.read({**details, **change})
