"""A program that resumes a log and writes one payload of a recording a segment, until it is killed."""

import sys

import pgoutput_construct as pgo
from pgoutput_construct.changelog import LogWriter, Position
from tests.changelog.blocks import block_of
from tests.live.recording import STORE, Recording
from tests.spark.logs import log_options


def main(address: str, name: str) -> None:
    """Write the rest of a recording."""
    recording = Recording.load(STORE / f"{name}.txt")
    mode = recording.mode
    session = pgo.Session(mode.proto_version, mode.streaming)
    with LogWriter(address) as writer:
        writer.use(log_options(mode.proto_version, mode.streaming, mode.binary, mode.two_phase))
        for seq, payload in enumerate(recording.payloads):
            if seq >= writer.next_seq:
                writer.append(block_of(session, seq, payload))
                writer.publish(Position())
            session.parse(payload)


if __name__ == "__main__":
    main(*sys.argv[1:])
