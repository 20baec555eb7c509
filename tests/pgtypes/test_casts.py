# ruff: noqa: E501 - tables of texts
"""Kernels by type give what the values one by one give, or leave them: any bytes, text and binary, arrays too."""

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct.columnar import columns_schema, decode_plan
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES, TYPE_NAMES
from pgoutput_construct.pgtypes.kernels.cast import ColumnValues
from pgoutput_construct.pgtypes.kernels.cast_table import TYPES, find_cast
from pgoutput_construct.wire.messages import VALUE_TAGS
from tests.columnar.decode import decode_rows
from tests.columnar.test_decode import described, insert

Texts = st.SearchStrategy[bytes]


def _texts(values: st.SearchStrategy[Any]) -> Texts:
    return values.map(lambda value: str(value).encode())


def _numeric(precision: int, scale: int) -> int:
    return (precision << 16 | scale) + 4


@st.composite
def moments(draw: st.DrawFn) -> bytes:
    """Dates and timestamps as PostgreSQL writes them, and some that it does not."""
    day = draw(st.dates().map(str) | st.sampled_from(["2023-02-29", "2024-02-29", "1900-02-29", "2000-02-29", "0000-01-01",
                                                      "9999-12-31", "0001-01-01", "2024-13-01", "2024-00-10", "2024-1-01"]))  # fmt: skip
    clock = draw(st.sampled_from(["00:00:00", "23:59:59", "12:34:56", "24:00:00", "23:59:60", "1:00:00", "12:3x:00"]))
    fraction = draw(st.sampled_from(["", ".5", ".123456", ".000001", ".1234567", "."]))
    zone = draw(st.sampled_from(["", "+00", "-03", "+05:30", "+15", "-15:59", "+05:30:15", "+16", "+5", "Z", "+0530"]))
    era = draw(st.sampled_from(["", "", "", " BC"]))
    return f"{day} {clock}{fraction}{zone}{era}".encode()


@st.composite
def numerics(draw: st.DrawFn) -> bytes:
    """numeric_send(), with digits and weights also where PostgreSQL has none."""
    digits = draw(st.lists(st.sampled_from([0, 1, 10, 100, 1000, 1200, 9999]) | st.integers(0, 10_000), max_size=11))
    weight, shown = draw(st.integers(-4, 10)), draw(st.sampled_from([0, 1, 2, 4, 6, 20, 38]))
    sign = draw(st.sampled_from([0, 0, 0x4000, 0xC000, 0xD000]))
    more = draw(st.sampled_from([b"", b"", b"", b"\0"]))
    return struct.pack(f"!HhHH{len(digits)}H", len(digits), weight, sign, shown, *digits) + more


def sized(*sizes: int) -> Texts:
    """Return bytes of one of these sizes, and now and then of another."""
    return st.one_of(*(st.binary(min_size=size, max_size=size) for size in sizes), st.binary(max_size=9))


def near(size: int, *numbers: int) -> Texts:
    """Return signed numbers close to some others, of a size in bytes."""
    low, high = -(1 << 8 * size - 1), (1 << 8 * size - 1) - 1
    found = st.sampled_from(numbers).flatmap(lambda n: st.integers(max(low, n - 3), min(high, n + 3)))
    return found.map(lambda n: n.to_bytes(size, "big", signed=True)) | sized(size)


DECIMALS = _texts(st.decimals(places=2)) | st.from_regex(rb"-?[0-9]{0,40}(\.[0-9]{0,20})?", fullmatch=True)
ODD = st.sampled_from([b"", b"-", b"--1", b"+5", b" 5", b"0x1", b"1_0", b"1e5", b"NaN", b"Infinity", b"-Infinity", b".",
                       b"1.", b".5", b"-0", b"-0.00", b"00", b"007", b"1e999", b"1.5.5", b"\xc2\xb2", b"infinity"])  # fmt: skip
