"""Stores that the tests write logs into."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true"}


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """An S3 server for the whole run: its ``host:port``."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"{host}:{port}"
    server.stop()


@pytest.fixture
def s3_address(s3_server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The address of a log in a bucket of its own; credentials stand in the environment."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    bucket = tmp_path.name.replace("_", "-").lower()
    query = f"endpoint_override={s3_server}&scheme=http&allow_bucket_creation=true"
    system, path = fs.FileSystem.from_uri(f"s3://{bucket}?{query}")
    system.create_dir(path)
    return f"s3://{bucket}/deep/log?{query}"


@pytest.fixture(params=["directory", "s3", "fsspec"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An address of each kind of store in turn, with nothing there."""
    if request.param == "s3":
        found: str = request.getfixturevalue("s3_address")
        return found
    return f"memory://{tmp_path.name}/log" if request.param == "fsspec" else str(tmp_path / "deep" / "log")
