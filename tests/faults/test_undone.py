"""Random transactions that are taken back, and rows whose changes are told."""

import pytest

from tools.faults.__main__ import main

pytestmark = pytest.mark.server


@pytest.mark.parametrize("mode", [[], ["--altered"], ["--binary"]], ids=["plain", "altered", "binary"])
def test_a_few(mode: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Tables of any types and identities are as before."""
    assert main(["undo", "--count", "5", "--tables", "3", *mode]) == 0
    assert "undone 5" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.long
@pytest.mark.parametrize("mode", [[], ["--altered"], ["--binary"]], ids=["plain", "altered", "binary"])
def test_many(mode: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Five hundred of them, on both servers."""
    count = "500" if not mode else "100"
    assert main(["undo", "--count", count, "--versions", "16", "18", *mode]) == 0
    assert f"undone {2 * int(count):,}," in capsys.readouterr().out.splitlines()[-1]
