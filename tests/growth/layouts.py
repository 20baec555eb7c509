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

GROWN: Final[Any] = pgo
"""The package with classes and arguments that it does not have today."""
ON: Final[dict[str, Any]] = {"proto_version": 5, "streaming": "on", "in_stream": False}
TIME: Final = pgo.Timestamp(5)


def row(*values: Any, ranks: tuple[int, ...]) -> Any:
    """A row, and the rank of each value."""
    return GROWN.TupleData(values, ranks=ranks)


def bucket(count: int, *quartiles: int) -> Any:
    """A bucket of a histogram."""
    return GROWN.Bucket(count, quartiles)


SENT: Final[list[tuple[Any, str]]] = [
    (pgo.Begin(pgo.Lsn(16), TIME, 700), "42 0000000000000010 0000000000000005 000002bc"),
    (pgo.Insert(None, 7, row(None, b"a", ranks=(1, -1))), "49 00000007 4e 0002 6e 74 00000001 61 0001 ffff"),
    (pgo.Insert(None, 7, row(ranks=())), "49 00000007 4e 0000"),
    (
        GROWN.Truncate(None, 1, (7, 8), truncated_at=(TIME, TIME)),
        "54 00000002 01 00000007 00000008 0000000000000005 0000000000000005",
    ),
    (GROWN.Origin(pgo.Lsn(1), "o", hops=("a", "")), "4f 0000000000000001 6f00 6100 00"),
    (GROWN.Histogram((), ()), "68 0000"),
    (
        GROWN.Histogram(("x", "y"), (bucket(3, 1, 2, 3), bucket(4, 0, 0, -1))),
        "68 0002 7800 7900 0000000000000003 000000010000000200000003 0000000000000004 0000000000000000ffffffff",
    ),
]
REFUSED: Final = [
    "49 00000007 4e 0002 6e 6e 0001",
    "54 00000002 01 00000007 00000008 0000000000000005",
    "4f 0000000000000001 6f00 6100",
    "4f 0000000000000001 6f00 6100 00 00",
    "68 0001 7800 0000000000000003 0000000100000002",
]
UNBUILT: Final[list[tuple[Any, str, str]]] = [
    (pgo.Insert(None, 7, row(None, ranks=())), "Insert.new.ranks", "must have as many items as columns, 1, not 0"),
    (GROWN.Truncate(None, 1, (7,)), "Truncate.truncated_at", "must be a tuple"),
    (GROWN.Origin(pgo.Lsn(1), "o", hops=("a",)), "Origin.hops", "must have 2 items, not 1"),
    (GROWN.Histogram(("x",), (bucket(3, 1),)), "Histogram.buckets[0].quartiles", "must have 3 items, not 1"),
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
        assert pgo.parse(data, **ON) == message == MESSAGES.parse(data, parameters), message
        assert jsonable.from_json(json.loads(json.dumps(jsonable.to_json(message)))) == message
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
