"""Changes that end something, or bring it in part: each word of the language that says when something is there."""

import json
from pathlib import Path

import pytest

from tests.growth.project import Project, grow
from tests.wireshark.pcap import write_pcap
from tests.wireshark.sent import start, stream
from tests.wireshark.shown import NEEDS_TSHARK, shown

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a copy of the project with the change."""
    return grow(tmp_path_factory.mktemp("later"), "later")


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        ["later.py"],
        *(
            pytest.param(script, marks=pytest.mark.long)
            for script in (["later.py", "--kernels"], ["alone.py"], ["vectors.py"])
        ),
    ],
    ids=" ".join,
)
def test_engines(later: Project, script: list[str]) -> None:
    """Bytes that were written by hand, whatever the strategies make, and the golden vectors: all engines agree."""
    name, *options = script
    done = later.run(HERE / name, *options)
    assert done.returncode == 0, done.stderr


def test_reference(later: Project) -> None:
    """The page says when what is there."""
    page = (later.spec / "reference.md").read_text("utf-8")
    for words in (
        "| `Int16` | `column_count` | protocol version 4 and older |",
        "| `Int32` | `column_count` | protocol version 5 and newer |",
        "`2` generated (protocol version 5 and newer)",
        "bit 1 of `flags` is set and `parallel` is not set, protocol version 5 and newer",
        "protocol version 5 and newer: `key_count` times",
        "`parallel` is set and `in_stream` is not set",
        "`Byte4` | `checksum`",
        "Formerly `options`.",
        "protocol version 5 and newer: while bytes remain",
    ):
        assert words in page, words


@pytest.mark.slow
@NEEDS_TSHARK
def test_dissector(later: Project, tmp_path: Path) -> None:
    """Wireshark shows the fields that are there, and no others."""
    sent = [
        "42 0000000000000010 0002d79883d20000 000002bc",
        "52 00000007 00 7400 64 00000001 0002 02 6700 00000017 ffffffff 0003 0001",
    ]
    lsns = "0000000000000010 0000000000000020 0002d79883d20000"
    sent += ["49 00000007 4e 0001 7a 00000009 00000001 78", f"43 03 {lsns} 0000000000000005"]
    command = start("(proto_version '5', streaming 'parallel')")
    segments = stream(command, [bytes.fromhex(digits) for digits in sent])
    found = shown(write_pcap(tmp_path / "later.pcap", segments), dissector=later.spec / "pgoutput.lua")
    told = [message for message in found if message.name != "XLogData"]
    assert [message.experts for message in told if message.experts] == []
    paths = [[field.path.partition(".")[2] for field in message.fields] for message in told]
    assert paths[1][-2:] == ["key_columns[0]", "key_columns[1]"]
    assert paths[3] == ["tag", "flags", "commit_lsn", "end_lsn", "commit_time", "origin_lsn"]


def test_vectors_are_of_every_version(later: Project) -> None:
    """What ended has vectors of the versions before, what took its place of those from then on."""
    lines = [json.loads(line) for line in (later.spec / "vectors.jsonl").read_text("utf-8").splitlines()[1:]]
    commits = [line for line in lines if line["message"] == "Commit" and "fields" in line]
    flags = {(line["proto_version"], line["fields"]["flags"]) for line in commits}
    assert {(4, None), (5, 0), (5, 1)} <= flags and (4, 0) not in flags
