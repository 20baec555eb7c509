"""A whole stream in batches of any size gives the rows that RowReader gives, one by one."""

import dataclasses
import pickle
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct.columnar import BatchDecoder, decode_plan, index, table
from pgoutput_construct.pgtypes.builtin_types import TYPE_NAMES
from pgoutput_construct.pgtypes.kernels.cast_table import TYPES
from pgoutput_construct.stream import RelationCache
from pgoutput_construct.wire import engine
from tests.columnar.decode import decode_rows
from tests.columnar.test_decode import columns_schema, described, insert
from tests.live.recording import Recording

Rows = dict[str, list[tuple[int, dict[str, Any]]]]


def in_batches(recording: Recording, size: int) -> tuple[Rows, list[str]]:
    """Decode a recording in batches; return the rows by table, each with its position, and the errors."""
    decoder = BatchDecoder(recording.mode.proto_version, recording.mode.streaming)
    rows: Rows = defaultdict(list)
    errors: list[str] = []
    for first in range(0, len(recording.payloads), size):
        decoded = decoder.decode(pa.array(recording.payloads[first : first + size], pa.binary()))
        errors += map(str, decoded.errors)
        for part in decoded.tables:
            part.batch.validate(full=True)
            positions = (part.rows + first).tolist()
            name = part.description.relation.name
            rows[name] += zip(positions, part.batch.to_pylist(), strict=True)
    return {name: sorted(found, key=lambda pair: pair[0]) for name, found in rows.items()}, errors


def one_by_one(recording: Recording) -> dict[str, list[tuple[int, str, int]]]:
    """Return position, operation and number of columns of every row, by table, from the stream's messages."""
    session = pgo.Session(recording.mode.proto_version, recording.mode.streaming)
    cache = RelationCache()
    rows: dict[str, list[tuple[int, str, int]]] = defaultdict(list)
    for position, payload in enumerate(recording.payloads):
        message = session.parse(payload)
        cache.update(message)
        oids = getattr(message, "relation_oids", None) or [getattr(message, "relation_oid", None)]
        if isinstance(message, pgo.Insert | pgo.Update | pgo.Delete | pgo.Truncate):
            for oid in oids:
                relation = cache.get(oid)
                row = position, type(message).__name__.lower(), len(relation.columns)
                rows[relation.name].append(row)
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("size", [7, pytest.param(100_000, marks=pytest.mark.long)])
def test_recordings_in_batches(recordings: dict[str, Recording], size: int) -> None:
    """Streams, relations that change in a batch, and truncates of several tables, in small batches and in one."""
    for name, recording in recordings.items():
        if size == 7 and "immediate" in name:
            continue
        rows, errors = in_batches(recording, size)
        assert errors == []
        meta = {"_op", "_before", "_unchanged", "_untyped"}
        seen = {name: [(at, row["_op"], len(row.keys() - meta)) for at, row in found] for name, found in rows.items()}
        assert seen == one_by_one(recording)