INTEGERS = _texts(st.integers(-(2**65), 2**65) | st.integers(-(10**19), 10**19) | st.integers(-40_000, 40_000)) | ODD
FLOATS = _texts(st.floats() | st.floats(width=32) | st.decimals(-1000, 1000, places=3)) | ODD | DECIMALS
TEXT: dict[str, tuple[int, Texts]] = {
    "bool": (-1, st.sampled_from([b"t", b"f", b"x", b"", b"tt", b"T"])),
    **dict.fromkeys(("int2", "int4", "int8", "oid"), (-1, INTEGERS)),
    "float4": (-1, FLOATS),
    "float8": (-1, FLOATS),
    "numeric": (_numeric(12, 2), DECIMALS | ODD),
    "date": (-1, moments() | moments().map(lambda text: text[:10]) | ODD),
    "timestamp": (-1, moments() | _texts(st.datetimes()) | ODD),
    "timestamptz": (-1, moments() | ODD),
    "bytea": (-1, st.binary(max_size=20).map(lambda b: b"\\x" + b.hex().encode()) | st.sampled_from(
        [b"\\x0", b"\\xzz", b"\\x0G", b"", b"x", b"\\", b"\\xAB", b"\\x0123456g", b"\\x01234567@9"])),
    "text": (-1, st.text(max_size=30).map(str.encode) | st.binary(max_size=20)),
}  # fmt: skip
DAYS, MICROSECONDS = (
    [-730_119, 2_921_939, 0, 2**31 - 1, -(2**31)],
    [-63_082_281_600_000_000, 252_455_615_999_999_999, 0],
)
BINARY: dict[str, tuple[int, Texts]] = {
    "bool": (-1, st.binary(max_size=2)),
    "int2": (-1, sized(2)),
    "int4": (-1, sized(4)),
    "int8": (-1, sized(8)),
    "oid": (-1, sized(4)),
    "float4": (-1, sized(4)),
    "float8": (-1, sized(8)),
    "numeric": (_numeric(12, 2), numerics()),
    "date": (-1, near(4, *DAYS)),
    "timestamp": (-1, near(8, *MICROSECONDS, 2**63 - 4)),
    "timestamptz": (-1, near(8, *MICROSECONDS, 4 - 2**63)),
    "time": (-1, near(8, 0, 86_400_000_000, 1_500_000, 43_200_000_100)),
    "bytea": (-1, st.binary(max_size=20)),
    "uuid": (-1, sized(16, 16, 15)),
    "inet": (-1, st.builds(lambda *parts: bytes(parts[:4]) + parts[4], st.sampled_from([2, 3, 1]), st.integers(0, 33),
                           st.integers(0, 2), st.sampled_from([4, 16, 0]), sized(4, 4, 16))),
    "jsonb": (-1, st.binary(max_size=9) | st.text(max_size=9).map(lambda text: b"\1" + text.encode())),
    "text": (-1, st.text(max_size=30).map(str.encode) | st.binary(max_size=20)),
}  # fmt: skip
BINARY["cidr"] = BINARY["inet"]


def _decoded(
    oid: int, modifier: int, rows: list[Any], cast: Callable[..., Any] | None, kind: pa.DataType | None = None
) -> str:
    """Return the rows as Python values, by the kernels or without them; of a type of their own, where one is given."""
    description = described(("c", oid, modifier))
    payloads = [pgo.build(insert(value)) for value in rows]
    with pytest.MonkeyPatch.context() as patch:
        if cast is not None:
            patch.setattr(decode_plan, "find_cast", cast)
        columns = columns_schema(description) if kind is None else pa.schema({"c": kind})
        batch = decode_rows(payloads, None, description, columns)
    batch.validate(full=True)
    return repr(batch.to_pylist())


@pytest.mark.slow
@given(draw=st.data())
def test_several_columns(draw: st.DataObject) -> None:
    """Numbers that the walk over rows decodes, text of the same columns, and all others: each in its own row."""
    description = described(*((name, TYPE_NAMES[name].oid, BINARY[name][0]) for name in BINARY))
    values = [st.none() | BINARY[name][1].map(pgo.Binary) | TEXT.get(name, BINARY[name])[1] for name in BINARY]
    rows = draw.draw(st.lists(st.tuples(*values), min_size=1, max_size=4))
    payloads = [pgo.build(insert(*row)) for row in rows]
    columns = columns_schema(description)
    batch = decode_rows(payloads, None, description, columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode_plan, "find_cast", lambda *arguments: None)
        slow = decode_rows(payloads, None, description, columns)
    batch.validate(full=True)
    assert repr(batch.drop_columns("_untyped").to_pylist()) == repr(slow.drop_columns("_untyped").to_pylist())
    assert [dict(row or []) for row in batch["_untyped"].to_pylist()] == [
        dict(row or []) for row in slow["_untyped"].to_pylist()
    ]


