"""Run in a copy of the project whose envelope depends on the version and the options: all who read frames know them.

python carried.py
"""

import json
from pathlib import Path
from typing import Any, Final

from hypothesis import HealthCheck, given, settings

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.changelog import Position
from pgoutput_construct.columnar.envelope import Frames, split_frames
from pgoutput_construct.postgres._capture.pump import Intake
from pgoutput_construct.wire.engine import FRAME_PARAMETERS, FRAMES, frame_parameters
from pgoutput_construct.wire.trace import trace_frame

TIME: Final = pgo.Timestamp(800_000_000_000_000)
TIME_HEX: Final = "0002d79883d20000"
LSN: Final = "0000000000000001"
OLD: Final[dict[str, Any]] = {"proto_version": 4, "streaming": "parallel"}
NEW: Final[dict[str, Any]] = {"proto_version": 5, "streaming": "parallel"}
HUSHED: Final[dict[str, Any]] = {**NEW, "hush": True}
PLAIN: Final[dict[str, Any]] = {"proto_version": 5, "streaming": "on"}
COMMIT: Final = pgo.Commit(pgo.Lsn(16), pgo.Lsn(32), TIME)

SENT: Final[list[tuple[dict[str, Any], Any, str]]] = [
    ({}, pgo.XLogData(pgo.Lsn(1), pgo.Lsn(1), TIME, b"x"), f"77 {LSN} {LSN} {TIME_HEX} 78"),
    (OLD, pgo.XLogData(pgo.Lsn(1), pgo.Lsn(1), TIME, b"x"), f"77 {LSN} {LSN} {TIME_HEX} 78"),
    (NEW, pgo.XLogData(pgo.Lsn(1), pgo.Lsn(1), TIME, b"x", shard=7), f"77 {LSN} {LSN} {TIME_HEX} 00000007 78"),
    (OLD, pgo.PrimaryKeepalive(pgo.Lsn(1), TIME, 1), f"6b {LSN} {TIME_HEX} 01"),
    (NEW, pgo.PrimaryKeepalive(pgo.Lsn(1), TIME, 2, note="n"), f"6b {LSN} {TIME_HEX} 02 6e00"),
    (HUSHED, pgo.PrimaryKeepalive(pgo.Lsn(1), TIME, 1), f"6b {LSN} {TIME_HEX} 01"),
    (PLAIN, pgo.PrimaryKeepalive(pgo.Lsn(1), TIME, 0), f"6b {LSN} {TIME_HEX} 00"),
    (NEW, pgo.WALGap(pgo.Lsn(1)), f"67 {LSN}"),
]
REFUSED: Final[list[tuple[dict[str, Any], str]]] = [
    (OLD, f"6b {LSN} {TIME_HEX} 02"),
    (OLD, f"67 {LSN}"),
    (NEW, f"6b {LSN} {TIME_HEX} 01"),
    (HUSHED, f"6b {LSN} {TIME_HEX} 01 6e00"),
    (NEW, f"77 {LSN} {LSN} {TIME_HEX} 0000"),
]


def check() -> None:
    """Engines, kernels, and the fields that inspect shows."""
    for said, frame, digits in SENT:
        data = bytes.fromhex(digits)
        assert pgo.build_frame(frame, **said) == data and pgo.parse_frame(data, **said) == frame, frame
        assert trace_frame(data, **said).fault is None
        batch = split_frames(Frames.of(data), said)
        assert batch.error is None and len(batch.payloads) == isinstance(frame, pgo.XLogData)
        assert [other for _, other in batch.others] == [frame] * (not isinstance(frame, pgo.XLogData))
    for said, digits in REFUSED:
        data = bytes.fromhex(digits)
        assert isinstance(split_frames(Frames.of(data), said).error, pgo.DecodeError), digits
        try:
            pgo.parse_frame(data, **said)
        except pgo.DecodeError as error:
            assert not isinstance(error, pgo.EngineError), error
        else:
            raise AssertionError(digits)
    for wrong in ({"proto_version": 9}, {"streaming": "parallel"}, {"hush": True}):
        try:
            pgo.parse_frame(b"", **wrong)
        except pgo.DecodeError as error:
            raise AssertionError(wrong) from error
        except pgo.PgoutputError:
            continue


def check_vectors() -> None:
    """The golden vectors of the envelope say under which options they are, and the engines agree."""
    lines = [json.loads(line) for line in Path("spec/vectors-envelope.jsonl").read_text("utf-8").splitlines()[1:]]
    assert {line["proto_version"] for line in lines} == {1, 2, 3, 4, 5}
    for line in lines:
        said = {name: line[name] for name in ("proto_version", "streaming", "hush")}
        try:
            frame = pgo.parse_frame(bytes.fromhex(line["hex"]), **said)
        except pgo.DecodeError as error:
            assert line["refuse"]["offset"] == error.offset, (line, error)
        else:
            assert type(frame).__name__ == line["message"].replace(" ", ""), line
            assert pgo.build_frame(frame, **said).hex() == line["hex"]


@settings(max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(testing.frames(**NEW))
def check_strategies(frame: Any) -> None:
    """Frames of the new version are drawn, and both engines agree on them."""
    parameters = dict(zip(FRAME_PARAMETERS, frame_parameters(**NEW), strict=True))
    data = pgo.build_frame(frame, **NEW)
    assert FRAMES.build(frame, parameters) == data and pgo.parse_frame(data, **NEW) == frame


def check_capture() -> None:
    """A capture reads the frames of its connection by the connection's options."""
    for said, more in ((OLD, {}), (NEW, {"shard": 1})):
        payload = pgo.build(
            pgo.Begin(COMMIT.commit_lsn, TIME, 3), proto_version=said["proto_version"], streaming=said["streaming"]
        )
        frame = pgo.build_frame(pgo.XLogData(pgo.Lsn(1), pgo.Lsn(1), TIME, payload, **more), **said)
        taken = Intake(said, Position()).take(Frames.of(frame))
        assert (taken.error, taken.block.payload_bytes) == (None, len(payload)), taken


if __name__ == "__main__":
    check()
    check_vectors()
    check_strategies()
    check_capture()
