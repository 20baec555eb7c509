"""A log on an S3 server: captured, killed, resumed, compacted, read by Spark."""

import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog.compact import CompactionLimits, compact
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.spark import open_log
from tests.postgres.shop import Shop, wait_until

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.mark.long
def test_a_log_in_an_object_store(spark: Any, server18: EmbeddedServer, s3_address: str, tmp_path: Path) -> None:
    """What the source has is what comes out, though the capture was killed on the way; executors read the address."""
    with Shop.create(server18, "on_s3", tmp_path) as shop:
        shop.directory = s3_address  # type: ignore[assignment]
        limits = "SegmentLimits(rows=20, seconds=0.2)"
        for first, least in ((0, 40), (200, 240)):
            with shop.capturing_process(limits=limits) as process:
                shop.execute(*(f"INSERT INTO item VALUES ({key}, 'n {key}')" for key in range(first, first + 200)))
                shop.execute(f"UPDATE item SET name = 'changed' WHERE id = {first + 7}")
                wait_until(partial(_holds, s3_address, least))
                process.send_signal(signal.SIGKILL)
        shop.capture()
        before = ChangeLog(s3_address)
        done = compact(s3_address, CompactionLimits(grace=0))
        assert done.merged and len(ChangeLog(s3_address)) == len(before)
        log = open_log(spark, s3_address)
        with shop.connect() as connection:
            expected = connection.execute("SELECT id, name FROM item ORDER BY id").fetchall()
        found = log.state("public.item").select("id", "name").orderBy("id").collect()
        assert [tuple(row) for row in found] == expected and len(expected) == 400


def _holds(address: str, least: int) -> bool:
    """Return whether a log has so many transactions."""
    try:
        return ChangeLog(address).transactions().num_rows >= least
    except ValueError:
        return False