@pytest.mark.parametrize("name", ["bool", "int2", "int4", "timestamptz"])
def test_nulls_hold_zeros(name: str) -> None:
    """Under a null lies nothing that memory held before."""
    description = described(("c", TYPE_NAMES[name].oid, -1))
    value = pgo.Binary(b"\0" * (TYPE_NAMES[name].size - 1) + b"\1")
    payloads = [pgo.build(insert(one)) for one in [value, None, pgo.UNCHANGED, None] * 300]
    (column,) = decode_rows(payloads, None, description, columns_schema(description))["c"].chunks
    content = np.frombuffer(column.buffers()[1], np.uint8)
    if name == "bool":
        assert set(content.tolist()) == {0b0001_0001}
    else:
        assert not content.reshape(300, 4, -1)[:, 1:].any()
        assert content.reshape(300, 4, -1)[:, 0].any(axis=1).all()


def _agree(oid: int, modifier: int, rows: list[Any]) -> None:
    assert _decoded(oid, modifier, rows, None) == _decoded(oid, modifier, rows, lambda *arguments: None)


def _rows(values: Texts, cls: type[bytes]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.none() | st.just(pgo.UNCHANGED) | values.map(cls), min_size=1, max_size=6)


@pytest.mark.parametrize("name", TEXT)
@given(draw=st.data())
def test_text_format(name: str, draw: st.DataObject) -> None:
    """Whatever text a column holds, the kernel gives what its values one by one give, value or text."""
    modifier, values = TEXT[name]
    _agree(TYPE_NAMES[name].oid, modifier, draw.draw(_rows(values, bytes)))


@pytest.mark.parametrize("name", BINARY)
@given(draw=st.data())
def test_binary_format(name: str, draw: st.DataObject) -> None:
    """The same in binary format."""
    modifier, values = BINARY[name]
    _agree(TYPE_NAMES[name].oid, modifier, draw.draw(_rows(values, pgo.Binary)))


@pytest.mark.parametrize(
    "precision, scale",
    [
        (38, 10),
        (18, 0),
        *(pytest.param(*each, marks=pytest.mark.long) for each in [(38, 38), (38, 0), (19, 1), (4, 4), (1, 0)]),
    ],
)
@given(draw=st.data())
def test_numerics_of_any_precision(precision: int, scale: int, draw: st.DataObject) -> None:
    """Decimals of up to 38 digits, in both formats."""
    oid, modifier = TYPE_NAMES["numeric"].oid, _numeric(precision, scale)
    texts = st.integers(-(10**precision), 10**precision).map(lambda n: f"{n:0{scale + 2}d}")
    pointed = texts.map(lambda text: f"{text[:-scale]}.{text[-scale:]}" if scale else text).map(str.encode)
    _agree(oid, modifier, draw.draw(_rows(pointed | DECIMALS, bytes)))
    _agree(oid, modifier, draw.draw(_rows(numerics(), pgo.Binary)))


@given(st.sampled_from(sorted(set(TEXT) & set(BINARY))), st.data())
def test_arrays(name: str, draw: st.DataObject) -> None:
    """One-dimensional arrays by the kernels of their elements; all others as they were."""
    builtin, (modifier, values) = TYPE_NAMES[name], TEXT[name]
    items = st.lists(
        st.sampled_from([b"NULL", b"null", b'"NULL"', b'""', b'"a,b"', b'"a\\"b"', b"{1}"]) | values, max_size=4
    )
    texts = items.map(lambda found: b"{" + b",".join(found) + b"}") | st.sampled_from(
        [b"{", b"{}", b"{,}", b"[0:0]={1}", b""]
    )
    _agree(builtin.array_oid, modifier, draw.draw(_rows(texts, bytes)))
    binary = st.builds(array_of_items, st.lists(st.none() | BINARY[name][1], max_size=4), st.sampled_from([1, 1, 1, 0, 2]),
                       st.sampled_from([1, 1, 0]), st.just(builtin.oid), st.sampled_from([b"", b"", b"\0"]))  # fmt: skip
    _agree(builtin.array_oid, modifier, draw.draw(_rows(binary, pgo.Binary)))


def array_of_items(items: list[bytes | None], dimensions: int, lower: int, oid: int, more: bytes) -> bytes:
    """Return an array as array_send() writes it, or one that is damaged: another number of dimensions, more bytes."""
    head = struct.pack("!iii", dimensions, None in items, oid)
    if dimensions:
        head += struct.pack("!ii", len(items), lower)
    return head + b"".join(_item(item) for item in items if dimensions) + more


