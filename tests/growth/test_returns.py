"""States that return to the one before, and kinds of values that are text, binary format or neither."""

import json
from pathlib import Path

import pytest

from tests.growth.project import Project, grow
from tests.wireshark.pcap import write_pcap
from tests.wireshark.sent import start, stream
from tests.wireshark.shown import NEEDS_TSHARK, shown

pytestmark = pytest.mark.long  # test_growth.py has a change of each kind
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def returning(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a copy of the project with both changes."""
    return grow(tmp_path_factory.mktemp("returning"), "returns", "forms")


@pytest.mark.parametrize("script", ["returns.py", "alone.py", "vectors.py"])
def test_engines(returning: Project, script: str) -> None:
    """Messages in order, whatever the strategies make, and the golden vectors."""
    done = returning.run(HERE / script)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def forms(returning: Project) -> Project:
    """Return the copy, in which there is a log of the kinds of values."""
    done = returning.run(HERE / "forms.py")
    assert done.returncode == 0, done.stderr
    return returning


def test_tail_follows_forms(forms: Project) -> None:
    """What is text is shown as text, binary format as its text, and the rest by the name of its kind."""
    shown = forms.pgoutput("tail", "forms", "--json", "--from-lsn", "0/0").splitlines()
    rows = [json.loads(line)["new"] for line in shown]
    assert [row["note"] for row in rows] == ["a"] * 4 + ["opaque \\x0102", "a", "a"]
    assert [row["counts"] for row in rows] == ["{5,6}"] * 4 + ["opaque \\x", "{5,6}", "none"]
    assert [row["due"] for row in rows[:4]] == ["2000-01-03"] * 4


@pytest.mark.spark
def test_spark_follows_forms(forms: Project) -> None:
    """So have Spark's columns."""
    done = forms.run(HERE / "forms.py", "--spark", environment={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr


def test_reference(returning: Project) -> None:
    """The page says where a message leads, and has each state in those around it."""
    page = (returning.spec / "reference.md").read_text("utf-8")
    for words in (
        "Comes in the state: `block`, and leads back to the state before it",
        "| `stream/block` | Between Block Start and Block Stop. Sets `in_stream`, `in_block`. |",
        "[Note Stop](#note-stop) to `stream/block`",
        'state "stream/block/note" as nested_stream_sblock_snote',
        "The bytes are PostgreSQL's text.",
        "The bytes are neither text nor binary.",
        "nested_stream_sblock --> nested_stream_sblock_snote: Note Start",
    ):
        assert words in page, words


def test_vectors_are_of_all_places(returning: Project) -> None:
    """Rows in blocks are there inside of streams and outside."""
    lines = [json.loads(line) for line in (returning.spec / "vectors.jsonl").read_text("utf-8").splitlines()[1:]]
    inserts = [line for line in lines if line["message"] == "Insert" and line["proto_version"] == 5]
    states = {(line["in_stream"], line["in_block"]) for line in inserts if "fields" in line}
    assert states == {(False, False), (False, True), (True, False), (True, True)}


@NEEDS_TSHARK
def test_dissector(returning: Project, tmp_path: Path) -> None:
    """Wireshark follows the states back."""
    done = returning.run(HERE / "returns.py")
    assert done.returncode == 0, done.stderr
    sent = [(name, bytes.fromhex(digits)) for name, digits in json.loads(done.stdout)]
    segments = stream(start("(proto_version '5', streaming 'on')"), [data for _, data in sent])
    found = shown(write_pcap(tmp_path / "returning.pcap", segments), dissector=returning.spec / "pgoutput.lua")
    told = [message for message in found if message.name != "XLogData"]
    assert [message.name.replace(" ", "") for message in told] == [name for name, _ in sent]
    assert [(message.name, message.experts) for message in told if message.experts] == []