@pytest.mark.slow
def test_batch_size_makes_no_difference(recordings: dict[str, Recording]) -> None:
    """The rows are the same whatever the batches."""
    recording = recordings["18-v4-text"]
    assert repr(in_batches(recording, 13)) == repr(in_batches(recording, 100_000))


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["BLOCK_ROWS", "BLOCK_BYTES"])
def test_block_size_makes_no_difference(
    recordings: dict[str, Recording], monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Blocks of a few rows, or of a few bytes, give the same rows as large ones."""
    recording = recordings["18-v4-text"]
    whole = repr(in_batches(recording, 100_000))
    monkeypatch.setattr(table, "BLOCK_ROWS", 3)
    monkeypatch.setattr(table, limit, 10)
    assert repr(in_batches(recording, 100_000)) == whole


@pytest.mark.parametrize("block", [50, 99])
def test_messages_that_are_too_large(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """A message of 1 GiB or more is refused at any position in the batch; the others are rows."""
    monkeypatch.setattr(table, "LARGEST", 100)
    monkeypatch.setattr(table, "BLOCK_BYTES", block)
    texts = [b"a", b"b" * 100, b"c", b"d", b"e" * 60, b"f" * 200, b"g" * 100]
    relation = described(("a", 25, -1)).relation
    payloads = [pgo.build(relation), *(pgo.build(insert(text)) for text in texts)]
    decoded = BatchDecoder().decode(payloads)
    assert [error.row for error in decoded.errors] == [2, 6, 7]
    assert all("1 GiB or more" in str(error) for error in decoded.errors)
    found = [row["a"].encode() for part in decoded.tables for row in part.batch.to_pylist()]
    assert found == [text for text in texts if len(text) < 100]


@pytest.mark.slow
def test_casts_give_what_psycopg_gives(recordings: dict[str, Recording], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every value of every recording: whole columns by casts, and one by one through psycopg, are the same."""
    modes = [name for name in recordings if name.startswith("18") and "immediate" not in name]
    fast = {name: repr(in_batches(recordings[name], 100_000)) for name in modes}
    monkeypatch.setattr(decode_plan, "find_cast", lambda *arguments: None)
    for name in modes:
        assert repr(in_batches(recordings[name], 100_000)) == fast[name]


def _texts(values: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    return values.map(lambda value: str(value).encode())


NUMERIC = (12 << 16 | 2) + 4
COLUMNS = {
    "bool": (16, -1, st.sampled_from([b"t", b"f", b"x", b"", b"tt"])),
    "int2": (21, -1, _texts(st.integers(-40_000, 40_000))),
    "int4": (23, -1, _texts(st.integers(-(2**32), 2**32)) | st.sampled_from([b" 5", b"+5", b"", b"0x1", b"1_0"])),
    "int8": (20, -1, _texts(st.integers(-(2**64), 2**64))),
    "float8": (701, -1, _texts(st.floats()) | st.sampled_from([b"NaN", b"Infinity", b"-Infinity", b"", b"1e999"])),
    "numeric": (1700, NUMERIC, _texts(st.decimals(places=2)) | st.sampled_from([b"NaN", b"1.5", b"1e3", b"9" * 30])),
    "date": (1082, -1, _texts(st.dates()) | st.sampled_from([b"infinity", b"0044-03-15 BC", b"10000-01-01", b""])),
    "timestamptz": (1184, -1, _texts(st.datetimes()).map(lambda t: t + b"+00") | st.sampled_from([b"-infinity"])),
    "timestamp": (1114, -1, _texts(st.datetimes())),
    "text": (25, -1, st.binary(max_size=9) | st.text(max_size=5).map(str.encode)),
    "bytea": (17, -1, st.binary(max_size=9).map(lambda b: b"\\x" + b.hex().encode()) | st.binary(max_size=5)),
}
BINARY = {
    "bool": (16, -1, st.binary(max_size=2)),
    "int4": (23, -1, st.binary(min_size=4, max_size=4) | st.binary(max_size=5)),
    "int8": (20, -1, st.binary(min_size=8, max_size=8)),
    "float4": (700, -1, st.binary(min_size=4, max_size=4)),
    "numeric": (1700, NUMERIC, st.builds(
        lambda digits, weight, sign, scale: b"".join(n.to_bytes(2, "big") for n in
                                                     (len(digits), weight & 0xFFFF, sign, scale, *digits)),
        st.lists(st.integers(0, 9999), max_size=6), st.integers(-3, 4), st.sampled_from([0, 0x4000, 0xC000]),
        st.integers(0, 6),
    )),
    "date": (1082, -1, st.binary(min_size=4, max_size=4)),
    "timestamptz": (1184, -1, st.binary(min_size=8, max_size=8)),
    "text": (25, -1, st.binary(max_size=9)),
    "jsonb": (3802, -1, st.binary(max_size=9) | st.binary(max_size=9).map(lambda b: b"\1" + b)),
}  # fmt: skip


@pytest.mark.parametrize("format_name", ["text", "binary"])
@given(draw=st.data())
def test_casts_and_psycopg_agree_on_any_value(format_name: str, draw: st.DataObject) -> None:
    """Whatever bytes a column holds, the casts give what psycopg gives, value or text."""
    kinds = COLUMNS if format_name == "text" else BINARY
    name = draw.draw(st.sampled_from(sorted(kinds)))
    oid, modifier, values = kinds[name]
    cls = bytes if format_name == "text" else pgo.Binary
    rows = draw.draw(st.lists(st.none() | st.just(pgo.UNCHANGED) | values.map(cls), min_size=1, max_size=8))
    description = described((name, oid, modifier))
    payloads = [pgo.build(insert(value)) for value in rows]
    columns = columns_schema(description)

    def decoded() -> list[Any]:
        batch = decode_rows(payloads, None, description, columns, proto_version=1, streaming="off")
        batch.validate(full=True)
        return batch.to_pylist()

    fast = decoded()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode_plan, "find_cast", lambda *arguments: None)
        slow = decoded()
    assert repr(fast) == repr(slow)


def test_malformed_payloads_stop_nothing(recordings: dict[str, Recording]) -> None:
    """Damaged payloads are returned in ``errors`` with their position; all other rows are decoded."""
    recording = recordings["18-v1-text"]
    whole, _ = in_batches(recording, 100_000)
    inserts = [at for at, payload in enumerate(recording.payloads) if payload[:1] == b"I"]
    damaged = set(inserts[::3])
    payloads = [p[:-1] if at in damaged else p for at, p in enumerate(recording.payloads)]
    decoded = BatchDecoder(1).decode(payloads)
    assert {error.row for error in decoded.errors} == damaged
    assert all("Insert" in str(error) for error in decoded.errors)
    kept = sum(len(part.rows) for part in decoded.tables)
    assert kept == sum(len(rows) for rows in whole.values()) - len(damaged)


def test_errors_are_explained_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Malformed payloads cost little until someone reads their error; each is read once, and survives pickling."""
    asked = []

    def explain(*given: Any) -> pgo.DecodeError:
        asked.append(given)
        return engine.explain(*given)

    monkeypatch.setattr(index, "explain", explain)
    errors = BatchDecoder(2, "on").decode([b"B", b"E" * 3, b"I"]).errors
    assert ([error.row for error in errors], asked) == ([0, 1, 2], [])
    assert str(errors[2]) == str(errors[2].error)
    assert (len(asked), type(errors[2].error), pickle.loads(pickle.dumps(errors[2])).row) == (1, pgo.DecodeError, 2)
    assert str(errors[2]) in repr(errors)


def test_row_without_relation_is_handed_out() -> None:
    """A row whose OID nobody described is an error of its own."""
    decoded = BatchDecoder().decode([pgo.build(insert(b"1"))])
    (error,) = decoded.errors
    assert (error.row, "relation OID 1" in str(error)) == (0, True)


def test_relation_changes_in_the_middle_of_a_batch() -> None:
    """Rows before and after an ALTER TABLE have the columns of their time."""
    narrow = described(("id", 23, -1)).relation
    wide = described(("id", 23, -1), ("note", 25, -1)).relation
    messages = [narrow, insert(b"1"), wide, insert(b"2", b"x"), insert(b"3", None)]
    first, second = BatchDecoder().decode([pgo.build(message) for message in messages]).tables
    assert (first.rows.tolist(), first.batch["id"].to_pylist()) == ([1], [1])
    assert (second.rows.tolist(), second.batch["note"].to_pylist()) == ([3, 4], ["x", None])


@pytest.mark.parametrize("name", ["_op", "_before", "_unchanged", "_untyped", "caf\udce9"])
def test_names_that_rows_cannot_have_are_handed_out(name: str) -> None:
    """A table whose column is named as one of the rows', or not in UTF-8, does not take the others with it."""
    odd = described(("id", 23, -1), (name, 25, -1)).relation
    sound = dataclasses.replace(described(("id", 23, -1)).relation, relation_oid=2)
    messages = [odd, sound, insert(b"1", b"x"), dataclasses.replace(insert(b"2"), relation_oid=2)]
    decoded = BatchDecoder().decode([pgo.build(message) for message in messages])
    assert [error.row for error in decoded.errors] == [2]
    (rows,) = decoded.tables
    assert rows.batch["id"].to_pylist() == [2]


START, STOP = pgo.build(pgo.StreamStart(7, 1), 2), b"E"


@pytest.mark.parametrize(
    ("payloads", "wrong"),
    [([STOP], [0]), ([START, START], [1]), ([START, STOP, STOP], [2]), ([START, STOP, START, STOP], [])],
)
def test_streams_that_do_not_pair_are_handed_out(payloads: list[bytes], wrong: list[int]) -> None:
    """A start inside a stream and a stop outside one, also over the edges of batches."""
    assert [error.row for error in BatchDecoder(2, "on").decode(payloads).errors] == wrong
    decoder = BatchDecoder(2, "on")
    found = [at for at, payload in enumerate(payloads) if decoder.decode([payload]).errors]
    assert found == wrong


def test_message_of_a_size_that_cannot_be_is_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL's messages are below 1 GiB; so are the lengths of values, which then need 31 bits."""
    monkeypatch.setattr(table, "LARGEST", 100)
    messages = [described(("t", 25, -1)).relation, insert(b"x" * 100), insert(b"y")]
    decoded = BatchDecoder().decode([pgo.build(message) for message in messages])
    assert [(error.row, "1 GiB" in str(error)) for error in decoded.errors] == [(1, True)]
    assert decoded.tables[0].rows.tolist() == [2]


@pytest.mark.parametrize("payloads", [pa.array([1, 2]), pa.array(["a"]), pa.nulls(2)])
def test_arrays_that_are_not_binary_are_refused(payloads: pa.Array) -> None:
    """Payloads are bytes."""
    with pytest.raises(pgo.DecodeError, match="must be a binary array"):
        BatchDecoder().decode(payloads)


def test_unknown_options_are_refused() -> None:
    """At once, not with the first batch."""
    with pytest.raises(pgo.PgoutputError, match="proto_version"):
        BatchDecoder(9)


@pytest.mark.slow
def test_importing_the_package_does_not_import_numba() -> None:
    """numba is loaded by the first batch, not before."""
    code = (
        "import sys, pgoutput_construct.columnar as c\n"
        "assert 'numba' not in sys.modules\n"
        "c.index_batch([b'E'], [True], proto_version=2, streaming='on')\n"
        "assert 'numba' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_kernels_compile_where_no_cache_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a directory for its cache numba raises; the kernels are compiled all the same."""
    from pgoutput_construct.compiled import jit

    real = jit.njit  # type: ignore[attr-defined]

    def njit(**settings: Any) -> Any:
        if settings.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return real(**settings)

    monkeypatch.setattr(jit, "njit", njit)
    assert jit.kernel(lambda number: number + 1)(1) == 2


def test_machine_code_of_other_sources_is_not_taken_from_the_cache(tmp_path: Path) -> None:
    """Kernels that call functions of another module are recompiled when it changes: their names have a digest."""
    from pgoutput_construct.compiled import jit

    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "fixed.py").write_text("ENTRIES = 8\n")
    before = jit.digest(tmp_path)
    assert jit.digest(tmp_path) == before
    (tmp_path / "below" / "fixed.py").write_text("ENTRIES = 9\n")
    assert jit.digest(tmp_path) != before
    sources = jit.digest(*jit.ROOMS)
    assert jit.kernel(lambda number: number).py_func.__qualname__.endswith(f"<lambda>.{sources}")


def test_table_of_types_names_built_in_types() -> None:
    """Each name in the table of kernels is a type of PostgreSQL's."""
    assert TYPES.keys() <= TYPE_NAMES.keys()


COMMIT = pgo.build(pgo.Commit(pgo.Lsn(1), pgo.Lsn(2), pgo.Timestamp(3)), 2)
BEGIN = pgo.build(pgo.Begin(pgo.Lsn(1), pgo.Timestamp(3), 7), 2)


@pytest.mark.parametrize(
    ("payloads", "wrong", "xid"),
    [
        ([START, COMMIT, STOP], {1: "Commit inside the stream of xid 7"}, None),
        ([START, BEGIN, COMMIT], {1: "Begin inside the stream of xid 7"}, None),
        ([START, STOP, BEGIN, COMMIT, STOP], {4: "StreamStop outside a stream"}, None),
        ([BEGIN, COMMIT, START, pgo.build(pgo.StreamAbort(7, 7), 2)], {3: "StreamAbort inside the stream of xid 7"}, 7),
        ([START, START], {1: "StreamStart inside the stream of xid 7"}, 7),
    ],
)
def test_what_a_session_refuses_is_an_error(payloads: list[bytes], wrong: dict[int, str], xid: int | None) -> None:
    """In one batch, and with each payload in a batch of its own."""
    whole = BatchDecoder(2, "on")
    found = {error.row: str(error) for error in whole.decode(payloads).errors}
    assert found.keys() == wrong.keys() and all(wrong[row] in found[row] for row in wrong)
    assert whole.stream_xid == xid
    single = BatchDecoder(2, "on")
    errors = [single.decode([payload]).errors for payload in payloads]
    assert {row: str(some[0]) for row, some in enumerate(errors) if some} == found
