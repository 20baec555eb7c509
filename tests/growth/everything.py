"""Run in a copy of the project that has all changes: messages, streams, tables, logs and Spark follow.

python everything.py FOLDER_OF_RECORDINGS CHECK...    prints what went wrong in which check, as JSON
"""

import io
import json
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Final, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded import digest_of

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.changelog import ChangeLog, LogOptions, LogWriter, Position
from pgoutput_construct.changelog.block import Block
from pgoutput_construct.columnar import BatchDecoder, DecodedBatch, index_batch
from pgoutput_construct.columnar.envelope import Frames
from pgoutput_construct.postgres.intake import Intake
from pgoutput_construct.postgres.replication import start_command
from pgoutput_construct.stream.relations import RelationCache
from pgoutput_construct.stream.rows import RowReader
from pgoutput_construct.wire import jsonable
from pgoutput_construct.wire.engine import FRAMES, MESSAGES, engine, parse_prefix
from pgoutput_construct.wire.options import options

quick = settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
OPTIONS: Final[dict[str, Any]] = {"proto_version": 5, "streaming": "eager", "checksums": "row", "timings": True}
TIME: Final = pgo.Timestamp(800_000_000_000_000)
TIME_HEX: Final = "0002d79883d20000"


class Sent(NamedTuple):
    """A message, its bytes written by hand, and where it stands."""

    message: Any
    hex: str
    in_stream: bool = False
    in_block: bool = False

    @property
    def payload(self) -> bytes:
        """Its bytes."""
        return bytes.fromhex(self.hex)

    @property
    def states(self) -> dict[str, bool]:
        """Where it stands, as keywords of parse."""
        return {"in_stream": self.in_stream, "in_block": self.in_block}


def row(*values: Any) -> pgo.TupleData:
    """A row in which every value has its neighbours."""
    columns = tuple(pgo.TupleColumn(value, compression="l", crc=9, rank=-2, note="n") for value in values)
    return pgo.TupleData(columns, row_flags=1, written_at=pgo.Timestamp(5), collation="C")


def row_hex(*values: str) -> str:
    """The bytes of such a row."""
    columns = "".join(f"6c 00000009 {value} fffe 6e00" for value in values)
    return f"01 0000000000000005 {len(values):04x} 4300 {columns}"


def text(value: str) -> str:
    """The bytes of a value as text."""
    return f"74 {len(value):08x} {value.encode().hex()}"


NULL: Final = "6e"
KEY = pgo.RelationColumn(1, "id", 23, -1, attnum=-7, default="0")
NOTE = pgo.RelationColumn(0, "note", 25, -1, attnum=2, default="")
COLUMNS_HEX: Final = "0002 fff9 01 696400 3000 00000017 ffffffff 0002 00 6e6f746500 00 00000019 ffffffff"
FILTER = pgo.RowFilter(pgo.Bounds(-1, -128), "a > 1")
FILTER_HEX: Final = "ffffffffffffffff 80 61203e203100"

