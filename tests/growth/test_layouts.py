"""Layouts that PostgreSQL's pages may have next, by YAML alone: all engines and all codecs read and build them."""

import json
from pathlib import Path

import pytest

from tests.codecs.golden import golden_vectors, misread
from tests.growth.project import Project, grow
from tests.wireshark.pcap import write_pcap
from tests.wireshark.sent import start, stream
from tests.wireshark.shown import NEEDS_TSHARK, shown
from tools.codecs import CODECS, built, missing_tools

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a copy of the project with the change."""
    return grow(tmp_path_factory.mktemp("layouts"), "layouts")


@pytest.mark.parametrize(
    "script", ["layouts.py", *(pytest.param(name, marks=pytest.mark.long) for name in ("alone.py", "vectors.py"))]
)
def test_engines(project: Project, script: str) -> None:
    """Bytes that were written by hand, whatever the strategies make, and the golden vectors."""
    done = project.run(HERE / script, environment={"PATH": "/usr/bin:/bin", "NUMBA_OPT": "0"})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("language", CODECS)
def test_codec(project: Project, tmp_path: Path, language: str) -> None:
    """The codecs in other languages read and build the golden vectors, and refuse what these refuse."""
    codec = CODECS[language]
    if problem := missing_tools(codec):
        pytest.skip(problem)
    vectors = [*golden_vectors(project.spec)]
    assert {"Advice", "Histogram"} <= {vector["message"] for _, vector in vectors if "fields" in vector}
    assert not misread(built(codec, tmp_path, project.spec), vectors)


def test_reference(project: Project) -> None:
    """The page says how many items there are."""
    page = (project.spec / "reference.md").read_text("utf-8")
    for words in (
        "protocol version 5 and newer: `relation_count` times",
        "protocol version 5 and newer: 2 times",
        "| 3 times; each is",
        "| `Int8(10)` | `target=relation`",
    ):
        assert words in page, words


@NEEDS_TSHARK
def test_dissector(project: Project, tmp_path: Path) -> None:
    """Wireshark shows what the trace has."""
    done = project.run(HERE / "layouts.py", "--trace")
    assert done.returncode == 0, done.stderr
    traced = json.loads(done.stdout)
    segments = stream(start("(proto_version '5', streaming 'on')"), [bytes.fromhex(digits) for _, digits, _ in traced])
    found = shown(write_pcap(tmp_path / "layouts.pcap", segments), dissector=project.spec / "pgoutput.lua")
    told = [message for message in found if message.name != "XLogData"]
    assert [message.experts for message in told if message.experts] == []
    assert [
        [message.name.replace(" ", ""), message.data.hex(), [[each.path, each.data.hex()] for each in message.fields]]
        for message in told
    ] == traced
