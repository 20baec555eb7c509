"""Run in a copy of the project whose begins and ends say less, and whose names stand for several types.

python unsaid.py    takes a stream in as a capture does, and writes it as a log
"""

from pathlib import Path
from typing import Any, Final

import pgoutput_construct as pgo
from pgoutput_construct.changelog import ChangeLog, LogOptions, LogWriter, Position
from pgoutput_construct.columnar.envelope import Frames
from pgoutput_construct.postgres._capture.pump import Intake

OPTIONS: Final[dict[str, Any]] = {"proto_version": 5, "streaming": "on"}
TIME: Final = pgo.Timestamp(800_000_000_000_000)
TRANSACTIONS: Final = 10
"""More than are taken in one by one."""
COLUMNS: Final = (pgo.RelationColumn(1, "id", 23, -1),)


def messages() -> list[Any]:
    """Return transactions of one row each, all but the first without a description."""
    found: list[Any] = []
    for number in range(1, TRANSACTIONS + 1):
        described = [pgo.Relation(None, 7, "public", "t", "d", COLUMNS)] if number == 1 else []
        found += [
            pgo.Begin(commit_time=TIME, xid=700 + number),
            *described,
            pgo.Progress(1 << 63),
            pgo.Remark("red"),
            pgo.Message(None, 1, pgo.Lsn(1), "inside", b""),
            pgo.Insert(None, 7, (b"%d" % number,)),
            pgo.Commit(pgo.Lsn(16 * number), commit_time=TIME),
        ]
    return [*found, pgo.Message(None, 0, pgo.Lsn(16 * TRANSACTIONS + 8), "between", b"")]


def payloads() -> list[bytes]:
    """Return the bytes of the stream."""
    session = pgo.Session(**OPTIONS)
    return [session.build(message) for message in messages()]


def taken(intake: Intake, size: int) -> list[Any]:
    """Return the blocks that a capture makes of the stream, some frames at once."""
    frames = [pgo.build_frame(pgo.XLogData(pgo.Lsn(1), pgo.Lsn(1), TIME, payload)) for payload in payloads()]
    return [intake.take(Frames.of(*frames[start : start + size])).block for start in range(0, len(frames), size)]


def check_capture() -> None:
    """It knows where each transaction ends, and does not count again what the log has."""
    for size in (1, 7, len(payloads())):
        intake = Intake(OPTIONS, Position())
        assert sum(map(len, taken(intake, size))) == len(payloads())
        found = intake.tracker.transactions, intake.tracker.complete_lsn, intake.tracker.at_boundary
        assert found == (TRANSACTIONS, pgo.Lsn(16 * TRANSACTIONS + 8), True), (size, found)
        again = Intake(OPTIONS, Position(pgo.Lsn(16 * 4)))
        taken(again, size)
        found = again.tracker.transactions, again.tracker.dropped, again.tracker.at_boundary
        assert found == (TRANSACTIONS - 4, 4, True), (size, found)


def write_log() -> None:
    """Write the stream as a log, whose index has each transaction."""
    with LogWriter(Path("log")) as writer:
        given = {"database": "test", "system_identifier": "1"}
        writer.use(LogOptions(slot="slot", publications=("pub",), server_version=200000, **given, **OPTIONS))
        for block in taken(Intake(OPTIONS, Position()), 20):
            writer.append(block)
        writer.publish(Position())
    ended = ChangeLog("log").index.transactions.to_pylist()
    expected = [(700 + number, 16 * number, 16 * number) for number in range(1, TRANSACTIONS + 1)]
    assert [(each["xid"], each["commit_lsn"], each["end_lsn"]) for each in ended] == expected, ended


if __name__ == "__main__":
    check_capture()
    write_log()
