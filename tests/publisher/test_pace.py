"""A log at its own pace: what is not due yet is not sent."""

import time

import pytest

from pgoutput_construct.publisher._feed.cursor import Cursor
from pgoutput_construct.publisher._feed.feed import Pace
from pgoutput_construct.publisher._feed.message_feed import MessageFeed
from pgoutput_construct.wire import XLogData
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.protocol import ReplicationOptions
from pgoutput_construct.wire.types import Lsn, Timestamp
from tests.publisher.logs import frames_of
from tests.publisher.reading import ABOUT

_HOUR = 3_600_000_000


@pytest.mark.parametrize("clock", [125.3, None], ids=["a clock of which an hour less and more is not the same", "now"])
def test_what_was_committed_later_comes_later(clock: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first transactions come at once; an hour before the next one is due the client is at their end."""
    if clock is not None:
        monkeypatch.setattr(time, "monotonic", lambda: clock)
    feed = MessageFeed(ABOUT)
    for number, commit_time in enumerate((_HOUR, _HOUR, 2 * _HOUR)):
        lsn, end = Lsn(100 * number + 100), Lsn(100 * number + 150)
        feed.add(lsn, m.Begin(lsn, Timestamp(commit_time), 700 + number))
        feed.add(end, m.Commit(lsn, end, Timestamp(commit_time)))
    cursor = Cursor(feed, ReplicationOptions(), 0, pace=Pace())
    chunk = cursor.next_chunk()
    assert chunk is not None
    assert [type(frame) for frame in frames_of(chunk.data)] == [XLogData] * 4
    assert chunk.position == 250
    assert 3500 < chunk.pause <= 3600
    following = Cursor(feed, ReplicationOptions(), 250, pace=Pace()).next_chunk()
    assert following is not None
    assert (following.position, following.pause) == (350, 0.0)
