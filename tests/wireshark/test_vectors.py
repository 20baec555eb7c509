"""The golden vectors: the dissector finds the fields of those that are messages, and what is wrong with the others."""

import re
from pathlib import Path

import pytest

from pgoutput_construct.wire.trace import trace
from tests.generate.vectors import lines, told
from tests.wire.samples import SAMPLES
from tests.wireshark.compared import assert_same
from tests.wireshark.pcap import Said, write_pcap
from tests.wireshark.sent import copy_data, start, xlog_data
from tests.wireshark.shown import NEEDS_TSHARK, ShownMessage, shown

pytestmark = NEEDS_TSHARK

OPENED = xlog_data(SAMPLES["Stream Start"][1])


def faults(message: ShownMessage) -> list[int]:
    """Return where a message is said to be wrong; those that are no messages at all are so at their first byte."""
    found = [re.search(r" at byte (\d+): ", expert) for expert in message.experts if "Malformed" in expert]
    return [int(match[1]) if match else 0 for match in found]


@pytest.mark.slow
@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.long)])
def test_vectors(tmp_path: Path, step: int) -> None:
    """Each in a connection of its own, behind the options that it stands under and, in a stream, a Stream Start."""
    vectors, segments = list(lines("vectors.jsonl"))[::step], []
    for number, vector in enumerate(vectors):
        asked = start(f"(proto_version '{vector['proto_version']}', streaming '{vector['streaming']}')")
        frames = [OPENED] * vector["in_stream"] + [xlog_data(bytes.fromhex(vector["hex"]))]
        segments += [Said(True, asked, number), Said(False, b"".join(map(copy_data, frames)), number)]
    found = [
        message for message in shown(write_pcap(tmp_path / "vectors.pcap", segments)) if message.name != "XLogData"
    ]
    for vector in vectors:
        del found[: vector["in_stream"]]
        message = found.pop(0)
        if "refuse" in vector:
            assert faults(message) == [vector["refuse"]["offset"]], (vector, message)
        else:
            assert faults(message) == []
            assert_same(message, trace(bytes.fromhex(vector["hex"]), **told(vector)))
    assert found == []
