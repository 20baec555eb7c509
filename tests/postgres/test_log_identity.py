"""Logs that are not what they were: lost segments, replaced directories, empty logs of existing slots."""

import json
import shutil
import signal
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO
from unittest.mock import patch

import pytest

from pgoutput_construct.changelog import ChangeLog, LogWriter
from pgoutput_construct.changelog._notes.confirmation_note import NOTE_NAME
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog.verify import verify
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.postgres import ReplicationError, create_slot, drop_slot, slot_health
from pgoutput_construct.wire import Lsn
from tests.postgres.shop import Shop, committed_ids, is_active, wait_until

pytestmark = pytest.mark.server

_KILLED_ONCE_CREATED = """
import os, signal
from pgoutput_construct.postgres._capture import preparation
create = preparation.create_slot
def create_and_die(*arguments, **options):
    create(*arguments, **options)
    os.kill(os.getpid(), signal.SIGKILL)
preparation.create_slot = create_and_die
"""


def test_the_note_of_an_idle_server_does_not_replace_the_last_segment(shop: Shop) -> None:
    """The idle note is ahead of the lost segment: the log does not continue as if it had never existed."""
    for number in (1, 2):
        shop.execute(f"INSERT INTO item VALUES ({number}, 'a')")
        shop.capture()
    shop.capture()  # what is left to say of the last description: a segment that moves the position
    with shop.capturing(status_interval=0.1):
        wait_until(lambda: is_active(shop))
        with shop.connect() as connection:
            connection.execute("SELECT pg_switch_wal()")
        end = shop.execute("CREATE VIEW nothing AS SELECT 1")
        wait_until(lambda: shop.confirmed() >= end)
    note = json.loads((shop.directory / NOTE_NAME).read_text())
    assert note["timeline"] == 1 and note["confirmed_lsn"] >= end
    last = max(shop.directory.glob("segment*"))
    kept = last.rename(shop.directory.with_name("kept"))
    with pytest.raises(ChangeLogError, match=r"the log ends at seq .*restore the removed segments"):
        shop.capture()
    kept.rename(last)
    shop.execute("INSERT INTO item VALUES (3, 'a')")
    shop.capture()
    assert committed_ids(shop.log()) == [1, 2, 3]


def test_a_lost_first_segment_is_detected(shop: Shop) -> None:
    """A log begins with seq 0 unless it was pruned."""
    for number in (1, 2):
        shop.execute(f"INSERT INTO item VALUES ({number}, 'a')")
        shop.capture()
    min(shop.directory.glob("segment*")).unlink()
    for opened in (LogWriter, ChangeLog):
        with pytest.raises(ChangeLogError, match=r"the seqs 0 to .* are missing"):
            opened(shop.directory)


def test_an_empty_log_of_a_slot_that_was_read_is_refused(shop: Shop) -> None:
    """For example an unmounted volume: refused each time until --new-log; the slot is not moved."""
    shop.execute("INSERT INTO item VALUES (1, 'a')")
    shop.capture()
    before = shop.confirmed()
    shop.directory.rename(shop.directory.with_name("away"))
    shop.execute("INSERT INTO item VALUES (2, 'b')")
    for _ in range(2):
        with pytest.raises(ChangeLogError, match=r"is empty, but slot .* exists already.*--new-log"):
            shop.capture(new_log=False)
    assert shop.confirmed() == before
    shop.capture(new_log=True)
    shop.capture()
    assert committed_ids(shop.log()) == [2]


@pytest.mark.parametrize("own_server", [18, 19], indirect=True, ids="pg{}".format)
@pytest.mark.parametrize("forget", ["reset", "crash"])
def test_the_statistics_of_a_slot_prove_nothing(shop: Shop, forget: str) -> None:
    """A slot that was read counts no transactions after its statistics were reset, or its server was killed."""
    shop.execute("INSERT INTO item VALUES (1, 'a')")
    shop.capture()
    if forget == "reset":
        shop.execute(f"SELECT pg_stat_reset_replication_slot('{shop.slot}')")
    else:
        shop.execute("CHECKPOINT")  # which saves where the slot is
        shop.server.kill()
        shop.server.start()
    query = "SELECT total_txns FROM pg_stat_replication_slots WHERE slot_name = %s"
    with shop.connect() as connection:
        assert connection.execute(query, [shop.slot]).fetchall() == [(0,)]
    shop.directory.rename(shop.directory.with_name("away"))
    shop.execute("INSERT INTO item VALUES (2, 'b')")
    with pytest.raises(ChangeLogError, match=r"is empty, but slot .* exists already.*--new-log"):
        shop.capture(new_log=False)


@pytest.mark.parametrize("killed", ["waiting", pytest.param("created", marks=pytest.mark.long)])
def test_a_capture_killed_while_its_slot_is_created(shop: Shop, killed: str) -> None:
    """The log says that the slot is its own: the next start of the same command begins it, and lacks nothing."""
    slot = f"{shop.slot}_own"
    own = replace(shop, slot=slot, options={"create_slot": True, "messages": True})
    try:
        if killed == "waiting":  # the server creates the slot all the same
            with shop.connect() as writer, writer.transaction():
                writer.execute("INSERT INTO item VALUES (1, 'before')")
                with own.capturing_process():
                    wait_until(lambda: bool(slot_health(shop.dsn, slot)))
            wait_until(lambda: _is_free(shop, slot))
        else:
            with own.capturing_process(before=_KILLED_ONCE_CREATED) as process:
                assert process.wait(300) == -signal.SIGKILL
        assert not list(own.directory.glob("segment*"))
        shop.execute("INSERT INTO item VALUES (2, 'a')")
        own.capture()
        own.capture()
        assert committed_ids(own.log()) == [2]
    finally:
        wait_until(lambda: _is_free(shop, slot))
        shop.execute(f"SELECT pg_drop_replication_slot('{slot}')")


