"""Stores that the tests write logs into."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def gcs_server() -> Iterator[str]:
    """An emulator of Google Cloud Storage for the whole run: its ``host:port``."""
    command = [sys.executable, "-m", "tests.changelog.gcs_server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None and process.stdout is not None
        yield f"127.0.0.1:{int(process.stdout.readline())}"
        process.stdin.close()


@pytest.fixture(params=["directory", "s3", "gcs", "fsspec"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An address of each kind of store in turn, with nothing there."""
    if request.param == "s3":
        found: str = request.getfixturevalue("s3_address")
        return found
    if request.param == "gcs":
        query = f"endpoint_override={request.getfixturevalue('gcs_server')}&scheme=http&retry_limit_seconds=10"
        return f"gs://anonymous@bucket/{tmp_path.name}/log?{query}"
    return f"memory://{tmp_path.name}/log" if request.param == "fsspec" else str(tmp_path / "deep" / "log")