def _item(item: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if item is None else len(item).to_bytes(4, "big") + item


UUID = b"01234567-89ab-cdef-0123-456789abcdef"
UUIDS = st.uuids().map(lambda each: str(each).encode()) | st.sampled_from([b"", b"-" * 36, b"0" * 36, b"A" * 36,
         *(bytes([*UUID[:at], 64, *UUID[at + 1 :]]) for at in range(36))])  # fmt: skip
OTHERS: list[tuple[str, pa.DataType]] = [
    ("int2", pa.float32()), ("int2", pa.decimal128(7, 2)), ("int4", pa.float64()), ("int4", pa.decimal128(38, 10)),
    ("int8", pa.decimal128(23, 4)), ("numeric", pa.float64()), ("numeric", pa.decimal128(6, 2)), ("uuid", pa.binary()),
]  # fmt: skip
"""Types that columns get which were altered, or by choice."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), OTHERS)
@given(draw=st.data())
def test_wider_and_chosen_types(name: str, kind: pa.DataType, draw: st.DataObject) -> None:
    """The kernels give what the values one by one give."""
    texts = UUIDS if name == "uuid" else TEXT[name][1]
    for values, cls in ((texts, bytes), (BINARY[name][1], pgo.Binary)):
        rows, oid = draw.draw(_rows(values, cls)), TYPE_NAMES[name].oid
        assert _decoded(oid, -1, rows, None, kind) == _decoded(oid, -1, rows, lambda *arguments: None, kind)


def test_binary_numeric_that_postgresql_never_writes() -> None:
    """A zero digit: numeric_recv() would strip it, numeric_send() never writes it; both paths agree."""
    value = pgo.Binary(bytes.fromhex("0001fffd000000000000"))
    _agree(TYPE_NAMES["numeric"].oid, _numeric(12, 2), [value])


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("format_name", ["text", "binary"])
def test_every_type_has_kernels(name: str, format_name: str) -> None:
    """No value of these types goes one by one, in either format, nor do arrays of them."""
    for oid in (TYPE_NAMES[name].oid, TYPE_NAMES[name].array_oid):
        (kind,) = columns_schema(described(("c", oid, _numeric(9, 2) if name == "numeric" else -1))).types
        assert find_cast(VALUE_TAGS[format_name], oid, kind) is not None


SAMPLES = {
    "bool": b"t", "int2": b"-7", "int4": b"70000", "int8": b"-9223372036854775807", "oid": b"4294967295", "float4": b"1.5",
    "float8": b"-0.001", "numeric": b"1234567.89", "date": b"2024-02-29", "timestamp": b"2024-02-29 23:59:59.000001",
    "timestamptz": b"2024-02-29 23:59:59.5+05:30", "bytea": b"\\x00ff", "text": "schön".encode(),
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_usual_values_are_taken(name: str) -> None:
    """Ordinary values of PostgreSQL are decoded by the kernels, at any position."""
    data = np.frombuffer(b"12345678" + SAMPLES[name] + b"87654321", np.uint8)
    starts, lengths = np.array([8, 8]), np.full(2, len(SAMPLES[name]), np.int32)
    code, oid = VALUE_TAGS["text"], TYPE_NAMES[name].oid
    (kind,) = columns_schema(described(("c", oid, _numeric(9, 2) if name == "numeric" else -1))).types
    cast = find_cast(code, oid, kind)
    assert cast is not None
    array, left = cast(
        ColumnValues(data, starts, lengths, np.array([code, 0], np.uint8), code, 1, 2 * len(SAMPLES[name])), kind
    )
    assert (left, array.null_count, array.is_valid().to_pylist()) == (None, 1, [True, False])
    assert array.type == kind
    assert BUILTIN_TYPES[oid].name == name


def test_wider_columns() -> None:
    """A column that was altered has the wider of its types, in both formats."""
    for name, value, target in (("int2", b"\xff\xff", pa.int64()), ("float4", struct.pack("!f", 0.1), pa.float64()),
                                ("numeric", struct.pack("!HhHHHH", 2, 0, 0, 2, 12, 3400), pa.decimal128(20, 4))):  # fmt: skip
        description = described(("c", TYPE_NAMES[name].oid, _numeric(8, 2) if name == "numeric" else -1))
        texts = {"int2": b"-1", "float4": b"0.1", "numeric": b"12.34"}
        payloads = [pgo.build(insert(pgo.Binary(value))), pgo.build(insert(texts[name]))]
        (column,) = decode_rows(payloads, None, description, pa.schema([("c", target)])).select(["c"])
        one, other = column.to_pylist()
        assert one == other