STREAM: Final = [
    Sent(pgo.Begin(pgo.Lsn(16), TIME, 700), f"42 0000000000000010 {TIME_HEX} 000002bc"),
    Sent(
        pgo.Publication("p", -5, FILTER, (23, 25), (pgo.PublishedTable(7, FILTER),)),
        f"46 7000 fffffffffffffffb {FILTER_HEX} 0002 0001 00000017 00000019 00000007 {FILTER_HEX}",
    ),
    Sent(
        pgo.Relation(None, 7, "public", "t", "d", (KEY, NOTE)),
        f"52 00000007 7075626c696300 7400 64 {COLUMNS_HEX}",
    ),
    Sent(
        pgo.Truncate(None, 1, (pgo.TruncatedTable(7, reason="r", row_count=-1),)),
        "54 00000001 01 7200 00000007 ffffffffffffffff",
    ),
    Sent(
        pgo.Insert(None, 7, row(b"1", b"a"), change_number=-1, label="l", comment="c", cost=3),
        f"49 ffffffffffffffff 6c00 00000007 4e {row_hex(text('1'), text('a'))} 6300 0000000000000003",
    ),
    Sent(pgo.BlockStart(4), "5b 00000004"),
    Sent(
        pgo.Insert(
            None,
            7,
            row(pgo.Binary(b"\0\0\0\2"), pgo.Packed(b"b")),
            change_number=2,
            label="",
            block_seq=6,
            comment="",
            cost=0,
        ),
        "49 0000000000000002 00 00000006 00000007 4e "
        f"{row_hex('62 00000004 00000002', '7a 00000001 62')} 00 0000000000000000",
        in_block=True,
    ),
    Sent(
        pgo.Update(
            None,
            7,
            "K",
            row(b"1", None),
            row(b"3", pgo.UNCHANGED),
            block_seq=1,
            label="u",
            change_number=-3,
            cost=1,
            comment="",
        ),
        f"55 00000001 7500 fffffffffffffffd 00000007 4b {row_hex(text('1'), NULL)} "
        f"4e {row_hex(text('3'), '75')} 0000000000000001 00",
        in_block=True,
    ),
    Sent(
        pgo.Relation(None, 8, "", "u", "f", (KEY, NOTE), block_uses=1),
        f"52 00000008 00 7500 0001 66 {COLUMNS_HEX}",
        in_block=True,
    ),
    Sent(pgo.BlockStop(), "5d", in_block=True),
    Sent(pgo.Upsert(7, new=row(b"2", b"B")), f"58 00000007 4e {row_hex(text('2'), text('B'))}"),
    Sent(pgo.Upsert(7, new=row(b"2", pgo.EXTERNAL)), f"58 00000007 4e {row_hex(text('2'), '65')}"),
    Sent(
        pgo.Commit(pgo.Lsn(16), pgo.Lsn(32), TIME, digest=255),
        f"43 00 0000000000000010 0000000000000020 {TIME_HEX} 00000000000000ff",
    ),
    Sent(pgo.StreamStart(701, first_segment=1, worker=8), "53 000002bd 00000008 01"),
    Sent(
        pgo.Relation(701, 7, "public", "t", "d", (KEY, NOTE)),
        f"52 000002bd 00000007 7075626c696300 7400 64 {COLUMNS_HEX}",
        in_stream=True,
    ),
    Sent(
        pgo.Insert(701, 7, row(b"4", None), change_number=0, label="", comment="", cost=0),
        f"49 0000000000000000 000002bd 00 00000007 4e {row_hex(text('4'), NULL)} 00 0000000000000000",
        in_stream=True,
    ),
    Sent(pgo.StreamBlockStart(5), "7b 00000005", in_stream=True),
    Sent(
        pgo.Delete(701, 7, "K", row(b"3", None), change_number=0, block_name="b", label="d", comment="e"),
        f"44 0000000000000000 000002bd 00000007 6200 6400 4b {row_hex(text('3'), NULL)} 6500",
        in_stream=True,
        in_block=True,
    ),
    Sent(
        pgo.Upsert(7, "K", row(b"4", None), row(b"5", b"e"), xid=702),
        f"58 000002be 00000007 4b {row_hex(text('4'), NULL)} 4e {row_hex(text('5'), text('e'))}",
        in_stream=True,
        in_block=True,
    ),
    Sent(
        pgo.Insert(702, 7, row(b"6", b""), change_number=0, label="", block_seq=3, comment="", cost=0),
        f"49 0000000000000000 000002be 00 00000003 00000007 4e {row_hex(text('6'), text(''))} 00 0000000000000000",
        in_stream=True,
        in_block=True,
    ),
    Sent(pgo.StreamBlockStop(), "7d", in_stream=True, in_block=True),
    Sent(pgo.StreamStop(), "45", in_stream=True),
    Sent(
        pgo.StreamCommit(701, pgo.Lsn(48), pgo.Lsn(64), TIME),
        f"63 000002bd 00 0000000000000030 0000000000000040 {TIME_HEX}",
    ),
]
PAYLOADS: Final = [sent.payload for sent in STREAM]

FRAMES_SENT: Final = [
    (
        pgo.WALGap(-1, (pgo.Gap(pgo.LsnRange(pgo.Lsn(1), pgo.Lsn(2)), "x"),)),
        "67 ffffffffffffffff 0001 0000000000000001 0000000000000002 7800",
    ),
    (pgo.SlotHint(pgo.LsnRange(pgo.Lsn(1), pgo.Lsn(2)), -2), "71 0000000000000001 0000000000000002 fffffffe"),
]

