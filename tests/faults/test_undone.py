"""Random transactions that are taken back, and rows whose changes are told."""

import logging
import signal
from collections.abc import Iterator

import pytest

from tools.faults.__main__ import main

pytestmark = pytest.mark.server


@pytest.fixture(autouse=True)
def _process() -> Iterator[None]:
    """Restore what the command sets for its process."""
    logger, handler = logging.getLogger("pgoutput_construct"), signal.getsignal(signal.SIGTERM)
    level = logger.level
    yield
    logger.setLevel(level)
    signal.signal(signal.SIGTERM, handler)


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param([], id="plain", marks=pytest.mark.long),
        pytest.param(["--altered"], id="altered"),
        pytest.param(["--binary"], id="binary", marks=pytest.mark.long),
    ],
)
def test_a_few(mode: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Tables of any types and identities are as before."""
    count = "3" if mode == ["--altered"] else "5"
    assert main(["undo", "--count", count, "--tables", "3", *mode]) == 0
    assert f"undone {count}" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.long
@pytest.mark.parametrize("mode", [[], ["--altered"], ["--binary"]], ids=["plain", "altered", "binary"])
def test_many(mode: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Some dozens of them, on both servers; the command itself takes thousands."""
    count = "50" if not mode else "25"
    assert main(["undo", "--count", count, "--versions", "16", "18", *mode]) == 0
    assert f"undone {2 * int(count):,}," in capsys.readouterr().out.splitlines()[-1]