def test_a_slot_whose_creation_failed_does_not_belong_to_the_log(shop: Shop) -> None:
    """Who creates it by hand later, and reads it, is asked whether the log is to begin there."""
    own = replace(shop, slot=f"{shop.slot}_own", options={"create_slot": True, "slot_timeout": 0.3})
    with shop.connect() as writer, writer.transaction():
        writer.execute("INSERT INTO item VALUES (1, 'before')")
        with pytest.raises(ReplicationError, match=r"was not created in 0\.3 seconds"):
            own.capture(until=Lsn(1))
    with shop.connect() as connection:
        create_slot(connection, own.slot)
        with pytest.raises(ChangeLogError, match="exists already"):
            own.capture()
        drop_slot(connection, own.slot)


def test_error_of_a_second_capture_names_the_first(
    shop: Shop, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Another directory for a slot that is read: the reader is reported, and waited for; the slot is not blamed."""
    second = replace(shop, directory=tmp_path / "second")
    with shop.capturing():
        end = shop.execute("INSERT INTO item VALUES (1, 'a')")
        wait_until(lambda: shop.confirmed() >= end)
        with second.capturing() as waiting:
            wait_until(lambda: "is being read by process" in "\n".join(caplog.messages))
            end = shop.execute("INSERT INTO item VALUES (2, 'b')")
            wait_until(lambda: shop.confirmed() >= end)
            assert not waiting.done()
    assert "user postgres" in "\n".join(caplog.messages) and "re-created" not in "\n".join(caplog.messages)
    assert committed_ids(shop.log()) == [1, 2] and not list(second.directory.glob("segment*"))


def test_a_capture_killed_before_its_first_segment_resumes(shop: Shop) -> None:
    """A capture that is killed before its first segment, while the server sends, resumes when restarted."""
    shop.execute("INSERT INTO item VALUES (1, 'a')")
    query = "SELECT FROM pg_stat_replication_slots WHERE slot_name = %s AND total_txns > 0"
    with shop.connect() as connection, shop.capturing_process(limits="SegmentLimits(seconds=3600)"):
        wait_until(lambda: bool(connection.execute(query, [shop.slot]).fetchall()))
    assert not list(shop.directory.glob("segment*"))
    wait_until(lambda: not is_active(shop))
    shop.capture(new_log=False)
    assert committed_ids(shop.log()) == [1]


@pytest.mark.parametrize("empty", [True, False])
def test_a_directory_replaced_during_a_capture_is_refused(shop: Shop, empty: bool) -> None:
    """Moved away, and another in its place or none: nothing is confirmed from then on."""
    away = shop.directory.with_name("away")
    with pytest.raises(ChangeLogError, match="exchanged"), shop.capturing() as outcome:
        end = shop.execute("INSERT INTO item VALUES (1, 'a')")
        wait_until(lambda: shop.confirmed() >= end)
        shop.directory.rename(away)
        if empty:
            shop.directory.mkdir()
        shop.execute("INSERT INTO item VALUES (2, 'b')")
        wait_until(outcome.done)
    shutil.rmtree(shop.directory, ignore_errors=True)
    away.rename(shop.directory)
    shop.capture()
    assert committed_ids(shop.log()) == [1, 2]


def test_a_directory_that_goes_while_a_segment_is_written(shop: Shop) -> None:
    """The write fails: the error says why."""
    away, writing = shop.directory.with_name("away"), LocalStore.writing

    def writing_after(store: LocalStore, name: str) -> AbstractContextManager[BinaryIO]:
        if name.startswith("segment-"):
            shop.directory.rename(away)
        return writing(store, name)

    shop.execute("INSERT INTO item VALUES (1, 'a')")
    with patch.object(LocalStore, "writing", writing_after), pytest.raises(ChangeLogError, match="exchanged"):
        shop.capture()


@pytest.mark.long
def test_a_second_capture_into_an_object_store_waits_for_the_slot(
    shop: Shop, s3_address: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The first one continues meanwhile; once it has ended, the second one resumes where it did."""
    shop.directory = s3_address  # type: ignore[assignment]
    with ExitStack() as later:
        with shop.capturing() as first:
            end = shop.execute("INSERT INTO item VALUES (1, 'a')")
            wait_until(lambda: shop.confirmed() >= end)
            second = later.enter_context(shop.capturing())
            wait_until(lambda: "is being read by process" in "\n".join(caplog.messages))
            end = shop.execute("INSERT INTO item VALUES (2, 'b')")
            wait_until(lambda: shop.confirmed() >= end)
            assert not first.done() and not second.done()
        end = shop.execute("INSERT INTO item VALUES (3, 'c')")
        wait_until(lambda: shop.confirmed() >= end)
    assert committed_ids(shop.log()) == [1, 2, 3] and verify(s3_address).problems == ()


def _is_free(shop: Shop, slot: str) -> bool:
    return all(health.active_pid is None and health.confirmed_lsn for health in slot_health(shop.dsn, slot))
