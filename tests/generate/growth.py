"""Run in a copy of the project whose specification has grown: both engines and all that people see follow.

python growth.py MESSAGE_OF_THE_NEWEST_VERSION ITS_HEX MESSAGE_OF_THE_VERSION_BEFORE ITS_HEX
"""

import dataclasses
import json
import sys
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis.vendor.pretty import pretty

import pgoutput_construct as pgo
from pgoutput_construct.testing.strategies import any_of
from pgoutput_construct.wire import definitions, jsonable, messages
from pgoutput_construct.wire.options import options
from pgoutput_construct.wire.protocol import PROTOCOL_VERSIONS
from pgoutput_construct.wire.reference import Reference
from pgoutput_construct.wire.trace import trace
from pgoutput_construct.wire.types import Extended, bare

REFERENCE = Reference(messages.BY_TAG, definitions.DEFINITIONS)
quick = settings(max_examples=40, deadline=None, database=None, suppress_health_check=list(HealthCheck))
OLD, NEW = sorted(PROTOCOL_VERSIONS)[-2:]
GIVEN = [
    {"proto_version": version, "streaming": "on", "in_stream": inside}
    for version in (OLD, NEW)
    for inside in (False, True)
]


def types(value: Any) -> Any:
    """Return the types of a value and of all that it holds."""
    if dataclasses.is_dataclass(value):
        return type(value), [types(getattr(value, field.name)) for field in dataclasses.fields(value)]
    return (type(value), [types(item) for item in value]) if isinstance(value, tuple) else type(value)


def stripped(value: Any) -> Any:
    """Return a value whose Extended items are their principal values."""
    value = bare(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return dataclasses.replace(value, **{name: stripped(getattr(value, name)) for name in names})
    return tuple(map(stripped, value)) if isinstance(value, tuple) else value


def refused(message: Any, **given: Any) -> bool:
    """Return whether the definitions refuse to build a message; what they accept comes back as it was."""
    parameters = options(**given).parameters()
    try:
        data = REFERENCE.build(message, parameters)
    except pgo.EncodeError as error:
        assert error.path, error
    else:
        assert REFERENCE.parse(data, parameters) == message
        return False
    try:
        pgo.build(message, **given)
    except pgo.EncodeError:
        return True
    raise AssertionError(f"the fast engine builds {message}")


def both_ways(message: Any, **given: Any) -> bytes:
    """Check that a message survives bytes, JSON and a trace; return its bytes."""
    parameters = options(**given).parameters()
    data = REFERENCE.build(message, parameters)
    again = REFERENCE.parse(data, parameters)
    assert again == message and types(again) == types(message), (again, message)
    assert pgo.build(message, **given) == data
    again = pgo.parse(data, **given)
    assert again == message and types(again) == types(message), (again, message)
    lines = json.loads(json.dumps(jsonable.to_json(message)))
    again = jsonable.from_json(lines)
    assert again == message and types(again) == types(message), (again, message)
    found = trace(data, **given)
    assert found.fault is None
    assert b"".join(data[span.start : span.end] for span in found.spans) == data
    assert all(span.key in found.fields for span in found.spans)
    for size in range(len(data)):
        try:
            pgo.parse(data[:size], **given)
        except pgo.DecodeError:
            continue
        raise AssertionError(f"{data[:size].hex()} was accepted")
    return data


def check_strategies(cls: type, **given_options: Any) -> None:
    """Check whatever the strategy of a class makes."""
    strategy = any_of(cls, definitions.DEFINITIONS[cls], options(**given_options).parameters())

    @quick
    @given(strategy)
    def check(message: Any) -> None:
        both_ways(message, **given_options)
        plain = stripped(message)
        if types(plain) != types(message):
            assert refused(plain, **given_options)
            assert refused(message, proto_version=1)
        refused(plain, **{**given_options, "proto_version": OLD + NEW - given_options["proto_version"]})

    check()


if __name__ == "__main__":
    new, new_hex, old, old_hex = sys.argv[1:]
    assert both_ways(eval(new), proto_version=NEW) == bytes.fromhex(new_hex)
    assert both_ways(eval(old), proto_version=OLD) == bytes.fromhex(old_hex)
    assert refused(eval(new), proto_version=OLD)
    assert repr(eval(pretty(eval(new)), vars(pgo))) == repr(eval(new))
    for cls in messages.BY_TAG.values():
        if any(issubclass(cls, each) for each in (pgo.Insert, pgo.Update, pgo.Delete, pgo.Truncate, pgo.Relation)):
            for each in GIVEN:
                check_strategies(cls, **each)
    items = [cls for cls in vars(messages).values() if isinstance(cls, type) and issubclass(cls, Extended)]
    print(*sorted({cls.__name__ for cls in items} - {"Extended"}))
