"""Run in a copy of the project that has the change ``later``: messages and their bytes, written by hand.

python later.py    compares the engines; with --kernels the kernels as well, whose compilation takes ten times as long
"""

import copy
import json
import pickle
import sys
import warnings
from typing import Any, Final

import pgoutput_construct as pgo
from pgoutput_construct.columnar import index_batch
from pgoutput_construct.wire import jsonable
from pgoutput_construct.wire.engine import MESSAGES
from pgoutput_construct.wire.options import options
from pgoutput_construct.wire.trace import trace

TIME: Final = pgo.Timestamp(800_000_000_000_000)
TIME_HEX: Final = "0002d79883d20000"
LSNS: Final = f"0000000000000010 0000000000000020 {TIME_HEX}"
KEY: Final = pgo.RelationColumn(1, "id", 23, -1)
GENERATED: Final = pgo.RelationColumn(2, "g", 23, -1)
ON: Final = {"proto_version": 5, "streaming": "on"}
PARALLEL: Final = {"proto_version": 5, "streaming": "parallel"}
STREAM: Final = {"in_stream": True}

SENT: Final[list[tuple[dict[str, Any], Any, str]]] = [
    ({"proto_version": 4, "streaming": "on"} | STREAM, pgo.Insert(9, 7, (None,)), "49 00000009 00000007 4e 0001 6e"),
    (ON | STREAM, pgo.Insert(1 << 40, 7, (None,)), "49 0000010000000000 00000007 4e 0001 6e"),
    (ON, pgo.Insert(None, 7, (None,)), "49 00000007 4e 0001 6e"),
    (
        {"proto_version": 4},
        pgo.Relation(None, 7, "", "t", "d", (KEY,)),
        "52 00000007 00 7400 64 0001 01 696400 00000017 ffffffff",
    ),
    (
        ON,
        pgo.Relation(None, 7, "", "t", "d", (GENERATED,), key_columns=(3, 1)),
        "52 00000007 00 7400 64 00000001 0002 02 6700 00000017 ffffffff 0003 0001",
    ),
    ({"proto_version": 4}, pgo.Commit(pgo.Lsn(16), pgo.Lsn(32), TIME), f"43 00 {LSNS}"),
    (ON, pgo.Commit(pgo.Lsn(16), pgo.Lsn(32), TIME, flags=0), f"43 00 {LSNS}"),
    (
        ON,
        pgo.Commit(pgo.Lsn(16), pgo.Lsn(32), TIME, flags=1, origin_lsn=pgo.Lsn(5), origin="o"),
        f"43 01 {LSNS} 0000000000000005 6f00",
    ),
    (
        PARALLEL,
        pgo.Commit(pgo.Lsn(16), pgo.Lsn(32), TIME, flags=3, origin_lsn=pgo.Lsn(5)),
        f"43 03 {LSNS} 0000000000000005",
    ),
    ({"proto_version": 4}, pgo.Origin(pgo.Lsn(1), "o"), "4f 0000000000000001 6f00"),
    (
        ON,
        pgo.Origin(pgo.Lsn(1), "o", checksum=b"\1\2\3\4", notes=("a", "")),
        "4f 0000000000000001 6f00 01020304 6100 00",
    ),
    (ON, pgo.Origin(pgo.Lsn(1), "", checksum=bytes(4), notes=()), "4f 0000000000000001 00 00000000"),
    (PARALLEL, pgo.StreamStart(9, 1, worker=4), "53 00000009 01 00000004"),
    (PARALLEL, pgo.Insert(None, 7, (pgo.Packed(b"x", raw_length=9),)), "49 00000007 4e 0001 7a 00000009 00000001 78"),
]
REFUSED: Final[list[tuple[dict[str, Any], str]]] = [
    (ON | STREAM, "49 00000009 00000007 4e 0001 6e"),
    ({"proto_version": 4}, f"43 01 {LSNS}"),
    (ON, "4f 0000000000000001 6f00 010203"),
    (ON, "4f 0000000000000001 6f00 01020304 61"),
    ({"proto_version": 4}, "4f 0000000000000001 6f00 01020304"),
    (ON, f"43 02 {LSNS}"),
    (ON, f"43 01 {LSNS}"),
    (PARALLEL, f"43 01 {LSNS}"),
    (ON, f"43 04 {LSNS}"),
    ({"proto_version": 4}, "52 00000007 00 7400 64 0001 02 696400 00000017 ffffffff"),
    (ON, "49 00000007 4e 0001 7a 00000009 00000001 78"),
    (PARALLEL | STREAM, "49 0000000000000001 00000007 4e 0001 7a 00000009 00000001 78"),
    ({"proto_version": 4, "streaming": "parallel"}, "49 00000007 4e 0001 7a 00000009 00000001 78"),
]
UNBUILT: Final[list[tuple[dict[str, Any], Any]]] = [
    (ON, pgo.Origin(pgo.Lsn(1), "o", checksum=b"\1\2\3", notes=())),
    (ON, pgo.Origin(pgo.Lsn(1), "o", checksum="1234", notes=())),
    (ON, pgo.Origin(pgo.Lsn(1), "o", checksum=b"\1\2\3\4")),
    (ON, pgo.Commit(pgo.Lsn(16), pgo.Lsn(32), TIME)),
    (ON, pgo.Commit(pgo.Lsn(16), pgo.Lsn(32), TIME, flags=0, origin="o")),
    (ON, pgo.Commit(pgo.Lsn(16), pgo.Lsn(32), TIME, flags=2)),
    ({"proto_version": 4}, pgo.Commit(pgo.Lsn(16), pgo.Lsn(32), TIME, flags=0)),
    ({"proto_version": 4}, pgo.Relation(None, 7, "", "t", "d", (KEY,), key_columns=())),
    ({"proto_version": 4, "streaming": "on"} | STREAM, pgo.Insert(1 << 40, 7, (None,))),
    (ON, pgo.Insert(None, 7, (pgo.Packed(b"x", raw_length=9),))),
    (PARALLEL, pgo.Insert(None, 7, (pgo.Packed(b"x", raw_length=-1),))),
]


