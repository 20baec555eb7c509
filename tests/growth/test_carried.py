"""An envelope that depends on the version and the options of what it carries: every output follows."""

from pathlib import Path

import pytest

from tests.growth.project import Project, grow
from tests.wireshark.pcap import Said, write_pcap
from tests.wireshark.sent import copy_data, start, stream
from tests.wireshark.shown import NEEDS_TSHARK, shown

pytestmark = pytest.mark.long  # test_growth.py has an envelope, test_later.py has conditions
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def carried(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a copy of the project with the change."""
    return grow(tmp_path_factory.mktemp("carried"), "carried")


@pytest.mark.parametrize("script", ["carried.py", "vectors.py"])
def test_engines(carried: Project, script: str) -> None:
    """Frames written by hand, drawn and golden."""
    done = carried.run(HERE / script)
    assert done.returncode == 0, done.stderr


def test_pages(carried: Project) -> None:
    """The reference and the Kaitai file say on what the envelope depends; inspect reads by it."""
    page = (carried.spec / "reference-envelope.md").read_text("utf-8")
    assert "| `Int32` | `shard` | protocol version 5 and newer |" in page
    assert "`parallel` is set and `hushed` is not set" in page
    assert "- id: hushed_field" not in (text := (carried.spec / "replication.ksy").read_text("utf-8"))
    assert "- id: hushed\n" in text and "- id: proto_version\n" in text
    digits = "6b000000000000000100000000000000000200"
    given = ("--proto-version", 5, "--streaming", "parallel")
    assert "note" in carried.pgoutput("inspect", "--frame", *given, digits)


@NEEDS_TSHARK
def test_dissector(carried: Project, tmp_path: Path) -> None:
    """Wireshark shows the fields of frames by the options of START_REPLICATION."""
    command = start("(proto_version '5', streaming 'parallel')")
    frames = ["6b 0000000000000001 0000000000000000 02 6e00", "67 0000000000000001"]
    segments = stream(command, []) + [Said(False, copy_data(bytes.fromhex(digits))) for digits in frames]
    found = shown(write_pcap(tmp_path / "carried.pcap", segments), dissector=carried.spec / "pgoutput.lua")
    assert [(message.name, message.experts) for message in found] == [("Primary Keepalive", ()), ("WAL Gap", ())]
    assert [field.path.rpartition(".")[2] for field in found[0].fields][-1] == "note"
