"""What is traced covers the bytes: of valid messages all, of others up to the fault."""

import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.testing import ParseOptions
from pgoutput_construct.wire import definitions, frame_definitions
from pgoutput_construct.wire.connection_engine import parse_connection
from pgoutput_construct.wire.fields import FIELDS
from pgoutput_construct.wire.frame_fields import FIELDS as FRAME_FIELDS
from pgoutput_construct.wire.trace import Trace, trace, trace_connection, trace_frame
from tests.live.recording import STORE, Recording
from tests.wire.samples import SAMPLES

Pair = tuple[ParseOptions, bytes]


def assert_covered(found: Trace, data: bytes) -> None:
    """The spans follow each other without gaps, then the fault and the rest: together all bytes."""
    end = 0
    for span in found.spans:
        assert (span.start, span.end >= span.start) == (end, True)
        end = span.end
        described = found.fields[span.key]
        assert described.notation
        assert re.sub(r"\[\d+\]", "[]", span.path) == re.sub(r":.(?=\.|$)", "", span.key, flags=re.DOTALL)
    if found.fault is None:
        assert end == len(data)
    else:
        assert end == found.fault.start <= found.fault.end <= len(data)
        assert found.fault.error.offset == found.fault.start


def assert_explained(data: bytes, options: ParseOptions) -> None:
    """A message is traced as parse takes it: to the end, or to the same error."""
    found = trace(data, **options._asdict())
    assert_covered(found, data)
    try:
        message = pgo.parse(data, **options._asdict())
    except pgo.DecodeError as error:
        assert found.fault is not None
        assert found.fault.error.args == error.args
    else:
        assert found.fault is None and found.name == type(message).__name__


@pytest.mark.parametrize("name", SAMPLES)
def test_samples(name: str) -> None:
    """Every kind and shape, whole, and cut at every byte."""
    options, data, _ = SAMPLES[name]
    assert trace(data, **options._asdict()).fault is None
    for size in range(len(data) + 1):
        assert_explained(data[:size], options)
    assert_explained(data + b"\0", options)


@pytest.mark.parametrize("name", SAMPLES)
def test_every_changed_byte(name: str) -> None:
    """Whichever byte changes, the trace agrees with parse."""
    options, data, _ = SAMPLES[name]
    for place in range(len(data)):
        for change in (0x01, 0x20, 0xFF):
            assert_explained(data[:place] + bytes([data[place] ^ change]) + data[place + 1 :], options)


@given(testing.payloads())
def test_valid_messages_are_covered(pair: Pair) -> None:
    """Every byte of a valid message belongs to one field, in order."""
    options, data = pair
    found = trace(data, **options._asdict())
    assert found.fault is None
    assert_covered(found, data)
    assert b"".join(data[span.start : span.end] for span in found.spans) == data


@given(testing.options(), testing.damaged(testing.payloads().map(lambda pair: pair[1])))
def test_damaged_messages_are_covered(options: ParseOptions, data: bytes) -> None:
    """Fields, fault and rest are all bytes of a damaged message, and the fault is the error that parse raises."""
    assert_explained(data, options)


@given(testing.options(), st.binary(max_size=64))
def test_random_bytes_are_covered(options: ParseOptions, data: bytes) -> None:
    """The same for bytes of any kind."""
    assert_explained(data, options)


@given(testing.frames().map(pgo.build_frame))
def test_frames_are_covered(data: bytes) -> None:
    """Every byte of a frame belongs to one field."""
    found = trace_frame(data)
    assert found.fault is None
    assert_covered(found, data)


@given(testing.damaged(testing.frames().map(pgo.build_frame)))
def test_damaged_frames_are_covered(data: bytes) -> None:
    """Fields, fault and rest are all bytes of a damaged frame."""
    assert_covered(trace_frame(data), data)


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=() if path.stem.startswith("18-") else pytest.mark.long)
        for path in sorted(STORE.glob("*.txt"))
    ],
)
def test_recordings(path: Path) -> None:
    """What real servers sent is covered."""
    recording = Recording.load(path)
    options = {"proto_version": recording.mode.proto_version, "streaming": recording.mode.streaming}
    session = pgo.Session(**options)  # type: ignore[arg-type]
    for payload in recording.payloads:
        found = trace(payload, **options, in_stream=session.in_stream)  # type: ignore[arg-type]
        assert found.fault is None
        assert_covered(found, payload)
        session.parse(payload)


VECTORS = Path(__file__).parents[2] / "spec" / "vectors-connection.jsonl"


def _vectors() -> Iterator[dict[str, Any]]:
    with VECTORS.open(encoding="utf-8") as lines:
        yield from map(json.loads, islice(lines, 1, None))


