"""Run in a copy of the project whose transactions begin and end in new ways: no row is lost between its readers.

python bounded.py    writes a log, and prints the ids that Spark finds in it; with --without-spark none
"""

import json
import sys
from pathlib import Path

import pgoutput_construct as pgo
from pgoutput_construct.changelog import ChangeLog, LogOptions, LogWriter, Position
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.columnar import BatchDecoder
from pgoutput_construct.columnar.envelope import Frames
from pgoutput_construct.postgres._capture.pump import Intake
from pgoutput_construct.stream.rows import RowReader
from pgoutput_construct.stream.state import ControlMessage
from pgoutput_construct.stream.transaction_reader import TransactionReader

OPTIONS = {"proto_version": 5, "streaming": "on"}
TIME = pgo.Timestamp(800_000_000_000_000)
COLUMNS = (
    pgo.RelationColumn(1, "id", 23, -1),
    *(pgo.RelationColumn(0, name, oid, -1) for name, oid in (("gauge", 9998), ("gauges", 9997), ("dial", 9996))),
)


def row(number: int) -> tuple[bytes, ...]:
    """Return the values of a row: text, but for the last, which is binary."""
    text = str(number).encode()
    return text, b"-" + text, b"{" + text + b",NULL}", pgo.Binary(number.to_bytes(4, "big"))


STREAM = [
    pgo.Begin(pgo.Lsn(16), TIME, 700),
    pgo.Relation(None, 7, "public", "t", "d", COLUMNS),
    pgo.Insert(None, 7, row(1)),
    pgo.StepStart(),
    pgo.Insert(None, 7, row(2)),
    pgo.StepStop(),
    pgo.Commit(pgo.Lsn(16), pgo.Lsn(32), TIME),
    pgo.LoadStart(701),
    pgo.Insert(None, 7, row(3)),
    pgo.LoadStop(pgo.Lsn(40), TIME),
    pgo.StreamStart(702, 1),
    pgo.Relation(702, 7, "public", "t", "d", COLUMNS),
    pgo.Insert(702, 7, row(4)),
    pgo.Insert(703, 7, row(5)),
    pgo.StreamStop(),
    pgo.StreamAbort(702, 703),
    pgo.StreamStart(702, 0),
    pgo.Relation(702, 7, "public", "t", "d", COLUMNS),
    pgo.Insert(702, 7, row(6)),
    pgo.StreamStop(),
    pgo.StreamCommit(702, pgo.Lsn(48), pgo.Lsn(64), TIME),
    pgo.Begin(pgo.Lsn(80), TIME, 704),
    pgo.Insert(None, 7, row(7)),
    pgo.Rollback(pgo.Lsn(88), TIME),
    pgo.LoadStart(705),
    pgo.Insert(None, 7, row(8)),
    pgo.Rollback(pgo.Lsn(96), TIME),
]
ENDED = [(700, 16, 32), (701, 40, 40), (702, 48, 64), (704, 88, 88), (705, 96, 96)]


def payloads() -> list[bytes]:
    """Return the bytes of the stream."""
    session = pgo.Session(**OPTIONS)
    return [session.build(message) for message in STREAM]


def write_log(rows: int) -> None:
    """Write it as a log whose segments end in the midst of transactions."""
    session, given = pgo.Session(**OPTIONS), {"database": "test", "system_identifier": "1"}
    with LogWriter(Path("log")) as writer:
        writer.use(LogOptions(slot="slot", publications=("pub",), server_version=200000, **given, **OPTIONS))
        for seq, payload in enumerate(payloads()):
            states = {name: [state] for name, state in session.state.parameters.items()}
            scope = -1 if session.stream_xid is None else session.stream_xid
            writer.append(Block.from_payloads([payload], [seq], [TIME], OPTIONS, states, [scope]))
            session.parse(payload)
            if writer.pending >= rows:
                writer.publish(Position())
        writer.publish(Position())


