"""Messages as JSON: exact both ways, and strict on the way back."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct.errors import EncodeError
from pgoutput_construct.testing.payloads import options_and_messages
from pgoutput_construct.wire.jsonable import from_json, to_json
from pgoutput_construct.wire.messages import BY_TAG
from pgoutput_construct.wire.protocol import SINCE
from tests.live.recording import Recording

INSERT = {"message": "Insert", "xid": None, "relation_oid": 7, "new": ["a", None]}
COLUMN = {"flags": 1, "name": "id", "type_oid": 23, "type_modifier": -1}
RELATION = {
    "message": "Relation",
    "xid": None,
    "relation_oid": 7,
    "namespace": "",
    "name": "t",
    "replica_identity": "d",
    "columns": [COLUMN],
}
BEGIN = {"message": "Begin", "final_lsn": "16/B374D848", "commit_time": "infinity", "xid": 1}


def _types(value: Any) -> Any:
    """Return the types of a value and of all that it holds."""
    if is_dataclass(value):
        return type(value), [_types(getattr(value, field.name)) for field in fields(value)]
    return (type(value), [_types(item) for item in value]) if isinstance(value, tuple) else type(value)


def _assert_exact(message: Any) -> None:
    text = json.dumps(to_json(message), allow_nan=False)
    back = from_json(json.loads(text))
    assert back == message and _types(back) == _types(message)


@given(options_and_messages())
def test_every_message_survives(pair: Any) -> None:
    """Any message comes back from JSON text equal, with the same types."""
    _assert_exact(pair[1])


@pytest.mark.slow
def test_recordings_survive(recordings: Mapping[str, Recording]) -> None:
    """What servers really sent comes back, with every message of the recorded versions among it."""
    seen = set()
    for recording in recordings.values():
        session = pgo.Session(recording.mode.proto_version, recording.mode.streaming)
        for payload in recording.payloads:
            message = session.parse(payload)
            seen.add(type(message))
            _assert_exact(message)
    newest = max(recording.mode.proto_version for recording in recordings.values())
    assert seen == {cls for cls in BY_TAG.values() if SINCE.get(cls, 1) <= newest}


def test_forms() -> None:
    """Each kind of value has the form that a person expects."""
    values = (None, pgo.UNCHANGED, "ä\0".encode(), b"\xff", b"", pgo.Binary(b"ab"), pgo.Binary(b""))
    expected = [None, {"unchanged": True}, "ä\0", {"text": "ff"}, "", {"binary": "6162"}, {"binary": ""}]
    assert to_json(pgo.Insert(None, 7, values)) == {**INSERT, "new": expected}
    message = pgo.Message(3, 1, pgo.Lsn("16/B374D848"), "p\udcff", b"text")
    assert to_json(message) == {
        "message": "Message",
        "xid": 3,
        "flags": 1,
        "lsn": "16/B374D848",
        "prefix": {"hex": "70ff"},
        "content": {"hex": "74657874"},
    }
    assert to_json(pgo.StreamStop()) == {"message": "StreamStop"}
    moments = [pgo.Timestamp(t) for t in (0, -1, 2**63 - 1, -(2**63), 2**62)]
    assert [to_json(pgo.Begin(pgo.Lsn(0), t, 1))["commit_time"] for t in moments] == [
        "2000-01-01T00:00:00+00:00",
        "1999-12-31T23:59:59.999999+00:00",
        "infinity",
        "-infinity",
        str(2**62),
    ]


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ([], "", "must be an object"),
        ({}, "", "'message' must be one of Begin"),
        ({"message": "Nope"}, "", "not 'Nope'"),
        ({"message": ["Begin"]}, "", "'message' must be one of"),
        (INSERT | {"extra": 1}, "Insert", "has no key 'extra': the keys are xid, relation_oid, new"),
        ({"message": "StreamStop", "xid": 1}, "StreamStop", "the keys are none"),
        ({"message": "Insert", "xid": None, "new": []}, "Insert.relation_oid", "is missing"),
        (INSERT | {"relation_oid": "7"}, "Insert.relation_oid", "must be a whole number, not '7'"),
        (INSERT | {"relation_oid": True}, "Insert.relation_oid", "must be a whole number"),
        (INSERT | {"relation_oid": 7.0}, "Insert.relation_oid", "must be a whole number"),
        (INSERT | {"new": "ab"}, "Insert.new", "must be an array"),
        (INSERT | {"new": None}, "Insert.new", "must be an array"),
        (INSERT | {"new": ["a", 1]}, "Insert.new[1]", "must be one of null, a string,"),
        (INSERT | {"new": ["a", "b", {"text": "f"}]}, "Insert.new[2]", '{"text": "<hexadecimal digits>"}'),
        (INSERT | {"new": [{"binary": None}]}, "Insert.new[0]", "hexadecimal digits"),
        (INSERT | {"new": [{"unchanged": 1}]}, "Insert.new[0]", '{"unchanged": true}'),
        (INSERT | {"new": [{"null": True}]}, "Insert.new[0]", "must be one of null"),
        (INSERT | {"new": [{"text": "61", "binary": "61"}]}, "Insert.new[0]", "must be one of null"),
        (INSERT | {"new": ["\ud800"]}, "Insert.new[0]", "lone surrogates"),
        (RELATION | {"columns": [COLUMN, 3]}, "Relation.columns[1]", "must be an object"),
        (RELATION | {"columns": [COLUMN | {"name": None}]}, "Relation.columns[0].name", '{"hex":'),
        (RELATION | {"columns": [COLUMN | {"x": 1}]}, "Relation.columns[0]", "has no key 'x'"),
        (RELATION | {"name": "\udcff"}, "Relation.name", "lone surrogates"),
        (BEGIN | {"final_lsn": 5}, "Begin.final_lsn", 'an LSN such as "16/B374D848", not 5'),
        (BEGIN | {"final_lsn": "5"}, "Begin.final_lsn", "an LSN such as"),
        (BEGIN | {"commit_time": 5}, "Begin.commit_time", "must be a timestamp"),
        (BEGIN | {"commit_time": "2024-05-01"}, "Begin.commit_time", "must be a timestamp"),
    ],
)
def test_strict(value: Any, path: str, reason: str) -> None:
    """Anything that to_json would not write is refused with its path and what to write instead."""
    with pytest.raises(EncodeError) as caught:
        from_json(value)
    assert caught.value.path == path
    assert reason in str(caught.value)
    assert caught.value.message == (path.partition(".")[0] or None)


@pytest.mark.parametrize(
    ("message", "path"),
    [
        ("Begin", ""),
        (pgo.XLogData(pgo.Lsn(0), pgo.Lsn(0), pgo.Timestamp(0), b""), ""),
        (pgo.Insert(None, 7, (1,)), "Insert.new[0]"),  # type: ignore[arg-type]
        (pgo.Insert(None, "7", ()), "Insert.relation_oid"),  # type: ignore[arg-type]
        (pgo.Insert(None, 7, None), "Insert.new"),  # type: ignore[arg-type]
        (pgo.Origin(pgo.Lsn(-1), "o"), "Origin.origin_lsn"),
        (pgo.Origin(pgo.Lsn(0), "\ud800"), "Origin.name"),
        (pgo.Origin(pgo.Lsn(0), "\udcc3\udca9"), "Origin.name"),
        (pgo.Message(None, 0, pgo.Lsn(0), "", "x"), "Message.content"),  # type: ignore[arg-type]
        (pgo.Relation(None, 7, "", "t", "d", (None,)), "Relation.columns[0]"),  # type: ignore[arg-type]
    ],
)
def test_what_no_message_holds(message: Any, path: str) -> None:
    """An object whose values no message can have is refused instead of written."""
    with pytest.raises(EncodeError) as caught:
        to_json(message)
    assert caught.value.path == path


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=3))
def test_any_value_in_a_field(value: Any) -> None:
    """Any JSON value in a field: the result is a message, or an EncodeError."""
    for line in (INSERT | {"new": [value]}, RELATION | {"name": value}, BEGIN | {"commit_time": value}):
        try:
            message = from_json(line)
        except EncodeError:
            continue
        _assert_exact(message)
