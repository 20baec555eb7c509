"""What a capture refuses and what it accepts: foreign logs, moved slots, idle servers, empty frames."""

import time
from inspect import unwrap
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.postgres import (
    ReplicationError,
    create_slot,
    drop_slot,
)
from pgoutput_construct.postgres import capture as capture_function
from pgoutput_construct.wire import Lsn
from tests.postgres.proxy import Proxy
from tests.postgres.shop import PUBLICATION, Shop, committed_ids, is_active, wait_until

pytestmark = pytest.mark.server


def test_a_second_capture_into_the_directory_is_refused(shop: Shop) -> None:
    """The lock is held by the running capture and named in the error."""
    with shop.capturing():
        wait_until((shop.directory / ".capture.lock").exists)
        with pytest.raises(ChangeLogError, match="another capture writes into this directory"):
            shop.capture()


def test_a_log_continues_under_other_options(shop: Shop) -> None:
    """Options that are left open are the log's; others may change, and each segment has its own."""
    for number, options in enumerate(({"proto_version": 3, "streaming": "off"}, {}, {"proto_version": 4})):
        shop.execute(f"INSERT INTO item VALUES ({number}, 'a')")
        shop.capture(**options)
    log = shop.log()
    assert [(segment.options.proto_version, segment.options.streaming) for segment in log.segments] == [
        (3, "off"),
        (3, "off"),
        (4, "off"),
    ]
    assert committed_ids(log) == [0, 1, 2]


def test_a_slot_that_was_moved_or_recreated_is_refused(shop: Shop) -> None:
    """Changes that another reader took would be missing in the log: nothing is captured."""
    shop.execute("INSERT INTO item VALUES (1, 'a')")
    shop.capture()
    shop.execute("INSERT INTO item VALUES (2, 'lost')")
    with shop.connect() as connection:
        drop_slot(connection, shop.slot)
        create_slot(connection, shop.slot, two_phase=True)
    with pytest.raises(ChangeLogError, match="re-created, or moved by another reader"):
        shop.capture()


def test_an_idle_capture_lets_the_slot_move(shop: Shop) -> None:
    """WAL that concerns no publication is confirmed, and written down before, so that resuming is allowed."""
    with shop.connect() as connection:
        connection.execute("CREATE UNLOGGED TABLE other (a int)")
        with shop.capturing(status_interval=0.1):
            wait_until(lambda: is_active(shop))
            connection.execute("SELECT pg_switch_wal()")
            connection.execute("CREATE SEQUENCE nothing")
            end = shop.execute()
            wait_until(lambda: shop.confirmed() >= end)
    assert not list(shop.directory.glob("segment*"))
    shop.execute("INSERT INTO item VALUES (1, 'a')")
    shop.capture()
    assert committed_ids(shop.log()) == [1]


ENDS = pytest.mark.parametrize("end", [{"until_lsn": Lsn(1)}, {"until_idle": 0.0}, {"duration": 0.0}], ids=str)


@ENDS
def test_missing_publications_and_slots_say_what_to_run(shop: Shop, end: dict[str, Any]) -> None:
    """Nothing is created implicitly, and the directory stays usable; no end comes before the error."""
    with pytest.raises(ReplicationError, match="CREATE PUBLICATION"):
        capture_function(shop.dsn, shop.slot, ["missing"], shop.directory, **end)
    with pytest.raises(ReplicationError, match="pg_create_logical_replication_slot"):
        capture_function(shop.dsn, "missing", [PUBLICATION], shop.directory, **end)
    shop.execute("INSERT INTO item VALUES (1, 'a')")
    shop.capture()
    assert committed_ids(shop.log()) == [1]


@ENDS
def test_a_slot_with_another_reader(shop: Shop, end: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture with an end that cannot begin ends with the error, also without a limit for reconnecting."""
    monkeypatch.setitem(unwrap(capture_function).__globals__, "ANSWER_SECONDS", 0.2)
    with shop.capturing():
        wait_until(lambda: is_active(shop))
        with pytest.raises(ReplicationError, match="is being read by process"):
            capture_function(shop.dsn, shop.slot, [PUBLICATION], shop.directory.with_name("other"), new_log=True, **end)
    monkeypatch.undo()
    done = capture_function(shop.dsn, shop.slot, [PUBLICATION], shop.directory, **end)
    assert done.ended_by in end and done.confirmed_lsn


def test_a_stream_that_breaks_before_the_comparison(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture whose stream started, but did not compare the server with the log, has not begun: it ends as above."""
    monkeypatch.setitem(unwrap(capture_function).__globals__, "ANSWER_SECONDS", 0.2)
    shop.execute(
        "INSERT INTO item VALUES (1, 'a')", f"SELECT pg_copy_logical_replication_slot('{shop.slot}', 'earlier')"
    )
    shop.capture()
    shop.execute(
        f"SELECT pg_drop_replication_slot('{shop.slot}')",
        f"SELECT pg_copy_logical_replication_slot('earlier', '{shop.slot}')",
        "SELECT pg_drop_replication_slot('earlier')",
    )
    is_started, latest = False, time.monotonic() + 20

    def end_after_start(data: bytes) -> bytes:
        nonlocal is_started
        if is_started:
            raise OSError
        is_started = data.startswith(b"W\0\0")  # CopyBothResponse
        return data[: 1 + int.from_bytes(data[1:5])] if is_started else data

    with Proxy(shop.server) as proxy, pytest.raises(ReplicationError, match="connect"):
        proxy.alter = end_after_start
        shop.path = lambda dsn: make_conninfo(proxy.dsn(dsn), sslmode="disable", gssencmode="disable")
        shop.capture(duration=0, stop=lambda: time.monotonic() > latest)
    assert is_started
