"""Run in a copy of the project that has the change ``layouts``: messages and their bytes, written by hand.

python layouts.py    compares the engines and the kernels; with --trace prints the fields of the messages, as JSON
"""

import json
import sys
from typing import Any, Final

import pgoutput_construct as pgo
from pgoutput_construct.columnar import index_batch
from pgoutput_construct.wire import jsonable
from pgoutput_construct.wire.engine import MESSAGES
from pgoutput_construct.wire.options import options
from pgoutput_construct.wire.trace import trace
from pgoutput_construct.wire.types import Float

GROWN: Final[Any] = pgo
"""The package with classes and arguments that it does not have today."""
ON: Final[dict[str, Any]] = {"proto_version": 5, "streaming": "on", "in_stream": False}
TIME: Final = pgo.Timestamp(5)
HALF: Final = "3fe0000000000000"
"""The bits of 0.5."""


def row(*values: Any, ranks: tuple[int, ...]) -> Any:
    """A row, and the rank of each value."""
    return GROWN.TupleData(values, ranks=ranks)


def bucket(count: int, *quartiles: int) -> Any:
    """A bucket of a histogram."""
    return GROWN.Bucket(count, quartiles)


SENT: Final[list[tuple[Any, str]]] = [
    (pgo.Begin(pgo.Lsn(16), TIME, 700), "42 0000000000000010 0000000000000005 000002bc"),
    (
        GROWN.Insert(None, 7, row(None, b"a", ranks=(1, -1)), cost=0.5),
        f"49 00000007 {HALF} 4e 0002 6e 74 00000001 61 0001 ffff",
    ),
    (GROWN.Insert(None, 7, row(ranks=()), cost=Float("-inf")), "49 00000007 fff0000000000000 4e 0000"),
    (
        GROWN.Truncate(None, 1, (7, 8), truncated_at=(TIME, TIME)),
        "54 00000002 01 00000007 00000008 0000000000000005 0000000000000005",
    ),
    (GROWN.Origin(pgo.Lsn(1), "o", hops=("a", "")), "4f 0000000000000001 6f00 6100 00"),
    (GROWN.Histogram((), ()), "68 0000"),
    (
        GROWN.Histogram((0.5, Float("nan")), (bucket(3, 1, 2, 3), bucket(4, 0, 0, -1))),
        f"68 0002 {HALF} 7ff8000000000000 "
        "0000000000000003 000000010000000200000003 0000000000000004 0000000000000000ffffffff",
    ),
    (
        GROWN.Histogram((Float.from_bits(0xFFF0_0000_0000_0001), Float("-0.0")), (bucket(3, 1, 2, 3),) * 2),
        f"68 0002 fff0000000000001 8000000000000000 {2 * '0000000000000003 000000010000000200000003'}",
    ),
    (
        GROWN.Commit(pgo.Lsn(16), pgo.Lsn(32), TIME, seconds=1e300),
        "43 00 0000000000000010 0000000000000020 0000000000000005 7e37e43c8800759c",
    ),
    (GROWN.Advice(0, None, None, None), "c8 00 07"),
    (GROWN.Advice(10, 7, 1, Float(0.5)), f"c8 0a 00000007 01 {HALF} 07"),
]
REFUSED: Final = [
    "c8 01 07",
    "c8 00 01 3fe0000000000000",
    "c8 00 06",
    "c8 ff 00 07",
    f"49 00000007 {HALF} 4e 0002 6e 6e 0001",
    "49 00000007 4e 0000",
    "54 00000002 01 00000007 00000008 0000000000000005",
    "4f 0000000000000001 6f00 6100",
    "4f 0000000000000001 6f00 6100 00 00",
    f"68 0001 {HALF} 0000000000000003 0000000100000002",
]
UNBUILT: Final[list[tuple[Any, str, str]]] = [
    (GROWN.Advice(1, None, None, None), "Advice.target_kind", "must be one of 0, 10, 255, not 1"),
    (GROWN.Advice("0", None, None, None), "Advice.target_kind", "must be one of 0, 10, 255, not '0'"),
    (GROWN.Advice(255, "", None, None), "Advice.target_kind", "255 is permitted only if: parallel is set"),
    (
        GROWN.Insert(None, 7, row(None, ranks=()), cost=0),
        "Insert.new.ranks",
        "must have as many items as columns, 1, not 0",
    ),
    (GROWN.Insert(None, 7, row(ranks=()), cost="1"), "Insert.cost", "must be a float of 64 bits, not '1'"),
    (GROWN.Insert(None, 7, row(ranks=()), cost=10**400), "Insert.cost", "must be a float of 64 bits"),
    (GROWN.Truncate(None, 1, (7,)), "Truncate.truncated_at", "must be a tuple"),
    (GROWN.Origin(pgo.Lsn(1), "o", hops=("a",)), "Origin.hops", "must have 2 items, not 1"),
    (GROWN.Histogram((0,), (bucket(3, 1),)), "Histogram.buckets[0].quartiles", "must have 3 items, not 1"),
    (GROWN.Histogram((), (bucket(3, 1, 2, 3),)), "Histogram.buckets", "must have as many items as bounds, 0, not 1"),
]