def is_accepted(data: bytes, said: dict[str, Any]) -> bool:
    """Return whether parse accepts bytes; the kernels, if they are compiled here, must say the same."""
    try:
        pgo.parse(data, **{"in_stream": False, **said})
    except pgo.DecodeError as error:
        assert not isinstance(error, pgo.EngineError), error
        accepted = False
    else:
        accepted = True
    if "--kernels" in sys.argv:
        states = {"in_stream": [said.get("in_stream", False)]}
        assert index_batch([data], **{**said, **states}).valid.tolist() == [accepted], data.hex()
    return accepted


def check() -> None:
    """What was sent comes back; everything less is refused."""
    for said, message, digits in SENT:
        data, given = bytes.fromhex(digits), {"in_stream": False, **said}
        parameters = options(**given).parameters()
        assert pgo.build(message, **given) == data == MESSAGES.build(message, parameters), message
        assert pgo.parse(data, **given) == message == MESSAGES.parse(data, parameters)
        assert jsonable.from_json(json.loads(json.dumps(jsonable.to_json(message)))) == message
        assert b"".join(data[span.start : span.end] for span in trace(data, **given).spans) == data
        assert is_accepted(data, said)
        for size in range(min(len(data), 15) if type(message) is pgo.Origin else len(data)):
            assert not is_accepted(data[:size], said), (message, size)
    for said, digits in REFUSED:
        assert not is_accepted(bytes.fromhex(digits), said), digits
    for said, message in UNBUILT:
        try:
            pgo.build(message, **{"in_stream": False, **said})
        except pgo.EncodeError as error:
            assert not isinstance(error, pgo.EngineError), error
        else:
            raise AssertionError(f"built: {message}")


def check_notations() -> None:
    """What a trace says of a field's type is that of the version."""
    for said, message, digits in SENT:
        if isinstance(message, pgo.Relation):
            found = trace(bytes.fromhex(digits), **{"in_stream": False, **said})
            notations = {
                found.fields[span.key].notation for span in found.spans if span.path == "Relation.column_count"
            }
            assert notations == {"Int16" if said["proto_version"] == 4 else "Int32"}, notations


def check_former_names() -> None:
    """What was renamed has its former name still, with a warning that names the new one."""
    truncate = pgo.Truncate(None, clauses=1, relation_oids=(7,))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert truncate.options == 1
        assert pgo.Truncate(None, options=1, relation_oids=(7,)) == truncate
        lines = jsonable.to_json(truncate)
        assert jsonable.from_json({"options": 1, **{k: v for k, v in lines.items() if k != "clauses"}}) == truncate
    assert [each.category for each in caught] == [DeprecationWarning] * 3
    assert all("'clauses'" in str(each.message) and each.filename == __file__ for each in caught[:2]), caught[0]
    assert "options" not in lines and pgo.parse(pgo.build(truncate)) == truncate
    try:
        pgo.Truncate(None, options=1, clauses=1, relation_oids=())
    except TypeError as error:
        assert "'options'" in str(error) and "'clauses'" in str(error)
    else:
        raise AssertionError("both names were accepted")


def check_value() -> None:
    """A value of two fields is its bytes, with the other as an attribute that is part of it."""
    value = pgo.Packed(b"x", raw_length=9)
    assert (value, value.raw_length, repr(value)) == (b"x", 9, "Packed(b'x', raw_length=9)")
    assert value != pgo.Packed(b"x", raw_length=8) and value == pgo.Packed(b"x", raw_length=9)
    assert len({value, pgo.Packed(b"x", raw_length=9)}) == 1
    for again in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
        assert (type(again), again, again.raw_length) == (pgo.Packed, value, 9)


if __name__ == "__main__":
    check()
    check_value()
    check_notations()
    check_former_names()
