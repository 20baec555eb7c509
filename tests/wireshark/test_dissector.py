"""The generated Wireshark dissector, judged by tshark: of recorded streams it shows what the definitions find."""

from pathlib import Path

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.wire.fields import FIELDS
from pgoutput_construct.wire.frame_fields import FIELDS as FRAME_FIELDS
from pgoutput_construct.wire.trace import Trace, trace, trace_frame
from tests.live.recording import Recording
from tests.wireshark.compared import assert_same
from tests.wireshark.pcap import Said, write_pcap
from tests.wireshark.sent import copy_data, query, start, stream, xlog_data
from tests.wireshark.shown import NEEDS_TSHARK, filter_names, shown

pytestmark = NEEDS_TSHARK


def traces(recording: Recording) -> list[Trace]:
    """Return the traces of a recording's frames, and of the message in each."""
    session = pgo.Session(recording.mode.proto_version, recording.mode.streaming)
    found = []
    for payload in recording.payloads:
        found += [trace_frame(xlog_data(payload)), trace(payload, **session.options, in_stream=session.in_stream)]
        session.parse(payload)
    return found


SOME = ("16-v2-binary", "18-v4-immediate", "18-v4-text")
"""Both formats, and both ways to stream; the others are for the longer tests."""


@pytest.mark.slow
@pytest.mark.parametrize("names", [SOME, pytest.param((), marks=pytest.mark.long)], ids=["some", "all"])
def test_every_field_of_every_recording(
    recordings: dict[str, Recording], names: tuple[str, ...], tmp_path: Path
) -> None:
    """Each recording as a connection of its own, in segments that hold many messages or a piece of one."""
    chosen = [recordings[name] for name in names or recordings]
    segments = [
        said
        for connection, each in enumerate(chosen)
        for said in stream(query(each.mode.start_command("s", ["p"])), each.payloads, connection)
    ]
    expected = [found for each in chosen for found in traces(each)]
    for message, found in zip(shown(write_pcap(tmp_path / "all.pcap", segments)), expected, strict=True):
        assert_same(message, found)
        assert not message.experts


FRAMES = (
    pgo.XLogData(pgo.Lsn(2**64 - 1), pgo.Lsn(0), pgo.Timestamp(0), b""),
    pgo.PrimaryKeepalive(pgo.Lsn("1/2"), pgo.Timestamp(-(2**53)), 1),
    pgo.PrimaryStatusUpdate(pgo.Lsn("1/2"), 2**64 - 1, 2**53 - 1, pgo.Timestamp(1)),
    pgo.StandbyStatusUpdate(pgo.Lsn(1), pgo.Lsn(2), pgo.Lsn(3), pgo.Timestamp(2**53 + 1), 0),
    pgo.HotStandbyFeedback(pgo.Timestamp(-1), 2**32 - 1, 0, 1, 2),
    pgo.PrimaryStatusRequest(pgo.Timestamp(2**56)),
)


def test_every_kind_of_frame(tmp_path: Path) -> None:
    """The envelope, of both sides; an empty payload, as PostgreSQL 13 sends it, is no message."""
    frames = [pgo.build_frame(frame) for frame in FRAMES]
    said = [Said(number > 2, copy_data(frame)) for number, frame in enumerate(frames)]
    found = shown(write_pcap(tmp_path / "frames.pcap", [Said(True, start("(proto_version '1')")), *said]))
    assert [message.text for message in found if message.name == ""] == ["No message"]
    for message, frame in zip([message for message in found if message.name], frames, strict=True):
        assert_same(message, trace_frame(frame))
    assert "reply_requested: reply at once (1)" in found[2].fields[-1].text


@pytest.mark.slow
def test_installed_by_a_copy(tmp_path: Path) -> None:
    """Where Wireshark looks for plugins it is found; fields of the same name share one in filters."""
    kinds = filter_names(tmp_path)
    plain = {key.rpartition(".")[2] for key in (*FIELDS, *FRAME_FIELDS) if "." in key}
    assert {f"pgoutput.{name}" for name in plain if name.isidentifier()} - {*kinds} == set()
    expected = {"xid": "FT_UINT32", "final_lsn": "FT_UINT64", "commit_time": "FT_ABSOLUTE_TIME", "data": "FT_BYTES"}
    assert {name: kinds[f"pgoutput.{name}"] for name in expected} == expected
