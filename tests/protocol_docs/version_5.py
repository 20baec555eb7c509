"""Run in the copy of the project that version 5 was taken into: its bytes, both ways, and those of versions 1 to 4.

python version_5.py FOLDER_OF_RECORDINGS
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.columnar import BatchDecoder, index_batch
from pgoutput_construct.testing import payloads
from pgoutput_construct.wire import definitions, jsonable, messages
from pgoutput_construct.wire.options import options as parameters
from pgoutput_construct.wire.reference import Reference

quick = settings(max_examples=300, deadline=None, database=None, suppress_health_check=list(HealthCheck))

REFERENCE = Reference(messages.BY_TAG, definitions.DEFINITIONS)
"""The construct definitions, in addition to whatever engine parse and build use."""

COMMIT = bytes.fromhex("43 00 0000000000000001 0000000000000002 0000000000000003")
INSERT = bytes.fromhex("49 00000007 4e 0001")


def kernels_say(data: bytes, accepted: bool, **options: Any) -> None:
    """Check that the columnar kernels accept or refuse the same bytes."""
    given = {"proto_version": options.get("proto_version", 1), "streaming": options.get("streaming", "off")}
    assert bool(index_batch([data], [options.get("in_stream", False)], **given).valid[0]) is accepted


def refused(call: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """Check that a call is refused with one of our errors."""
    try:
        call(*arguments, **options)
    except (pgo.DecodeError, pgo.EncodeError):
        if call is pgo.parse:
            kernels_say(arguments[0], False, **options)
        return
    raise AssertionError(f"{call.__name__}{arguments} {options} was accepted")


def both_ways(message: Any, data: bytes, **options: Any) -> None:
    """Check that a message and its bytes follow from each other, and that JSON carries it."""
    assert pgo.build(message, **options) == data
    assert pgo.parse(data, **options) == message
    kernels_say(data, True, **options)
    assert REFERENCE.parse(data, parameters(**options).parameters()) == message
    assert REFERENCE.build(message, parameters(**options).parameters()) == data
    assert jsonable.from_json(json.loads(json.dumps(jsonable.to_json(message)))) == message


def check_new_field() -> None:
    """Commit has its new field from version 5 on, and nothing of it before."""
    old = pgo.Commit(pgo.Lsn(1), pgo.Lsn(2), pgo.Timestamp(3))
    new = pgo.Commit(pgo.Lsn(1), pgo.Lsn(2), pgo.Timestamp(3), flushed_lsn=pgo.Lsn(4))
    both_ways(new, COMMIT + bytes.fromhex("0000000000000004"), proto_version=5)
    for version in (1, 2, 3, 4):
        both_ways(old, COMMIT, proto_version=version)
        refused(pgo.build, new, proto_version=version)
        refused(pgo.parse, COMMIT + bytes(8), proto_version=version)
    refused(pgo.parse, COMMIT, proto_version=5)


def check_new_alternative() -> None:
    """A value has its new kind from version 5 on."""
    insert = pgo.Insert(None, 7, (pgo.Compressed(b"xy"),))
    data = INSERT + b"z" + bytes.fromhex("00000002") + b"xy"
    both_ways(insert, data, proto_version=5)
    refused(pgo.parse, data, proto_version=4)
    refused(pgo.build, insert, proto_version=4)


def check_rows() -> None:
    """Values of the new kind, of which nothing is known, have its name and their bytes in Arrow rows."""
    column = pgo.RelationColumn(1, "note", 25, -1)
    messages_5 = [pgo.Relation(None, 7, "public", "t", "d", (column,)), pgo.Insert(None, 7, (pgo.Compressed(b"xy"),))]
    (table,) = BatchDecoder(5).decode([pgo.build(message, 5) for message in messages_5]).tables
    assert table.batch["note"].to_pylist() == [None]
    assert table.batch["_untyped"].to_pylist() == [[("note", "compressed \\x7879")]]


def check_new_message() -> None:
    """The new message holds the new part, and the part its repeat."""
    slots = (pgo.HeldSlot("a", pgo.Lsn(6)), pgo.HeldSlot("", pgo.Lsn(7)))
    fixed = "5a 00 0000000000000001 0000000000000002"
    rest = bytes.fromhex("72 00 00000002") + b"hi" + bytes.fromhex("0002 61 00 0000000000000006 00 0000000000000007")
    message = pgo.CheckpointNotice(pgo.Lsn(1), pgo.Timestamp(2), "r", b"hi", slots)
    both_ways(message, bytes.fromhex(fixed) + rest, proto_version=5)
    inside = pgo.CheckpointNotice(pgo.Lsn(1), pgo.Timestamp(2), "r", b"hi", slots, xid=9)
    both_ways(inside, bytes.fromhex(fixed + "00000009") + rest, proto_version=5, streaming="on", in_stream=True)
    refused(pgo.parse, bytes.fromhex(fixed) + rest, proto_version=4)
    refused(pgo.build, message, proto_version=4)


@quick
@given(payloads())
def check_strategies(pair: Any) -> None:
    """Whatever the strategies make, under any options, is parsed, built again, and carried by JSON."""
    options, data = pair
    both_ways(pgo.parse(data, **options._asdict()), data, **options._asdict())


def check_new_strategies() -> None:
    """The new message has a strategy, from version 5 on."""
    try:
        testing.messages(4, kinds=[pgo.CheckpointNotice])
    except pgo.PgoutputError:
        pass
    else:
        raise AssertionError("version 4 has the new message")
    options = {"proto_version": 5, "streaming": "on", "in_stream": True}

    @quick
    @given(testing.messages(**options, kinds=[pgo.CheckpointNotice]))
    def check(message: Any) -> None:
        both_ways(message, pgo.build(message, **options), **options)

    check()


def check_recordings(folder: Path) -> int:
    """Every payload of a real server is parsed and built as before, under its own options."""
    count = 0
    for path in sorted(folder.glob("*.txt")):
        header, *lines = path.read_text("utf-8").splitlines()
        mode = json.loads(header.removeprefix("# "))
        session = pgo.Session(proto_version=mode["proto_version"], streaming=mode["streaming"])
        for line in lines:
            inside = session.in_stream
            message = session.parse(bytes.fromhex(line))
            inside = inside and not isinstance(message, pgo.StreamStop)
            options = {"proto_version": mode["proto_version"], "streaming": mode["streaming"], "in_stream": inside}
            assert pgo.build(message, **options).hex() == line
            count += 1
    return count


if __name__ == "__main__":
    check_new_field()
    check_new_alternative()
    check_rows()
    check_new_message()
    check_strategies()
    check_new_strategies()
    print(f"{Path(pgo.__file__).parents[1]}: {check_recordings(Path(sys.argv[1]))} payloads")
