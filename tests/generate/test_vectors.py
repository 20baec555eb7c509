"""The golden vectors: every engine agrees with them, and they detect wrong parsers."""

import json
import re
from collections import defaultdict
from dataclasses import fields, is_dataclass
from typing import Any, cast

import pytest
from jsonschema.validators import validator_for

import pgoutput_construct as pgo
from pgoutput_construct.wire import (
    codec,
    connection_codec,
    connection_definitions,
    connection_messages,
    jsonable,
    messages,
)
from pgoutput_construct.wire.codec_runtime import PAD, REJECTIONS, read_whole
from pgoutput_construct.wire.connection_engine import build_connection, message_size, parse_connection
from pgoutput_construct.wire.connection_messages import FOLLOWING
from pgoutput_construct.wire.engine import MESSAGES, build_frame, parse_frame, parse_prefix
from pgoutput_construct.wire.options import combinations, options
from pgoutput_construct.wire.protocol import LAID_OUT_BY_STATE, SINCE, STATES, TRANSITIONS
from pgoutput_construct.wire.reference import Reference
from tests.generate.vectors import SPEC, lines, problem, told
from tools.generate.vectors.vectors_reader import LENGTH, REASONS
from tools.generate.vectors.vectors_settings import NOT_ASKED, TOO_OLD

VECTORS = list(lines("vectors.jsonl"))
ACCEPTED = [vector for vector in VECTORS if "fields" in vector]
REFUSED = [vector for vector in VECTORS if "refuse" in vector]
TYPICAL = {vector["message"]: vector for vector in reversed(ACCEPTED)}
"""The first vector of each message: it has some of everything."""


def parse(data: bytes, given: dict[str, Any]) -> dict[str, Any]:
    """Parse as a program does."""
    return jsonable.to_json(pgo.parse(data, **given))


def message(vector: dict[str, Any]) -> Any:
    """Return the message of a vector."""
    return jsonable.from_json({"message": vector["message"], **vector["fields"]})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vectors", "vectors-envelope", "vectors-connection"])
def test_lines_have_the_form_of_their_schema(name: str) -> None:
    """The first line, all that is accepted, and what is refused of each message for each reason; others have not."""
    schema = json.loads((SPEC / f"{name}.schema.json").read_text("utf-8"))
    validator_for(schema).check_schema(schema)
    validator = validator_for(schema)(schema)
    found = [json.loads(line) for line in (SPEC / f"{name}.jsonl").read_text("utf-8").splitlines()]
    some = {(line.get("message"), line.get("refuse", line).get("reason", str(line))): line for line in found}
    assert [line for line in some.values() if not validator.is_valid(line)] == []
    accepted = next(line for line in found if line.get("fields"))
    for wrong in ({"hex": "4"}, {"message": "Inserted"}, {"fields": {"xid": -1}}, {"refuse": {}}, {"more": 1}):
        assert not validator.is_valid({**accepted, **wrong})


@pytest.mark.slow
def test_parse_agrees() -> None:
    """parse returns the fields of the vectors, and refuses at the same offsets."""
    assert [found for vector in VECTORS if (found := problem(vector, parse))] == []


@pytest.mark.slow
def test_engines_agree() -> None:
    """Codec and definitions, each alone, read and build what is accepted, and refuse the rest."""
    for vector in VECTORS:
        data, given = bytes.fromhex(vector["hex"]), options(**told(vector))
        parameters = given.parameters()
        cls = messages.BY_TAG.get(data[:1])
        asked = cls is None or given.refusal(cls) is None
        if "fields" in vector:
            said = message(vector)
            assert read_whole(codec.READERS, data, tuple(parameters.values())) == said
            assert codec.BUILDERS[type(said)](said, *parameters.values()) == data
            assert MESSAGES.parse(data, parameters) == said
            assert MESSAGES.build(said, parameters) == data
        elif asked:  # what comes under no such option is refused before it is read
            with pytest.raises(REJECTIONS):
                read_whole(codec.READERS, data, tuple(parameters.values()))
            with pytest.raises(pgo.DecodeError) as caught:
                MESSAGES.parse(data, parameters)
            assert caught.value.offset == vector["refuse"]["offset"]


def test_kernels_agree() -> None:
    """The kernels walk all vectors of some options as one batch, and take the same for messages."""
    from pgoutput_construct.columnar import index_batch

    batches = defaultdict(list)
    for vector in VECTORS:
        batches[vector["proto_version"], vector["streaming"]].append(vector)
    for (version, streaming), batch in batches.items():
        payloads = [bytes.fromhex(vector["hex"]) for vector in batch]
        states = [vector["in_stream"] for vector in batch]
        index = index_batch(payloads, states, proto_version=version, streaming=streaming)
        assert index.valid.tolist() == ["fields" in vector for vector in batch]
        kinds = [vector["message"] if "fields" in vector else None for vector in batch]
        assert index.messages()["kind"].to_pylist() == kinds


def test_every_message_under_all_options_and_states() -> None:
    """Wherever a message can come there is a vector of it; Stream Abort of version 4 without parallel is one."""
    wanted = {
        (cls.__name__, tuple(given._asdict().items()))
        for given in combinations()
        for cls, steps in TRANSITIONS.items()
        if options(**given._asdict()).refusal(cls) is None
        and given.proto_version >= SINCE.get(cls, 0)
        and any(("in_stream" in STATES[state]) == given.in_stream for state in steps)
    }
    assert wanted == {(vector["message"], tuple(told(vector).items())) for vector in ACCEPTED}
    (abort,) = (
        vector
        for vector in ACCEPTED
        if vector["message"] == "StreamAbort" and (vector["proto_version"], vector["streaming"]) == (4, "on")
    )
    assert (len(abort["hex"]), abort["fields"]["abort_lsn"]) == (18, None)
    assert {vector["refuse"]["reason"] for vector in REFUSED} == set(REASONS) - {LENGTH}