def is_accepted(data: bytes) -> bool:
    """Return whether parse accepts bytes; the kernels must say the same."""
    try:
        pgo.parse(data, **ON)
    except pgo.DecodeError as error:
        assert not isinstance(error, pgo.EngineError), error
        accepted = False
    else:
        accepted = True
    valid = index_batch([data], **{**ON, "in_stream": [False]}).valid.tolist()
    assert valid == [accepted], data.hex()
    return accepted


def check() -> None:
    """What was sent comes back; everything less is refused, and what cannot be sent is not built."""
    parameters = options(**ON).parameters()
    for message, digits in SENT:
        data = bytes.fromhex(digits)
        assert pgo.build(message, **ON) == data == MESSAGES.build(message, parameters), message
        found = pgo.parse(data, **ON)
        assert found == message == MESSAGES.parse(data, parameters) and pgo.build(found, **ON) == data, message
        read = jsonable.from_json(json.loads(json.dumps(jsonable.to_json(message), allow_nan=False)))
        assert read == message and pgo.build(read, **ON) == data
        assert b"".join(data[span.start : span.end] for span in trace(data, **ON).spans) == data
        assert is_accepted(data)
        for size in range(len(data)):
            assert not is_accepted(data[:size]), (message, size)
    for digits in REFUSED:
        assert not is_accepted(bytes.fromhex(digits)), digits
    for message, path, words in UNBUILT:
        try:
            pgo.build(message, **ON)
        except pgo.EncodeError as error:
            assert not isinstance(error, pgo.EngineError) and error.path == path and words in str(error), error
        else:
            raise AssertionError(f"built: {message}")


def check_columns() -> None:
    """Numbers in floating point are a column of Arrow, NaN and infinity too; a message without one has none."""
    from pgoutput_construct.columnar import BatchDecoder

    relation = pgo.Relation(None, 7, "public", "t", "d", ())
    sent = [GROWN.Commit(pgo.Lsn(16), pgo.Lsn(32), TIME, seconds=each) for each in (0.5, Float("nan"), Float("inf"))]
    decoded = BatchDecoder(proto_version=5).decode([pgo.build(each, **ON) for each in (*sent, relation)])
    assert not decoded.errors, decoded.errors
    column = decoded.index.messages().column("seconds")
    assert str(column.type) == "double" and repr(column.to_pylist()) == "[0.5, nan, inf, None]", column


def traced() -> list[Any]:
    """Return the name of each message, its bytes, and the path and the bytes of each field."""
    found = [trace(bytes.fromhex(digits), **ON) for _, digits in SENT]
    return [
        [each.name, each.data.hex(), [[span.path, each.data[span.start : span.end].hex()] for span in each.spans]]
        for each in found
    ]


if __name__ == "__main__":
    if "--trace" in sys.argv:
        print(json.dumps(traced()))
    else:
        check()
        check_columns()
