"""What the dissector makes of whole connections: their options, what else they carry, and what is damaged."""

from pathlib import Path

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.wire.trace import trace
from tests.live.recording import Recording
from tests.wire.samples import SAMPLES
from tests.wireshark.compared import assert_same
from tests.wireshark.pcap import Said, write_pcap
from tests.wireshark.sent import copy_data, cut, query, start, stream, xlog_data
from tests.wireshark.shown import NEEDS_TSHARK, ShownMessage, packets, shown

pytestmark = NEEDS_TSHARK

OPTIONS = {
    "(proto_version '4', streaming 'parallel', publication_names '\"p\"')": "proto_version 4, streaming parallel",
    "(\"proto_version\" '2', \"streaming\" 'ON')": "proto_version 2, streaming on",
    "(proto_version '3', streaming, publication_names 'p')": "proto_version 3, streaming on",
    "(proto_version '2', streaming 'true', messages 'true')": "proto_version 2, streaming on",
    "(publication_names '\"a''b\",\"streaming ''on'' (\"', proto_version '1')": "proto_version 1, streaming off",
    "( PROTO_VERSION '4' , Streaming 'Parallel' )": "proto_version 4, streaming parallel",
}
"""Options as clients write them, and what they mean."""

BEGIN, STOP = SAMPLES["Begin"][1], SAMPLES["Stream Stop"][1]
INSERT_IN_A_STREAM = SAMPLES["Insert in a stream"][1]


def messages(found: list[ShownMessage]) -> list[ShownMessage]:
    """Return the messages of pgoutput, without their frames."""
    return [message for message in found if message.state]


def test_options_of_the_client(tmp_path: Path) -> None:
    """The options in START_REPLICATION decide, as clients write them, of each connection for itself."""
    said = [stream(start(options), [BEGIN], number) for number, options in enumerate(OPTIONS)]
    segments = [one for row in zip(*said, strict=True) for one in row]
    found = shown(write_pcap(tmp_path / "options.pcap", segments))
    assert [message.state for message in messages(found)] == [
        f"state: idle (Between transactions.); {options}" for options in OPTIONS.values()
    ]


@pytest.mark.parametrize("name", ["18-v4-immediate", "16-v2-binary"])
def test_a_capture_that_begins_later(name: str, recordings: dict[str, Recording], tmp_path: Path) -> None:
    """Where no command was captured preferences hold, and the state is found out."""
    recording = recordings[name]
    session = pgo.Session(recording.mode.proto_version, recording.mode.streaming)
    opened = next(i for i, payload in enumerate(recording.payloads) if payload[:1] == pgo.StreamStart.TAG)
    for payload in recording.payloads[: opened + 2]:
        session.parse(payload)
    rest = recording.payloads[opened + 2 : opened + 200]
    capture = write_pcap(tmp_path / "later.pcap", stream(b"", rest))
    wanted = ("-o", f"pgoutput.streaming:{recording.mode.streaming}")
    found = messages(shown(capture, *wanted, "-o", f"pgoutput.proto_version:{recording.mode.proto_version}"))
    for message, payload in zip(found, rest, strict=True):
        assert_same(message, trace(payload, **session.options, in_stream=session.in_stream))
        assert not message.experts
        session.parse(payload)


@pytest.mark.slow
def test_frames_are_shown_in_any_order(recordings: dict[str, Recording], tmp_path: Path) -> None:
    """A second pass over the frames shows what the first did, whose filter asks for what the dissector sees."""
    recording = recordings["18-v4-immediate"]
    command = query(recording.mode.start_command("s", ["p"]))
    capture = write_pcap(tmp_path / "twice.pcap", stream(command, recording.payloads[:400]))
    once = shown(capture)
    assert len(messages(once)) == 400
    assert shown(capture, "-2", "-R", "pgsql or tcp") == once


def test_a_capture_with_a_gap(tmp_path: Path) -> None:
    """Where a segment is missing the state is found out, not taken from before the gap."""
    before = stream(start("(proto_version '2', streaming 'on')"), [SAMPLES["Stream Start"][1], INSERT_IN_A_STREAM])
    gap = [Said(False, copy_data(xlog_data(STOP)) + copy_data(xlog_data(BEGIN)), lost=True)]
    after = stream(b"", [SAMPLES["Insert"][1], SAMPLES["Commit"][1], SAMPLES["Stream Start"][1], INSERT_IN_A_STREAM])
    found = messages(shown(write_pcap(tmp_path / "gap.pcap", [*before, *gap, *after])))
    assert [message.experts for message in found] == [()] * 6
    states = ["idle", "stream", "transaction", "transaction", "idle", "stream"]
    assert [message.state.split()[1] for message in found] == states


