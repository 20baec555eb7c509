"""Protocol changes that nobody prepared for, each by YAML alone: everything follows, and old programs run."""

import dataclasses
import json
from pathlib import Path

import pytest

from pgoutput_construct.wire import messages
from tests.codecs.golden import golden_vectors, misread
from tests.growth.project import Project, grow
from tests.growth.recorded import digest_of
from tests.live.recording import STORE, Recording
from tests.spark.logs import write_recording
from tests.wireshark.pcap import Said, write_pcap
from tests.wireshark.sent import copy_data, start, stream
from tests.wireshark.shown import NEEDS_TSHARK, shown
from tools.codecs import CODECS, built, missing_tools

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
ALL = ("fields", "repeats", "options", "states", "envelope")
"""The changes in the order in which they are made: where two add a field to one place, the later one stands nearer."""
CHECKS = (
    "messages",
    "old_messages",
    "options",
    "session",
    "index",
    "tables",
    "reader",
    "tracker",
    "relations",
    "frames",
    "log",
    "old_log",
    "strategies",
    "streams",
    "constructors",
)
LONG_CHECKS = ("vectors", "recordings")


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a copy of the project with all changes, along with the fields of today and a log of today."""
    project = grow(tmp_path_factory.mktemp("grown"), *ALL)
    names = {
        name: [field.name for field in dataclasses.fields(cls)]
        for name, cls in vars(messages).items()
        if dataclasses.is_dataclass(cls)
    }
    (project.folder / "fields.json").write_text(json.dumps(names), "utf-8")
    write_recording(project.folder / "old-log", Recording.load(STORE / "18-v4-text.txt"), 1000)
    return project


def failures(project: Project, *checks: str) -> dict[str, str]:
    """Run checks in the copy; return the tracebacks of those that failed."""
    names = [f"check_{check}" for check in checks]
    # Kernels that are run a few times are compiled without LLVM's passes, which take longer than they gain.
    done = project.run(HERE / "everything.py", STORE, *names, environment={"PATH": "/usr/bin:/bin", "NUMBA_OPT": "0"})
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def failed(grown: Project) -> dict[str, str]:
    """Run all checks but Spark's in one process: what is compiled is compiled once."""
    return failures(grown, *CHECKS)


@pytest.mark.parametrize("check", CHECKS)
def test_follows(failed: dict[str, str], check: str) -> None:
    """What everything.py checks, with all changes at once."""
    assert f"check_{check}" not in failed, failed[f"check_{check}"]


@pytest.mark.long
def test_vectors_and_recordings_follow(grown: Project) -> None:
    """The golden vectors, and what the project of today made of its recordings."""
    digests = {path.stem: digest_of(path) for path in sorted(STORE.glob("*.txt"))}
    (grown.folder / "digests.json").write_text(json.dumps(digests), "utf-8")
    assert failures(grown, *LONG_CHECKS) == {}


GIVEN = ("--proto-version", 5, "--streaming", "eager", "--checksums", "row", "--timings")


@pytest.mark.parametrize("source", [(*GIVEN, "stream.hex"), (*GIVEN, "stream.bin"), ("log",)], ids=lambda row: row[-1])
def test_decode_and_build(grown: Project, failed: dict[str, str], source: tuple[object, ...]) -> None:
    """The command line decodes digits, files of pg_recvlogical and logs, each line with its states; build undoes it."""
    assert "check_log" not in failed, failed["check_log"]
    decoded = grown.pgoutput("decode", *source)
    lines = [json.loads(line) for line in decoded.splitlines()]
    assert [lines.index(line) for line in lines if line["in_block"]] == [6, 7, 8, 9, 17, 18, 19, 20]
    assert [lines.index(line) for line in lines if line["in_stream"]] == list(range(14, 22))
    assert (lines[3]["relation_oids"][0]["TruncatedTable"]["row_count"], lines[13]["worker"]) == (-1, 8)
    assert grown.pgoutput("build", stdin=decoded) == (grown.folder / "stream.hex").read_text("ascii")