def test_messages_of_a_connection_are_covered() -> None:
    """Fields, fault and rest are all bytes of each golden vector; there is a fault if parse refuses it."""
    for vector in _vectors():
        data = bytes.fromhex(vector["hex"])
        found = trace_connection(data, vector["sender"], vector["state"])
        ends = [0, *(span.end for span in found.spans)]
        assert [span.start for span in found.spans] == ends[:-1], vector
        assert all(found.fields[span.key].notation for span in found.spans)
        if "refuse" in vector:
            assert found.fault is not None and ends[-1] == found.fault.start <= found.fault.end <= len(data), vector
        else:
            message = parse_connection(data, vector["sender"], vector["state"])
            assert found.fault is None and ends[-1] == len(data) and found.name == type(message).__name__, vector


_SHORT = 120
_CUT = {v["message"]: v for v in _vectors() if "refuse" not in v and len(v["hex"]) <= _SHORT}
"""A golden vector of each message, short enough to be cut everywhere."""


@pytest.mark.parametrize("name", [name for name in _CUT if not name.startswith("Encryption")])
def test_a_cut_message_of_a_connection_is_read_as_far_as_it_reaches(name: str) -> None:
    """Fields after the length are read, although it counts bytes that are missing."""
    vector = _CUT[name]
    data = bytes.fromhex(vector["hex"])
    whole = trace_connection(data, vector["sender"], vector["state"])
    for size in range(len(data)):
        found = trace_connection(data[:size], vector["sender"], vector["state"])
        assert found.fault is not None
        # Before the constant that distinguishes messages of a tag, it may be another one.
        if found.name == whole.name:
            expected = [span for span in whole.spans if span.end <= size]
            assert list(found.spans[: len(expected)]) == expected


def test_bytes_after_a_message_of_a_connection_are_its_rest() -> None:
    """A length that counts fewer bytes than there are ends the message there; the error is that of the length."""
    data = bytes.fromhex("520000000800000000 5a0000000549")
    found = trace_connection(data, "server", "authentication")
    assert [(span.path, span.end) for span in found.spans][-1] == ("AuthenticationOk.request", 9)
    assert found.fault is not None and (found.fault.start, found.fault.end) == (9, 9)
    assert (found.fault.error.path, found.fault.error.offset) == ("AuthenticationOk.length", 1)


def test_faults_have_the_bytes_that_are_wrong() -> None:
    """A wrong tag or flag is reported with its bytes; if bytes are missing, the fault has none."""
    for digits, path, start, end in (
        ("", "", 0, 0),
        ("7a00", "", 0, 1),
        ("45", "StreamStop", 0, 0),
        ("4301", "Commit.flags", 1, 2),
        ("490000400f4e000178", "Insert.new.columns[0]", 8, 9),
        ("5500004001 58 00", "Update.old_kind", 5, 6),
        ("4900004001 4e 0001 74 000000ff 00", "Insert.new.columns[0].data", 13, 13),
        ("4f 0000000000000000 6162", "Origin.name", 9, 9),
        ("4900004001 4e 0000 0000", "Insert", 8, 8),
    ):
        fault = trace(bytes.fromhex(digits)).fault
        assert fault is not None
        assert (fault.error.path, fault.start, fault.end) == (path, start, end)


def test_branches_are_distinguished() -> None:
    """The same names in two branches are two places in the specification."""
    options, data, _ = SAMPLES["Insert"]
    keys = {span.key: span for span in trace(data, **options._asdict()).spans}
    assert keys["Insert.new.columns[]:t.data"].value == b"5"
    assert keys["Insert.new.columns[]:b.data"].value == b"\0\5"
    assert FIELDS["Insert.new.columns[]:t.data"] != FIELDS["Insert.new.columns[]:b.data"]


def test_tables_have_every_message() -> None:
    """The generated tables describe what the generated definitions define."""
    for fields, module in ((FIELDS, definitions), (FRAME_FIELDS, frame_definitions)):
        assert {key for key in fields if "." not in key} == {cls.__name__ for cls in module.DEFINITIONS}
        assert all(described.description or described.notation for described in fields.values())


def test_meanings() -> None:
    """Values and bits have meanings; values without a meaning are themselves."""
    assert FIELDS["Relation.replica_identity"].meaning("f") == "full"
    assert FIELDS["Truncate.options"].meaning(3) == "cascade, restart identity"
    assert FIELDS["Truncate.options"].meaning(0) == "none"
    assert FIELDS["Begin.xid"].meaning(7) == "" and FIELDS["Message.content"].meaning(b"") == ""


def test_parsing_knows_nothing_of_it() -> None:
    """The package does not import what traces, and the definitions that parse are not changed by it."""
    import subprocess
    import sys

    code = "import sys, pgoutput_construct; sys.exit('pgoutput_construct.wire.trace' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    before = repr(definitions.Insert.subcons)
    trace(SAMPLES["Insert"][1])
    assert repr(definitions.Insert.subcons) == before
