"""Rates, lag and estimates, and their texts."""

from dataclasses import replace
from typing import Any

import pytest

from pgoutput_construct.cli._printing import counted, sized
from pgoutput_construct.cli._progress import Estimate, Meter, announce_spark, describe, waiting_line
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.postgres import CaptureProgress, SlotHealth
from pgoutput_construct.wire import Lsn


def _health(confirmed: int, lag: int) -> SlotHealth:
    values: dict[str, Any] = dict.fromkeys(SlotHealth.__dataclass_fields__)
    return SlotHealth(**{**values, "confirmed_lsn": Lsn(confirmed), "lag_bytes": lag})


def test_lag_is_how_long_something_has_been_missing() -> None:
    """It begins when the server is first seen beyond what is durable, and ends when that is durable."""
    now = 100.0
    progress = CaptureProgress(confirmed_lsn=Lsn(1000))
    meter = Meter(progress, lambda: now)
    meter.report(replace(progress, health=_health(1000, 0)))
    assert meter.speed().lag_bytes == meter.speed().lag_seconds == 0
    meter.report(replace(progress, health=_health(1000, 50)))
    now = 103.0
    meter.report(replace(progress, health=_health(1000, 80)))
    now = 105.0
    assert (meter.speed().lag_bytes, meter.speed().lag_seconds) == (80, 5.0)
    meter.report(replace(progress, confirmed_lsn=Lsn(1060)))
    assert (meter.speed().lag_bytes, meter.speed().lag_seconds) == (20, 2.0)
    meter.report(replace(progress, confirmed_lsn=Lsn(1080)))
    assert (meter.speed().lag_bytes, meter.speed().lag_seconds) == (0, 0.0)


def test_waiting_is_said_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal, whoever reads standard error learns at once what is waited for, and that it still is."""
    now, shown = 100.0, list[str]()
    wait = waiting_line(shown.append, lambda: now)
    for now in (100.0, 100.5, 159.0, 160.0):
        wait(f"at {now}")
    assert capsys.readouterr().err == "at 100.0\nat 160.0\n" and len(shown) == 4


def test_the_start_of_spark_is_announced(capsys: pytest.CaptureFixture[str]) -> None:
    """With the master, and the jars that may have to be downloaded; not with a master that is refused at once."""
    shown = list[str]()
    announce_spark("local[2]", "parquet", shown.append)
    announce_spark("yarn", "delta")
    with pytest.raises(PgoutputError, match="invalid Spark master"):
        announce_spark("nonsense")
    assert shown == ["starting Spark (local[2]): this takes 10 to 30 seconds"]
    assert capsys.readouterr().err.endswith("; the first time, it downloads the jars of delta, a minute or more\n")


def test_rates_are_of_the_last_seconds() -> None:
    """What was captured long ago does not count."""
    now = 0.0
    meter = Meter(CaptureProgress(), lambda: now)
    for second in range(1, 41):
        now = float(second)
        meter.report(CaptureProgress(rows=1000 * min(second, 20), payload_bytes=5000 * min(second, 20)))
    assert meter.speed()[:2] == (0.0, 0.0)
    meter = Meter(CaptureProgress(), lambda: now)
    now += 2.0
    meter.report(CaptureProgress(rows=1000, payload_bytes=4 << 20, connected=True))
    assert meter.speed()[:2] == (500.0, 2 << 20)
    assert describe(meter).startswith("1,000 messages · 500/s · 2.0 MB/s · confirmed 0/0 · lag 0 bytes, 0.0 s")
    meter.report(replace(meter.progress, connected=False))
    assert describe(meter).startswith("not connected · 1,000 messages")


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (16 << 20, "16.0 MB"), (1 << 60, "1,048,576 TB")],
    ids=str,
)
def test_sizes(size: int, text: str) -> None:
    """Sizes in powers of 1024, with as many digits as people read."""
    assert sized(size) == text
    assert counted(1, "byte") == "1 byte"


def test_the_remaining_time() -> None:
    """As long as it takes at the rate of this table, or batch; nothing is said of it before there is a rate."""
    now = 10.0
    estimate = Estimate(lambda: now)
    assert estimate.words(0, 9000) == "0 of 9,000 rows"
    now = 30.0
    assert estimate.words(2000, 9000) == "2,000 of 9,000 rows, 100 rows/s, about 70 s left"
    now = 50.0
    assert estimate.words(2000, 1_000_000) == "2,000 of 1,000,000 rows, 50 rows/s, about 6 h left"
    assert estimate.words(0, 1) == "0 of 1 row"
    now = 60.0
    assert estimate.words(10, 310) == "10 of 310 rows, 1 rows/s, about 5 min left"
    assert estimate.words(310, 310).endswith("31 rows/s, about 0 s left")