@pytest.mark.parametrize("source", [(*GIVEN, "--index", 20, "stream.hex"), ("log", "--seq", 19)], ids=["file", "log"])
def test_inspect(grown: Project, failed: dict[str, str], source: tuple[object, ...]) -> None:
    """Inspect names options, states, the table, and the columns of values that have neighbours."""
    assert "check_log" not in failed, failed["check_log"]
    shown = grown.pgoutput("inspect", *source)
    assert "streaming eager, checksums row, timings True, inside a stream, inside a block" in shown
    assert all(words in shown for words in ("relation_oid (public.t)", "columns[0] (id)", "columns[1] (note)"))
    assert [line.split()[-1] for line in shown.splitlines() if " compression " in line] == ["lz4", "lz4"]


def test_tail(grown: Project, failed: dict[str, str]) -> None:
    """Values of a kind that nothing is known of have its name, and their bytes."""
    assert "check_log" not in failed, failed["check_log"]
    lines = [json.loads(line) for line in grown.pgoutput("tail", "log", "--json", "--from-lsn", "0/0").splitlines()]
    assert [line["new"] and line["new"].get("note") for line in lines][:3] == [None, "a", "packed \\x62"]
    assert "note=(external)" in grown.pgoutput("tail", "log", "--from-lsn", "0/0")


def test_help_and_reference(grown: Project) -> None:
    """Choices stand in the help, new layouts in the reference pages."""
    shown = grown.pgoutput("decode", "--help")
    assert all(words in shown for words in ("eager]", "--checksums [none|page|row]", "--timings", "1<=x<=5"))
    page = (grown.spec / "reference.md").read_text("utf-8")
    assert all(words in page for words in ("Upsert", "stream_block", "change_number", "TruncatedTable", "digests"))
    assert "LsnRange" in (grown.spec / "reference-envelope.md").read_text("utf-8")


@pytest.mark.parametrize("language", CODECS)
def test_codec(grown: Project, tmp_path: Path, language: str) -> None:
    """The codecs in other languages compile, and read and build the golden vectors of what is new."""
    codec = CODECS[language]
    if problem := missing_tools(codec):
        pytest.skip(problem)
    vectors = [*golden_vectors(grown.spec)]
    assert {"checksums=page", "timings=true", "in_block=true"} <= {word for line, _ in vectors for word in line.split()}
    assert not misread(built(codec, tmp_path, grown.spec), vectors)


@NEEDS_TSHARK
def test_dissector(grown: Project, tmp_path: Path) -> None:
    """Wireshark shows the fields of new messages, frames, options and states."""
    done = grown.run(HERE / "traced.py")
    assert done.returncode == 0, done.stderr
    frames, messages = json.loads(done.stdout)
    command = start("(proto_version '5', streaming 'eager', checksums 'row', timings 'true')")
    sent = [Said(False, copy_data(bytes.fromhex(digits))) for _, digits, _ in frames]
    segments = stream(command, [bytes.fromhex(digits) for _, digits, _ in messages]) + sent
    found = shown(write_pcap(tmp_path / "grown.pcap", segments), dissector=grown.spec / "pgoutput.lua")
    told = [message for message in found if message.name != "XLogData"]
    assert [message.experts for message in told if message.experts] == []
    assert [
        [
            message.name.replace(" ", ""),
            message.data.hex(),
            [[field.path, field.data.hex()] for field in message.fields],
        ]
        for message in told
    ] == [*messages, *frames]


@pytest.mark.spark
@pytest.mark.long
def test_spark(grown: Project) -> None:
    """Changes and state of a table whose log has the new messages; and a log of before."""
    assert failures(grown, "old_log", "spark") == {}


@pytest.mark.parametrize("change", ALL)
@pytest.mark.long
def test_alone(tmp_path: Path, change: str) -> None:
    """Each change generates by itself, and the engines agree; so do those codecs whose tools are there."""
    project = grow(tmp_path / "grown", change)
    done = project.run(HERE / "alone.py")
    assert done.returncode == 0, done.stderr
    for codec in CODECS.values():
        if not missing_tools(codec):
            (tmp_path / codec.name).mkdir()
            program = built(codec, tmp_path / codec.name, project.spec)
            assert not misread(program, [*golden_vectors(project.spec)])