INSERTED: Final = [
    ("truncate", None, None),
    ("insert", 1, "a"),
    ("insert", 2, None),
    ("update", 3, None),
    ("upsert", 2, "B"),
    ("upsert", 2, None),
    ("insert", 4, None),
    ("delete", None, None),
    ("upsert", 5, "e"),
    ("insert", 6, ""),
]
READ: Final = [*INSERTED[:2], ("insert", 2, "b"), *INSERTED[3:]]
"""The same in Arrow, where a column of text holds what comes in a new format, too."""
BEFORE: Final = [None, None, None, 1, None, None, None, 3, 4, None]
STATE: Final = [(2, "B"), (5, "e"), (6, "")]
"""The table after all: row 1 became 3, which was deleted; row 4 became 5."""


def refused(call: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """Check that a call is refused with an error of ours."""
    try:
        call(*arguments, **options)
    except pgo.PgoutputError as error:
        assert not isinstance(error, pgo.EngineError), error
        return
    raise AssertionError(f"accepted: {call.__name__}{arguments} {options}")


def check_messages() -> None:
    """Each message and its bytes follow from each other, in both engines; JSON carries it; nothing less is accepted."""
    for sent in STREAM:
        given = OPTIONS | sent.states
        parameters = options(**given).parameters()
        assert pgo.build(sent.message, **given) == sent.payload, (sent.message, pgo.build(sent.message, **given).hex())
        assert pgo.parse(sent.payload, **given) == sent.message
        assert MESSAGES.build(sent.message, parameters) == sent.payload
        assert MESSAGES.parse(sent.payload, parameters) == sent.message
        assert parse_prefix(b"x" + sent.payload + b"x", 1, **given) == (sent.message, len(sent.payload))
        assert jsonable.from_json(json.loads(json.dumps(jsonable.to_json(sent.message)))) == sent.message
        for size in range(len(sent.payload)):
            refused(pgo.parse, sent.payload[:size], **given)
        refused(pgo.parse, sent.payload + b"\0", **given)
        for version in range(1, 5):
            if type(sent.message) not in (pgo.Begin, pgo.StreamStop, pgo.StreamCommit):
                refused(pgo.parse, sent.payload, version, "off" if version == 1 else "on", sent.in_stream)


def check_old_messages() -> None:
    """Before version 5 messages are laid out, and constructed, as before."""
    old = pgo.Insert(None, 7, (b"1", None))
    assert old == pgo.Insert(relation_oid=7, new=(b"1", None)) == pgo.Insert(xid=None, relation_oid=7, new=(b"1", None))
    for version in range(1, 5):
        assert pgo.build(old, version).hex() == "49000000074e00027400000001316e"
        assert pgo.parse(bytes.fromhex("49000000074e00027400000001316e"), version) == old
        refused(pgo.build, STREAM[4].message, version)
        refused(pgo.build, pgo.Upsert(7, new=(b"1",)), version)
    refused(pgo.build, old, 5)
    assert pgo.build(pgo.Truncate(None, 0, (7, 8))).hex() == "5400000002000000000700000008"
    assert pgo.build(pgo.Commit(pgo.Lsn(1), pgo.Lsn(2), TIME)) == bytes.fromhex(f"4300{1:016x}{2:016x}{TIME_HEX}")
    assert pgo.build(pgo.Update(None, 7, "K", (b"1",), (b"2",))).hex().startswith("55000000074b0001")


def check_options() -> None:
    """Options are checked everywhere, and asked of the server."""
    refused(pgo.Session, 4, checksums="row")
    refused(pgo.Session, 5, checksums="rows")
    refused(pgo.Session, 4, timings=True)
    refused(pgo.Session, 4, "eager")
    refused(BatchDecoder, 4, "eager")
    refused(pgo.parse, b"", 5, "eager", checksums=1)
    command = start_command(log_options(batch_size=9, row_filters=("a", "b")), pgo.Lsn(1)).decode()
    for part in (
        "\"batch_size\" '9'",
        '"row_filters" \'"a","b"\'',
        "\"proto_version\" '5'",
        "\"streaming\" 'eager'",
        "\"checksums\" 'row'",
        "\"timings\" 'true'",
    ):
        assert part in command, command
    refused(log_options().check_server, 190000)
    log_options().check_server(200000)


def log_options(**others: Any) -> LogOptions:
    """The options of a log that no server has written."""
    return LogOptions(
        slot="slot",
        publications=("pub",),
        server_version=200000,
        system_identifier="1",
        database="test",
        **OPTIONS,
        **others,
    )


def check_session() -> None:
    """A session follows streams, and blocks inside and outside of them."""
    session, builder = pgo.Session(**OPTIONS), pgo.Session(**OPTIONS)
    for sent in STREAM:
        assert session.state.parameters == sent.states, sent
        assert session.in_stream is sent.in_stream, sent
        assert session.stream_xid == (701 if sent.in_stream else None), sent
        assert session.parse(sent.payload) == sent.message
        assert builder.build(sent.message) == sent.payload
        assert engine(**OPTIONS, **sent.states).parse(sent.payload) == sent.message
    session = pgo.Session(**OPTIONS)
    for wrong in (9, 20, 21):
        refused(session.parse, PAYLOADS[wrong])
    for sent in STREAM[:6]:
        session.parse(sent.payload)
    refused(session.parse, STREAM[12].payload)  # Commit inside a block
    assert session.state.parameters == {"in_stream": False, "in_block": True}


def check_index() -> None:
    """The index knows every message, its tables and its header; damage is flagged."""
    states = {name: [sent.states[name] for sent in STREAM] for name in ("in_stream", "in_block")}
    index = index_batch(PAYLOADS, **states, **OPTIONS)
    assert index.valid.all(), [str(index.error(row)) for row in index.malformed().tolist()]
    assert [index.message(place) for place in range(len(index))] == [sent.message for sent in STREAM]
    rows, oids = index.tables()
    assert rows.tolist() == [3, 4, 6, 7, 10, 11, 15, 17, 18, 19] and set(oids.tolist()) == {7}
    table = index.messages().to_pylist()
    assert [line["kind"] for line in table] == [type(sent.message).__name__ for sent in STREAM]
    assert (table[4]["change_number"], table[4]["label"], table[4]["comment"]) == (-1, "l", "c")
    assert (table[6]["block_seq"], table[12]["digest"], table[13]["worker"]) == (6, 255, 8)
    assert (table[1]["lag"], table[5]["block_number"], table[18]["xid"]) == (-5, 4, 702)
    for sent in STREAM:
        cut = [sent.payload[:size] for size in range(len(sent.payload))]
        states = {name: [value] * len(cut) for name, value in sent.states.items()}
        assert not index_batch(cut, **states, **OPTIONS).valid.any(), sent


def rows_of(decoded: DecodedBatch) -> list[tuple[str, Any, Any]]:
    """The rows of a decoded batch, in the stream's order."""
    assert not decoded.errors, decoded.errors
    numbered = [
        (place, line)
        for table in decoded.tables
        for place, line in zip(table.rows.tolist(), table.batch.to_pylist(), strict=True)
    ]
    return [line for _, line in sorted(numbered, key=lambda pair: pair[0])]  # type: ignore[misc]


def check_tables() -> None:
    """Rows are typed: text, binary format, and what the new tag brings; in batches of any size."""
    for size in (len(PAYLOADS), 1, 5):
        decoder = BatchDecoder(**OPTIONS)
        rows: list[Any] = []
        for start in range(0, len(PAYLOADS), size):
            decoded = decoder.decode(PAYLOADS[start : start + size])
            rows += rows_of(decoded)
            for table in decoded.tables:
                states = {STREAM[start + row].in_stream for row in table.rows.tolist()}
                assert states == {table.description.relation.xid is not None}
        assert [(line["_op"], line["id"], line["note"]) for line in rows] == READ, rows
        assert [line["_untyped"] for line in rows] == [None] * 10
        assert [line["_before"] and line["_before"]["id"] for line in rows] == BEFORE, rows
        assert [place for place, line in enumerate(rows) if line["_unchanged"] == ["note"]] == [3, 5]


def check_reader() -> None:
    """RowReader has the same rows, of Python values; what came in a format of its own stays as it came."""
    reader, session = RowReader(), pgo.Session(**OPTIONS)
    found = [change for payload in PAYLOADS for change in reader.read(session.parse(payload))]
    news = [change.new or {} for change in found]
    assert news[2].pop("note") == pgo.Packed(b"b")
    assert [(c.op, n.get("id"), n.get("note")) for c, n in zip(found, news, strict=True)] == INSERTED, found
    assert [change.old and change.old["id"] for change in found] == BEFORE
    assert [change.xid for change in found] == [None] * 6 + [701, 701, 702, 702]
    assert found[3].unchanged == found[5].unchanged == ("note",)


def check_tracker() -> None:
    """What capture follows a connection with: states of every payload, and where nothing is open."""
    intake = Intake(OPTIONS, Position())
    tracker = intake.tracker
    for sent in STREAM:
        assert tracker.between is (type(sent.message) in (pgo.Begin, pgo.StreamStart, pgo.StreamCommit)), sent
        block = intake.take(framed(sent)).block
        states = {name: bool(state[0]) for name, state in block.index.states.items()}
        assert (states, int(block.stream_xid[0])) == (sent.states, 701 if sent.in_stream else -1), sent
    assert (tracker.transactions, tracker.complete_lsn, tracker.between) == (2, pgo.Lsn(64), True)
    again = Intake(OPTIONS, tracker.position).take(framed(*STREAM[:13])).block
    kept = [again.index.message(row) for row in range(len(again))]
    assert [type(message).__name__ for message in kept] == ["Publication", "Relation", "Relation"]


def framed(*stream: Any) -> Frames:
    """Return messages in frames."""
    return Frames.of(*(pgo.build_frame(pgo.XLogData(pgo.Lsn(1), pgo.Lsn(1), TIME, sent.payload)) for sent in stream))


def check_relations() -> None:
    """What describes is kept, and what only describes otherwise changes nothing."""
    cache, session = RelationCache(), pgo.Session(**OPTIONS)
    for payload in PAYLOADS:
        cache.update(session.parse(payload))
    assert cache.get(7).columns == (KEY, NOTE)


def check_frames() -> None:
    """New messages of the envelope, with nested parts and signed numbers."""
    for frame, digits in FRAMES_SENT:
        data = bytes.fromhex(digits)
        assert pgo.build_frame(frame) == data == FRAMES.build(frame, {}) and pgo.parse_frame(data) == frame
        for size in range(len(data)):
            refused(pgo.parse_frame, data[:size])


def write_log(directory: Path, segment_rows: int = 7) -> None:
    """Write the stream as a log."""
    session = pgo.Session(**OPTIONS)
    with LogWriter(directory) as writer:
        writer.use(log_options(row_filters=("a",)))
        for seq, payload in enumerate(PAYLOADS):
            states = {name: [state] for name, state in session.state.parameters.items()}
            scope = -1 if session.stream_xid is None else session.stream_xid
            writer.append(Block.of([payload], [seq], [TIME], OPTIONS, states, [scope]))
            session.parse(payload)
            if writer.pending >= segment_rows:
                writer.publish(Position())
        writer.publish(Position())


def check_log() -> None:
    """The log carries the states, so that each entry is read by itself."""
    write_log(Path("log"))
    Path("stream.hex").write_text("".join(f"{payload.hex()}\n" for payload in PAYLOADS), "ascii")
    Path("stream.bin").write_bytes(b"".join(payload + b"\n" for payload in PAYLOADS))
    log = ChangeLog("log")
    assert len(log.segments) == 4 and log.options == log_options(row_filters=("a",))
    for entry, sent in zip(log, STREAM, strict=True):
        assert entry.states == sent.states
        assert pgo.parse(entry.payload, **log.options.layout(), **entry.states) == sent.message
    assert log.entry(19).states == STREAM[19].states


def check_old_log() -> None:
    """A log that was written before the change reads, and goes on, as before."""
    log = ChangeLog("old-log")
    count = len(log)
    for entry in log:
        pgo.parse(entry.payload, **log.options.layout(), **entry.states)
    with LogWriter("old-log") as writer:
        writer.use(log.options)
        writer.append(Block.of(PAYLOADS[:1], [1], [TIME], log.options.layout(), {}, [-1]))
        writer.publish(writer.position)
    log = ChangeLog("old-log")
    assert len(log) == count + 1 and log.options.proto_version == 4
    assert log.entry(count).states == {"in_stream": False, "in_block": False}


def check_strategies() -> None:
    """Whatever the strategies make, under any options, is parsed, built and indexed alike."""

    whole = testing.payloads()
    damaged = whole.flatmap(lambda pair: st.tuples(st.just(pair[0]), testing.damaged(st.just(pair[1]))))

    @quick
    @given(whole | damaged)
    def check(pair: Any) -> None:
        given_options, data = pair
        said = given_options._asdict()
        states = {name: [said[name]] for name in ("in_stream", "in_block")}
        try:
            message = pgo.parse(data, **said)
        except pgo.DecodeError:
            assert not index_batch([data], **{**said, **states}).valid[0]
        else:
            assert pgo.build(message, **said) == data
            assert index_batch([data], **{**said, **states}).valid[0]
            assert jsonable.from_json(jsonable.to_json(message)) == message

    check()


def check_streams() -> None:
    """Generated streams under the new options are followed and decoded."""

    @quick
    @given(testing.streams(**OPTIONS, two_phase=True))
    def check(stream: Any) -> None:
        session, decoder = pgo.Session(**OPTIONS), BatchDecoder(**OPTIONS)
        assert [session.parse(sent.payload) for sent in stream] == [sent.message for sent in stream]
        decoded = decoder.decode([sent.payload for sent in stream])
        assert not decoded.errors, decoded.errors

    check()


def check_recordings() -> None:
    """What real servers sent is parsed, built and decoded as before; decoded tables have their digest."""
    found = {path.stem: digest_of(path) for path in sorted(Path(sys.argv[1]).glob("*.txt"))}
    assert found == json.loads(Path("digests.json").read_text("utf-8"))


def check_constructors() -> None:
    """Objects are made as programs of today make them, by place and by keyword."""
    classes = json.loads(Path("fields.json").read_text("utf-8"))
    header, *lines = (Path(sys.argv[1]) / "18-v4-immediate.txt").read_text("utf-8").splitlines()
    session, made = pgo.Session(4, json.loads(header.removeprefix("# "))["streaming"]), set()
    for line in lines:
        message = session.parse(bytes.fromhex(line))
        for each in (message, *getattr(message, "columns", ())):
            cls = type(each)
            given = {name: getattr(each, name) for name in classes[cls.__name__]}
            assert cls(*given.values()) == cls(**given) == each
            made.add(cls.__name__)
    assert len(made) > 10, made


def check_spark() -> None:
    """Changes and state of a table out of a log."""
    from pgoutput_construct.spark import open_log, spark_session, write_tables

    write_log(Path("spark-log"))
    spark = spark_session("local[1]", {"spark.sql.shuffle.partitions": "1", "spark.ui.enabled": "false"}, "growth")
    try:
        log = open_log(spark, "spark-log")
        changes = log.changes("public.t").orderBy("_commit_lsn", "_seq").collect()
        assert [(line["_op"], line["id"], line["note"]) for line in changes] == READ, changes
        assert [line["_before"] and line["_before"]["id"] for line in changes] == BEFORE
        state = log.state("public.t").orderBy("id").collect()
        assert [(line["id"], line["note"]) for line in state] == STATE, state
        counts = write_tables(log, "tables")["public.t"].counts
        assert counts == {"insert": 4, "update": 1, "delete": 1, "truncate": 1, "upsert": 3}, counts
        old = open_log(spark, "old-log")
        for name in old.tables:
            old.changes(name).count()
    finally:
        spark.stop()


if __name__ == "__main__":
    failures = {}
    for name in sys.argv[2:]:
        printed = io.StringIO()
        try:
            with redirect_stdout(printed):
                globals()[name]()
        except Exception:
            failures[name] = traceback.format_exc()
    assert Path(pgo.__file__).is_relative_to(Path.cwd())
    print(json.dumps(failures))