def test_the_example_is_a_vector() -> None:
    """What spec/README.md shows is one of the lines, in more lines."""
    (example,) = re.findall(
        r'^    (\{"case".*?\}\})$', (SPEC / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert json.loads(example) in VECTORS


@pytest.mark.parametrize("name", TYPICAL)
def test_a_wrong_byte_is_noticed(name: str) -> None:
    """Each byte of a message of each class: another value is refused, or changes the fields."""
    data = bytes.fromhex(TYPICAL[name]["hex"])
    for at in range(len(data)):
        wrong = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        assert problem({**TYPICAL[name], "hex": wrong.hex()}, parse), f"byte {at}"


@pytest.mark.slow
def test_wrong_parsers_are_noticed() -> None:
    """Typical mistakes of other clients' parsers: each is detected, and by the right vectors."""

    def loose(data: bytes, given: dict[str, Any]) -> dict[str, Any]:
        return jsonable.to_json(parse_prefix(data, 0, **given)[0])

    def eager(data: bytes, given: dict[str, Any]) -> dict[str, Any]:
        return parse(data, {**given, "streaming": "parallel"} if given["proto_version"] == 4 else given)

    def stateless(data: bytes, given: dict[str, Any]) -> dict[str, Any]:
        return parse(data, {**given, "in_stream": False})

    told_loose = [vector for vector in VECTORS if problem(vector, loose)]
    assert {vector["refuse"]["reason"] for vector in told_loose} == {"trailing"}
    aborts = [vector for vector in ACCEPTED if problem(vector, eager)]
    assert {vector["message"] for vector in aborts} == {"StreamAbort"}
    laid_out = {vector["message"] for vector in ACCEPTED if problem(vector, stateless)}
    assert laid_out == {cls.__name__ for cls in LAID_OUT_BY_STATE}


def test_frames_agree() -> None:
    """parse_frame returns the fields of the envelope's vectors, and build_frame returns their bytes."""

    def parsed(data: bytes, _: dict[str, Any]) -> dict[str, Any]:
        frame = parse_frame(data)
        assert build_frame(frame) == data
        return {"message": type(frame).__name__, **as_json(frame)}

    found = list(lines("vectors-envelope.jsonl"))
    assert [wrong for vector in found if (wrong := problem(vector, parsed))] == []
    assert any("fields" in vector for vector in found)


def test_connections_agree() -> None:
    """The connection's vectors: both engines read and build them, and know how long they are, in each state."""
    found = list(lines("vectors-connection.jsonl"))
    assert [wrong for vector in found if (wrong := problem(vector, _connection_parsed))] == []
    reasons = {vector["refuse"]["reason"] for vector in found if "refuse" in vector}
    assert reasons == set(REASONS) - {TOO_OLD, NOT_ASKED, "constant", "bits", "kind"}
    for vector in (each for each in found if "refuse" in each and each["message"]):
        assert not _accepted(getattr(connection_messages, vector["message"]), bytes.fromhex(vector["hex"])), vector


@pytest.mark.slow
def test_a_wrong_byte_of_a_connection_is_noticed() -> None:
    """Each byte of a message of each kind, as the messages inside have it."""
    accepted = {each["message"]: each for each in reversed([*lines("vectors-connection.jsonl")]) if "fields" in each}
    for vector in accepted.values():
        data = bytes.fromhex(vector["hex"])
        for at in range(len(data)):
            wrong = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
            assert problem({**vector, "hex": wrong.hex()}, _connection_parsed), f"{vector['message']}: byte {at}"


def test_every_message_of_a_connection_in_each_state() -> None:
    """Whoever can send it: where a message can come there is a vector of it, and none where it cannot."""
    found = [vector for vector in lines("vectors-connection.jsonl") if "fields" in vector]
    wanted = {(cls.__name__, sender, state) for (state, sender), steps in FOLLOWING.items() for cls in steps}
    assert wanted == {(vector["message"], vector["sender"], vector["state"]) for vector in found}


def _accepted(cls: Any, data: bytes) -> bool:
    """Return whether the codec takes bytes for a message."""
    try:
        return connection_codec.READERS[cls](data + PAD, 0, len(data))[1] == len(data)
    except REJECTIONS:
        return False


def _connection_parsed(data: bytes, given: dict[str, Any]) -> dict[str, Any]:
    message = parse_connection(data, **given)
    cls = type(message)
    assert message_size(data, **given) == len(data)
    assert message == connection_codec.READERS[cls](data + PAD, 0, len(data))[0]
    reference = Reference({}, connection_definitions.DEFINITIONS)
    assert message == reference.read(cls, data, {})
    assert data == build_connection(message) == reference.build(message, {})
    return {"message": cls.__name__, **as_json(message)}


def as_json(value: Any) -> Any:
    """Return a frame as the vectors write it."""
    if is_dataclass(value):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if type(value) in jsonable.LEAVES:  # type: ignore[attr-defined]
        return jsonable.LEAVES[cast("Any", type(value))].to_json(value, "Frame")  # type: ignore[attr-defined]
    return [as_json(item) for item in value] if isinstance(value, tuple) else value
