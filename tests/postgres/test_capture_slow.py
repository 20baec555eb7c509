"""Slow disks, callbacks and synchronous commits: the stream and the log do not starve each other."""

import os
import time

import psycopg
import pytest

from pgoutput_construct.postgres import (
    CaptureProgress,
    LogWriter,
    SegmentLimits,
)
from pgoutput_construct.postgres import capture as capture_function
from tests.postgres.shop import (
    PUBLICATION,
    Shop,
    committed_ids,
    wait_until,
)

pytestmark = pytest.mark.server


def test_a_slow_disk_and_slow_callbacks_do_not_starve_the_stream(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an fsync of 7 s, on_progress of 1.1 s and wal_sender_timeout of 5 s a large transaction comes once."""
    fsync, calls = os.fsync, list[int]()

    def slow(descriptor: int) -> None:
        time.sleep(7 if len(calls) < 2 else 0)
        calls.append(descriptor)
        fsync(descriptor)

    insert = "INSERT INTO item SELECT g, repeat(md5(g::text), 30) FROM generate_series(1, 20000) g"
    end = shop.execute(insert)
    dsn = psycopg.conninfo.make_conninfo(shop.dsn, options="-c wal_sender_timeout=5s")
    with LogWriter(shop.directory):
        pass
    monkeypatch.setattr(os, "fsync", slow)
    reports: list[int] = []

    def report(progress: CaptureProgress) -> None:
        time.sleep(1.1)
        reports.append(progress.rows)

    limits = SegmentLimits(payload_bytes=2**20)
    result = capture_function(
        dsn, shop.slot, [PUBLICATION], shop.directory, until_lsn=end, limits=limits, on_progress=report, new_log=True
    )
    assert len(calls) > 2 and reports[-1] == result.rows
    assert (result.reconnects, result.transactions, result.confirmed_lsn >= end) == (0, 1, True)
    assert sorted(committed_ids(shop.log())) == list(range(1, 20001))


def test_a_commit_that_waits_for_the_capture_cuts_a_segment(shop: Shop) -> None:
    """As a synchronous standby the capture confirms each commit at once, not at the limit of the segment."""
    warnings: list[str] = []
    with shop.connect() as admin:
        admin.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        admin.execute("SELECT pg_reload_conf()")
        try:
            with shop.capturing(limits=SegmentLimits(seconds=3600), status_interval=0.2), shop.connect() as writer:
                writer.add_notice_handler(lambda notice: warnings.append(str(notice.message_primary)))
                writer.execute("SET statement_timeout = '20s'")  # the server then says that it has not waited
                query = "SELECT FROM pg_stat_replication WHERE sync_state = 'sync'"
                wait_until(lambda: bool(admin.execute(query).fetchall()))
                for number in range(3):
                    writer.execute("INSERT INTO item VALUES (%s, 'waits')", [number])
        finally:
            admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
            admin.execute("SELECT pg_reload_conf()")
    assert warnings == []
    assert sorted(committed_ids(shop.log())) == [0, 1, 2] and len(shop.log().segments) >= 3
