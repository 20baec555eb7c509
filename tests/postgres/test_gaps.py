"""Which transactions of a log still count after its slot was lost, and which LSNs a slot may have confirmed."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.changelog._notes.confirmation_note import Note, note_after, read_note, write_note
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.postgres._capture.gaps import LogGapError, _void_after, are_recent
from pgoutput_construct.wire import Lsn
from tests.publisher.logs import WrittenLog


@pytest.mark.parametrize("first", [3, 2**31, 2**32 - 5])
def test_xids_that_have_wrapped_around(first: int) -> None:
    """Transactions of longer ago than a quarter of all xids are not compared; their order may differ by a little."""
    steps = np.tile([9_000_000, -3_000_000, 6_000_000], 200)
    numbers = first + np.cumsum(steps)
    expected = numbers > numbers.max() - 2**30
    assert are_recent(numbers % 2**32).tolist() == expected.tolist()
    assert 0 < expected.sum() < len(expected)


def test_few_xids_and_no_xids() -> None:
    """A log of less than that is compared as a whole; one without transactions has none."""
    assert are_recent(np.array([2**32 - 2, 3, 2**32 - 1, 5])).all()
    assert are_recent(np.zeros(0, np.int64)).tolist() == []


def test_a_note_without_confirmed_lsns(tmp_path: Path) -> None:
    """It vouches for its own position: nobody knows what was confirmed before it."""
    store = open_store(tmp_path)
    old = {name: value for name, value in asdict(Note(Lsn(500), 3)).items() if not name.startswith("told")}
    (tmp_path / ".confirmed.json").write_text(json.dumps(old), "ascii")
    note = read_note(store).including(200)  # the last segment is before it
    assert note.may_have_told(300) and note.may_have_told(500)
    assert not note.including(900).may_have_told(700)
    write_note(store, note.including(900))
    assert read_note(store) == note.including(900)


def test_a_note_forgets_old_confirmed_lsns() -> None:
    """The positions before the oldest one that is kept may have been told, also where a segment's is added again."""
    note = note_after(Lsn(1000), 0, None)
    for position in range(1001, 7001):
        note = note.including(2 * position)
    note = note.including(1000)
    assert note.may_have_told(1003) and note.may_have_told(2 * 2000 + 1)
    assert not note.may_have_told(2 * 6000 + 1) and len(note.told) <= 4096
    assert replace(note, told=()).including(0).told == ()


_OLD = 2**31 + 50
"""An xid that looks newer than the snapshot, two billion transactions later."""


@pytest.mark.parametrize(
    ("xids", "noted", "void_after", "expected"),
    [
        ((91, 92, 96), 0, None, 20),  # 92 had not ended when the snapshot was taken
        ((91, 93), 0, None, None),
        ((91, 93), 51, None, 50),  # an LSN that the server has not reached
        ((91, 93), 50, None, None),
        ((91, 92), 51, 15, 15),
        ((91, 92), 51, 45, 20),
        ((_OLD, _OLD + 2**30, 2**32 + 91), 0, None, None),
    ],
)
def test_what_is_void(
    tmp_path: Path, xids: tuple[int, ...], noted: int, void_after: int | None, expected: int | None
) -> None:
    """What the server cannot have: transactions that its snapshot does not see, and what is after its end."""
    log = WrittenLog(tmp_path)
    for number, xid in enumerate(xids, 1):
        log.commit(xid % 2**32, 10 * number, 10 * number + 1)
    log.publish()
    writer: Any = SimpleNamespace(store=open_store(log.directory), noted_lsn=Lsn(noted))
    gap = LogGapError("gap", None if void_after is None else Lsn(void_after))
    assert _void_after(writer, Snapshot(90, 95, (92,), Lsn(50)), gap) == (None if expected is None else Lsn(expected))
