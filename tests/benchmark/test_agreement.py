"""Every parser that the benchmark times finds the same messages: otherwise its numbers would compare nothing."""

from collections import Counter
from pathlib import Path

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.wire.engine import MESSAGES
from pgoutput_construct.wire.options import options
from tools.benchmark import pypgoutput
from tools.benchmark.batch import Batch
from tools.benchmark.batches import decoder
from tools.benchmark.cases import CASES
from tools.benchmark.errors import Unavailable
from tools.benchmark.harness import HARNESSES, Harness, Running, built, missing

pytestmark = pytest.mark.server

NAMES = [case.name for case in CASES]


@pytest.mark.parametrize("name", NAMES)
def test_the_recordings_are_complete(recorded: dict[str, Batch], name: str) -> None:
    """There are inserts, updates and deletes, and the values have the case's format."""
    batch = recorded[name]
    tally = batch.tally()
    assert tally["messages"] == len(batch) == batch.case.messages(2000)
    assert tally["kinds"]["I"] > 0.6 * len(batch)
    assert {"R", "I"} <= tally["kinds"].keys() <= set("BCRIUDScE")
    values = [value for message in batch.messages if isinstance(message, pgo.Insert) for value in message.new]
    assert all(isinstance(value, pgo.Binary) == batch.case.binary for value in values if isinstance(value, bytes))
    assert ("S" in tally["kinds"]) == any(batch.in_stream) == (batch.case.streaming == "on")


@pytest.mark.parametrize("name", NAMES)
def test_the_definitions_agree_with_the_codec(recorded: dict[str, Batch], name: str) -> None:
    """Messages, and the bytes that are built of them, are the same in both engines."""
    batch = recorded[name].sample(200)
    for payload, inside, message in zip(batch.payloads, batch.in_stream, batch.messages, strict=True):
        given = options(batch.case.proto_version, batch.case.streaming, inside).parameters()
        assert MESSAGES.parse(payload, given) == message
        assert pgo.build(message, batch.case.proto_version, batch.case.streaming, inside) == payload


@pytest.mark.parametrize("name", NAMES)
def test_the_session_agrees_on_the_stream_states(recorded: dict[str, Batch], name: str) -> None:
    """The states that the engines are given are those that a session finds."""
    batch = recorded[name]
    session = pgo.Session(batch.case.proto_version, batch.case.streaming)
    for payload, inside in zip(batch.payloads, batch.in_stream, strict=True):
        assert session.in_stream == inside
        session.parse(payload)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.long
def test_the_columnar_engines_agree_with_the_codec(recorded: dict[str, Batch], name: str) -> None:
    """A row a message of the same kind, and a row a change, each with its operation."""
    batch = recorded[name]
    expected = [type(message).__name__ for message in batch.messages]
    messages, rows = decoder("messages", batch), decoder("rows", batch)
    assert messages(batch.array, batch.states)["kind"].to_pylist() == expected
    decoded = rows(batch.array, batch.states)
    found = {
        at: op for table in decoded.tables for at, op in zip(table.rows, table.batch["_op"].to_pylist(), strict=True)
    }
    changes = {at: kind.lower() for at, kind in enumerate(expected) if kind in ("Insert", "Update", "Delete")}
    assert found == changes


def test_pypgoutput_agrees_with_the_codec(recorded: dict[str, Batch]) -> None:
    """The same kinds, the same number of values."""
    path = pypgoutput.decoders()
    if path is None:
        pytest.skip("pypgoutput is not installed: install it: python -m tools.benchmark peers")
    classes = pypgoutput.parsers(path)
    batch = recorded["ten"]
    parsed = [classes[payload[0]](payload) for payload in batch.payloads]
    assert Counter(message.byte1 for message in parsed) == batch.tally()["kinds"]
    tuples = [getattr(message, side, None) for message in parsed for side in ("old_tuple", "new_tuple")]
    assert sum(one.n_columns for one in tuples if one is not None) == batch.tally()["values"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("harness", HARNESSES, ids=lambda harness: harness.name)
def test_the_peers_agree_with_the_codec(recorded: dict[str, Batch], harness: Harness, name: str) -> None:
    """The same messages by kind, and as many values and bytes, where the parser leaves them as they are."""
    folder = built(harness)
    if folder is None:
        pytest.skip(missing(harness))
    expected = recorded[name].tally()
    try:
        running = Running(harness, folder, recorded[name])
    except Unavailable as reason:
        pytest.skip(str(reason))
    with running:
        assert running.run() > 0
        found = running.tally()
        assert running.allocated().bytes >= 0
    assert found == {key: expected[key] for key in found}
    assert found.keys() >= {"messages", "kinds"}


def test_recordings_are_loaded_as_saved(recorded: dict[str, Batch], tmp_path: Path) -> None:
    """Payloads survive the file, the empty one too."""
    case = recorded["ten"].case
    Batch(case, [b"", b"B", bytes(300)]).save(tmp_path / "x.payloads")
    assert Batch.load(case, tmp_path / "x.payloads").payloads == [b"", b"B", bytes(300)]
