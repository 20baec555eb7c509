"""The commands of ``python -m tools.faults`` that have no other test, with the smallest arguments."""

import pytest

from tools.faults.__main__ import main
from tools.faults.modes import MODES
from tools.servers import missing_server


def test_modes_that_a_server_does_not_support(capsys: pytest.CaptureFixture[str]) -> None:
    """PostgreSQL 15 has no protocol version 4: of the modes that change between options the others are left."""
    known = {mode.name: mode for mode in (mode.known_to(15) for mode in MODES) if mode is not None}
    assert {mode.name for mode in MODES} - known.keys() == {"v4-on", "v4-parallel", "v4-parallel-two-phase"}
    assert {options["proto_version"] for options in known["changing"].options} == {1, 2, 3}
    assert [mode.known_to(16) for mode in MODES] == [*MODES]


@pytest.mark.server
@pytest.mark.long
def test_captures_of_several_servers(capsys: pytest.CaptureFixture[str]) -> None:
    """One command for servers of which one does not know a mode: it is left out there, which is said."""
    if problem := missing_server(15):
        pytest.skip(problem)
    faults = ["--kills", "2", "--stops", "0", "--cuts", "0", "--stalls", "0", "--tidies", "0", "--seconds", "1"]
    modes = ["--modes", "v1", "v4-parallel"]
    assert main(["capture", "--versions", "15,18", *modes, *faults]) == 0
    said = capsys.readouterr().out
    assert "PostgreSQL 15 does not support the modes v4-parallel: skipped" in said
    assert "15-v1" in said and "18-v4-parallel" in said and "15-v4-parallel" not in said


@pytest.mark.server
@pytest.mark.parametrize(
    "kind", ["volume put back to before the slot", pytest.param("statistics reset", marks=pytest.mark.long)]
)
def test_lost_histories(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A server is put back, or forgets its counters."""
    assert main(["lost-histories", "--rounds", "1", "--versions", "18", "--kinds", kind]) == 0
    assert f"PostgreSQL 18, {kind}, round 0" in capsys.readouterr().out


@pytest.mark.server
@pytest.mark.parametrize(
    ("command", "said"),
    [
        pytest.param(["undecodable", "--slots", "1"], "the log has what the table has", marks=pytest.mark.long),
        pytest.param(["timeouts"], "the log has what the table has", marks=pytest.mark.long),
        pytest.param(
            ["starved", "--compiled", "--loops", "1", "--rows", "1000", "--seconds", "1"],
            "nothing lost",
            marks=pytest.mark.long,
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_obstacles(command: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A slot that cannot be decoded, timeouts of the role, busy processors."""
    assert main([*command, "--versions", "18"]) == 0
    assert said in capsys.readouterr().out
