"""Slots that are lost or dropped during a capture: it ends with the reason and the remedy."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import CliRunner, Result

from pgoutput_construct.cli.group import cli
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres._capture import capture_session
from pgoutput_construct.postgres._capture.preparation import check_same_server
from tests.live.capture import EACH_VERSION, drop_slot
from tests.postgres.shop import PUBLICATION, Shop, committed_ids, wait_until
from tools.background import in_background
from tools.servers import open_server

pytestmark = pytest.mark.server

DROPPED = "slot 'slot_forgetful' no longer exists, and a new one would not have the changes since"


@pytest.fixture(scope="module", params=EACH_VERSION, ids="pg{}".format)
def forgetful_server(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    """A server that keeps hardly any WAL for slots."""
    with open_server(request.param, {"max_slot_wal_keep_size": "1MB"}) as server:
        yield server


@pytest.fixture
def forgetful(forgetful_server: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A shop there."""
    with Shop.create(forgetful_server, "forgetful", tmp_path / "log", two_phase=False) as shop:
        yield shop


def _drop(shop: Shop) -> None:
    with shop.connect() as connection:
        drop_slot(connection, shop.slot)


def _drop_when_checked(shop: Shop) -> None:
    """Drop the slot over which the capture is about to stream again."""
    dropped = Event()

    def dropping(*arguments: Any) -> None:
        _drop(shop)
        dropped.set()
        check_same_server(*arguments)

    with patch(f"{capture_session.__name__}.check_same_server", dropping), shop.connect() as connection:
        query = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = %s"
        connection.execute(query, [shop.slot])
        assert dropped.wait(300)


def _lose(shop: Shop) -> None:
    """Write WAL while a transaction is open, so that the slot retains it."""
    with closing(shop.server.connect(dbname=shop.dbname, autocommit=False)) as writer:
        writer.execute("INSERT INTO item VALUES (0, 'open')")
        shop.execute("CHECKPOINT")
        for _ in range(4):
            shop.execute("CREATE TABLE filling ()", "DROP TABLE filling", "SELECT pg_switch_wal()")
        shop.execute("CHECKPOINT")


@pytest.mark.parametrize(
    ("take_away", "said"),
    [
        (_drop, DROPPED),
        (_drop_when_checked, DROPPED),
        (_lose, "slot 'slot_forgetful' is lost (wal_removed): the server removed what it needs"),
    ],
    ids=["dropped", "dropped when checked", "lost"],
)
def test_a_slot_taken_away_ends_its_capture(forgetful: Shop, take_away: Callable[[Shop], None], said: str) -> None:
    """With status 1, the reason and a remedy that loses nothing more; what came before is in the log."""
    with in_background(lambda done: _capture(forgetful)) as (capturing,):
        end = forgetful.execute("INSERT INTO item VALUES (1, 'a')")
        wait_until(lambda: forgetful.confirmed() >= end)
        take_away(forgetful)
        ended: Any = capturing.result(60)
    for done in (ended, _capture(forgetful)):
        last = done.stderr.splitlines()[-1]
        assert done.exit_code == 1
        assert said in last and "start a new log" in last
    assert committed_ids(forgetful.log()) == [1]


def _capture(shop: Shop) -> Result:
    options = ["--slot", shop.slot, "--publication", PUBLICATION, "--new-log", "--segment-seconds", "0.1"]
    return CliRunner().invoke(cli, ["capture", shop.dsn, str(shop.directory), *options])