def check_reader() -> None:
    """What reads single messages knows each transaction, and refuses what fits none."""
    reader = TransactionReader()
    for seq, message in enumerate(STREAM):
        reader.read(ControlMessage(seq, None, message))
    ended = [(each.transaction.xid, each.commit_lsn, each.end_lsn) for each in reader.ended]
    assert ended == ENDED, ended
    assert [each.outcome for each in reader.ended] == ["committed"] * 3 + ["aborted"] * 2
    assert reader.ended[2].transaction.aborted == {703}
    for wrong in (
        (pgo.LoadStop(pgo.Lsn(40), TIME),),
        (STREAM[0], STREAM[9]),
        (STREAM[7], STREAM[6]),
        (pgo.StepStart(),),
    ):
        reader = TransactionReader()
        try:
            for message in wrong:
                reader.read(ControlMessage(0, None, message))
        except pgo.ProtocolError:
            continue
        raise AssertionError(wrong)


def check_index() -> None:
    """The log's index has them, too, and the rows in them."""
    index = ChangeLog("log").index
    ended = index.transactions.to_pylist()
    assert [(each["xid"], each["commit_lsn"], each["end_lsn"]) for each in ended] == ENDED, ended
    assert not index.open.to_pylist()
    assert [entry.states["in_stream"] for entry in ChangeLog("log")].count(True) == 7


def check_tracker() -> None:
    """A capture confirms them, and drops what it has."""
    frames = [pgo.build_frame(pgo.XLogData(pgo.Lsn(1), pgo.Lsn(1), TIME, payload)) for payload in payloads()]
    intake = Intake(OPTIONS, Position())
    blocks = [intake.take(Frames.of(frame)).block for frame in frames]
    assert sum(map(len, blocks)) == len(STREAM)
    assert (intake.tracker.transactions, intake.tracker.complete_lsn, intake.tracker.between) == (3, pgo.Lsn(64), True)
    assert [int(block.xid[0]) for block in blocks[:10]] == [700] * 7 + [701] * 3
    again = Intake(OPTIONS, Position(pgo.Lsn(40)))
    kept = sum(len(again.take(Frames.of(frame)).block) for frame in frames)
    assert (again.tracker.transactions, again.tracker.dropped) == (1, 2), again.tracker.dropped
    assert kept < len(STREAM)


def typed(number: int) -> tuple[int, list[int | None], int]:
    """Return what the values of a row are in Arrow."""
    return -number, [number, None], number


def check_rows() -> None:
    """Rows come with their table, whatever is around them."""
    reader = RowReader()
    found = [change.new for message in STREAM for change in reader.read(message)]
    assert [new and new["id"] for new in found] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [new and (new["gauge"], new["dial"]) for new in found] == [(-n, n) for n in range(1, 9)]
    for size in (1, len(STREAM)):
        decoder, lines = BatchDecoder(**OPTIONS), []
        for start in range(0, len(STREAM), size):
            decoded = decoder.decode(payloads()[start : start + size])
            assert not decoded.errors, decoded.errors
            lines += [line for table in decoded.tables for line in table.batch.to_pylist()]
        found = {line["id"]: (line["gauge"], line["gauges"], line["dial"]) for line in lines}
        assert found == {number: typed(number) for number in range(1, 9)}, found


def spark_ids() -> list[int]:
    """Return the ids that Spark finds."""
    from pgoutput_construct.spark import open_log, spark_session

    spark = spark_session("local[1]", {"spark.sql.shuffle.partitions": "1", "spark.ui.enabled": "false"}, "growth")
    try:
        changes = open_log(spark, "log").changes("public.t").orderBy("_commit_lsn", "_seq").collect()
        assert all((each["gauge"], each["gauges"], each["dial"]) == typed(each["id"]) for each in changes), changes
        return [each["id"] for each in changes]
    finally:
        spark.stop()


if __name__ == "__main__":
    if "--spark" in sys.argv:
        print(json.dumps(spark_ids()))
    else:
        write_log(3)
        check_reader()
        check_index()
        check_rows()
        check_tracker()
