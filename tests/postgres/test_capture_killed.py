"""Captures and servers that are killed or stopped: nothing is lost, and nothing is logged twice."""

import random
import signal
import time
from functools import partial

import pytest

from pgoutput_construct.postgres import (
    CaptureProgress,
    ReplicationError,
    SegmentLimits,
)
from pgoutput_construct.wire import Lsn
from tests.postgres.exact import TINY, assert_exact, mixed, wait_for_more, writing
from tests.postgres.shop import (
    Shop,
    committed_ids,
    is_active,
    notes,
    wait_until,
)

pytestmark = pytest.mark.server


@pytest.mark.parametrize("kills", [2, pytest.param(3, marks=pytest.mark.long)])
def test_the_log_survives_kill_9_of_its_capture(shop: Shop, kills: int) -> None:
    """A capture killed at any moment, again and again, loses nothing and repeats no whole transaction."""
    moments = random.Random(5)
    with writing(shop):
        for _ in range(kills):
            with shop.capturing_process(limits="SegmentLimits(rows=150, seconds=0.02)"):
                wait_for_more(shop)
                time.sleep(moments.random() * 0.3)
    shop.capture()
    assert_exact(shop)
    assert set(notes(shop.log()).values()) == {1}


def test_the_capture_survives_kill_9_of_the_server(shop: Shop) -> None:
    """A server killed and started again, then restarted: the capture connects again, and the log is exact."""
    reports: list[CaptureProgress] = []
    with shop.capturing(limits=TINY, on_progress=reports.append) as outcome:
        mixed(shop, 0)
        wait_until(lambda: bool(reports) and reports[-1].transactions > 2)
        shop.server.kill()
        shop.server.start()
        wait_until(lambda: reports[-1].reconnects >= 1)
        mixed(shop, 5000)
        wait_until(lambda: is_active(shop))
        wait_for_more(shop)
        shop.server.restart()
        end = shop.execute("INSERT INTO item VALUES (9999, 'last')")
        wait_until(lambda: reports[-1].confirmed_lsn >= end)
    assert outcome.result().ended_by == "stop" and outcome.result().reconnects >= 2
    assert_exact(shop)


def test_a_server_that_stays_down_ends_the_capture(shop: Shop) -> None:
    """Connecting again is bounded; what was received before is in the log."""
    with pytest.raises(ReplicationError), shop.capturing(limits=TINY, reconnect_seconds=0.5) as outcome:
        shop.execute("INSERT INTO item VALUES (1, 'a')")
        wait_until(lambda: bool(list(shop.directory.glob("segment*"))))
        shop.server.kill()
        wait_until(outcome.done)
    shop.server.start()
    assert committed_ids(shop.log()) == [1]


def test_a_server_can_shut_down_while_rows_wait_in_memory(shop: Shop) -> None:
    """A server that shuts down asks; the rows are published and confirmed at once, not at the segment's limit."""
    reports: list[CaptureProgress] = []
    rarely = {"limits": SegmentLimits(seconds=3600), "status_interval": 3600}
    with shop.capturing(**rarely, on_progress=reports.append) as outcome:
        shop.execute("INSERT INTO item VALUES (1, 'a')")
        wait_until(lambda: bool(reports) and reports[-1].payload_bytes > 0)
        began = time.monotonic()
        shop.server.restart()
        assert time.monotonic() - began < 40
    assert outcome.result().ended_by == "stop"
    assert committed_ids(shop.log()) == [1]


def _reply(shop: Shop, sent: Lsn) -> str | None:
    """Ask when the reader of the slot last replied, if all up to a position was sent to it."""
    query = """SELECT reply_time::text FROM pg_stat_replication r JOIN pg_replication_slots s ON r.pid = s.active_pid
               WHERE slot_name = %s AND sent_lsn >= %s::pg_lsn"""
    with shop.connect() as connection:
        row = connection.execute(query.encode(), [shop.slot, str(sent)]).fetchone()
        return row[0] if row else None


def _replied_after(shop: Shop, sent: Lsn, before: str | None) -> bool:
    return _reply(shop, sent) not in (None, before)


def _wait_until_read(shop: Shop, sent: Lsn) -> None:
    """A reader that has replied twice since has read in between."""
    for _ in range(2):
        before = _reply(shop, sent)
        wait_until(partial(_replied_after, shop, sent, before))


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGTERM])
def test_a_signal_finishes_the_segment_and_confirms(shop: Shop, number: signal.Signals) -> None:
    """The process ends by itself with status 0; what it had in memory is in the log and confirmed."""
    with shop.capturing_process(limits="SegmentLimits(seconds=3600)", status_interval=0.2) as process:
        wait_until(lambda: is_active(shop))
        end = shop.execute("INSERT INTO item VALUES (1, 'a')")
        _wait_until_read(shop, end)
        assert not list(shop.directory.glob("segment*"))
        process.send_signal(number)
        assert process.wait(300) == 0
    assert committed_ids(shop.log()) == [1]
    wait_until(lambda: shop.confirmed() >= end, 2)
