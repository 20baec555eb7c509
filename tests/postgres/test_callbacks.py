"""Progress reports and warnings of a capture, and callbacks that fail or block."""

import threading

import pytest

from pgoutput_construct.postgres import CaptureProgress, SegmentLimits
from pgoutput_construct.postgres._capture.slot_watch import SlotWatch
from pgoutput_construct.wire import Lsn
from tests.postgres.shop import PUBLICATION, Shop, committed_ids, wait_until

pytestmark = pytest.mark.server


@pytest.mark.parametrize("error", [BrokenPipeError, SystemExit])
def test_what_was_received_is_durable_when_a_callback_fails(shop: Shop, error: type[BaseException]) -> None:
    """Whatever a callback raises: it comes out, and the segment that was being filled is in the log."""

    def show(progress: CaptureProgress) -> None:
        if progress.payload_bytes:
            raise error("from the callback")

    end = shop.execute("INSERT INTO item VALUES (1, 'a')")
    with pytest.raises(error, match="from the callback"):
        shop.capture(until=Lsn(end + 2**30), limits=SegmentLimits(seconds=3600), on_progress=show)
    assert committed_ids(shop.log()) == [1]


def test_a_callback_that_does_not_return_is_abandoned(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """The capture ends without it, and says so."""
    free = threading.Event()
    giving_up = threading.Timer(30, free.set)
    giving_up.start()
    shop.execute("INSERT INTO item VALUES (1, 'a')")
    try:
        shop.capture(on_progress=lambda _: free.wait() and None)
        assert not free.is_set() and "a callback has not returned" in "\n".join(caplog.messages)
    finally:
        giving_up.cancel()
        free.set()
    assert committed_ids(shop.log()) == [1]


def test_the_first_progress_has_the_slots_confirmed_lsn(shop: Shop) -> None:
    """In a new log, and after a restart, progress begins where the slot is: the lag is not all of the server's WAL."""
    for number in range(2):
        confirmed = shop.confirmed()
        reports: list[CaptureProgress] = []
        with shop.capturing(on_progress=reports.append):
            wait_until(lambda reports=reports: any(report.connected for report in reports))  # type: ignore[misc]
        assert next(report for report in reports if report.connected).confirmed_lsn >= confirmed > 0
        shop.execute(f"INSERT INTO item VALUES ({number}, 'a')")
        shop.capture()


def test_a_watch_warns_again_about_a_problem_that_recurs(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """Each terminated connection is logged, after a successful poll."""
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
    with SlotWatch(shop.dsn, shop.slot, [PUBLICATION], 0.1) as watch, shop.connect() as connection:
        watch.start()
        for _ in range(2):
            told = "\n".join(caplog.messages).count("the stream continues")
            for _ in range(2):  # a poll has its health before its end
                watch.health = None
                wait_until(lambda: watch.health is not None)
            connection.execute(ended, [shop.dbname])
            wait_until(lambda told=told: "\n".join(caplog.messages).count("the stream continues") > told)  # type: ignore[misc]