@pytest.mark.slow
def test_list_of_packets(tmp_path: Path) -> None:
    """Segments with thousands of messages, with one byte, and one message in many segments."""
    message = SAMPLES["Message"][2]
    large = pgo.build(pgo.Message(None, 0, message.lsn, "large", bytes(200_000)))  # type: ignore[union-attr]
    many = copy_data(xlog_data(BEGIN)) * 1200
    pieces = [many, *cut(copy_data(xlog_data(BEGIN)), [1]), *cut(copy_data(xlog_data(large)), [60_000])]
    segments = [Said(True, start("(proto_version '1')")), *(Said(False, piece) for piece in pieces)]
    infos = [info for protocol, info in packets(write_pcap(tmp_path / "list.pcap", segments)) if protocol == "PGOUTPUT"]
    assert infos == [f"{', '.join(['Begin'] * 8)}, and 1192 more", "Begin", "Message"]


OTHERS = {
    "COPY t TO STDOUT": [],
    "BASE_BACKUP": [],
    'START_REPLICATION SLOT "s" 0/3000000 TIMELINE 1': ["XLogData"],
    "START_REPLICATION SLOT s LOGICAL 0/0 (\"include-xids\" '0')": ["XLogData"],
}
"""Commands after which CopyData carries something else, and what of it is shown."""


@pytest.mark.parametrize("command", OTHERS)
def test_other_copies(command: str, tmp_path: Path) -> None:
    """Of an ordinary COPY nothing is shown, of physical replication and of other plugins only the envelope."""
    capture = write_pcap(tmp_path / "other.pcap", stream(query(command), [BEGIN]))
    assert [message.name for message in shown(capture)] == OTHERS[command]


def test_a_copy_that_began_before_the_capture(tmp_path: Path) -> None:
    """What looks like a frame and holds no message of pgoutput may be a row of a COPY."""
    rows = [b"w" + b"\t1" * 40 + b"\n", b"k\n", b"row\n", b"world\n"]
    capture = write_pcap(tmp_path / "copy.pcap", [Said(False, copy_data(row)) for row in rows])
    assert shown(capture) == []


@pytest.mark.slow
def test_damaged_messages(tmp_path: Path) -> None:
    """Every message cut at every byte: the field, and the byte where it begins, as errors name them."""
    expected, segments = [], []
    for number, (options, data, _) in enumerate(SAMPLES.values()):
        before = [bytes.fromhex("530000000101")] * options.in_stream
        asked = start(f"(proto_version '{options.proto_version}', streaming '{options.streaming}')")
        for size in range(1, len(data)):
            segments += stream(asked, [*before, data[:size]], number)
            fault = trace(data[:size], **options._asdict()).fault
            assert fault is not None
            expected.append((fault.error.path, fault.start))
    found = messages(shown(write_pcap(tmp_path / "cut.pcap", segments)))
    told = [expert for message in found for expert in message.experts if "Malformed" in expert]
    for expert, (path, place) in zip(told, expected, strict=True):
        assert f" {path} at byte {place}: " in expert


def test_refused_and_out_of_sequence(tmp_path: Path) -> None:
    """What the options exclude, bytes too many, values that nobody defines, and messages out of their order."""
    opened = bytes.fromhex("530000000101")
    payloads = {
        STOP: "Sequence): Stream Stop does not come in the state idle",
        b"?": "Malformed): the first byte is no tag of a message",
        opened[:-1] + b"\2": "Malformed): StreamStart.first_segment at byte 5: cannot be 2",
        BEGIN + b"\0": "Sequence): Begin does not come in the state stream",
        SAMPLES["Commit"][1] + b"\0": "Malformed): Commit at byte 26: ends here, 1 more bytes follow",
    }
    segments = stream(start("(proto_version '2', streaming 'on')"), payloads)
    segments += stream(start("(proto_version '2')"), [opened], 1)
    told = [each.experts for each in shown(write_pcap(tmp_path / "refused.pcap", segments)) if each.name != "XLogData"]
    for experts, words in zip(told, [*payloads.values(), "comes only with the option streaming"], strict=True):
        assert words in experts[-1]
