"""Messages by themselves and in order: both engines, their options, and who follows a stream."""

import json
import sys
from pathlib import Path
from typing import Any

from grown import (
    FRAMES_SENT,
    OPTIONS,
    PAYLOADS,
    STREAM,
    TIME,
    TIME_HEX,
    log_options,
    refused,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.columnar import BatchDecoder, index_batch
from pgoutput_construct.postgres.replication import start_command
from pgoutput_construct.wire import jsonable
from pgoutput_construct.wire.engine import FRAMES, MESSAGES, engine, parse_prefix
from pgoutput_construct.wire.options import options, problems
from pgoutput_construct.wire.protocol import ParseOptions

quick = settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))


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


def check_vectors() -> None:
    """The golden vectors follow: parse gives what they say, and refuses where they say."""
    _, *lines = Path("spec/vectors.jsonl").read_text("utf-8").splitlines()
    newest = 0
    for vector in map(json.loads, lines):
        given = {name: vector[name] for name in ParseOptions._fields}
        newest += "fields" in vector and given["proto_version"] == 5
        try:
            message = pgo.parse(bytes.fromhex(vector["hex"]), **given)
        except pgo.DecodeError as error:
            assert vector["refuse"]["offset"] == error.offset, vector
        else:
            assert jsonable.to_json(message) == {"message": vector["message"], **vector["fields"]}
    assert newest > 500


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
    assert list(problems({"proto_version": 4, "batch_size": 9})) == ["batch_size needs proto_version 5 or newer, not 4"]
    assert len(list(problems({"proto_version": 4, "row_filters": ("a",)}))) == 1
    assert not [*problems({"proto_version": 4, "batch_size": None, "row_filters": ()})]
    refused(log_options().check_server, 190000)
    log_options().check_server(200000)


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


def check_frames() -> None:
    """New messages of the envelope, with nested parts and signed numbers."""
    for frame, digits in FRAMES_SENT:
        data = bytes.fromhex(digits)
        assert pgo.build_frame(frame) == data == FRAMES.build(frame, {}) and pgo.parse_frame(data) == frame
        for size in range(len(data)):
            refused(pgo.parse_frame, data[:size])


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
