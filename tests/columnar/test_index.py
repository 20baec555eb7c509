"""The index of a batch agrees with the definitions on every payload, and the messages batch with parse."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.columnar import BatchDecoder, index_batch
from pgoutput_construct.columnar.batch_arrays import strings, tag_table
from pgoutput_construct.columnar.kernels import MESSAGE_SCHEMA
from pgoutput_construct.pgtypes.kernels.cast import ColumnValues
from pgoutput_construct.testing import ParseOptions
from tests.live.recording import Recording
from tests.wire.samples import SAMPLES


def header(message: pgo.PgoutputMessage) -> dict[str, object]:
    """Return a message as a row of the messages batch has it."""
    row: dict[str, object] = dict.fromkeys(MESSAGE_SCHEMA.names)
    row["kind"] = type(message).__name__
    for name in set(MESSAGE_SCHEMA.names) & set(message.__dataclass_fields__):
        value = getattr(message, name)
        surrogates = isinstance(value, str) and not value.isascii()
        row[name] = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace") if surrogates else value
    return row


@pytest.mark.slow
def test_recordings_have_the_headers_that_parse_gives(recordings: dict[str, Recording]) -> None:
    """Every stored recording, as one batch: all whole, and each header field as the codec reads it."""
    for recording in recordings.values():
        mode = recording.mode
        session = pgo.Session(mode.proto_version, mode.streaming)
        states, expected = [], []
        for payload in recording.payloads:
            states.append(session.in_stream)
            expected.append(header(session.parse(payload)))
        index = index_batch(recording.payloads, states, proto_version=mode.proto_version, streaming=mode.streaming)
        assert index.valid.all()
        assert index.messages().to_pylist() == expected


@pytest.mark.parametrize("name", SAMPLES)
def test_every_cut_and_extension_is_flagged(name: str) -> None:
    """Of a sample's prefixes and extensions only the sample itself is whole; the others are explained as parse does."""
    options, data, _ = SAMPLES[name]
    payloads = [*(data[:size] for size in range(len(data) + 1)), data + b"\0"]
    states = [options.in_stream] * len(payloads)
    index = index_batch(payloads, states, proto_version=options.proto_version, streaming=options.streaming)
    assert np.flatnonzero(index.valid).tolist() == [len(data)]
    for row in index.malformed().tolist():
        with pytest.raises(pgo.DecodeError) as caught:
            pgo.parse(payloads[row], **options._asdict())
        assert str(index.error(row)) == str(caught.value)


@pytest.mark.slow
@given(testing.options(), st.lists(testing.damaged(testing.payloads().map(lambda pair: pair[1])), max_size=6))
def test_kernels_accept_what_parse_accepts(options: ParseOptions, payloads: list[bytes]) -> None:
    """Mutated payloads are whole for the kernels if and only if they are messages for parse."""
    states = [options.in_stream] * len(payloads)
    index = index_batch(payloads, states, proto_version=options.proto_version, streaming=options.streaming)
    rows = index.messages().to_pylist()
    for row, payload in enumerate(payloads):
        try:
            expected = header(pgo.parse(payload, **options._asdict()))
        except pgo.DecodeError as error:
            assert not index.valid[row]
            assert str(index.error(row)) == str(error)
            assert set(rows[row].values()) == {None}
        else:
            assert rows[row] == expected


def shapes(payloads: list[bytes]) -> dict[str, pa.Array | pa.ChunkedArray]:
    """Return the same payloads as arrays of every kind."""
    small = pa.array(payloads, pa.binary())
    longer = pa.array([b"E", *payloads, b"B"], pa.binary())
    return {
        "binary": small,
        "large": small.cast(pa.large_binary()),
        "view": small.cast(pa.binary_view()),
        "sliced": longer.slice(1, len(payloads)),
        "chunked": pa.chunked_array([small.slice(0, 3), small.slice(3, 0), small.slice(3)]),
    }


@pytest.mark.parametrize("shape", ["binary", "large", "view", "sliced", "chunked"])
def test_arrays_of_every_kind(shape: str) -> None:
    """Sliced, chunked and large arrays give the same index."""
    payloads = [data for options, data, _ in SAMPLES.values() if options == ParseOptions()]
    index = index_batch(shapes(payloads)[shape])
    assert index.valid.all()
    assert [index.payload(row) for row in range(len(index))] == payloads
    assert index.messages().equals(index_batch(payloads).messages())


def test_empty_batches_and_nulls() -> None:
    """A batch of nothing has no rows; a null is no message."""
    assert len(index_batch(pa.array([], pa.binary()))) == 0
    assert index_batch([]).messages().num_rows == 0
    index = index_batch(pa.array([None, b"", b"B" + bytes(20)], pa.binary()))
    assert index.valid.tolist() == [False, False, True]


def test_states_must_fit_the_payloads() -> None:
    """As many entries of in_stream as payloads."""
    with pytest.raises(pgo.DecodeError, match="one boolean for each"):
        index_batch([b"E", b"E"], [True])


NO_PAYLOADS = [None, 5, b"abc", "abc", [1], ["a"], [b"a", "b"], [[b"a"]], np.zeros((2, 2), np.uint8), pa.array(["a"])]


