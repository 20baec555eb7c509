"""Stores that the tests write logs into."""

from pathlib import Path

import pytest


@pytest.fixture(params=["directory", "s3", "fsspec"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An address of each kind of store in turn, with nothing there."""
    if request.param == "s3":
        found: str = request.getfixturevalue("s3_address")
        return found
    return f"memory://{tmp_path.name}/log" if request.param == "fsspec" else str(tmp_path / "deep" / "log")
