"""The embedded server, beyond what all tests of servers show of it."""

import fcntl
import os
from pathlib import Path
from typing import Any, NoReturn

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer, _import_package


class _CalledError(Exception):
    """The package was called."""


def test_no_two_processes_create_its_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two that did, as root on a new machine, one had a server whose user did not exist."""

    def get_server(*_: Any, **__: Any) -> NoReturn:
        descriptor = os.open("/etc", os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)
        raise _CalledError

    monkeypatch.setattr(_import_package(), "get_server", get_server)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(_CalledError):
        EmbeddedServer(directory=tmp_path)