@pytest.mark.parametrize("given", NO_PAYLOADS, ids=lambda given: type(given).__name__)
def test_no_payloads(given: Any) -> None:
    """Payloads that are not a sequence of bytes are refused by every function."""
    with pytest.raises(pgo.DecodeError, match="payloads must be"):
        index_batch(given)
    with pytest.raises(pgo.DecodeError, match="payloads must be"):
        BatchDecoder().decode(given)


def test_payloads_of_other_sequences() -> None:
    """Arrays of numpy, and whatever else holds bytes, an iterator too."""
    for items in (np.array([b"E", b"E"]), (bytearray(b"E"), memoryview(b"E")), iter([b"E", b"E"])):
        assert index_batch(items).tags.tolist() == [ord("E")] * 2  # type: ignore[arg-type]


NO_STATES = [5, "xy", [None, True], ["x", "y"], [1, 0], np.zeros(2), np.zeros((2, 1), np.bool_), [[True], [True]],
             pa.array([True, None]), pa.array([1, 0]), pa.chunked_array([[True]])]  # fmt: skip


@pytest.mark.parametrize("given", NO_STATES, ids=lambda given: type(given).__name__)
def test_states_are_booleans(given: Any) -> None:
    """A null would count as outside of a stream, and a word as inside."""
    with pytest.raises(pgo.DecodeError, match="in_stream needs one boolean for each"):
        index_batch([b"E", b"E"], given)


def test_states_of_every_array() -> None:
    """Lists, arrays of numpy, and arrays of Arrow, chunked or not, or of nothing."""
    for items in (
        [True, False],
        np.array([1, 0], np.bool_),
        pa.array([True, False]),
        pa.chunked_array([[True], [False]]),
    ):
        assert index_batch([b"E", b"E"], items, proto_version=2, streaming="on").states["in_stream"].tolist() == [1, 0]
    for none in ([], np.array([]), pa.array([], pa.bool_()), pa.chunked_array([], pa.bool_())):
        assert len(index_batch([], none)) == 0


RELATION = bytes.fromhex("52 00000309 02345678 7075626c696300 7400 64 0000")
"""A Relation inside a stream; outside it would be another one, of a namespace that begins with a byte of its OID."""


def test_states_that_are_not_said() -> None:
    """Where they decide the layout, the payload is no message: the error is that of parse."""
    payloads = [RELATION, b"B" + bytes(20)]
    with pytest.raises(pgo.DecodeError) as refusal:
        pgo.parse(RELATION, 2, "on")
    index = index_batch(payloads, proto_version=2, streaming="on")
    assert index.valid.tolist() == [False, True]
    assert str(index.error(0)) == str(refusal.value)
    assert "pass in_stream" in str(refusal.value)
    assert index_batch(payloads, [True, False], proto_version=2, streaming="on").valid.all()
    assert isinstance(index_batch([RELATION], [True], proto_version=2, streaming="on").message(0), pgo.Relation)


def test_huge_lengths_are_refused_at_once() -> None:
    """Counts and lengths of 4 billion are compared with the bytes that are left before they are used."""
    payloads = [bytes.fromhex(text) for text in (
        "49 00004001 4e 0001 74 ffffffff 00", "54 ffffffff 00 00000001", "4d 00 0000000000000000 00 ffffffff",
        "52 00004001 00 00 64 ffff", "49 00004001 4e ffff 6e",
    )]  # fmt: skip
    assert not index_batch(payloads).valid.any()


def test_a_field_of_two_gigabytes_is_refused() -> None:
    """Arrow counts a column's bytes in 32 bits: nothing overflows silently."""
    one, nothing = np.zeros(1, np.int64), np.zeros(1, np.uint8)
    with pytest.raises(pgo.PgoutputError, match="2 GiB"):
        strings(ColumnValues(nothing, one, one + (1 << 31), nothing, 0, 1, 1 << 31), pa.binary())


OIDS = st.sampled_from([7, 16385, 4_000_000_000])
CHANGES = st.one_of(
    OIDS.map(lambda oid: pgo.build(pgo.Insert(relation_oid=oid, new=(b"1",)))),
    st.lists(OIDS, max_size=2).map(lambda oids: pgo.build(pgo.Truncate(options=0, relation_oids=tuple(oids)))),
    st.sampled_from([pgo.build(pgo.Begin(1, 2, 3)), b"", b"I\0\0", b"?"]),
)


@given(payloads=st.lists(CHANGES, max_size=12), data=st.data())
def test_changes_have_their_tables(payloads: list[bytes], data: st.DataObject) -> None:
    """Each change is listed once for each table, also in an index of some payloads of another."""
    whole = index_batch(payloads)
    whole.tables()
    rows = data.draw(st.lists(st.integers(0, len(payloads) - 1), unique=True) if payloads else st.just([]))
    index = whole.take(np.array(rows, np.int64))
    truncates = [place for place, row in enumerate(rows) if whole.valid[row] and payloads[row][:1] == b"T"]
    assert index.messages_without_rows(tag_table([pgo.Truncate])).tolist() == truncates
    expected = []
    for place, row in enumerate(rows):
        message: Any = whole.message(row) if whole.valid[row] else None
        oids = getattr(message, "relation_oids", None) or [getattr(message, "relation_oid", None)]
        expected += [(place, oid) for oid in oids if oid is not None]
    assert list(zip(*(column.tolist() for column in index.tables()), strict=True)) == expected
