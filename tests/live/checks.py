"""Assertions about one recording; the tests with and without servers share them."""

import pgoutput_construct as pgo
from tests.live.facts import FACTS
from tests.live.items import items, traits
from tests.live.recording import Recording
from tests.live.sequences import RULES, SEQUENCES

__all__ = ["assert_facts", "assert_order", "assert_refused", "assert_round_trip"]


def assert_round_trip(recording: Recording) -> None:
    """Every payload, parsed and built again, is the same bytes."""
    mode = recording.mode
    for number, item in enumerate(items(recording)):
        rebuilt = pgo.build(item.message, mode.proto_version, mode.streaming, item.in_stream)
        assert rebuilt == item.payload, f"{recording.name}, payload {number}: {item.message}"


def assert_order(recording: Recording) -> None:
    """Messages come in an order that the protocol allows, and agree with each other."""
    stream = list(items(recording))
    assert [f"{rule.__name__}: {place}" for rule in RULES for place in rule(stream)] == []


def assert_facts(recording: Recording) -> None:
    """Everything that the workload brings about is there, and nothing that the options exclude."""
    seen, has = list(items(recording)), traits(recording)
    missing = [f.name for f in FACTS if f.needs <= has and not any(map(f.test, seen))]
    missing += [name for name, (test, needs) in SEQUENCES.items() if needs <= has and not test(seen)]
    unexpected = [f.name for f in FACTS if f.only and not f.needs <= has and any(map(f.test, seen))]
    assert (missing, unexpected) == ([], [])


def assert_refused(recording: Recording) -> None:
    """No payload can lose its last byte or gain one."""
    mode = recording.mode
    for payload, in_stream in {(item.payload, item.in_stream) for item in items(recording)}:
        for broken in (payload[:-1], payload + b"\0"):
            try:
                message = pgo.parse(broken, mode.proto_version, mode.streaming, in_stream)
            except pgo.DecodeError:
                continue
            raise AssertionError(f"{recording.name}: {broken.hex()} was taken for {message}")
