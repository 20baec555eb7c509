"""Run in a copy of the project with states that return to the one before: who follows a stream knows where it is.

python returns.py    prints the names of the messages and their bytes, in order
"""

import json
from typing import Any, Final

import pgoutput_construct as pgo
from pgoutput_construct.changelog import Position
from pgoutput_construct.columnar import BatchDecoder
from pgoutput_construct.columnar.envelope import Frames
from pgoutput_construct.postgres._capture.pump import Intake
from pgoutput_construct.stream.state import ControlMessage, StreamState
from pgoutput_construct.stream.transaction_reader import TransactionReader

OPTIONS: Final[dict[str, Any]] = {"proto_version": 5, "streaming": "on"}
TIME: Final = pgo.Timestamp(800_000_000_000_000)
KEY: Final = pgo.RelationColumn(1, "id", 23, -1)


def insert(number: int, xid: int | None = None, block_seq: int | None = None) -> pgo.Insert:
    """Return a row."""
    return pgo.Insert(xid, 7, (str(number).encode(),), block_seq=block_seq)


STREAM: Final[list[Any]] = [
    pgo.Begin(pgo.Lsn(16), TIME, 700),
    pgo.Relation(None, 7, "public", "t", "d", (KEY,)),
    pgo.BlockStart(),
    insert(1, None, 5),
    pgo.NoteStart(),
    insert(2, None, 6),
    pgo.NoteStop(),
    insert(3, None, 7),
    pgo.BlockStop(),
    insert(4),
    pgo.NoteStart(),
    insert(5),
    pgo.NoteStop(),
    pgo.Commit(pgo.Lsn(16), pgo.Lsn(32), TIME),
    pgo.StreamStart(702, 1),
    pgo.Relation(702, 7, "public", "t", "d", (KEY,)),
    pgo.BlockStart(),
    insert(6, 702, 1),
    pgo.NoteStart(),
    insert(7, 702, 2),
    pgo.NoteStop(),
    pgo.BlockStop(),
    insert(8, 702),
    pgo.StreamStop(),
    pgo.StreamCommit(702, pgo.Lsn(48), pgo.Lsn(64), TIME),
]


def check_order() -> list[bytes]:
    """Whoever reads from the begin knows the states around each; whoever reads from the middle the layouts."""
    session, exact = pgo.Session(**OPTIONS), StreamState(exact=True)
    payloads = []
    for message in STREAM:
        exact.advance(message)
        before = session.state.parameters
        payloads.append(session.build(message))
        assert pgo.parse(payloads[-1], **OPTIONS, **before) == message
        assert session.state.parameters == exact.parameters
    assert exact.between and not session.in_stream
    again = pgo.Session(**OPTIONS)
    assert [again.parse(payload) for payload in payloads] == STREAM
    for start, wrong in ((2, pgo.StreamStop()), (3, pgo.BlockStart()), (3, STREAM[13]), (5, pgo.BlockStop())):
        state = StreamState(exact=True)
        for message in STREAM[:start]:
            state.advance(message)
        try:
            state.advance(wrong)
        except pgo.ProtocolError:
            continue
        raise AssertionError((start, wrong))
    return payloads


def check_readers(payloads: list[bytes]) -> None:
    """Rows, transactions and what a capture keeps."""
    reader = TransactionReader()
    for seq, message in enumerate(STREAM):
        reader.read(ControlMessage(seq, None, message))
    assert [ended.transaction.xid for ended in reader.ended] == [700, 702]
    for size in (1, 4, len(payloads)):
        decoder, found = BatchDecoder(**OPTIONS), []
        for start in range(0, len(payloads), size):
            decoded = decoder.decode(payloads[start : start + size])
            assert not decoded.errors, decoded.errors
            found += [line["id"] for table in decoded.tables for line in table.batch.to_pylist()]
        assert sorted(found) == [*range(1, 9)], found
    frames = [pgo.build_frame(pgo.XLogData(pgo.Lsn(1), pgo.Lsn(1), TIME, payload)) for payload in payloads]
    intake = Intake(OPTIONS, Position())
    blocks = [intake.take(Frames.of(frame)).block for frame in frames]
    assert [bool(block.index.states["in_block"][0]) for block in blocks].count(True) == 6 + 5
    assert (intake.tracker.transactions, intake.tracker.between) == (2, True)


if __name__ == "__main__":
    sent = check_order()
    check_readers(sent)
    print(json.dumps([[type(m).__name__, data.hex()] for m, data in zip(STREAM, sent, strict=True)]))
