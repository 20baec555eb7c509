"""Run in a copy of the project that has the change ``layouts``: messages and their bytes, written by hand.

python layouts.py    compares the engines and the kernels; with --trace prints the fields of the messages, as JSON
"""

import json
import sys
from dataclasses import replace
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


def cost(total: int, *labels: str, rest: bytes = b"") -> Any:
    """What something costs."""
    return GROWN.Cost(total, labels, rest)


def trailer(*hints: tuple[int, bytes]) -> Any:
    """What ends an estimate."""
    return GROWN.Trailer(9, tuple(GROWN.Hint(*each) for each in hints))


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
    (GROWN.Estimate(0, cost(7), (), trailer()), "65 00 00000005 00000007 00 00 09"),
    (
        GROWN.Estimate(1, cost(7, "a", ""), (("b",), ()), trailer((1, b""), (2, b"hi")), actual=cost(8, rest=b"\0\1")),
        "65 01 00000008 0007 00000007 03 610000 00000008 00 0001 02 02 6200 00 09 01 00 02 02 6869",
    ),
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
    "65 00 00000004 00000007 00 00 09",
    "65 00 ffffffff 00000007 00 00 09",
    "65 00 00000007 00000007 03 610000 00 09",
    "65 00 00000005 00000007 01 00 09",
    "65 00 00000006 00000007 01 61 00 09",
    "65 00 00000005 00000007 00 01 01 61 09",
    "65 00 00000005 00000007 00 00 09 01",
    "65 00 00000005 00000007 00 00 09 01 02 68",
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
    (GROWN.Estimate(0, cost(7, "x" * 256), (), trailer()), "Estimate.cost.labels_size", "must be an int from 0 to 255"),
    (GROWN.Estimate(0, cost(7, rest=None), (), trailer()), "Estimate.cost.rest", "must be bytes, not None"),
    (GROWN.Estimate(0, None, (), trailer()), "Estimate.cost", "must be a Cost, not None"),
    (GROWN.Estimate(0, cost(7), (), trailer(), actual=cost(8)), "Estimate.actual", "must be None"),
    (GROWN.Histogram((), (bucket(3, 1, 2, 3),)), "Histogram.buckets", "must have as many items as bounds, 0, not 1"),
]


def shorter(message: Any) -> list[bytes]:
    """Return the bytes of a message with fewer hints: a list that ends where the message does may end earlier."""
    hints = message.trailer.hints if isinstance(message, GROWN.Estimate) else ()
    return [
        pgo.build(replace(message, trailer=trailer(*((each.kind, each.content) for each in hints[:number]))), **ON)
        for number in range(len(hints))
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
            assert is_accepted(data[:size]) == (data[:size] in shorter(message)), (message, size)
    for digits in REFUSED:
        assert not is_accepted(bytes.fromhex(digits)), digits
    for message, path, words in UNBUILT:
        try:
            pgo.build(message, **ON)
        except pgo.EncodeError as error:
            assert not isinstance(error, pgo.EngineError) and error.path == path and words in str(error), error
        else:
            raise AssertionError(f"built: {message}")


def check_areas() -> None:
    """A part that does not fit its length is refused where it does; more than it knows comes back."""
    for digits, path, offset, words in (
        (
            "65 00 00000004 00000007 00 00 09",
            "Estimate.cost.labels_size",
            10,
            "needs 1 byte, but only 0 bytes are left",
        ),
        ("65 00 00000010 00000007 00 00 09", "Estimate.cost", 6, "needs 16 bytes, but only 7 bytes are left"),
        ("65 00 00000006 00000007 01 61 00 09", "Estimate.cost.labels[0]", 11, "has no NUL at its end"),
        ("65 00 00000005 00000007 02 0000 09", "Estimate.cost.labels", 11, "needs 2 bytes, but only 0 bytes are left"),
        ("65 00 00000005 00000007 00 00 09 01 02 68", "Estimate.trailer.hints[0].content", 15, "needs 2 bytes"),
    ):
        try:
            pgo.parse(data := bytes.fromhex(digits), **ON)
        except pgo.DecodeError as error:
            assert (error.path, error.offset) == (path, offset) and words in str(error), error
            fault = trace(data, **ON).fault
            assert fault is not None and fault.start == offset and fault.key.startswith("Estimate."), fault
        else:
            raise AssertionError(f"accepted: {digits}")
    for rest in (b"", b"\0", bytes(range(256)) * 300):
        message = GROWN.Estimate(1, cost(1, "a", rest=rest), (), trailer(), actual=cost(2, rest=rest[:99]))
        assert pgo.parse(pgo.build(message, **ON), **ON) == message


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
        check_areas()
        check_columns()
